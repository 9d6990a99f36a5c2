// Whether a network as netmend runs it predicts as the framework did that trained it, and where it departs if not.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace at {
class Tensor;
}
namespace netmend::model {
struct Graph;
}

namespace netmend::stream {

struct Reference;

/// Between what netmend computes and what was recorded.
struct Difference {
  double max = 0, mean = 0;  ///< of absolute differences
  double relative = 0;       ///< the largest difference, as a part of the largest recorded value
  double size = 0;           ///< the largest recorded value
};

struct OutputMatch {
  std::string name;
  Difference difference;
  std::optional<double> predictions_differ;  ///< share of inputs with another arg max; only where outputs are scores
};

struct LayerMatch {
  std::string name;            ///< the framework's
  std::string layer;           ///< ours, or the node; "" when nothing of this shape was found
  std::string op, node;        ///< that made the value
  std::vector<int64_t> shape;  ///< as recorded, inputs first
  Difference difference;
  double alone = -1;      ///< relative, when given the recorded values before it; -1 when not tried
  bool weights = false;   ///< made by an operator with weights, its bias or norm
  bool folded = false;    ///< differs by a scale and an offset per unit alone: batch norm is folded into the operator
  bool restated = false;  ///< a norm that differs by a scale and an offset per unit alone: other statistics were used
  bool departs = false;
};

struct MatchOptions {
  double tolerance = 1e-3;  ///< of outputs, where values beyond 1 count relative to the largest; of layers, relative
  bool layers = false;      ///< compare layers also when the outputs agree
  std::string device = "cpu";
};

struct Match {
  int64_t inputs = 0;
  std::vector<OutputMatch> outputs;
  std::vector<LayerMatch> layers;  ///< in order of execution; empty when they were not compared
  std::string first_departure;     ///< the framework's name of the first layer that departs, or ""
  std::string reason;              ///< one sentence
  bool matches = false;
  bool repaired = false;  ///< does not match, but as far as can be seen only where a repair changed weights since
  std::vector<std::string> notes;
};

/// Feeds the recorded inputs to the network and compares outputs and layers with the recorded ones. Throws InputError
/// when the reference cannot belong to this network: other inputs or outputs.
Match compare_with_reference(const model::Graph& graph, const Reference& reference, const MatchOptions& options = {});

/// How the recorded inputs are fed: one tensor per input of the graph, in its layout and type. Other programs may feed
/// rows of channels last or first; `notes` says what was done. Throws InputError when they do not fit.
std::vector<at::Tensor> reference_inputs(const model::Graph& graph, const Reference& reference, int64_t first,
                                         int64_t count, std::vector<std::string>* notes = nullptr);

}  // namespace netmend::stream
