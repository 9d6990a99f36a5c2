// Labels of the data: shares of classes, classes that are not there, order, how many tests there are.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "census/comparison.h"
#include "checks/data_look.h"
#include "checks/rows.h"
#include "findings/phrases.h"

namespace netmend::checks {
namespace {

using findings::Certainty;
using findings::Effect;

constexpr double kTaught = 0.01;                  ///< of the training data: a class that tests must not leave out
constexpr double kUneven = 0.5, kRatio = 10;      ///< effective share of classes; largest to smallest
constexpr double kShift = 0.05, kShiftP = 0.001;  ///< distance of shares
constexpr double kMuchShift = 0.1;  ///< from here on the metric is not the one that training's shares give
constexpr double kWideInterval = 0.02, kFewOfClass = 30;

/// The first few of many names, and how many more there are.
std::string first_names(const std::vector<std::string>& names, size_t most) {
  std::string text = join(std::span(names).first(std::min(names.size(), most)), ", ");
  if (names.size() > most) text += fmt::format(" and {} more", with_commas(int64_t(names.size() - most)));
  return text;
}

bool uneven(const std::vector<int64_t>& counts) {
  return counts.size() > 1 && (census::evenness(counts) < kUneven || census::imbalance_ratio(counts) > kRatio);
}

void look_at_balance(DataLook& look) {
  const size_t classes = look.classes.size();
  bool said = false;
  std::vector<const Side*> sides = look.sides();
  std::reverse(sides.begin(), sides.end());  // what training data lacks explains what tests show
  for (const Side* side : sides) {
    std::vector<int64_t> counts = side->class_counts(classes);
    const int64_t all = std::accumulate(counts.begin(), counts.end(), int64_t(0));
    if (all == 0) continue;
    if (!uneven(counts)) {
      look.pass(fmt::format("balance of classes in {} data", side->words()),
                fmt::format("largest to smallest {:.1f}", census::imbalance_ratio(counts)));
      continue;
    }
    if (said) continue;
    said = true;
    const double rare = double(all) / double(classes) / 3;
    std::vector<std::string> names;
    for (size_t c = 0; c < classes; ++c)
      if (counts[c] > 0 && double(counts[c]) < rare) names.push_back(look.classes[c]);
    Effect effect = look.cost(look.test, [&](size_t i) {
      const float label = look.test.census->labels[i];
      return label >= 0 && label < float(classes) && double(counts[size_t(label)]) < rare;
    });
    auto most = std::max_element(counts.begin(), counts.end());
    int64_t smallest = INT64_MAX;
    for (int64_t count : counts)
      if (count > 0) smallest = std::min(smallest, count);
    std::string brief =
        fmt::format("inputs in the largest class: {}, in the smallest: {}", with_commas(*most), with_commas(smallest));
    std::string costs = (side == &look.test ? "" : "on the tests, ") + look.cost_text(look.test, effect);
    costs[0] = char(std::toupper(costs[0]));
    auto finding = findings::make(
        "imbalance", side->part->name, look.words(*side), effect, Certainty::kLikely, brief,
        fmt::format(
            "The largest class, {}, has {}; the smallest that occurs has {}. {} {}.",
            look.classes[size_t(most - counts.begin())], findings::counted(*most, "input"), with_commas(smallest),
            names.empty()
                ? "None of the classes that occur has less than a third of an even share."
                : fmt::format("{} less than a third of an even share: {}.",
                              names.size() == 1 ? "One class has"
                                                : fmt::format("{} classes have", with_commas(int64_t(names.size()))),
                              first_names(names, 8)),
            costs));
    finding.value = census::imbalance_ratio(counts);
    finding.numbers = {{"smallest", smallest}, {"largest", *most}, {"evenness", census::evenness(counts)}};
    // Tests that have hardly any of what was taught: whatever the metric is, it says little about these classes.
    if (side == &look.test && look.train) finding.level = std::max(finding.level, findings::Level::kMinor);
    look.found.add(std::move(finding));
  }
}

void look_for_absent(DataLook& look) {
  const size_t classes = look.classes.size();
  std::vector<int64_t> tests = look.test.class_counts(classes), trains;
  if (look.train) trains = look.train->class_counts(classes);
  size_t said = 0, absent = 0;
  for (size_t c = 0; c < classes; ++c) {
    const bool no_tests = tests[c] == 0 && !look.test.sampled() && (trains.empty() || trains[c] > 0);
    const bool no_training = look.train && trains[c] == 0 && tests[c] > 0 && !look.train->sampled();
    if (!no_tests && !no_training) continue;
    ++absent;
    if (said >= 3) continue;
    ++said;
    Effect effect;
    if (no_training) effect = look.cost(look.test, [&](size_t i) { return look.test.census->labels[i] == float(c); });
    const Side& side = no_training ? *look.train : look.test;
    findings::Words words = look.words(side);
    words["class"] = look.classes[c];
    std::string brief = no_training ? fmt::format("{}, no training inputs", findings::counted(tests[c], "test"))
                                    : "no tests, so it cannot be judged";
    const int64_t taught = trains.empty() ? 0 : trains[c];
    const std::string none =
        fmt::format("None of {} {} inputs is of class {}", with_commas(side.inputs()), side.words(), look.classes[c]);
    auto finding = findings::make(
        "absent-class", look.classes[c], words, effect, Certainty::kConfirmed, brief,
        no_training
            ? fmt::format("{}, but the tests have {} of it.", none, findings::counted(tests[c], "input"))
            : fmt::format(
                  "{}, so nothing is known about how well it is predicted.{}", none,
                  taught > 0 ? fmt::format(" Training data has {} of it.", findings::counted(taught, "input")) : ""));
    // Whatever the metric says, it says nothing about a class that the network was taught.
    if (no_tests && taught > 0 && look.test.inputs() > 0) {
      const double share = double(taught) / double(std::max<int64_t>(1, look.train->inputs()));
      finding.level = share >= kTaught ? findings::Level::kSerious : findings::Level::kMinor;
      finding.value = share;
    }
    look.found.add(std::move(finding));
  }
  if (absent == 0) look.pass("classes without inputs", "none");
  if (absent > said)
    look.found.findings.back().evidence +=
        fmt::format(" In all, {} have no inputs in {}.", findings::counted(int64_t(absent), "class", "classes"),
                    look.train ? "one of the splits" : "the tests");
}

void look_at_shift(DataLook& look) {
  std::vector<int64_t> tests = look.test.class_counts(look.classes.size()),
                       trains = look.train->class_counts(look.classes.size());
  const double apart = census::shares_distance(tests, trains), p = census::shares_p(tests, trains);
  if (apart < kShift || p > kShiftP)
    return look.pass("shares of classes, training against tests",
                     fmt::format("total variation distance {:.1f} points", 100 * apart));
  // What the share of failures would be with training's shares.
  const double all = double(std::accumulate(trains.begin(), trains.end(), int64_t(0)));
  std::vector<double> wrong(tests.size(), 0), judged(tests.size(), 0);
  for (size_t i = 0; i < look.test.failing.size(); ++i) {
    const float label = look.test.census->labels[i];
    if (std::isnan(look.test.failing[i]) || !(label >= 0) || label >= float(tests.size())) continue;
    wrong[size_t(label)] += look.test.failing[i], ++judged[size_t(label)];
  }
  double weighted = 0, known = 0;
  for (size_t c = 0; c < tests.size(); ++c)
    if (judged[c] > 0) weighted += double(trains[c]) / all * wrong[c] / judged[c], known += double(trains[c]) / all;
  const double now = look.test.mean_failing();
  const double change = known > 0 && std::isfinite(now) ? weighted / known - now : 0;
  size_t most = 0;
  auto share = [](const std::vector<int64_t>& counts, size_t c) {
    return double(counts[c]) / double(std::max<int64_t>(1, std::accumulate(counts.begin(), counts.end(), int64_t(0))));
  };
  for (size_t c = 1; c < tests.size(); ++c)
    if (std::abs(share(tests, c) - share(trains, c)) > std::abs(share(tests, most) - share(trains, most))) most = c;
  std::string brief = fmt::format("{}: {} of tests, {} of training data", look.classes[most],
                                  findings::percent(share(tests, most)), findings::percent(share(trains, most)));
  auto finding = findings::make(
      "class-shift", "train-test", look.words(look.test), {std::max(0.0, -change), 0}, Certainty::kConfirmed, brief,
      fmt::format("The largest difference: {}. The total variation distance of the shares is {:.1f} "
                  "points ({}).{}",
                  brief, 100 * apart, findings::p_text(p),
                  !std::isfinite(now) ? ""
                  : std::abs(change) < 0.0005
                      ? " With the class shares of the training data, accuracy would hardly change."
                      : fmt::format(" With the class shares of the training data, accuracy "
                                    "would change by {:+.1f} points.",
                                    -100 * change)));
  if (apart >= kMuchShift) finding.level = std::max(finding.level, findings::Level::kMinor);
  finding.value = apart;
  finding.numbers = {{"distance", apart}, {"p", p}};
  look.found.add(std::move(finding));
}

void look_at_order(DataLook& look) {
  const Side& side = *look.train;
  census::Runs runs = census::runs_test(side.census->labels);
  if (side.inputs() < 50 || runs.z > -10 || double(runs.runs) > 0.5 * runs.expected)
    return look.pass("order of training labels", "shuffled");
  const std::string there = findings::counted(runs.runs, "run"), usual = with_commas(std::llround(runs.expected));
  std::string brief = fmt::format("{} of equal labels, about {} if shuffled", there, usual);
  auto finding =
      findings::make("sorted-data", side.part->name, look.words(side), {}, Certainty::kConfirmed, brief,
                     fmt::format("The labels come in {} of equal labels; shuffled data would have about {}. Nothing "
                                 "is wrong if the data is shuffled before training.",
                                 there, usual));
  finding.value = 1 - double(runs.runs) / std::max(1.0, runs.expected);
  look.found.add(std::move(finding));
}

void look_at_test_count(DataLook& look) {
  const auto& metrics = look.test.part->result.metrics;
  double half = 0;
  if (!metrics.empty() && !observers::is_error(metrics[0].name) && std::isfinite(metrics[0].estimate.value))
    half = (metrics[0].estimate.high - metrics[0].estimate.low) / 2;
  std::vector<std::string> few;
  std::vector<int64_t> counts = look.test.class_counts(look.classes.size());
  for (size_t c = 0; c < counts.size(); ++c)
    if (counts[c] > 0 && double(counts[c]) < kFewOfClass) few.push_back(look.classes[c]);
  if (half <= kWideInterval && few.empty())
    return look.pass("number of tests", half > 0 ? fmt::format("metric known to ±{:.1f} points", 100 * half)
                                                 : with_commas(look.test.inputs()));
  const std::string known = fmt::format("known only to ±{:.1f} points", 100 * half),
                    rare = findings::counted(int64_t(few.size()), "class", "classes");
  std::string brief = half > kWideInterval ? "metric " + known : rare + " with fewer than 30 tests", evidence;
  if (half > kWideInterval)
    evidence = fmt::format("With {}, the metric is {}.", findings::counted(look.test.inputs(), "test"), known);
  if (!few.empty())
    evidence += fmt::format("{}{} {} fewer than 30 tests: {}.", evidence.empty() ? "" : " ", rare,
                            few.size() == 1 ? "has" : "have", first_names(few, 8));
  auto finding = findings::make("few-tests", "", look.words(look.test), {}, Certainty::kConfirmed, brief, evidence);
  finding.title =
      half > kWideInterval
          ? fmt::format("{}: {} is {}.", findings::counted(look.test.inputs(), "test"), metrics[0].name, known)
          : fmt::format("{} {} fewer than 30 tests.", rare, few.size() == 1 ? "has" : "have");
  if (half > 0.05) finding.level = findings::Level::kMinor;
  finding.value = half;
  look.found.add(std::move(finding));
}

}  // namespace

void check_test_size(Observed& seen, Results& out) {
  DataLook look(seen, out);
  look_at_test_count(look);
}

void check_imbalance(Observed& seen, Results& out) {
  DataLook look(seen, out);
  if (look.classes.empty()) return out.skip("shares of classes", "labels that are classes");
  look_at_balance(look);
}

void check_absent_classes(Observed& seen, Results& out) {
  DataLook look(seen, out);
  if (!look.classes.empty()) look_for_absent(look);
}

void check_label_shift(Observed& seen, Results& out) {
  DataLook look(seen, out);
  if (!look.classes.empty() && look.train->part->data->info().classes == look.classes) look_at_shift(look);
}

void check_label_order(Observed& seen, Results& out) {
  DataLook look(seen, out);
  if (!look.classes.empty()) look_at_order(look);
}

}  // namespace netmend::checks
