// How the features of a data set become the inputs of a network: by name or position, reshaped where that is safe,
// refused with both shapes where it is not.
#pragma once

#include <string>
#include <vector>

#include "dataset/dataset.h"
#include "model/graph.h"

namespace netmend::stream {

class Feed {
 public:
  /// `model_name` and the data's spec appear in messages. Throws InputError.
  Feed(const model::Graph& graph, const std::string& model_name, const dataset::Info& data);

  /// The tensors for Graph::inputs, in order.
  std::vector<at::Tensor> inputs(const dataset::Batch& batch) const;
  /// Positions that count, bool inputs × length, as the data or an input that is a mask says; undefined where nothing
  /// is padded.
  at::Tensor mask(const dataset::Batch& batch) const;
  /// mask() looks at the batch's inputs.
  bool mask_is_input() const { return mask_feature_ >= 0; }
  /// What was done that the user should know: `28×28 is fed as 784`.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Link {
    size_t feature = 0;
    bool mask = false;             ///< feeds the feature's mask instead
    std::vector<int64_t> permute;  ///< axes after the batch, when the layout differs
    std::vector<int64_t> reshape;  ///< sizes after the batch; empty for as it is
    at::ScalarType type = at::kFloat;
  };
  Link connect(const model::Value& input, const std::string& model_name, const dataset::Info& data, size_t feature);
  std::vector<Link> links_;
  int mask_feature_ = -1;  ///< feature that is itself a mask
  std::vector<std::string> notes_;
};

}  // namespace netmend::stream
