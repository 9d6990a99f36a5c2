// Element types as files name them, and the type the engine computes in. Half precision is carried as float32 and the
// wide unsigned types as the next signed one, because LibTorch has no kernels for them on a CPU; the file's own type is
// remembered beside the tensor and restored when it is written.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace netmend::model {

/// The numbers are those of the ONNX format.
enum class Element : int {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kBFloat16 = 16,
};

/// True for the types that tensors of ours can carry (all but strings, complex numbers and the 4 and 8 bit floats).
bool supported(Element type);
/// float16, int64 …; `type 17` for those without a name here.
std::string element_name(Element type);
/// The type it is computed in. Precondition: supported(type).
at::ScalarType carrier(Element type);
/// Bytes of one element in a file. Precondition: supported(type).
int64_t stored_bytes(Element type);
/// The file type that stores a tensor of this carrier without loss.
Element element_of(at::ScalarType type);

/// Product of sizes, or -1 when one is negative or the product overflows: sizes come from files.
int64_t checked_count(std::span<const int64_t> shape);

/// Little-endian bytes, as in ONNX raw_data and NPY files, to a new tensor of the carrier type.
/// Throws InputError unless the length is exactly shape × stored_bytes, or when a uint64 does not fit.
at::Tensor decode(Element type, std::span<const int64_t> shape, std::string_view bytes);
/// The inverse; values are rounded (half precision) or saturated (integers) to the stored type.
std::string encode(Element type, const at::Tensor& tensor);
/// The values as they will be after writing and reading: what an edit of a half-precision weight must be judged by.
at::Tensor rounded(Element type, const at::Tensor& tensor);

}  // namespace netmend::model
