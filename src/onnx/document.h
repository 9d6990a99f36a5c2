// The file as read: its message and where its bytes are. Known to this folder alone.
#pragma once

#include <string>

#include "model/graph.h"
#include "onnx_file.pb.h"

namespace netmend::model {

struct Document {
  std::string path;  ///< where it came from
  onnx_file::Model message;
  std::string checksum;  ///< of the file's bytes, to tell whether it is still what was read
};

}  // namespace netmend::model

namespace netmend::onnx {

/// A tensor message as a tensor; `folder` is where external data may lie. Throws InputError.
at::Tensor decode_tensor(const onnx_file::Tensor& tensor, const std::string& folder);
/// The sizes of a tensor message, each of them checked to be a size.
std::vector<int64_t> sizes_of(const onnx_file::Tensor& tensor);

}  // namespace netmend::onnx
