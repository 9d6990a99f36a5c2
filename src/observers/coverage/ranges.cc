#include "observers/coverage/ranges.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/vector_clones.h"

namespace netmend::observers {

double UnitRange::deviation() const { return seen > 0 ? std::sqrt(squares / double(seen)) : 0; }

namespace {

void merge_range(UnitRange& into, const UnitRange& later) {  // Chan, Golub, LeVeque
  if (later.seen == 0) return;
  if (into.seen == 0) {
    into = later;
    return;
  }
  double both = double(into.seen + later.seen), apart = later.mean - into.mean;
  into.squares += later.squares + apart * apart * double(into.seen) * double(later.seen) / both;
  into.mean += apart * double(later.seen) / both;
  into.low = std::min(into.low, later.low);
  into.high = std::max(into.high, later.high);
  into.seen += later.seen;
  into.zeros += later.zeros;
}

/// Sums and extremes by unit; false when a value is not finite.
NETMEND_VECTOR_CLONES bool sum_up(const float* values, int64_t inputs, int64_t units, double* sums, float* lows,
                                  float* highs, int32_t* zeros) {
  for (int64_t u = 0; u < units; ++u) sums[u] = 0, zeros[u] = 0, lows[u] = highs[u] = values[u];
  for (int64_t i = 0; i < inputs; ++i, values += units)
    for (int64_t u = 0; u < units; ++u) {
      float value = values[u];
      sums[u] += double(value);
      zeros[u] += value == 0;
      lows[u] = value < lows[u] ? value : lows[u];
      highs[u] = value > highs[u] ? value : highs[u];
    }
  double all = 0;
  for (int64_t u = 0; u < units; ++u) all += sums[u] * 0;
  return all == 0;
}

NETMEND_VECTOR_CLONES void sum_squares(const float* values, int64_t inputs, int64_t units, const double* means,
                                       double* squares) {
  for (int64_t u = 0; u < units; ++u) squares[u] = 0;
  for (int64_t i = 0; i < inputs; ++i, values += units)
    for (int64_t u = 0; u < units; ++u) {
      double apart = double(values[u]) - means[u];
      squares[u] += apart * apart;
    }
}

}  // namespace

std::unique_ptr<Tally> Ranges::fresh() const { return std::make_unique<RangeTally>(space_->units()); }

void RangeTally::add(const UnitBatch& batch) {
  const int64_t inputs = batch.count(), units = batch.units;
  means_.resize(size_t(units)), squares_.resize(size_t(units)), lows_.resize(size_t(units)),
      highs_.resize(size_t(units)), zeros_.resize(size_t(units));
  if (!sum_up(batch.values.data(), inputs, units, means_.data(), lows_.data(), highs_.data(), zeros_.data()))
    return add_finite(batch);
  for (double& mean : means_) mean /= double(inputs);
  sum_squares(batch.values.data(), inputs, units, means_.data(), squares_.data());
  for (size_t u = 0; u < size_t(units); ++u)
    merge_range(ranges[u], {double(lows_[u]), double(highs_[u]), means_[u], squares_[u], inputs, zeros_[u]});
}

/// Value by value, leaving out what is not finite.
void RangeTally::add_finite(const UnitBatch& batch) {
  for (int64_t row = 0; row < batch.count(); ++row)
    for (int64_t u = 0; u < batch.units; ++u)
      if (double value = batch.input(row)[u]; std::isfinite(value))
        merge_range(ranges[size_t(u)], {value, value, value, 0, 1, value == 0});
}

void RangeTally::merge(const Tally& later) {
  const auto& other = dynamic_cast<const RangeTally&>(later);
  for (size_t u = 0; u < ranges.size(); ++u) merge_range(ranges[u], other.ranges[u]);
}

void RangeTally::save(std::ostream& out) const {
  for (const UnitRange& range : ranges) {
    for (double number : {range.low, range.high, range.mean, range.squares}) stream::put(out, number);
    stream::put(out, range.seen);
    stream::put(out, range.zeros);
  }
}

void RangeTally::load(std::istream& in) {
  for (UnitRange& range : ranges) {
    for (double* number : {&range.low, &range.high, &range.mean, &range.squares}) {
      *number = stream::get_double(in);
      if (!std::isfinite(*number)) fail("the state file is damaged");
    }
    range.seen = stream::get_int(in);
    range.zeros = stream::get_int(in);
    if (range.seen < 0 || range.zeros < 0 || range.zeros > range.seen || range.squares < 0 || range.high < range.low)
      fail("the state file is damaged");
  }
}

}  // namespace netmend::observers
