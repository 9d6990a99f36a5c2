#include "slices/failing.h"

#include <cmath>

#include "observers/metrics.h"
#include "observers/predictions.h"
#include "stats/moments.h"

namespace netmend::slices {

using observers::SampleRow;
using observers::Task;

double error_unit(const observers::PredictionSettings& settings, const std::vector<SampleRow>& rows) {
  if (settings.task != Task::kNumber || settings.tolerance >= 0) return 1;
  stats::Moments labels;
  for (const SampleRow& row : rows)
    if (std::isfinite(row.label)) labels.add(row.label);
  return labels.deviation() > 0 ? labels.deviation() : 1;
}

std::vector<double> failing_of(const observers::PredictionSettings& settings, const std::vector<SampleRow>& rows) {
  const double unit = error_unit(settings, rows);
  const bool number = settings.task == Task::kNumber && settings.tolerance < 0;
  std::vector<double> out;
  for (const SampleRow& row : rows) {
    if (number)
      out.push_back(std::isfinite(row.loss) ? std::sqrt(double(row.loss)) / unit : NAN);
    else
      out.push_back(row.right == SampleRow::kNotJudged ? NAN : double(row.right == SampleRow::kWrong));
  }
  return out;
}

double positive_score(const observers::PredictionSettings& settings, const SampleRow& row) {
  // The loss is −ln of the label's probability, which tells the side too, whatever threshold made the prediction.
  return row.label == double(settings.positive) ? std::exp(-double(row.loss)) : -std::expm1(-double(row.loss));
}

observers::Metric metric_of(const observers::PredictionSettings& settings, const std::vector<SampleRow>& rows,
                            const std::function<bool(size_t)>& counts) {
  observers::PredictionState state(settings, false);
  const auto classes = int64_t(settings.classes.size());
  const bool scored = settings.by_class() && classes == 2 && state.scores.size() == 1;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (counts && !counts(i)) continue;
    const SampleRow& row = rows[i];
    ++state.samples;
    state.correct += row.right == SampleRow::kRight;
    const bool finite = std::isfinite(row.predicted);
    state.not_finite += !finite;
    if (settings.by_class() && row.label >= 0 && row.label < double(classes)) {
      ++state.label_counts[size_t(row.label)];
      if (finite) ++state.confusion[size_t(int64_t(row.label) * classes + int64_t(row.predicted))];
      if (finite && scored) state.scores[0].add(positive_score(settings, row), int64_t(row.label) == settings.positive);
    }
    if (!finite || std::isnan(row.loss)) continue;
    state.loss += row.loss, state.loss_squares += double(row.loss) * row.loss;
    state.absolute_error += std::sqrt(double(row.loss)), state.squared_error += row.loss;
    state.fourth_powers += double(row.loss) * row.loss;
  }
  if (!scored) state.scores.clear();
  std::vector<observers::Metric> all = observers::measure(settings, state);
  const bool labels = settings.task == Task::kLabels;  // of which rows keep only whether all were right
  for (const observers::Metric& metric : all)
    if (metric.name == settings.metric && !(labels && metric.name != "accuracy")) return metric;
  for (const observers::Metric& metric : all)
    if (metric.name == "accuracy") return metric;
  return all.empty() ? observers::Metric{"", {NAN, NAN, NAN}} : all[0];
}

}  // namespace netmend::slices
