#include "localise/arachne.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <numeric>

#include "edits/places.h"
#include "executor/executor.h"
#include "localise/weight_gradient.h"
#include "model/guard.h"
#include "ops/op.h"

namespace netmend::localise {

using model::ValueId;
using Tensors = std::vector<at::Tensor>;

std::vector<size_t> pareto_front(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<size_t> order(a.size()), front;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t x, size_t y) { return a[x] != a[y] ? a[x] > a[y] : b[x] > b[y]; });
  double best = -1, last_a = 0, last_b = 0;
  for (size_t i : order) {
    const bool twin = !front.empty() && a[i] == last_a && b[i] == last_b;
    if (!(b[i] > best) && !twin) continue;
    front.push_back(i);
    best = std::max(best, b[i]), last_a = a[i], last_b = b[i];
  }
  return front;
}

namespace {

constexpr int64_t kMostInputs = 400;  ///< a side

std::vector<int64_t> some_of(const std::vector<int64_t>& samples) {
  std::vector<int64_t> chosen;
  for (int64_t i : stream::spread(int64_t(samples.size()), kMostInputs, 0.5)) chosen.push_back(samples[size_t(i)]);
  return chosen;
}

/// A layer whose weights can be blamed one by one.
struct Target {
  size_t layer;
  const model::Node* node;
  ValueId input, output;
  edits::Seen weight;
};

class Impact {
 public:
  Impact(const stream::Subject& subject, const observers::PredictionSettings& settings,
         const std::vector<Target>& targets)
      : subject_(subject), graph_(subject.batching.graph), targets_(targets) {
    executor::Request request;
    request.mode = executor::Mode::kPlain;
    request.given = graph_.inputs;
    // Gradients have to begin somewhere: the first layers' weights, given as variables, make everything behind them
    // one.
    for (const Target& target : targets_) request.given.push_back(target.weight.root);
    for (const Target& target : targets_)
      request.wanted.push_back(target.input), request.wanted.push_back(target.output);
    request.wanted.push_back(settings.head.output);
    run_.emplace(graph_, request);
    for (const Target& target : targets_) {
      model::Node bare = *target.node;
      bare.inputs.resize(2);
      alone_.push_back(ops::prepare(graph_, bare));
    }
  }

  /// By target: the sum over inputs of front × behind, in the shape that the operator reads the weights in.
  void add(const dataset::Batch& batch, Tensors& sums) const {
    at::AutoGradMode grad(true);
    Tensors given = subject_.feed.inputs(batch);
    for (const Target& target : targets_)
      given.push_back(graph_.constant(target.weight.root).detach().requires_grad_());
    Tensors values = run_->run(given);
    at::Tensor answers = values.back().sum();
    Tensors outputs;
    for (size_t t = 0; t < targets_.size(); ++t) outputs.push_back(values[2 * t + 1]);
    Tensors slopes = torch::autograd::grad({answers}, outputs, {}, false, false, true);
    for (size_t t = 0; t < targets_.size(); ++t) {
      const at::Tensor& output = outputs[t];
      at::Tensor behind = slopes[t].defined() ? slopes[t].abs() : at::ones_like(output);
      at::Tensor whole = behind.flatten(1).sum(1);
      std::vector<int64_t> shape(size_t(behind.dim()), 1);
      shape[0] = -1;
      behind = behind / whole.clamp_min(1e-30).reshape(shape);
      // front × behind summed over positions is |w| times the slope of Σ behind/D · D at |w|, where D = |x|·|w|.
      at::Tensor x = values[2 * t].detach().abs(),
                 w = targets_[t].weight.view.detach().abs().contiguous().requires_grad_(), d;
      const at::Tensor inputs[] = {x, w};
      ops::Call call(inputs, {&d, 1});
      alone_[t](call);
      at::Tensor share =
          at::where(d.detach() > 0, behind.detach() / d.detach().clamp_min(1e-30), at::zeros_like(d.detach()));
      at::Tensor found = torch::autograd::grad({(share * d).sum()}, {w})[0] * w.detach();
      sums[t] = sums[t].defined() ? sums[t] + found.to(at::kDouble) : found.to(at::kDouble);
    }
  }

 private:
  const stream::Subject& subject_;
  const model::Graph& graph_;
  const std::vector<Target>& targets_;
  std::optional<executor::Executor> run_;
  std::vector<ops::Kernel> alone_;
};

Tensors impacts(const stream::Subject& subject, const observers::PredictionSettings& settings,
                const std::vector<Target>& targets, const std::vector<int64_t>& samples) {
  Impact impact(subject, settings, targets);
  Tensors sums(targets.size());
  constexpr size_t kAtOnce = 32;
  for (size_t first = 0; first < samples.size(); first += kAtOnce) {
    std::vector<int64_t> some(samples.begin() + int64_t(first),
                              samples.begin() + int64_t(std::min(samples.size(), first + kAtOnce)));
    model::guarded([&] { return subject.model_name; }, [&] { impact.add(subject.data->read(some), sums); });
  }
  for (at::Tensor& sum : sums) sum = sum / double(std::max<size_t>(1, samples.size()));
  return sums;
}

}  // namespace

std::vector<BlamedWeight> arachne(const stream::Subject& subject, const observers::PredictionSettings& settings,
                                  const std::vector<model::Layer>& layers, const std::vector<int64_t>& failing,
                                  const std::vector<int64_t>& passing, int jobs,
                                  std::vector<std::string>* passed_over) {
  const model::Graph& graph = subject.batching.graph;
  const std::vector<int> made_by = model::producers(graph);
  std::vector<Target> targets;
  for (size_t l = 0; l < layers.size(); ++l) {
    const int number = made_by[size_t(subject.graph.nodes[size_t(layers[l].node)].outputs[0])];
    const model::Node& node = graph.nodes[size_t(number)];
    edits::Seen weight = edits::see(graph, layers[l].weight_input);
    const bool fits = (node.op == "Conv" || node.op == "Gemm" || node.op == "MatMul") &&
                      node.inputs[1] == layers[l].weight_input && weight.view.defined() && weight.refusal.empty() &&
                      weight.view.scalar_type() == at::kFloat && layers[l].batch_axis == 0 &&
                      subject.batching.kind == executor::Batching::kAny;
    if (fits)
      targets.push_back({l, &node, node.inputs[0], node.outputs[0], weight});
    else if (passed_over)
      passed_over->push_back(layers[l].name);
  }
  if (targets.empty()) return {};
  std::vector<ValueId> constants;
  for (const Target& target : targets) constants.push_back(target.weight.root);
  const std::vector<int64_t> sides[] = {some_of(failing), some_of(passing)};
  Tensors impact[2];
  std::map<ValueId, at::Tensor> slope[2];
  for (int side : {0, 1}) {
    impact[side] = impacts(subject, settings, targets, sides[side]);
    slope[side] = weight_gradients(subject, settings, constants, sides[side], jobs);
  }
  std::vector<BlamedWeight> all;
  std::vector<double> a, b;
  for (size_t t = 0; t < targets.size(); ++t) {
    const at::Tensor& view = targets[t].weight.view;
    // Where each number stands in the file: places seen the way the operator sees the weights.
    at::Tensor places = at::arange(graph.constant(targets[t].weight.root).numel(), at::kLong)
                            .as_strided(view.sizes(), view.strides())
                            .contiguous()
                            .view(-1);
    at::Tensor gl = slope[0].at(targets[t].weight.root).abs() / (1 + slope[1].at(targets[t].weight.root).abs());
    at::Tensor fi = (impact[0][t] / (1 + impact[1][t])).contiguous().view(-1);
    gl = gl.contiguous().view(-1).index_select(0, places);
    for (int64_t i = 0; i < fi.numel(); ++i) {
      all.push_back(
          {targets[t].layer, places.data_ptr<int64_t>()[i], fi.data_ptr<double>()[i], gl.data_ptr<double>()[i]});
      a.push_back(all.back().slope), b.push_back(all.back().impact);
    }
  }
  std::vector<BlamedWeight> front;
  for (size_t i : pareto_front(a, b)) front.push_back(all[i]);
  return front;
}

}  // namespace netmend::localise
