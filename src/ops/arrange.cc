// Operators that join, cut, pad and rearrange tensors.
#include <algorithm>
#include <limits>

#include "ops/arguments.h"
#include "ops/families.h"

namespace netmend::ops::families {
namespace {

/// Sizes of the parts that Split asks for.
std::vector<int64_t> parts(int64_t size, const std::optional<std::vector<int64_t>>& given, int64_t count, bool uneven) {
  if (given) {
    int64_t sum = 0;
    bool negative = false;
    for (int64_t part : *given) sum = plus(sum, part), negative |= part < 0;
    if (negative || sum != size || int64_t(given->size()) != count)
      fail("split does not cut {} into {} parts", size, count);
    return *given;
  }
  if (count <= 0 || (!uneven && size % count != 0)) fail("{} cannot be split into {} equal parts", size, count);
  int64_t part = (size + count - 1) / count, left = size;
  std::vector<int64_t> result;
  for (int64_t i = 0; i < count; ++i, left -= result.back()) result.push_back(std::min(part, left));
  return result;
}

struct Cut {
  int64_t axis, start, end, step;
};

/// x[start:end:step] along an axis, as in Python.
at::Tensor sliced(const at::Tensor& x, Cut cut) {
  int64_t n = x.size(cut.axis);
  if (cut.step == 0) fail("a step is 0");
  auto front = [&](int64_t at, int64_t low, int64_t high) {
    if (at < 0) at = at < -n ? -1 : at + n;
    return std::clamp(at, low, high);
  };
  if (cut.step > 0) {
    int64_t start = front(std::max(cut.start, -n), 0, n), end = front(std::max(cut.end, -n), 0, n);
    return x.slice(cut.axis, start, std::max(start, end), std::min(cut.step, std::max<int64_t>(n, 1)));
  }
  // Backwards: LibTorch has no negative steps, so the same elements are taken from the flipped tensor.
  int64_t start = front(cut.start, -1, n - 1), end = front(cut.end, -1, n - 1);
  int64_t from = n - 1 - start, to = std::max(from, n - 1 - end);
  int64_t step = cut.step < -n ? std::max<int64_t>(n, 1) : -cut.step;
  return at::flip(x, cut.axis).slice(cut.axis, from, to, step);
}

std::vector<Cut> cuts_of(const std::vector<int64_t>& starts, const std::vector<int64_t>& ends,
                         const std::optional<std::vector<int64_t>>& axes,
                         const std::optional<std::vector<int64_t>>& steps, int64_t rank) {
  std::vector<int64_t> along = axes_in(axes.value_or(all_axes(std::min<int64_t>(starts.size(), rank))), rank);
  if (ends.size() != starts.size() || along.size() != starts.size() || (steps && steps->size() != starts.size())) {
    fail("starts, ends, axes and steps differ in length");
  }
  std::vector<Cut> cuts;
  for (size_t i = 0; i < starts.size(); ++i) cuts.push_back({along[i], starts[i], ends[i], steps ? (*steps)[i] : 1});
  return cuts;
}

enum class PadMode { kConstant, kReflect, kEdge, kWrap };

PadMode pad_mode(const NodeView& node) {
  std::string mode = node.text("mode", "constant");
  if (mode == "constant") return PadMode::kConstant;
  if (mode == "reflect") return PadMode::kReflect;
  if (mode == "edge") return PadMode::kEdge;
  node.require(mode == "wrap", "mode is {}, expected constant, reflect, edge or wrap", mode);
  return PadMode::kWrap;
}

/// The element of an axis of size n that stands at position i, which may lie outside.
int64_t source_index(PadMode mode, int64_t i, int64_t n) {
  if (mode == PadMode::kEdge) return std::clamp<int64_t>(i, 0, n - 1);
  int64_t period = mode == PadMode::kWrap ? n : std::max<int64_t>(2 * (n - 1), 1);
  int64_t at = ((i % period) + period) % period;
  return at < n ? at : period - at;
}

at::Tensor padded_axis(const at::Tensor& x, PadMode mode, int64_t axis, int64_t begin, int64_t end) {
  int64_t n = x.size(axis), result = plus(plus(n, begin), end);
  if (result < 0) fail("pads take more than axis {} has", axis);
  if (n == 0 && result > 0) fail("axis {} is empty and cannot be padded in this mode", axis);
  at::Tensor index = at::empty({result}, at::kLong);
  int64_t* data = index.data_ptr<int64_t>();
  for (int64_t i = 0; i < result; ++i) data[i] = source_index(mode, i - begin, n);
  return at::index_select(x, axis, index.to(x.device()));
}

/// Pads of every axis, as LibTorch wants them: last axis first, begin and end.
at::Tensor padded_constant(const at::Tensor& x, const std::vector<int64_t>& begin, const std::vector<int64_t>& end,
                           at::Scalar value) {
  std::vector<int64_t> pads;
  for (int64_t axis = x.dim() - 1; axis >= 0; --axis) {
    if (plus(plus(x.size(axis), begin[axis]), end[axis]) < 0) fail("pads take more than axis {} has", axis);
    pads.insert(pads.end(), {begin[axis], end[axis]});
  }
  return at::constant_pad_nd(x, pads, value);
}

at::Tensor padded(const at::Tensor& x, PadMode mode, const std::vector<int64_t>& pads, const std::vector<int64_t>& axes,
                  at::Scalar value) {
  if (pads.size() != 2 * axes.size()) fail("pads has {} numbers for {} axes", pads.size(), axes.size());
  std::vector<int64_t> begin(x.dim()), end(x.dim());
  for (size_t i = 0; i < axes.size(); ++i) begin[axes[i]] = pads[i], end[axes[i]] = pads[axes.size() + i];
  if (mode == PadMode::kConstant) return padded_constant(x, begin, end, value);
  at::Tensor y = x;
  for (int64_t axis = 0; axis < x.dim(); ++axis) {
    if (begin[axis] || end[axis]) y = padded_axis(y, mode, axis, begin[axis], end[axis]);
  }
  return y.is_same(x) ? at::alias(x) : y;
}

void require_image(const at::Tensor& x) {
  if (x.dim() != 4) fail("the input has {} axes, expected 4", x.dim());
}

bool depth_first(const NodeView& node) {
  std::string mode = node.text("mode", "DCR");
  node.require(mode == "DCR" || mode == "CRD", "mode is {}, expected DCR or CRD", mode);
  return mode == "DCR";
}

int64_t block_size(const NodeView& node) {
  int64_t block = node.integer("blocksize", 0);
  node.require(block > 0 && block < (1 << 15), "blocksize is {}", block);
  return block;
}

at::Tensor triangle(const at::Tensor& x, bool upper, int64_t k) {
  if (x.dim() < 2) fail("the input has {} axes, expected at least 2", x.dim());
  int64_t diagonal = std::clamp(k, -x.size(-2) - 1, x.size(-1) + 1);  // further away changes nothing
  return upper ? at::triu(x, diagonal) : at::tril(x, diagonal);
}

}  // namespace

Kernel concat(const NodeView& node) {
  node.require(node.has("axis"), "axis is missing");
  node.require(node.inputs() > 0, "has no inputs");
  int64_t axis = node.integer("axis", 0);
  return [=](Call& call) {
    std::vector<at::Tensor> list;
    for (size_t i = 0; i < call.inputs(); ++i) list.push_back(call.in(i));
    call.set(0, at::cat(list, axis_in(axis, list[0].dim())));
  };
}

Kernel split(const NodeView& node) {
  ListArgument sizes(node, "split", 1);
  int64_t axis = node.integer("axis", 0), named = node.integer("num_outputs", -1);
  node.require(named < 0 || named == int64_t(node.outputs()), "num_outputs is {}, the node has {} outputs", named,
               node.outputs());
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    int64_t along = axis_in(axis, x.dim()), at = 0;
    auto given = parts(x.size(along), sizes.in(call), call.outputs(), named > 0);
    for (size_t i = 0; i < given.size(); at += given[i++]) call.set(i, x.narrow(along, at, given[i]));
  };
}

Kernel slice(const NodeView& node) {
  ListArgument starts(node, "starts", 1), ends(node, "ends", 2), axes(node, "axes", 3), steps(node, "steps", 4);
  return [=](Call& call) {
    auto from = starts.in(call), to = ends.in(call);
    if (!from || !to) fail("starts or ends are missing");
    at::Tensor y = at::alias(call.in(0));
    for (const Cut& cut : cuts_of(*from, *to, axes.in(call), steps.in(call), y.dim())) y = sliced(y, cut);
    call.set(0, y);
  };
}

Kernel pad(const NodeView& node) {
  ListArgument pads(node, "pads", 1), axes(node, "axes", 3);
  PadMode mode = pad_mode(node);
  double attribute = node.real("value", 0);
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    auto amounts = pads.in(call), along = axes.in(call);
    if (!amounts) fail("pads are missing");
    at::Scalar value = attribute;
    if (call.has(2) && call.in(2).numel() > 0) {
      if (call.in(2).numel() != 1) fail("the value to pad with has {} elements", call.in(2).numel());
      value = call.in(2).detach().item();
    }
    call.set(0, padded(x, mode, *amounts, along ? axes_in(*along, x.dim()) : all_axes(x.dim()), value));
  };
}

Kernel depth_to_space(const NodeView& node) {
  int64_t b = block_size(node);
  bool dcr = depth_first(node);
  return unary([=](const at::Tensor& x) {
    require_image(x);
    int64_t n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3);
    if (c % (b * b) != 0) fail("{} channels cannot be cut into blocks of {}x{}", c, b, b);
    c /= b * b;
    at::Tensor y = dcr ? x.reshape({n, b, b, c, h, w}).permute({0, 3, 4, 1, 5, 2})
                       : x.reshape({n, c, b, b, h, w}).permute({0, 1, 4, 2, 5, 3});
    return y.reshape({n, c, h * b, w * b});
  });
}

Kernel space_to_depth(const NodeView& node) {
  int64_t b = block_size(node);
  bool dcr = depth_first(node);
  return unary([=](const at::Tensor& x) {
    require_image(x);
    int64_t n = x.size(0), c = x.size(1), h = x.size(2), w = x.size(3);
    if (h % b != 0 || w % b != 0) fail("{}x{} cannot be cut into blocks of {}x{}", h, w, b, b);
    at::Tensor blocks = x.reshape({n, c, h / b, b, w / b, b});
    at::Tensor y = dcr ? blocks.permute({0, 3, 5, 1, 2, 4}) : blocks.permute({0, 1, 3, 5, 2, 4});
    return y.reshape({n, c * b * b, h / b, w / b});
  });
}

Kernel trilu(const NodeView& node) {
  bool upper = node.integer("upper", 1) != 0;
  return [=](Call& call) { call.set(0, triangle(call.in(0), upper, call.has(1) ? integer_of(call.in(1), "k") : 0)); };
}

Kernel reverse_sequence(const NodeView& node) {
  int64_t batch = node.integer("batch_axis", 1), time = node.integer("time_axis", 0);
  node.require((batch == 0 && time == 1) || (batch == 1 && time == 0), "batch_axis and time_axis must be 0 and 1");
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    if (x.dim() < 2) fail("the input has {} axes, expected at least 2", x.dim());
    int64_t steps = x.size(time);
    at::Tensor lengths = call.in(1).to(at::kLong).reshape({1, x.size(batch)});
    if (at::any((lengths < 0) | (lengths > steps)).item<bool>()) fail("a sequence length is outside 0 to {}", steps);
    at::Tensor t = at::arange(steps, lengths.options()).unsqueeze(1);
    at::Tensor from = at::where(t < lengths, lengths - 1 - t, t);  // time × batch
    if (time == 1) from = from.t();
    std::vector<int64_t> shape(x.dim(), 1);
    shape[0] = x.size(0), shape[1] = x.size(1);
    call.set(0, at::gather(x, time, from.reshape(shape).expand(x.sizes())));
  };
}

Kernel compress(const NodeView& node) {
  bool flat = !node.has("axis");
  int64_t axis = node.integer("axis", 0);
  return [=](Call& call) {
    at::Tensor x = flat ? call.in(0).reshape({-1}) : call.in(0), keep = call.in(1).to(at::kBool);
    int64_t along = flat ? 0 : axis_in(axis, x.dim());
    if (keep.dim() != 1 || keep.size(0) > x.size(along)) fail("condition does not fit an axis of {}", x.size(along));
    call.set(0, at::index_select(x, along, at::nonzero(keep).reshape({-1})));
  };
}

/// Cut or filled with zeros to given sizes, the middle staying in the middle; an odd element goes to the end.
Kernel center_crop_pad(const NodeView& node) {
  std::optional<std::vector<int64_t>> axes;
  if (node.has("axes")) axes = node.integers("axes");
  return [=](Call& call) {
    at::Tensor y = call.in(0);
    std::vector<int64_t> sizes = integers_of(call.in(1), "shape");
    std::vector<int64_t> along = axes ? axes_in(*axes, y.dim()) : all_axes(y.dim());
    if (sizes.size() != along.size()) fail("shape has {} sizes for {} axes", sizes.size(), along.size());
    std::vector<int64_t> pads(size_t(2 * y.dim()), 0);
    for (size_t i = 0; i < sizes.size(); ++i) {
      int64_t size = sizes[i], had = y.size(along[i]);
      if (size < 0) fail("shape has a negative size");
      if (size < had) y = y.narrow(along[i], (had - size) / 2, size);
      if (size <= had) continue;
      auto at = size_t(2 * (y.dim() - 1 - along[i]));  // LibTorch pads the last axis first
      pads[at] = (size - had) / 2, pads[at + 1] = size - had - pads[at];
    }
    call.set(0, at::constant_pad_nd(y, pads, 0));
  };
}

// clang-format off
std::span<const Op> arrange_rows() {
  static constexpr Op kRows[] = {
      {.name = "CenterCropPad", .prepare = center_crop_pad},
      {.name = "Compress", .prepare = compress},
      {.name = "Concat", .prepare = concat},
      {.name = "DepthToSpace", .prepare = depth_to_space},
      {.name = "Pad", .prepare = pad},
      {.name = "ReverseSequence", .prepare = reverse_sequence},
      {.name = "Slice", .prepare = slice},
      {.name = "SpaceToDepth", .prepare = space_to_depth},
      {.name = "Split", .prepare = split},
      {.name = "Trilu", .prepare = trilu},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families
