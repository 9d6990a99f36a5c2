#include "observers/metrics.h"

#include <algorithm>
#include <cmath>

#include "stream/pass.h"

namespace netmend::observers {
namespace {

using stats::Estimate;

/// 2·found / (2·found + wrong + missed). Among inputs where label or answer says yes, `found` is a plain share, and F1
/// is a rising function of it: so are the ends of its interval.
Estimate f1(int64_t found, int64_t wrong, int64_t missed) {
  Estimate share = stats::rate(found, found + wrong + missed);
  auto turn = [](double x) { return 2 * x / (1 + x); };
  return {turn(share.value), turn(share.low), turn(share.high)};
}

Estimate f1_of_class(const PredictionState& state, size_t about, size_t classes) {
  int64_t predicted = 0;
  for (size_t label = 0; label < classes; ++label) predicted += state.confusion[label * classes + about];
  int64_t found = state.confusion[about * classes + about];
  return f1(found, predicted - found, state.label_counts[about] - found);
}

Estimate balanced(const PredictionState& state, size_t classes) {
  std::vector<Estimate> recalls;
  for (size_t c = 0; c < classes; ++c)
    recalls.push_back(stats::rate(state.confusion[c * classes + c], state.label_counts[c]));
  return stats::average(recalls);
}

Estimate f1_of_all(const PredictionSettings& settings, const PredictionState& state) {
  std::vector<Estimate> parts;
  if (settings.task == Task::kLabels)
    for (const auto& [found, wrong, missed] : state.found_wrong_missed) parts.push_back(f1(found, wrong, missed));
  else if (settings.classes.size() == 2)
    return f1_of_class(state, size_t(settings.positive), 2);
  else
    for (size_t c = 0; c < settings.classes.size(); ++c)
      parts.push_back(f1_of_class(state, c, settings.classes.size()));
  return stats::average(parts);
}

Estimate area_of_all(const PredictionState& state) {
  std::vector<Estimate> parts;
  for (const ScoreCounts& scores : state.scores) parts.push_back(scores.area());
  return stats::average(parts);
}

Estimate root(const Estimate& squared) {
  auto turn = [](double x) { return std::sqrt(std::max(0.0, x)); };
  return {turn(squared.value), turn(squared.low), turn(squared.high)};
}

}  // namespace

std::vector<Metric> measure(const PredictionSettings& settings, const PredictionState& state) {
  std::vector<Metric> all;
  int64_t finite = state.samples - state.not_finite;
  if (settings.task == Task::kNumber) {
    all = {{"mae", stats::mean(state.absolute_error, state.squared_error, finite)},
           {"rmse", root(stats::mean(state.squared_error, state.fourth_powers, finite))}};
    if (settings.tolerance >= 0) all.push_back({"accuracy", stats::rate(state.correct, state.samples)});
  } else if (settings.task != Task::kNone) {
    all.push_back({"accuracy", stats::rate(state.correct, state.samples)});
    if (settings.by_class()) all.push_back({"balanced_accuracy", balanced(state, settings.classes.size())});
    all.push_back({"f1", f1_of_all(settings, state)});
    if (!state.scores.empty()) all.push_back({"auc", area_of_all(state)});
    all.push_back({"log_loss", stats::mean(state.loss, state.loss_squares, finite)});
  }
  std::stable_partition(all.begin(), all.end(), [&](const Metric& metric) { return metric.name == settings.metric; });
  return all;
}

namespace {

/// The upper bits of a float, in the order of its value: bins a five-hundredth of the score wide.
int32_t bin_of(double score) {
  float narrow = float(score);
  int32_t bits;
  std::copy_n(reinterpret_cast<const char*>(&narrow), sizeof bits, reinterpret_cast<char*>(&bits));
  return (bits < 0 ? -(bits & 0x7fffffff) : bits) / (1 << 14);
}

}  // namespace

void ScoreCounts::add(double score, bool positive) { ++counts_[bin_of(score)][positive]; }

void ScoreCounts::merge(const ScoreCounts& later) {
  for (const auto& [bin, counts] : later.counts_)
    for (size_t side : {0, 1}) counts_[bin][side] += counts[side];
}

void ScoreCounts::save(std::ostream& out) const {
  stream::put(out, int64_t(counts_.size()));
  for (const auto& [bin, counts] : counts_)
    for (int64_t number : {int64_t(bin), counts[0], counts[1]}) stream::put(out, number);
}

void ScoreCounts::load(std::istream& in) {
  counts_.clear();
  for (int64_t left = stream::get_int(in); left > 0; --left) {
    auto bin = int32_t(stream::get_int(in));
    const int64_t without = stream::get_int(in), with = stream::get_int(in);
    if (without < 0 || with < 0) fail("the state file is damaged");
    counts_[bin] = {without, with};
  }
}

Estimate ScoreCounts::area() const {
  double total[2] = {0, 0};
  for (const auto& [bin, counts] : counts_) total[0] += double(counts[0]), total[1] += double(counts[1]);
  if (total[0] == 0 || total[1] == 0) return {NAN, NAN, NAN};
  // A placement is the share of the other side that an input stands on the right side of; ties count half. The area is
  // their mean over either side, and DeLong's variance comes from how they spread.
  double below[2] = {0, 0}, sum = 0, squares[2] = {0, 0};
  for (const auto& [bin, counts] : counts_) {
    double without = double(counts[0]), with = double(counts[1]);
    double above_without = (below[0] + without / 2) / total[0], under_with = 1 - (below[1] + with / 2) / total[1];
    sum += with * above_without;
    squares[1] += with * above_without * above_without;
    squares[0] += without * under_with * under_with;
    below[0] += without, below[1] += with;
  }
  double area = sum / total[1];
  auto spread = [&](int side) {
    return total[side] > 1 ? std::max(0.0, squares[side] / total[side] - area * area) / (total[side] - 1) : 0.25;
  };
  double half = stats::kDeviations * std::sqrt(spread(0) + spread(1));
  if (area * (1 - area) < 1e-12 || half == 0) return {area, std::max(0.0, area - half), std::min(1.0, area + half)};
  // On the scale of log odds, where the interval cannot leave 0 … 1.
  double odds = area / (1 - area), factor = std::exp(half / (area * (1 - area)));
  return {area, odds / (odds + factor), odds * factor / (odds * factor + 1)};
}

}  // namespace netmend::observers
