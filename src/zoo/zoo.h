// Named architectures as models with fresh weights: those of the papers and theses that netmend reproduces, and dense
// networks of any size. Classifiers give logits. Files are opset 17, for any batch size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/graph.h"
#include "zoo/names.h"

namespace netmend::zoo {

struct InitOptions {
  std::string scheme = "glorot";  ///< see init.h; biases start at zero
  uint64_t seed = 42;
  int64_t vocabulary = 0;  ///< of textcnn; 0 for that of the built-in rt-polarity
};

/// `lenet5`, `mlp:784-64-10` … Throws InputError: an unknown name gets the nearest one, a size out of bounds is named.
model::Graph make(const std::string& name, const InitOptions& options = {});
/// Numbers that training changes: weights, biases, scales and offsets of norms, embeddings; no running statistics.
int64_t parameter_count(const model::Graph& graph);

}  // namespace netmend::zoo
