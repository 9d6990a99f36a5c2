#include "explain/relevance.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "executor/executor.h"
#include "executor/optimise.h"
#include "explain/flow.h"
#include "explain/paths.h"
#include "model/guard.h"

namespace netmend::explain {

using model::Graph;
using model::kAbsent;
using model::Node;
using model::ValueId;
using Tensors = std::vector<at::Tensor>;

namespace {

at::Tensor as_run(const at::Tensor& tensor, const Options& options) {
  at::ScalarType type = tensor.scalar_type();
  if (options.precision == at::kDouble && type == at::kFloat) type = at::kDouble;
  return tensor.to(options.device, type);
}

}  // namespace

at::Tensor logit_columns(const at::Tensor& logits) {
  if (logits.dim() == 0) return logits.reshape({1, 1});
  if (logits.dim() == 1) return logits.unsqueeze(1);
  int64_t wide = 0, columns = 1;
  for (int64_t axis = 1; axis < logits.dim(); ++axis) {
    wide += logits.size(axis) > 1;
    columns *= logits.size(axis);
  }
  if (wide > 1)
    throw InputError(fmt::format("the output has {} for each input: more than one prediction to explain",
                                 shape_text({logits.sizes().data() + 1, size_t(logits.dim() - 1)})),
                     "Name a value with one row of scores per input with --output.");
  return logits.reshape({logits.size(0), columns});
}

Method parse_method(const std::string& text) {
  const std::vector<std::string> names{"lrp", "gradient", "integrated"};
  for (size_t i = 0; i < names.size(); ++i)
    if (text == names[i]) return Method(i);
  throw InputError(fmt::format("--method {}: there is no such method{}", printable(text), did_you_mean(text, names)),
                   "Methods are lrp, gradient and integrated.");
}

struct Explainer::Plan {
  /// A node (or an operator and the bias that follows it) as relevance passes it, with the places of its values.
  struct Stage {
    Step step;
    std::vector<int> inputs, outputs;  ///< places; −1 for none
    Tensors constants;                 ///< one per input; undefined where a value is computed
    std::string where;
  };

  Options options;
  executor::Head head;
  std::vector<ValueId> wanted, inputs;
  Graph graph;                 ///< batch norm folded, constants folded
  std::vector<ValueId> given;  ///< inputs, and for the straight way what embeddings make
  std::optional<executor::Executor> embed, forward;
  std::vector<Stage> stages;  ///< last first
  std::vector<ValueId> kept;  ///< values that are computed, by place
  std::vector<int> frontier;  ///< places where relevance is not followed further down
  std::vector<int> wanted_places;
  int logits_place = -1;
  std::vector<size_t> moved;  ///< of `given`: what goes the straight way

  void build();
  int place(ValueId id);
  Stage stage(const Paths& paths, size_t node);
  std::vector<Message> pull(const Tensors& values, const at::Tensor& seed) const;
  void describe(const Tensors& values, const at::Tensor& classes, Explained& result) const;
  Tensors read(const Tensors& values, const std::vector<Message>& messages) const;
  double arrived(const Tensors& values, const std::vector<Message>& messages) const;
  at::Tensor seed(const Tensors& values, const Explained& result) const;
  void integrate(const Tensors& given, const Tensors& values, Explained& result) const;
};

int Explainer::Plan::place(ValueId id) {
  auto found = std::find(kept.begin(), kept.end(), id);
  if (found != kept.end()) return int(found - kept.begin());
  kept.push_back(id);
  return int(kept.size()) - 1;
}

Explainer::Plan::Stage Explainer::Plan::stage(const Paths& paths, size_t n) {
  const Node& node = graph.nodes[n];
  const Row* row = find_row(node.op);
  const bool gradients = options.method != Method::kRelevance;
  Site site{
      graph, node, paths.open_inputs(n), {}, paths.bias_after(n), paths.rule(n, gradients ? Rules() : options.rules)};
  for (ValueId id : node.inputs) site.gate.push_back(id == kAbsent ? 0 : paths.gates[size_t(id)]);
  Stage stage;
  stage.where = fmt::format("relevance through node {} ({})", node.name, node.op);
  // These are their own derivatives and quicker.
  const bool same = node.op == "Relu" || row->prepare == flows::sum ||
                    (row->prepare == flows::linear && site.open[0] != site.open[1]);
  stage.step = gradients && !same ? derivative(site) : row->prepare(site);
  for (ValueId id : node.inputs) {
    bool computed = id != kAbsent && !graph.is_constant(id);
    stage.inputs.push_back(computed ? place(id) : -1);
    stage.constants.push_back(computed || id == kAbsent ? at::Tensor() : graph.constant(id));
  }
  for (ValueId id : paths.outputs(n)) stage.outputs.push_back(id != kAbsent && paths.used(id) ? place(id) : -1);
  return stage;
}

void Explainer::Plan::build() {
  for (ValueId id : wanted)
    if (std::find(inputs.begin(), inputs.end(), id) != inputs.end() &&
        !at::isFloatingType(model::carrier(graph.values[size_t(id)].type)))
      throw InputError(fmt::format("input {} holds ids or masks, which have no relevance of their own",
                                   printable(graph.values[size_t(id)].name)),
                       "The output of an embedding has: choose that instead.");
  for (auto& [id, constant] : graph.constants) constant.value = as_run(constant.value, options);
  // Where quantities begin must stay as it is: the straight way of kIntegrated begins there.
  executor::Request request{inputs, wanted, executor::Mode::kFast, options.precision, options.device};
  request.wanted.push_back(head.logits);
  std::vector<ValueId> starts = executor::find_starts(graph);
  std::vector<bool> needed = executor::needed_nodes(graph, inputs, request.wanted);
  std::vector<int> made_by = model::producers(graph);
  std::erase_if(starts, [&](ValueId id) { return made_by[size_t(id)] >= 0 && !needed[size_t(made_by[size_t(id)])]; });
  request.wanted.insert(request.wanted.end(), starts.begin(), starts.end());
  executor::optimise(graph, request);

  Paths paths(graph, starts, wanted, head.logits, options);
  given = inputs;
  for (ValueId id : paths.starts)
    if (std::find(inputs.begin(), inputs.end(), id) == inputs.end()) given.push_back(id);
  std::vector<ValueId> made(given.begin() + int64_t(inputs.size()), given.end());
  logits_place = place(head.logits);
  for (ValueId id : wanted) wanted_places.push_back(place(id));
  for (size_t n = graph.nodes.size(); n-- > 0;)
    if (paths.followed(n)) stages.push_back(stage(paths, n));
  for (ValueId id : paths.frontier()) frontier.push_back(place(id));

  const bool way = options.method == Method::kIntegrated;
  if (way && !made.empty())
    embed.emplace(graph, executor::Request{inputs, made, executor::Mode::kFast, options.precision, options.device});
  if (!way) given = inputs;
  for (size_t i = 0; i < given.size(); ++i)
    if (std::find(paths.starts.begin(), paths.starts.end(), given[i]) != paths.starts.end()) moved.push_back(i);
  forward.emplace(graph, executor::Request{given, kept, executor::Mode::kFast, options.precision, options.device});
}

Explainer::Explainer(const Graph& graph, const executor::Head& head, std::vector<ValueId> wanted, Options options) {
  auto plan = std::make_unique<Plan>();
  plan->options = options;
  plan->options.yes_or_no = options.yes_or_no || head.output_kind == executor::OutputKind::kSigmoid;
  plan->head = head;
  plan->wanted = std::move(wanted);
  plan->inputs = graph.inputs;
  plan->graph = graph;
  at::NoGradGuard no_grad;
  plan->build();
  plan_ = std::move(plan);
}

Explainer::~Explainer() = default;
Explainer::Explainer(Explainer&&) noexcept = default;
const std::vector<ValueId>& Explainer::wanted() const { return plan_->wanted; }
const Options& Explainer::options() const { return plan_->options; }

/// What is explained: the class, the logit it starts from.
void Explainer::Plan::describe(const Tensors& values, const at::Tensor& classes, Explained& result) const {
  result.logits = logit_columns(values[size_t(logits_place)]);
  const int64_t columns = result.logits.size(1);
  result.classes =
      columns == 1 && options.yes_or_no ? (result.logits.squeeze(1) > 0).to(at::kLong) : result.logits.argmax(1);
  if (classes.defined()) {
    at::Tensor asked = classes.to(result.logits.device(), at::kLong);
    const int64_t most = columns == 1 && options.yes_or_no ? 2 : columns;
    if (at::any(asked >= most).item<bool>())
      fail("class {} cannot be explained: the model has {} output{}", asked.max().item<int64_t>(), columns,
           columns == 1 ? "" : "s");
    result.classes = at::where(asked == kLargest, result.classes, asked);
  }
  at::Tensor finite = at::isfinite(result.logits).all(1);
  result.classes = at::where(finite, result.classes, at::full({}, -1, result.classes.options()));
  at::Tensor sign =
      at::where(result.classes < 0, at::zeros({}, result.logits.options()), at::ones({}, result.logits.options()));
  at::Tensor column = result.classes.clamp_min(0);
  if (columns == 1 && options.yes_or_no) sign = at::where(result.classes == 0, -sign, sign), column = column * 0;
  at::Tensor chosen = result.logits.gather(1, column.unsqueeze(1)).squeeze(1);
  result.start = at::where(result.classes < 0, at::zeros({}, chosen.options()), chosen * sign);
}

at::Tensor Explainer::Plan::seed(const Tensors& values, const Explained& result) const {
  at::Tensor column = result.classes.clamp_min(0), sign = (result.classes >= 0).to(result.logits.scalar_type());
  if (result.logits.size(1) == 1 && options.yes_or_no)
    sign = at::where(result.classes == 0, -sign, sign), column = column * 0;
  return at::zeros_like(result.logits)
      .scatter_(1, column.unsqueeze(1), sign.unsqueeze(1))
      .reshape(values[size_t(logits_place)].sizes());
}

std::vector<Message> Explainer::Plan::pull(const Tensors& values, const at::Tensor& seed) const {
  std::vector<Message> messages(kept.size());
  messages[size_t(logits_place)].scaled = seed;
  for (const Stage& stage : stages) {
    Tensors in, out;
    std::vector<Message> from, to(stage.inputs.size());
    bool any = false;
    for (int at : stage.outputs) {
      out.push_back(at < 0 ? at::Tensor() : values[size_t(at)]);
      from.push_back(at < 0 ? Message() : messages[size_t(at)]);
      any = any || !from.back().empty();
    }
    if (!any) continue;
    for (size_t i = 0; i < stage.inputs.size(); ++i)
      in.push_back(stage.inputs[i] < 0 ? stage.constants[i] : values[size_t(stage.inputs[i])]);
    model::guarded([&] { return stage.where; }, [&] { stage.step(Flow{in, out, from, to}); });
    for (size_t i = 0; i < to.size(); ++i)
      if (stage.inputs[i] >= 0 && !to[i].empty()) messages[size_t(stage.inputs[i])].add(to[i]);
  }
  return messages;
}

Tensors Explainer::Plan::read(const Tensors& values, const std::vector<Message>& messages) const {
  Tensors relevance;
  for (int at : wanted_places) {
    const at::Tensor& value = values[size_t(at)];
    const Message& message = messages[size_t(at)];
    relevance.push_back(message.empty() ? at::zeros_like(value) : message.relevance(value));
  }
  return relevance;
}

double Explainer::Plan::arrived(const Tensors& values, const std::vector<Message>& messages) const {
  double sum = 0;
  for (int at : frontier) {
    const Message& message = messages[size_t(at)];
    if (message.empty()) continue;
    at::Tensor relevance = message.relevance(values[size_t(at)]);
    auto own = relevance.sum(at::kDouble).item<double>();
    // An input that was left out may hold anything, and nothing times infinity is not nothing.
    sum += std::isfinite(own) ? own : relevance.nan_to_num(0, 0, 0).sum(at::kDouble).item<double>();
  }
  return sum;
}

/// Values and gradients along the way: what a value changes in a part of it, times the gradient in its middle.
void Explainer::Plan::integrate(const Tensors& ends, const Tensors& values, Explained& result) const {
  auto at_share = [&](double share) {
    Tensors there = ends;
    for (size_t i : moved) there[i] = ends[i] * share;
    return forward->run(there);
  };
  at::Tensor start = seed(values, result);
  Tensors before = at_share(0);
  at::Tensor first = before[size_t(logits_place)];
  for (int place : wanted_places) result.relevance.push_back(at::zeros_like(values[size_t(place)]));
  for (int step = 0; step < options.steps; ++step) {
    Tensors middle = at_share((step + 0.5) / options.steps);
    Tensors after = step + 1 == options.steps ? values : at_share((step + 1.0) / options.steps);
    std::vector<Message> gradients = pull(middle, start);
    for (size_t i = 0; i < wanted_places.size(); ++i) {
      size_t at = size_t(wanted_places[i]);
      if (gradients[at].scaled.defined())
        result.relevance[i] = result.relevance[i] + (after[at] - before[at]) * gradients[at].scaled;
    }
    for (int place : frontier) {
      size_t at = size_t(place);
      if (gradients[at].scaled.defined())
        result.absorbed -= ((after[at] - before[at]) * gradients[at].scaled).sum(at::kDouble).item<double>();
    }
    before = std::move(after);
  }
}

int64_t Explainer::bytes(std::span<const at::Tensor> inputs) const {
  at::NoGradGuard no_grad;
  Tensors given(inputs.begin(), inputs.end());
  if (plan_->embed)
    for (at::Tensor& value : plan_->embed->run(inputs)) given.push_back(value);
  int64_t all = 0;
  for (const at::Tensor& value : plan_->forward->run(given)) all += int64_t(value.nbytes());
  return all;
}

Explained Explainer::run(std::span<const at::Tensor> inputs, const at::Tensor& classes) const {
  const Plan& plan = *plan_;
  at::NoGradGuard no_grad;
  Tensors given(inputs.begin(), inputs.end());
  if (plan.embed)
    for (at::Tensor& value : plan.embed->run(inputs)) given.push_back(value);
  Tensors values = plan.forward->run(given);
  Explained result;
  plan.describe(values, classes, result);
  result.absorbed = result.start.sum(at::kDouble).item<double>();
  if (plan.options.method == Method::kIntegrated) {
    for (at::Tensor& tensor : given) tensor = as_run(tensor, plan.options);
    plan.integrate(given, values, result);
  } else {
    std::vector<Message> messages = plan.pull(values, plan.seed(values, result));
    result.relevance = plan.read(values, messages);
    result.absorbed -= plan.arrived(values, messages);
  }
  for (int at : plan.wanted_places) result.values.push_back(values[size_t(at)]);
  return result;
}

}  // namespace netmend::explain
