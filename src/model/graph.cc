#include "model/graph.h"

#include <queue>

#include "base/error.h"
#include "base/text.h"

namespace netmend::model {

ValueId Graph::add_value(std::string value_name, Element type) {
  values.push_back({std::move(value_name), type, std::nullopt});
  return ValueId(values.size() - 1);
}

ValueId Graph::find(std::string_view value_name) const {
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].name == value_name) return ValueId(i);
  return kAbsent;
}

at::Tensor Graph::constant(ValueId id) const {
  auto hit = constants.find(id);
  return id == kAbsent || hit == constants.end() ? at::Tensor() : hit->second.value;
}

void Graph::replace(ValueId id, const at::Tensor& value) {
  Constant& constant = constants.at(id);
  check(constant.value.sizes() == value.sizes(), "a constant keeps its shape");
  constant.value = rounded(constant.stored, value).to(constant.value.scalar_type());
  constant.changed = true;
}

std::vector<int> producers(const Graph& graph) {
  std::vector<int> made_by(graph.values.size(), -1);
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (ValueId output : graph.nodes[n].outputs)
      if (output != kAbsent) made_by[size_t(output)] = int(n);
  return made_by;
}

std::vector<std::vector<int>> consumers(const Graph& graph) {
  std::vector<std::vector<int>> used_by(graph.values.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    for (ValueId input : graph.nodes[n].inputs)
      if (input != kAbsent && (used_by[size_t(input)].empty() || used_by[size_t(input)].back() != int(n)))
        used_by[size_t(input)].push_back(int(n));
  return used_by;
}

void sort_nodes(Graph& graph) {
  std::vector<int> made_by = producers(graph);
  std::vector<bool> given(graph.values.size());
  for (ValueId input : graph.inputs) given[size_t(input)] = true;
  for (const auto& [id, constant] : graph.constants) given[size_t(id)] = true;

  std::vector<int> waits_for(graph.nodes.size());
  std::vector<std::vector<int>> followers(graph.nodes.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (ValueId input : graph.nodes[n].inputs) {
      if (input == kAbsent || given[size_t(input)]) continue;
      int maker = made_by[size_t(input)];
      if (maker < 0)
        fail("node {} uses {}, which no node produces and which is not an input", graph.nodes[n].name,
             graph.values[size_t(input)].name);
      followers[size_t(maker)].push_back(int(n));
      ++waits_for[n];
    }
  }
  // The file's own order is kept wherever it can run.
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (size_t n = 0; n < graph.nodes.size(); ++n)
    if (waits_for[n] == 0) ready.push(int(n));
  std::vector<Node> sorted;
  sorted.reserve(graph.nodes.size());
  while (!ready.empty()) {
    int n = ready.top();
    ready.pop();
    for (int follower : followers[size_t(n)])
      if (--waits_for[size_t(follower)] == 0) ready.push(follower);
    sorted.push_back(graph.nodes[size_t(n)]);
  }
  if (sorted.size() != graph.nodes.size()) {
    size_t stuck = 0;
    while (waits_for[stuck] == 0) ++stuck;
    fail("the graph has a cycle through node {}", graph.nodes[stuck].name);
  }
  graph.nodes = std::move(sorted);
}

std::string image_layout(const Value& input) {
  if (!input.shape || input.shape->size() != 4) return "";
  auto channels = [&](size_t axis) {
    const int64_t size = (*input.shape)[axis].size;
    return size == 1 || size == 3 || size == 4;
  };
  if (channels(1)) return "NCHW";
  return channels(3) ? "NHWC" : "";
}

}  // namespace netmend::model
