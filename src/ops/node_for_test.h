// Builds a graph of one node and runs it, for the tests of this folder.
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

#include "ops/op.h"

namespace netmend::ops {

using Attributes = std::map<std::string, model::Attribute, std::less<>>;

/// One node with its inputs; an undefined tensor is an input left out.
struct NodeForTest {
  std::string op;
  std::vector<at::Tensor> inputs;
  Attributes attributes = {};
  int opset = 17;
  size_t outputs = 1;
  std::string domain = "";
  std::vector<size_t> constants = {};  ///< inputs that the graph knows as constants
  size_t captured = 0;                 ///< of the last inputs

  model::Graph graph() const {
    model::Graph graph;
    model::Node node{.name = "node", .op = op, .domain = domain, .opset = opset};
    for (size_t i = 0; i < inputs.size(); ++i) {
      node.inputs.push_back(inputs[i].defined() ? graph.add_value(fmt::format("in{}", i)) : model::kAbsent);
    }
    for (size_t i : constants)
      graph.constants[node.inputs[i]] = {.value = inputs[i], .stored = model::element_of(inputs[i].scalar_type())};
    for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(graph.add_value(fmt::format("out{}", i)));
    node.attributes = attributes;
    node.captured = captured;
    graph.opsets[""] = opset;
    graph.nodes.push_back(std::move(node));
    return graph;
  }

  struct Options {
    uint64_t spare = 0;
    bool training = false;
    uint64_t seed = 0;
    at::ScalarType real = at::kFloat;
  };
  std::vector<at::Tensor> run(Options options) const {
    model::Graph whole = graph();
    Kernel kernel = prepare(whole, whole.nodes[0]);
    std::vector<at::Tensor> results(outputs);
    Call call(inputs, results, options.spare, options.training, options.seed, options.real);
    kernel(call);
    return results;
  }
  at::Tensor run() const { return run(Options{})[0]; }
};

inline at::Tensor reals(std::vector<double> values, at::IntArrayRef shape = {-1}) {
  return at::tensor(values, at::kFloat).reshape(shape);
}
inline at::Tensor ints(std::vector<int64_t> values, at::IntArrayRef shape = {-1}) {
  return at::tensor(values, at::kLong).reshape(shape);
}
inline at::Tensor bools(std::vector<int64_t> values, at::IntArrayRef shape = {-1}) {
  return ints(std::move(values), shape).to(at::kBool);
}

}  // namespace netmend::ops
