// Observers of predictions and units against slow twins written from their definitions.
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "observers/part_predictions.h"
#include "observers/random_case_for_test.h"
#include "observers/spectrum.h"
#include "observers/unit_profile.h"

namespace netmend::observers {
namespace {

TEST(Predictions, EqualASlowTwin) {
  RandomCase fixture(500);
  Predictions observer(fixture.materials.predictions, true);
  auto folded = fixture.run(observer, 2).collected[0].fold(observer);
  const auto& state = dynamic_cast<const PredictionState&>(*folded);
  PredictionResult result = finish(observer, state);
  std::vector<int64_t> all(500);
  for (int64_t i = 0; i < 500; ++i) all[size_t(i)] = i;
  dataset::Batch batch = fixture.data->read(all);
  at::NoGradGuard no_grad;
  at::Tensor logits = executor::Executor(fixture.subject.graph).run(batch.inputs)[0];
  EXPECT_EQ(result.correct, (logits.argmax(1) == batch.labels).sum().item<int64_t>());
  EXPECT_NEAR(result.loss, at::nll_loss(at::log_softmax(logits, 1), batch.labels).item<double>(), 1e-5);
  int64_t counted = 0;
  for (const auto& row : result.confusion)
    for (int64_t count : row) counted += count;
  EXPECT_EQ(counted, 500);
  ASSERT_EQ(state.rows.size(), 500u);
  for (int64_t i = 0; i < 500; ++i) EXPECT_EQ(state.rows[size_t(i)].sample, i);
}

TEST(PartPredictions, EqualTheRowsOfThePart) {
  RandomCase fixture(500);
  Predictions whole(fixture.materials.predictions, true);
  PartPredictions part(fixture.materials.predictions, [](int64_t sample) { return sample % 7 < 2; });
  auto all = fixture.run(whole, 2).collected[0].fold(whole), some = fixture.run(part, 2).collected[0].fold(part);
  int64_t samples = 0, right = 0;
  double loss = 0;
  for (const SampleRow& row : dynamic_cast<const PredictionState&>(*all).rows)
    if (row.sample % 7 < 2) ++samples, right += row.right == SampleRow::kRight, loss += row.loss;
  PredictionResult result = finish(part.whole(), dynamic_cast<const PartState&>(*some).judged);
  EXPECT_EQ(result.samples, samples);
  EXPECT_EQ(result.correct, right);
  EXPECT_NEAR(result.loss, loss / double(samples), 1e-6);
}

TEST(UnitProfile, EqualsASlowTwin) {
  RandomCase fixture(1500);
  UnitProfile observer(fixture.materials.layers);
  auto folded = fixture.run(observer, 2).collected[0].fold(observer);
  const auto& state = dynamic_cast<const UnitProfileState&>(*folded);
  std::vector<int64_t> all(1500);
  for (int64_t i = 0; i < 1500; ++i) all[size_t(i)] = i;
  executor::Request request;
  request.wanted = {fixture.materials.layers[1].post};
  at::NoGradGuard no_grad;
  at::Tensor values =
      executor::Executor(fixture.subject.graph, request).run(fixture.data->read(all).inputs)[0].to(at::kDouble);
  for (int64_t u = 0; u < 7; ++u) {
    const UnitStats& unit = state.stats[1][size_t(u)];
    at::Tensor column = values.select(1, u);
    EXPECT_NEAR(unit.mean, column.mean().item<double>(), 1e-6);
    EXPECT_NEAR(unit.variance(), column.var(false).item<double>(), 1e-6);
    EXPECT_NEAR(unit.min, column.min().item<double>(), 1e-6);
    EXPECT_NEAR(unit.max, column.max().item<double>(), 1e-6);
    EXPECT_EQ(unit.zeros, (column == 0).sum().item<int64_t>());
  }
}

TEST(UnitProfile, CountsWhatIsNotFinite) {
  RandomCase fixture(300, FirstInputs::kNan);
  UnitProfile observer(fixture.materials.layers);
  auto folded = fixture.run(observer, 1).collected[0].fold(observer);
  const auto& state = dynamic_cast<const UnitProfileState&>(*folded);
  int64_t broken = 0;
  for (const UnitStats& unit : state.stats[0]) {
    broken += unit.not_finite;
    EXPECT_TRUE(std::isfinite(unit.mean));
  }
  EXPECT_GT(broken, 0);
}

/// Counted input by input, without groups or batches.
void expect_spectrum(const RandomCase& fixture, const SpectrumSettings& settings, int64_t inputs) {
  Spectrum observer(fixture.materials.predictions, fixture.materials.layers, settings);
  auto folded = fixture.run(observer, 2).collected[0].fold(observer);
  const auto& state = dynamic_cast<const SpectrumState&>(*folded);
  EXPECT_EQ(state.samples, inputs);
  std::vector<int64_t> all(static_cast<size_t>(inputs));
  for (int64_t i = 0; i < inputs; ++i) all[size_t(i)] = i;
  executor::Request request;
  request.wanted = {fixture.subject.graph.outputs[0]};
  for (const model::Layer& layer : observer.layers())
    request.wanted.push_back(settings.before_activation ? layer.pre : layer.post);
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> values =
      executor::Executor(fixture.subject.graph, request).run(fixture.data->read(all).inputs);
  at::Tensor predicted = values[0].argmax(1);
  for (size_t l = 0; l < observer.layers().size(); ++l)
    values[l + 1] = model::unit_values(observer.layers()[l], values[l + 1]);
  std::vector<std::vector<int64_t>> active(2, std::vector<int64_t>(size_t(count_units(observer.layers()))));
  std::vector<int64_t> sides(2);
  for (int64_t i = 0; i < inputs; ++i) {
    int64_t label = i % 4, answer = predicted[i].item<int64_t>();
    if (settings.target.label >= 0 && label != settings.target.label) continue;
    if (settings.target.predicted >= 0 && answer != label && answer != settings.target.predicted) continue;
    size_t side = answer == label ? 1 : 0;
    ++sides[side];
    size_t unit = 0;
    for (size_t l = 0; l < observer.layers().size(); ++l)
      for (int64_t u = 0; u < observer.layers()[l].units; ++u)
        active[side][unit++] += values[l + 1][i][u].item<float>() > float(settings.threshold);
  }
  at::Tensor counted = state.active.sum(1), totals = state.inputs.sum(1);
  for (int64_t side = 0; side < 2; ++side) {
    EXPECT_EQ(totals[side].item<int64_t>(), sides[size_t(side)]);
    for (int64_t u = 0; u < counted.size(1); ++u)
      EXPECT_EQ(counted[side][u].item<int64_t>(), active[size_t(side)][size_t(u)]) << u;
  }
}

TEST(Spectrum, EqualsASlowTwin) {
  RandomCase fixture(1100);
  expect_spectrum(fixture, {}, 1100);
  expect_spectrum(fixture, {0.2, {}}, 1100);
  expect_spectrum(fixture, {-0.1, {2}}, 1100);
  expect_spectrum(fixture, {0, {3, 1}}, 1100);
}

TEST(Spectrum, EqualsASlowTwinWhereUnitsHaveMaps) {
  for (const char* network : {"lenet5", "lenet4", "cnn1"}) {
    RandomCase fixture(70, FirstInputs::kSound, network, {1, 28, 28});
    expect_spectrum(fixture, {}, 70);
    expect_spectrum(fixture, {0.01, {}}, 70);
    expect_spectrum(fixture, {0, {}, true}, 70);
  }
  RandomCase wide(6, FirstInputs::kSound, "cifar-convnet", {3, 32, 32});
  expect_spectrum(wide, {}, 6);
}

TEST(Spectrum, SidesFollowTheTarget) {
  auto row = [](double label, double predicted) { return SampleRow{7, label, predicted, 0, 0, label == predicted}; };
  EXPECT_EQ(Target{}.side(row(1, 1)), Side::kPassing);
  EXPECT_EQ(Target{}.side(row(1, 2)), Side::kFailing);
  EXPECT_EQ(Target{}.side(SampleRow{}), Side::kNeither);
  EXPECT_EQ((Target{1}.side(row(2, 2))), Side::kNeither);
  EXPECT_EQ((Target{1, 2}.side(row(1, 3))), Side::kNeither);
  EXPECT_EQ((Target{1, 2}.side(row(1, 2))), Side::kFailing);
  Target listed;
  listed.may_fail = [](int64_t sample) { return sample == 8; };
  EXPECT_EQ(listed.side(row(1, 2)), Side::kNeither);
  EXPECT_EQ(listed.side(row(1, 1)), Side::kPassing);
}

}  // namespace
}  // namespace netmend::observers
