#include "observers/top_predictions.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"

namespace netmend::observers {
namespace {

constexpr model::ValueId kLogits = 3;

PredictionSettings settings_for(int64_t outputs, executor::OutputKind gives, bool labels = true) {
  PredictionSettings settings;
  settings.task = !labels ? Task::kNone : outputs == 1 ? Task::kBinary : Task::kClasses;
  settings.outputs = outputs;
  settings.head = {kLogits, kLogits, gives};
  for (int64_t c = 0; c < std::max<int64_t>(outputs, 2); ++c) settings.classes.push_back(std::to_string(c));
  return settings;
}

std::vector<TopRow> rows_of(const PredictionSettings& settings, const at::Tensor& output, const at::Tensor& labels) {
  dataset::Batch batch;
  batch.labels = labels;
  batch.samples.resize(size_t(output.size(0)));
  std::iota(batch.samples.begin(), batch.samples.end(), 100);
  TopPredictions observer(settings);
  auto state = observer.fresh();
  state->observe({batch, [&](model::ValueId) -> const at::Tensor& { return output; }});
  return dynamic_cast<const TopState&>(*state).rows;
}

/// By whole tensors, in another order of steps.
void expect_twin(const std::vector<TopRow>& rows, const at::Tensor& probabilities, const at::Tensor& labels) {
  auto [sorted, order] = probabilities.sort(/*stable=*/true, 1, /*descending=*/true);
  ASSERT_EQ(int64_t(rows.size()), probabilities.size(0));
  for (int64_t i = 0; i < probabilities.size(0); ++i) {
    const TopRow& row = rows[size_t(i)];
    EXPECT_EQ(row.sample, 100 + i);
    for (int64_t k = 0; k < TopRow::kKept; ++k) {
      bool there = k < probabilities.size(1);
      EXPECT_EQ(row.classes[size_t(k)], there ? order[i][k].item<int64_t>() : -1) << i << " " << k;
      EXPECT_NEAR(row.probabilities[size_t(k)], there ? sorted[i][k].item<double>() : 0, 1e-6);
    }
    at::Tensor p = probabilities[i];
    EXPECT_NEAR(row.gini, 1 - (p * p).sum().item<double>(), 1e-6);
    EXPECT_NEAR(row.entropy, -at::xlogy(p, p).sum().item<double>(), 1e-5);
    EXPECT_NEAR(row.margin(), (sorted[i][0] - sorted[i][1]).item<double>(), 1e-6);
    EXPECT_EQ(row.label, labels.defined() ? labels[i].item<int64_t>() : -1);
    EXPECT_NEAR(row.given, labels.defined() ? p[labels[i].item<int64_t>()].item<double>() : 0, 1e-6);
  }
}

TEST(TopPredictions, EqualASlowTwin) {
  at::manual_seed(1);
  for (int64_t classes : {2, 3, 5, 6, 40}) {
    at::Tensor logits = at::randn({70, classes}, at::kDouble) * 3, labels = at::randint(classes, {70}, at::kLong);
    at::Tensor probabilities = at::softmax(logits, 1);
    expect_twin(rows_of(settings_for(classes, executor::OutputKind::kLogits), logits, labels), probabilities, labels);
    expect_twin(rows_of(settings_for(classes, executor::OutputKind::kProbabilities), probabilities, labels),
                probabilities, labels);
    expect_twin(rows_of(settings_for(classes, executor::OutputKind::kLogits, false), logits, {}), probabilities, {});
  }
}

TEST(TopPredictions, OneSigmoidIsTwoClasses) {
  at::manual_seed(2);
  at::Tensor logits = at::randn({40, 1}, at::kDouble) * 4, labels = at::randint(2, {40}, at::kLong);
  at::Tensor second = at::sigmoid(logits), probabilities = at::cat({1 - second, second}, 1);
  expect_twin(rows_of(settings_for(1, executor::OutputKind::kLogits), logits, labels), probabilities, labels);
  expect_twin(rows_of(settings_for(1, executor::OutputKind::kProbabilities), second, labels), probabilities, labels);
}

TEST(TopPredictions, EqualChancesGoToTheSmallerClass) {
  auto rows = rows_of(settings_for(7, executor::OutputKind::kLogits), at::zeros({1, 7}, at::kDouble), {});
  EXPECT_EQ(rows[0].classes, (std::array<int32_t, 5>{0, 1, 2, 3, 4}));
  EXPECT_EQ(rows[0].margin(), 0);
}

TEST(TopPredictions, WhatIsNoNumberHasNoClasses) {
  at::Tensor logits = at::zeros({3, 3}, at::kDouble), labels = at::ones({3}, at::kLong);
  logits[0][1] = NAN, logits[1][2] = INFINITY;
  auto rows = rows_of(settings_for(3, executor::OutputKind::kLogits), logits, labels);
  for (size_t i : {0, 1}) {
    EXPECT_EQ(rows[i].classes[0], -1);
    EXPECT_EQ(rows[i].label, 1);
    EXPECT_EQ(rows[i].given, 0);
    EXPECT_EQ(rows[i].entropy, 0);
  }
  EXPECT_EQ(rows[2].classes[0], 0);
}

TEST(TopPredictions, RefuseLabelsThatAreNoClass) {
  at::Tensor labels = at::full({2}, 3, at::kLong);
  EXPECT_THROW(rows_of(settings_for(3, executor::OutputKind::kLogits), at::zeros({2, 3}, at::kDouble), labels),
               InputError);
}

}  // namespace
}  // namespace netmend::observers
