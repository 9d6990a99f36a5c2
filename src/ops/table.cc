// The one table of operators, made of the families' rows; and what is refused by name because it is not in it.
#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "ops/families.h"

namespace netmend::ops {
namespace {

bool is_standard(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

bool comes_before(const Op& a, const Op& b) { return std::pair(a.name, a.domain) < std::pair(b.name, b.domain); }

std::vector<Op> sorted_rows() {
  std::vector<Op> all;
  for (families::Rows* rows : families::kAll) {
    for (const Op& op : rows()) all.push_back(op);
  }
  std::sort(all.begin(), all.end(), comes_before);
  return all;
}

/// Why a node cannot run, or "".
std::string obstacle(const model::Node& node) {
  const Op* op = find(node.domain, node.op);
  if (!op) return "not supported";
  if (!is_standard(node.domain)) return "";
  if (node.opset < kOldestOpset) return fmt::format("older than opset {}", kOldestOpset);
  if (node.opset > op->newest) return fmt::format("changed after opset {}", op->newest);
  return "";
}

std::string full_name(const model::Node& node) {
  return is_standard(node.domain) ? node.op : fmt::format("{}.{}", node.domain, node.op);
}

/// The file's opset, when it is outside what we know: every operator may mean something else there.
void require_known_opset(const model::Graph& graph) {
  for (const char* domain : {"", "ai.onnx"}) {
    auto found = graph.opsets.find(domain);
    if (found == graph.opsets.end()) continue;
    if (found->second < kOldestOpset) {
      throw Unsupported(fmt::format("the file uses opset {}, the oldest supported is {}", found->second, kOldestOpset),
                        "Convert it with onnx.version_converter, or export it again with a newer opset.");
    }
    if (found->second > kNewestOpset) {
      throw Unsupported(fmt::format("the file uses opset {}, the newest supported is {}", found->second, kNewestOpset),
                        fmt::format("Export it again with opset {} or older.", kNewestOpset));
    }
  }
}

struct Refused {
  std::string reason, first;
  int nodes = 0, opset = 0;
};

std::string listed(const std::map<std::string, Refused>& refused) {
  std::vector<std::string> parts;
  for (const auto& [name, r] : refused) {
    std::string why = r.reason == "not supported" ? "" : ", " + r.reason;
    parts.push_back(
        fmt::format("{} ({} node{}, {}, opset {}{})", name, r.nodes, r.nodes == 1 ? "" : "s", r.first, r.opset, why));
  }
  return join(parts, ", ");
}

/// A value that everything up to the refused nodes can make, to end the network at.
std::string cut_before(const model::Graph& graph, const std::vector<int>& refused) {
  std::set<model::ValueId> tainted;
  size_t next = 0;
  std::string best;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const model::Node& node = graph.nodes[i];
    bool is_refused = next < refused.size() && refused[next] == int(i);
    next += is_refused;
    bool follows =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](model::ValueId id) { return tainted.count(id); });
    if (!is_refused && !follows) {
      if (!node.outputs.empty() && node.outputs[0] != model::kAbsent) best = graph.values[node.outputs[0]].name;
      continue;
    }
    tainted.insert(node.outputs.begin(), node.outputs.end());
    for (model::ValueId id : node.inputs) {
      bool usable = id != model::kAbsent && !tainted.count(id) && !graph.is_constant(id) &&
                    std::find(graph.inputs.begin(), graph.inputs.end(), id) == graph.inputs.end();
      if (usable) return graph.values[id].name;
    }
  }
  return best;
}

/// False when the node, or one inside a graph that it holds, cannot run; it is noted then.
bool runnable(const model::Node& node, std::map<std::string, Refused>& refused) {
  std::string reason = obstacle(node);
  if (!reason.empty()) {
    Refused& entry = refused[full_name(node)];
    if (entry.nodes++ == 0) entry = {reason, node.name, 1, node.opset};
    return false;
  }
  bool runs = true;
  for (const auto& [name, value] : node.attributes) {
    const auto* body = std::get_if<model::Subgraph>(&value);
    if (!body || !body->graph) continue;
    for (const model::Node& inner : body->graph->nodes) runs = runnable(inner, refused) && runs;
  }
  return runs;
}

}  // namespace

std::span<const Op> table() {
  static const std::vector<Op> all = sorted_rows();
  return all;
}

const Op* find(std::string_view domain, std::string_view name) {
  Op key{.name = name, .prepare = nullptr, .domain = is_standard(domain) ? "" : domain};
  auto all = table();
  auto found = std::lower_bound(all.begin(), all.end(), key, comes_before);
  return found != all.end() && !comes_before(key, *found) ? &*found : nullptr;
}

void require_supported(const model::Graph& graph, const std::vector<bool>& needed) {
  require_known_opset(graph);
  std::map<std::string, Refused> refused;
  std::vector<int> nodes;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (i < needed.size() && !needed[i]) continue;
    if (!runnable(graph.nodes[i], refused)) nodes.push_back(int(i));
  }
  if (refused.empty()) return;
  std::string cut = cut_before(graph, nodes);
  std::string hint = cut.empty() ? "" : fmt::format("--output {} ends the network before that.", cut);
  bool one = refused.size() == 1;
  throw Unsupported(
      fmt::format("{} operator{} not supported: {}", refused.size(), one ? " is" : "s are", listed(refused)), hint);
}

Kernel prepare(const model::Graph& graph, const model::Node& node) {
  NodeView view(graph, node);
  std::string reason = obstacle(node);
  view.require(reason.empty(), "the operator is {} (opset {})", reason, node.opset);
  view.require(!node.outputs.empty(), "has no output");
  return find(node.domain, node.op)->prepare(view);
}

}  // namespace netmend::ops
