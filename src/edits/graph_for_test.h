// Small graphs for the tests of this folder.
#pragma once

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/graph.h"

namespace netmend::edits {

using Attributes = std::map<std::string, model::Attribute, std::less<>>;

/// A graph that grows by a node a call.
struct GraphForTest {
  model::Graph graph;

  model::ValueId input(const std::string& name, const std::vector<int64_t>& shape) {
    model::ValueId id = graph.add_value(name, model::Element::kFloat);
    graph.values[size_t(id)].shape.emplace();
    for (int64_t size : shape) graph.values[size_t(id)].shape->push_back({size, ""});
    graph.inputs.push_back(id);
    return id;
  }
  model::ValueId constant(const std::string& name, const at::Tensor& value,
                          model::Element stored = model::Element::kUndefined) {
    if (stored == model::Element::kUndefined) stored = model::element_of(value.scalar_type());
    model::ValueId id = graph.add_value(name, stored);
    graph.constants[id] = {model::rounded(stored, value), stored, {}, false};
    return id;
  }
  model::ValueId node(const std::string& op, std::vector<model::ValueId> inputs, Attributes attributes = {}) {
    model::ValueId out = graph.add_value(op + std::to_string(graph.nodes.size()));
    std::string name = fmt::format("n{}", graph.nodes.size());
    graph.nodes.push_back({name, op, "", 17, std::move(inputs), {out}, std::move(attributes)});
    return out;
  }
  model::Graph finish(model::ValueId output) {
    graph.outputs = {output};
    graph.opsets[""] = 17;
    return graph;
  }
};

inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  at::Tensor left = a.contiguous(), right = b.contiguous();
  return left.sizes() == right.sizes() && left.scalar_type() == right.scalar_type() &&
         std::memcmp(left.data_ptr(), right.data_ptr(), left.nbytes()) == 0;
}

inline bool same_constants(const model::Graph& a, const model::Graph& b) {
  for (const auto& [id, constant] : a.constants)
    if (!same_bits(constant.value, b.constant(id))) return false;
  return a.constants.size() == b.constants.size();
}

inline std::vector<at::Tensor> random_batch(const model::Graph& graph, int64_t count) {
  std::vector<at::Tensor> inputs;
  for (model::ValueId id : graph.inputs) {
    std::vector<int64_t> shape{count};
    for (size_t axis = 1; axis < graph.values[size_t(id)].shape->size(); ++axis)
      shape.push_back((*graph.values[size_t(id)].shape)[axis].size);
    bool ids = graph.values[size_t(id)].type == model::Element::kInt64;
    inputs.push_back(ids ? at::randint(50, shape, at::kLong) : at::randn(shape));
  }
  return inputs;
}

}  // namespace netmend::edits
