#include "checkup/answer_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "stats/intervals.h"

namespace netmend::checkup {

Calibration calibration(const std::vector<observers::SampleRow>& rows, int bins) {
  Calibration all;
  for (int i = 0; i < bins; ++i) all.bins.push_back({double(i) / bins, double(i + 1) / bins, 0, 0, 0});
  for (const observers::SampleRow& row : rows) {
    if (row.right == observers::SampleRow::kNotJudged || !std::isfinite(row.confidence)) continue;
    Bin& bin = all.bins[size_t(std::clamp(int(row.confidence * float(bins)), 0, bins - 1))];
    ++bin.count, bin.right += row.right, bin.confidence += row.confidence;
    ++all.count, all.accuracy += double(row.right), all.confidence += row.confidence;
  }
  if (all.count == 0) return all;
  for (Bin& bin : all.bins) {
    if (bin.count == 0) continue;
    bin.confidence /= double(bin.count);
    all.error +=
        std::abs(bin.confidence - double(bin.right) / double(bin.count)) * double(bin.count) / double(all.count);
  }
  all.accuracy /= double(all.count), all.confidence /= double(all.count);
  return all;
}

namespace {

using findings::Effect;
using findings::Sureness;
using observers::ClassResult;
using observers::SampleRow;
using observers::Task;

/// Of what a pair of classes costs, how much can be hoped for: classes that look alike cannot be told apart by anybody,
/// one-sided mistakes have a cause that can be removed.
constexpr double kHopeful = 0.7, kDoubtful = 0.1;
/// A part of a class that is called another one, several times as often as the reverse: labels or damage, not likeness.
constexpr double kOneSided = 0.2, kTimes = 5;
/// Below serious, whatever the difference: a hard class is no fault.
constexpr double kNotSerious = 0.049, kNotSeriousGain = 0.0099;

std::string per_cent(double share) { return fmt::format("{:.1f} %", 100 * share); }

class AnswerChecks {
 public:
  AnswerChecks(const Context& context, Found& found)
      : context_(context), test_(context.test), settings_(context.settings), found_(found) {}

  void run() {
    not_finite();
    if (settings_.task == Task::kNone) {
      found_.skipped.push_back({"answers: right or wrong", "data with labels"});
      return constant_answers();
    }
    if (settings_.by_class()) classes();
    if (settings_.task == Task::kNumber) numbers();
    over_fit();
  }

 private:
  findings::Words words(findings::Words more = {}) const { return words_of(context_, std::move(more)); }
  /// Some rows for which a thing holds, those of the largest loss first.
  template <typename Holds>
  std::vector<findings::Shown> show(const Holds& holds, size_t count = 12) const {
    std::vector<const SampleRow*> list;
    for (const SampleRow& row : test_.rows)
      if (holds(row)) list.push_back(&row);
    std::stable_sort(list.begin(), list.end(), [](const auto* a, const auto* b) { return a->loss > b->loss; });
    std::vector<findings::Shown> shown;
    for (size_t i = 0; i < std::min(count, list.size()); ++i) shown.push_back({"test", list[i]->sample});
    return shown;
  }

  void not_finite() {
    const int64_t broken = test_.result.not_finite;
    if (broken == 0) return found_.passed.push_back({"answers are numbers", "all finite"});
    auto finding = findings::make(
        "non-finite-answers", "", words({{"n", with_commas(broken)}}),
        {double(broken) / double(std::max<int64_t>(1, test_.result.samples)), 0}, Sureness::kSure,
        fmt::format("{} of {} inputs", with_commas(broken), with_commas(test_.result.samples)),
        fmt::format("{} of {} answers are NaN or infinite.", with_commas(broken), with_commas(test_.result.samples)));
    finding.inputs =
        show([](const SampleRow& row) { return !std::isfinite(row.confidence) || !std::isfinite(row.loss); });
    found_.add(std::move(finding));
  }

  void classes() {
    const auto& per_class = test_.result.per_class;
    const int64_t present =
        std::count_if(per_class.begin(), per_class.end(), [](const ClassResult& c) { return c.samples > 0; });
    if (present < 2) return found_.skipped.push_back({"classes and confusions", "inputs of at least two classes"});
    if (guessing()) return;  // what it confuses then says nothing
    find_pairs();
    weak_classes();
    misleading();
    confidence();
  }

  bool guessing() {
    const auto& per_class = test_.result.per_class;
    const auto common = std::max_element(per_class.begin(), per_class.end(),
                                         [](const auto& a, const auto& b) { return a.samples < b.samples; });
    const double chance = double(common->samples) / double(std::max<int64_t>(1, test_.result.samples));
    const stats::Estimate accuracy = stats::rate(test_.result.correct, test_.result.samples);
    // Where one class is nearly everything, a useful network may be no more often right: its balance tells.
    double balanced = 0, some = 0;
    for (const ClassResult& one : per_class)
      if (one.samples > 0) balanced += one.recall, ++some;
    balanced /= std::max(some, 1.0);
    const double level = 1 / std::max(some, 1.0);
    if (accuracy.low > chance + 0.02 || balanced > level + 0.1 || test_.result.samples < 30) {
      found_.passed.push_back(
          {"better than guessing", fmt::format("{} against {}", per_cent(accuracy.value), per_cent(chance))});
      return false;
    }
    found_.add(findings::make("no-better-than-guessing", "", words({{"common", common->name}}), {1 - chance, 0},
                              Sureness::kSure,
                              fmt::format("{} right, guessing gets {}", per_cent(accuracy.value), per_cent(chance)),
                              fmt::format("{} ({}–{}) of {} answers are right; always saying {} would get {}.",
                                          per_cent(accuracy.value), per_cent(accuracy.low), per_cent(accuracy.high),
                                          with_commas(test_.result.samples), common->name, per_cent(chance))));
    return true;
  }

  struct Pair {
    size_t a = 0, b = 0;     ///< a is called b more often than the reverse
    int64_t ab = 0, ba = 0;  ///< counts
    bool one_sided = false;
    int64_t sum() const { return ab + ba; }
  };

  void find_pairs() {
    const auto& confusion = test_.result.confusion;
    const auto& per_class = test_.result.per_class;
    const int64_t failures = test_.result.samples - test_.result.correct;
    std::vector<Pair> pairs;
    for (size_t i = 0; i < confusion.size(); ++i)
      for (size_t j = i + 1; j < confusion.size(); ++j) {
        Pair pair{i, j, confusion[i][j], confusion[j][i], false};
        if (pair.ab < pair.ba) std::swap(pair.a, pair.b), std::swap(pair.ab, pair.ba);
        if (pair.sum() == 0) continue;
        const double there = double(pair.ab) / double(std::max<int64_t>(1, per_class[pair.a].samples)),
                     back = double(pair.ba) / double(std::max<int64_t>(1, per_class[pair.b].samples));
        // Both ways nearly always: swapped. One way often: poisoned.
        pair.one_sided =
            confusion.size() > 2 && pair.ab >= 10 && there >= kOneSided && (there >= kTimes * back || back > 0.5);
        pairs.push_back(pair);
      }
    std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& x, const Pair& y) { return x.sum() > y.sum(); });
    int told = 0;
    for (const Pair& pair : pairs) {
      const double share = double(pair.sum()) / double(std::max<int64_t>(1, failures));
      const bool many = pair.sum() >= 10 && share >= std::max(0.08, 2.5 / double(pairs.size())) && confusion.size() > 2;
      if ((!many && !pair.one_sided) || told >= 5) continue;
      ++told;
      tell(pair, share);
      if (pair.one_sided) blamed_.push_back(pair.a);
    }
    if (told == 0 && !pairs.empty() && confusion.size() > 2)
      found_.passed.push_back({"confusions are spread", fmt::format("the most frequent pair is {} of {} failures",
                                                                    pairs[0].sum(), with_commas(failures))});
  }

  void tell(const Pair& pair, double share) {
    const std::string &a = settings_.classes[pair.a], &b = settings_.classes[pair.b];
    const double worth = double(pair.sum()) / double(test_.result.samples);
    Effect effect{worth * (pair.one_sided ? kHopeful : kDoubtful), 0};
    if (!pair.one_sided) effect.gain = std::min(effect.gain, kNotSeriousGain);
    const int64_t of = test_.result.per_class[pair.a].samples;
    if (pair.one_sided) effect.local = double(pair.ab) / double(std::max<int64_t>(1, of));
    const std::string where = a < b ? a + "-" + b : b + "-" + a;
    auto finding = findings::make(
        "confused-classes", where, words({{"a", a}, {"b", b}}), effect, Sureness::kSure,
        fmt::format("{} of {} failures; worth up to {:.1f} points", pair.sum(),
                    with_commas(test_.result.samples - test_.result.correct), 100 * worth),
        fmt::format("{} {} called {}, {} {} called {}: {:.0f} % of all failures. {}", with_commas(pair.ab), a, b,
                    with_commas(pair.ba), b, a, 100 * share,
                    pair.one_sided
                        ? "So one-sided a mistake (or so complete an exchange) has a cause: wrong labels in training, "
                          "or damage to the last layers."
                        : "It goes both ways, as with classes that look alike."));
    finding.numbers = {
        {"a", a}, {"b", b}, {"a_called_b", pair.ab}, {"b_called_a", pair.ba}, {"one_sided", pair.one_sided}};
    finding.inputs = show([&](const SampleRow& row) {
      return (row.label == double(pair.a) && row.predicted == double(pair.b)) ||
             (row.label == double(pair.b) && row.predicted == double(pair.a));
    });
    found_.add(std::move(finding));
  }

  void weak_classes() {
    const auto& per_class = test_.result.per_class;
    std::vector<double> recalls;
    for (const ClassResult& one : per_class)
      if (one.samples >= 10) recalls.push_back(one.recall);
    if (recalls.size() < 3) return;  // of two classes one is always the weaker; groups and thresholds tell more
    std::nth_element(recalls.begin(), recalls.begin() + int64_t(recalls.size() / 2), recalls.end());
    const double usual = recalls[recalls.size() / 2];
    int told = 0;
    std::vector<size_t> order(per_class.size());
    for (size_t c = 0; c < order.size(); ++c) order[c] = c;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t x, size_t y) { return per_class[x].recall < per_class[y].recall; });
    for (size_t c : order) {
      const ClassResult& one = per_class[c];
      if (one.samples < 10 || told >= 3) continue;
      if (one.predicted == 0) {
        ++told;
        add_class("never-answered", c, usual, 1);
        continue;
      }
      const double behind = usual - one.recall;
      if (behind < 0.05 || one.range.high > usual - 0.02) break;
      // Far from the others and not explained by one look-alike: something is wrong with this class.
      const bool broken = one.recall < 0.5 * usual;
      ++told;
      add_class("weak-class", c, usual, broken ? kHopeful : kDoubtful);
    }
    if (told == 0) {
      const ClassResult& worst = per_class[order[0]];
      found_.passed.push_back(
          {"no class lags far behind", fmt::format("worst {} {}", worst.name, per_cent(worst.recall))});
    }
  }

  void add_class(const char* kind, size_t c, double usual, double hope) {
    const ClassResult& one = test_.result.per_class[c];
    const double behind = usual - one.recall;
    Effect effect{hope * behind * double(one.samples) / double(test_.result.samples), behind};
    if (hope < kHopeful)
      effect.local = std::min(effect.local, kNotSerious), effect.gain = std::min(effect.gain, kNotSeriousGain);
    auto finding = findings::make(
        kind, one.name, words({{"class", one.name}}), effect, Sureness::kSure,
        fmt::format("{} of {} recognised, the usual class {}", per_cent(one.recall), with_commas(one.samples),
                    per_cent(usual)),
        fmt::format("{} ({}–{}) of {} inputs of {} are recognised; half of the classes reach {} or more. {}",
                    per_cent(one.recall), per_cent(one.range.low), per_cent(one.range.high), with_commas(one.samples),
                    one.name, per_cent(usual), taken_for(c)));
    finding.numbers = {{"recall", one.recall}, {"samples", one.samples}, {"usual", usual}};
    finding.inputs =
        show([&](const SampleRow& row) { return row.label == double(c) && row.right == SampleRow::kWrong; });
    found_.add(std::move(finding));
  }

  std::string taken_for(size_t c) const {
    const auto& row = test_.result.confusion[c];
    std::vector<std::pair<int64_t, size_t>> others;
    for (size_t j = 0; j < row.size(); ++j)
      if (j != c && row[j] > 0) others.push_back({-row[j], j});
    std::sort(others.begin(), others.end());
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min<size_t>(3, others.size()); ++i)
      names.push_back(fmt::format("{} ({})", settings_.classes[others[i].second], -others[i].first));
    return names.empty() ? "" : "Mostly taken for " + join(names, ", ") + ".";
  }

  void misleading() {
    if (settings_.metric != "accuracy") return;
    const auto& per_class = test_.result.per_class;
    double balanced = 0, some = 0;
    int64_t least = INT64_MAX, most = 0;
    for (const ClassResult& one : per_class)
      if (one.samples > 0)
        balanced += one.recall, ++some, least = std::min(least, one.samples), most = std::max(most, one.samples);
    balanced /= std::max(some, 1.0);
    const double gap = test_.result.accuracy - balanced;
    if (gap < 0.1)
      return found_.passed.push_back(
          {"accuracy speaks for all classes", fmt::format("{:.1f} points above the mean of classes", 100 * gap)});
    // Two uneven classes and a cautious network are common; far more than that hides something.
    const Effect effect{0, gap >= 0.25 ? gap : std::min(gap, kNotSerious)};
    found_.add(findings::make(
        "misleading-metric", "accuracy", words(), effect, Sureness::kSure,
        fmt::format("accuracy {}, mean of classes {}", per_cent(test_.result.accuracy), per_cent(balanced)),
        fmt::format("Accuracy is {}, the mean over classes {}: the largest class has {} inputs, the "
                    "smallest {}.",
                    per_cent(test_.result.accuracy), per_cent(balanced), with_commas(most), with_commas(least))));
  }

  void confidence() {
    const Calibration all = calibration(test_.rows);
    if (all.count < 200)
      return found_.skipped.push_back({"confidence against accuracy", "at least 200 labelled inputs"});
    const stats::Estimate accuracy = stats::rate(int64_t(std::llround(all.accuracy * double(all.count))), all.count);
    const double gap = all.confidence - all.accuracy;
    // A network that is nearly always right can be off by little only: then what counts is how much of that little.
    const bool sure_of_mistakes = gap > 0.7 * (1 - all.accuracy) && (1 - all.accuracy) * double(all.count) >= 20;
    const bool over = (gap > 0.03 || sure_of_mistakes) && all.confidence > accuracy.high,
               under = gap < -0.05 && all.confidence < accuracy.low;
    if (!over && !under)
      return found_.passed.push_back(
          {"confidence matches accuracy", fmt::format("{} sure, {} right, calibration error {:.3f}",
                                                      per_cent(all.confidence), per_cent(all.accuracy), all.error)});
    int64_t sure = 0, wrong = 0;
    for (const SampleRow& row : test_.rows)
      if (row.confidence > 0.99f && row.right != SampleRow::kNotJudged) ++sure, wrong += row.right == SampleRow::kWrong;
    auto finding = findings::make(
        over ? "over-confident" : "under-confident", "", words(), {}, Sureness::kSure,
        fmt::format("{} sure on average, right {}", per_cent(all.confidence), per_cent(all.accuracy)),
        fmt::format("Mean confidence {}, accuracy {} ({}–{}); calibration error {:.3f}. Of {} answers "
                    "above 99 % sure, {} are wrong. One number, the temperature, repairs it and changes no answer.",
                    per_cent(all.confidence), per_cent(all.accuracy), per_cent(accuracy.low), per_cent(accuracy.high),
                    all.error, with_commas(sure), sure ? per_cent(double(wrong) / double(sure)) : "none"));
    finding.value = std::abs(gap);
    finding.inputs =
        over ? show([](const SampleRow& row) { return row.right == SampleRow::kWrong && row.confidence > 0.9f; })
             : show([](const SampleRow& row) { return row.right == SampleRow::kRight && row.confidence < 0.5f; });
    found_.add(std::move(finding));
  }

  struct Moments {
    double low = INFINITY, high = -INFINITY, sum = 0, squares = 0;
    int64_t count = 0;
    void add(double x) { low = std::min(low, x), high = std::max(high, x), sum += x, squares += x * x, ++count; }
    double mean() const { return sum / double(std::max<int64_t>(1, count)); }
    double deviation() const {
      return std::sqrt(std::max(0.0, squares / double(std::max<int64_t>(1, count)) - mean() * mean()));
    }
  };

  void numbers() {
    Moments truth, answers, error;
    std::map<double, int64_t> often;
    for (const SampleRow& row : test_.rows) {
      if (!std::isfinite(row.predicted) || !std::isfinite(row.label)) continue;
      truth.add(row.label), answers.add(row.predicted), error.add(row.predicted - row.label);
      if (often.size() < 10000 || often.count(row.predicted)) ++often[row.predicted];
    }
    if (truth.count < 30 || truth.deviation() == 0) return;
    if (answers.deviation() < 0.02 * truth.deviation()) return constant_answers(&truth);
    const stats::Estimate bias = stats::mean(error.sum, error.squares, error.count);
    const double size = std::abs(bias.value) / truth.deviation();
    if (size > 0.1 && bias.low * bias.high > 0) {
      auto finding = findings::make(
          "biased-numbers", "", words({{"direction", bias.value > 0 ? "too high" : "too low"}}), {}, Sureness::kSure,
          fmt::format("by {:.3g} on average", std::abs(bias.value)),
          fmt::format("The mean error is {:.3g} ({:.3g} to {:.3g}), {:.0f} % of the spread of true values.", bias.value,
                      bias.low, bias.high, 100 * size));
      finding.value = size;
      found_.add(std::move(finding));
    } else {
      found_.passed.push_back({"answers are right on average", fmt::format("mean error {:.3g}", bias.value)});
    }
    for (double limit : {answers.low, answers.high}) {
      const int64_t there = often.count(limit) ? often[limit] : 0;
      const bool upper = limit == answers.high;
      int64_t beyond = 0;
      for (const SampleRow& row : test_.rows) beyond += upper ? row.label > limit : row.label < limit;
      if (there * 50 < answers.count || beyond * 50 < answers.count) continue;
      found_.add(findings::make(
          "clipped-numbers", upper ? "above" : "below", words({{"limit", fmt::format("{:.4g}", limit)}}), {0.02, 0},
          Sureness::kSure,
          fmt::format("{} answers at {:.4g}, {} truths beyond", with_commas(there), limit, with_commas(beyond)),
          fmt::format("{} of {} answers are exactly {:.4g}, and {} true values lie beyond it.", with_commas(there),
                      with_commas(answers.count), limit, with_commas(beyond))));
    }
  }

  void constant_answers(const Moments* truth = nullptr) {
    Moments answers;
    for (const SampleRow& row : test_.rows)
      if (std::isfinite(row.predicted)) answers.add(row.predicted);
    if (answers.count < 30 || (!truth && answers.high > answers.low)) return;
    found_.add(findings::make(
        "constant-answers", "", words(), {0.1, 0}, Sureness::kSure, fmt::format("all near {:.4g}", answers.mean()),
        truth ? fmt::format("Answers spread by {:.3g}, true values by {:.3g}.", answers.deviation(), truth->deviation())
              : fmt::format("All {} answers are {:.4g}.", with_commas(answers.count), answers.mean())));
  }

  void over_fit() {
    if (!context_.train) return found_.skipped.push_back({"over-fitting", "training data: --train SPEC"});
    if (settings_.task == Task::kNumber) return;
    const auto& train = context_.train->result;
    if (train.samples == 0 || test_.result.samples == 0) return;
    const double gap = train.accuracy - test_.result.accuracy;
    if (gap < (train.accuracy > 0.9 ? 0.07 : 0.1))
      return found_.passed.push_back(
          {"training data and tests alike",
           fmt::format("{} against {}", per_cent(train.accuracy), per_cent(test_.result.accuracy))});
    // A few points are the usual price of fitting; what is beyond ten may be had.
    found_.add(findings::make(
        "over-fit", "", words(), {0.3 * std::max(0.0, gap - 0.1), 0}, Sureness::kSure,
        fmt::format("{} on training data, {} on tests", per_cent(train.accuracy), per_cent(test_.result.accuracy)),
        fmt::format("{} of {} training inputs are right, {} of {} tests: {:.1f} points apart.",
                    per_cent(train.accuracy), with_commas(train.samples), per_cent(test_.result.accuracy),
                    with_commas(test_.result.samples), 100 * gap)));
  }

  const Context& context_;
  const Part& test_;
  const observers::PredictionSettings& settings_;
  Found& found_;
  std::vector<size_t> blamed_;
};

}  // namespace

void check_answers(const Context& context, Found& found) { AnswerChecks(context, found).run(); }

}  // namespace netmend::checkup
