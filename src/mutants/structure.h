// Operators that change the structure of a network: activations replaced, added and removed, layers removed and
// doubled, states and gates of recurrent layers disturbed at one step. Each works on a copy of a graph and says from
// which value on it differs; no other value changes its number.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "model/layer.h"

namespace netmend::mutants {

/// Activations that take another's place.
const std::vector<std::string>& activations();

/// The data input of the layer's operator. `node` of a layer is looked up by its output: another graph with the same
/// values may count nodes otherwise.
model::ValueId layer_input(const model::Graph& graph, const model::Layer& layer, model::ValueId output);

/// Each returns the value from which on the graph differs, or throws InputError when the layer does not allow it.
/// `output` is the first output of the layer's operator.
model::ValueId replace_activation(model::Graph& graph, const model::Layer& layer, const std::string& op);
model::ValueId insert_activation(model::Graph& graph, const model::Layer& layer, const std::string& op);
model::ValueId remove_layer(model::Graph& graph, const model::Layer& layer, model::ValueId output);
model::ValueId duplicate_layer(model::Graph& graph, const model::Layer& layer, model::ValueId output);

/// What happens to a recurrent layer at one step.
enum class StepChange { kStateClear, kStateReset, kStateFuzz, kStatePrecision, kGateClear, kGateFuzz, kGatePrecision };
/// The sequence is cut behind `step` steps (1 … length − 1), and the state that is carried on is changed; of gates, the
/// one step behind the cut runs with changed weights of gate number `gate`. Of layers without `sequence_lens` that run
/// forward and have the positions first.
model::ValueId disturb_step(model::Graph& graph, const model::Layer& layer, model::ValueId output, StepChange change,
                            int64_t step, int64_t length, int64_t gate, double deviation, Random& random);
/// 4 for LSTM, 3 for GRU, 1 for RNN; 0 for what is not recurrent.
int64_t gates_of(const std::string& op);

}  // namespace netmend::mutants
