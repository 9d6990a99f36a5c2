// Values of the inputs and their drift: limits from both sides, plain twins, and columns of nothing but NaN.
#include <gtest/gtest.h>

#include <cmath>

#include "checks/data_for_test.h"

namespace netmend::checks {
namespace {

using findings::Finding;
using findings::Level;

int64_t inputs_with_nan(const at::Tensor& x) {
  return (at::isfinite(x).flatten(1).all(1) == 0).count_nonzero().item<int64_t>();
}

TEST(ValueTwins, InputsWithNanOrInfAreCounted) {
  for (uint64_t seed : {1, 2, 3}) {
    Sound sound = Sound::table(seed);
    Random random(seed);
    for (int i = 0; i < 30; ++i)
      sound.x[0][int64_t(random.below(900))][int64_t(random.below(2))] = i % 3 ? NAN : i % 2 ? INFINITY : -INFINITY;
    const Finding finding = raised(sound.check(), "missing-values:test");
    EXPECT_NEAR(finding.value, double(inputs_with_nan(sound.x[0])) / 900, 1e-12);
    for (const findings::Shown& shown : finding.inputs)
      EXPECT_FALSE(at::isfinite(sound.x[0][shown.sample]).all().item<bool>());
    EXPECT_FALSE(raises(sound.check(), "missing-values:train"));
  }
}

TEST(ValueLimits, AColumnOfNothingButNanIsMissingAndNeitherConstantNorFarOff) {
  Sound sound = Sound::table();
  for (int part : {0, 1}) sound.x[part].select(1, 0).fill_(NAN);
  const Results found = sound.check(true);
  for (const char* kind : {"constant-features", "drift", "range-shift", "outlier-inputs", "label-leak", "weak-slice"})
    EXPECT_FALSE(raises(found, kind)) << kind;
  EXPECT_EQ(raised(found, "missing-values:test").brief, "900 of 900 test inputs (100 %)");
  EXPECT_NE(raised(found, "missing-values:test").evidence.find("age"), std::string::npos);
  raised(found, "missing-values:train");
}

TEST(ValueLimits, InputsOfNothingButNanLeaveEveryFigureFinite) {
  for (Sound sound : {Sound(), Sound::table()}) {
    for (int part : {0, 1}) sound.x[part].fill_(NAN);
    const Results found = sound.check(true);
    EXPECT_TRUE(raises(found, "missing-values:test"));
    for (const Finding& one : found.findings) raised(found, one.id());
  }
}

TEST(ValueSentences, OfConstantColumnsOnlyThoseThatVaryElsewhereAreSaidTo) {
  Sound sound = Sound::table();
  for (int column : {0, 1}) sound.x[0].select(1, column).fill_(7);
  EXPECT_NE(raised(sound.check(), "constant-features:test").evidence.find(", but not in the other split."),
            std::string::npos);
  sound.x[1].select(1, 1).fill_(7);
  const std::string told = raised(sound.check(), "constant-features:test").evidence;
  EXPECT_NE(told.find("; in the other split age varies."), std::string::npos) << told;
}

TEST(ValueLimits, AColumnIsConstantFromTwentyInputsOn) {
  for (const auto& [count, told] : std::vector<std::pair<int64_t, bool>>{{19, false}, {20, true}}) {
    Sound sound = Sound::table();
    sound.train = false;
    sound.x[0] = sound.x[0].narrow(0, 0, count).clone(), sound.y[0] = sound.y[0].narrow(0, 0, count).clone();
    sound.wrong.clear();
    sound.x[0].select(1, 1).fill_(7);
    EXPECT_EQ(raises(sound.check(), "constant-features:test"), told) << count;
  }
}

TEST(ValueLimits, AColumnThatChangesOnceIsNotConstant) {
  Sound sound = Sound::table();
  for (int part : {0, 1}) sound.x[part].select(1, 1).fill_(7);
  sound.x[1][3][1] = 8, sound.x[0][5][1] = 8;
  EXPECT_FALSE(raises(sound.check(), "constant-features"));
}

/// Of every hundred tokens of the tests so many are unknown.
Sound with_unknown(int64_t of_hundred) {
  Sound sound = Sound::text();
  int64_t token = 0;
  for (int64_t i = 0; i < 900 * 12; ++i)
    if (sound.mask[0].data_ptr<bool>()[i] && token++ * 37 % 100 < of_hundred) sound.x[0].data_ptr<int64_t>()[i] = 1;
  return sound;
}

TEST(ValueLimits, FiveInAHundredUnknownTokensAreUsual) {
  EXPECT_FALSE(raises(with_unknown(4).check(), "unknown-tokens"));
  EXPECT_EQ(raised(with_unknown(7).check(), "unknown-tokens:test").level, Level::kNote);
  EXPECT_EQ(raised(with_unknown(17).check(), "unknown-tokens:test").level, Level::kMinor);
  EXPECT_NEAR(raised(with_unknown(17).check(), "unknown-tokens:test").value, 0.17, 0.002);
}

Sound with_full_length(int64_t count) {
  Sound sound = Sound::text();
  for (int64_t i = 0; i < count; ++i) sound.mask[0][i].fill_(true), sound.x[0][i] = at::arange(2 + i, 14 + i);
  return sound;
}

TEST(ValueLimits, TextsAreCutWhereSomeButNotAllFillTheLength) {
  EXPECT_FALSE(raises(with_full_length(45).check(), "truncated-text"));
  EXPECT_NEAR(raised(with_full_length(46).check(), "truncated-text:test").value, 46.0 / 900, 1e-12);
  EXPECT_TRUE(raises(with_full_length(850).check(), "truncated-text"));
  EXPECT_FALSE(raises(with_full_length(870).check(), "truncated-text")) << "then it is their length, and no limit";
}

TEST(ValueLimits, AnOutlierIsFiveSpansAwayFromTheMiddleOfTrainingData) {
  Sound sound = Sound::table();
  at::Tensor column = std::get<0>(sound.x[1].select(1, 0).to(at::kDouble).sort());
  auto quantile = [&](double q) {
    const double at = q * double(column.size(0) - 1);
    const auto low = int64_t(at);
    return column[low].item<double>() * (1 - (at - double(low))) + column[low + 1].item<double>() * (at - double(low));
  };
  const double middle = quantile(0.5), span = quantile(0.995) - quantile(0.005);
  for (const double side : {1.0, -1.0}) {
    sound.x[0][3][0] = middle + side * 4.9 * span;
    EXPECT_FALSE(raises(sound.check(), "outlier-inputs"));
    sound.x[0][3][0] = middle + side * 5.1 * span;
    const Finding finding = raised(sound.check(), "outlier-inputs:test");
    ASSERT_EQ(finding.inputs.size(), 1u);
    EXPECT_EQ(finding.inputs[0].sample, 3);
  }
}

/// The largest difference of the two shares of values up to a point, tried at every value.
double slow_ks(const at::Tensor& a, const at::Tensor& b) {
  double most = 0;
  for (const at::Tensor& points : {a, b})
    for (int64_t i = 0; i < points.size(0); ++i)
      most = std::max(most, std::abs((a <= points[i]).to(at::kDouble).mean().item<double>() -
                                     (b <= points[i]).to(at::kDouble).mean().item<double>()));
  return most;
}

TEST(DriftTwins, TheDistanceOfAColumnIsThatOfItsDistributionFunctions) {
  for (const double moved : {0.1, 0.4, 0.8}) {
    Sound sound = Sound::table(4);
    sound.x[0].select(1, 0).add_(moved);
    const double distance = slow_ks(sound.x[0].select(1, 0), sound.x[1].select(1, 0));
    const double chance = 1.63 * std::sqrt((900.0 + 1500) / (900.0 * 1500));
    const Results found = sound.check();
    EXPECT_EQ(raises(found, "drift:age (as fed)"), distance >= 0.1 + chance) << distance;
    if (distance >= 0.1 + chance) {
      // Values that lie closer than a thousandth of a deviation count as equal.
      EXPECT_NEAR(raised(found, "drift:age (as fed)").value, distance, 2e-3);
    }
  }
}

TEST(DriftLimits, ARangeHasShiftedByADeviationOrAFactorOfTwo) {
  struct Case {
    double factor, offset;  // in deviations of the training data
    bool told;
  };
  for (const Case& one : {Case{1, 0.85, false}, Case{1, 1.15, true}, Case{1.8, 0, false}, Case{2.2, 0, true},
                          Case{0.55, 0, false}, Case{0.45, 0, true}}) {
    Sound sound = Sound::table();
    for (int64_t c : {0, 1}) sound.x[0].select(1, c).mul_(one.factor).add_(one.offset);
    EXPECT_EQ(raises(sound.check(), "range-shift"), one.told) << one.factor << " " << one.offset;
  }
}

TEST(DriftLimits, OneColumnOfThreeThatMovesDriftsAndTheRangeStays) {
  Sound sound = Sound::table();
  sound.feature = dataset::table_feature({"age", "hours", "debt"});
  for (int part : {0, 1}) {
    sound.x[part] = sound.x[part].narrow(1, 0, 3).clone();
    for (int64_t i = 0; i < sound.x[part].size(0); ++i) sound.x[part][i][2] = std::sin(double(i));
  }
  sound.x[0].select(1, 0).add_(3);
  const Results found = sound.check();
  EXPECT_TRUE(raises(found, "drift:age (as fed)")) << said(found.findings);
  EXPECT_FALSE(raises(found, "range-shift"));
}

TEST(DriftLimits, SplitsThatArePreparedDifferentlyAreNotCompared) {
  Sound sound = Sound::table();
  sound.x[0].select(1, 0).add_(3);
  Observed seen = sound.observed();
  auto other = std::make_shared<dataset::MemoryDataset>(sound.feature, sound.x[0], sound.y[0], sound.classes);
  other->info_to_change().preprocess.scale = 0.5;
  seen.test->data = other;
  Results found;
  run_rows(seen, found, {"drift"});
  EXPECT_TRUE(found.findings.empty()) << said(found.findings);
  ASSERT_EQ(found.skipped.size(), 1u);
  EXPECT_EQ(found.skipped[0].enable, "the same preprocessing for both");
}

TEST(DataLimits, EmptySplitsRaiseNothing) {
  for (Sound sound : {Sound(0, 0), Sound(0, 1500)}) {
    const Results found = sound.check();
    for (const Finding& one : found.findings) EXPECT_EQ(one.level, Level::kNote) << said(found.findings);
  }
}

TEST(DataLimits, OneInputIsTooFewToSayAnythingSerious) {
  Sound sound(1, 1);
  sound.wrong.clear();
  const Results found = sound.check(true);
  for (const Finding& one : found.findings) EXPECT_LT(one.level, Level::kSerious) << said(found.findings);
}

}  // namespace
}  // namespace netmend::checks
