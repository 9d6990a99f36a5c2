// What a model file holds, for people: inputs, outputs, layers, operators, the shape at every node; and where shapes
// cannot fit, the way that leads there. No tensors: commands and other people's programs call it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace netmend::session {

/// An input or output as the file declares it.
struct DeclaredValue {
  std::string name, type;
  bool has_shape = false;
  std::vector<int64_t> sizes;        ///< -1 where the file leaves it open
  std::vector<std::string> symbols;  ///< the file's name for an open size; may be empty
  std::vector<int64_t> tried_shape;  ///< in the trial run; empty when it was not made
  std::string layout;                ///< NCHW or NHWC of an image, else ""
  std::string output_kind;           ///< of an output: logits or scores, probabilities, …
};

struct LayerInfo {
  std::string name, op, activation;
  int64_t units = 0, parameters = 0;
  bool has_shape = false;
  std::vector<int64_t> output_shape;
};

/// A node that ran in the trial.
struct NodeInfo {
  std::string name, op;
  std::vector<int64_t> shape;
  int layer = -1;         ///< in ModelInfo::layers, when it is one's operator
  bool reshapes = false;  ///< the shape is not that of its first input
  double flops = 0;       ///< two per multiply-add, for the shapes of the trial; 0 for what only moves or compares
  double weight_bytes = 0, output_bytes = 0;  ///< constants that it reads, in the type that they are computed in
};

/// What one pass costs, by the shapes of the trial: nothing here is timed.
struct ModelCost {
  double flops = 0;             ///< two per multiply-add
  double weight_bytes = 0;      ///< of all constants that the pass reads, in the type that they are computed in
  double activation_bytes = 0;  ///< the most that inputs and values still needed take at once; views take nothing
};

/// What stands inside a node that holds graphs (If, Loop, Scan): it runs, but has no layers that could be measured.
struct InsideInfo {
  std::string name, op;
  int64_t weighted = 0, constants = 0;  ///< operators with weights in its graphs; real numbers that only they read
};

struct ModelInfo {
  int64_t parameters = 0, nodes = 0;
  int opset = 0;
  std::string producer;
  std::vector<DeclaredValue> inputs, outputs;
  std::vector<LayerInfo> layers;
  std::vector<NodeInfo> ran;  ///< in order
  ModelCost cost;             ///< zeros when the trial run stopped
  std::vector<InsideInfo> inside;
  std::map<std::string, int> operators;  ///< how often each occurs
  std::map<std::string, std::string> metadata;
  int64_t free_size = 0;          ///< taken for sizes that the file leaves open; 0 when there are none
  std::string error;              ///< why the trial run stopped; "" when it did not
  std::vector<NodeInfo> chain;    ///< from an input to the node that stopped it, whose shape is empty
  std::string unsupported, hint;  ///< what netmend cannot run; then nothing was tried
};

/// Runs the network once on zeros to see the shapes; sizes that the file leaves open are tried in turn, unless `shapes`
/// (`NAME=1x3x224x224`) sets them. `output`: only the part up to this value. Throws InputError for a file that cannot
/// be read and for a name or shape that does not exist.
ModelInfo describe_model(const std::string& path, const std::string& output, const std::vector<std::string>& shapes);

}  // namespace netmend::session
