// ONNX file → model. Files are hostile until read: every size is checked before memory is taken, external data must lie
// beside the model, and what cannot be understood is refused with the place it stands at.
#pragma once

#include <string>

#include "model/graph.h"

namespace netmend::onnx {

/// Throws InputError with the file's name in front.
model::Graph read_model(const std::string& path);

/// A tensor file (`input_0.pb` of the ONNX project's test folders).
struct NamedTensor {
  std::string name;
  model::Element stored = model::Element::kUndefined;
  at::Tensor value;
};
NamedTensor read_tensor(const std::string& path);

}  // namespace netmend::onnx
