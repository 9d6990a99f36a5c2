// Mean, variance and extremes of numbers that come one by one or in parts. The one accumulator of moments.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "stats/intervals.h"

namespace netmend::stats {

/// Numbers must be finite. Merging parts gives what adding all would, up to rounding (Chan et al. 1979).
class Moments {
 public:
  void add(double x) {
    ++count_;
    const double apart = x - mean_;
    mean_ += apart / double(count_);
    squares_ += apart * (x - mean_);
    low_ = std::min(low_, x), high_ = std::max(high_, x);
  }
  void merge(const Moments& other) {
    if (other.count_ == 0) return;
    const double all = double(count_ + other.count_), apart = other.mean_ - mean_;
    squares_ += other.squares_ + apart * apart * double(count_) * double(other.count_) / all;
    mean_ += apart * double(other.count_) / all;
    count_ += other.count_;
    low_ = std::min(low_, other.low_), high_ = std::max(high_, other.high_);
  }

  /// These numbers without a part of them, up to rounding; the extremes stay those of the whole.
  Moments without(const Moments& part) const {
    Moments rest;
    rest.count_ = count_ - part.count_;
    rest.low_ = low_, rest.high_ = high_;
    if (rest.count_ <= 0) return {};
    const double left = double(rest.count_);
    rest.mean_ = (sum() - part.sum()) / left;
    const double apart = part.mean_ - rest.mean_;
    rest.squares_ =
        std::max(0.0, squares_ - part.squares_ - apart * apart * double(part.count_) * left / double(count_));
    return rest;
  }
  /// From sums of x − origin and its square, for loops that cannot afford a division a value.
  static Moments of_sums(int64_t count, double origin, double sum, double squares, double low, double high) {
    Moments out;
    if (count == 0) return out;
    out.count_ = count, out.mean_ = origin + sum / double(count);
    out.squares_ = std::max(0.0, squares - sum * (sum / double(count)));
    out.low_ = low, out.high_ = high;
    return out;
  }
  /// Of factor · x + offset.
  Moments on_line(double factor, double offset) const {
    Moments out = *this;
    if (count_ == 0) return out;
    out.mean_ = factor * mean_ + offset, out.squares_ = squares_ * factor * factor;
    const double a = factor * low_ + offset, b = factor * high_ + offset;
    out.low_ = std::min(a, b), out.high_ = std::max(a, b);
    return out;
  }

  int64_t count() const { return count_; }
  double mean() const { return count_ > 0 ? mean_ : std::numeric_limits<double>::quiet_NaN(); }
  double sum() const { return mean_ * double(count_); }
  /// Of the numbers themselves, not an estimate for a population.
  double variance() const { return count_ > 0 ? std::max(0.0, squares_ / double(count_)) : 0; }
  double sample_variance() const { return count_ > 1 ? std::max(0.0, squares_ / double(count_ - 1)) : 0; }
  double deviation() const { return std::sqrt(variance()); }
  double low() const { return low_; }    ///< +∞ when there are none
  double high() const { return high_; }  ///< −∞ when there are none
  bool constant() const { return count_ > 1 && low_ == high_; }
  /// The mean with its 95 % interval.
  Estimate mean_estimate() const { return stats::mean(sum(), squares_ + double(count_) * mean_ * mean_, count_); }

 private:
  int64_t count_ = 0;
  double mean_ = 0, squares_ = 0;
  double low_ = std::numeric_limits<double>::infinity(), high_ = -std::numeric_limits<double>::infinity();
};

}  // namespace netmend::stats
