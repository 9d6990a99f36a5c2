// What a data set holds, counted in one streamed pass: the content of `netmend data SPEC`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "dataset/dataset.h"
#include "stats/moments.h"

namespace netmend::dataset {

/// Of finite values only; the others are counted.
struct ValueSummary {
  stats::Moments finite;
  int64_t nan = 0, infinite = 0;
};

struct FeatureSummary {
  Feature feature;
  ValueSummary values;                 ///< after preprocessing
  ValueSummary raw;                    ///< before scale, mean and std; the same where there are none of these
  std::vector<ValueSummary> channels;  ///< of images, after preprocessing
  int64_t unknown_ids = 0;             ///< words that the vocabulary does not hold
  double mean_length = 0;              ///< of padded rows, without padding
};

struct Summary {
  std::string spec;
  int64_t samples = 0;
  std::vector<FeatureSummary> features;
  LabelKind labels = LabelKind::kNone;
  std::vector<std::string> classes;
  std::vector<int64_t> class_counts;  ///< one per class, for classes and several classes at once
  ValueSummary label_values;          ///< of labels that are numbers
};

/// `progress` is told how many samples are done.
Summary summarize(const Dataset& data, const std::function<void(int64_t done)>& progress = {});

}  // namespace netmend::dataset
