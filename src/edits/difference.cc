#include "edits/difference.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "edits/places.h"

namespace netmend::edits {

using model::Graph;
using model::kAbsent;
using model::Layer;
using model::Node;
using model::ValueId;

double Amount::relative() const {
  if (moved == 0) return 0;
  return length > 0 ? std::sqrt(moved / length) : std::numeric_limits<double>::infinity();
}

void Amount::add(double before, double after) {
  ++values;
  if (std::isfinite(before)) length += before * before;
  if (std::bit_cast<uint64_t>(before) == std::bit_cast<uint64_t>(after)) return;
  ++changed;
  double gap = std::abs(after - before);
  largest = std::isnan(gap) ? std::numeric_limits<double>::infinity() : std::max(largest, gap);
  moved += std::isnan(gap) ? std::numeric_limits<double>::infinity() : gap * gap;
}

void Amount::add(const Amount& other) {
  values += other.values;
  add_change(other);
}

void Amount::add_change(const Amount& other) {
  changed += other.changed;
  largest = std::max(largest, other.largest);
  moved += other.moved, length += other.length;
}

namespace {

[[noreturn]] void differ(const std::string& what) {
  throw InputError("the models differ in more than their weights: " + what,
                   "netmend compare judges two models of any structure on the same data.");
}

bool same_tensor(const at::Tensor& a, const at::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && at::equal(a, b);
}

bool same_body(const model::Graph* a, const model::Graph* b);

bool same_attribute(const model::Attribute& a, const model::Attribute& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, model::Subgraph>)
          return same_body(value.graph.get(), std::get<T>(b).graph.get());
        else if constexpr (std::is_same_v<T, at::Tensor>)
          return same_tensor(value, std::get<T>(b));
        else
          return value == std::get<T>(b);
      },
      a);
}

/// Bodies of nodes are equal or not: what differs inside is not told apart.
bool same_body(const model::Graph* a, const model::Graph* b) {
  if (!a || !b) return a == b;
  if (a->inputs != b->inputs || a->outputs != b->outputs || a->nodes.size() != b->nodes.size()) return false;
  for (const auto& [id, constant] : a->constants) {
    auto other = b->constants.find(id);
    if (other == b->constants.end() || !same_tensor(constant.value, other->second.value)) return false;
  }
  for (size_t n = 0; n < a->nodes.size(); ++n) {
    const model::Node &x = a->nodes[n], &y = b->nodes[n];
    if (x.op != y.op || x.inputs != y.inputs || x.outputs != y.outputs || x.attributes.size() != y.attributes.size())
      return false;
    for (const auto& [name, value] : x.attributes) {
      auto other = y.attributes.find(name);
      if (other == y.attributes.end() || !same_attribute(value, other->second)) return false;
    }
  }
  return true;
}

/// Walks two graphs side by side.
class Walk {
 public:
  Walk(const Graph& a, const Graph& b) : a_(a), b_(b) {}

  std::vector<std::pair<ValueId, ValueId>> run() {
    if (a_.nodes.size() != b_.nodes.size()) differ_in_nodes();
    if (a_.inputs.size() != b_.inputs.size())
      differ(fmt::format("{} inputs and {}", a_.inputs.size(), b_.inputs.size()));
    if (a_.opsets != b_.opsets) differ("they are written for different versions of the operators");
    for (size_t i = 0; i < a_.inputs.size(); ++i) meet(a_.inputs[i], b_.inputs[i], "the inputs");
    for (size_t n = 0; n < a_.nodes.size(); ++n) visit(a_.nodes[n], b_.nodes[n], n);
    for (size_t i = 0; i < std::min(a_.outputs.size(), b_.outputs.size()); ++i)
      meet(a_.outputs[i], b_.outputs[i], "the outputs");
    return std::move(pairs_);
  }

 private:
  [[noreturn]] void differ_in_nodes() const {
    size_t n = 0;
    while (n < std::min(a_.nodes.size(), b_.nodes.size()) && a_.nodes[n].op == b_.nodes[n].op) ++n;
    auto name = [&](const Graph& g) { return n < g.nodes.size() ? g.nodes[n].op + " " + g.nodes[n].name : "nothing"; };
    differ(fmt::format("{} operators and {}; the first that differs is {} and {}", a_.nodes.size(), b_.nodes.size(),
                       name(a_), name(b_)));
  }

  void visit(const Node& a, const Node& b, size_t number) {
    if (a.op != b.op || a.domain != b.domain || a.inputs.size() != b.inputs.size() ||
        a.outputs.size() != b.outputs.size())
      differ(fmt::format("operator {} is {} {} and {} {}", number, a.op, a.name, b.op, b.name));
    compare_attributes(a, b);
    for (size_t i = 0; i < a.inputs.size(); ++i) meet(a.inputs[i], b.inputs[i], a.op + " " + a.name);
    for (size_t i = 0; i < a.outputs.size(); ++i) meet(a.outputs[i], b.outputs[i], a.op + " " + a.name);
  }

  static void compare_attributes(const Node& a, const Node& b) {
    for (const auto& [name, value] : a.attributes) {
      auto hit = b.attributes.find(name);
      if (hit == b.attributes.end() || !same_attribute(value, hit->second))
        differ(fmt::format("attribute {} of {} {}", name, a.op, a.name));
    }
    for (const auto& [name, value] : b.attributes)
      if (!a.attributes.count(name)) differ(fmt::format("attribute {} of {} {}", name, a.op, a.name));
  }

  void meet(ValueId a, ValueId b, const std::string& where) {
    if (a == kAbsent && b == kAbsent) return;
    if (a == kAbsent || b == kAbsent || a_.is_constant(a) != b_.is_constant(b))
      differ(fmt::format("{} reads a parameter in one of them only", where));
    auto [hit, fresh] = partner_.try_emplace(a, b);
    bool constant = a_.is_constant(a);
    // Exporters store equal constants once: a retrained model may have two where the other has one.
    if (hit->second != b) differ(fmt::format("{} reads {} and {}", where, name_a(a), b_.values[size_t(b)].name));
    if (fresh && constant) pair(a, b);
  }

  std::string name_a(ValueId a) const { return a_.values[size_t(a)].name; }

  void pair(ValueId a, ValueId b) {
    const model::Constant &left = a_.constants.at(a), &right = b_.constants.at(b);
    if (left.value.sizes() != right.value.sizes())
      differ(
          fmt::format("{} is {} and {}", name_a(a), shape_text(left.value.sizes()), shape_text(right.value.sizes())));
    if (left.stored != right.stored)
      differ(fmt::format("{} is stored as {} and as {}", name_a(a), element_name(left.stored),
                         element_name(right.stored)));
    pairs_.push_back({a, b});
  }

  const Graph &a_, &b_;
  std::map<ValueId, ValueId> partner_;
  std::vector<std::pair<ValueId, ValueId>> pairs_;
};

struct Owner {
  size_t layer;
  Part part;
};

std::map<ValueId, Owner> find_owners(const Graph& graph, std::span<const Layer> layers) {
  std::map<ValueId, Owner> owners;
  for (size_t i = 0; i < layers.size(); ++i)
    for (Part& part : find_parts(graph, layers[i]).list) owners.try_emplace(part.parameter, Owner{i, std::move(part)});
  return owners;
}

/// Calls `visit` for each pair of numbers, in order; a part at a time, since layers may have more numbers than memory
/// has room for as doubles.
template <typename Visit>
void for_pairs(const at::Tensor& a, const at::Tensor& b, const Visit& visit) {
  constexpr int64_t kPart = 1 << 18;
  at::Tensor left = a.contiguous().view(-1), right = b.contiguous().view(-1);
  for (int64_t start = 0; start < left.numel(); start += kPart) {
    int64_t count = std::min(kPart, left.numel() - start);
    std::vector<double> before = numbers(left.narrow(0, start, count)), after = numbers(right.narrow(0, start, count));
    for (size_t i = 0; i < before.size(); ++i) visit(before[i], after[i]);
  }
}

at::Tensor picked(const at::Tensor& value, const std::vector<int64_t>& positions) {
  return value.contiguous().view(-1).index_select(0, at::tensor(at::IntArrayRef(positions), at::kLong));
}

bool same_values(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor left = a.contiguous(), right = b.contiguous();
  return left.nbytes() == right.nbytes() && std::memcmp(left.data_ptr(), right.data_ptr(), left.nbytes()) == 0;
}

/// What became of the units of the layers, as parameters are met.
class Tally {
 public:
  Tally(const Graph& a, std::span<const Layer> layers) : a_(a), layers_(layers), owners_(find_owners(a, layers)) {}

  const Owner* owner(ValueId id) const {
    auto hit = owners_.find(id);
    return hit == owners_.end() ? nullptr : &hit->second;
  }

  void add(const Owner& owner, const at::Tensor& before, const at::Tensor& after) {
    std::vector<Amount>& units = units_[owner.layer];
    units.resize(size_t(layers_[owner.layer].units));
    for (int64_t unit = 0; unit < layers_[owner.layer].units; ++unit) {
      std::vector<int64_t> positions = owner.part.positions(a_, unit);
      for_pairs(picked(before, positions), picked(after, positions),
                [&](double x, double y) { units[size_t(unit)].add(x, y); });
    }
  }

  void finish(Difference& out) const {
    for (const auto& [index, units] : units_) {
      LayerChange layer{layers_[index].name, layers_[index].units, 0, {}};
      for (size_t unit = 0; unit < units.size(); ++unit) {
        layer.amount.add(units[unit]);
        if (!units[unit].changed) continue;
        ++layer.units_changed;
        out.units.push_back({model::unit_name(layers_[index], int64_t(unit)), layer.name, units[unit]});
      }
      if (layer.amount.changed) out.layers.push_back(layer);
    }
  }

 private:
  const Graph& a_;
  std::span<const Layer> layers_;
  std::map<ValueId, Owner> owners_;
  std::map<size_t, std::vector<Amount>> units_;
};

template <typename Row>
void by_size(std::vector<Row>& rows) {
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& x, const Row& y) { return x.amount.relative() > y.amount.relative(); });
}

void require_exact(const Graph& graph, ValueId id) {
  at::Tensor value = graph.constant(id);
  if (value.scalar_type() == at::kLong && value.numel() && value.abs().max().item<int64_t>() > int64_t(1) << 53)
    fail("{} holds integers that are too large to be written as edits", graph.values[size_t(id)].name);
}

std::vector<int64_t> shape_of(const at::Tensor& value) {
  std::vector<int64_t> shape = value.sizes().vec();
  if (shape.empty()) shape.push_back(1);
  return shape;
}

/// How many numbers lie in the slices along an axis that hold a change.
int64_t covered(const at::Tensor& differs, int64_t axis) {
  at::Tensor rows = differs.movedim(axis, 0).reshape({differs.size(axis), -1});
  return rows.any(1).sum().item<int64_t>() * rows.size(1);
}

/// The units' own axis, unless another one holds the same changes in half the numbers or less: what scales a unit's
/// effect on the next layer is one slice there, and not a bit of every unit.
int64_t choose_axis(const at::Tensor& left, const at::Tensor& right, int64_t own) {
  if (left.dim() < 2) return own;
  at::Tensor differs = left.ne(right);
  int64_t best = own, least = covered(differs, own) / 2;
  for (int64_t axis = 0; axis < left.dim(); ++axis)
    if (int64_t count = covered(differs, axis); axis != own && count > 0 && count <= least)
      best = axis, least = count - 1;
  return best;
}

/// For each slice along the axis the first unit that changed in it.
std::map<int64_t, std::string> units_of_slices(const Graph& a, const at::Tensor& left, const at::Tensor& right,
                                               const Owner& owner, const Layer& layer, int64_t axis) {
  std::vector<int64_t> shape = shape_of(left);
  int64_t stride = 1;
  for (size_t i = size_t(axis) + 1; i < shape.size(); ++i) stride *= shape[i];
  std::map<int64_t, std::string> units;
  for (int64_t unit = 0; unit < layer.units; ++unit) {
    std::vector<int64_t> positions = owner.part.positions(a, unit);
    at::Tensor from = picked(left, positions), to = picked(right, positions);
    if (same_values(from, to)) continue;
    std::vector<double> before = numbers(from), after = numbers(to);
    for (size_t i = 0; i < positions.size(); ++i)
      if (std::bit_cast<uint64_t>(before[i]) != std::bit_cast<uint64_t>(after[i]))
        units.try_emplace(positions[i] / stride % shape[size_t(axis)], model::unit_name(layer, unit));
  }
  return units;
}

/// One parameter's edits along one axis.
std::vector<Edit> slices_between(const Graph& a, const Graph& b, std::pair<ValueId, ValueId> ids, const Owner* owner,
                                 std::span<const Layer> layers) {
  require_exact(a, ids.first), require_exact(b, ids.second);
  at::Tensor left = a.constant(ids.first), right = b.constant(ids.second);
  int64_t own = owner ? best_axis(shape_of(left), owner->part.positions(a, 0)) : 0;
  int64_t axis = choose_axis(left, right, own);
  std::map<int64_t, std::string> units;  // a slice across all units has none
  if (owner && axis == own) units = units_of_slices(a, left, right, *owner, layers[owner->layer], axis);
  std::vector<Edit> edits;
  for (int64_t index = 0; index < shape_of(left)[size_t(axis)]; ++index) {
    at::Tensor from = slice(left, axis, index), to = slice(right, axis, index);
    if (!same_values(from, to))
      edits.push_back({a.values[size_t(ids.first)].name, units[index], axis, index, numbers(from), numbers(to)});
  }
  return edits;
}

}  // namespace

std::vector<std::pair<ValueId, ValueId>> matching_constants(const Graph& a, const Graph& b) { return Walk(a, b).run(); }

Difference compare(const Graph& a, const Graph& b, std::span<const Layer> layers) {
  Difference out;
  Tally tally(a, layers);
  auto pairs = matching_constants(a, b);
  std::set<size_t> touched;  // layers
  for (auto [left, right] : pairs) {
    ++out.parameters;
    out.total.values += a.constant(left).numel();
    if (same_values(a.constant(left), b.constant(right))) continue;
    const Owner* owner = tally.owner(left);
    if (owner) touched.insert(owner->layer);
    ParameterChange change{
        a.values[size_t(left)].name, owner ? layers[owner->layer].name : "", a.constant(left).sizes().vec(), {}};
    for_pairs(a.constant(left), b.constant(right), [&](double x, double y) { change.amount.add(x, y); });
    out.total.add_change(change.amount);
    out.changed.push_back(std::move(change));
  }
  for (auto [left, right] : pairs)
    if (const Owner* owner = tally.owner(left); owner && touched.count(owner->layer))
      tally.add(*owner, a.constant(left), b.constant(right));
  tally.finish(out);
  by_size(out.changed), by_size(out.layers), by_size(out.units);
  return out;
}

std::vector<Edit> edits_between(const Graph& a, const Graph& b, std::span<const Layer> layers) {
  Tally tally(a, layers);
  std::vector<Edit> edits;
  for (auto ids : matching_constants(a, b)) {
    if (same_values(a.constant(ids.first), b.constant(ids.second))) continue;
    for (Edit& edit : slices_between(a, b, ids, tally.owner(ids.first), layers)) edits.push_back(std::move(edit));
  }
  return edits;
}

}  // namespace netmend::edits
