// The limits of a gate as netmend.toml writes them, and how a figure stands to its limit.
#pragma once

#include <string>
#include <vector>

#include "session/config.h"
#include "stats/intervals.h"

namespace netmend::compare {

struct Limit {
  enum Sign { kAtLeast, kAbove, kAtMost, kBelow } sign = kAtLeast;
  double number = 0;
  bool holds(double value) const;
  /// The end of an interval that is worse.
  double worse_end(const stats::Estimate& estimate) const;
};

struct Criterion {
  enum Kind { kMetric, kRecall, kPrecision, kOverallDrop, kClassDrop, kMustPass, kLatency } kind = kMetric;
  std::string name;   ///< as in the file
  std::string limit;  ///< as in the file; of must_pass a path
  std::string line;   ///< `netmend.toml, line 7: gate.accuracy`; for messages
  std::string metric;
  std::string of;  ///< in brackets: a class, or column=value of a metric; may be empty
  Limit bound;
};

/// Throws InputError: unknown criteria suggest the nearest, limits that cannot be read name key and line.
std::vector<Criterion> read_gate(const session::Config& config);

/// What a criterion came to.
struct Ruling {
  Criterion criterion;
  stats::Estimate figure;  ///< drops in points, latency in milliseconds
  int64_t inputs = 0;      ///< that it was taken from
  std::string about;       ///< what it is about beside the criterion: the worst class, the inputs that failed
  bool pass = false;
  bool unclear = false;  ///< the interval holds the limit
  int64_t more = 0;      ///< inputs beyond those that would decide it; 0 when no number would
  int64_t accepted = 0;  ///< wrong inputs that netmend.toml accepts as known: counted apart, never hidden
};

/// The figure decides, with `strict` the worse end of its interval.
Ruling decide(const Criterion& criterion, const stats::Estimate& figure, int64_t inputs, bool strict,
              std::string about = "");

/// `97.86 % (97.6–98.1)`, `0.31 points (-0.12 to 0.74)`, `2 of 40 wrong`
std::string figure_words(const Ruling& ruling);
/// `unclear: about 3,400 more inputs would decide`; empty when it is clear.
std::string doubt_words(const Ruling& ruling);
/// `3 of the wrong inputs are accepted as known`; empty when none is.
std::string accepted_words(const Ruling& ruling);

}  // namespace netmend::compare
