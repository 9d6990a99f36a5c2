#include "dataset/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace netmend::dataset {
namespace {

struct Filter {
  double support;
  double (*weight)(double);
};

double triangle(double x) { return std::max(0.0, 1 - std::abs(x)); }

/// The cubic convolution kernel with slope `a` at 1.
double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

double sinc(double x) {
  if (x == 0) return 1;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos(double x) { return std::abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0; }

Filter filter_of(const Resize& resize) {
  if (resize.filter == "bilinear") return {1, triangle};
  if (resize.filter == "lanczos") return {3, lanczos};
  check(resize.filter == "bicubic", "no filter {}", resize.filter);
  // With antialiasing Pillow and torch use slope -0.5; without it torch and OpenCV use -0.75.
  if (resize.antialias) return {2, [](double x) { return cubic(x, -0.5); }};
  return {2, [](double x) { return cubic(x, -0.75); }};
}

/// Which input positions make up each output position, and how much.
struct Weights {
  std::vector<int64_t> first, count;
  std::vector<double> values;  ///< `width` an output position
  int64_t width = 0;
};

Weights weights_of(int64_t in, int64_t out, const Resize& resize) {
  Weights weights;
  double scale = double(in) / double(out);
  if (resize.filter == "nearest") {
    weights.width = 1;
    for (int64_t i = 0; i < out; ++i) weights.first.push_back(std::min(in - 1, int64_t((double(i) + 0.5) * scale)));
    weights.count.assign(size_t(out), 1);
    weights.values.assign(size_t(out), 1);
    return weights;
  }
  Filter filter = filter_of(resize);
  double stretch = resize.antialias ? std::max(scale, 1.0) : 1.0;
  double support = filter.support * stretch;
  weights.width = int64_t(std::ceil(support)) * 2 + 1;
  weights.values.assign(size_t(out * weights.width), 0);
  for (int64_t i = 0; i < out; ++i) {
    double center = (double(i) + 0.5) * scale;
    int64_t first = std::max<int64_t>(0, int64_t(center - support + 0.5));
    int64_t end = std::min(in, int64_t(center + support + 0.5));
    double* row = &weights.values[size_t(i * weights.width)];
    double sum = 0;
    for (int64_t j = first; j < end; ++j) sum += row[j - first] = filter.weight((double(j) - center + 0.5) / stretch);
    for (int64_t j = first; j < end && sum != 0; ++j) row[j - first] /= sum;
    weights.first.push_back(first);
    weights.count.push_back(end - first);
  }
  return weights;
}

constexpr int kBits = 32 - 8 - 2;  ///< Pillow's fixed point: room for 8 bits of value and two of overshoot

/// The arithmetic of one output value, in fixed point for bytes and in double for floats.
template <typename T>
struct Arithmetic;

template <>
struct Arithmetic<uint8_t> {
  using Weight = int32_t;
  using Sum = int32_t;
  static Weight weight(double w) { return Weight(w * (1 << kBits) + (w < 0 ? -0.5 : 0.5)); }
  static constexpr Sum start = 1 << (kBits - 1);
  static uint8_t finish(Sum sum) { return uint8_t(std::clamp(sum >> kBits, 0, 255)); }
};

template <>
struct Arithmetic<float> {
  using Weight = double;
  using Sum = double;
  static Weight weight(double w) { return w; }
  static constexpr Sum start = 0;
  static float finish(Sum sum) { return float(sum); }
};

template <typename T>
struct Table {
  Weights shape;
  std::vector<typename Arithmetic<T>::Weight> values;
  Table(int64_t in, int64_t out, const Resize& resize) : shape(weights_of(in, out, resize)) {
    for (double value : shape.values) values.push_back(Arithmetic<T>::weight(value));
  }
};

/// Makes `out` positions of one axis; every position of it is `inner` values wide in the result.
template <typename T>
std::vector<T> pass_columns(const PixelView<T>& image, const Table<T>& table, int64_t out) {
  using A = Arithmetic<T>;
  std::vector<T> result(size_t(image.height * out * image.channels));
  T* to = result.data();
  for (int64_t y = 0; y < image.height; ++y)
    for (int64_t x = 0; x < out; ++x) {
      const auto* weight = &table.values[size_t(x * table.shape.width)];
      const T* from = image.data + y * image.row_stride + table.shape.first[size_t(x)] * image.column_stride;
      for (int64_t c = 0; c < image.channels; ++c, ++to) {
        typename A::Sum sum = A::start;
        for (int64_t k = 0; k < table.shape.count[size_t(x)]; ++k)
          sum += weight[k] * from[k * image.column_stride + c * image.channel_stride];
        *to = A::finish(sum);
      }
    }
  return result;
}

template <typename T>
std::vector<T> pass_rows(const std::vector<T>& image, int64_t row, const Table<T>& table, int64_t out) {
  using A = Arithmetic<T>;
  std::vector<T> result(size_t(out * row));
  std::vector<typename A::Sum> sums(static_cast<size_t>(row));
  for (int64_t y = 0; y < out; ++y) {
    std::fill(sums.begin(), sums.end(), A::start);
    for (int64_t k = 0; k < table.shape.count[size_t(y)]; ++k) {
      auto weight = table.values[size_t(y * table.shape.width + k)];
      const T* from = image.data() + (table.shape.first[size_t(y)] + k) * row;
      for (int64_t i = 0; i < row; ++i) sums[size_t(i)] += weight * from[i];
    }
    for (int64_t i = 0; i < row; ++i) result[size_t(y * row + i)] = A::finish(sums[size_t(i)]);
  }
  return result;
}

/// Size before the middle is cut out, as torchvision computes it.
std::pair<int64_t, int64_t> scaled(int64_t height, int64_t width, const Resize& resize) {
  if (!resize.shorter) return {resize.height, resize.width};
  if (height <= width) return {resize.shorter, int64_t(double(resize.shorter * width) / double(height))};
  return {int64_t(double(resize.shorter * height) / double(width)), resize.shorter};
}

template <typename T>
std::vector<T> middle(const std::vector<T>& image, int64_t height, int64_t width, int64_t channels, int64_t crop) {
  int64_t top = int64_t(std::nearbyint(double(height - crop) / 2)),
          left = int64_t(std::nearbyint(double(width - crop) / 2));
  std::vector<T> result;
  result.reserve(size_t(crop * crop * channels));
  for (int64_t y = 0; y < crop; ++y) {
    auto row = image.begin() + ((top + y) * width + left) * channels;
    result.insert(result.end(), row, row + crop * channels);
  }
  return result;
}

}  // namespace

std::pair<int64_t, int64_t> resized(int64_t height, int64_t width, const Resize& resize) {
  if (resize.shorter) return {resize.crop, resize.crop};
  return {resize.height, resize.width};
}

template <typename T>
std::vector<T> resample(const PixelView<T>& image, const Resize& resize) {
  auto [height, width] = scaled(image.height, image.width, resize);
  if (height > 1 << 16 || width > 1 << 16)
    fail("an image of {}×{} becomes too long when resized", image.height, image.width);
  Table<T> columns(image.width, width, resize), rows(image.height, height, resize);
  std::vector<T> narrow = pass_columns(image, columns, width);
  std::vector<T> result = pass_rows(narrow, width * image.channels, rows, height);
  if (resize.shorter) result = middle(result, height, width, image.channels, resize.crop);
  return result;
}

template std::vector<uint8_t> resample(const PixelView<uint8_t>&, const Resize&);
template std::vector<float> resample(const PixelView<float>&, const Resize&);

}  // namespace netmend::dataset
