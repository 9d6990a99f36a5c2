// Reading and writing by index. Indices come from the data: every one is checked, and negative ones count from the end.
#include <algorithm>

#include "ops/arguments.h"
#include "ops/families.h"

namespace netmend::ops::families {
namespace {

/// Indices as int64 in 0 … size−1.
at::Tensor checked_index(const at::Tensor& indices, int64_t size) {
  if (!at::isIntegralType(indices.scalar_type(), false)) fail("indices must be integers");
  at::Tensor index = indices.to(at::kLong);
  if (index.numel() == 0) return index;
  auto [low, high] = at::aminmax(index);
  int64_t lowest = low.item<int64_t>(), highest = high.item<int64_t>();
  if (lowest < -size || highest >= size)
    fail("index {} is out of range for {} elements", lowest < -size ? lowest : highest, size);
  return lowest < 0 ? at::where(index < 0, index + size, index) : index;
}

void require_same_rank(const at::Tensor& x, const at::Tensor& indices, int64_t axis) {
  if (indices.dim() != x.dim()) fail("indices have {} axes, the data has {}", indices.dim(), x.dim());
  for (int64_t i = 0; i < x.dim(); ++i) {
    if (i != axis && indices.size(i) > x.size(i)) fail("indices are larger than the data along axis {}", i);
  }
}

enum class Reduce { kNone, kAdd, kMultiply, kMaximum, kMinimum };

Reduce reduce_mode(const NodeView& node) {
  std::string name = node.text("reduction", "none");
  if (name == "none") return Reduce::kNone;
  if (name == "add") return Reduce::kAdd;
  if (name == "mul") return Reduce::kMultiply;
  if (name == "max") return Reduce::kMaximum;
  node.require(name == "min", "reduction is {}, expected none, add, mul, max or min", name);
  return Reduce::kMinimum;
}

const char* torch_name(Reduce reduce) {
  return reduce == Reduce::kMultiply ? "prod" : reduce == Reduce::kMaximum ? "amax" : "amin";
}

at::Tensor scattered(const at::Tensor& x, int64_t axis, const at::Tensor& index, const at::Tensor& updates,
                     Reduce reduce) {
  if (reduce == Reduce::kNone) return at::scatter(x, axis, index, updates);
  if (reduce == Reduce::kAdd) return at::scatter_add(x, axis, index, updates);
  return at::scatter_reduce(x, axis, index, updates, torch_name(reduce), true);
}

/// Rows of a matrix replaced or combined.
at::Tensor rows_updated(const at::Tensor& rows, const at::Tensor& index, const at::Tensor& updates, Reduce reduce) {
  if (reduce == Reduce::kNone) return at::index_copy(rows, 0, index, updates);
  if (reduce == Reduce::kAdd) return at::index_add(rows, 0, index, updates);
  return at::scatter_reduce(rows, 0, index.unsqueeze(1).expand(updates.sizes()), updates, torch_name(reduce), true);
}

/// Tuples of indices into the given leading sizes (the last axis of `indices` holds a tuple) as positions in a flat
/// list.
at::Tensor flat_positions(const at::Tensor& indices, at::IntArrayRef sizes) {
  at::Tensor flat = at::zeros(indices.sizes().slice(0, indices.dim() - 1), indices.options().dtype(at::kLong));
  for (size_t i = 0; i < sizes.size(); ++i) flat = flat * sizes[i] + checked_index(indices.select(-1, i), sizes[i]);
  return flat;
}

int64_t count(at::IntArrayRef sizes) {
  int64_t result = model::checked_count({sizes.data(), sizes.size()});
  if (result < 0) fail("a size overflows");
  return result;
}

void append(std::vector<int64_t>& to, at::IntArrayRef sizes) { to.insert(to.end(), sizes.begin(), sizes.end()); }

at::Tensor gathered(const at::Tensor& x, int64_t axis, const at::Tensor& indices) {
  at::Tensor index = checked_index(indices, x.size(axis)), flat = at::index_select(x, axis, index.reshape({-1}));
  std::vector<int64_t> shape(x.sizes().begin(), x.sizes().begin() + axis);
  append(shape, indices.sizes());
  append(shape, x.sizes().slice(axis + 1));
  return flat.reshape(shape);
}

at::Tensor gathered_tuples(const at::Tensor& x, const at::Tensor& indices, int64_t batch) {
  if (indices.dim() < 1 || batch < 0 || batch >= indices.dim() || batch >= x.dim()) fail("batch_dims is {}", batch);
  int64_t tuple = indices.size(-1);
  if (tuple < 0 || batch + tuple > x.dim()) fail("an index has {} parts, the data has {} axes", tuple, x.dim());
  if (x.sizes().slice(0, batch) != indices.sizes().slice(0, batch)) fail("data and indices differ in their batch axes");
  at::IntArrayRef leading = x.sizes().slice(batch, tuple), rest = x.sizes().slice(batch + tuple);
  int64_t batches = count(x.sizes().slice(0, batch)), rows = count(leading);
  at::Tensor flat = flat_positions(indices, leading).reshape({batches, -1});
  at::Tensor offset = at::arange(batches, flat.options()).unsqueeze(1) * rows;
  at::Tensor taken = at::index_select(x.reshape({batches * rows, count(rest)}), 0, (flat + offset).reshape({-1}));
  std::vector<int64_t> shape(indices.sizes().begin(), indices.sizes().end() - 1);
  append(shape, rest);
  return taken.reshape(shape);
}

at::Tensor scattered_tuples(const at::Tensor& x, const at::Tensor& indices, const at::Tensor& updates, Reduce reduce) {
  if (indices.dim() < 1) fail("indices are a scalar");
  int64_t tuple = indices.size(-1);
  if (tuple > x.dim()) fail("an index has {} parts, the data has {} axes", tuple, x.dim());
  at::IntArrayRef leading = x.sizes().slice(0, tuple), rest = x.sizes().slice(tuple);
  std::vector<int64_t> expected(indices.sizes().begin(), indices.sizes().end() - 1);
  append(expected, rest);
  if (updates.sizes() != at::IntArrayRef(expected)) fail("updates do not have the shape that indices ask for");
  at::Tensor index = flat_positions(indices, leading).reshape({-1});
  at::Tensor rows = x.reshape({count(leading), count(rest)});
  return rows_updated(rows, index, updates.reshape({index.size(0), count(rest)}), reduce).reshape(x.sizes());
}

}  // namespace

Kernel gather(const NodeView& node) {
  int64_t axis = node.integer("axis", 0);
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    call.set(0, gathered(x, axis_in(axis, x.dim()), call.in(1)));
  };
}

Kernel gather_elements(const NodeView& node) {
  int64_t axis = node.integer("axis", 0);
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    int64_t along = axis_in(axis, x.dim());
    require_same_rank(x, call.in(1), along);
    call.set(0, at::gather(x, along, checked_index(call.in(1), x.size(along))));
  };
}

Kernel gather_nd(const NodeView& node) {
  int64_t batch = node.integer("batch_dims", 0);
  return [=](Call& call) { call.set(0, gathered_tuples(call.in(0), call.in(1), batch)); };
}

Kernel scatter_elements(const NodeView& node) {
  int64_t axis = node.integer("axis", 0);
  Reduce reduce = reduce_mode(node);
  return [=](Call& call) {
    const at::Tensor &x = call.in(0), &updates = call.in(2);
    int64_t along = axis_in(axis, x.dim());
    require_same_rank(x, call.in(1), along);
    if (updates.sizes() != call.in(1).sizes()) fail("updates and indices differ in shape");
    call.set(0, scattered(x, along, checked_index(call.in(1), x.size(along)), updates, reduce));
  };
}

Kernel scatter_nd(const NodeView& node) {
  Reduce reduce = reduce_mode(node);
  return [=](Call& call) { call.set(0, scattered_tuples(call.in(0), call.in(1), call.in(2), reduce)); };
}

/// An index outside −depth … depth−1 gives a row of off values.
Kernel one_hot(const NodeView& node) {
  int64_t axis = node.integer("axis", -1);
  return [=](Call& call) {
    const at::Tensor &indices = call.in(0), &values = call.in(2);
    int64_t depth = int64_t(real_of(call.in(1), "depth"));
    if (depth < 1) fail("depth is {}", depth);
    if (values.numel() != 2) fail("values has {} elements, expected two: off and on", values.numel());
    int64_t along = axis_in(axis, indices.dim() + 1);
    at::Tensor index = indices.to(at::kLong);
    index = at::where(index < 0, index + depth, index).unsqueeze(along);
    std::vector<int64_t> shape(indices.dim() + 1, 1);
    shape[along] = depth;
    at::Tensor hot = index == at::arange(depth, index.options()).reshape(shape), pair = values.reshape({2});
    call.set(0, at::where(hot, pair[1], pair[0]));
  };
}

Kernel non_zero(const NodeView&) {
  return unary([](const at::Tensor& x) {
    if (x.dim() == 0) return at::zeros({0, x.ne(0).to(at::kLong).item<int64_t>()}, x.options().dtype(at::kLong));
    return at::nonzero(x).t();
  });
}

/// Different slices along an axis, or different elements of all, sorted or in the order they first occur in.
Kernel unique(const NodeView& node) {
  bool flat = !node.has("axis"), sorted = node.integer("sorted", 1) != 0;
  int64_t axis = node.integer("axis", 0);
  return [=](Call& call) {
    at::Tensor x = flat ? call.in(0).reshape({-1}) : call.in(0);
    int64_t along = axis_in(flat ? 0 : axis, x.dim());
    if (x.numel() == 0) fail("the input is empty");
    at::Tensor like = x.scalar_type() == at::kBool ? x.to(at::kByte) : x;
    at::Tensor group = std::get<1>(at::unique_dim(like, along, true, true, true));
    at::Tensor counts = at::bincount(group), first;
    at::Tensor order = std::get<1>(at::sort(group, c10::optional<bool>(true), 0, false));  // stable: first come first
    first = order.index_select(0, at::cumsum(counts, 0) - counts);
    if (!sorted) {
      at::Tensor seen = at::argsort(first), place = at::argsort(seen);
      first = first.index_select(0, seen), counts = counts.index_select(0, seen);
      group = place.index_select(0, group);
    }
    call.set(0, x.index_select(along, first));
    call.set(1, first);
    call.set(2, group);
    call.set(3, counts);
  };
}

// clang-format off
std::span<const Op> gather_rows() {
  static constexpr Op kRows[] = {
      {.name = "Gather", .prepare = gather},
      {.name = "GatherElements", .prepare = gather_elements},
      {.name = "GatherND", .prepare = gather_nd},
      {.name = "NonZero", .prepare = non_zero, .differentiable = false},
      {.name = "OneHot", .prepare = one_hot},
      {.name = "Scatter", .prepare = scatter_elements, .newest = 10},
      {.name = "ScatterElements", .prepare = scatter_elements},
      {.name = "ScatterND", .prepare = scatter_nd},
      {.name = "Unique", .prepare = unique, .differentiable = false},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families
