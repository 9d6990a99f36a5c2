// Element types as files name them, and the type the engine computes in. Half precision and the floats of 8 and 4 bits
// are carried as float32, integers of 4 and 2 bits as those of 8, and the wide unsigned types as the next signed one,
// because LibTorch has no kernels for them on a CPU; the file's own type is remembered beside the tensor and restored
// when it is written.
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
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
};

/// How a float becomes one of 8 bits.
struct Narrowing {
  enum Rounding { kUp, kDown, kNearest } rounding = kUp;  ///< of FLOAT8E8M0 alone
  bool saturate = true;                                   ///< else what is too large is no number any more
};

/// True for the types that tensors of ours can carry (all but strings and complex numbers).
bool supported(Element type);
/// float16, int64 …; `type 17` for those without a name here.
std::string element_name(Element type);
/// The type it is computed in. Precondition: supported(type).
at::ScalarType carrier(Element type);
/// Bits of one element in a file; what is smaller than a byte is packed. Precondition: supported(type).
int64_t stored_bits(Element type);
/// Bytes of so many elements in a file, or -1 when that overflows. Precondition: supported(type).
int64_t stored_bytes(Element type, int64_t count);
/// The file type that stores a tensor of this carrier without loss.
Element element_of(at::ScalarType type);

/// Product of sizes, or -1 when one is negative or the product overflows: sizes come from files.
int64_t checked_count(std::span<const int64_t> shape);

/// Little-endian bytes, as in ONNX raw_data and NPY files, to a new tensor of the carrier type.
/// Throws InputError unless the length is exactly stored_bytes of the shape, or when a uint64 does not fit.
at::Tensor decode(Element type, std::span<const int64_t> shape, std::string_view bytes);
/// The inverse; values are rounded (half precision) or saturated (integers) to the stored type.
std::string encode(Element type, const at::Tensor& tensor);
/// The values as they will be after writing and reading: what an edit of a half-precision weight must be judged by.
at::Tensor rounded(Element type, const at::Tensor& tensor);
/// Floats as those of 8 or 4 bits, in the type they came in. Precondition: is_small_float(type).
at::Tensor narrowed(Element type, const at::Tensor& tensor, const Narrowing& how = {});

}  // namespace netmend::model
