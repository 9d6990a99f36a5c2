// Numbers of one type in a row of samples, somewhere in some bytes: what IDX, CIFAR, NPY and NPZ files hold.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "dataset/bytes.h"

namespace netmend::dataset {

enum class Element { kBool, kU8, kI8, kU16, kI16, kU32, kI32, kI64, kF16, kF32, kF64 };
int64_t size_of(Element element);
const char* name_of(Element element);

struct Array {
  BytesPtr bytes;
  int64_t offset = 0;  ///< of the first sample
  Element type = Element::kU8;
  bool swapped = false;        ///< byte order is not this machine's
  std::vector<int64_t> shape;  ///< samples first
  int64_t stride = 0;          ///< bytes from a sample to the next

  int64_t count() const { return shape.at(0); }
  std::vector<int64_t> sample_shape() const { return {shape.begin() + 1, shape.end()}; }
  int64_t elements() const;  ///< of a sample
  int64_t sample_bytes() const { return elements() * size_of(type); }
};

/// An array whose samples lie one after the other from `offset` on. Throws InputError when `shape` is not a possible
/// one or asks for more bytes than there are; nothing of that size is allocated before. An array without samples is
/// refused as well unless `may_be_empty`.
Array make_array(BytesPtr bytes, int64_t offset, Element type, bool swapped, std::vector<int64_t> shape,
                 bool may_be_empty = false);

/// Calls `take(raw, position, count)` for runs of samples that lie side by side; `raw` holds `count` samples, `stride`
/// apart and `position` is that of the first in `samples`.
void for_runs(const Array& array, std::span<const int64_t> samples,
              const std::function<void(const uint8_t* raw, int64_t position, int64_t count)>& take);

/// `count` numbers, whatever their type, as float, double or int64 (fractions are cut).
void to_floats(const uint8_t* raw, Element type, bool swapped, int64_t count, float* out);
void to_doubles(const uint8_t* raw, Element type, bool swapped, int64_t count, double* out);
void to_longs(const uint8_t* raw, Element type, bool swapped, int64_t count, int64_t* out);

}  // namespace netmend::dataset
