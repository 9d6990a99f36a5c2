// Norms: what they divide by is a constant (Ali et al. 2022, arXiv 2202.07304), so that what is left is linear; the
// offset keeps its share.
#include <ATen/ATen.h>

#include "explain/flow.h"
#include "ops/arguments.h"

namespace netmend::explain {
namespace {

using at::Tensor;

/// Of y = (x − mean)/σ · scale with σ held: the mean is taken over `axes`.
Tensor centred_back(const Tensor& x, const Tensor& gradient, at::IntArrayRef axes, double epsilon) {
  Tensor part = gradient * at::rsqrt(at::var(x, axes, false, true) + epsilon);
  return part - at::mean(part, axes, true);
}

std::vector<int64_t> axes_from(int64_t first, int64_t rank) {
  std::vector<int64_t> axes;
  for (int64_t axis = first; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

Tensor per_channel(const Tensor& scale, const Tensor& x) {
  std::vector<int64_t> shape(size_t(x.dim()), 1);
  shape[1] = x.size(1);
  Tensor each = scale.numel() == x.size(1) ? scale : at::repeat_interleave(scale, x.size(1) / scale.numel());
  return each.reshape(shape);
}

}  // namespace

namespace flows {

Step layer_norm(const Site& site) {
  ops::NodeView view(site.graph, site.node);
  return [axis = view.integer("axis", -1), epsilon = view.real("epsilon", 1e-5)](const Flow& flow) {
    const Tensor& x = flow.inputs[0];
    Tensor gradient = flow.from[0].per_unit(flow.outputs[0]);
    if (!gradient.defined()) return;
    flow.to[0].scaled =
        centred_back(x, gradient * flow.inputs[1], axes_from(ops::axis_in(axis, x.dim()), x.dim()), epsilon);
  };
}

Step skip_layer_norm(const Site& site) {
  ops::NodeView view(site.graph, site.node);
  return [open = site.open, epsilon = view.real("epsilon", 1e-12)](const Flow& flow) {
    Tensor sum = flow.inputs[0] + flow.inputs[1], scaled;
    if (flow.inputs.size() > 4 && flow.inputs[4].defined()) sum = sum + flow.inputs[4];
    if (Tensor gradient = flow.from[0].per_unit(flow.outputs[0]); gradient.defined())
      scaled = centred_back(sum, gradient * flow.inputs[2], {-1}, epsilon);
    if (flow.from.size() > 3)  // the sum itself may be used too
      if (Tensor direct = flow.from[3].per_unit(sum); direct.defined())
        scaled = scaled.defined() ? scaled + direct : direct;
    if (!scaled.defined()) return;
    for (size_t i : {0, 1, 4})
      if (i < open.size() && open[i]) flow.to[i].scaled = at::sum_to(scaled, flow.inputs[i].sizes());
  };
}

/// Instance and group norm.
Step channel_norm(const Site& site) {
  ops::NodeView view(site.graph, site.node);
  return [groups = view.integer("num_groups", 0), epsilon = view.real("epsilon", 1e-5)](const Flow& flow) {
    const Tensor& x = flow.inputs[0];
    Tensor gradient = flow.from[0].per_unit(flow.outputs[0]);
    if (!gradient.defined()) return;
    std::vector<int64_t> grouped{x.size(0), groups > 0 ? groups : x.size(1), -1};
    Tensor part = (gradient * per_channel(flow.inputs[1].reshape({-1}), x)).reshape(grouped);
    flow.to[0].scaled = centred_back(x.reshape(grouped), part, {2}, epsilon).reshape(x.sizes());
  };
}

Step mean_variance_norm(const Site& site) {
  ops::NodeView view(site.graph, site.node);
  return [axes = view.integers("axes", {0, 2, 3})](const Flow& flow) {
    const Tensor& x = flow.inputs[0];
    Tensor gradient = flow.from[0].per_unit(flow.outputs[0]);
    if (gradient.defined()) flow.to[0].scaled = centred_back(x, gradient, ops::axes_in(axes, x.dim()), 1e-18);
  };
}

/// y = x · c with c held, element by element: LRN, root mean square, p-norms.
Step divided_norm(const Site& site) { return power(site); }

}  // namespace flows
}  // namespace netmend::explain
