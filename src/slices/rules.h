// Where a network is weak, as rules that people can act on: at most two terms over columns and properties. Found on one
// half of the inputs and judged on the other, so that what is reported is not chosen noise.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "slices/columns.h"
#include "stats/intervals.h"
#include "stats/moments.h"

namespace netmend::slices {

struct Term {
  enum Op { kIs, kBelow, kAtLeast };
  size_t column = 0;
  Op op = kIs;
  int32_t code = -1;
  float threshold = 0;
  bool holds(const Column& of, size_t row) const;
};

struct Rule {
  std::vector<Term> terms;  ///< all must hold
  bool holds(const std::vector<Column>& columns, size_t row) const;
};
/// `hours < 25 and sex = Female`
std::string rule_words(const std::vector<Column>& columns, const Rule& rule);
/// Made of names, the same when thresholds move a little: `hours=low,sex=Female`.
std::string rule_name(const std::vector<Column>& columns, const Rule& rule);

/// All terms that hold for at least `least` of the rows: words, and thresholds at quantiles, rounded to three digits.
std::vector<Term> make_terms(const std::vector<Column>& columns, const std::vector<size_t>& rows, int64_t least);

struct Slice {
  Rule rule;
  std::string name, words;
  int64_t inputs = 0;                   ///< of all judged inputs
  int64_t found_on = 0, judged_on = 0;  ///< of the half that the rule was found on, of the other half
  stats::Estimate here, rest;           ///< mean failing, on the other half
  stats::Estimate behind;               ///< their difference
  double p = 1;                         ///< of so large a difference by chance, one side, corrected (Holm)
  double gain = 0;                      ///< failing that would vanish at the rest's rate, as a part of all inputs
  double explained_by_confidence = 0;   ///< part of the difference that confidence and class explain
  std::vector<size_t> rows;             ///< that the rule holds for
};

/// Part of a slice's gap from which on confidence and class explain most of it: said wherever a slice is shown.
constexpr double kMostlyExplained = 0.7;

struct Search {
  int64_t least = 50;   ///< inputs of a slice
  double widest = 0.6;  ///< part of the inputs that still is a slice
  double apart = 0.02;  ///< smallest difference worth naming
  double level = 0.01;  ///< of the corrected test
  size_t most = 8;      ///< rules that are looked for
  double work = 2e9;    ///< terms² × rows of the search; more terms or rows are thinned
};

struct Weakness {
  std::vector<Slice> slices;  ///< confirmed, the most gain first
  int64_t terms = 0;          ///< that rules were made of
  int64_t rules = 0;          ///< that were compared
  int64_t tested = 0;         ///< of these, tried on the other half
};

/// `failing`: how wrong each row is, 0 … 1 for classes; NaN where it was not judged. `half`: 0 to find on, 1 to judge
/// on. `expected`: errors expected given confidence and class, see expected_errors(); may be empty.
Weakness find_weak(const std::vector<Column>& columns, std::span<const double> failing, std::span<const uint8_t> half,
                   std::span<const double> expected, const Search& how = {});

/// Expected errors: mean failing at each row's confidence and class, learned on half 0 in bins of at least fifty: what
/// is expected of a network that knows its limits, and of classes that are hard wherever they occur. `classes`: one per
/// row, or empty; classes with few inputs share one table.
std::vector<double> expected_errors(std::span<const float> confidence, std::span<const double> classes,
                                    std::span<const double> failing, std::span<const uint8_t> half);

/// Which part of a slice's gap a table of expected errors explains, on half 1; 0 without a table or a gap.
double explained_part(const Slice& slice, std::span<const double> failing, std::span<const uint8_t> half,
                      std::span<const double> expected);

/// Halves by content, so that order and duplicates change nothing.
std::vector<uint8_t> halves(std::span<const uint64_t> hashes, uint64_t seed);

/// One-sided p of `here` having the larger mean: Fisher's exact test of right and wrong, Student's of other numbers.
double larger_by_chance(const stats::Moments& here, const stats::Moments& rest);

}  // namespace netmend::slices
