#include "stream/raw_range.h"

#include <ATen/ATen.h>

#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "stream/pass.h"

namespace netmend::stream {
namespace {

constexpr int64_t kLook = 512;
constexpr double kNearlyWhole = 2e-3;  ///< what is left of a whole number after mean and std and back, in floats

/// 0…255, 0…1 and −1…1 are what people scale to; elsewhere the data itself has to tell.
struct Seen {
  double low, high;
  bool whole;
};

Seen seen_in(const at::Tensor& raw) {
  at::Tensor finite = raw.masked_select(raw.isfinite());
  if (finite.numel() == 0) return {0, 0, false};
  double rounding = (finite - finite.round()).abs().max().item<double>();
  return {finite.min().item<double>(), finite.max().item<double>(), rounding < kNearlyWhole};
}

}  // namespace

RawRange::RawRange(const dataset::Dataset& data, size_t feature, const std::string& given, int64_t most) {
  set_affine(data.info(), data.info().features.at(feature));
  if (given.empty()) {
    look(data, feature, most);
    return;
  }
  std::vector<std::string> ends = split(given, ':');
  double low = 0, high = 0;
  constexpr double kMost = 1e30;  // values are float32 and are still multiplied
  if (ends.size() != 2 || !parse_double(ends[0], low) || !parse_double(ends[1], high) || !(low < high) ||
      !(low >= -kMost && high <= kMost))
    throw InputError(fmt::format("--range {}: expected the smallest and the largest raw value", given),
                     "For example --range 0:255 or --range 0:1, before scale, mean and std.");
  bytes_ = low == 0 && high == 255 && seen_in(raw_of_fed(data.read(spread(data.size(), 64)).inputs[feature])).whole;
  set_bounds(low, high, bytes_ ? "bytes, as --range says" : "as --range says");
}

/// Channels of an image, or the values in a row of anything else: where mean= and std= apply.
void RawRange::set_affine(const dataset::Info& info, const dataset::Feature& feature) {
  const auto rank = int64_t(feature.shape.size());
  const bool first = feature.image && !feature.channels_last;
  channels_ = rank == 0 ? 1 : feature.shape[size_t(first ? 0 : rank - 1)];
  channel_shape_.assign(size_t(rank) + 1, 1);
  if (rank > 0) channel_shape_[size_t(first ? 1 : rank)] = channels_;
  // The encoder of a table has done what preprocessing asks for, column by column, and what each image was divided by
  // is not kept: such values are taken as they are.
  const bool kept = feature.columns.empty() && !info.preprocess.per_image;
  const dataset::Preprocess own = kept ? info.preprocess : dataset::Preprocess();
  std::vector<double> factor, offset;
  const size_t count = std::max(own.mean.size(), own.std.size());
  auto pick = [](const std::vector<double>& values, size_t c, double otherwise) {
    return values.empty() ? otherwise : values[values.size() == 1 ? 0 : c];
  };
  for (size_t c = 0; c < std::max<size_t>(1, count); ++c) {
    double deviation = pick(own.std, c, 1);
    factor.push_back(double(float(own.scale.value_or(1) / deviation)));
    offset.push_back(double(float(-pick(own.mean, c, 0) / deviation)));
  }
  factor_ = by_channel(factor, 1), offset_ = by_channel(offset, 0);
}

at::Tensor RawRange::by_channel(const std::vector<double>& values, double otherwise) const {
  if (values.size() <= 1) return at::full({}, values.empty() ? otherwise : values[0], at::kFloat);
  return at::tensor(values, at::kDouble).to(at::kFloat).reshape(channel_shape_);
}

void RawRange::set_bounds(double low, double high, const std::string& words) {
  least_ = low, most_ = high;
  low_ = at::full({}, low, at::kFloat), span_ = at::full({}, high - low, at::kFloat);
  words_ = fmt::format("{:g} … {:g} ({})", low, high, words);
}

void RawRange::look(const dataset::Dataset& data, size_t feature, int64_t most) {
  const dataset::Feature& about = data.info().features[feature];
  if (!about.columns.empty()) return measure(data, feature, most);
  Seen seen = seen_in(raw_of_fed(data.read(spread(data.size(), kLook)).inputs[feature]));
  // Counts and years are whole numbers too: without rows and columns only large ones are taken for bytes.
  const bool pixels = about.image || seen.high > 127;
  if (seen.whole && pixels && seen.low > -0.5 && seen.high > 1.5 && seen.high < 255.5) {
    bytes_ = true;
    return set_bounds(0, 255, "bytes");
  }
  constexpr double kSlack = 1e-5;
  if (about.image && seen.low >= -kSlack && seen.high > 127 && seen.high < 255.5)  // resized bytes, for example
    return set_bounds(0, 255, "real numbers");
  if (seen.low >= -kSlack && seen.high <= 1 + kSlack) return set_bounds(0, 1, "real numbers");
  if (seen.low >= -1 - kSlack && seen.high <= 1 + kSlack) return set_bounds(-1, 1, "real numbers");
  measure(data, feature, most);
}

/// Smallest and largest value of each channel or column, over at most so many inputs.
void RawRange::measure(const dataset::Dataset& data, size_t feature, int64_t most) {
  const bool apart = data.info().features[feature].image || channel_shape_.size() == 2;
  std::vector<int64_t> axes;
  for (size_t axis = 0; axis < channel_shape_.size(); ++axis)
    if (!apart || channel_shape_[axis] == 1) axes.push_back(int64_t(axis));
  at::Tensor low, high;
  const std::vector<int64_t> all = spread(data.size(), most);
  for (size_t first = 0; first < all.size(); first += 256) {
    const auto begin = all.begin() + int64_t(first), end = all.begin() + int64_t(std::min(first + 256, all.size()));
    at::Tensor raw = raw_of_fed(data.read({begin, end}).inputs[feature]);
    at::Tensor known = raw.isfinite();
    at::Tensor least = at::where(known, raw, at::full({}, INFINITY, at::kFloat)).amin(axes, true);
    at::Tensor most = at::where(known, raw, at::full({}, -INFINITY, at::kFloat)).amax(axes, true);
    low = low.defined() ? at::minimum(low, least) : least;
    high = high.defined() ? at::maximum(high, most) : most;
  }
  // A value that never changes has a range of nothing: it stays what it is.
  at::Tensor known = low.isfinite().logical_and(high.isfinite());
  low_ = at::where(known, low, at::zeros({}, at::kFloat));
  span_ = at::where(known, high - low, at::zeros({}, at::kFloat));
  least_ = low_.min().item<double>(), most_ = (low_ + span_).max().item<double>();
  words_ = fmt::format("{:.4g} … {:.4g} (the smallest and largest values in the data{})", least_, most_,
                       low_.numel() == 1                     ? ""
                       : data.info().features[feature].image ? ", by channel"
                                                             : ", by column");
}

namespace {

/// A single number goes with tensors on any device, several have to be where those are.
at::Tensor beside(const at::Tensor& numbers, const at::Tensor& values) {
  return numbers.dim() == 0 ? numbers : numbers.to(values.device());
}

}  // namespace

at::Tensor RawRange::raw_of_fed(const at::Tensor& fed) const {
  return (fed - beside(offset_, fed)) / beside(factor_, fed);
}
at::Tensor RawRange::units(const at::Tensor& fed) const {
  at::Tensor span = at::where(span_ > 0, span_, at::ones({}, at::kFloat));
  return (raw_of_fed(fed) - beside(low_, fed)) / beside(span, fed);
}
at::Tensor RawRange::raw(const at::Tensor& units) const { return units * beside(span_, units) + beside(low_, units); }
at::Tensor RawRange::fed(const at::Tensor& raw) const { return raw * beside(factor_, raw) + beside(offset_, raw); }

}  // namespace netmend::stream
