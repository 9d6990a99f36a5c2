#include "executor/executor.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <atomic>
#include <map>
#include <string_view>
#include <unordered_set>

#include "base/text.h"
#include "executor/optimise.h"
#include "executor/runtime.h"
#include "model/guard.h"
#include "ops/conv_block.h"

namespace netmend::executor {

using model::Graph;
using model::kAbsent;
using model::Node;
using model::ValueId;

namespace {

at::Tensor to_carrier(const at::Tensor& tensor, const Request& request) {
  at::ScalarType type = tensor.scalar_type();
  if (type == at::kFloat) type = request.precision;
  return tensor.to(request.device, type);
}

/// Inputs whose numbers an operator reads on the CPU, to know shapes and axes. Were they on a GPU, each would make a
/// worker wait for it.
bool reads_numbers(const Node& node, size_t slot) {
  static const std::map<std::string, std::vector<size_t>> kSlots = {
      {"AffineGrid", {1}},     {"CenterCropPad", {1}}, {"Col2Im", {1, 2}}, {"CumProd", {1}},      {"CumSum", {1}},
      {"DFT", {1, 2}},         {"Dropout", {1, 2}},    {"Expand", {1}},    {"MaxUnpool", {2}},    {"OneHot", {1}},
      {"Pad", {1, 3}},         {"Pow", {1}},           {"Reshape", {1}},   {"Resize", {1, 2, 3}}, {"STFT", {1, 3}},
      {"Slice", {1, 2, 3, 4}}, {"Split", {1}},         {"Squeeze", {1}},   {"Tile", {1}},         {"TopK", {1}},
      {"Trilu", {1}},          {"Unsqueeze", {1}},     {"Upsample", {1}}};
  if (node.op.starts_with("Reduce")) return slot == 1;
  const auto found = kSlots.find(node.op);
  return node.domain.empty() && found != kSlots.end() &&
         std::find(found->second.begin(), found->second.end(), slot) != found->second.end();
}

/// Constants that are nothing but such numbers.
std::unordered_set<ValueId> numbers_of(const Graph& graph) {
  constexpr int64_t kMost = 64;
  std::unordered_set<ValueId> numbers, others;
  for (const Node& node : graph.nodes)
    for (size_t slot = 0; slot < node.inputs.size(); ++slot) {
      const ValueId id = node.inputs[slot];
      if (id == kAbsent || !graph.is_constant(id)) continue;
      const int64_t count = graph.constant(id).numel();
      const bool only = reads_numbers(node, slot) && count <= (node.op == "Pow" ? 1 : kMost);
      (only ? numbers : others).insert(id);
    }
  for (ValueId id : graph.outputs) others.insert(id);
  std::erase_if(numbers, [&](ValueId id) { return others.contains(id); });
  return numbers;
}

}  // namespace

struct Executor::Plan {
  struct Step {
    ops::Kernel kernel;
    int node = -1;
    std::vector<int> inputs;     ///< slots; -1 where the node leaves an input out
    std::vector<bool> last_use;  ///< the slot is not needed after this step
    std::vector<int> outputs;    ///< slots; -1 where nobody wants the output
    std::string where;
    std::shared_ptr<std::atomic<bool>> on_cpu;  ///< there is no kernel for the GPU
  };

  Request request;
  Graph graph;  ///< as it runs: folded and fused in Mode::kFast
  std::vector<Step> steps;
  std::vector<at::Tensor> constants;  ///< by slot; undefined for what is computed
  std::vector<int> given, wanted;     ///< slots
  std::vector<at::ScalarType> given_types;

  void build();
  /// The nodes that run together with the one at `n`, a convolution: pooling, relu, or none; all must be needed there
  /// alone.
  std::vector<const Node*> followers(size_t n, const std::vector<std::vector<int>>& used_by) const;
  void run_step(const Step& step, std::vector<at::Tensor>& slots, const RunOptions& options, uint64_t seed) const;
  void run_kernel(const Step& step, std::span<const at::Tensor> inputs, std::span<at::Tensor> outputs, uint64_t spare,
                  const RunOptions& options, uint64_t seed) const;
};

std::vector<bool> needed_nodes(const Graph& graph, std::span<const ValueId> given, std::span<const ValueId> wanted) {
  std::vector<int> made_by = model::producers(graph);
  std::vector<bool> known(graph.values.size()), needed(graph.nodes.size());
  for (ValueId id : given) known[size_t(id)] = true;
  std::vector<ValueId> open(wanted.begin(), wanted.end());
  while (!open.empty()) {
    ValueId id = open.back();
    open.pop_back();
    if (id == kAbsent || known[size_t(id)] || graph.is_constant(id)) continue;
    known[size_t(id)] = true;
    int maker = made_by[size_t(id)];
    if (maker < 0) fail("{} is needed and was not given", graph.values[size_t(id)].name);
    if (needed[size_t(maker)]) continue;
    needed[size_t(maker)] = true;
    for (ValueId input : graph.nodes[size_t(maker)].inputs) open.push_back(input);
  }
  return needed;
}

std::vector<const Node*> Executor::Plan::followers(size_t n, const std::vector<std::vector<int>>& used_by) const {
  std::vector<const Node*> found;
  auto fixed = [&](ValueId id) {
    return std::count(request.wanted.begin(), request.wanted.end(), id) +
               std::count(request.given.begin(), request.given.end(), id) >
           0;
  };
  const Node* last = &graph.nodes[n];
  if (last->op != "Conv") return found;
  while (found.size() < 2) {
    const ValueId made = last->outputs[0];
    if (made == kAbsent || fixed(made) || used_by[size_t(made)].size() != 1) break;
    const Node& next = graph.nodes[size_t(used_by[size_t(made)][0])];
    const bool pools = found.empty() && ops::halves({graph, next});
    if (!pools && next.op != "Relu") break;
    found.push_back(last = &next);
    if (next.op == "Relu") break;
  }
  return found;
}

void Executor::Plan::build() {
  std::vector<bool> needed = needed_nodes(graph, request.given, request.wanted);
  const std::unordered_set<ValueId> numbers = numbers_of(graph);
  std::vector<int> slot(graph.values.size(), -1);
  auto slot_of = [&](ValueId id) {
    if (id == kAbsent) return -1;
    int& at = slot[size_t(id)];
    if (at < 0) {
      at = int(constants.size());
      constants.emplace_back();
      if (graph.is_constant(id))
        constants.back() =
            numbers.contains(id) ? graph.constant(id).to(at::kCPU) : to_carrier(graph.constant(id), request);
    }
    return at;
  };
  std::unordered_set<ValueId> is_given(request.given.begin(), request.given.end());
  for (ValueId id : request.given) {
    given.push_back(slot_of(id));
    constants[size_t(given.back())] = at::Tensor();  // a given constant is a variable
    const model::Value& value = graph.values[size_t(id)];
    given_types.push_back(model::supported(value.type) ? model::carrier(value.type) : at::ScalarType::Undefined);
  }
  const bool blocks = request.mode == Mode::kFast && request.device.is_cuda();
  const std::vector<std::vector<int>> used_by = blocks ? model::consumers(graph) : std::vector<std::vector<int>>();
  std::unordered_set<const Node*> done;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (!needed[n] || done.count(&node)) continue;
    Step step;
    step.node = int(n);
    step.where = fmt::format("node {} ({})", node.name, node.op);
    if (request.device.is_cuda()) step.on_cpu = std::make_shared<std::atomic<bool>>(false);
    const std::vector<const Node*> more = blocks ? followers(n, used_by) : std::vector<const Node*>();
    if (more.empty()) {
      step.kernel = ops::prepare(graph, node);
    } else {
      const Node *pool = more[0]->op == "MaxPool" ? more[0] : nullptr,
                 *relu = more.back()->op == "Relu" ? more.back() : nullptr;
      step.kernel = ops::prepare_conv_block(graph, node, pool, relu);
      done.insert(more.begin(), more.end());
    }
    for (ValueId id : node.inputs) step.inputs.push_back(slot_of(id));
    for (ValueId id : (more.empty() ? node : *more.back()).outputs)
      step.outputs.push_back(id != kAbsent && !is_given.count(id) ? slot_of(id) : -1);
    steps.push_back(std::move(step));
  }
  for (ValueId id : request.wanted) wanted.push_back(slot_of(id));

  std::vector<bool> used_later(constants.size());
  for (int at : wanted) used_later[size_t(at)] = true;
  for (size_t at = 0; at < constants.size(); ++at)
    if (constants[at].defined()) used_later[at] = true;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step)
    for (int at : step->inputs) {
      step->last_use.push_back(at >= 0 && !used_later[size_t(at)]);
      if (at >= 0) used_later[size_t(at)] = true;
    }
}

Executor::Executor(const Graph& graph, Request request) {
  auto plan = std::make_unique<Plan>();
  if (request.given.empty()) request.given = graph.inputs;
  if (request.wanted.empty()) request.wanted = graph.outputs;
  plan->request = std::move(request);
  plan->graph = graph;
  ops::require_supported(graph, needed_nodes(graph, plan->request.given, plan->request.wanted));
  at::NoGradGuard no_grad;
  // What is folded is computed as the file says; half precision begins with the plan.
  Request whole = plan->request;
  if (whole.precision != at::kDouble) whole.precision = at::kFloat;
  for (auto& [id, constant] : plan->graph.constants) constant.value = to_carrier(constant.value, whole);
  if (plan->request.mode == Mode::kFast) optimise(plan->graph, plan->request);
  plan->build();
  finish_device_work();  // workers read the constants by streams of their own
  plan_ = std::move(plan);
}

Executor::~Executor() = default;
Executor::Executor(Executor&&) noexcept = default;
const Request& Executor::request() const { return plan_->request; }
std::string Executor::node_name(int node) const {
  const Node& at = plan_->graph.nodes[size_t(node)];
  return fmt::format("{} ({})", at.name, at.op);
}

namespace {

/// Nobody but the step holds this tensor or its memory: views, constants and wanted values all show as further owners.
bool sole_owner(const at::Tensor& tensor) {
  return tensor.use_count() == 1 && tensor.has_storage() && tensor.storage().use_count() == 1;
}

std::string shapes_text(std::span<const at::Tensor> tensors) {
  constexpr size_t kMostShown = 12;  // an If may read hundreds of values from outside
  std::vector<std::string> parts;
  for (const at::Tensor& tensor : tensors)
    if (tensor.defined()) parts.push_back(shape_text({tensor.sizes().data(), tensor.sizes().size()}));
  if (parts.size() > kMostShown) parts.resize(kMostShown), parts.push_back("…");
  return join(parts, ", ");
}

}  // namespace

/// Where LibTorch has no kernel for the GPU (products of integers, for one) the operator runs on the CPU, now and from
/// now on.
void Executor::Plan::run_kernel(const Step& step, std::span<const at::Tensor> inputs, std::span<at::Tensor> outputs,
                                uint64_t spare, const RunOptions& options, uint64_t seed) const {
  if (!step.on_cpu || !*step.on_cpu) {
    ops::Call call(inputs, outputs, spare, options.training, seed, request.precision);
    if (!step.on_cpu) return step.kernel(call);
    try {
      return step.kernel(call);
    } catch (const c10::OutOfMemoryError&) {
      throw;
    } catch (const c10::Error& error) {
      if (std::string_view(error.what()).find("CUDA error") != std::string_view::npos) throw;
      std::fill(outputs.begin(), outputs.end(), at::Tensor());
    }
  }
  std::vector<at::Tensor> here;
  for (const at::Tensor& input : inputs) {
    const bool halved = input.defined() && (input.scalar_type() == at::kHalf || input.scalar_type() == at::kBFloat16);
    here.push_back(!input.defined() ? input : input.to(at::kCPU, halved ? at::kFloat : input.scalar_type()));
  }
  ops::Call call(here, outputs, 0, options.training, seed, request.precision == at::kDouble ? at::kDouble : at::kFloat);
  step.kernel(call);
  for (at::Tensor& output : outputs)
    if (output.defined()) output = output.to(request.device);
  if (!step.on_cpu->exchange(true)) tell_on_cpu(graph.nodes[size_t(step.node)].op);
}

void Executor::Plan::run_step(const Step& step, std::vector<at::Tensor>& slots, const RunOptions& options,
                              uint64_t seed) const {
  c10::SmallVector<at::Tensor, 4> inputs(step.inputs.size());
  c10::SmallVector<at::Tensor, 2> outputs(step.outputs.size());
  uint64_t spare = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    int at = step.inputs[i];
    if (at < 0) continue;
    if (constants[size_t(at)].defined())
      inputs[i] = constants[size_t(at)];
    else if (step.last_use[i])
      inputs[i] = std::move(slots[size_t(at)]);
    else
      inputs[i] = slots[size_t(at)];
  }
  // A node may use a value twice: the first use took it out of its slot, the second one shares it.
  for (size_t i = 0; i < inputs.size(); ++i)
    if (step.inputs[i] >= 0 && !inputs[i].defined())
      for (size_t j = 0; j < inputs.size(); ++j)
        if (step.inputs[j] == step.inputs[i] && inputs[j].defined()) inputs[i] = inputs[j];
  if (request.mode == Mode::kFast)
    for (size_t i = 0; i < inputs.size() && i < 64; ++i)
      if (inputs[i].defined() && sole_owner(inputs[i])) spare |= uint64_t(1) << i;

  model::guarded(
      [&] {
        return fmt::format("{}, given {}", step.where, shapes_text({inputs.data(), inputs.size()}));
      },
      [&] {
        run_kernel(step, {inputs.data(), inputs.size()}, {outputs.data(), outputs.size()}, spare, options, seed);
      });
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (step.outputs[i] < 0) continue;
    if (request.precision != at::kFloat && outputs[i].defined() && outputs[i].scalar_type() == at::kFloat)
      outputs[i] = outputs[i].to(request.precision);
    slots[size_t(step.outputs[i])] = outputs[i];
  }
  if (options.trace) options.trace(step.node, {inputs.data(), inputs.size()}, {outputs.data(), outputs.size()});
}

std::vector<at::Tensor> Executor::run(std::span<const at::Tensor> given, const RunOptions& options) const {
  const Plan& plan = *plan_;
  check(given.size() == plan.given.size(), "{} tensors were given, {} are needed", given.size(), plan.given.size());
  at::AutoGradMode grad(plan.request.mode == Mode::kPlain && at::GradMode::is_enabled());
  std::vector<at::Tensor> slots(plan.constants.size());
  for (size_t i = 0; i < given.size(); ++i) {
    at::Tensor tensor = given[i];
    if (plan.given_types[i] != at::ScalarType::Undefined && tensor.scalar_type() != plan.given_types[i] &&
        !(tensor.scalar_type() == at::kDouble && plan.given_types[i] == at::kFloat))
      tensor = tensor.to(plan.given_types[i]);
    slots[size_t(plan.given[i])] = to_carrier(tensor, plan.request);
  }
  uint64_t seed = options.seed;
  for (const Plan::Step& step : plan.steps) plan.run_step(step, slots, options, seed += 0x9e3779b97f4a7c15u);

  const bool halves = plan.request.precision == at::kHalf || plan.request.precision == at::kBFloat16;
  std::vector<at::Tensor> wanted;
  for (size_t i = 0; i < plan.wanted.size(); ++i) {
    size_t at = size_t(plan.wanted[i]);
    wanted.push_back(plan.constants[at].defined() ? plan.constants[at] : slots[at]);
    if (!wanted.back().defined())
      fail("{} was not made by its node", plan.graph.values[size_t(plan.request.wanted[i])].name);
    if (halves && wanted.back().scalar_type() == plan.request.precision) wanted.back() = wanted.back().to(at::kFloat);
  }
  return wanted;
}

}  // namespace netmend::executor
