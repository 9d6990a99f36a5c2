#include "model/element.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "model/small_float.h"

namespace netmend::model {
namespace {

struct Row {
  Element type;
  const char* name;
  int64_t bits;
  at::ScalarType carrier;
  at::ScalarType exact;  ///< LibTorch's type with the same layout as the file; Undefined when there is none
};

constexpr auto kNoType = at::ScalarType::Undefined;
constexpr Row kRows[] = {
    {Element::kFloat, "float32", 32, at::kFloat, at::kFloat},
    {Element::kUint8, "uint8", 8, at::kByte, at::kByte},
    {Element::kInt8, "int8", 8, at::kChar, at::kChar},
    {Element::kUint16, "uint16", 16, at::kInt, kNoType},
    {Element::kInt16, "int16", 16, at::kShort, at::kShort},
    {Element::kInt32, "int32", 32, at::kInt, at::kInt},
    {Element::kInt64, "int64", 64, at::kLong, at::kLong},
    {Element::kBool, "bool", 8, at::kBool, at::kBool},
    {Element::kFloat16, "float16", 16, at::kFloat, at::kHalf},
    {Element::kDouble, "float64", 64, at::kDouble, at::kDouble},
    {Element::kUint32, "uint32", 32, at::kLong, kNoType},
    {Element::kUint64, "uint64", 64, at::kLong, kNoType},
    {Element::kBFloat16, "bfloat16", 16, at::kFloat, at::kBFloat16},
    {Element::kFloat8E4M3FN, "float8e4m3fn", 8, at::kFloat, kNoType},
    {Element::kFloat8E4M3FNUZ, "float8e4m3fnuz", 8, at::kFloat, kNoType},
    {Element::kFloat8E5M2, "float8e5m2", 8, at::kFloat, kNoType},
    {Element::kFloat8E5M2FNUZ, "float8e5m2fnuz", 8, at::kFloat, kNoType},
    {Element::kUint4, "uint4", 4, at::kByte, kNoType},
    {Element::kInt4, "int4", 4, at::kChar, kNoType},
    {Element::kFloat4E2M1, "float4e2m1", 4, at::kFloat, kNoType},
    {Element::kFloat8E8M0, "float8e8m0", 8, at::kFloat, kNoType},
    {Element::kUint2, "uint2", 2, at::kByte, kNoType},
    {Element::kInt2, "int2", 2, at::kChar, kNoType},
};

const Row* find_row(Element type) {
  for (const Row& row : kRows)
    if (row.type == type) return &row;
  return nullptr;
}

const Row& row_of(Element type) {
  const Row* row = find_row(type);
  if (!row) fail("tensors of {} are not supported", element_name(type));
  return *row;
}

template <typename Stored, typename Carried>
at::Tensor widen(const Row& row, at::IntArrayRef shape, std::string_view bytes) {
  at::Tensor out = at::empty(shape, at::TensorOptions().dtype(row.carrier));
  auto* to = out.data_ptr<Carried>();
  for (size_t i = 0; i < bytes.size() / sizeof(Stored); ++i) {
    Stored value;
    std::memcpy(&value, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    if (sizeof(Stored) == 8 && value > Stored(INT64_MAX))
      fail("the uint64 value {} is too large: netmend computes with int64", value);
    to[i] = Carried(value);
  }
  return out;
}

template <typename Stored, typename Carried>
std::string narrow(const at::Tensor& tensor) {
  at::Tensor plain = tensor.to(at::kCPU).contiguous();
  const auto* from = plain.data_ptr<Carried>();
  std::string bytes(size_t(plain.numel()) * sizeof(Stored), '\0');
  constexpr int64_t most = sizeof(Stored) == 8 ? INT64_MAX : int64_t(Stored(-1));
  for (int64_t i = 0; i < plain.numel(); ++i) {
    Stored value = Stored(std::clamp<int64_t>(from[i], 0, most));
    std::memcpy(bytes.data() + size_t(i) * sizeof(Stored), &value, sizeof(Stored));
  }
  return bytes;
}

/// Integers saturate, half precision rounds; other types pass through.
at::Tensor to_stored(const Row& row, const at::Tensor& tensor) {
  at::Tensor value = tensor.detach().to(at::kCPU);
  if (value.is_floating_point() && at::isIntegralType(row.exact, false)) {
    double low = row.exact == at::kByte ? 0 : -std::ldexp(1.0, int(row.bits) - 1);
    double high = row.exact == at::kByte ? 255 : std::ldexp(1.0, int(row.bits) - 1) - 1;
    value = value.round().clamp(low, high);
  }
  return value.to(row.exact).contiguous();
}

bool is_small(const Row& row) { return row.bits < 8 || is_small_float(row.type); }

/// Low bits first. Integers with a sign have it in their highest bit.
uint8_t code_at(const Row& row, std::string_view bytes, int64_t i) {
  const int64_t per_byte = 8 / row.bits;
  const auto byte = uint8_t(bytes[size_t(i / per_byte)]);
  return uint8_t(byte >> (i % per_byte * row.bits)) & uint8_t((1 << row.bits) - 1);
}

at::Tensor unpack(const Row& row, at::IntArrayRef shape, std::string_view bytes) {
  at::Tensor out = at::empty(shape, at::TensorOptions().dtype(row.carrier));
  for (int64_t i = 0; i < out.numel(); ++i) {
    const uint8_t code = code_at(row, bytes, i);
    if (row.carrier == at::kFloat)
      out.data_ptr<float>()[i] = small_to_float(row.type, code);
    else if (row.carrier == at::kByte)
      out.data_ptr<uint8_t>()[i] = code;
    else
      out.data_ptr<int8_t>()[i] = int8_t(code >> (row.bits - 1) ? int(code) - (1 << row.bits) : int(code));
  }
  return out;
}

/// Integers saturate.
std::string pack(const Row& row, const at::Tensor& tensor) {
  at::Tensor plain = tensor.detach().to(at::kCPU, at::kDouble).contiguous();
  const double* from = plain.data_ptr<double>();
  std::string bytes(size_t(stored_bytes(row.type, plain.numel())), '\0');
  const int64_t per_byte = 8 / row.bits;
  const bool with_sign = row.carrier == at::kChar;
  const double low = with_sign ? -std::ldexp(1.0, int(row.bits) - 1) : 0;
  for (int64_t i = 0; i < plain.numel(); ++i) {
    const double number = std::isnan(from[i]) ? 0 : std::clamp(std::nearbyint(from[i]), low, low + (1 << row.bits) - 1);
    const uint8_t code =
        row.carrier == at::kFloat ? float_to_small(row.type, from[i], {.saturate = false}) : uint8_t(int(number));
    bytes[size_t(i / per_byte)] |= char((code & ((1 << row.bits) - 1)) << (i % per_byte * row.bits));
  }
  return bytes;
}

}  // namespace

bool supported(Element type) { return find_row(type) != nullptr; }

std::string element_name(Element type) {
  if (const Row* row = find_row(type)) return row->name;
  switch (int(type)) {
    case 0:
      return "an undefined type";
    case 8:
      return "string";
    case 14:
      return "complex64";
    case 15:
      return "complex128";
    default:
      return fmt::format("type {}", int(type));
  }
}

at::ScalarType carrier(Element type) { return row_of(type).carrier; }
int64_t stored_bits(Element type) { return row_of(type).bits; }

int64_t stored_bytes(Element type, int64_t count) {
  int64_t bits = 0;
  if (count < 0 || __builtin_mul_overflow(count, row_of(type).bits, &bits) || bits > INT64_MAX - 7) return -1;
  return (bits + 7) / 8;
}

Element element_of(at::ScalarType type) {
  for (const Row& row : kRows)
    if (row.exact == type) return row.type;
  fail("tensors of LibTorch type {} are not supported", at::toString(type));
}

int64_t checked_count(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(count, size, &count)) return -1;
  return count;
}

at::Tensor decode(Element type, std::span<const int64_t> sizes, std::string_view bytes) {
  const Row& row = row_of(type);
  int64_t count = checked_count(sizes);
  const int64_t needed = stored_bytes(type, count);
  if (needed < 0 || needed != int64_t(bytes.size()))
    fail("{} of {} need {} bytes, {} are there", shape_text(sizes), row.name,
         needed < 0 ? "impossibly many" : std::to_string(needed), bytes.size());
  at::IntArrayRef shape(sizes.data(), sizes.size());
  if (is_small(row)) return unpack(row, shape, bytes);
  switch (type) {
    case Element::kUint16:
      return widen<uint16_t, int32_t>(row, shape, bytes);
    case Element::kUint32:
      return widen<uint32_t, int64_t>(row, shape, bytes);
    case Element::kUint64:
      return widen<uint64_t, int64_t>(row, shape, bytes);
    default:
      break;
  }
  at::Tensor out = at::empty(shape, at::TensorOptions().dtype(row.exact));
  if (count > 0) std::memcpy(out.data_ptr(), bytes.data(), bytes.size());
  if (type == Element::kBool)
    out = out.view(at::kByte).ne(0);  // any byte but 0 is true; others are undefined behaviour
  return out.to(row.carrier);
}

std::string encode(Element type, const at::Tensor& tensor) {
  const Row& row = row_of(type);
  switch (type) {
    case Element::kUint16:
      return narrow<uint16_t, int32_t>(tensor.to(at::kInt));
    case Element::kUint32:
      return narrow<uint32_t, int64_t>(tensor.to(at::kLong));
    case Element::kUint64:
      return narrow<uint64_t, int64_t>(tensor.to(at::kLong));
    default:
      break;
  }
  if (is_small(row)) return pack(row, tensor);
  at::Tensor stored = to_stored(row, tensor);
  return std::string(static_cast<const char*>(stored.data_ptr()), stored.nbytes());
}

at::Tensor rounded(Element type, const at::Tensor& tensor) {
  const Row& row = row_of(type);
  if (is_small_float(type)) return narrowed(type, tensor, {.saturate = false}).to(row.carrier);
  if (row.exact == kNoType || row.exact == tensor.scalar_type()) return tensor;
  return to_stored(row, tensor).to(row.carrier);
}

at::Tensor narrowed(Element type, const at::Tensor& tensor, const Narrowing& how) {
  at::Tensor out = tensor.detach().to(at::kCPU, at::kDouble).clone(at::MemoryFormat::Contiguous);
  auto* values = out.data_ptr<double>();
  for (int64_t i = 0; i < out.numel(); ++i) values[i] = small_to_float(type, float_to_small(type, values[i], how));
  return out.to(tensor.options());
}

}  // namespace netmend::model
