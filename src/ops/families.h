// The families of operators: a file each, with its rows at the end. A row names the function that reads and checks the
// attributes of a node and returns the kernel that runs it.
#pragma once

#include "ops/op.h"

namespace netmend::ops::families {

constexpr std::string_view kMicrosoft = "com.microsoft";  // what ONNX Runtime's optimiser leaves in a file

// An operator without `newest` means in opset kNewestOpset what it means here; the kernels branch on the node's opset
// where an older meaning differs. Upsample and Scatter were withdrawn.
using Rows = std::span<const Op>();
Rows activation_rows, arrange_rows, attention_rows, bits_rows, conv_rows, control_rows, detection_rows, dropout_rows,
    elementwise_rows, gather_rows, linear_rows, loss_rows, norm_rows, pool_rows, quantize_rows, recurrent_rows,
    reduce_rows, resize_rows, shape_rows, signal_rows;
constexpr Rows* kAll[] = {activation_rows, arrange_rows,   attention_rows, bits_rows,        conv_rows,
                          control_rows,    detection_rows, dropout_rows,   elementwise_rows, gather_rows,
                          linear_rows,     loss_rows,      norm_rows,      pool_rows,        quantize_rows,
                          recurrent_rows,  reduce_rows,    resize_rows,    shape_rows,       signal_rows};

Kernel conv(const NodeView& node);  ///< of float tensors; the quantised convolutions end in it

}  // namespace netmend::ops::families
