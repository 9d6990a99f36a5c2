#include "model/element.h"

#include <ATen/ATen.h>

#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace netmend::model {
namespace {

struct Row {
  Element type;
  const char* name;
  int64_t bytes;
  at::ScalarType carrier;
  at::ScalarType exact;  ///< LibTorch's type with the same layout as the file; Undefined when there is none
};

constexpr auto kNoType = at::ScalarType::Undefined;
constexpr Row kRows[] = {
    {Element::kFloat, "float32", 4, at::kFloat, at::kFloat},
    {Element::kUint8, "uint8", 1, at::kByte, at::kByte},
    {Element::kInt8, "int8", 1, at::kChar, at::kChar},
    {Element::kUint16, "uint16", 2, at::kInt, kNoType},
    {Element::kInt16, "int16", 2, at::kShort, at::kShort},
    {Element::kInt32, "int32", 4, at::kInt, at::kInt},
    {Element::kInt64, "int64", 8, at::kLong, at::kLong},
    {Element::kBool, "bool", 1, at::kBool, at::kBool},
    {Element::kFloat16, "float16", 2, at::kFloat, at::kHalf},
    {Element::kDouble, "float64", 8, at::kDouble, at::kDouble},
    {Element::kUint32, "uint32", 4, at::kLong, kNoType},
    {Element::kUint64, "uint64", 8, at::kLong, kNoType},
    {Element::kBFloat16, "bfloat16", 2, at::kFloat, at::kBFloat16},
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
    double low = row.exact == at::kByte ? 0 : -std::ldexp(1.0, int(row.bytes) * 8 - 1);
    double high = row.exact == at::kByte ? 255 : std::ldexp(1.0, int(row.bytes) * 8 - 1) - 1;
    value = value.round().clamp(low, high);
  }
  return value.to(row.exact).contiguous();
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
int64_t stored_bytes(Element type) { return row_of(type).bytes; }

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
  if (count < 0 || count != int64_t(bytes.size()) / row.bytes || int64_t(bytes.size()) % row.bytes != 0)
    fail("{} of {} need {} bytes, {} are there", shape_text(sizes), row.name,
         count < 0 ? "impossibly many" : fmt::format("{} × {}", count, row.bytes), bytes.size());
  at::IntArrayRef shape(sizes.data(), sizes.size());
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
  at::Tensor stored = to_stored(row, tensor);
  return std::string(static_cast<const char*>(stored.data_ptr()), stored.nbytes());
}

at::Tensor rounded(Element type, const at::Tensor& tensor) {
  const Row& row = row_of(type);
  if (row.exact == kNoType || row.exact == tensor.scalar_type()) return tensor;
  return to_stored(row, tensor).to(row.carrier);
}

}  // namespace netmend::model
