// Predictions made up by rules, and what the checks of predictions say about them.
#pragma once

#include "checks/checks_for_test.h"
#include "session/split.h"

namespace netmend::checks {

/// Predictions made up by a rule: `said` is the predicted class for an input of a class, `sure` its confidence.
struct Answered {
  static constexpr int64_t kClasses = 10, kOfEach = 100;
  observers::PredictionSettings settings;
  ObservedSplit test;
  std::optional<ObservedSplit> train;
  Results found;

  Answered() {
    settings.task = observers::Task::kClasses, settings.metric = "accuracy", settings.outputs = kClasses;
    for (int64_t c = 0; c < kClasses; ++c) settings.classes.push_back("c" + std::to_string(c));
  }
  template <typename Said, typename Sure>
  ObservedSplit part(const Said& said, const Sure& sure,
                     const std::vector<int64_t>& sizes = std::vector<int64_t>(kClasses, kOfEach)) {
    ObservedSplit out;
    out.name = "test";
    auto& result = out.result;
    result.confusion.assign(kClasses, std::vector<int64_t>(kClasses));
    for (int64_t c = 0; c < kClasses; ++c)
      for (int64_t i = 0; i < sizes[size_t(c)]; ++i) {
        observers::SampleRow row;
        row.sample = int64_t(out.rows.size()), row.label = double(c), row.predicted = double(said(c, i));
        row.right = row.label == row.predicted ? observers::SampleRow::kRight : observers::SampleRow::kWrong;
        row.confidence = float(sure(row)), row.loss = row.right ? 0.1f : 2;
        ++result.confusion[size_t(c)][size_t(row.predicted)];
        out.rows.push_back(row);
      }
    result.samples = int64_t(out.rows.size());
    for (int64_t c = 0; c < kClasses; ++c) {
      observers::ClassResult one;
      one.name = settings.classes[size_t(c)], one.samples = sizes[size_t(c)],
      one.correct = result.confusion[size_t(c)][size_t(c)];
      for (int64_t l = 0; l < kClasses; ++l) one.predicted += result.confusion[size_t(l)][size_t(c)];
      one.recall = one.samples ? double(one.correct) / double(one.samples) : 0,
      one.range = stats::rate(one.correct, one.samples);
      result.correct += one.correct;
      result.per_class.push_back(one);
    }
    result.accuracy = double(result.correct) / double(result.samples);
    return out;
  }
  Results& look() {
    Observed seen{.session = any_session(), .settings = settings};
    test.data = seen.session.test().data;
    seen.test = std::move(test);
    if (train) seen.train = std::move(train);
    run_rows(seen, found,
             {"finite-predictions", "constant-predictions", "majority-baseline", "confusions", "weak-classes", "metric",
              "calibration", "bias", "clipping", "over-fitting"});
    return found;
  }
};

inline int64_t spread_mistakes(int64_t c, int64_t i) { return i < 8 ? (c + 1 + i) % 10 : c; }
inline double well_calibrated(const observers::SampleRow& row) { return row.sample % 10 == 0 ? 0.7 : 0.94; }

}  // namespace netmend::checks
