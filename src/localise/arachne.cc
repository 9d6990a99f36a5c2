#include "localise/arachne.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <numeric>

#include "edits/places.h"
#include "executor/executor.h"
#include "executor/runtime.h"
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
  bool recurrent = false;
};

bool is_recurrent(const model::Node& node) { return node.op == "LSTM" || node.op == "GRU" || node.op == "RNN"; }

/// Of a recurrent operator the output that something reads: all steps, else the last one.
ValueId read_output(const model::Graph& graph, const model::Node& node) {
  const auto readers = model::consumers(graph);
  for (ValueId id : node.outputs)
    if (id != model::kAbsent &&
        (!readers[size_t(id)].empty() || std::count(graph.outputs.begin(), graph.outputs.end(), id)))
      return id;
  return node.outputs[0];
}

/// Front × behind of the weights that a recurrent layer reads its inputs with, directions × gates·units × inputs. What
/// lies behind a unit counts for each of its gates; steps are added up. `x`: steps × inputs × width, `gradient` of all
/// steps (steps × directions × inputs × units) or of the last one.
at::Tensor recurrent_impact(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& gradient) {
  const int64_t directions = weight.size(0), rows = weight.size(1), steps = x.size(0);
  at::Tensor each =
      gradient.dim() == 4 ? gradient.abs() : gradient.abs().unsqueeze(0).expand({steps, -1, -1, -1}) / double(steps);
  at::Tensor whole = each.sum({0, 1, 3}, true).clamp_min(1e-30);
  each = (each / whole).repeat({1, 1, 1, rows / each.size(3)});  // steps × directions × inputs × gates·units
  Tensors found;
  for (int64_t d = 0; d < directions; ++d) {
    at::Tensor w = weight[d].abs(), sums = at::matmul(x.abs(), w.t());
    at::Tensor share = at::where(sums > 0, each.select(1, d) / sums.clamp_min(1e-30), at::zeros_like(sums));
    found.push_back(at::matmul(share.flatten(0, 1).t(), x.abs().flatten(0, 1)) * w);
  }
  return at::stack(found);
}

class Impact {
 public:
  Impact(const stream::Subject& subject, const observers::PredictionSettings& settings,
         const std::vector<Target>& targets)
      : subject_(subject), graph_(subject.batching.graph), targets_(targets) {
    executor::Request request;
    request.mode = executor::Mode::kPlain;
    request.device = subject.device;
    request.given = graph_.inputs;
    // Gradients have to begin somewhere: the first layers' weights, given as variables, make everything behind them
    // one.
    for (const Target& target : targets_) request.given.push_back(target.weight.root);
    for (const Target& target : targets_)
      request.wanted.push_back(target.input), request.wanted.push_back(target.output);
    request.wanted.push_back(settings.head.logits);  // probabilities always add up to 1: their sum has no gradient
    run_.emplace(graph_, request);
    for (const Target& target : targets_) {
      model::Node bare = *target.node;
      bare.inputs.resize(2);
      alone_.push_back(target.recurrent ? ops::Kernel() : ops::prepare(graph_, bare));
    }
  }

  /// By target: the sum over inputs of what lies behind, in the shape of the outputs without inputs.
  void add_behind(const dataset::Batch& batch, Tensors& sums) const {
    run(batch, [&](size_t t, const at::Tensor&, const at::Tensor&, const at::Tensor& behind) {
      if (targets_[t].recurrent) return;
      at::Tensor found = behind.sum(0, true);
      sums[t] = sums[t].defined() ? sums[t] + found : found;
    });
  }

  /// By target: the sum over inputs of front × behind, in the shape that the operator reads the weights in. `means`:
  /// what lies behind on average, taken instead of each input's own where it is defined.
  void add(const dataset::Batch& batch, const Tensors& means, Tensors& sums) const {
    run(batch, [&](size_t t, const at::Tensor& input, const at::Tensor& gradient, const at::Tensor& own) {
      at::Tensor found;
      if (targets_[t].recurrent) {
        found = recurrent_impact(input, targets_[t].weight.view.detach().to(subject_.device), gradient);
      } else {
        const at::Tensor behind = means.empty() ? own : means[t].expand_as(own);
        // front × behind summed over positions is |w| times the gradient of Σ behind/D · D at |w|, where D = |x|·|w|.
        at::Tensor x = input.abs(), d,
                   w = targets_[t].weight.view.detach().to(subject_.device).abs().contiguous().requires_grad_();
        const at::Tensor inputs[] = {x, w};
        ops::Call call(inputs, {&d, 1});
        alone_[t](call);
        at::Tensor share = at::where(d.detach() > 0, behind / d.detach().clamp_min(1e-30), at::zeros_like(d.detach()));
        found = torch::autograd::grad({(share * d).sum()}, {w})[0] * w.detach();
      }
      sums[t] = sums[t].defined() ? sums[t] + found.to(at::kDouble) : found.to(at::kDouble);
    });
  }

 private:
  /// Calls `use` for each target with its inputs, the gradient of the sum of outputs at its own outputs, and that
  /// gradient's size as a share of the layer, by input.
  template <typename Use>
  void run(const dataset::Batch& batch, const Use& use) const {
    at::AutoGradMode grad(true);
    Tensors given = subject_.feed.inputs(batch);
    for (const Target& target : targets_)
      given.push_back(graph_.constant(target.weight.root).detach().to(subject_.device).requires_grad_());
    Tensors values = run_->run(given);
    at::Tensor outputs_sum = values.back().sum();
    Tensors outputs;
    for (size_t t = 0; t < targets_.size(); ++t) outputs.push_back(values[2 * t + 1]);
    Tensors gradients = torch::autograd::grad({outputs_sum}, outputs, {}, false, false, true);
    for (size_t t = 0; t < targets_.size(); ++t) {
      at::Tensor gradient = gradients[t].defined() ? gradients[t].detach() : at::zeros_like(outputs[t]).detach();
      at::Tensor behind = gradient.abs(), whole = behind.flatten(1).sum(1);
      std::vector<int64_t> shape(size_t(behind.dim()), 1);
      shape[0] = -1;
      if (!targets_[t].recurrent) behind = behind / whole.clamp_min(1e-30).reshape(shape);
      use(t, values[2 * t].detach(), gradient, behind);
    }
  }

  const stream::Subject& subject_;
  const model::Graph& graph_;
  const std::vector<Target>& targets_;
  std::optional<executor::Executor> run_;
  std::vector<ops::Kernel> alone_;
};

Tensors impacts(const stream::Subject& subject, const observers::PredictionSettings& settings,
                const std::vector<Target>& targets, const std::vector<int64_t>& samples, bool as_published) {
  Impact impact(subject, settings, targets);
  Tensors sums(targets.size()), means;
  const size_t at_once = subject.device.is_cpu() ? 32 : size_t(std::min<int64_t>(512, executor::device_batch_limit()));
  auto all = [&](const auto& add) {
    for (size_t first = 0; first < samples.size(); first += at_once) {
      std::vector<int64_t> some(samples.begin() + int64_t(first),
                                samples.begin() + int64_t(std::min(samples.size(), first + at_once)));
      model::guarded([&] { return subject.model_name; }, [&] { add(subject.data->read(some)); });
    }
  };
  if (as_published) {
    means.resize(targets.size());
    all([&](const dataset::Batch& batch) { impact.add_behind(batch, means); });
    for (at::Tensor& mean : means)
      if (mean.defined()) mean = mean / double(std::max<size_t>(1, samples.size()));
  }
  all([&](const dataset::Batch& batch) { impact.add(batch, means, sums); });
  for (at::Tensor& sum : sums) sum = (sum / double(std::max<size_t>(1, samples.size()))).to(at::kCPU);
  return sums;
}

}  // namespace

std::vector<BlamedWeight> arachne(const stream::Subject& subject, const observers::PredictionSettings& settings,
                                  const std::vector<model::Layer>& layers, const std::vector<int64_t>& failing,
                                  const std::vector<int64_t>& passing, int jobs, std::vector<std::string>* passed_over,
                                  const ArachneOptions& options) {
  const model::Graph& graph = subject.batching.graph;
  const std::vector<int> made_by = model::producers(graph);
  std::vector<Target> targets;
  for (size_t l = 0; l < layers.size(); ++l) {
    const int number = made_by[size_t(subject.graph.nodes[size_t(layers[l].node)].outputs[0])];
    const model::Node& node = graph.nodes[size_t(number)];
    edits::Seen weight = edits::see(graph, layers[l].weight_input);
    const bool recurrent =
        is_recurrent(node) && weight.view.defined() && weight.view.dim() == 3 && !node.attributes.count("layout");
    const bool plain = (node.op == "Conv" || node.op == "Gemm" || node.op == "MatMul") && layers[l].batch_axis == 0;
    const bool fits = (plain || recurrent) && node.inputs[1] == layers[l].weight_input && weight.view.defined() &&
                      weight.refusal.empty() && weight.view.scalar_type() == at::kFloat &&
                      subject.batching.kind == executor::Batching::kAny;
    if (fits)
      targets.push_back(
          {l, &node, node.inputs[0], recurrent ? read_output(graph, node) : node.outputs[0], weight, recurrent});
    else if (passed_over)
      passed_over->push_back(layers[l].name);
  }
  if (targets.empty()) return {};
  std::vector<ValueId> constants;
  for (const Target& target : targets) constants.push_back(target.weight.root);
  // As many passing inputs as failing ones: gradients are sums.
  std::vector<int64_t> bad = some_of(failing), good;
  std::vector<size_t> order(passing.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (options.as_published && options.passing_classes.size() == passing.size())  // every class has its share
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return options.passing_classes[a] < options.passing_classes[b]; });
  for (int64_t i : stream::spread(int64_t(passing.size()), int64_t(bad.size()), 0.5))
    good.push_back(passing[order[size_t(i)]]);
  const std::vector<int64_t> sides[] = {std::move(bad), std::move(good)};
  Tensors impact[2];
  std::map<ValueId, at::Tensor> gradient[2];
  for (int side : {0, 1}) {
    impact[side] = impacts(subject, settings, targets, sides[side], options.as_published);
    gradient[side] = weight_gradients(subject, settings, constants, sides[side], jobs);
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
    at::Tensor gl = gradient[0].at(targets[t].weight.root).abs() / (1 + gradient[1].at(targets[t].weight.root).abs());
    at::Tensor fi = (impact[0][t] / (1 + impact[1][t])).nan_to_num(0, 0, 0).contiguous().view(-1);
    gl = gl.nan_to_num(0, 0, 0).contiguous().view(-1).index_select(0, places);
    for (int64_t i = 0; i < fi.numel(); ++i) {
      all.push_back(
          {targets[t].layer, places.data_ptr<int64_t>()[i], fi.data_ptr<double>()[i], gl.data_ptr<double>()[i]});
      a.push_back(all.back().gradient), b.push_back(all.back().impact);
    }
  }
  std::vector<BlamedWeight> front;
  for (size_t i : pareto_front(a, b)) front.push_back(all[i]);
  return front;
}

}  // namespace netmend::localise
