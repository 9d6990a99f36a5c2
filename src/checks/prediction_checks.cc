// What predictions show: classes, confusions, confidence, numbers, over-fitting.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "checks/calibration.h"
#include "checks/observed.h"
#include "checks/results.h"
#include "checks/rows.h"
#include "checks/simple_models.h"
#include "findings/phrases.h"
#include "slices/groups.h"
#include "stats/distributions.h"
#include "stats/moments.h"

namespace netmend::checks {

namespace {

using findings::Certainty;
using findings::Effect;
using findings::Finding;
using findings::Level;
using observers::ClassResult;
using observers::SampleRow;
using observers::Task;

/// Of what a pair of classes costs, how much may be gained: classes that look alike cannot be told apart by anybody,
/// one-sided confusions have a cause that can be removed.
constexpr double kHopeful = 0.7, kDoubtful = 0.1;
/// A part of a class that is predicted as another one, several times as often as the reverse: labels or damage, not
/// similarity.
constexpr double kOneSided = 0.2, kTimes = 5;
/// Below serious, whatever the difference: a hard class is no fault.
constexpr double kNotSerious = 0.049, kNotSeriousGain = 0.0099;

using findings::counted;
using findings::percent;
using findings::percent_range;
using findings::plain;

/// Below, an expected calibration error is not worth a word; above, confidence misleads whoever relies on it.
constexpr double kOverConfident = 0.03, kUnderConfident = 0.05, kSeriousOver = 0.15, kMinorUnder = 0.1;
constexpr double kClearly = 0.01;  ///< the lower limit of an error that is told

/// Whether two classes are confused one way or both ways, where counts tell.
enum class Ways { kUnclear, kOne, kBoth };
Ways ways_of(int64_t there, int64_t of_there, int64_t back, int64_t of_back) {
  const int64_t both = there + back;
  if (both == 0 || of_there + of_back == 0) return Ways::kUnclear;
  // Classes of different sizes are confused as often where counts go with the sizes.
  const double even = double(of_there) / double(of_there + of_back);
  const double p = 2 * std::min(stats::binomial_tail(there, both, even), stats::binomial_cdf(there, both, even));
  if (p < 0.05 && 5 * back <= there) return Ways::kOne;
  return back >= 3 && 3 * back >= there ? Ways::kBoth : Ways::kUnclear;
}

class PredictionChecks {
 public:
  PredictionChecks(Observed& seen, Results& found)
      : seen_(seen), test_(*seen.test), settings_(seen.settings), found_(found) {}

  findings::Words words(findings::Words more = {}) const { return seen_.words(std::move(more)); }
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
    if (broken == 0) return found_.pass("predictions are finite", "no NaN or Inf");
    auto finding =
        findings::make("non-finite-predictions", "", words({{"n", with_commas(broken)}}),
                       {double(broken) / double(std::max<int64_t>(1, test_.result.samples)), 0}, Certainty::kConfirmed,
                       fmt::format("{} of {} inputs", with_commas(broken), with_commas(test_.result.samples)),
                       fmt::format("{} of {} predictions {} NaN or Inf.", with_commas(broken),
                                   with_commas(test_.result.samples), broken == 1 ? "is" : "are"));
    finding.numbers = {{"inputs", broken}};
    finding.inputs =
        show([](const SampleRow& row) { return !std::isfinite(row.confidence) || !std::isfinite(row.loss); });
    found_.add(std::move(finding));
  }

  bool two_classes() const {
    const auto& per_class = test_.result.per_class;
    return std::count_if(per_class.begin(), per_class.end(), [](const ClassResult& c) { return c.samples > 0; }) >= 2;
  }

  void majority_baseline() {
    if (!two_classes()) return found_.skip("classes and confusions", "inputs of at least two classes");
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
          {"better than the majority class",
           fmt::format("accuracy {}, majority class {}", percent(accuracy.value), percent(chance))});
      return;
    }
    const char* degree = accuracy.value < chance          ? "worse than"
                         : accuracy.value == chance       ? "no better than"
                         : accuracy.value < chance + 0.02 ? "hardly better than"
                                                          : "not clearly better than";
    found_.add(findings::make("no-better-than-baseline", "", words({{"common", common->name}, {"degree", degree}}),
                              {1 - chance, 0}, Certainty::kConfirmed,
                              fmt::format("accuracy {}, majority class {}", percent(accuracy.value), percent(chance)),
                              fmt::format("Accuracy is {} ({}) on {}; always predicting {} would reach {}.",
                                          percent(accuracy.value), percent_range(accuracy.low, accuracy.high),
                                          counted(test_.result.samples, "input"), common->name, percent(chance))));
  }

  struct Pair {
    size_t a = 0, b = 0;     ///< a is called b more often than the reverse
    int64_t ab = 0, ba = 0;  ///< counts
    bool one_sided = false;  ///< or exchanged
    bool exchanged = false;
    int64_t sum() const { return ab + ba; }
  };

  void confusions() {
    if (!two_classes()) return;
    const auto& confusion = test_.result.confusion;
    const auto& per_class = test_.result.per_class;
    const int64_t failures = test_.result.samples - test_.result.correct;
    std::vector<Pair> pairs;
    for (size_t i = 0; i < confusion.size(); ++i)
      for (size_t j = i + 1; j < confusion.size(); ++j) {
        Pair pair{i, j, confusion[i][j], confusion[j][i], false, false};
        if (pair.ab < pair.ba) std::swap(pair.a, pair.b), std::swap(pair.ab, pair.ba);
        if (pair.sum() == 0) continue;
        const double there = double(pair.ab) / double(std::max<int64_t>(1, per_class[pair.a].samples)),
                     back = double(pair.ba) / double(std::max<int64_t>(1, per_class[pair.b].samples));
        // Both ways nearly always: swapped. One way often: poisoned.
        pair.one_sided =
            confusion.size() > 2 && pair.ab >= 10 && there >= kOneSided && (there >= kTimes * back || back > 0.5);
        pair.exchanged = pair.one_sided && back > 0.5;
        pairs.push_back(pair);
      }
    std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& x, const Pair& y) { return x.sum() > y.sum(); });
    int told = 0;
    for (const Pair& pair : pairs) {
      const double share = double(pair.sum()) / double(std::max<int64_t>(1, failures));
      const bool many = pair.sum() >= 10 && share >= std::max(0.08, 2.5 / double(pairs.size())) && confusion.size() > 2;
      if ((!many && !pair.one_sided) || told >= 5) continue;
      ++told;
      tell(pair, share, rank_words(pairs, pair));
    }
    if (told == 0 && !pairs.empty() && confusion.size() > 2)
      found_.passed.push_back(
          {"confusions are spread", fmt::format("the most frequent pair is {} of {}", with_commas(pairs[0].sum()),
                                                counted(failures, "failure"))});
  }

  /// `the second most confused pair`; of pairs that are equally often confused none is the second.
  static std::string rank_words(const std::vector<Pair>& sorted, const Pair& pair) {
    static constexpr const char* kRanks[] = {"the ", "the second ", "the third ", "the fourth ", "the fifth "};
    const auto before = std::count_if(sorted.begin(), sorted.end(), [&](const Pair&p) { return p.sum() > pair.sum(); }),
               alike = std::count_if(sorted.begin(), sorted.end(), [&](const Pair&p) { return p.sum() == pair.sum(); });
    if (alike > 1 || before >= std::ssize(kRanks)) return "a pair that is confused";
    return kRanks[before] + std::string("most confused pair");
  }

  void tell(const Pair& pair, double share, const std::string& rank) {
    const std::string &a = settings_.classes[pair.a], &b = settings_.classes[pair.b];
    const double worth = double(pair.sum()) / double(test_.result.samples);
    Effect effect{worth * (pair.one_sided ? kHopeful : kDoubtful), 0};
    if (!pair.one_sided) effect.gain = std::min(effect.gain, kNotSeriousGain);
    const int64_t of = test_.result.per_class[pair.a].samples;
    if (pair.one_sided) effect.local = double(pair.ab) / double(std::max<int64_t>(1, of));
    const std::string where = a < b ? a + "-" + b : b + "-" + a;
    auto finding = findings::make(
        "confused-classes", where, words({{"a", a}, {"b", b}}), effect, Certainty::kConfirmed,
        fmt::format("{} of {}; worth up to {}", with_commas(pair.sum()),
                    counted(test_.result.samples - test_.result.correct, "failure"), findings::points(worth)),
        fmt::format("{} of class {} {} predicted as {}, and {} of class {} as {}; together these are {} of all "
                    "failures.{}",
                    counted(pair.ab, "input"), a, pair.ab == 1 ? "is" : "are", b, counted(pair.ba, "input"), b, a,
                    percent(share), direction(pair)));
    finding.title = fmt::format("{} and {} are {} ({} of {}).", a, b, rank, with_commas(pair.sum()),
                                counted(test_.result.samples - test_.result.correct, "failure"));
    finding.numbers = {{"a", a}, {"b", b}, {"a_as_b", pair.ab}, {"b_as_a", pair.ba}, {"one_sided", pair.one_sided}};
    finding.inputs = show([&](const SampleRow& row) {
      return (row.label == double(pair.a) && row.predicted == double(pair.b)) ||
             (row.label == double(pair.b) && row.predicted == double(pair.a));
    });
    if (finding.level >= Level::kSerious && !pair.exchanged)
      not_serious(finding, as_confused_by_simple(seen_, pair.a, pair.b));
    if (pair.one_sided)
      take_class(finding,
                 [&](double label) { return label == double(pair.a) || (pair.exchanged && label == double(pair.b)); });
    found_.add(std::move(finding));
  }

  /// What a simple model finds as hard says nothing about damage.
  static void not_serious(Finding& finding, const std::string& why) {
    if (why.empty()) return;
    finding.level = Level::kMinor;
    finding.evidence += why;
  }

  std::string direction(const Pair& pair) const {
    const auto& per_class = test_.result.per_class;
    if (pair.exchanged && 2 * pair.ab > per_class[pair.a].samples)
      return " The two are swapped: swapped labels would do that, or damage to the last layer.";
    if (pair.exchanged)  // of classes of different sizes, the smaller one
      return fmt::format(
          " More than half of class {} is predicted as {}: wrong labels would explain that, or damage to the "
          "last layer.",
          settings_.classes[pair.b], settings_.classes[pair.a]);
    if (pair.one_sided)
      return " Such a one-sided confusion often comes from wrong labels in the training data, or from damage to the "
             "last "
             "layers.";
    switch (ways_of(pair.ab, per_class[pair.a].samples, pair.ba, per_class[pair.b].samples)) {
      case Ways::kOne:
        return pair.ba == 0 ? " It goes one way only." : " It goes mostly one way.";
      case Ways::kBoth:
        return " It goes both ways, as with classes that look alike.";
      case Ways::kUnclear:
        break;
    }
    return "";
  }

  void weak_classes() {
    if (!two_classes()) return;
    const auto& per_class = test_.result.per_class;
    std::vector<double> recalls;
    for (const ClassResult& one : per_class)
      if (one.samples >= 10) recalls.push_back(one.recall);
    if (recalls.size() < 3) return;  // of two classes one is always the weaker; groups and thresholds tell more
    std::sort(recalls.begin(), recalls.end());
    const double usual = (recalls[(recalls.size() - 1) / 2] + recalls[recalls.size() / 2]) / 2;
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
        add_class("never-predicted", c, usual, 1);
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
      const auto worst = std::find_if(order.begin(), order.end(), [&](size_t c) { return per_class[c].samples > 0; });
      found_.passed.push_back(
          {"recall by class", fmt::format("lowest: {} {}", per_class[*worst].name, percent(per_class[*worst].recall))});
    }
  }

  void add_class(const char* kind, size_t c, double usual, double hope) {
    const ClassResult& one = test_.result.per_class[c];
    const double behind = usual - one.recall;
    Effect effect{hope * behind * double(one.samples) / double(test_.result.samples), behind};
    if (hope < kHopeful)
      effect.local = std::min(effect.local, kNotSerious), effect.gain = std::min(effect.gain, kNotSeriousGain);
    auto finding = findings::make(kind, one.name, words({{"class", one.name}}), effect, Certainty::kConfirmed,
                                  fmt::format("recall {} on {}, median of the classes {}", percent(one.recall),
                                              counted(one.samples, "input"), percent(usual)),
                                  fmt::format("Recall is {} ({}) on {} of class {}; the median of the classes is {}.{}",
                                              percent(one.recall), percent_range(one.range.low, one.range.high),
                                              counted(one.samples, "input"), one.name, percent(usual), taken_for(c)));
    finding.numbers = {{"recall", one.recall}, {"samples", one.samples}, {"median", usual}};
    finding.inputs =
        show([&](const SampleRow& row) { return row.label == double(c) && row.right == SampleRow::kWrong; });
    if (finding.level >= Level::kSerious && one.predicted > 0)
      not_serious(finding, as_hard_for_simple(seen_, [&](size_t i) { return int(test_.rows[i].label == double(c)); }));
    if (one.predicted == 0) take_class(finding, [&](double label) { return label == double(c); });
    found_.add(std::move(finding));
  }

  /// What else fails mostly among the inputs of these classes fails for that.
  template <typename Holds>
  void take_class(const Finding& finding, const Holds& holds) {
    found_.groups.push_back({finding.id(), std::vector<uint8_t>(test_.rows.size())});
    for (size_t i = 0; i < test_.rows.size(); ++i) found_.groups.back().in[i] = holds(test_.rows[i].label);
  }

  std::string taken_for(size_t c) const {
    const auto& row = test_.result.confusion[c];
    std::vector<std::pair<int64_t, size_t>> others;
    for (size_t j = 0; j < row.size(); ++j)
      if (j != c && row[j] > 0) others.push_back({-row[j], j});
    std::sort(others.begin(), others.end());
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min<size_t>(3, others.size()); ++i)
      names.push_back(fmt::format("{} ({})", settings_.classes[others[i].second], with_commas(-others[i].first)));
    if (names.empty()) return "";
    const auto more = int64_t(others.size() - names.size());
    return fmt::format(" It is mistaken for {}{}.", join(names, ", "),
                       more == 0 ? "" : fmt::format(" and {}", counted(more, "other class", "other classes")));
  }

  void misleading() {
    if (settings_.metric != "accuracy" || !two_classes()) return;
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
          {"accuracy and balanced accuracy agree",
           fmt::format("accuracy {}, balanced accuracy {}", percent(test_.result.accuracy), percent(balanced))});
    // Two uneven classes and a cautious network are common; far more than that hides something.
    const Effect effect{0, gap >= 0.25 ? gap : std::min(gap, kNotSerious)};
    found_.add(findings::make(
        "misleading-metric", "accuracy", words(), effect, Certainty::kConfirmed,
        fmt::format("accuracy {}, balanced accuracy {}", percent(test_.result.accuracy), percent(balanced)),
        fmt::format(
            "Accuracy is {}, but balanced accuracy (the mean recall over classes) is {}: the largest class has {} "
            "inputs, the smallest that occurs has {}.",
            percent(test_.result.accuracy), percent(balanced), with_commas(most), with_commas(least))));
  }

  void confidence() {
    if (!two_classes()) return;
    const Calibration all = calibration(test_.rows);
    if (all.count < 200)
      return found_.skipped.push_back({"confidence against accuracy", "at least 200 labelled inputs"});
    const stats::Estimate accuracy = stats::rate(int64_t(std::llround(all.accuracy * double(all.count))), all.count);
    // A network that is nearly always right can be off by little only: then what counts is how much of that little.
    const bool confident_mistakes =
        all.above - all.below > 0.7 * (1 - all.accuracy) && (1 - all.accuracy) * double(all.count) >= 20;
    const bool above = all.above > all.below;
    const bool clear = all.ece_low > kClearly && all.ece >= (above ? kOverConfident : kUnderConfident);
    const bool over = above && (clear || (confident_mistakes && all.ece_low > 0)), under = !above && clear;
    const std::string brief = fmt::format("mean confidence {}, accuracy {}, ECE {:.3f}", percent(all.confidence),
                                          percent(all.accuracy), all.ece);
    if (!over && !under) return found_.pass("confidence matches accuracy", brief);
    int64_t confident = 0, wrong = 0;
    for (const SampleRow& row : test_.rows)
      if (row.confidence > 0.99f && row.right != SampleRow::kNotJudged)
        ++confident, wrong += row.right == SampleRow::kWrong;
    const std::string of_the_confident =
        confident == 0 ? "No prediction has a confidence above 99 %."
                       : fmt::format("Of {} with a confidence above 99 %, {} wrong.", counted(confident, "prediction"),
                                     wrong == 0   ? "none is"
                                     : wrong == 1 ? "1 is"
                                                  : fmt::format("{} ({}) are", with_commas(wrong),
                                                                percent(double(wrong) / double(confident))));
    auto finding = findings::make(
        over ? "over-confident" : "under-confident", "", words(), {}, Certainty::kConfirmed, brief,
        fmt::format(
            "The expected calibration error (ECE) is {:.3f} ({:.3f}–{:.3f}); for perfectly calibrated predictions, "
            "chance alone would give about {:.3f}. Mean confidence is {}, accuracy is {} ({}). {} A single number, the "
            "temperature, corrects the mean confidence and changes no prediction.",
            all.ece, all.ece_low, all.ece_high, all.ece_chance, percent(all.confidence), percent(all.accuracy),
            percent_range(accuracy.low, accuracy.high), of_the_confident));
    // In proportion: a few points are a note, and so many that a threshold lets anything through are serious.
    if (over)
      finding.level = !clear                        ? findings::Level::kNote
                      : all.ece_low >= kSeriousOver ? findings::Level::kSerious
                                                    : findings::Level::kMinor;
    else  // nothing is let through that should not be
      finding.level = all.ece_low >= kMinorUnder ? findings::Level::kMinor : findings::Level::kNote;
    finding.value = all.ece;
    finding.numbers = {{"ece", all.ece},
                       {"ece_low", all.ece_low},
                       {"ece_high", all.ece_high},
                       {"confidence", all.confidence},
                       {"accuracy", all.accuracy}};
    finding.inputs =
        over ? show([](const SampleRow& row) { return row.right == SampleRow::kWrong && row.confidence > 0.9f; })
             : show([](const SampleRow& row) { return row.right == SampleRow::kRight && row.confidence < 0.5f; });
    found_.add(std::move(finding));
  }

  /// Labels, predictions and errors of inputs where all are finite.
  struct Numbers {
    stats::Moments labels, predictions, errors;
    std::map<double, int64_t> often;
  };
  Numbers numbers() const {
    Numbers all;
    for (const SampleRow& row : test_.rows) {
      if (!std::isfinite(row.predicted) || !std::isfinite(row.label)) continue;
      all.labels.add(row.label), all.predictions.add(row.predicted), all.errors.add(row.predicted - row.label);
      if (all.often.size() < 10000 || all.often.count(row.predicted)) ++all.often[row.predicted];
    }
    return all;
  }
  static bool enough(const Numbers& all) { return all.labels.count() >= 30 && all.labels.deviation() > 0; }

  void bias() {
    const Numbers all = numbers();
    if (!enough(all)) return found_.skip("bias of predicted numbers", "at least 30 inputs with different labels");
    const stats::Estimate bias = all.errors.mean_estimate();
    const double size = std::abs(bias.value) / all.labels.deviation();
    if (size <= 0.1 || bias.low * bias.high <= 0)
      return found_.pass("predicted numbers are unbiased", fmt::format("mean error {}", plain(bias.value)));
    auto finding = findings::make(
        "biased-numbers", "", words({{"direction", bias.value > 0 ? "too high" : "too low"}}), {},
        Certainty::kConfirmed, fmt::format("mean error {}", plain(bias.value)),
        fmt::format("The mean error is {} (95 % interval {} to {}), which is {:.0f} % of the standard deviation of "
                    "the labels.",
                    plain(bias.value), plain(bias.low), plain(bias.high), 100 * size));
    finding.value = size;
    found_.add(std::move(finding));
  }

  void clipping() {
    Numbers all = numbers();
    if (!enough(all)) return;
    for (double limit : {all.predictions.low(), all.predictions.high()}) {
      const int64_t there = all.often.count(limit) ? all.often[limit] : 0, count = all.predictions.count();
      const bool upper = limit == all.predictions.high();
      int64_t beyond = 0;
      for (const SampleRow& row : test_.rows) beyond += upper ? row.label > limit : row.label < limit;
      if (there * 50 < count || beyond * 50 < count) continue;
      found_.add(findings::make(
          "clipped-numbers", upper ? "above" : "below", words({{"limit", plain(limit)}}), {0.02, 0},
          Certainty::kConfirmed,
          fmt::format("{} at {}, {} {} it", counted(there, "prediction"), plain(limit), counted(beyond, "label"),
                      upper ? "above" : "below"),
          fmt::format("Of {}, {} {} {} (the {} value), and {} {} {} it.", counted(count, "prediction"),
                      with_commas(there), there == 1 ? "is" : "are", plain(limit), upper ? "highest" : "lowest",
                      counted(beyond, "label"), beyond == 1 ? "lies" : "lie", upper ? "above" : "below")));
    }
  }

  void constant_predictions() {
    stats::Moments predictions, labels;
    for (const SampleRow& row : test_.rows) {
      if (!std::isfinite(row.predicted)) continue;
      predictions.add(row.predicted);
      if (settings_.task == Task::kNumber && std::isfinite(row.label)) labels.add(row.label);
    }
    if (predictions.count() < 30) return found_.skip("predictions that hardly vary", "at least 30 inputs");
    const bool numbers = labels.count() >= 30 && labels.deviation() > 0;
    // A class that is always predicted is compared with the majority class; numbers and unjudged outputs are not.
    if (settings_.by_class() ||
        (numbers ? predictions.deviation() >= 0.02 * labels.deviation() : predictions.high() > predictions.low()))
      return;
    found_.add(findings::make(
        "constant-predictions", "", words(), {0.1, 0}, Certainty::kConfirmed,
        fmt::format("all near {}", plain(predictions.mean())),
        numbers
            ? fmt::format("The predictions have a standard deviation of {}, the labels one of {}.",
                          plain(predictions.deviation()), plain(labels.deviation()))
            : fmt::format("All {} predictions are {}.", with_commas(predictions.count()), plain(predictions.mean()))));
  }

  void over_fit() {
    if (settings_.task == Task::kNumber) return;
    const auto& train = seen_.train->result;
    if (train.samples == 0 || test_.result.samples == 0) return;
    const double gap = train.accuracy - test_.result.accuracy;
    const stats::Estimate apart = slices::difference(stats::rate(train.correct, train.samples),
                                                     stats::rate(test_.result.correct, test_.result.samples));
    if (gap < (train.accuracy > 0.9 ? 0.07 : 0.1) || apart.low <= 0 || test_.result.samples < 30)
      return found_.passed.push_back(
          {"accuracy on training data and tests",
           fmt::format("{} on training data, {} on tests", percent(train.accuracy), percent(test_.result.accuracy))});
    // A few points are the usual price of fitting; what is beyond ten may be had.
    found_.add(findings::make(
        "over-fit", "", words(), {0.3 * std::max(0.0, gap - 0.1), 0}, Certainty::kConfirmed,
        fmt::format("{} on training data, {} on tests", percent(train.accuracy), percent(test_.result.accuracy)),
        fmt::format("Accuracy is {} on {} and {} on {}: a gap of {} (95 % interval {:.1f} to {:.1f}).",
                    percent(train.accuracy), counted(train.samples, "training input"), percent(test_.result.accuracy),
                    counted(test_.result.samples, "test"), findings::points(gap), 100 * apart.low, 100 * apart.high)));
  }

  Observed& seen_;
  const ObservedSplit& test_;
  const observers::PredictionSettings& settings_;
  Results& found_;
};

}  // namespace

void check_finite_predictions(Observed& seen, Results& out) { PredictionChecks(seen, out).not_finite(); }
void check_constant_predictions(Observed& seen, Results& out) { PredictionChecks(seen, out).constant_predictions(); }
void check_majority_baseline(Observed& seen, Results& out) { PredictionChecks(seen, out).majority_baseline(); }
void check_confusions(Observed& seen, Results& out) { PredictionChecks(seen, out).confusions(); }
void check_classes(Observed& seen, Results& out) { PredictionChecks(seen, out).weak_classes(); }
void check_metric(Observed& seen, Results& out) { PredictionChecks(seen, out).misleading(); }
void check_calibration(Observed& seen, Results& out) { PredictionChecks(seen, out).confidence(); }
void check_bias(Observed& seen, Results& out) { PredictionChecks(seen, out).bias(); }
void check_clipping(Observed& seen, Results& out) { PredictionChecks(seen, out).clipping(); }
void check_overfitting(Observed& seen, Results& out) { PredictionChecks(seen, out).over_fit(); }

}  // namespace netmend::checks
