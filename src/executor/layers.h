// Finds the layers and the learned parameters of a graph, whatever exporter wrote it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "executor/head.h"
#include "model/layer.h"

namespace netmend::executor {

/// In the order they run. A layer is an operator with constant weights, followed through bias, batch norm and
/// reordering of axes to its activation. Operators that we cannot run are passed over.
std::vector<model::Layer> find_layers(const model::Graph& graph);

/// The constants that training changes: weights, biases, norm scales and offsets, embeddings. Running statistics of
/// batch norm are not among them, nor numbers that prepare the input.
std::vector<model::ValueId> find_parameters(const model::Graph& graph);

/// Where quantities begin, and so gradients: inputs that are real numbers, and what embeddings make of ids. Inputs that
/// are only counted or masked with are not among them.
std::vector<model::ValueId> find_starts(const model::Graph& graph);

/// The constant that a value is made of by Identity, Cast, Transpose, Reshape, Squeeze, Unsqueeze, Flatten or
/// DequantizeLinear alone; kAbsent when it is something else.
model::ValueId root_constant(const model::Graph& graph, std::span<const int> producers, model::ValueId id);

/// `output` is one of the graph's outputs, or any value that a user named. Softmax over another axis than the last one
/// of two does not count as a head.
Head find_head(const model::Graph& graph, model::ValueId output);

}  // namespace netmend::executor
