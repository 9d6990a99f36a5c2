// The faults that the check-up is judged by: one row per kind.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "edits/edit.h"
#include "executor/layers.h"
#include "faults/plant.h"
#include "observers/predictions.h"
#include "stream/pass.h"
#include "studies/altered.h"
#include "studies/check_quality.h"

namespace netmend::studies {
namespace {

using dataset::Batch;
using model::ValueId;
using Named = PlantedKind::Named;

bool is_image(const CheckedModel& model) {
  return !model.test->info().features.empty() && model.test->info().features[0].image;
}
int64_t classes(const CheckedModel& model) { return int64_t(model.test->info().classes.size()); }

/// How a graph does on some inputs, to see what a fault costs.
struct Measured {
  double accuracy = 0;
  double gap = 0;  ///< between confidence and accuracy, in the mean
};

Measured measure(const CheckedModel& model, const model::Graph& graph) {
  executor::Head head = executor::find_head(graph, graph.outputs[0]);
  stream::Subject subject(model.file, graph, model.test, {head.output, head.logits});
  Batch batch = model.test->read(stream::spread(model.test->size(), 1500));
  at::Tensor outputs = observers::as_columns(stream::run_few(subject, {head.output}, batch)[0]).to(at::kDouble);
  if (head.output_kind == executor::OutputKind::kLogits)
    outputs = outputs.size(1) == 1 ? outputs.sigmoid() : outputs.softmax(1);
  if (head.output_kind == executor::OutputKind::kLogProbabilities) outputs = outputs.exp();
  if (outputs.size(1) == 1) outputs = at::cat({1 - outputs, outputs}, 1);
  const auto [confidence, predicted] = outputs.max(1);
  const double right = (predicted == batch.labels.to(at::kLong)).to(at::kDouble).mean().item<double>();
  return {right, std::abs(confidence.mean().item<double>() - right)};
}

/// A fault of `lab plant` that costs at least three points; drawn again until one does.
std::optional<faults::Fault> damage(CheckedModel& model, const char* kind, uint64_t seed) {
  const double before = measure(model, model.graph).accuracy;
  auto layers = executor::find_layers(model.graph);
  if (layers.size() < 2) return {};
  for (uint64_t draw = 0; draw < 60; ++draw) {
    model::Graph graph = model.graph;
    faults::Fault fault;
    try {
      fault = faults::plant(graph, layers, faults::find_kind(kind), {.seed = Random::hash(seed * 131 + draw)});
      edits::apply(graph, fault.edits);
    } catch (const InputError&) {
      continue;
    }
    const double lost = before - measure(model, graph).accuracy;
    if (lost < 0.03) continue;
    model.graph = std::move(graph);
    return fault;
  }
  return {};
}

Named damaged_unit(CheckedModel& model, const char* kind, uint64_t seed) {
  const auto fault = damage(model, kind, seed);
  return fault ? Named({"suspicious-unit:" + fault->units.at(0)}) : std::nullopt;
}

std::string class_name(const CheckedModel& model, int64_t c) { return model.test->info().classes[size_t(c)]; }
std::string pair_name(const CheckedModel& model, int64_t a, int64_t b) {
  const std::string one = class_name(model, a), other = class_name(model, b);
  return one < other ? one + "-" + other : other + "-" + one;
}

/// The two classes whose rows of the output layer's parameters were changed.
Named swapped_classes(CheckedModel& model, uint64_t seed) {
  if (classes(model) < 3) return {};
  const model::Graph before = model.graph;
  if (!damage(model, "swapped-classes", seed)) return {};
  const model::Layer last = executor::find_layers(before).back();
  std::vector<int64_t> changed;
  for (int64_t c = 0; c < classes(model); ++c) {
    const at::Tensor old = before.constant(last.weight), now = model.graph.constant(last.weight);
    const int64_t axis = old.size(0) == classes(model) ? 0 : 1;
    if (!at::equal(old.select(axis, c), now.select(axis, c))) changed.push_back(c);
  }
  if (changed.size() != 2) return {};
  return Named({"confused-classes:" + pair_name(model, changed[0], changed[1]), "class-order:labels"});
}

/// Replaces a constant by what `make` makes of it.
template <typename Make>
void rewrite(CheckedModel& model, ValueId id, const Make& make) {
  model.graph.replace(id, make(model.graph.constant(id).clone()));
}

bool scaled_output(CheckedModel& model, double factor) {
  auto layers = executor::find_layers(model.graph);
  const model::Layer& last = layers.back();
  if (model.graph.constant(last.weight).scalar_type() != at::kFloat) return false;
  rewrite(model, last.weight, [&](at::Tensor w) { return w * factor; });
  if (last.bias != model::kAbsent) rewrite(model, last.bias, [&](at::Tensor b) { return b * factor; });
  return true;
}

/// Rows of a share of the data, drawn at random.
std::set<int64_t> some_rows(int64_t size, double share, uint64_t seed) {
  std::set<int64_t> rows;
  for (int64_t i = 0; i < size; ++i)
    if (Random(seed, uint64_t(i)).uniform() < share) rows.insert(i);
  return rows;
}

bool relabel(CheckedModel& model, double share, uint64_t seed, int64_t only) {
  if (classes(model) < 2 || (only >= 0 && classes(model) < 5)) return false;
  auto rows = some_rows(model.test->size(), share, seed);
  const int64_t count = classes(model), to = (only + 3) % count;
  model.test = altered(
      model.test, {.change = [=](Batch& batch, std::span<const int64_t> own) {
        auto* labels = batch.labels.data_ptr<int64_t>();
        for (size_t i = 0; i < own.size(); ++i) {
          if (!rows.count(own[i])) continue;
          if (only < 0)
            labels[i] =
                (labels[i] + 1 + int64_t(Random(seed + 1, uint64_t(own[i])).below(uint64_t(count - 1)))) % count;
          else if (labels[i] == only)
            labels[i] = to;
        }
      }});
  return true;
}

bool change_tests(CheckedModel& model, std::function<void(Batch&, std::span<const int64_t>)> change) {
  model.test = altered(model.test, {.change = std::move(change)});
  return true;
}

bool is_float(const CheckedModel& model) {
  return !model.test->info().features.empty() && model.test->info().features[0].type == at::kFloat;
}

/// Much noise on one input, the same whenever it is read: a third of a picture's largest value, a standard deviation
/// and a half of a table whose columns were standardised.
void add_noise(Batch& batch, int64_t row, int64_t sample, uint64_t seed, bool image) {
  at::Tensor one = batch.inputs[0][row];
  Random random(seed, uint64_t(sample));
  const auto most = image ? 0.35f * float(one.max().item<double>()) : 1.5f;
  float* values = one.data_ptr<float>();
  for (int64_t v = 0; v < one.numel(); ++v) values[v] += most * float(random.normal());
}

bool thin_class(std::shared_ptr<const dataset::Dataset>& data, int64_t which, double keep, uint64_t seed) {
  std::vector<int64_t> samples;
  for (int64_t first = 0; first < data->size(); first += 1024) {
    std::vector<int64_t> rows;
    for (int64_t i = first; i < std::min(data->size(), first + 1024); ++i) rows.push_back(i);
    at::Tensor labels = data->read(rows).labels.to(at::kLong);
    for (size_t i = 0; i < rows.size(); ++i)
      if (labels.data_ptr<int64_t>()[i] != which || Random(seed, uint64_t(rows[i])).uniform() < keep)
        samples.push_back(rows[i]);
  }
  data = altered(data, {.samples = std::move(samples)});
  return true;
}

constexpr PlantedKind kKinds[] = {
    {"random-weights", "units", [](CheckedModel& p, uint64_t s) { return damaged_unit(p, "random-weights", s); }},
    {"sign-flipped", "units", [](CheckedModel& p, uint64_t s) { return damaged_unit(p, "sign-flipped", s); }},
    {"saturated", "units", [](CheckedModel& p, uint64_t s) { return damaged_unit(p, "saturated", s); }},
    {"scaled", "units", [](CheckedModel& p, uint64_t s) { return damaged_unit(p, "scaled", s); }},
    {"layer-noise", "layers",
     [](CheckedModel& p, uint64_t s) -> Named {
       const auto fault = damage(p, "layer-noise", s);
       return fault ? Named({"damaged-layer:" + fault->layer}) : std::nullopt;
     }},
    {"swapped-classes", "layers", swapped_classes},
    {"not-a-number", "layers",
     [](CheckedModel& p, uint64_t s) -> Named {
       const auto layers = executor::find_layers(p.graph);
       const model::Layer& layer = layers[s % layers.size()];
       rewrite(p, layer.weight, [](at::Tensor w) { return w.view(-1)[0].fill_(NAN), w; });
       return {{"non-finite-weights:" + layer.name}};
     }},
    {"silent-class", "layers",
     [](CheckedModel& p, uint64_t s) -> Named {
       auto layers = executor::find_layers(p.graph);
       if (layers.back().bias == model::kAbsent || classes(p) < 3) return {};
       const auto which = int64_t(s % uint64_t(classes(p)));
       rewrite(p, layers.back().bias, [&](at::Tensor b) { return b.view(-1)[which].sub_(1000), b; });
       return {{"never-predicted:" + class_name(p, which)}};
     }},
    {"dead-layer", "layers",
     [](CheckedModel& p, uint64_t) -> Named {
       auto layers = executor::find_layers(p.graph);
       const model::Layer& layer = layers[layers.size() - 2];
       if (layer.bias == model::kAbsent || layer.activation != "Relu") return {};
       rewrite(p, layer.bias, [](at::Tensor b) { return b.view(-1).narrow(0, 0, b.numel() * 2 / 3).fill_(-1e4), b; });
       return {{"dead-units:" + layer.name}};
     }},
    {"copied-units", "layers",
     [](CheckedModel& p, uint64_t) -> Named {
       for (const model::Layer& layer : executor::find_layers(p.graph)) {
         at::Tensor w = p.graph.constant(layer.weight);
         if (layer.op != "Conv" || layer.weight != layer.weight_input || w.size(0) < 6 || w[0].numel() < 8) continue;
         rewrite(p, layer.weight, [](at::Tensor all) {
           return all.narrow(0, 0, all.size(0) / 2).copy_(all[0].expand_as(all.narrow(0, 0, all.size(0) / 2))), all;
         });
         return {{"duplicate-units:" + layer.name}};
       }
       return {};
     }},
    {"over-confident-head", "layers",
     [](CheckedModel& p, uint64_t) { return scaled_output(p, 20) ? Named({"over-confident"}) : std::nullopt; }},
    {"under-confident-head", "layers",
     [](CheckedModel& p, uint64_t) { return scaled_output(p, 0.05) ? Named({"under-confident"}) : std::nullopt; }},
    {"wrong-labels", "labels",
     [](CheckedModel& p, uint64_t s) { return relabel(p, 0.08, s, -1) ? Named({"mislabelled:test"}) : std::nullopt; }},
    {"wrong-labels-in-a-class", "labels",
     [](CheckedModel& p, uint64_t s) -> Named {
       const int64_t count = std::max<int64_t>(1, classes(p)), which = int64_t(s % uint64_t(count));
       if (!relabel(p, 0.4, s, which)) return {};
       return {{"mislabelled:test", "confused-classes:" + pair_name(p, which, (which + 3) % count)}};
     }},
    {"unscaled", "preprocessing",
     [](CheckedModel& p, uint64_t) -> Named {
       if (!is_image(p)) return {};
       dataset::Spec spec = dataset::parse_spec(p.test->info().spec);
       spec.options["scale"] = "1";
       for (const char* forgotten : {"mean", "std"}) spec.options.erase(forgotten);
       p.test = dataset::open(spec);
       return {{"preprocessing:scale"}};
     }},
    {"inverted", "preprocessing",
     [](CheckedModel& p, uint64_t) -> Named {
       if (!is_image(p)) return {};
       change_tests(p, [](Batch& b, auto) { b.inputs[0] = b.inputs[0].max() - b.inputs[0] + b.inputs[0].min(); });
       return {{"preprocessing:scale"}};
     }},
    {"transposed", "preprocessing",
     [](CheckedModel& p, uint64_t) -> Named {
       if (!is_image(p) || p.test->info().features[0].shape[1] != p.test->info().features[0].shape[2]) return {};
       change_tests(p, [](Batch& b, auto) { b.inputs[0] = b.inputs[0].transpose(-1, -2).contiguous(); });
       return {{"preprocessing:orientation"}};
     }},
    {"reordered-classes", "preprocessing",
     [](CheckedModel& p, uint64_t) -> Named {
       const int64_t count = classes(p);
       if (count < 2 || count % 3 == 0) return {};
       change_tests(p, [=](Batch& b, auto) { b.labels = (b.labels * 3 + 1).remainder(count); });
       return {{"class-order:labels"}};
     }},
    {"leak", "splits",
     [](CheckedModel& p, uint64_t s) -> Named {
       if (!p.train) return {};
       std::vector<int64_t> samples;
       for (int64_t i = 0; i < p.test->size(); ++i) {
         Random random(s, uint64_t(i));
         samples.push_back(random.uniform() < 0.3 ? p.test->size() + int64_t(random.below(uint64_t(p.train->size())))
                                                  : i);
       }
       p.test = altered(p.test, {.samples = std::move(samples), .other = p.train});
       return {{"split-leak:train-test"}};
     }},
    {"repeated-tests", "splits",
     [](CheckedModel& p, uint64_t s) -> Named {
       std::vector<int64_t> samples;
       for (int64_t i = 0; i < p.test->size(); ++i) {
         Random random(s, uint64_t(i));
         samples.push_back(random.uniform() < 0.4 ? int64_t(random.below(uint64_t(p.test->size() / 10))) : i);
       }
       p.test = altered(p.test, {.samples = std::move(samples)});
       return {{"duplicates:test"}};
     }},
    {"absent-class", "splits",
     [](CheckedModel& p, uint64_t s) -> Named {
       if (!p.train || classes(p) < 3) return {};
       const auto which = int64_t(s % uint64_t(classes(p)));
       thin_class(p.test, which, 0, s);
       return {{"absent-class:" + class_name(p, which)}};
     }},
    {"rare-class", "splits",
     [](CheckedModel& p, uint64_t s) -> Named {
       if (!p.train || classes(p) < 3) return {};
       thin_class(p.test, int64_t(s % uint64_t(classes(p))), 0.04, s);
       return {{"imbalance:test", "class-shift:train-test"}};
     }},
    {"weak-group", "groups",
     [](CheckedModel& p, uint64_t s) -> Named {
       if (!is_float(p)) return {};
       auto rows = some_rows(p.test->size(), 0.2, s);
       const bool image = is_image(p);
       p.test = altered(p.test, {.change =
                                     [=](Batch& batch, std::span<const int64_t> own) {
                                       for (size_t i = 0; i < own.size(); ++i)
                                         if (rows.count(own[i])) add_noise(batch, int64_t(i), own[i], s, image);
                                     },
                                 .column = "camera",
                                 .value = [=](int64_t row) { return std::string(rows.count(row) ? "B" : "A"); }});
       return {{"weak-slice:camera=B", "group-gap:camera=B"}};
     }},
    {"noisy-tests", "data",
     [](CheckedModel& p, uint64_t s) -> Named {
       if (!is_float(p) || !p.train) return {};
       const bool image = is_image(p);
       change_tests(p, [=](Batch& b, std::span<const int64_t> own) {
         for (size_t i = 0; i < own.size(); ++i) add_noise(b, int64_t(i), own[i], s, image);
       });
       return {{"drift:*", "range-shift:train-test"}};
     }},
    {"broken-values", "data",
     [](CheckedModel& p, uint64_t s) -> Named {
       if (!is_float(p)) return {};
       auto rows = some_rows(p.test->size(), 0.02, s);
       change_tests(p, [=](Batch& b, std::span<const int64_t> own) {
         for (size_t i = 0; i < own.size(); ++i)
           if (rows.count(own[i])) b.inputs[0][int64_t(i)].view(-1)[0].fill_(NAN);
       });
       return {{"missing-values:test"}};
     }},
    {"untrained", "training",
     [](CheckedModel& p, uint64_t s) -> Named {
       for (ValueId id : executor::find_parameters(p.graph)) {
         at::Tensor old = p.graph.constant(id);
         if (!old.is_floating_point() || old.dim() < 2) continue;
         at::Tensor fresh = at::empty_like(old);
         Random random(s, uint64_t(id));
         for (int64_t i = 0; i < fresh.numel(); ++i)
           fresh.data_ptr<float>()[i] = float(random.normal()) * std::sqrt(2.0f / float(old.numel() / old.size(0)));
         p.graph.replace(id, fresh);
       }
       return {{"no-better-than-baseline"}};
     }},
};

}  // namespace

double cost_of(const CheckedModel& sound, const CheckedModel& faulty) {
  const Measured before = measure(sound, sound.graph), after = measure(faulty, faulty.graph);
  return std::max(before.accuracy - after.accuracy, after.gap - before.gap);
}

std::span<const PlantedKind> planted_kinds() { return kKinds; }

}  // namespace netmend::studies
