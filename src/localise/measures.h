// Measures of suspiciousness, in one table: help, messages and `--measure all` come from its rows. A new measure is one
// row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace netmend::localise {

/// The hit spectrum of a unit: active or not, on inputs that succeed or fail.
struct Counts {
  double as = 0, af = 0, ns = 0, nf = 0;
};

/// What a formula may need besides the counts.
struct Context {
  double star = 3;  ///< exponent of D*
  double draw = 0;  ///< a random number in [0, 1) that belongs to this unit
};

struct Measure {
  std::string_view name;
  /// Larger is more suspicious. May be infinite or NaN where a denominator vanishes: see finite_scores. Null for what
  /// is not a function of counts.
  double (*score)(const Counts& counts, const Context& context);
  std::string_view formula;
  std::string_view source;
  /// What it is made of: counts of active units, gradients of the loss, ablations, or mutants.
  enum Of { kCounts, kGradient, kAblation, kMutation } of = kCounts;
};

std::span<const Measure> measures();
/// Their names in a sentence, for help and messages.
std::string measure_names();

struct Choice {
  const Measure* measure = nullptr;
  double star = 3;
  std::string name() const;  ///< `dstar2` where the exponent is not the usual one
};
/// `ochiai`, `dstar`, `dstar2`, `D*`; `counterfactual` is an older name of ablation. Throws InputError with
/// the nearest name and the list.
Choice find_measure(const std::string& name);
/// The measure asked for, then others to compare with; `all` stands for all, led by `auto`.
std::vector<Choice> choices_of(const std::string& name);

/// NaN becomes 0; what is infinite becomes the largest finite score + 1, so that perfect suspects stay first and
/// reports stay valid.
void finite_scores(std::span<double> scores);

}  // namespace netmend::localise
