#include "dataset/array.h"

#include <c10/util/Half.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace netmend::dataset {
namespace {

static_assert(std::endian::native == std::endian::little, "array files are read as little-endian");

struct Half {
  uint16_t bits;
  operator double() const { return double(c10::detail::fp16_ieee_to_fp32_value(bits)); }
};

struct Flag {
  uint8_t bits;
  operator double() const { return bits != 0; }
};

template <typename T>
T load(const uint8_t* raw, bool swapped) {
  T value;
  if (!swapped) {
    std::memcpy(&value, raw, sizeof(T));
    return value;
  }
  uint8_t turned[sizeof(T)];
  std::reverse_copy(raw, raw + sizeof(T), turned);
  std::memcpy(&value, turned, sizeof(T));
  return value;
}

/// Casting a float outside the range of int64 is undefined; such values become the nearest one.
template <typename Out, typename In>
Out cast(In value) {
  if constexpr (std::is_same_v<Out, int64_t> && !std::is_integral_v<In>) {
    double wide = double(value);
    if (!(wide == wide)) return 0;
    return wide >= 0x1p63 ? INT64_MAX : wide < -0x1p63 ? INT64_MIN : int64_t(wide);
  } else if constexpr (std::is_class_v<In>) {
    return Out(double(value));
  } else {
    return Out(value);
  }
}

template <typename In, typename Out>
void convert(const uint8_t* raw, bool swapped, int64_t count, Out* out) {
  if (swapped && sizeof(In) > 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = cast<Out>(load<In>(raw + i * int64_t(sizeof(In)), true));
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = cast<Out>(load<In>(raw + i * int64_t(sizeof(In)), false));
  }
}

template <typename Out>
void convert_any(const uint8_t* raw, Element type, bool swapped, int64_t count, Out* out) {
  switch (type) {
    case Element::kBool:
      return convert<Flag>(raw, swapped, count, out);
    case Element::kU8:
      return convert<uint8_t>(raw, swapped, count, out);
    case Element::kI8:
      return convert<int8_t>(raw, swapped, count, out);
    case Element::kU16:
      return convert<uint16_t>(raw, swapped, count, out);
    case Element::kI16:
      return convert<int16_t>(raw, swapped, count, out);
    case Element::kU32:
      return convert<uint32_t>(raw, swapped, count, out);
    case Element::kI32:
      return convert<int32_t>(raw, swapped, count, out);
    case Element::kI64:
      return convert<int64_t>(raw, swapped, count, out);
    case Element::kF16:
      return convert<Half>(raw, swapped, count, out);
    case Element::kF32:
      return convert<float>(raw, swapped, count, out);
    case Element::kF64:
      return convert<double>(raw, swapped, count, out);
  }
}

}  // namespace

int64_t size_of(Element element) {
  switch (element) {
    case Element::kBool:
    case Element::kU8:
    case Element::kI8:
      return 1;
    case Element::kU16:
    case Element::kI16:
    case Element::kF16:
      return 2;
    case Element::kU32:
    case Element::kI32:
    case Element::kF32:
      return 4;
    case Element::kI64:
    case Element::kF64:
      return 8;
  }
  return 0;
}

const char* name_of(Element element) {
  static const char* const names[] = {"bool",  "uint8", "int8",    "uint16",  "int16",  "uint32",
                                      "int32", "int64", "float16", "float32", "float64"};
  return names[int(element)];
}

int64_t Array::elements() const {
  int64_t product = 1;
  for (size_t axis = 1; axis < shape.size(); ++axis) product *= shape[axis];
  return product;
}

Array make_array(BytesPtr bytes, int64_t offset, Element type, bool swapped, std::vector<int64_t> shape,
                 bool may_be_empty) {
  if (shape.empty()) fail("{} holds a single number, not an array of samples", bytes->name());
  int64_t total = size_of(type);
  for (int64_t size : shape)
    if (size < 0 || __builtin_mul_overflow(total, size, &total))
      fail("{} claims an impossible shape, {}", bytes->name(), shape_text(shape));
  if (total > bytes->size() - offset)
    fail("{} is cut short: {} of {} need {} bytes, there are {}", bytes->name(), shape_text(shape), name_of(type),
         total, std::max<int64_t>(0, bytes->size() - offset));
  if (shape[0] == 0 && !may_be_empty) fail("{} holds no samples: its shape is {}", bytes->name(), shape_text(shape));
  Array array{std::move(bytes), offset, type, swapped, std::move(shape), 0};
  // A sample without values takes no bytes, so a file of any size could claim any number of them.
  if (total == 0 && array.count() > 0)
    fail("{} holds samples without values: its shape is {}", array.bytes->name(), shape_text(array.shape));
  array.stride = array.sample_bytes();
  return array;
}

void for_runs(const Array& array, std::span<const int64_t> samples,
              const std::function<void(const uint8_t*, int64_t, int64_t)>& take) {
  // Pieces that fit the second-level cache: the copy from the file is still there when it is converted.
  const int64_t longest = std::max<int64_t>(1, (256 << 10) / std::max<int64_t>(1, array.stride));
  std::vector<uint8_t> scratch;
  for (int64_t at = 0; at < int64_t(samples.size());) {
    int64_t first = samples[size_t(at)], run = 1;
    check(first >= 0 && first < array.count(), "{}: sample {} of {}", array.bytes->name(), first, array.count());
    const int64_t most = std::min({longest, int64_t(samples.size()) - at, array.count() - first});
    while (run < most && samples[size_t(at + run)] == first + run) ++run;
    int64_t size = (run - 1) * array.stride + array.sample_bytes();
    take(array.bytes->view(array.offset + first * array.stride, size, scratch), at, run);
    at += run;
  }
}

void to_floats(const uint8_t* raw, Element type, bool swapped, int64_t count, float* out) {
  convert_any(raw, type, swapped, count, out);
}
void to_doubles(const uint8_t* raw, Element type, bool swapped, int64_t count, double* out) {
  convert_any(raw, type, swapped, count, out);
}
void to_longs(const uint8_t* raw, Element type, bool swapped, int64_t count, int64_t* out) {
  convert_any(raw, type, swapped, count, out);
}

}  // namespace netmend::dataset
