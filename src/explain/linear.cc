// Operators with weights: the rules of relevance propagation in terms of two functions of the operator, its product
// with any weights of its shape, and the transpose of that.
#include <ATen/ATen.h>

#include "explain/flow.h"
#include "ops/window.h"

namespace netmend::explain {
namespace {

using at::Tensor;

/// A linear operator at its place: one input carries the quantity, another one is the weight.
struct Linear {
  ops::Kernel kernel;
  size_t quantity = 0, weight_slot = 1;
  size_t inputs = 2;    ///< without the bias
  Tensor weight, bias;  ///< bias: as it is added to the output; undefined for none
  std::function<Tensor(const Tensor& x, const Tensor& w, const Tensor& gradient)> fast_transposed;

  Tensor run(const Tensor& x, const Tensor& w) const {
    std::vector<Tensor> given(inputs), outputs(1);
    given[quantity] = x, given[weight_slot] = w;
    ops::Call call(given, outputs, 0, false, 0, x.scalar_type());
    kernel(call);
    return outputs[0];
  }
  Tensor transposed(const Tensor& x, const Tensor& w, const Tensor& gradient) const {
    if (fast_transposed) return fast_transposed(x, w, gradient);
    std::vector<Tensor> given(inputs);
    std::vector<bool> open(inputs);
    given[quantity] = x, given[weight_slot] = w, open[quantity] = true;
    return pulled_back(kernel, given, open, {gradient})[quantity];
  }
};

/// Input gradient of a convolution without running it again; oneDNN is ten times slower for few channels.
Tensor convolution_transposed(const ops::WindowAttributes& form, int64_t groups, const Tensor& x, const Tensor& w,
                              const Tensor& gradient) {
  at::IntArrayRef sizes = x.sizes().slice(2), kernel = w.sizes().slice(2);
  ops::Window window = ops::window_over(form, kernel, sizes);
  const bool even = window.symmetric();
  Tensor padded = even ? x : ops::pad_spatial(x, window.begin, window.end, 0);
  std::vector<int64_t> none(window.rank(), 0);
  const std::vector<int64_t>& padding = even ? window.begin : none;
  const bool plain = groups == 1 && x.dim() == 4 && window.dilation == std::vector<int64_t>{1, 1};
  Tensor found =
      plain && x.size(1) <= 3 && x.is_cpu()
          ? std::get<0>(at::_slow_conv2d_backward(gradient.contiguous(), padded.contiguous(), w.contiguous(), kernel,
                                                  window.stride, padding, {true, false, false}))
          : std::get<0>(at::convolution_backward(gradient, padded, w, c10::nullopt, window.stride, padding,
                                                 window.dilation, false, none, groups, {true, false, false}));
  if (even) return found;
  for (size_t i = 0; i < window.rank(); ++i) found = found.narrow(int64_t(i) + 2, window.begin[i], sizes[i]);
  return found;
}

std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)> fast_transposed(const Site& site, size_t quantity) {
  ops::NodeView view(site.graph, site.node);
  const std::string& op = site.node.op;
  if (op == "Conv" && quantity == 0)
    return [form = ops::WindowAttributes(view), groups = view.integer("group", 1)](const Tensor& x, const Tensor& w,
                                                                                   const Tensor& gradient) {
      return convolution_transposed(form, groups, x, w, gradient);
    };
  if (op == "Gemm" && quantity == 0 && view.integer("transA", 0) == 0)
    return [turned = view.integer("transB", 0) != 0, alpha = view.real("alpha", 1)](const Tensor&, const Tensor& w,
                                                                                    const Tensor& gradient) {
      Tensor back = at::mm(gradient, turned ? w : w.t());
      return alpha == 1 ? back : back * alpha;
    };
  if (op == "MatMul" && quantity == 0 && view.constant(1).defined() && view.constant(1).dim() == 2)
    return [](const Tensor&, const Tensor& w, const Tensor& gradient) { return at::matmul(gradient, w.t()); };
  return {};
}

/// A bias as it is added to the output.
Tensor bias_of(const Site& site, const ops::NodeView& view) {
  Tensor bias;
  if (site.node.op == "Gemm" && view.has_input(2)) bias = view.constant(2) * view.real("beta", 1);
  if ((site.node.op == "Conv" || site.node.op == "ConvTranspose") && view.has_input(2)) {
    std::vector<int64_t> along(size_t(view.constant(1).dim()), 1);
    along[1] = -1;
    bias = view.constant(2).reshape(along);
  }
  if (site.bias.defined()) bias = bias.defined() ? bias + site.bias : site.bias;
  return bias;
}

Tensor above_zero(const Tensor& t) { return at::clamp_min(t, 0); }
Tensor below_zero(const Tensor& t) { return at::clamp_max(t, 0); }

/// Sums of the contributions x·w of one sign.
struct Signed {
  Tensor w_plus, w_minus, x_plus, x_minus;  ///< x_minus undefined when there is nothing below 0
  Signed(const Linear& op, const Tensor& x) : w_plus(above_zero(op.weight)), w_minus(below_zero(op.weight)) {
    x_plus = above_zero(x);
    if (at::any(x < 0).item<bool>()) x_minus = below_zero(x);
  }
  Tensor plus(const Linear& op) const {
    Tensor sum = op.run(x_plus, w_plus);
    if (x_minus.defined()) sum = sum + op.run(x_minus, w_minus);
    return op.bias.defined() ? sum + above_zero(op.bias) : sum;
  }
  Tensor minus(const Linear& op) const {
    Tensor sum = op.run(x_plus, w_minus);
    if (x_minus.defined()) sum = sum + op.run(x_minus, w_plus);
    return op.bias.defined() ? sum + below_zero(op.bias) : sum;
  }
  /// What a unit of x is worth when positive contributions are worth `up` and negative ones `down` by output.
  Tensor worth(const Linear& op, const Tensor& x, const Tensor& up, const Tensor& down) const {
    Tensor above = op.transposed(x, w_plus, up) + op.transposed(x, w_minus, down);
    if (!x_minus.defined()) return above;
    return at::where(x < 0, op.transposed(x, w_minus, up) + op.transposed(x, w_plus, down), above);
  }
};

Tensor epsilon_share(const Tensor& z, const Message& from, double epsilon) {
  Tensor kept = z + at::where(z < 0, at::full({}, -epsilon, z.options()), at::full({}, epsilon, z.options()));
  Tensor relevance = from.relevance(z);
  return epsilon > 0 ? relevance / kept : over(relevance, z);
}

/// What a bias kept is handed to the inputs that reach its output, to each the same: shared out as it is, since inputs
/// that are 0 get it too. `per_bias`: what a unit of the bias is worth, by output.
Tensor spread(const Linear& op, const Tensor& x, const Tensor& per_bias) {
  Tensor connected = at::ones_like(op.weight), inputs = op.run(at::ones_like(x), connected);
  return op.transposed(x, connected, op.bias * per_bias / inputs);
}

void share_out(const Linear& op, const Rule& rule, const Tensor& x, const Tensor& z, const Message& from, Message& to) {
  const bool spreads = rule.spread_bias && op.bias.defined();
  switch (rule.kind) {
    case Rule::kZ: {
      Tensor share = from.per_unit(z);
      to.scaled = op.transposed(x, op.weight, share);
      if (spreads) to.loose = spread(op, x, share);
      return;
    }
    case Rule::kEpsilon: {
      Tensor share = epsilon_share(z, from, rule.parameter);
      to.scaled = op.transposed(x, op.weight, share);
      if (spreads) to.loose = spread(op, x, share);
      return;
    }
    case Rule::kGamma: {
      Signed parts(op, x);
      Tensor up = z >= 0, relevance = from.relevance(z), none = at::zeros({}, z.options());
      Tensor strong = at::where(up, parts.plus(op), parts.minus(op));
      Tensor share = over(relevance, z + rule.parameter * strong);
      to.scaled = op.transposed(x, op.weight, share) +
                  parts.worth(op, x, at::where(up, share, none), at::where(up, none, share)) * rule.parameter;
      if (spreads) {
        Tensor own = at::where(up, (op.bias > 0).to(z.scalar_type()), (op.bias < 0).to(z.scalar_type()));
        to.loose = spread(op, x, share * (1 + rule.parameter * own));
      }
      return;
    }
    case Rule::kAlphaBeta: {
      Signed parts(op, x);
      Tensor relevance = from.relevance(z);
      Tensor up = over(relevance, parts.plus(op)) * rule.parameter,
             down = over(relevance, parts.minus(op)) * (1 - rule.parameter);
      to.scaled = parts.worth(op, x, up, down);
      if (spreads) to.loose = spread(op, x, at::where(op.bias > 0, up, down));
      return;
    }
    case Rule::kFlat:
    case Rule::kW2: {
      Tensor w = rule.kind == Rule::kFlat ? at::ones_like(op.weight) : op.weight * op.weight;
      to.loose = op.transposed(x, w, over(from.relevance(z), op.run(at::ones_like(x), w)));
      return;
    }
  }
}

}  // namespace

Step flows::linear(const Site& site) {
  if (site.open.size() > 2 && site.open[2]) {  // what is added comes from the inputs too
    Site added = site, multiplied = site;
    added.open[0] = added.open[1] = multiplied.open[2] = false;
    if (!site.open[0] || !site.open[1]) return derivative(site);
    return [sum = derivative(added), rest = product(multiplied)](const Flow& flow) { sum(flow), rest(flow); };
  }
  if (site.open[0] == site.open.at(1)) return product(site);
  Linear op;
  op.quantity = site.open[0] ? 0 : 1;
  op.weight_slot = 1 - op.quantity;
  op.kernel = ops::prepare(site.graph, site.node);
  ops::NodeView view(site.graph, site.node);
  op.weight = view.constant(op.weight_slot);
  if (!op.weight.defined() || (view.has_input(2) && !view.constant(2).defined())) {
    // A weight that is computed, but not from the inputs: shared out in proportion.
    return derivative(site);
  }
  op.bias = bias_of(site, view);
  op.fast_transposed = fast_transposed(site, op.quantity);
  return [op = std::move(op), rule = site.rule](const Flow& flow) {
    share_out(op, rule, flow.inputs[op.quantity], flow.outputs[0], flow.from[0], flow.to[op.quantity]);
  };
}

}  // namespace netmend::explain
