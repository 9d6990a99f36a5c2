// Metrics against plain twins that look at every input.
#include "observers/metrics.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "model/layer.h"

namespace netmend::observers {
namespace {

struct Trial {
  PredictionSettings settings;
  at::Tensor outputs, labels;
  std::vector<Metric> metrics() const {
    Predictions observer(settings, true);
    PredictionState state(observer.settings(), true), later(observer.settings(), true);
    show(state, 0, outputs.size(0) / 2);
    show(later, outputs.size(0) / 2, outputs.size(0));
    state.merge(later);
    return measure(observer.settings(), state);
  }
  stats::Estimate get(const std::string& name) const {
    for (const Metric& metric : metrics())
      if (metric.name == name) return metric.estimate;
    ADD_FAILURE() << "no metric " << name;
    return {};
  }

 private:
  void show(PredictionState& state, int64_t begin, int64_t end) const {
    dataset::Batch batch;
    batch.labels = labels.slice(0, begin, end);
    for (int64_t i = begin; i < end; ++i) batch.samples.push_back(i);
    at::Tensor part = outputs.slice(0, begin, end);
    state.observe({batch, [&](model::ValueId) -> const at::Tensor& { return part; }});
  }
};

Trial random_trial(Task task, int64_t count, int64_t outputs, uint64_t seed) {
  at::manual_seed(seed);
  Trial trial;
  trial.settings.task = task;
  trial.settings.outputs = outputs;
  trial.settings.metric = task == Task::kNumber ? "mae" : "auc";
  int64_t classes = task == Task::kBinary ? 2 : outputs;
  for (int64_t c = 0; c < classes; ++c) trial.settings.classes.push_back(std::to_string(c));
  trial.outputs = at::randn({count, outputs}, at::kDouble) * 2;
  if (task == Task::kClasses || task == Task::kBinary) {
    at::Tensor noisy = trial.outputs + at::randn_like(trial.outputs) * 2;
    trial.labels = task == Task::kBinary ? (noisy.squeeze(1) > 0).to(at::kLong) : noisy.argmax(1);
  } else {
    trial.labels = trial.outputs + at::randn_like(trial.outputs);
    if (task == Task::kLabels) trial.labels = (trial.labels > 0).to(at::kFloat);
  }
  return trial;
}

double plain_area(const at::Tensor& score, const at::Tensor& positive) {
  double won = 0, pairs = 0;
  for (int64_t i = 0; i < score.size(0); ++i)
    for (int64_t j = 0; j < score.size(0); ++j) {
      if (!positive[i].item<bool>() || positive[j].item<bool>()) continue;
      double a = score[i].item<double>(), b = score[j].item<double>();
      won += a > b ? 1 : a == b ? 0.5 : 0;
      ++pairs;
    }
  return won / pairs;
}

double plain_f1(const at::Tensor& truth, const at::Tensor& called) {
  double found = (truth & called).sum().item<double>();
  return 2 * found / (truth.sum().item<double>() + called.sum().item<double>());
}

void expect_within(const stats::Estimate& estimate, double value, double tolerance) {
  EXPECT_NEAR(estimate.value, value, tolerance);
  EXPECT_LE(estimate.low, estimate.value);
  EXPECT_GE(estimate.high, estimate.value);
  EXPECT_LT(estimate.high - estimate.low, 0.5);
}

TEST(Metrics, OfOneOutputAndTwoClasses) {
  Trial trial = random_trial(Task::kBinary, 300, 1, 1);
  at::Tensor score = trial.outputs.squeeze(1), truth = trial.labels > 0;
  expect_within(trial.get("auc"), plain_area(score, truth), 1e-3);
  expect_within(trial.get("f1"), plain_f1(truth, score > 0), 1e-12);
  expect_within(trial.get("accuracy"), ((score > 0) == truth).to(at::kDouble).mean().item<double>(), 1e-12);
  at::Tensor loss = at::binary_cross_entropy_with_logits(score, truth.to(at::kDouble));
  expect_within(trial.get("log_loss"), loss.item<double>(), 1e-9);
}

TEST(Metrics, FollowThresholdAndPositiveClass) {
  Trial trial = random_trial(Task::kBinary, 300, 1, 2);
  at::Tensor chance = at::sigmoid(trial.outputs.squeeze(1)), truth = trial.labels > 0;
  trial.settings.threshold = 0.8;
  expect_within(trial.get("f1"), plain_f1(truth, chance > 0.8), 1e-12);
  trial.settings.positive = 0;
  expect_within(trial.get("f1"), plain_f1(~truth, 1 - chance >= 0.8), 1e-12);
  // The same through two columns.
  Trial two = trial;
  two.settings.task = Task::kClasses;
  two.settings.outputs = 2;
  two.outputs = at::stack({-trial.outputs.squeeze(1) / 2, trial.outputs.squeeze(1) / 2}, 1);
  EXPECT_DOUBLE_EQ(two.get("f1").value, trial.get("f1").value);
  EXPECT_NEAR(two.get("auc").value, trial.get("auc").value, 1e-3);
}

TEST(Metrics, OfManyClasses) {
  Trial trial = random_trial(Task::kClasses, 400, 5, 3);
  at::Tensor called = trial.outputs.argmax(1), chance = at::softmax(trial.outputs, 1);
  double recall = 0, f1 = 0, area = 0;
  for (int64_t c = 0; c < 5; ++c) {
    at::Tensor truth = trial.labels == c;
    recall += ((called == c) & truth).sum().item<double>() / truth.sum().item<double>() / 5;
    f1 += plain_f1(truth, called == c) / 5;
    area += plain_area(chance.select(1, c), truth) / 5;
  }
  expect_within(trial.get("balanced_accuracy"), recall, 1e-12);
  expect_within(trial.get("f1"), f1, 1e-12);
  expect_within(trial.get("auc"), area, 1e-3);
}

TEST(Metrics, OfSeveralLabelsAtOnce) {
  Trial trial = random_trial(Task::kLabels, 200, 3, 4);
  at::Tensor truth = trial.labels > 0, called = trial.outputs > 0;
  expect_within(trial.get("accuracy"), (truth == called).all(1).to(at::kDouble).mean().item<double>(), 1e-12);
  double f1 = 0;
  for (int64_t c = 0; c < 3; ++c) f1 += plain_f1(truth.select(1, c), called.select(1, c)) / 3;
  expect_within(trial.get("f1"), f1, 1e-12);
}

TEST(Metrics, OfNumbers) {
  Trial trial = random_trial(Task::kNumber, 500, 1, 5);
  at::Tensor error = (trial.outputs - trial.labels).squeeze(1);
  expect_within(trial.get("mae"), error.abs().mean().item<double>(), 1e-9);
  expect_within(trial.get("rmse"), error.pow(2).mean().sqrt().item<double>(), 1e-9);
  trial.settings.tolerance = 0.5;
  expect_within(trial.get("accuracy"), (error.abs() <= 0.5).to(at::kDouble).mean().item<double>(), 1e-12);
}

TEST(Metrics, IntervalOfTheAreaHoldsTheTruth) {
  // Scores of two normal distributions one apart: the area is Φ(1/√2).
  const double truth = 0.5 * std::erfc(-0.5);
  int held = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal;
    ScoreCounts counts;
    for (int i = 0; i < 150; ++i) counts.add(normal(random) + (i % 3 == 0), i % 3 == 0);
    held += counts.area().low <= truth && truth <= counts.area().high;
  }
  EXPECT_GT(held, 925);
  EXPECT_LT(held, 985);
}

TEST(Metrics, ThatDoNotFitAreRefused) {
  model::Graph graph;
  graph.values.push_back({"y"});
  dataset::Info info;
  info.labels = dataset::LabelKind::kClass;
  info.classes = {"no", "yes"};
  dataset::Batch batch;
  batch.samples = {0, 1};
  executor::Head head{0, 0, executor::OutputKind::kLogits};
  auto settle = [&](TaskOverrides overrides) {
    return infer_task(graph, head, info, batch, at::randn({2, 2}), overrides);
  };
  EXPECT_EQ(settle({.metric = "f1", .positive = "no"}).positive, 0);
  EXPECT_EQ(settle({.kind = "binary"}).task, Task::kClasses);
  EXPECT_EQ(settle({.kind = "none"}).task, Task::kNone);
  EXPECT_THROW(settle({.metric = "mae"}), InputError);
  EXPECT_THROW(settle({.metric = "acuracy"}), InputError);
  EXPECT_THROW(settle({.kind = "number"}), InputError);
  EXPECT_THROW(settle({.positive = "maybe"}), InputError);
}

TEST(UnitValues, CountOnlyPositionsThatAreNotPadding) {
  model::Layer layer;
  layer.units = 3;
  layer.unit_axis = 2;
  at::Tensor tap = at::randn({2, 4, 3}), mask = at::tensor({1, 1, 0, 0, 1, 1, 1, 0}).view({2, 4}).to(at::kBool);
  tap[0][3][1] = NAN;
  at::Tensor values = model::unit_values(layer, tap, mask);
  EXPECT_TRUE(at::allclose(values[0], tap[0].slice(0, 0, 2).mean(0)));
  EXPECT_TRUE(at::allclose(values[1], tap[1].slice(0, 0, 3).mean(0)));
  at::Tensor dense = at::randn({2, 3});
  EXPECT_TRUE(at::equal(model::unit_values(layer, dense, mask), dense));
}

}  // namespace
}  // namespace netmend::observers
