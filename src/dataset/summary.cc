#include "dataset/summary.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace netmend::dataset {
namespace {

/// Sums around the first value, so that values far from zero keep their digits without a division a value.
class Gatherer {
 public:
  template <typename T>
  void add(const T* values, int64_t count, int64_t step = 1) {
    for (int64_t i = 0; i < count; ++i) {
      const double value = double(values[i * step]);
      if (!std::isfinite(value)) {
        ++(std::isnan(value) ? nan_ : infinite_);
        continue;
      }
      if (count_++ == 0) origin_ = low_ = high_ = value;
      low_ = std::min(low_, value), high_ = std::max(high_, value);
      sum_ += value - origin_;
      squares_ += (value - origin_) * (value - origin_);
    }
  }
  ValueSummary finish() const {
    return {stats::Moments::of_sums(count_, origin_, sum_, squares_, low_, high_), nan_, infinite_};
  }

 private:
  int64_t count_ = 0, nan_ = 0, infinite_ = 0;
  double origin_ = 0, sum_ = 0, squares_ = 0, low_ = 0, high_ = 0;
};

/// Undoes scale, mean and std on a channel's figures; they are the same straight line for every value of the channel.
ValueSummary undone(const ValueSummary& after, const Preprocess& preprocess, size_t channel) {
  auto pick = [&](const std::vector<double>& values, double otherwise) {
    return values.empty() ? otherwise : values[std::min(channel, values.size() - 1)];
  };
  const double scale = preprocess.scale.value_or(1), mean = pick(preprocess.mean, 0),
               deviation = pick(preprocess.std, 1);
  return {after.finite.on_line(deviation / scale, mean / scale), after.nan, after.infinite};
}

ValueSummary together(const std::vector<ValueSummary>& parts) {
  ValueSummary out;
  for (const ValueSummary& part : parts) {
    out.nan += part.nan, out.infinite += part.infinite;
    out.finite.merge(part.finite);
  }
  return out;
}

/// Gathers one feature; images by channel, everything else as a whole.
class FeatureGatherer {
 public:
  FeatureGatherer(const Feature& feature, const Preprocess& preprocess) : feature_(feature), preprocess_(preprocess) {
    if (feature.image) {
      last_ = feature.channels_last;
      channels_ = feature.shape[last_ ? 2 : 0];
    }
    gatherers_.resize(size_t(channels_));
  }

  void add(const at::Tensor& values, const at::Tensor& mask) {
    if (mask.defined()) used_ += mask.sum().item<int64_t>(), rows_ += mask.size(0);
    if (feature_.type == at::kLong) return add_ids(values, mask);
    if (mask.defined()) {  // what pads is not data
      at::Tensor used = values.index({mask}).contiguous();
      return gatherers_[0].add(used.data_ptr<float>(), used.numel());
    }
    const int64_t count = values.size(0), step = count ? values.numel() / count / channels_ : 0;
    for (int64_t i = 0; i < count; ++i)
      for (int64_t c = 0; c < channels_; ++c) {
        const float* sample = values.data_ptr<float>() + i * step * channels_;
        gatherers_[size_t(c)].add(sample + (last_ ? c : c * step), step, last_ ? channels_ : 1);
      }
  }

  FeatureSummary finish() const {
    FeatureSummary out;
    out.feature = feature_;
    std::vector<ValueSummary> after, before;
    for (size_t c = 0; c < gatherers_.size(); ++c) {
      after.push_back(gatherers_[c].finish());
      before.push_back(feature_.columns.empty() ? undone(after[c], preprocess_, c) : after[c]);
    }
    out.values = together(after);
    out.raw = together(before);
    if (feature_.image) out.channels = after;
    out.unknown_ids = unknown_;
    if (rows_) out.mean_length = double(used_) / double(rows_);
    return out;
  }

 private:
  void add_ids(const at::Tensor& values, const at::Tensor& mask) {
    at::Tensor used = mask.defined() ? values.masked_select(mask) : values.reshape({-1});
    gatherers_[0].add(used.data_ptr<int64_t>(), used.numel());
    if (feature_.unknown >= 0) unknown_ += (used == feature_.unknown).sum().item<int64_t>();
  }

  Feature feature_;
  Preprocess preprocess_;
  bool last_ = false;
  int64_t channels_ = 1, used_ = 0, rows_ = 0, unknown_ = 0;
  std::vector<Gatherer> gatherers_;
};

void add_labels(const at::Tensor& labels, Summary& summary, Gatherer& numbers) {
  if (summary.labels == LabelKind::kClass) {
    for (int64_t i = 0; i < labels.numel(); ++i) ++summary.class_counts.at(size_t(labels.data_ptr<int64_t>()[i]));
  } else if (summary.labels == LabelKind::kMulti) {
    const int64_t width = labels.size(1);
    for (int64_t i = 0; i < labels.numel(); ++i)
      summary.class_counts.at(size_t(i % width)) += labels.data_ptr<float>()[i] != 0;
  } else if (summary.labels == LabelKind::kNumber) {
    numbers.add(labels.data_ptr<float>(), labels.numel());
  }
}

}  // namespace

Summary summarize(const Dataset& data, const std::function<void(int64_t)>& progress) {
  const Info& info = data.info();
  Summary summary;
  summary.spec = info.spec;
  summary.samples = info.size;
  summary.labels = info.labels;
  summary.classes = info.classes;
  summary.class_counts.assign(info.classes.size(), 0);
  std::vector<FeatureGatherer> features;
  for (const Feature& feature : info.features) features.emplace_back(feature, info.preprocess);
  Gatherer numbers;
  std::vector<int64_t> batch;
  for (int64_t begin = 0; begin < info.size; begin += 128) {
    batch.resize(size_t(std::min<int64_t>(128, info.size - begin)));
    std::iota(batch.begin(), batch.end(), begin);
    Batch read = data.read(batch);
    for (size_t i = 0; i < features.size(); ++i) features[i].add(read.inputs[i], read.masks[i]);
    if (read.labels.defined()) add_labels(read.labels, summary, numbers);
    if (progress) progress(begin + int64_t(batch.size()));
  }
  for (const FeatureGatherer& feature : features) summary.features.push_back(feature.finish());
  summary.label_values = numbers.finish();
  return summary;
}

}  // namespace netmend::dataset
