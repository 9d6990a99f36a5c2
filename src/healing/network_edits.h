// Changes to the structure of a network before it is trained: other activation functions, batch normalisation, inputs
// and targets scaled by the network itself. The document of the file is left behind: what is written is a new file.
#pragma once

#include <string>

#include "dataset/dataset.h"
#include "model/graph.h"

namespace netmend::healing {

/// All hidden layers get this function (relu, selu, tanh, elu): those with another one, and those with none. Weights
/// stay. Throws InputError when no layer can have it.
void set_activations(model::Graph& graph, model::ValueId output, const std::string& function);
/// Behind every hidden layer with weights, before its activation function.
void add_batch_norm(model::Graph& graph, model::ValueId output);
/// (x − mean) / deviation of the training data in front of the network: per column of a table, per channel of an image.
void standardize_inputs(model::Graph& graph, const dataset::Dataset& train);
/// The output times the targets' deviation plus their mean.
void scale_outputs(model::Graph& graph, model::ValueId output, const dataset::Dataset& train);

}  // namespace netmend::healing
