#include "model/layer.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "model/positions.h"

namespace netmend::model {

std::string unit_name(const Layer& layer, int64_t unit) { return fmt::format("{}/{}", layer.name, unit); }

namespace {

/// Where the inputs are once positions have an axis of their own.
int64_t inputs_axis(const Layer& layer, int64_t rank) {
  return at::maybe_wrap_dim(layer.batch_axis, rank) + (layer.merged == Merged::kPositionsFirst);
}

}  // namespace

at::Tensor unit_maps(const Layer& layer, const at::Tensor& tap) {
  int64_t rank = tap.dim();
  int64_t unit_axis = at::maybe_wrap_dim(layer.unit_axis, rank), batch_axis = inputs_axis(layer, rank);
  check(unit_axis != batch_axis, "layer {} has its units on the batch axis", layer.name);
  at::Tensor moved = at::movedim(tap, {batch_axis, unit_axis}, {0, 1});
  int64_t features = moved.size(1);
  if (features == layer.units) return moved.reshape({moved.size(0), features, -1});
  // Recurrent: features are hidden units, and an axis of directions is among the positions.
  check(features > 0 && layer.units % features == 0 && moved.dim() > 2, "layer {} has {} units, its value {} features",
        layer.name, layer.units, features);
  int64_t directions = layer.units / features;
  for (int64_t axis = 2; axis < moved.dim(); ++axis)
    if (moved.size(axis) == directions) {
      at::Tensor split = at::movedim(moved, axis, 1);
      return split.reshape({split.size(0), directions * features, -1});
    }
  throw std::logic_error(fmt::format("layer {} has no axis of {} directions", layer.name, directions));
}

at::Tensor spread_mask(const Layer& layer, const at::Tensor& tap, const at::Tensor& mask) {
  int64_t rank = tap.dim(), batch_axis = inputs_axis(layer, rank),
          unit_axis = at::maybe_wrap_dim(layer.unit_axis, rank);
  if (tap.size(batch_axis) != mask.size(0)) return {};
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (axis == batch_axis || axis == unit_axis || tap.size(axis) != mask.size(1)) continue;
    std::vector<int64_t> shape(size_t(rank), 1);
    shape[size_t(batch_axis)] = mask.size(0), shape[size_t(axis)] = mask.size(1);
    at::Tensor turned = batch_axis < axis ? mask : mask.t();
    return turned.reshape(shape).expand_as(tap);
  }
  return {};
}

at::Tensor unit_values(const Layer& layer, const at::Tensor& tap, const at::Tensor& mask) {
  if (tap.dim() == 2 && layer.batch_axis == 0 && layer.merged == Merged::kNo && tap.size(1) == layer.units) return tap;
  at::Tensor counted = mask.defined() ? spread_mask(layer, tap, mask.to(tap.device())) : at::Tensor();
  if (!counted.defined()) return unit_maps(layer, tap).mean(2);
  at::Tensor sums = unit_maps(layer, at::where(counted, tap, at::zeros({}, tap.options()))).sum(2);
  return sums / unit_maps(layer, counted.to(tap.scalar_type())).sum(2).clamp_min(1);
}

}  // namespace netmend::model
