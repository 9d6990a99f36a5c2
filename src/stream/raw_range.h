// The valid range of an input in raw units, before scale, mean and std: what a changed input may hold and still be one.
// Methods see quantities as parts of that range, 0 … 1, whatever the preprocessing makes of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "dataset/dataset.h"

namespace netmend::stream {

class RawRange {
 public:
  /// Of one feature, in its channels where preprocessing differs by channel. `given` is LOW:HIGH in raw units, or "":
  /// then values of 512 inputs tell bytes, 0 … 1 and −1 … 1; what is none of them is looked through for its smallest
  /// and largest values, by channel or column, in at most `most` inputs. Throws InputError.
  RawRange(const dataset::Dataset& data, size_t feature, const std::string& given = "", int64_t most = INT64_MAX);

  /// The four forms of a value: as the network is fed, raw, and as a part of the range.
  at::Tensor units(const at::Tensor& fed) const;
  at::Tensor raw(const at::Tensor& units) const;
  at::Tensor fed(const at::Tensor& raw) const;

  /// Raw values are whole numbers of one byte.
  bool bytes() const { return bytes_; }
  /// `0 … 255 (bytes)`; for people.
  const std::string& words() const { return words_; }
  /// Smallest and largest raw value.
  double low() const { return least_; }
  double high() const { return most_; }

 private:
  void set_affine(const dataset::Info& info, const dataset::Feature& feature);
  void set_bounds(double low, double high, const std::string& words);
  void look(const dataset::Dataset& data, size_t feature, int64_t most);
  void measure(const dataset::Dataset& data, size_t feature, int64_t most);
  at::Tensor by_channel(const std::vector<double>& values, double otherwise) const;
  at::Tensor raw_of_fed(const at::Tensor& fed) const;

  at::Tensor factor_, offset_;  ///< fed = raw · factor + offset; one number, or one per channel
  at::Tensor low_, span_;
  std::vector<int64_t> channel_shape_;  ///< what a number per channel is broadcast as
  int64_t channels_ = 1;
  double least_ = 0, most_ = 1;
  bool bytes_ = false;
  std::string words_;
};

}  // namespace netmend::stream
