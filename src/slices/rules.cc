#include "slices/rules.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/random.h"
#include "base/text.h"
#include "slices/groups.h"
#include "stats/comparisons.h"
#include "stats/distributions.h"

namespace netmend::slices {

using stats::Moments;

namespace {

constexpr double kQuantiles[] = {0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95};
constexpr double kSearchDeviations = 3;     ///< a rule this far from the rest is tried on the other half
constexpr double kRefinesDeviations = 2.5;  ///< a second term must add this much

/// Three digits are enough for people, and the same when the data changes a little.
float rounded(float value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const double unit = std::pow(10.0, std::floor(std::log10(std::abs(double(value)))) - 2);
  return float(std::round(double(value) / unit) * unit);
}

std::string number_text(float value) {
  return std::abs(value) >= 1000 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

/// Nothing but 0 and 1.
bool right_or_wrong(const Moments& failing) {
  const double mean = failing.mean();
  return std::abs(failing.variance() - mean * (1 - mean)) < 1e-9 &&
         std::abs(failing.sum() - std::round(failing.sum())) < 1e-3;
}

stats::Estimate estimate(const Moments& failing) {
  // Of shares of right and wrong the score interval is right for few inputs too.
  return right_or_wrong(failing) ? stats::rate(std::llround(failing.sum()), failing.count()) : failing.mean_estimate();
}

/// The search: a matrix of terms × rows, so that counts and failing of all pairs of terms are two products.
class Pairs {
 public:
  Pairs(const std::vector<Column>& columns, std::vector<Term> terms, const std::vector<size_t>& rows,
        std::span<const double> failing)
      : terms_(std::move(terms)), holds_(at::zeros({int64_t(terms_.size()), int64_t(rows.size())}, at::kFloat)) {
    for (size_t t = 0; t < terms_.size(); ++t) {
      float* line = holds_.data_ptr<float>() + t * rows.size();
      for (size_t r = 0; r < rows.size(); ++r) line[r] = terms_[t].holds(columns[terms_[t].column], rows[r]);
    }
    whole_ = at::mm(holds_, holds_.t());
    failing_ = at::empty({int64_t(rows.size())}, at::kFloat);
    for (size_t r = 0; r < rows.size(); ++r) failing_.data_ptr<float>()[r] = float(failing[rows[r]]);
  }

  struct Best {
    size_t first = 0, second = 0;
    double z = 0;
  };

  /// The rule whose rows among the remaining ones fail most clearly more often than the other remaining ones.
  Best best(const at::Tensor& left, double least, double most, double apart) const {
    at::Tensor weighted = holds_ * left;
    at::Tensor counts = at::mm(weighted, holds_.t()), sums = at::mm(weighted * failing_, holds_.t());
    const double all = left.sum().item<double>(), fail = (left * failing_).sum().item<double>(),
                 squares = (left * failing_ * failing_).sum().item<double>();
    const double variance = all > 0 ? std::max(1e-12, squares / all - fail * fail / all / all) : 1;
    const float *count = counts.data_ptr<float>(), *sum = sums.data_ptr<float>(), *whole = whole_.data_ptr<float>();
    const size_t wide = terms_.size();
    auto z_of = [&](size_t i, size_t j) {
      const double in = count[i * wide + j], out = all - in;
      if (in < least || out < least || whole[i * wide + j] > most) return 0.0;
      const double gap = sum[i * wide + j] / in - (fail - sum[i * wide + j]) / out;
      return gap < apart ? 0.0 : gap / std::sqrt(variance * (1 / in + 1 / out));
    };
    Best one, two;
    for (size_t i = 0; i < wide; ++i) {
      if (double z = z_of(i, i); z > one.z) one = {i, i, z};
      for (size_t j = i + 1; j < wide; ++j)
        if (double z = z_of(i, j); z > two.z && refines(count, sum, i, j, variance)) two = {i, j, z};
    }
    // Of two that explain about as much, the simpler one.
    return two.z > one.z + 1 ? two : one;
  }

  const Term& term(size_t i) const { return terms_[i]; }

 private:
  /// Within each of its terms, the other one makes a clear difference.
  bool refines(const float* count, const float* sum, size_t i, size_t j, double variance) const {
    const size_t wide = terms_.size();
    const double both = count[i * wide + j], failing = sum[i * wide + j];
    for (size_t t : {i, j}) {
      const double without = count[t * wide + t] - both;
      if (without < 1) return false;
      const double gap = failing / both - (sum[t * wide + t] - failing) / without;
      if (gap / std::sqrt(variance * (1 / both + 1 / without)) < kRefinesDeviations) return false;
    }
    return true;
  }

  std::vector<Term> terms_;
  at::Tensor holds_, whole_, failing_;
};

std::vector<size_t> thinned(const std::vector<size_t>& rows, double most) {
  const auto step = size_t(std::max(1.0, std::ceil(double(rows.size()) / std::max(1.0, most))));
  std::vector<size_t> out;
  for (size_t i = 0; i < rows.size(); i += step) out.push_back(rows[i]);
  return out;
}

/// The terms that alone tell most; pairs of all would be too much work.
std::vector<Term> strongest(const std::vector<Column>& columns, std::vector<Term> terms,
                            const std::vector<size_t>& rows, std::span<const double> failing, size_t most) {
  if (terms.size() <= most) return terms;
  std::vector<std::pair<double, size_t>> order;
  for (size_t t = 0; t < terms.size(); ++t) {
    Moments in, out;
    for (size_t row : rows) (terms[t].holds(columns[terms[t].column], row) ? in : out).add(failing[row]);
    order.emplace_back(larger_by_chance(in, out), t);
  }
  std::sort(order.begin(), order.end());
  std::vector<size_t> chosen;
  for (size_t i = 0; i < most; ++i) chosen.push_back(order[i].second);
  std::sort(chosen.begin(), chosen.end());
  std::vector<Term> kept;
  for (size_t t : chosen) kept.push_back(terms[t]);
  return kept;
}

/// Two thresholds of one column in the order that people read them.
bool is_between(const Rule& rule) {
  return rule.terms.size() == 2 && rule.terms[0].column == rule.terms[1].column && rule.terms[0].op != Term::kIs &&
         rule.terms[0].op != rule.terms[1].op;
}

Slice judge(const std::vector<Column>& columns, const Rule& rule, std::span<const double> failing,
            std::span<const uint8_t> half, std::span<const double> expected) {
  Slice slice;
  slice.rule = rule;
  slice.name = rule_name(columns, rule);
  slice.words = rule_words(columns, rule);
  Moments here, rest;
  for (size_t row = 0; row < failing.size(); ++row) {
    if (std::isnan(failing[row])) continue;
    const bool in = rule.holds(columns, row);
    if (in) ++slice.inputs, ++(half[row] ? slice.judged_on : slice.found_on), slice.rows.push_back(row);
    if (half[row] == 0) continue;
    (in ? here : rest).add(failing[row]);
  }
  slice.here = estimate(here), slice.rest = estimate(rest);
  const double gap = here.mean() - rest.mean();
  slice.behind = difference(slice.here, slice.rest);
  const auto all = double(here.count() + rest.count());
  slice.gain = all > 0 ? std::max(0.0, gap) * double(here.count()) / all : 0;
  slice.explained_by_confidence = explained_part(slice, failing, half, expected);
  return slice;
}

}  // namespace

double larger_by_chance(const Moments& here, const Moments& rest) {
  if (here.count() < 1 || rest.count() < 1) return 1;
  Moments all = here;
  all.merge(rest);
  if (right_or_wrong(here) && right_or_wrong(rest))
    return stats::fisher_tail(std::llround(here.sum()), here.count(),
                              std::llround(here.sum()) + std::llround(rest.sum()), all.count());
  // The pooled variance stands in where few inputs show none of their own.
  const double variance = std::max(all.sample_variance(), 1e-12);
  const double each = 1 / double(here.count()) + 1 / double(rest.count());
  return stats::t_tail((here.mean() - rest.mean()) / std::sqrt(variance * each), double(all.count() - 2));
}

bool Term::holds(const Column& of, size_t row) const {
  if (op == kIs) return of.codes[row] == code;
  const float value = of.numbers[row];
  return op == kBelow ? value < threshold : value >= threshold;
}

bool Rule::holds(const std::vector<Column>& columns, size_t row) const {
  return std::all_of(terms.begin(), terms.end(),
                     [&](const Term& term) { return term.holds(columns[term.column], row); });
}

std::string rule_words(const std::vector<Column>& columns, const Rule& rule) {
  if (is_between(rule)) {
    const bool low_first = rule.terms[0].op == Term::kAtLeast;
    const Term &low = rule.terms[low_first ? 0 : 1], &high = rule.terms[low_first ? 1 : 0];
    return fmt::format("{} <= {} < {}", number_text(low.threshold), columns[low.column].name,
                       number_text(high.threshold));
  }
  std::vector<std::string> words;
  for (const Term& term : rule.terms) {
    const Column& column = columns[term.column];
    words.push_back(
        term.op == Term::kIs
            ? fmt::format("{} = {}", column.name, column.words[size_t(term.code)])
            : fmt::format("{} {} {}", column.name, term.op == Term::kBelow ? "<" : ">=", number_text(term.threshold)));
  }
  return join(words, " and ");
}

std::string rule_name(const std::vector<Column>& columns, const Rule& rule) {
  if (is_between(rule)) return columns[rule.terms[0].column].name + "=middle";
  std::vector<std::string> words;
  for (const Term& term : rule.terms) {
    const Column& column = columns[term.column];
    const std::string value = term.op == Term::kIs      ? column.words[size_t(term.code)]
                              : term.op == Term::kBelow ? "low"
                                                        : "high";
    words.push_back(column.name + "=" + value);
  }
  std::sort(words.begin(), words.end());
  return join(words, ",");
}

std::vector<Term> make_terms(const std::vector<Column>& columns, const std::vector<size_t>& rows, int64_t least) {
  std::vector<Term> terms;
  for (size_t c = 0; c < columns.size(); ++c) {
    const Column& column = columns[c];
    auto add = [&](const Term& term) {
      int64_t count = 0;
      for (size_t row : rows) count += term.holds(column, row);
      if (count >= least && count + least <= int64_t(rows.size())) terms.push_back(term);
    };
    if (column.is_words()) {
      for (size_t code = 0; code < column.words.size(); ++code) add({c, Term::kIs, int32_t(code), 0});
      continue;
    }
    std::vector<float> values;
    for (size_t row : rows)
      if (std::isfinite(column.numbers[row])) values.push_back(column.numbers[row]);
    if (values.empty()) continue;
    std::sort(values.begin(), values.end());
    std::vector<float> edges;
    for (double q : kQuantiles) edges.push_back(rounded(values[size_t(q * double(values.size() - 1))]));
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    for (float edge : edges) add({c, Term::kBelow, -1, edge}), add({c, Term::kAtLeast, -1, edge});
  }
  return terms;
}

Weakness find_weak(const std::vector<Column>& columns, std::span<const double> failing, std::span<const uint8_t> half,
                   std::span<const double> expected, const Search& how) {
  std::vector<size_t> to_find, to_judge;
  for (size_t row = 0; row < failing.size(); ++row)
    if (!std::isnan(failing[row])) (half[row] ? to_judge : to_find).push_back(row);
  Weakness found;
  if (int64_t(to_find.size()) < how.least || int64_t(to_judge.size()) < how.least) return found;
  to_find = thinned(to_find, 20000);
  const double rows = double(to_find.size());
  const auto least = std::max<int64_t>(how.least / 2, 1);
  auto terms = strongest(columns, make_terms(columns, to_find, least), to_find, failing,
                         size_t(std::max(20.0, std::sqrt(how.work / rows))));
  found.terms = int64_t(terms.size());
  found.rules = found.terms * (found.terms + 1) / 2;
  if (terms.empty()) return found;

  Pairs pairs(columns, terms, to_find, failing);
  at::Tensor left = at::ones({int64_t(to_find.size())}, at::kFloat);
  std::vector<uint8_t> covered(failing.size(), 0);
  std::vector<double> p;
  std::vector<Slice> tried;
  std::set<std::string> names;
  for (size_t round = 0; round < 2 * how.most && tried.size() < how.most; ++round) {
    Pairs::Best best = pairs.best(left, double(least), how.widest * rows, how.apart);
    if (best.z < kSearchDeviations) break;
    Rule rule{{pairs.term(best.first)}};
    if (best.second != best.first) rule.terms.push_back(pairs.term(best.second));
    // What an earlier rule explained does not count again: neither for finding nor for the test.
    Moments here, rest;
    for (size_t row : to_judge)
      if (!covered[row]) (rule.holds(columns, row) ? here : rest).add(failing[row]);
    Slice slice = judge(columns, rule, failing, half, expected);
    for (size_t row : slice.rows) covered[row] = 1;
    // The same columns in the same direction with another threshold: said already.
    if (names.insert(slice.name).second) p.push_back(larger_by_chance(here, rest)), tried.push_back(std::move(slice));
    for (size_t r = 0; r < to_find.size(); ++r)
      if (covered[to_find[r]]) left.data_ptr<float>()[r] = 0;
  }
  found.tested = int64_t(tried.size());
  std::vector<double> corrected = stats::holm(p);
  for (size_t i = 0; i < tried.size(); ++i) {
    tried[i].p = corrected[i];
    if (corrected[i] <= how.level && tried[i].behind.value >= how.apart && tried[i].behind.low > 0 &&
        tried[i].inputs >= how.least)
      found.slices.push_back(std::move(tried[i]));
  }
  std::stable_sort(found.slices.begin(), found.slices.end(),
                   [](const Slice& a, const Slice& b) { return a.gain > b.gain; });
  return found;
}

namespace {

constexpr size_t kEnoughOfAClass = 100;  ///< inputs with which a class gets a table of its own

/// Mean failing by bins of confidence, of which each has enough rows.
class ConfidenceTable {
 public:
  void learn(float confidence, double failing) { seen_.emplace_back(confidence, failing); }
  size_t size() const { return seen_.size(); }
  void finish() {
    std::sort(seen_.begin(), seen_.end());
    const size_t bins = std::clamp<size_t>(seen_.size() / 50, 1, 15);
    for (size_t b = 1; b < bins; ++b) edges_.push_back(seen_[seen_.size() * b / bins].first);
    edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
    sums_.resize(edges_.size() + 1);
    for (const auto& [confidence, failing] : seen_) sums_[bin(confidence)].add(failing), all_.add(failing);
  }
  double expected(float confidence) const {
    const Moments& here = sums_[bin(confidence)];
    return here.count() > 0 ? here.mean() : all_.mean();
  }

 private:
  size_t bin(float confidence) const {
    return size_t(std::upper_bound(edges_.begin(), edges_.end(), confidence) - edges_.begin());
  }
  std::vector<std::pair<float, double>> seen_;
  std::vector<float> edges_;
  std::vector<Moments> sums_;
  Moments all_;
};

}  // namespace

std::vector<double> expected_errors(std::span<const float> confidence, std::span<const double> classes,
                                    std::span<const double> failing, std::span<const uint8_t> half) {
  auto shown = [&](size_t i) { return std::isfinite(confidence[i]) ? confidence[i] : 0.f; };
  ConfidenceTable whole;
  std::map<double, ConfidenceTable> by_class;
  for (size_t i = 0; i < confidence.size(); ++i) {
    if (half[i] != 0 || std::isnan(failing[i])) continue;
    whole.learn(shown(i), failing[i]);
    if (!classes.empty()) by_class[classes[i]].learn(shown(i), failing[i]);
  }
  whole.finish();
  std::erase_if(by_class, [](const auto& entry) { return entry.second.size() < kEnoughOfAClass; });
  for (auto& [label, table] : by_class) table.finish();
  std::vector<double> expected(confidence.size());
  for (size_t i = 0; i < confidence.size(); ++i) {
    auto table = classes.empty() ? by_class.end() : by_class.find(classes[i]);
    expected[i] = (table == by_class.end() ? whole : table->second).expected(shown(i));
  }
  return expected;
}

double explained_part(const Slice& slice, std::span<const double> failing, std::span<const uint8_t> half,
                      std::span<const double> expected) {
  if (expected.empty()) return 0;
  std::vector<uint8_t> inside(failing.size(), 0);
  for (size_t row : slice.rows) inside[row] = 1;
  Moments here, rest, expected_here, expected_rest;
  for (size_t row = 0; row < failing.size(); ++row) {
    if (std::isnan(failing[row]) || half[row] == 0) continue;
    (inside[row] ? here : rest).add(failing[row]);
    (inside[row] ? expected_here : expected_rest).add(expected[row]);
  }
  const double gap = here.mean() - rest.mean();
  return gap > 0 ? std::clamp((expected_here.mean() - expected_rest.mean()) / gap, 0.0, 1.0) : 0;
}

std::vector<uint8_t> halves(std::span<const uint64_t> hashes, uint64_t seed) {
  std::vector<uint8_t> out;
  for (uint64_t hash : hashes) out.push_back(uint8_t(Random::hash(hash ^ Random::hash(seed)) >> 63));
  return out;
}

}  // namespace netmend::slices
