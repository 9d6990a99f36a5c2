#include "explain/flow.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "ops/recurrent.h"

namespace netmend::explain {

namespace {

void add_to(at::Tensor& sum, const at::Tensor& more) {
  if (more.defined()) sum = sum.defined() ? sum + more : more;
}

}  // namespace

void Message::add(const Message& other) {
  add_to(scaled, other.scaled);
  add_to(loose, other.loose);
}

at::Tensor over(const at::Tensor& a, const at::Tensor& b) {
  // DeepImportance's toolbox adds 1e-16, with the sign of 0 taken as +. In float32 the sums themselves are not known
  // that well.
  const double least = b.scalar_type() == at::kDouble ? 1e-16 : 1e-9;
  at::Tensor kept = b + at::where(b < 0, at::full({}, -least, b.options()), at::full({}, least, b.options()));
  return at::where(b == 0, at::zeros({}, b.options()), a / kept);
}

at::Tensor Message::per_unit(const at::Tensor& x) const {
  if (!loose.defined()) return scaled;
  at::Tensor part = over(loose, x);
  return scaled.defined() ? scaled + part : part;
}

at::Tensor Message::relevance(const at::Tensor& x) const {
  if (!scaled.defined()) return loose;
  at::Tensor part = x * scaled;
  return loose.defined() ? part + loose : part;
}

std::vector<at::Tensor> pulled_back(const ops::Kernel& kernel, std::span<const at::Tensor> inputs,
                                    const std::vector<bool>& open, const std::vector<at::Tensor>& gradients) {
  at::AutoGradMode grad(true);
  std::vector<at::Tensor> given(inputs.begin(), inputs.end()), outputs(gradients.size()), result(inputs.size());
  at::ScalarType real = at::kFloat;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!open[i] || !given[i].defined() || !given[i].is_floating_point()) continue;
    given[i] = given[i].detach().requires_grad_();
    if (given[i].scalar_type() == at::kDouble) real = at::kDouble;
  }
  ops::Call call(given, outputs, 0, false, 0, real);
  kernel(call);
  std::vector<at::Tensor> ends, weights, leaves;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (gradients[i].defined() && outputs[i].defined() && outputs[i].requires_grad())
      ends.push_back(outputs[i]), weights.push_back(gradients[i]);
  for (const at::Tensor& input : given)
    if (input.defined() && input.requires_grad()) leaves.push_back(input);
  if (ends.empty() || leaves.empty()) return result;
  std::vector<at::Tensor> found = torch::autograd::grad(ends, leaves, weights, c10::nullopt, false, true);
  size_t next = 0;
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i].defined() && given[i].requires_grad()) result[i] = found[next++];
  return result;
}

namespace {

std::vector<at::Tensor> per_unit_of(const Flow& flow) {
  std::vector<at::Tensor> gradients;
  for (size_t i = 0; i < flow.from.size(); ++i) gradients.push_back(flow.from[i].per_unit(flow.outputs[i]));
  return gradients;
}

void hand_on(const Flow& flow, const std::vector<at::Tensor>& scaled) {
  for (size_t i = 0; i < scaled.size(); ++i)
    if (scaled[i].defined()) flow.to[i].scaled = scaled[i];
}

/// f on one tensor, the node's other inputs as they are.
at::Tensor applied(const ops::Kernel& kernel, std::span<const at::Tensor> inputs, const at::Tensor& x) {
  std::vector<at::Tensor> given(inputs.begin(), inputs.end()), outputs(1);
  given[0] = x;
  ops::Call call(given, outputs, 0, false, 0, x.scalar_type());
  kernel(call);
  return outputs[0];
}

/// The gradient of the line from (0, f(0)) to (x, f(x)). Near 0, where it is a quotient of small differences, it is
/// taken a little further out.
at::Tensor gradient_from_zero(const ops::Kernel& kernel, std::span<const at::Tensor> inputs, const at::Tensor& x,
                              const at::Tensor& y) {
  at::Tensor zero = applied(kernel, inputs, at::zeros_like(x));
  if (at::all(zero == 0).item<bool>()) {
    at::Tensor least = at::full({}, 1e-6, x.options());
    at::Tensor nearby = applied(kernel, inputs, at::full_like(x, 1e-6));
    return at::where(x == 0, nearby / least, y / x);
  }
  at::Tensor far = at::where(x < 0, at::full({}, -1e-3, x.options()), at::full({}, 1e-3, x.options()));
  at::Tensor at = at::where(x.abs() < 1e-3, far, x);
  return (applied(kernel, inputs, at) - zero) / at;
}

}  // namespace

Step derivative(const Site& site) {
  ops::Kernel kernel = ops::prepare(site.graph, site.node);
  return [kernel, open = site.open](const Flow& flow) {
    hand_on(flow, pulled_back(kernel, flow.inputs, open, per_unit_of(flow)));
  };
}

namespace flows {

Step share(const Site& site) { return derivative(site); }

/// The derivative without running the sum again.
Step sum(const Site& site) {
  return [open = site.open, minus = site.node.op == "Sub"](const Flow& flow) {
    at::Tensor gradient = flow.from[0].per_unit(flow.outputs[0]);
    for (size_t i = 0; i < open.size(); ++i)
      if (open[i]) flow.to[i].scaled = at::sum_to(minus && i == 1 ? -gradient : gradient, flow.inputs[i].sizes());
  };
}

Step taylor(const Site& site) { return derivative(site); }

Step route(const Site& site) {
  ops::Kernel kernel = ops::prepare(site.graph, site.node);
  return [kernel, open = site.open](const Flow& flow) {
    for (auto part : {&Message::scaled, &Message::loose}) {
      std::vector<at::Tensor> gradients;
      bool any = false;
      for (const Message& message : flow.from)
        gradients.push_back(message.*part), any = any || (message.*part).defined();
      if (!any) continue;
      std::vector<at::Tensor> moved = pulled_back(kernel, flow.inputs, open, gradients);
      for (size_t i = 0; i < moved.size(); ++i)
        if (moved[i].defined()) flow.to[i].*part = moved[i];
    }
  };
}

Step activation(const Site& site) {
  if (!site.open[0]) return [](const Flow&) {};
  if (site.node.op == "Relu")
    return [](const Flow& flow) {
      const Message& from = flow.from[0];
      if (from.scaled.defined()) flow.to[0].scaled = at::threshold_backward(from.scaled, flow.outputs[0], 0);
      flow.to[0].loose = from.loose;
    };
  ops::Kernel kernel = ops::prepare(site.graph, site.node);
  return [kernel](const Flow& flow) {
    const at::Tensor &x = flow.inputs[0], &y = flow.outputs[0];
    const Message& from = flow.from[0];
    if (from.scaled.defined()) flow.to[0].scaled = from.scaled * gradient_from_zero(kernel, flow.inputs, x, y);
    flow.to[0].loose = from.loose;
  };
}

/// f(x + b): what arrives at the sum is shared between x and the bias, which keeps its part.
Step biased_activation(const Site& site) {
  if (site.node.inputs.size() < 2 || site.node.inputs[1] == model::kAbsent) return activation(site);
  model::Node plain = site.node;
  plain.inputs.resize(1);
  plain.op = plain.op == "BiasGelu" ? "Gelu" : plain.op;
  ops::Kernel kernel = ops::prepare(site.graph, plain);
  return [kernel, open = site.open](const Flow& flow) {
    at::Tensor sum = flow.inputs[0] + flow.inputs[1];
    at::Tensor scaled =
        flow.from[0].per_unit(flow.outputs[0]) * gradient_from_zero(kernel, std::span(&sum, 1), sum, flow.outputs[0]);
    if (open[0]) flow.to[0].scaled = at::sum_to(scaled, flow.inputs[0].sizes());
    if (open[1]) flow.to[1].scaled = at::sum_to(scaled, flow.inputs[1].sizes());
  };
}

Step power(const Site& site) {
  if (!site.open[0]) return [](const Flow&) {};
  return [](const Flow& flow) {
    at::Tensor scaled = flow.from[0].per_unit(flow.outputs[0]);
    at::Tensor ratio =
        at::where(flow.inputs[0] == 0, at::zeros({}, scaled.options()), flow.outputs[0] / flow.inputs[0]);
    flow.to[0].scaled = at::sum_to(scaled * ratio, flow.inputs[0].sizes());
  };
}

Step product(const Site& site) {
  int weakest = 3, sharers = 0;  // what looks least like a gate is the signal
  for (size_t i = 0; i < site.open.size(); ++i)
    if (site.open[i]) weakest = std::min(weakest, site.gate[i]);
  std::vector<bool> open = site.open;
  for (size_t i = 0; i < open.size(); ++i) {
    open[i] = open[i] && site.gate[i] == weakest;
    sharers += open[i];
  }
  ops::Kernel kernel = ops::prepare(site.graph, site.node);
  return [kernel, open, sharers](const Flow& flow) {
    std::vector<at::Tensor> gradients = per_unit_of(flow);
    if (sharers > 1)
      for (at::Tensor& gradient : gradients)
        if (gradient.defined()) gradient = gradient / sharers;
    hand_on(flow, pulled_back(kernel, flow.inputs, open, gradients));
  };
}

Step quotient(const Site& site) {
  Site numerator = site;
  if (numerator.open.size() > 1) numerator.open[1] = false;
  return derivative(numerator);
}

/// Homogeneous of degree two: the derivative counts twice.
Step square_sum(const Site& site) {
  return [step = derivative(site)](const Flow& flow) {
    step(flow);
    if (flow.to[0].scaled.defined()) flow.to[0].scaled = flow.to[0].scaled / 2;
  };
}

Step recurrent(const Site& site) {
  ops::Kernel kernel = ops::with_held_gates(ops::NodeView(site.graph, site.node));
  return [kernel, open = site.open](const Flow& flow) {
    hand_on(flow, pulled_back(kernel, flow.inputs, open, per_unit_of(flow)));
  };
}

}  // namespace flows
}  // namespace netmend::explain
