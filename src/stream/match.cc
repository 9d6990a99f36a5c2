#include "stream/match.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "executor/batching.h"
#include "executor/executor.h"
#include "executor/layers.h"
#include "executor/runtime.h"
#include "model/guard.h"
#include "stream/layer_pairs.h"
#include "stream/reference.h"

namespace netmend::stream {
namespace {

using executor::Batching;
using executor::Executor;
using executor::Mode;
using model::Graph;
using model::ValueId;
using Tensors = std::vector<at::Tensor>;

constexpr int64_t kChunk = 8;  ///< inputs at once; all layers of these are in memory together
constexpr const char* kOther =
    "was the reference written for another model? Write it again from the model that was exported";

bool fits(const model::Value& value, const std::vector<int64_t>& shape) {
  if (!value.shape) return true;
  if (value.shape->size() != shape.size()) return false;
  for (size_t axis = 1; axis < shape.size(); ++axis)
    if ((*value.shape)[axis].size >= 0 && (*value.shape)[axis].size != shape[axis]) return false;
  return true;
}

std::string declared(const model::Value& value) {
  std::string text;
  for (size_t axis = 0; value.shape && axis < value.shape->size(); ++axis) {
    const int64_t size = (*value.shape)[axis].size;
    text += fmt::format("{}{}", axis ? "×" : "", axis == 0 ? "N" : size < 0 ? "?" : std::to_string(size));
  }
  return text.empty() ? "?" : text;
}

struct InputLink {
  const Recorded* recorded = nullptr;
  std::vector<int64_t> permute;  ///< empty: as it is
  at::ScalarType type = at::kFloat;
};

std::vector<int64_t> permuted(const std::vector<int64_t>& shape, const std::vector<int64_t>& axes) {
  std::vector<int64_t> out;
  for (int64_t axis : axes) out.push_back(shape[size_t(axis)]);
  return out;
}

InputLink link_input(const model::Value& value, const Recorded& recorded, const std::string& path,
                     std::vector<std::string>* notes) {
  InputLink link{&recorded, {}, model::supported(value.type) ? model::carrier(value.type) : at::kFloat};
  const std::vector<int64_t>& shape = recorded.array.shape;
  if (fits(value, shape)) return link;
  const std::vector<int64_t> last = {0, 2, 3, 1}, first = {0, 3, 1, 2};
  for (const auto& axes : {last, first}) {
    if (shape.size() != 4 || !fits(value, permuted(shape, axes))) continue;
    link.permute = axes;
    if (notes)
      notes->push_back(fmt::format("input `{}` was recorded with channels {}, {}, and is fed as {}", recorded.name,
                                   axes == last ? "first" : "last", shape_text(shape),
                                   shape_text(permuted(shape, axes))));
    return link;
  }
  throw InputError(fmt::format("the model expects input `{}` as {}, but {} has `{}` as {}", value.name, declared(value),
                               path, recorded.name, shape_text(shape)),
                   kOther);
}

/// By name where all names are there, else by position.
std::vector<InputLink> link_inputs(const Graph& graph, const Reference& reference, std::vector<std::string>* notes) {
  std::vector<std::string> ours, theirs;
  for (ValueId id : graph.inputs) ours.push_back(graph.values[size_t(id)].name);
  for (const Recorded& input : reference.inputs) theirs.push_back(input.name);
  if (ours.size() != theirs.size())
    throw InputError(
        fmt::format("the model has {} input{} ({}), {} has {} ({})", ours.size(), ours.size() == 1 ? "" : "s",
                    join(ours, ", "), reference.path, theirs.size(), join(theirs, ", ")),
        kOther);
  std::vector<InputLink> links;
  bool named = true;
  for (const std::string& name : ours) named = named && std::count(theirs.begin(), theirs.end(), name);
  if (!named && notes && ours.size() > 1)
    notes->push_back(fmt::format("inputs are paired by position: {} with {}", join(ours, ", "), join(theirs, ", ")));
  for (size_t i = 0; i < ours.size(); ++i) {
    const size_t at = named ? size_t(std::find(theirs.begin(), theirs.end(), ours[i]) - theirs.begin()) : i;
    links.push_back(link_input(graph.values[size_t(graph.inputs[i])], reference.inputs[at], reference.path, notes));
  }
  return links;
}

at::Tensor fed(const InputLink& link, int64_t first, int64_t count) {
  at::Tensor rows = link.recorded->rows(first, count);
  if (!link.permute.empty()) rows = rows.permute(link.permute).contiguous();
  return rows.to(link.type);
}

using Alter = std::function<at::Tensor(const at::Tensor&)>;  ///< of an input before it is fed

/// Runs the network over the recorded inputs, as many at once as it takes.
class Runner {
 public:
  Runner(const Graph& graph, const Reference& reference, const MatchOptions& options, std::vector<std::string>* notes)
      : links_(link_inputs(graph, reference, notes)), count_(reference.count()), device_(options.device) {
    batching_ = model::guarded(
        [&] { return fmt::format("the inputs of {} do not run", reference.path); },
        [&] { return executor::find_batching(graph, inputs(0, std::min(count_, kChunk)), graph.outputs); });
    if (notes && !batching_.note.empty()) notes->push_back(batching_.note);
  }

  const Graph& graph() const { return batching_.graph; }
  int64_t chunk() const {
    return batching_.kind == Batching::kAny ? kChunk : batching_.kind == Batching::kOne ? 1 : batching_.size;
  }
  /// Enough inputs to tell layers apart by their values.
  int64_t few() const { return std::min(any_size() ? 4 : chunk(), count_); }
  /// Whether all inputs can go through at once.
  bool any_size() const { return batching_.kind == Batching::kAny; }

  Tensors inputs(int64_t first, int64_t count) const {
    Tensors out;
    for (const InputLink& link : links_) out.push_back(fed(link, first, count));
    return out;
  }

  /// Calls `take(first, count, values)` for pieces of the inputs, at most `most` of them in all.
  void run(const std::vector<ValueId>& wanted, Mode mode,
           const std::function<void(int64_t first, int64_t count, const Tensors& values)>& take,
           int64_t most = INT64_MAX, const Alter& alter = {}) const {
    executor::Request request;
    request.wanted = wanted;
    request.mode = mode;
    request.device = device_;
    Executor executor(graph(), request);
    at::NoGradGuard no_grad;
    most = std::min(most, count_);
    for (int64_t first = 0; first < most; first += chunk()) {
      const int64_t count = std::min(chunk(), most - first);
      Tensors given = inputs(first, count);
      if (alter)
        for (at::Tensor& input : given) input = alter(input);
      take(first, count, cut(executor.run(filled(given, count)), count));
    }
  }

  /// The outputs with batch norm and dropout as in training, all inputs together as the framework had them.
  Tensors run_as_in_training() const {
    executor::Request request;
    request.mode = Mode::kPlain;
    request.device = device_;
    executor::RunOptions training;
    training.training = true;
    at::NoGradGuard no_grad;
    Tensors out = Executor(graph(), request).run(inputs(0, count_), training);
    for (at::Tensor& value : out) value = value.cpu();
    return out;
  }

 private:
  /// A network that takes exactly so many at once gets the last one repeated.
  Tensors filled(Tensors given, int64_t count) const {
    if (batching_.kind != Batching::kFixed || count == batching_.size) return given;
    for (at::Tensor& input : given)
      input = at::cat({input, input.narrow(0, count - 1, 1).repeat_interleave(batching_.size - count, 0)}, 0);
    return given;
  }
  Tensors cut(Tensors values, int64_t count) const {
    for (at::Tensor& value : values) {
      if (batching_.kind == Batching::kFixed && value.dim() > 0 && value.size(0) == batching_.size)
        value = value.narrow(0, 0, count);
      value = value.cpu();
    }
    return values;
  }

  std::vector<InputLink> links_;
  int64_t count_;
  at::Device device_;
  Batching batching_;
};

/// Which recorded output belongs to each of ours.
std::vector<const Recorded*> link_outputs(const Graph& graph, const Reference& reference, const Tensors& values) {
  std::vector<const Recorded*> links(values.size());
  auto same = [&](const Recorded& recorded, const at::Tensor& value) {
    return std::vector<int64_t>(recorded.array.shape.begin() + 1, recorded.array.shape.end()) ==
           value.sizes().slice(std::min<int64_t>(1, value.dim())).vec();
  };
  std::set<const Recorded*> used;
  for (int pass = 0; pass < 3; ++pass)  // by name, by position, by shape
    for (size_t i = 0; i < values.size(); ++i)
      for (size_t r = 0; r < reference.outputs.size() && !links[i]; ++r) {
        const Recorded& recorded = reference.outputs[r];
        const bool meant = pass == 0   ? recorded.name == graph.values[size_t(graph.outputs[i])].name
                           : pass == 1 ? r == i
                                       : true;
        if (meant && same(recorded, values[i]) && used.insert(&recorded).second) links[i] = &recorded;
      }
  if (!used.empty()) return links;
  throw InputError(fmt::format("{} has the output `{}` as {}, but the model has `{}` as {}", reference.path,
                               reference.outputs[0].name, shape_text(reference.outputs[0].array.shape),
                               graph.values[size_t(graph.outputs[0])].name,
                               shape_text({values[0].sizes().data(), values[0].sizes().size()})),
                   kOther);
}

struct OutputSum {
  DifferenceSum sum;
  int64_t differ = 0, rows = 0;
  bool scores = false;

  void add(const at::Tensor& ours, const at::Tensor& theirs) {
    sum.add(ours, theirs);
    scores = ours.dim() == 2 && ours.size(1) > 1 && ours.is_floating_point();
    if (!scores) return;
    differ += ours.argmax(1).ne(theirs.argmax(1)).sum().item<int64_t>();
    rows += ours.size(0);
  }
};

bool departs(const Difference& difference, double tolerance) {
  return !(difference.max <= tolerance * std::max(1.0, difference.size));
}

bool any_departs(const std::vector<OutputMatch>& outputs, double tolerance) {
  return std::any_of(outputs.begin(), outputs.end(),
                     [&](const OutputMatch& output) { return departs(output.difference, tolerance); });
}

class Comparison {
 public:
  Comparison(const Graph& graph, const Reference& reference, const MatchOptions& options)
      : reference_(reference), options_(options), runner_(graph, reference, options, &match_.notes) {
    match_.inputs = reference.count();
    match_.notes.insert(match_.notes.end(), reference.notes.begin(), reference.notes.end());
  }

  Match compare() {
    match_.outputs = outputs(Mode::kFast);
    match_.matches = !any_departs(match_.outputs, options_.tolerance);
    if (!reference_.layers.empty() && (options_.layers || !match_.matches)) compare_layers();
    match_.reason = match_.matches ? fmt::format("the outputs agree within {:g}", options_.tolerance) : find_reason();
    if (std::string why = repaired(); !match_.matches && !why.empty()) match_.repaired = true, match_.reason = why;
    return std::move(match_);
  }

 private:
  std::vector<OutputMatch> outputs(Mode mode, int64_t most = INT64_MAX, const Alter& alter = {},
                                   const Alter& after = {}) const {
    std::vector<const Recorded*> links;
    std::vector<OutputSum> sums(runner_.graph().outputs.size());
    runner_.run(
        runner_.graph().outputs, mode,
        [&](int64_t first, int64_t count, const Tensors& values) {
          if (links.empty()) links = link_outputs(runner_.graph(), reference_, values);
          for (size_t i = 0; i < values.size(); ++i)
            if (links[i])
              sums[i].add(after ? after(values[i]) : values[i], links[i]->rows(first, count).view(values[i].sizes()));
        },
        most, alter);
    return summed(links, sums);
  }

  std::vector<OutputMatch> summed(const std::vector<const Recorded*>& links, const std::vector<OutputSum>& sums) const {
    std::vector<OutputMatch> out;
    for (size_t i = 0; i < links.size(); ++i) {
      if (!links[i]) continue;
      OutputMatch match;
      match.name = runner_.graph().values[size_t(runner_.graph().outputs[i])].name;
      match.difference = sums[i].sum.finish();
      if (sums[i].scores) match.predictions_differ = double(sums[i].differ) / double(sums[i].rows);
      out.push_back(match);
    }
    return out;
  }

  void compare_layers() {
    LayerPairs pairs(runner_.graph(), reference_, options_.tolerance);
    runner_.run(
        pairs.wanted(), Mode::kPlain,
        [&](int64_t first, int64_t count, const Tensors& values) { pairs.look(first, count, values); }, runner_.few());
    pairs.choose();
    runner_.run(pairs.wanted(), Mode::kPlain,
                [&](int64_t first, int64_t count, const Tensors& values) { pairs.measure(first, count, values); });
    match_.layers = pairs.finish();
    if (!match_.matches) pairs.isolate(runner_.inputs(0, runner_.few()), runner_.few(), match_.layers);
    for (const LayerMatch& layer : match_.layers)
      if (layer.departs && match_.first_departure.empty()) match_.first_departure = layer.name;
  }

  // Reasons, the most certain first: each looks for evidence of its own.

  std::string find_reason() const {
    for (auto look :
         {&Comparison::fast_mode, &Comparison::broken_numbers, &Comparison::other_ending, &Comparison::other_feed,
          &Comparison::training_mode, &Comparison::precision, &Comparison::other_weights, &Comparison::first_layer})
      if (std::string reason = (this->*look)(); !reason.empty()) return reason;
    return fmt::format(
        "the outputs differ by up to {:.3g}; {} holds no layers that would show where: write it with "
        "layers",
        match_.outputs[0].difference.max, reference_.path);
  }

  /// A reference is of the model as it was: a repair that changed no output would be none. "" where there was no repair
  /// or a layer differs that it did not change.
  std::string repaired() const {
    const auto record = runner_.graph().metadata.find("netmend.repair");
    if (record == runner_.graph().metadata.end()) return "";
    std::set<std::string> changed;  // layers; empty where the repair was not about units
    const nlohmann::json json = json_or_null(record->second);
    if (json.is_object() && json.contains("units") && json["units"].is_array())
      for (const auto& unit : json["units"])
        if (unit.is_string()) changed.insert(unit.get<std::string>().substr(0, unit.get<std::string>().rfind('/')));
    std::vector<std::string> differ;
    for (const LayerMatch& layer : match_.layers) {
      if (!(layer.alone > options_.tolerance) || layer.folded) continue;
      if (!changed.empty() && !changed.count(layer.layer)) return "";
      differ.push_back("`" + layer.name + "`");
    }
    const std::string start = "the model was repaired after the reference was written";
    if (differ.empty()) return start + ", so its outputs differ from the reference";
    constexpr size_t kNamed = 6;
    const std::string rest = differ.size() > kNamed ? fmt::format(" and {} more", differ.size() - kNamed) : "";
    const bool one = differ.size() == 1;
    if (differ.size() > kNamed) differ.resize(kNamed);
    return fmt::format("{}; {}{} {} changed, so {} outputs differ from the reference", start, join(differ, ", "), rest,
                       one ? "was" : "were", one ? "its" : "their");
  }

  std::string fast_mode() const {
    if (any_departs(outputs(Mode::kPlain), options_.tolerance)) return "";
    return "when the nodes run one by one, the outputs agree, and only netmend's optimised graph differs: this is a "
           "bug in netmend; please report it with the model";
  }

  std::string broken_numbers() const {
    for (const OutputMatch& output : match_.outputs)
      if (!std::isfinite(output.difference.max))
        return fmt::format("`{}` differs where one side is NaN or infinite", output.name);
    return "";
  }

  /// Looks at a few inputs first: most guesses are wrong.
  bool would_agree(const Alter& feed, const Alter& ending) const {
    for (int64_t most : {runner_.few(), reference_.count()})
      if (any_departs(outputs(Mode::kFast, most, feed, ending), options_.tolerance)) return false;
    return true;
  }

  std::string other_ending() const {
    const std::pair<const char*, Alter> endings[] = {
        {"a softmax", [](const at::Tensor& x) { return x.dim() ? at::softmax(x.to(at::kDouble), -1) : x; }},
        {"a sigmoid", [](const at::Tensor& x) { return at::sigmoid(x.to(at::kDouble)); }},
        {"a logarithm", [](const at::Tensor& x) { return at::log(x.to(at::kDouble)); }},
        {"an exponential", [](const at::Tensor& x) { return at::exp(x.to(at::kDouble)); }}};
    for (const auto& [name, ending] : endings)
      if (would_agree({}, ending))
        return fmt::format(
            "the framework's output is that of the file with {} at the end: both are right, but they end at "
            "different places",
            name);
    return "";
  }

  /// Would the outputs agree for inputs whose axes are meant otherwise?
  std::string other_feed() const {
    const std::pair<const char*, Alter> feeds[] = {
        {"with their colour channels reversed (BGR)",
         [](const at::Tensor& x) {
           for (int64_t axis : {1, 3})
             if (x.dim() == 4 && x.size(axis) == 3) return x.flip(axis);
           return x;
         }},
        {"with rows and columns swapped",
         [](const at::Tensor& x) {
           if (x.dim() == 4 && x.size(2) == x.size(3)) return x.transpose(2, 3).contiguous();
           return x.dim() == 4 && x.size(1) == x.size(2) ? x.transpose(1, 2).contiguous() : x;
         }},
        {"in the other layout (NHWC read as NCHW)",
         [](const at::Tensor& x) {
           if (x.dim() != 4) return x;
           return x.view({x.size(0), x.size(2), x.size(3), x.size(1)}).permute({0, 3, 1, 2}).contiguous();
         }},
    };
    for (const auto& [name, feed] : feeds)
      if (would_agree(feed, {}))
        return fmt::format("layout: the outputs agree when the recorded inputs are fed {}", name);
    return "";
  }

  std::string training_mode() const {
    for (const LayerMatch& layer : match_.layers) {
      if (!layer.departs) continue;
      if (!layer.restated) break;
      return fmt::format(
          "the framework ran batch norm in training mode: `{}` is the first layer that differs, and only by a "
          "scale and an offset per unit, so its statistics are not those that the file has folded "
          "into {}; call model.eval() before writing the reference",
          layer.name, layer.layer);
    }
    if (!runner_.any_size()) return "";
    Tensors values;
    try {
      values = runner_.run_as_in_training();
    } catch (const InputError&) {
      return "";  // too large at once, or a network that cannot: no evidence
    }
    std::vector<const Recorded*> links = link_outputs(runner_.graph(), reference_, values);
    double before = 0, after = 0;
    for (const OutputMatch& output : match_.outputs) before = std::max(before, output.difference.max);
    for (size_t i = 0; i < values.size(); ++i)
      if (links[i]) {
        DifferenceSum sum;
        sum.add(values[i], links[i]->rows(0, reference_.count()).view(values[i].sizes()));
        after = std::max(after, sum.finish().max);
      }
    if (!(after < before * 0.05)) return "";
    return fmt::format(
        "the framework ran batch norm in training mode: with the statistics of the batch the difference "
        "falls from {:.3g} to {:.3g}; call model.eval() before writing the reference",
        before, after);
  }

  bool half_weights() const {
    int64_t half = 0, all = 0;
    for (ValueId id : executor::find_parameters(runner_.graph())) {
      const model::Constant& constant = runner_.graph().constants.at(id);
      if (!constant.value.is_floating_point()) continue;
      ++all;
      half += at::equal(constant.value, model::rounded(model::Element::kFloat16, constant.value));
    }
    return all > 0 && half == all;
  }

  /// Rounding shows everywhere, about as large in every layer.
  std::string precision() const {
    double largest = 0;
    for (const OutputMatch& output : match_.outputs) largest = std::max(largest, output.difference.relative);
    double least = INFINITY, most = 0;
    int64_t tried = 0;
    for (const LayerMatch& layer : match_.layers) {
      if (layer.alone < 0 || layer.folded || !layer.weights) continue;
      ++tried;
      least = std::min(least, layer.alone);
      most = std::max(most, layer.alone);
    }
    const bool half = half_weights();
    const bool everywhere = tried > 1 && most < 5e-3 && least > most / 100;
    if (!(largest < 0.03) || !(everywhere || (half && (tried == 0 || most < 5e-3)))) return "";
    return fmt::format("precision: the outputs differ by {:.1e} of their size{}{}", largest,
                       everywhere ? fmt::format(", and every layer alone by {:.0e} to {:.0e}", least, most) : "",
                       half ? "; all weights of the file are float16 numbers, those of the framework were not rounded"
                            : ", as float16 or reduced precision on one side does");
  }

  std::string other_weights() const {
    int64_t tried = 0, wrong = 0;
    for (const LayerMatch& layer : match_.layers) {
      if (!layer.weights) continue;
      if (tried == 0 && !layer.departs) return "";  // it begins right, so the file is not a stranger
      if (layer.alone < 0 || layer.folded) continue;
      ++tried;
      wrong += !(layer.alone <= options_.tolerance);
    }
    if (tried < 2 || double(wrong) < 0.75 * double(tried)) return "";
    return fmt::format(
        "another model: {} of {} layers differ even when they are given the framework's own values, from "
        "the first one on: the weights are not the same; was the file exported from this checkpoint?",
        wrong, tried);
  }

  /// A layer that differs when it is given the recorded values is to blame, not one that passes a difference on.
  std::string first_layer() const {
    auto where = [](const LayerMatch& layer) {
      return fmt::format("`{}` ({}, node {})", layer.name, layer.op, layer.node);
    };
    for (bool weights : {true, false})
      for (const LayerMatch& layer : match_.layers)
        if (layer.alone > options_.tolerance && !layer.folded && layer.weights == weights)
          return fmt::format(
              "{} is to blame: given the framework's own input it still differs by {:.2g} of its size, "
              "so its weights or attributes are not the framework's",
              where(layer), layer.alone);
    for (const LayerMatch& layer : match_.layers)
      if (layer.departs)
        return fmt::format(
            "{} is the first layer that differs, by {:.2g} of its size; smaller differences before it have grown",
            where(layer), layer.difference.relative);
    if (match_.layers.empty()) return "";
    return "all recorded layers agree: the outputs begin to differ after the last of them";
  }

  const Reference& reference_;
  const MatchOptions& options_;
  Match match_;
  Runner runner_;
};

}  // namespace

Match compare_with_reference(const Graph& graph, const Reference& reference, const MatchOptions& options) {
  return Comparison(graph, reference, options).compare();
}

Tensors reference_inputs(const Graph& graph, const Reference& reference, int64_t first, int64_t count,
                         std::vector<std::string>* notes) {
  Tensors out;
  for (const InputLink& link : link_inputs(graph, reference, notes)) out.push_back(fed(link, first, count));
  return out;
}

}  // namespace netmend::stream
