#include "observers/surprise/surprise_coverage.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace netmend::observers {

std::vector<int64_t> SurpriseCoverage::places(const std::vector<double>& scores) const {
  double low = published_ == Published::kDnnTip ? 0 : low_;
  const bool moving = published_ == Published::kSadl || published_ == Published::kDeepImportance;
  if (moving) {
    low = high_;
    for (double score : scores)
      if (std::isfinite(score)) low = std::min(low, score);
  }
  std::vector<int64_t> places;
  for (double score : scores) {
    int64_t place = -1;
    if (!std::isfinite(score)) {
      place = -1;
    } else if (published_ == Published::kNlc) {
      place = int64_t(std::clamp(std::floor(score / (high_ / double(buckets_))), 0.0, 1e15));
    } else if (moving) {
      place = score >= high_ ? buckets_ - 1 : int64_t((score - low) / (high_ - low) * double(buckets_ - 1));
    } else if (score >= low && score <= high_ && high_ > low) {
      place = std::min(int64_t((score - low) / (high_ - low) * double(buckets_)), buckets_ - 1);
    }
    places.push_back(place);
  }
  return places;
}

Figure SurpriseCoverage::figure(const std::vector<double>& scores) const {
  Figure figure{name_, {{"buckets", double(buckets_)}, {"low", low_}, {"high", high_}}};
  std::set<int64_t> hit;
  int64_t outside = 0, without = 0;
  const std::vector<int64_t> where = places(scores);
  for (size_t i = 0; i < scores.size(); ++i) {
    if (where[i] >= 0) hit.insert(where[i]);
    without += !std::isfinite(scores[i]);
    outside += std::isfinite(scores[i]) && where[i] < 0;
  }
  figure.covered = double(hit.size());
  if (published_ != Published::kNlc) figure.total = double(buckets_);
  figure.value = figure.total > 0 ? figure.covered / figure.total : figure.covered;
  if (outside > 0)
    figure.notes.push_back(fmt::format("{} lie outside {:.3g} … {:.3g}", with_commas(outside), low_, high_));
  if (without > 0) figure.notes.push_back(fmt::format("{} have no score", with_commas(without)));
  return figure;
}

}  // namespace netmend::observers
