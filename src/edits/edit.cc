#include "edits/edit.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace netmend::edits {

using model::Constant;
using model::Element;
using model::Graph;
using model::ValueId;

namespace {

constexpr double kLargestExact = 9007199254740992.0;  // 2^53: integers beyond it have no double of their own

std::string place_text(const Edit& edit) {
  return fmt::format("{}, slice {} of axis {}{}", edit.parameter, edit.index, edit.axis,
                     edit.unit.empty() ? "" : fmt::format(" (unit {})", edit.unit));
}

bool is_integer(Element type) { return at::isIntegralType(model::carrier(type), true); }

bool has_sign(Element type) {
  return type == Element::kInt8 || type == Element::kInt16 || type == Element::kInt32 || type == Element::kInt4 ||
         type == Element::kInt2;
}

double largest_integer(Element type) {
  if (type == Element::kBool) return 1;
  return std::min(kLargestExact, std::ldexp(1.0, int(model::stored_bits(type)) - has_sign(type)) - 1);
}

double smallest_integer(Element type) {
  if (type == Element::kInt64) return -kLargestExact;
  return has_sign(type) ? -largest_integer(type) - 1 : 0;
}

void require_integers(Element type, std::span<const double> values) {
  for (double value : values)
    if (value != std::floor(value) || value < smallest_integer(type) || value > largest_integer(type))
      fail("{} cannot be stored as {}", value, model::element_name(type));
}

at::Tensor as_tensor(std::span<const double> values) {
  at::Tensor out = at::empty({int64_t(values.size())}, at::kDouble);
  if (!values.empty()) std::memcpy(out.data_ptr<double>(), values.data(), values.size() * sizeof(double));
  return out;
}

/// As the file will hold them. Numbers that are none stay so; numbers that become none are refused.
std::vector<double> as_stored(Element type, std::span<const double> values) {
  if (is_integer(type)) {
    require_integers(type, values);
    return {values.begin(), values.end()};
  }
  std::vector<double> stored = numbers(model::rounded(type, as_tensor(values)));
  for (size_t i = 0; i < stored.size(); ++i)
    if (!std::isfinite(stored[i]) && std::isfinite(values[i]))
      fail("{:.9g} is too large for {}", values[i], model::element_name(type));
  return stored;
}

/// Copies of constants while edits are applied; the graph changes only when all went well.
class Desk {
 public:
  explicit Desk(Graph& graph) : graph_(graph) {}

  void write(const Edit& edit, std::span<const double> from, std::span<const double> to) {
    ValueId id = find(edit.parameter);
    at::Tensor& whole = copy(id);
    require_place(edit, whole);
    at::Tensor part = slice(whole, edit.axis, edit.index);
    Element type = graph_.constants.at(id).stored;
    std::vector<double> now = numbers(part), expected = stored(edit, type, from), next = stored(edit, type, to);
    for (size_t i = 0; i < now.size(); ++i)
      if (!same_number(now[i], expected[i])) refuse(edit, i, now, expected, next);
    part.copy_(as_tensor(next).reshape(part.sizes()));
  }

  void commit() {
    for (auto& [id, whole] : copies_) graph_.replace(id, whole);
  }

 private:
  ValueId find(const std::string& name) {
    auto [hit, fresh] = names_.try_emplace(name, model::kAbsent);
    if (fresh) hit->second = find_parameter(graph_, name);
    return hit->second;
  }

  at::Tensor& copy(ValueId id) {
    at::Tensor& whole = copies_[id];
    if (!whole.defined()) whole = graph_.constant(id).clone(at::MemoryFormat::Contiguous);
    return whole;
  }

  static void require_place(const Edit& edit, const at::Tensor& whole) {
    int64_t axes = std::max<int64_t>(1, whole.dim());
    int64_t count = whole.dim() == 0 || edit.axis < 0 || edit.axis >= axes ? 1 : whole.size(edit.axis);
    if (edit.axis < 0 || edit.axis >= axes || edit.index < 0 || edit.index >= count)
      throw InputError(fmt::format("{}: the parameter is {}, so there is no such slice", place_text(edit),
                                   shape_text(whole.sizes())),
                       "Edits can only be applied to the model they were made for.");
    int64_t values = whole.numel() / count;
    if (int64_t(edit.before.size()) != values || int64_t(edit.after.size()) != values)
      fail("{}: {} values before and {} after, the slice has {}", place_text(edit), edit.before.size(),
           edit.after.size(), values);
  }

  static std::vector<double> stored(const Edit& edit, Element type, std::span<const double> values) {
    try {
      return as_stored(type, values);
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", place_text(edit), error.what()), error.hint());
    }
  }

  [[noreturn]] static void refuse(const Edit& edit, size_t at, const std::vector<double>& now,
                                  const std::vector<double>& expected, const std::vector<double>& next) {
    bool done = std::equal(now.begin(), now.end(), next.begin(), same_number);
    throw InputError(fmt::format("{}: value {} is {:.9g} in this model, the edit expects {:.9g}", place_text(edit), at,
                                 now[at], expected[at]),
                     done ? "The model already holds what this edit would write."
                          : "Edits can only be applied to the model they were made for (and reverted in the one they "
                            "were applied to).");
  }

  Graph& graph_;
  std::map<std::string, ValueId> names_;
  std::map<ValueId, at::Tensor> copies_;
};

int64_t stride_of(std::span<const int64_t> shape, int64_t axis) {
  int64_t stride = 1;
  for (size_t a = size_t(axis) + 1; a < shape.size(); ++a) stride *= shape[a];
  return stride;
}

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

}  // namespace

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

at::Tensor slice(const at::Tensor& value, int64_t axis, int64_t index) {
  return value.dim() == 0 ? value : value.select(axis, index);
}

std::vector<double> numbers(const at::Tensor& value) {
  at::Tensor plain = value.detach().to(at::kDouble).contiguous();
  return {plain.data_ptr<double>(), plain.data_ptr<double>() + plain.numel()};
}

ValueId find_parameter(const Graph& graph, std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [id, constant] : graph.constants) {
    if (graph.values[size_t(id)].name == name) return id;
    names.push_back(graph.values[size_t(id)].name);
  }
  std::sort(names.begin(), names.end());
  throw InputError(fmt::format("the model has no parameter {}{}", name, did_you_mean(name, names)),
                   "Edits can only be applied to the model they were made for; netmend weights lists its parameters.");
}

void apply(Graph& graph, std::span<const Edit> edits) {
  Desk desk(graph);
  for (const Edit& edit : edits) desk.write(edit, edit.before, edit.after);
  desk.commit();
}

void revert(Graph& graph, std::span<const Edit> edits) {
  Desk desk(graph);
  for (auto edit = edits.rbegin(); edit != edits.rend(); ++edit) desk.write(*edit, edit->after, edit->before);
  desk.commit();
}

std::vector<Edit> compact(std::span<const Edit> edits) {
  std::map<std::string, std::set<int64_t>> axes;
  for (const Edit& edit : edits) axes[edit.parameter].insert(edit.axis);
  std::map<std::pair<std::string, int64_t>, size_t> seen;
  std::vector<Edit> all;
  for (const Edit& edit : edits) {
    bool one_axis = axes[edit.parameter].size() == 1;
    auto [hit, fresh] = seen.try_emplace({edit.parameter, edit.index}, all.size());
    if (fresh || !one_axis)
      all.push_back(edit);
    else
      all[hit->second].after = edit.after;
  }
  std::erase_if(
      all, [&](const Edit& edit) { return axes[edit.parameter].size() == 1 && same_bits(edit.before, edit.after); });
  return all;
}

int64_t best_axis(std::span<const int64_t> shape, std::span<const int64_t> positions) {
  int64_t best = 0, least = INT64_MAX, fewest = INT64_MAX;
  int64_t total = std::max<int64_t>(0, model::checked_count(shape));
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    int64_t stride = stride_of(shape, int64_t(axis));
    std::set<int64_t> slices;
    for (int64_t position : positions) slices.insert(position / stride % shape[axis]);
    int64_t count = int64_t(slices.size()), covered = count * (total / std::max<int64_t>(1, shape[axis]));
    if (covered < least || (covered == least && count < fewest)) best = int64_t(axis), least = covered, fewest = count;
  }
  return best;
}

std::vector<Edit> cut(const Graph& graph, ValueId parameter, std::span<const int64_t> positions,
                      std::span<const double> values, const std::string& unit) {
  const Constant& constant = graph.constants.at(parameter);
  std::vector<double> stored = as_stored(constant.stored, values);
  std::vector<int64_t> shape = constant.value.sizes().vec();
  if (shape.empty()) shape.push_back(1);
  int64_t axis = best_axis(shape, positions), stride = stride_of(shape, axis), size = shape[size_t(axis)];
  std::map<int64_t, Edit> slices;  // by index
  for (size_t i = 0; i < positions.size(); ++i) {
    int64_t index = positions[i] / stride % size;
    auto [hit, fresh] = slices.try_emplace(index);
    if (fresh) {
      std::vector<double> now = numbers(slice(constant.value, axis, index));
      hit->second = {graph.values[size_t(parameter)].name, unit, axis, index, now, now};
    }
    hit->second.after[size_t(positions[i] / (stride * size) * stride + positions[i] % stride)] = stored[i];
  }
  std::vector<Edit> edits;
  for (auto& [index, edit] : slices)
    if (!same_bits(edit.before, edit.after)) edits.push_back(std::move(edit));
  return edits;
}

}  // namespace netmend::edits
