// RNN, GRU and LSTM, step by step with LibTorch operators; the products with the inputs are taken over the whole
// sequence at once. Written after the equations of the ONNX operator definitions; i, o, f, c, z, r, h are their gates.
#include "ops/recurrent.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "ops/arguments.h"
#include "ops/families.h"

namespace netmend::ops::families {
namespace {

using Activation = std::function<at::Tensor(const at::Tensor&)>;

/// By the name ONNX gives it, whatever its case; alpha and beta where it takes them.
Activation activation_named(const NodeView& node, const std::string& name, std::optional<double> a,
                            std::optional<double> b) {
  std::string key = lower(name);
  if (key == "tanh") return [](const at::Tensor& x) { return at::tanh(x); };
  if (key == "sigmoid") return [](const at::Tensor& x) { return at::sigmoid(x); };
  if (key == "relu") return [](const at::Tensor& x) { return at::relu(x); };
  if (key == "softsign") return [](const at::Tensor& x) { return x / (x.abs() + 1); };
  if (key == "softplus") return [](const at::Tensor& x) { return at::softplus(x); };
  if (key == "affine") return [a = a.value_or(1), b = b.value_or(0)](const at::Tensor& x) { return x * a + b; };
  if (key == "leakyrelu") return [a = a.value_or(0.01)](const at::Tensor& x) { return at::leaky_relu(x, a); };
  if (key == "elu") return [a = a.value_or(1)](const at::Tensor& x) { return at::elu(x, a); };
  if (key == "scaledtanh") {
    return [a = a.value_or(1), b = b.value_or(1)](const at::Tensor& x) { return at::tanh(x * b) * a; };
  }
  if (key == "hardsigmoid") {
    return [a = a.value_or(0.2), b = b.value_or(0.5)](const at::Tensor& x) { return at::clamp(x * a + b, 0.0, 1.0); };
  }
  if (key == "thresholdedrelu") {
    return [a = a.value_or(1)](const at::Tensor& x) { return at::where(x >= a, x, at::zeros_like(x)); };
  }
  node.refuse("activation {} is not supported", name);
}

/// Alphas and betas are listed only for the activations that take them, in order.
struct TakenNumbers {
  std::vector<double> numbers;
  size_t next = 0;
  std::optional<double> take(bool takes) {
    return takes && next < numbers.size() ? std::optional<double>(numbers[next++]) : std::nullopt;
  }
};

bool takes_alpha(const std::string& name) {
  std::string key = lower(name);
  return key == "affine" || key == "leakyrelu" || key == "thresholdedrelu" || key == "scaledtanh" ||
         key == "hardsigmoid" || key == "elu";
}

bool takes_beta(const std::string& name) {
  std::string key = lower(name);
  return key == "affine" || key == "scaledtanh" || key == "hardsigmoid";
}

struct Recurrent {
  int64_t directions = 1, hidden = 0;
  bool reverse = false, batch_first = false, input_forget = false, linear_before_reset = false;
  bool held_gates = false;  // with_held_gates
  std::optional<double> clip;
  std::vector<Activation> activations;  // those of the second direction after those of the first

  Recurrent(const NodeView& node, std::vector<std::string> defaults);
  void read_activations(const NodeView& node, std::vector<std::string> defaults);
  at::Tensor clipped(const at::Tensor& x) const { return clip ? at::clamp(x, -*clip, *clip) : x; }
  /// The n-th activation of a direction, applied to what clip leaves.
  at::Tensor act(int64_t direction, size_t n, const at::Tensor& x) const {
    return activations[direction * (activations.size() / directions) + n](clipped(x));
  }
  at::Tensor gate(int64_t direction, size_t n, const at::Tensor& x) const {
    at::Tensor y = act(direction, n, x);
    return held_gates ? y.detach() : y;
  }
  at::Tensor signal(int64_t direction, size_t n, const at::Tensor& x) const {
    at::Tensor y = act(direction, n, x);
    if (!held_gates) return y;
    at::Tensor above = y - act(direction, n, at::zeros_like(x)), small = x.abs() < 1e-6;
    at::Tensor slope = (at::where(small, at::zeros_like(x), above / x)).detach();
    return x * slope + (y - x * slope).detach();
  }
};

Recurrent::Recurrent(const NodeView& node, std::vector<std::string> defaults) {
  std::string direction = node.text("direction", "forward");
  node.require(direction == "forward" || direction == "reverse" || direction == "bidirectional", "direction is {}",
               direction);
  directions = direction == "bidirectional" ? 2 : 1;
  reverse = direction == "reverse";
  hidden = node.integer("hidden_size", 0);
  int64_t layout = node.integer("layout", 0);
  node.require(layout == 0 || layout == 1, "layout is {}", layout);
  batch_first = layout == 1;
  input_forget = node.integer("input_forget", 0) != 0;
  linear_before_reset = node.integer("linear_before_reset", 0) != 0;
  if (node.has("clip")) clip = node.real("clip", 0);
  node.require(!clip || *clip >= 0, "clip is negative");
  read_activations(node, std::move(defaults));
}

void Recurrent::read_activations(const NodeView& node, std::vector<std::string> defaults) {
  std::vector<std::string> names = node.texts("activations");
  size_t needed = defaults.size() * directions;
  if (names.empty()) {
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  }
  node.require(names.size() == needed, "has {} activations, expected {}", names.size(), needed);
  TakenNumbers alphas{node.reals("activation_alpha")}, betas{node.reals("activation_beta")};
  for (const std::string& name : names) {
    auto alpha = alphas.take(takes_alpha(name)), beta = betas.take(takes_beta(name));
    activations.push_back(activation_named(node, name, alpha, beta));
  }
}

/// What all three share: the operands of one call, time first.
struct Sequence {
  at::Tensor x, w, r, bias, lengths;
  int64_t steps, batch, hidden, gates;

  Sequence(const Call& call, const Recurrent& form, int64_t gate_count);
  /// Times × batch × gates·hidden: the inputs' part of every gate, with the biases that may be added early.
  at::Tensor projected(int64_t direction, const at::Tensor& early_bias) const {
    return at::matmul(x, w[direction].t()) + early_bias;
  }
  at::Tensor zero_bias() const { return at::zeros({gates * hidden}, x.options()); }
  at::Tensor w_bias(int64_t d) const { return bias.defined() ? bias[d].narrow(0, 0, gates * hidden) : zero_bias(); }
  at::Tensor r_bias(int64_t d) const {
    return bias.defined() ? bias[d].narrow(0, gates * hidden, gates * hidden) : zero_bias();
  }
};

void require_shape(const at::Tensor& tensor, at::IntArrayRef shape, const char* name) {
  if (tensor.sizes() != shape) fail("{} has the wrong shape", name);
}

Sequence::Sequence(const Call& call, const Recurrent& form, int64_t gate_count) : gates(gate_count) {
  x = call.in(0), w = call.in(1), r = call.in(2);
  if (x.dim() != 3 || w.dim() != 3 || r.dim() != 3) fail("X, W and R must have 3 axes");
  if (form.batch_first) x = x.transpose(0, 1);
  steps = x.size(0), batch = x.size(1), hidden = r.size(2);
  if (form.hidden > 0 && form.hidden != hidden) fail("hidden_size is {}, R is for {}", form.hidden, hidden);
  require_shape(w, {form.directions, times(gates, hidden), x.size(2)}, "W");
  require_shape(r, {form.directions, times(gates, hidden), hidden}, "R");
  if (call.has(3)) require_shape(bias = call.in(3), {form.directions, 2 * gates * hidden}, "B");
  if (!call.has(4)) return;
  lengths = call.in(4).to(at::kLong);
  require_shape(lengths, {batch}, "sequence_lens");
  if (at::any((lengths < 0) | (lengths > steps)).item<bool>()) fail("a sequence length is outside 0 to {}", steps);
  if (at::all(lengths == steps).item<bool>()) lengths = at::Tensor();
}

/// An initial state as directions × batch × hidden; one for a single input serves every input.
at::Tensor initial_state(const Call& call, size_t slot, const Recurrent& form, const Sequence& s) {
  std::array<int64_t, 3> expected{form.directions, s.batch, s.hidden};
  if (!call.has(slot)) return at::zeros(expected, s.x.options());
  at::Tensor state = call.in(slot);
  if (state.dim() != 3) fail("an initial state has {} axes, expected 3", state.dim());
  if (form.batch_first) state = state.transpose(0, 1);
  if (state.size(1) == 1 && s.batch != 1) state = state.expand({state.size(0), s.batch, state.size(2)});
  require_shape(state, expected, "an initial state");
  return state;
}

/// Hidden (and cell) state after a step.
struct State {
  at::Tensor h, c;
};

/// Runs one direction. `step(direction, time, state)` gives the next state; inputs whose sequence has ended keep
/// theirs, and their outputs are zero from there on.
template <typename Step>
std::pair<at::Tensor, State> run_direction(const Sequence& s, int64_t direction, bool backwards, State state,
                                           Step step) {
  std::vector<at::Tensor> outputs(s.steps);
  for (int64_t i = 0; i < s.steps; ++i) {
    int64_t t = backwards ? s.steps - 1 - i : i;
    State next = step(direction, t, state);
    at::Tensor y = next.h;
    if (s.lengths.defined()) {
      at::Tensor runs = (s.lengths > t).unsqueeze(1);
      y = at::where(runs, next.h, at::zeros({}, s.x.options()));
      next.h = at::where(runs, next.h, state.h);
      if (next.c.defined()) next.c = at::where(runs, next.c, state.c);
    }
    outputs[t] = y;
    state = next;
  }
  at::Tensor all = outputs.empty() ? at::zeros({0, s.batch, s.hidden}, s.x.options()) : at::stack(outputs);
  return {all, state};
}

template <typename Step>
void run(Call& call, const Recurrent& form, const Sequence& s, const at::Tensor& h0, const at::Tensor& c0, Step step) {
  std::vector<at::Tensor> outputs, last_h, last_c;
  for (int64_t d = 0; d < form.directions; ++d) {
    State start{h0[d], c0.defined() ? c0[d] : at::Tensor()};
    auto [all, last] = run_direction(s, d, form.reverse || d == 1, start, step);
    outputs.push_back(all), last_h.push_back(last.h);
    if (c0.defined()) last_c.push_back(last.c);
  }
  auto states = [&](const std::vector<at::Tensor>& list) { return at::stack(list, form.batch_first ? 1 : 0); };
  at::Tensor y = at::stack(outputs, 1);  // time × direction × batch × hidden
  call.set(0, form.batch_first ? y.permute({2, 0, 1, 3}) : y);
  call.set(1, states(last_h));
  if (c0.defined()) call.set(2, states(last_c));
}

void run_rnn(Call& call, const Recurrent& form) {
  Sequence s(call, form, 1);
  std::vector<at::Tensor> gates;
  for (int64_t d = 0; d < form.directions; ++d) gates.push_back(s.projected(d, s.w_bias(d) + s.r_bias(d)));
  run(call, form, s, initial_state(call, 5, form, s), at::Tensor(), [&](int64_t d, int64_t t, const State& state) {
    return State{form.signal(d, 0, at::addmm(gates[d][t], state.h, s.r[d].t())), at::Tensor()};
  });
}

/// z and r may take both biases early; the recurrent bias of h waits when the reset gate multiplies it.
at::Tensor gru_early_bias(const Sequence& s, int64_t d, bool linear_before_reset) {
  at::Tensor r = s.r_bias(d);
  if (!linear_before_reset) return s.w_bias(d) + r;
  at::Tensor held = at::cat({r.narrow(0, 0, 2 * s.hidden), at::zeros({s.hidden}, r.options())});
  return s.w_bias(d) + held;
}

void run_gru(Call& call, const Recurrent& form) {
  Sequence s(call, form, 3);
  int64_t n = s.hidden;
  std::vector<at::Tensor> gates, late;
  for (int64_t d = 0; d < form.directions; ++d) {
    gates.push_back(s.projected(d, gru_early_bias(s, d, form.linear_before_reset)));
    late.push_back(s.r_bias(d).narrow(0, 2 * n, n));
  }
  run(call, form, s, initial_state(call, 5, form, s), at::Tensor(), [&](int64_t d, int64_t t, const State& state) {
    at::Tensor now = gates[d][t], zr = s.r[d].narrow(0, 0, 2 * n), rh = s.r[d].narrow(0, 2 * n, n);
    at::Tensor both = form.gate(d, 0, at::addmm(now.narrow(1, 0, 2 * n), state.h, zr.t()));
    at::Tensor z = both.narrow(1, 0, n), r = both.narrow(1, n, n), fresh = now.narrow(1, 2 * n, n);
    at::Tensor past = form.linear_before_reset ? r * at::addmm(late[d], state.h, rh.t()) : at::mm(r * state.h, rh.t());
    at::Tensor h = form.signal(d, 1, fresh + past);
    return State{(1 - z) * h + z * state.h, at::Tensor()};
  });
}

void run_lstm(Call& call, const Recurrent& form) {
  Sequence s(call, form, 4);
  int64_t n = s.hidden;
  at::Tensor peep = call.has(7) ? call.in(7) : at::Tensor();
  if (peep.defined()) require_shape(peep, {form.directions, 3 * n}, "P");
  std::vector<at::Tensor> gates;
  for (int64_t d = 0; d < form.directions; ++d) gates.push_back(s.projected(d, s.w_bias(d) + s.r_bias(d)));
  auto look = [&](int64_t d, int64_t gate, const at::Tensor& c) { return peep[d].narrow(0, gate * n, n) * c; };
  auto step = [&](int64_t d, int64_t t, const State& state) {
    at::Tensor all = at::addmm(gates[d][t], state.h, s.r[d].t());
    at::Tensor i = all.narrow(1, 0, n), o = all.narrow(1, n, n), f = all.narrow(1, 2 * n, n);
    if (peep.defined()) i = i + look(d, 0, state.c), f = f + look(d, 2, state.c);
    i = form.gate(d, 0, i);
    f = form.input_forget ? 1 - i : form.gate(d, 0, f);
    at::Tensor c = f * state.c + i * form.signal(d, 1, all.narrow(1, 3 * n, n));
    if (peep.defined()) o = o + look(d, 1, c);
    return State{form.gate(d, 0, o) * form.signal(d, 2, c), c};
  };
  run(call, form, s, initial_state(call, 5, form, s), initial_state(call, 6, form, s), step);
}

}  // namespace

namespace {

Kernel kernel_of(const NodeView& node, std::vector<std::string> activations, void (*run)(Call&, const Recurrent&),
                 bool held_gates) {
  Recurrent form(node, std::move(activations));
  form.held_gates = held_gates;
  return [=](Call& call) { run(call, form); };
}

Kernel rnn_of(const NodeView& node, bool held) { return kernel_of(node, {"Tanh"}, run_rnn, held); }
Kernel gru_of(const NodeView& node, bool held) { return kernel_of(node, {"Sigmoid", "Tanh"}, run_gru, held); }
Kernel lstm_of(const NodeView& node, bool held) { return kernel_of(node, {"Sigmoid", "Tanh", "Tanh"}, run_lstm, held); }

}  // namespace

Kernel rnn(const NodeView& node) { return rnn_of(node, false); }
Kernel gru(const NodeView& node) { return gru_of(node, false); }
Kernel lstm(const NodeView& node) { return lstm_of(node, false); }

/// The weight's axis 1 counts gates × hidden features; the units are the hidden features of every direction.
std::optional<Units> recurrent_units(const NodeView& node) {
  at::Tensor weight = node.constant(1), recurrent = node.constant(2);
  if (!weight.defined() || weight.dim() != 3 || !recurrent.defined() || recurrent.dim() != 3) return std::nullopt;
  return Units{.count = recurrent.size(0) * recurrent.size(2),
               .weight_slot = 1,
               .weight_axis = 1,
               .bias_slot = node.has_input(3) ? 3 : -1,
               .unit_axis = -1,
               .batch_axis = node.integer("layout", 0) == 1 ? 0 : 2};
}

// clang-format off
std::span<const Op> recurrent_rows() {
  static constexpr Op kRows[] = {
      {.name = "GRU", .prepare = gru, .kind = Kind::kLinear, .units = recurrent_units},
      {.name = "LSTM", .prepare = lstm, .kind = Kind::kLinear, .units = recurrent_units},
      {.name = "RNN", .prepare = rnn, .kind = Kind::kLinear, .units = recurrent_units},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families

namespace netmend::ops {

Kernel with_held_gates(const NodeView& node) {
  if (node.node().op == "LSTM") return families::lstm_of(node, true);
  if (node.node().op == "GRU") return families::gru_of(node, true);
  return families::rnn_of(node, true);
}

}  // namespace netmend::ops
