#include "mutants/operators.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "edits/operations.h"
#include "edits/unit_numbers.h"
#include "mutants/structure.h"
#include "mutants/table.h"

namespace netmend::mutants {
namespace {

using edits::Edit;
using edits::Role;
using model::Layer;
using G = const Ground&;

constexpr double kDeviation = 0.5;  ///< of Gaussian fuzzing, relative to the weight
constexpr double kShare = 0.05;     ///< of a layer's weights that layer-wide fuzzing changes

// ---- places

bool recurrent(const Layer& layer) { return gates_of(layer.op) > 0; }

std::vector<Place> units_where(G ground, bool (*takes)(const Layer&)) {
  std::vector<Place> places;
  for (size_t l = 0; l < ground.layers.size(); ++l)
    for (int64_t u = 0; takes(ground.layers[l]) && u < ground.layers[l].units; ++u) places.push_back({int(l), u});
  return places;
}
std::vector<Place> units(G ground) {
  return units_where(ground, [](const Layer&) { return true; });
}
std::vector<Place> recurrent_units(G ground) { return units_where(ground, recurrent); }
std::vector<Place> layers(G ground) {
  std::vector<Place> places;
  for (size_t l = 0; l < ground.layers.size(); ++l) places.push_back({int(l), 0});
  return places;
}
std::vector<Place> same_shape_layers(G ground) {
  std::vector<Place> places = layers(ground);
  std::erase_if(places, [&](const Place& place) {
    return ground.input_shapes[size_t(place.layer)] != ground.post_shapes[size_t(place.layer)];
  });
  return places;
}
/// A layer and one of activations().
std::vector<Place> layer_activations(G ground) {
  std::vector<Place> places;
  for (size_t l = 0; l < ground.layers.size(); ++l)
    for (size_t a = 0; a < activations().size(); ++a) places.push_back({int(l), int64_t(a)});
  return places;
}
/// Features of what the first layer reads.
std::vector<Place> inputs(G ground) {
  std::vector<Place> places;
  if (ground.layers.empty()) return places;
  const edits::Seen seen = edits::see(ground.graph(), ground.layers[0].weight_input);
  if (!seen.view.defined() || recurrent(ground.layers[0])) return places;
  const int64_t axis = ground.layers[0].weight_axis == 0 ? 1 : 0;
  if (axis >= seen.view.dim()) return places;
  for (int64_t i = 0; i < seen.view.size(axis); ++i) places.push_back({0, i});
  return places;
}
/// Recurrent layers with positions first, and a step where the sequence can be cut.
std::vector<Place> steps(G ground) {
  std::vector<Place> places;
  for (size_t l = 0; l < ground.layers.size(); ++l) {
    if (!recurrent(ground.layers[l]) || ground.input_shapes[l].size() != 3) continue;
    for (int64_t step = 2; step < ground.input_shapes[l][0]; ++step) places.push_back({int(l), step});
  }
  return places;
}
/// A step and a gate as one number.
std::vector<Place> gate_steps(G ground) {
  std::vector<Place> places;
  for (const Place& place : steps(ground))
    for (int64_t gate = 0; gate < gates_of(ground.layers[size_t(place.layer)].op); ++gate)
      places.push_back({place.layer, place.number * 4 + gate});
  return places;
}

// ---- what is done there

void take(std::vector<Edit>& all, std::vector<Edit> more) {
  for (Edit& edit : more) all.push_back(std::move(edit));
}

double spread(G ground, const Mutant& m) {
  return ground.graph().constant(ground.layer(m).weight).to(at::kDouble).std(false).item<double>();
}

void change(G ground, Mutant& m, Role role, const std::function<double(double)>& to) {
  take(m.edits, edits::change_unit(ground.graph(), ground.layer(m), m.unit, role, to));
}
void change_both(G ground, Mutant& m, const std::function<double(double)>& to) {
  change(ground, m, Role::kWeight, to), change(ground, m, Role::kBias, to);
}

void gaussian_fuzz(G ground, Random& random, Mutant& m) {
  change(ground, m, Role::kWeight, [&](double x) { return x * (1 + kDeviation * random.normal()); });
}

void shuffle_weights(G ground, Random& random, Mutant& m) {
  for (const edits::UnitNumbers& own : edits::unit_numbers(ground.graph(), ground.layer(m), m.unit, Role::kWeight)) {
    std::vector<double> values = own.values;
    random.shuffle(values);
    take(m.edits, edits::written(ground.graph(), own, values, model::unit_name(ground.layer(m), m.unit)));
  }
}

void scale_outgoing(G ground, Mutant& m, int64_t unit, double factor) {
  const std::string name = model::unit_name(ground.layer(m), unit);
  for (const edits::UnitNumbers& own : edits::outgoing_numbers(ground.graph(), ground.layer(m), unit)) {
    std::vector<double> values = own.values;
    for (double& value : values) value *= factor;
    take(m.edits, edits::written(ground.graph(), own, values, name));
  }
}

void block_effect(G ground, Random&, Mutant& m) {
  scale_outgoing(ground, m, m.unit, 0);
  m.blocked = !m.edits.empty();
}

void invert_activation(G ground, Random&, Mutant& m) {
  change_both(ground, m, [](double x) { return -x; });
}

void switch_neurons(G ground, Random& random, Mutant& m) {
  const int64_t units = ground.layer(m).units;
  if (units < 2) fail("{} has one unit", ground.layer(m).name);
  const int64_t other = (m.unit + 1 + int64_t(random.below(uint64_t(units - 1)))) % units;
  m.edits = edits::swap_units(ground.graph(), ground.layer(m), m.unit, other);
  m.id += fmt::format(":{}", other);
}

void delete_unit(G ground, Random&, Mutant& m) {
  change_both(ground, m, [](double) { return 0.0; });
}

void delete_input(G ground, Random&, Mutant& m) {
  const Layer& layer = ground.layers[0];
  const edits::Seen seen = edits::see(ground.graph(), layer.weight_input);
  if (!seen.refusal.empty()) fail("the weights of {} cannot be changed: {}", layer.name, seen.refusal);
  const std::vector<int64_t> places =
      edits::positions_of(seen, ground.graph(), seen.view.select(layer.weight_axis == 0 ? 1 : 0, m.unit));
  m.edits = edits::cut(ground.graph(), seen.root, places, std::vector<double>(places.size(), 0.0),
                       fmt::format("input/{}", m.unit));
  m.id = fmt::format("{}:input/{}", m.op->name, m.unit);
  m.layer = -1;
}

void change_bias(G ground, Random& random, Mutant& m) {
  const double deviation = spread(ground, m);
  change(ground, m, Role::kBias, [&](double x) { return x + deviation * random.normal(); });
  if (m.edits.empty()) fail("{} has no bias", ground.layer(m).name);
}

/// One weight becomes a number drawn from the range of its layer's weights.
void change_weight(G ground, Random& random, Mutant& m) {
  const auto all = edits::unit_numbers(ground.graph(), ground.layer(m), m.unit, Role::kWeight);
  if (all.empty()) fail("{} has no weights of its own", ground.layer(m).name);
  const edits::UnitNumbers& own = all[random.below(all.size())];
  const auto [low, high] = std::minmax_element(own.values.begin(), own.values.end());
  const size_t which = random.below(own.values.size());
  std::vector<double> values = own.values;
  values[which] = random.uniform(*low, *high);
  if (*low == *high) values[which] = own.values[which] + spread(ground, m) * random.normal();
  m.edits = edits::written(ground.graph(), own, values, model::unit_name(ground.layer(m), m.unit));
  m.id += fmt::format("#{}", own.positions[which]);
}

void fuzz_layer(G ground, Random& random, Mutant& m) {
  m.unit = -1;
  std::vector<edits::UnitNumbers> list;
  for (int64_t unit = 0; unit < ground.layer(m).units; ++unit)
    for (edits::UnitNumbers& own : edits::unit_numbers(ground.graph(), ground.layer(m), unit, Role::kWeight)) {
      for (double& x : own.values)
        if (random.uniform() < kShare) x *= 1 + kDeviation * random.normal();
      list.push_back(std::move(own));
    }
  m.edits = edits::written_together(ground.graph(), list, ground.layer(m).name);
}

/// A share of MuFF's and a draw of the units or weights, as one number; see inhibitors.h.
template <Inhibitor kKind>
std::vector<Place> inhibited(G ground) {
  std::vector<Place> places;
  for (const Strength& one : ground.strengths)
    if (one.kind == kKind && one.killable)
      for (int draw = 0; draw < draws_of(one.share); ++draw)
        places.push_back({one.layer, int64_t(one.share * 100) * 100 + draw});
  return places;
}
template <Inhibitor kKind>
void inhibit(G ground, Random&, Mutant& m) {
  const int64_t number = std::exchange(m.unit, -1);
  const double share = double(number / 100) / 100;
  for (const Strength& one : ground.strengths)
    if (one.kind == kKind && one.layer == m.layer && one.share == share) {
      m.edits = inhibited_edits(ground.graph(), ground.layer(m), kKind, share, one.weakest, uint64_t(number % 100));
      m.id += fmt::format(":{:g}:{:.2f}#{}", share, one.weakest, number % 100);
    }
}

void reduce_precision(G ground, Random&, Mutant& m) {
  change(ground, m, Role::kWeight, [](double x) { return std::round(x * 10) / 10; });
}

// ---- structure

template <typename Change>
void rebuild(G ground, Mutant& m, const Change& change) {
  model::Graph graph = ground.subject.batching.graph;
  m.from = change(graph, ground.layer(m), ground.outputs[size_t(m.layer)]);
  m.graph = std::make_shared<const model::Graph>(std::move(graph));
}
std::string named(G ground, const Mutant& m, const std::string& what) {
  return fmt::format("{}:{}{}{}", m.op->name, ground.layer(m).name, what.empty() ? "" : ":", what);
}

void replace_function(G ground, Random&, Mutant& m) {
  const std::string& op = activations()[size_t(std::exchange(m.unit, -1))];
  rebuild(ground, m,
          [&](model::Graph& g, const Layer& layer, model::ValueId) { return replace_activation(g, layer, op); });
  m.id = named(ground, m, op);
}
void add_function(G ground, Random&, Mutant& m) {
  const std::string& op = activations()[size_t(std::exchange(m.unit, -1))];
  if (op == "Identity" || (op == "Relu" && ground.layer(m).activation == "Relu")) fail("{} would change nothing", op);
  rebuild(ground, m,
          [&](model::Graph& g, const Layer& layer, model::ValueId) { return insert_activation(g, layer, op); });
  m.id = named(ground, m, op);
}
void remove(G ground, Random&, Mutant& m) {
  m.unit = -1;
  rebuild(ground, m, remove_layer);
  m.id = named(ground, m, "");
}
void duplicate(G ground, Random&, Mutant& m) {
  m.unit = -1;
  rebuild(ground, m, duplicate_layer);
  m.id = named(ground, m, "");
}

template <StepChange kChange>
void disturb(G ground, Random& random, Mutant& m) {
  const bool gates =
      kChange == StepChange::kGateClear || kChange == StepChange::kGateFuzz || kChange == StepChange::kGatePrecision;
  const int64_t number = std::exchange(m.unit, -1), step = gates ? number / 4 : number, gate = gates ? number % 4 : 0;
  const int64_t length = ground.input_shapes[size_t(m.layer)][0];
  rebuild(ground, m, [&](model::Graph& g, const Layer& layer, model::ValueId output) {
    return disturb_step(g, layer, output, kChange, step, length, gate, kDeviation, random);
  });
  m.id = named(ground, m, gates ? fmt::format("step{}/gate{}", step, gate) : fmt::format("step{}", step));
}

// ---- deepmufl's: one number at all of a unit's weights, or at its bias

template <Role kRole, int kAdd, int kScale>  // kScale: 0 as it is, 2 doubled, −2 halved
void shift(G ground, Random&, Mutant& m) {
  change(ground, m, kRole, [](double x) { return kScale == 2 ? 2 * x : kScale == -2 ? x / 2 : x + kAdd; });
}

constexpr Row kRows[] = {
    {{"gf", "deepmutation, deepmutation++", "Gaussian fuzzing: each weight of a unit times 1 + N(0, 0.5)"},
     units,
     gaussian_fuzz},
    {{"ws", "deepmutation, deepmutation++", "weight shuffling: a unit's incoming weights in random order"},
     units,
     shuffle_weights},
    {{"neb", "deepmutation, deepmutation++", "neuron effect blocking: the next layer does not read the unit"},
     units,
     block_effect},
    {{"nai", "deepmutation, deepmutation++", "neuron activation inverse: a unit's weights and bias negated"},
     units,
     invert_activation},
    {{"ns", "deepmutation, deepmutation++", "neuron switch: two units of a layer are swapped"}, units, switch_neurons},
    {{"gfl", "deepmutation, deepmutation++", "Gaussian fuzzing of 5 % of a layer's weights", Level::kLayer},
     layers,
     fuzz_layer},
    {{"lr", "deepmutation, deepmutation++", "layer removal, where input and output have one shape", Level::kLayer},
     same_shape_layers,
     remove},
    {{"ldup", "deepmutation++", "layer duplication, where input and output have one shape", Level::kLayer},
     same_shape_layers,
     duplicate},
    {{"la", "deepmutation, deepmutation++", "an activation function added after a layer", Level::kLayer},
     layer_activations,
     add_function},
    {{"afr", "deepmutation, deepmutation++, munn", "a layer's activation function replaced or removed", Level::kLayer},
     layer_activations,
     replace_function},
    {{"wgf", "deepmutation++", "recurrent: Gaussian fuzzing of a unit's weights in all gates"},
     recurrent_units,
     gaussian_fuzz},
    {{"wpr", "deepmutation++", "recurrent: a unit's weights rounded to one decimal"},
     recurrent_units,
     reduce_precision},
    {{"sc", "deepmutation++", "recurrent: the state is 0 after one step", Level::kLayer},
     steps,
     disturb<StepChange::kStateClear>},
    {{"sr", "deepmutation++", "recurrent: after one step, the state of half as many steps", Level::kLayer},
     steps,
     disturb<StepChange::kStateReset>},
    {{"sgf", "deepmutation++", "recurrent: the state after one step times 1 + N(0, 0.5)", Level::kLayer},
     steps,
     disturb<StepChange::kStateFuzz>},
    {{"spr", "deepmutation++", "recurrent: the state after one step rounded to one decimal", Level::kLayer},
     steps,
     disturb<StepChange::kStatePrecision>},
    {{"gc", "deepmutation++", "recurrent: a gate is 0 at one step", Level::kLayer},
     gate_steps,
     disturb<StepChange::kGateClear>},
    {{"ggf", "deepmutation++", "recurrent: N(0, 0.5) added to a gate's sums at one step", Level::kLayer},
     gate_steps,
     disturb<StepChange::kGateFuzz>},
    {{"gpr", "deepmutation++", "recurrent: a gate's weights rounded to one decimal at one step", Level::kLayer},
     gate_steps,
     disturb<StepChange::kGatePrecision>},
    {{"din", "munn", "an input of the first layer deleted: its weights are 0"}, inputs, delete_input},
    {{"dhn", "munn", "a hidden unit deleted: its weights and bias are 0"}, units, delete_unit},
    {{"cb", "munn", "a unit's bias plus N(0, standard deviation of its layer's weights)"}, units, change_bias},
    {{"cw", "munn", "one weight replaced by a number from the range of its unit's weights", Level::kWeight},
     units,
     change_weight},
    {{"wi", "muff", "weight inhibitor: a share of a layer's weights times 1 − s, s by binary search", Level::kLayer,
      false},
     inhibited<Inhibitor::kWeights>,
     inhibit<Inhibitor::kWeights>},
    {{"ni", "muff", "neuron inhibitor: what reads a share of a layer's units times 1 − s, s by search", Level::kLayer,
      false},
     inhibited<Inhibitor::kNeurons>,
     inhibit<Inhibitor::kNeurons>},
    {{"w+1", "deepmufl", "1 added to a unit's weights", Level::kUnit, false}, units, shift<Role::kWeight, 1, 0>},
    {{"w-1", "deepmufl", "1 subtracted from a unit's weights", Level::kUnit, false},
     units,
     shift<Role::kWeight, -1, 0>},
    {{"w*2", "deepmufl", "a unit's weights doubled", Level::kUnit, false}, units, shift<Role::kWeight, 0, 2>},
    {{"w/2", "deepmufl", "a unit's weights halved", Level::kUnit, false}, units, shift<Role::kWeight, 0, -2>},
    {{"b+1", "deepmufl", "1 added to a unit's bias", Level::kUnit, false}, units, shift<Role::kBias, 1, 0>},
    {{"b-1", "deepmufl", "1 subtracted from a unit's bias", Level::kUnit, false}, units, shift<Role::kBias, -1, 0>},
    {{"b*2", "deepmufl", "a unit's bias doubled", Level::kUnit, false}, units, shift<Role::kBias, 0, 2>},
    {{"b/2", "deepmufl", "a unit's bias halved", Level::kUnit, false}, units, shift<Role::kBias, 0, -2>},
};

}  // namespace

std::span<const Row> rows() { return kRows; }

std::string_view level_name(Level level) {
  return level == Level::kWeight ? "weight" : level == Level::kUnit ? "unit" : "layer";
}

std::span<const Operator* const> operators() {
  static const std::vector<const Operator*> all = [] {
    std::vector<const Operator*> list;
    for (const Row& row : kRows) list.push_back(&row.op);
    return list;
  }();
  return all;
}

std::string operator_names() {
  std::vector<std::string> names;
  for (const Operator* op : operators()) names.emplace_back(op->name);
  return join(names, ", ");
}

std::vector<std::string> sources_of(const Operator& op) {
  std::vector<std::string> sources = split(std::string(op.source), ',');
  for (std::string& one : sources) one = trim(one);
  return sources;
}

std::vector<const Operator*> find_operators(const std::string& list) {
  std::vector<const Operator*> found;
  std::vector<std::string> names = {"all"};
  for (const Operator* op : operators()) {
    names.emplace_back(op->name);
    for (const std::string& source : sources_of(*op)) names.push_back(source);
  }
  for (const std::string& part : split(list, ',')) {
    const std::string asked = lower(trim(part));
    const size_t before = found.size();
    bool known = false;
    for (const Operator* op : operators()) {
      const std::vector<std::string> sources = sources_of(*op);
      const bool by_source = std::find(sources.begin(), sources.end(), asked) != sources.end();
      if (!(asked == "all" && op->usual) && op->name != asked && !by_source) continue;
      known = true;
      if (std::find(found.begin(), found.end(), op) == found.end()) found.push_back(op);
    }
    if (!known && found.size() == before)
      throw InputError(fmt::format("there is no mutation operator `{}`{}", printable(part), did_you_mean(asked, names)),
                       "Choose from " + operator_names() +
                           ", or by source: deepmutation, deepmutation++, munn, muff, deepmufl; all.");
  }
  return found;
}

}  // namespace netmend::mutants
