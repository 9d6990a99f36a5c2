// Layers and units: what we blame. A layer is an operator with weights together with the bias, batch norm and
// activation that follow it; a unit is one of its output features.
#pragma once

#include <string>
#include <vector>

#include "model/graph.h"

namespace netmend::model {

/// Some exporters merge the axis of inputs with that of positions.
enum class Merged { kNo, kInputsFirst, kPositionsFirst };

struct Layer {
  std::string name;          ///< `conv1`; the unit prints as `conv1/7`
  std::string op;            ///< Conv, Gemm, MatMul, LSTM …
  std::string activation;    ///< Relu …, or "" for none
  int node = -1;             ///< the linear operator in Graph::nodes
  ValueId weight = kAbsent;  ///< the constant behind any Identity, Transpose, Reshape or DequantizeLinear
  ValueId bias = kAbsent;
  ValueId weight_input = kAbsent;  ///< the value that the operator reads: `weight`, or what is made of it
  ValueId bias_input = kAbsent;    ///< the same for `bias`
  int weight_axis = 0;             ///< axis of `weight_input` that counts units (recurrent: gates × hidden features)
  ValueId pre = kAbsent;           ///< value before the activation, after bias and batch norm
  ValueId post = kAbsent;          ///< value after the activation (equals pre without one)
  int64_t units = 0;
  int64_t parameters = 0;  ///< elements of the weights, biases and norm parameters that belong to it
  int unit_axis = 1;       ///< axis of `post` that counts units; negative counts from the end
  int batch_axis = 0;      ///< axis of `post` that counts inputs
  Merged merged =
      Merged::kNo;  ///< that axis counts positions too; a pass gives them an axis of their own behind or before
};

/// `conv2/7`
std::string unit_name(const Layer& layer, int64_t unit);

/// A tapped value as inputs × units: the mean over all other axes (positions in space and time).
/// With a mask (bool, inputs × length) positions of that length count only where it says so: padding is not measured.
/// Bidirectional recurrent layers, whose directions are an axis of their own, count direction × hidden units.
at::Tensor unit_values(const Layer& layer, const at::Tensor& tap, const at::Tensor& mask = {});
/// The same without averaging: inputs × units × positions.
at::Tensor unit_maps(const Layer& layer, const at::Tensor& tap);

}  // namespace netmend::model
