// What a person would say about a picture at a glance, in numbers; and a small descriptor of it to find others like it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace netmend::census {

constexpr int64_t kDescriptorSide = 12;
constexpr int64_t kDescriptor = kDescriptorSide * kDescriptorSide;

/// Grey or colour as parts of the valid range, 0 … 1, rows first, one plane per channel.
struct Picture {
  int64_t height = 0, width = 0, channels = 1;
  std::vector<float> values;  ///< channels × height × width
};

/// brightness: mean of grey; contrast: its deviation; filled: share of pixels that are not like the background (the
/// commonest sixteenth of the range); sharpness: mean difference of neighbours; colourfulness: mean distance between
/// the strongest and the weakest colour.
std::vector<std::string> picture_properties(int64_t channels);
void describe_picture(const Picture& picture, float* out);

/// Grey, shrunk to at most 12 × 12 by averages, brightness and contrast taken out, as whole numbers: −127 … 127.
void descriptor(const Picture& picture, int8_t* out);
/// The same for values in a row: averages of `kDescriptor` equal parts.
void descriptor_of_row(std::span<const float> values, int8_t* out);

/// How alike two inputs are whatever their brightness and contrast: the correlation of their values. 0 where one of
/// them is flat.
double correlation(std::span<const float> a, std::span<const float> b);

}  // namespace netmend::census
