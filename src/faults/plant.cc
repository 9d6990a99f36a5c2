#include "faults/plant.h"

#include <ATen/ATen.h>

#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "edits/operations.h"
#include "edits/places.h"
#include "edits/unit_numbers.h"

namespace netmend::faults {

using edits::Change;
using edits::Edit;
using edits::Role;
using edits::Target;
using model::Graph;
using model::Layer;

namespace {

double deviation(const Graph& graph, const Layer& layer) {
  return graph.constant(layer.weight).to(at::kDouble).std(false).item<double>();
}

class Planting {
 public:
  Planting(const Graph& graph, const Options& options) : graph_(graph), options_(options), random_(options.seed, 17) {}

  const Graph& graph() const { return graph_; }
  double strength() const { return options_.strength; }
  Random& random() { return random_; }

  std::vector<Edit> swap(const Layer& at, int64_t a, int64_t b) const { return edits::swap_units(graph_, at, a, b); }

  std::vector<Edit> change(const Layer& at, int64_t unit, Role role, const std::function<double(double)>& to) const {
    return edits::change_unit(graph_, at, unit, role, to);
  }
  std::vector<Edit> both(const Layer& at, int64_t unit, const std::function<double(double)>& to) const {
    std::vector<Edit> all = change(at, unit, Role::kWeight, to);
    for (Edit& edit : change(at, unit, Role::kBias, to)) all.push_back(std::move(edit));
    return all;
  }

 private:
  const Graph& graph_;
  const Options& options_;
  Random random_;
};

std::vector<Edit> random_weights(Planting& p, const Layer& at, int64_t unit) {
  const double spread = 5 * p.strength() * deviation(p.graph(), at);
  return p.change(at, unit, Role::kWeight, [&](double) { return spread * p.random().normal(); });
}

std::vector<Edit> zeroed(Planting& p, const Layer& at, int64_t unit) {
  return p.both(at, unit, [](double) { return 0.0; });
}

std::vector<Edit> sign_flipped(Planting& p, const Layer& at, int64_t unit) {
  return p.both(at, unit, [](double x) { return -x; });
}

std::vector<Edit> scaled(Planting& p, const Layer& at, int64_t unit) {
  return p.both(at, unit, [&](double x) { return 10 * p.strength() * x; });
}

std::vector<Edit> saturated(Planting& p, const Layer& at, int64_t unit) {
  double most = 0;
  for (const edits::UnitNumbers& own : edits::unit_numbers(p.graph(), at, unit, Role::kWeight))
    for (double value : own.values) most += std::abs(value);
  std::vector<Edit> list = p.change(at, unit, Role::kBias, [&](double) { return p.strength() * std::max(most, 1e-3); });
  if (list.empty()) fail("{} has no bias that could saturate it", model::unit_name(at, unit));
  return list;
}

std::vector<Edit> layer_noise(Planting& p, const Layer& at, int64_t) {
  const double spread = p.strength() * deviation(p.graph(), at);
  std::vector<Edit> all;
  for (int64_t u = 0; u < at.units; ++u)
    for (Edit& edit : p.change(at, u, Role::kWeight, [&](double x) { return x + spread * p.random().normal(); }))
      all.push_back(std::move(edit));
  return all;
}

/// A kind and what it does to a unit or, with unit -1, to a layer.
struct Row {
  Kind kind;
  std::vector<Edit> (*plant)(Planting& planting, const Layer& layer, int64_t unit) = nullptr;
};
constexpr Row kRows[] = {
    {{"random-weights", "a unit's weights are drawn at random, five times as spread as its layer's", Kind::kUnit},
     random_weights},
    {{"zeroed", "a unit's weights and bias are 0", Kind::kUnit}, zeroed},
    {{"sign-flipped", "a unit's weights and bias have the opposite sign", Kind::kUnit}, sign_flipped},
    {{"saturated", "a unit's bias is as large as its weights can add up to: it is always active", Kind::kUnit},
     saturated},
    {{"scaled", "a unit's weights and bias are ten times too large", Kind::kUnit}, scaled},
    {{"layer-noise", "noise as large as the weights is added to a layer", Kind::kLayer}, layer_noise},
    {{"swapped-classes", "two units of the output layer are swapped: one class is predicted for the other",
      Kind::kClasses}},
    {{"poisoned-labels", "trained further with most labels of one class replaced by another", Kind::kTraining}},
};

const Row& row_of(const Kind& kind) {
  for (const Row& row : kRows)
    if (row.kind.name == kind.name) return row;
  throw std::logic_error("a kind of fault without a row");
}

std::vector<Layer> where(const std::vector<Layer>& layers, const Options& options) {
  std::vector<std::string> names;
  for (const Layer& layer : layers) {
    names.push_back(layer.name);
    if (layer.name == options.layer) return {layer};
  }
  if (!options.layer.empty())
    fail("there is no layer {}{}: choose from {}", options.layer, did_you_mean(options.layer, names),
         join(names, ", "));
  if (layers.size() < 2) return layers;
  return {layers.begin(), layers.end() - 1};
}

void plant_units(const Graph& graph, const std::vector<Layer>& layers, const Row& row, const Options& options,
                 Fault& fault) {
  std::vector<std::pair<size_t, int64_t>> all;
  for (size_t l = 0; l < layers.size(); ++l)
    for (int64_t u = 0; u < layers[l].units; ++u) all.emplace_back(l, u);
  if (options.count > int64_t(all.size())) fail("--count {}: there are only {} units", options.count, all.size());
  Random(options.seed, 3).shuffle(all);
  Planting planting(graph, options);
  for (int64_t i = 0; i < options.count; ++i) {
    const auto& [l, u] = all[size_t(i)];
    fault.units.push_back(model::unit_name(layers[l], u));
    for (Edit& edit : row.plant(planting, layers[l], u)) fault.edits.push_back(std::move(edit));
  }
}

}  // namespace

std::span<const Kind> kinds() {
  static const std::vector<Kind> all = [] {
    std::vector<Kind> list;
    for (const Row& row : kRows) list.push_back(row.kind);
    return list;
  }();
  return all;
}

std::string kind_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.kind.name);
  return join(names, ", ");
}

const Kind& find_kind(const std::string& name) {
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) {
    if (kind.name == name) return kind;
    names.emplace_back(kind.name);
  }
  throw InputError(fmt::format("there is no fault `{}`{}", printable(name), did_you_mean(name, names)),
                   "Choose from " + kind_names() + ".");
}

Fault plant(const Graph& graph, const std::vector<Layer>& layers, const Kind& kind, const Options& options) {
  if (layers.empty()) fail("the model has no layers with weights");
  if (options.count < 1) fail("--count must be at least 1, not {}", options.count);
  if (!(options.strength > 0)) fail("--strength must be above 0, not {}", options.strength);
  check(kind.of != Kind::kTraining, "{} is planted by training", kind.name);
  Fault fault{std::string(kind.name), {}, "", {}};
  std::vector<Layer> list = kind.of == Kind::kClasses ? std::vector<Layer>{layers.back()} : where(layers, options);
  Random random(options.seed, 5);
  Planting planting(graph, options);
  if (kind.of == Kind::kUnit) {
    plant_units(graph, list, row_of(kind), options, fault);
  } else if (kind.of == Kind::kLayer) {
    if (options.count > 1) fail("one layer is damaged at a time; --count is for units");
    const Layer& layer = list[random.below(list.size())];
    fault.layer = layer.name;
    fault.edits = row_of(kind).plant(planting, layer, -1);
  } else {
    if (options.count > 1) fail("one pair of classes is swapped; --count is for units");
    const auto units = uint64_t(list[0].units);
    if (units < 2) fail("{} has one unit: there are no classes to swap", list[0].name);
    uint64_t a = random.below(units), b = (a + 1 + random.below(units - 1)) % units;
    fault.units = {model::unit_name(list[0], int64_t(a)), model::unit_name(list[0], int64_t(b))};
    fault.edits = planting.swap(list[0], int64_t(a), int64_t(b));
  }
  return fault;
}

}  // namespace netmend::faults
