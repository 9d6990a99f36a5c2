#include "census/picture.h"

#include <algorithm>
#include <cmath>

namespace netmend::census {
namespace {

std::vector<float> grey(const Picture& picture) {
  const int64_t pixels = picture.height * picture.width;
  std::vector<float> out(size_t(pixels), 0);
  for (int64_t c = 0; c < picture.channels; ++c)
    for (int64_t i = 0; i < pixels; ++i) out[size_t(i)] += picture.values[size_t(c * pixels + i)];
  for (float& value : out) value /= float(picture.channels);
  return out;
}

double filled(const std::vector<float>& grey) {
  std::array<int64_t, 16> bins{};
  for (float value : grey) ++bins[size_t(std::clamp(value, 0.f, 0.999f) * 16)];
  const auto commonest = double(std::max_element(bins.begin(), bins.end()) - bins.begin());
  const double background = (commonest + 0.5) / 16;
  auto apart =
      std::count_if(grey.begin(), grey.end(), [&](float value) { return std::abs(double(value) - background) > 0.25; });
  return double(apart) / double(grey.size());
}

double sharpness(const std::vector<float>& grey, int64_t height, int64_t width) {
  double sum = 0;
  int64_t count = 0;
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      const float here = grey[size_t(y * width + x)];
      if (x + 1 < width) sum += std::abs(grey[size_t(y * width + x + 1)] - here), ++count;
      if (y + 1 < height) sum += std::abs(grey[size_t((y + 1) * width + x)] - here), ++count;
    }
  return count ? sum / double(count) : 0;
}

double colourfulness(const Picture& picture) {
  const int64_t pixels = picture.height * picture.width;
  double sum = 0;
  for (int64_t i = 0; i < pixels; ++i) {
    float least = picture.values[size_t(i)], most = least;
    for (int64_t c = 1; c < 3; ++c) {
      const float value = picture.values[size_t(c * pixels + i)];
      least = std::min(least, value), most = std::max(most, value);
    }
    sum += most - least;
  }
  return sum / double(pixels);
}

/// Mean of 0, largest size of 127; all 0 for what is flat.
void normalise(std::vector<double>& values, int8_t* out) {
  double mean = 0, most = 0;
  for (double value : values) mean += value / double(values.size());
  for (double& value : values) value -= mean, most = std::max(most, std::abs(value));
  for (size_t i = 0; i < values.size(); ++i)
    out[i] = most < 1e-4 || !std::isfinite(most) ? int8_t(0) : int8_t(std::lround(127 * values[i] / most));
}

}  // namespace

std::vector<std::string> picture_properties(int64_t channels) {
  std::vector<std::string> names = {"brightness", "contrast", "filled", "sharpness"};
  if (channels == 3) names.push_back("colourfulness");
  return names;
}

void describe_picture(const Picture& picture, float* out) {
  std::vector<float> plane = grey(picture);
  double sum = 0, squares = 0;
  for (float value : plane) sum += value;
  const double mean = plane.empty() ? 0 : sum / double(plane.size());
  for (float value : plane) squares += (value - mean) * (value - mean);
  out[0] = float(mean);
  out[1] = float(plane.empty() ? 0 : std::sqrt(squares / double(plane.size())));
  out[2] = float(plane.empty() ? 0 : filled(plane));
  out[3] = float(sharpness(plane, picture.height, picture.width));
  if (picture.channels == 3) out[4] = float(plane.empty() ? 0 : colourfulness(picture));
}

void descriptor(const Picture& picture, int8_t* out) {
  std::vector<float> plane = grey(picture);
  std::vector<double> cells(size_t(kDescriptor), 0), counts(size_t(kDescriptor), 0);
  // Each pixel counts for the cell that its middle lies in; pictures smaller than the descriptor leave cells out
  // evenly.
  for (int64_t y = 0; y < picture.height; ++y)
    for (int64_t x = 0; x < picture.width; ++x) {
      const size_t cell = size_t((2 * y + 1) * kDescriptorSide / (2 * picture.height) * kDescriptorSide +
                                 (2 * x + 1) * kDescriptorSide / (2 * picture.width));
      cells[cell] += plane[size_t(y * picture.width + x)], counts[cell] += 1;
    }
  double sum = 0, used = 0;
  for (size_t i = 0; i < cells.size(); ++i)
    if (counts[i] > 0) cells[i] /= counts[i], sum += cells[i], used += 1;
  for (size_t i = 0; i < cells.size(); ++i)
    if (counts[i] == 0) cells[i] = used > 0 ? sum / used : 0;
  normalise(cells, out);
}

void descriptor_of_row(std::span<const float> values, int8_t* out) {
  std::vector<double> cells(size_t(kDescriptor), 0), counts(size_t(kDescriptor), 0);
  const auto size = int64_t(values.size());
  for (int64_t i = 0; i < size; ++i) {
    const size_t cell = size_t((2 * i + 1) * kDescriptor / (2 * size));
    cells[cell] += values[size_t(i)], counts[cell] += 1;
  }
  double sum = 0, used = 0;
  for (size_t i = 0; i < cells.size(); ++i)
    if (counts[i] > 0) cells[i] /= counts[i], sum += cells[i], used += 1;
  for (size_t i = 0; i < cells.size(); ++i)
    if (counts[i] == 0) cells[i] = used > 0 ? sum / used : 0;
  normalise(cells, out);
}

double correlation(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size() || a.empty()) return 0;
  double mean_a = 0, mean_b = 0, ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) mean_a += a[i], mean_b += b[i];
  mean_a /= double(a.size()), mean_b /= double(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i] - mean_a, y = b[i] - mean_b;
    ab += x * y, aa += x * x, bb += y * y;
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

}  // namespace netmend::census
