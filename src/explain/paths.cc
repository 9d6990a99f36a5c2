#include "explain/paths.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "executor/executor.h"
#include "explain/flow.h"

namespace netmend::explain {

using model::kAbsent;
using model::Node;
using model::ValueId;

namespace {

bool makes_whole_numbers(const Node& node) {
  if (node.op != "Cast") return false;
  auto to = node.attributes.find("to");
  if (to == node.attributes.end() || !std::holds_alternative<int64_t>(to->second)) return false;
  auto type = model::Element(std::get<int64_t>(to->second));
  return model::supported(type) && !at::isFloatingType(model::carrier(type));
}

bool carries(const Row* row, size_t slot) { return row && slot < 64 && (row->slots >> slot & 1); }

/// A row that only stops: comparisons, shapes, indices.
bool stops(const Row* row) { return row && !row->prepare && !row->refused; }

bool is_linear(const Node& node) {
  static const std::set<std::string_view> ops = {"Conv", "ConvTranspose", "Gemm", "MatMul", "FusedMatMul"};
  return ops.count(node.op) > 0;
}

}  // namespace

Paths::Paths(const model::Graph& graph, const std::vector<ValueId>& starts_of_graph, const std::vector<ValueId>& wanted,
             ValueId logits, const Options& options)
    : starts(starts_of_graph), gates(find_gates(graph)), graph_(graph) {
  find_active();
  find_followed(wanted, logits);
  if (options.method == Method::kRelevance) join_biases(wanted);
  refuse(options.method != Method::kRelevance);
}

void Paths::find_active() {
  active_.assign(graph_.values.size(), false);
  raw_ = active_;
  for (ValueId id : starts) active_[size_t(id)] = raw_[size_t(id)] = true;
  static const std::set<std::string_view> layers = {"Conv", "ConvTranspose", "Gemm", "MatMul", "FusedMatMul",
                                                    "LSTM", "GRU",           "RNN",  "Einsum"};
  for (const Node& node : graph_.nodes) {
    const Row* row = find_row(node.op);
    // Ids may have been computed, even from real numbers: what an embedding makes of them is a beginning.
    const bool looks_up = node.op == "Gather" && node.inputs.size() == 2 && graph_.is_constant(node.inputs[0]) &&
                          graph_.constant(node.inputs[0]).is_floating_point() && !graph_.is_constant(node.inputs[1]);
    if (looks_up) {
      ValueId made = node.outputs[0];
      if (std::find(starts.begin(), starts.end(), made) == starts.end()) starts.push_back(made);
      active_[size_t(made)] = raw_[size_t(made)] = true;
      continue;
    }
    bool active = false, raw = !layers.count(node.op);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      ValueId id = node.inputs[i];
      if (id == kAbsent || !active_[size_t(id)] || (row && !carries(row, i))) continue;
      active = true;
      raw = raw && raw_[size_t(id)];
    }
    if (!active || stops(row) || makes_whole_numbers(node)) continue;
    for (ValueId id : node.outputs)
      if (id != kAbsent && !active_[size_t(id)]) active_[size_t(id)] = true, raw_[size_t(id)] = raw;
  }
}

void Paths::find_followed(const std::vector<ValueId>& wanted, ValueId logits) {
  std::vector<bool> below(graph_.values.size());  // relevance on its way down from here meets something wanted
  for (ValueId id : wanted) below[size_t(id)] = true;
  std::vector<bool> leads(graph_.nodes.size());
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    const Node& node = graph_.nodes[n];
    std::vector<bool> open = open_inputs(n);
    for (size_t i = 0; i < node.inputs.size(); ++i) leads[n] = leads[n] || (open[i] && below[size_t(node.inputs[i])]);
    for (ValueId id : node.outputs)
      if (id != kAbsent && leads[n] && active_[size_t(id)]) below[size_t(id)] = true;
  }
  used_.assign(graph_.values.size(), false);
  used_[size_t(logits)] = true;
  followed_.assign(graph_.nodes.size(), false);
  bias_node_.assign(graph_.nodes.size(), -1);
  for (size_t n = graph_.nodes.size(); n-- > 0;) {
    const Node& node = graph_.nodes[n];
    bool reached = false;
    for (ValueId id : node.outputs) reached = reached || (id != kAbsent && used_[size_t(id)] && active_[size_t(id)]);
    if (!reached || !leads[n]) continue;
    followed_[n] = true;
    std::vector<bool> open = open_inputs(n);
    for (size_t i = 0; i < open.size(); ++i)
      if (open[i]) used_[size_t(node.inputs[i])] = true;
  }
}

/// Exporters that write x·W and + b as two nodes mean one layer: rules that look at the whole sum need both.
void Paths::join_biases(const std::vector<ValueId>& wanted) {
  std::vector<std::vector<int>> users = model::consumers(graph_);
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    const Node& node = graph_.nodes[n];
    if (!followed_[n] || !is_linear(node)) continue;
    ValueId out = node.outputs[0];
    if (users[size_t(out)].size() != 1 || std::find(wanted.begin(), wanted.end(), out) != wanted.end()) continue;
    auto next = size_t(users[size_t(out)][0]);
    const Node& add = graph_.nodes[next];
    if (!followed_[next] || add.op != "Add" || add.inputs[0] == add.inputs[1]) continue;
    ValueId other = add.inputs[0] == out ? add.inputs[1] : add.inputs[0];
    // A bias that would make the output larger is something else.
    if (!graph_.is_constant(other) || graph_.constant(other).squeeze().dim() > 1) continue;
    bias_node_[n] = int(next);
    followed_[next] = false;
  }
}

std::vector<bool> Paths::open_inputs(size_t n) const {
  const Node& node = graph_.nodes[n];
  const Row* row = find_row(node.op);
  std::vector<bool> open(node.inputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i)
    open[i] = node.inputs[i] != kAbsent && active_[size_t(node.inputs[i])] && carries(row, i);
  return open;
}

std::vector<ValueId> Paths::outputs(size_t n) const {
  return graph_.nodes[bias_node_[n] >= 0 ? size_t(bias_node_[n]) : n].outputs;
}

at::Tensor Paths::bias_after(size_t n) const {
  if (bias_node_[n] < 0) return {};
  const Node& add = graph_.nodes[size_t(bias_node_[n])];
  return graph_.constant(graph_.is_constant(add.inputs[0]) ? add.inputs[0] : add.inputs[1]);
}

Rule Paths::rule(size_t n, const Rules& rules) const {
  const Node& node = graph_.nodes[n];
  if (!is_linear(node)) return {};
  bool first = true;
  for (ValueId id : node.inputs)
    if (id != kAbsent && active_[size_t(id)]) first = first && raw_[size_t(id)];
  if (first) return rules.first;
  return node.op == "Conv" || node.op == "ConvTranspose" ? rules.conv : rules.dense;
}

std::vector<ValueId> Paths::frontier() const {
  std::vector<int> made_by = model::producers(graph_);
  std::vector<bool> joined(graph_.nodes.size());
  for (int add : bias_node_)
    if (add >= 0) joined[size_t(add)] = true;
  std::vector<ValueId> values;
  for (size_t id = 0; id < used_.size(); ++id) {
    int maker = made_by[id];
    if (used_[id] && active_[id] && (maker < 0 || !(followed_[size_t(maker)] || joined[size_t(maker)])))
      values.push_back(ValueId(id));
  }
  return values;
}

void Paths::refuse(bool gradients) const {
  std::set<std::string> reasons;
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    if (!followed_[n]) continue;
    const Node& node = graph_.nodes[n];
    const Row* row = find_row(node.op);
    const ops::Op* op = ops::find(node.domain, node.op);
    if (!row)
      reasons.insert(fmt::format("{} ({}): no rule says how relevance passes it", node.op, printable(node.name)));
    else if (gradients && (!op || !op->differentiable))
      reasons.insert(fmt::format("{} ({}): it has no derivative", node.op, printable(node.name)));
    else if (!gradients && row->refused)
      reasons.insert(fmt::format("{} ({}): {}", node.op, printable(node.name), row->refused));
  }
  if (reasons.empty()) return;
  throw Unsupported("relevance cannot pass " + join(std::vector<std::string>(reasons.begin(), reasons.end()), "; "),
                    gradients ? "Try --method lrp, or only layers above it: --layer NAME."
                              : "Try --method gradient, or only layers above it: --layer NAME.");
}

}  // namespace netmend::explain
