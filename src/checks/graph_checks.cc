// Rules that a graph alone can show, after NeuraLint (Nikanjam et al., TOSEM 2021).
#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "checks/observed.h"
#include "checks/results.h"
#include "checks/rows.h"
#include "executor/layers.h"
#include "findings/phrases.h"
#include "ops/op.h"

namespace netmend::checks {
namespace {

using findings::Certainty;
using model::kAbsent;
using model::ValueId;

/// Activations, and what else is not linear in what it is given.
bool is_nonlinear(const model::Node& node) {
  static const std::set<std::string_view> others = {"Abs",
                                                    "Ceil",
                                                    "Cos",
                                                    "DequantizeLinear",
                                                    "Erf",
                                                    "Exp",
                                                    "Floor",
                                                    "GRU",
                                                    "GlobalMaxPool",
                                                    "Greater",
                                                    "GroupNormalization",
                                                    "Hardmax",
                                                    "InstanceNormalization",
                                                    "LRN",
                                                    "LSTM",
                                                    "LayerNormalization",
                                                    "Less",
                                                    "Log",
                                                    "LogSoftmax",
                                                    "LpNormalization",
                                                    "Max",
                                                    "MaxPool",
                                                    "Min",
                                                    "Pow",
                                                    "QuantizeLinear",
                                                    "RMSNormalization",
                                                    "RNN",
                                                    "Reciprocal",
                                                    "ReduceMax",
                                                    "ReduceMin",
                                                    "Round",
                                                    "Sign",
                                                    "Sin",
                                                    "Softmax",
                                                    "Sqrt",
                                                    "Where"};
  const ops::Op* op = ops::find(node.domain, node.op);
  return (op && op->kind == ops::Kind::kActivation) || others.count(node.op);
}

/// What passes values on or adds constants: two layers with only such things between them are one.
const std::set<std::string> kPasses = {"Identity",  "Reshape", "Flatten", "Transpose", "Squeeze",
                                       "Unsqueeze", "Cast",    "Add",     "Sub",       "BatchNormalization",
                                       "Dropout",   "Mul",     "Div"};

class GraphChecks {
 public:
  GraphChecks(const Observed& seen, Results& found)
      : graph_(seen.session.graph()),
        head_(seen.settings.head),
        words_(seen.words()),
        found_(found),
        producers_(model::producers(graph_)) {}

  void unused() {
    std::set<ValueId> needed(graph_.outputs.begin(), graph_.outputs.end());
    needed.insert(head_.output);
    int64_t nodes = 0, weights = 0;
    std::string first;
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
      const bool reaches = std::any_of(node->outputs.begin(), node->outputs.end(),
                                       [&](ValueId id) { return id != kAbsent && needed.count(id); });
      if (reaches)
        needed.insert(node->inputs.begin(), node->inputs.end());
      else
        ++nodes, first = node->name;
    }
    std::vector<std::string> names;
    for (ValueId id : executor::find_parameters(graph_))
      if (!needed.count(id)) names.push_back(graph_.values[size_t(id)].name), weights += graph_.constant(id).numel();
    const int64_t parts = nodes + int64_t(names.size());
    if (parts == 0) return found_.passed.push_back({"all parts of the file reach an output", "none unused"});
    const std::string example = names.empty() ? first : names.front();
    std::vector<std::string> what;
    if (nodes > 0) what.push_back(findings::counted(nodes, "node"));
    if (!names.empty())
      what.push_back(fmt::format("{} ({})", findings::counted(int64_t(names.size()), "parameter"),
                                 findings::counted(weights, "weight")));
    found_.add(findings::make("unused-weights", example, with({{"n", with_commas(parts)}}), {}, Certainty::kConfirmed,
                              join(what, " and "),
                              fmt::format("{} {} no output{}.", join(what, " and "), parts == 1 ? "reaches" : "reach",
                                          parts == 1 ? ": " + example : "; one of them is " + example)));
  }

  void softmax_twice() {
    for (const model::Node& node : graph_.nodes) {
      if (node.op != "Softmax") continue;
      ValueId before = node.inputs[0];
      for (int at = producers_[size_t(before)]; at >= 0; at = producers_[size_t(before)]) {
        const model::Node& maker = graph_.nodes[size_t(at)];
        if (maker.op == "Softmax") {
          auto finding =
              findings::make("double-softmax", graph_.values[size_t(head_.output)].name, with({}), {0.0, 0.02},
                             Certainty::kConfirmed, maker.name + " and " + node.name,
                             fmt::format("{} feeds {} with nothing between them that would turn probabilities "
                                         "back into logits.",
                                         maker.name, node.name));
          return found_.add(std::move(finding));
        }
        if (!kPasses.count(maker.op) || maker.op == "Add" || maker.op == "Mul" || maker.op == "Sub" ||
            maker.op == "Div" || maker.inputs.empty())
          break;
        before = maker.inputs[0];
      }
    }
    found_.pass("softmax", "applied at most once");
  }

  /// The layer whose value reaches the operator with no nonlinearity between them, or -1. Sums of two values that
  /// both come from layers (skips) are no pairs.
  int straight_from(ValueId value) const {
    while (true) {
      for (size_t l = 0; l < layers_.size(); ++l)
        if (graph_.nodes[size_t(layers_[l].node)].outputs[0] == value) return int(l);
      const int at = producers_[size_t(value)];
      if (at < 0) return -1;
      const model::Node& node = graph_.nodes[size_t(at)];
      if (!kPasses.count(node.op) || node.inputs.empty()) return -1;
      ValueId next = kAbsent;
      int varying = 0;
      for (ValueId id : node.inputs)
        if (id != kAbsent && executor::root_constant(graph_, producers_, id) == kAbsent && !graph_.is_constant(id))
          next = id, ++varying;
      if (varying != 1) return -1;
      value = next;
    }
  }

  void linear() {
    layers_ = executor::find_layers(graph_);
    if (layers_.empty()) return;
    bool nonlinear = false;
    for (const model::Node& node : graph_.nodes)
      for (ValueId id : node.outputs)
        if (id != head_.output && is_nonlinear(node) && id != kAbsent && producers_[size_t(id)] >= 0)
          nonlinear |= head_.logits == head_.output || id != head_.output;
    // A final softmax or sigmoid does not make a network of linear layers more than one of them.
    if (layers_.size() >= 2 && !nonlinear)
      found_.add(findings::make(
          "linear-network", "", with({}), {0.01, 0}, Certainty::kConfirmed,
          fmt::format("{} layers, no nonlinearity", layers_.size()),
          fmt::format("There is no nonlinear operator between the {} layers with weights.", layers_.size())));
    int64_t pairs = 0;
    for (const model::Layer& layer : layers_) {
      if (layer.op != "Conv" && layer.op != "Gemm" && layer.op != "MatMul") continue;
      const model::Node& node = graph_.nodes[size_t(layer.node)];
      const int before = straight_from(node.inputs[0]);
      if (before < 0 || !nonlinear) continue;
      const model::Layer& other = layers_[size_t(before)];
      // Factorised layers are linear pairs on purpose: narrow in the middle, depthwise then pointwise, or heads of
      // attention.
      if (other.op != layer.op && !(other.op == "Gemm" || other.op == "MatMul")) continue;
      if (other.units < layer.units || layer.op == "Conv") continue;
      if (++pairs > 3) break;
      found_.add(findings::make(
          "linear-pair", other.name + "-" + layer.name, with({{"a", other.name}, {"b", layer.name}}), {},
          Certainty::kConfirmed, fmt::format("{} units, then {}", with_commas(other.units), with_commas(layer.units)),
          fmt::format("{} of {} feed{} {} with no nonlinearity between them: together the two layers are one linear "
                      "layer.",
                      findings::counted(other.units, "unit"), other.name, other.units == 1 ? "s" : "", layer.name)));
    }
    if (pairs == 0)
      found_.passed.push_back({"nonlinearities between layers", findings::counted(int64_t(layers_.size()), "layer")});
  }

  void norms() {
    int64_t looked = 0, empty = 0;
    for (const model::Node& node : graph_.nodes) {
      if (node.op != "BatchNormalization" || node.inputs.size() < 5) continue;
      at::Tensor mean = graph_.constant(node.inputs[3]), variance = graph_.constant(node.inputs[4]);
      if (!mean.defined() || !variance.defined()) continue;
      ++looked;
      if (mean.count_nonzero().item<int64_t>() > 0 || (variance != 1).count_nonzero().item<int64_t>() > 0) continue;
      if (++empty <= 3)
        found_.add(findings::make("stale-running-statistics", node.name, with({{"layer", node.name}}), {},
                                  Certainty::kConfirmed, "all running means 0, all running variances 1",
                                  fmt::format("All running means of {} are exactly 0 and all running variances "
                                              "exactly 1 ({}).",
                                              node.name, findings::counted(mean.numel(), "unit"))));
    }
    if (looked > 0 && empty == 0)
      found_.passed.push_back({"running statistics of batch normalisation",
                               fmt::format("updated in {}", findings::counted(looked, "layer"))});
  }

 private:
  findings::Words with(findings::Words more) const {
    for (const auto& [key, value] : words_) more.try_emplace(key, value);
    return more;
  }

  const model::Graph& graph_;
  const executor::Head& head_;
  const findings::Words words_;
  Results& found_;
  std::vector<int> producers_;
  std::vector<model::Layer> layers_;
};

}  // namespace

void check_unused(Observed& seen, Results& out) { GraphChecks(seen, out).unused(); }
void check_double_softmax(Observed& seen, Results& out) {
  if (!out.has("double-softmax")) GraphChecks(seen, out).softmax_twice();  // the preflight may have said it
}
void check_nonlinearity(Observed& seen, Results& out) { GraphChecks(seen, out).linear(); }
void check_running_statistics(Observed& seen, Results& out) { GraphChecks(seen, out).norms(); }

}  // namespace netmend::checks
