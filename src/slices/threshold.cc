#include "slices/threshold.h"

#include <cmath>

#include "base/error.h"
#include "slices/failing.h"

namespace netmend::slices {
namespace {

constexpr int kSteps = 20;           // of the unit interval
constexpr size_t kMostGroups = 8;    // beside all
constexpr size_t kLeastInputs = 50;  // of a group

struct Members {
  std::string name;
  std::vector<size_t> rows;
};

std::vector<Members> members_of(const Survey& survey) {
  std::vector<Members> sets{{"all", {}}};
  for (size_t i = 0; i < survey.rows.size(); ++i) sets[0].rows.push_back(i);
  for (const Column& column : survey.columns) {
    if (!column.aside || !column.is_words()) continue;
    for (size_t code = 0; code < column.words.size() && sets.size() <= kMostGroups; ++code) {
      Members group{column.name + "=" + column.words[code], {}};
      for (size_t i = 0; i < survey.rows.size(); ++i)
        if (column.codes[i] == int32_t(code)) group.rows.push_back(i);
      if (group.rows.size() >= kLeastInputs) sets.push_back(std::move(group));
    }
  }
  return sets;
}

/// At the threshold that is used now the prediction itself counts: a score is kept with less precision.
ThresholdRates rates_at(double threshold, bool current, const Members& members, const Survey& survey,
                        const observers::PredictionSettings& task) {
  int64_t judged = 0, right = 0, selected = 0, positives = 0, found = 0;
  for (size_t i : members.rows) {
    if (std::isnan(survey.failing[i])) continue;
    const observers::SampleRow& row = survey.rows[i];
    const bool positive = row.label == double(task.positive),
               predicted = std::isfinite(row.predicted) &&
                           (current ? row.predicted == double(task.positive) : positive_score(task, row) > threshold);
    ++judged, right += positive == predicted, selected += predicted, positives += positive,
        found += positive && predicted;
  }
  return {members.name, stats::rate(right, judged), stats::rate(selected, judged), stats::rate(found, positives),
          stats::rate(selected - found, judged - positives)};
}

}  // namespace

std::vector<ThresholdStep> sweep_thresholds(const Survey& survey, const observers::PredictionSettings& task) {
  if (!task.by_class() || task.classes.size() != 2)
    throw InputError("--threshold sweep needs a model with two classes",
                     "Leave it out, or set model.kind = \"binary\" in netmend.toml.");
  const std::vector<Members> sets = members_of(survey);
  std::vector<ThresholdStep> steps;
  for (int step = 1; step < kSteps; ++step) {
    const double threshold = double(step) / kSteps;
    steps.push_back({threshold, std::abs(threshold - task.threshold) < 1e-9, {}});
    for (const Members& members : sets)
      steps.back().groups.push_back(rates_at(threshold, steps.back().current, members, survey, task));
  }
  return steps;
}

}  // namespace netmend::slices
