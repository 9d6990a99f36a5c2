// Duplicates, conflicts and leaks against twins that compare every pair of inputs, and at their limits.
#include <gtest/gtest.h>

#include <cstring>

#include "checks/data_for_test.h"

namespace netmend::checks {
namespace {

using findings::Finding;
using findings::Level;

bool equal_inputs(const at::Tensor& a, int64_t i, const at::Tensor& b, int64_t j) {
  const int64_t width = a[0].numel();
  return std::memcmp(a.data_ptr<float>() + i * width, b.data_ptr<float>() + j * width, size_t(width) * 4) == 0;
}

/// Inputs that repeat an earlier one.
int64_t slow_repeats(const at::Tensor& x) {
  int64_t count = 0;
  for (int64_t i = 0; i < x.size(0); ++i) {
    bool again = false;
    for (int64_t j = 0; j < i && !again; ++j) again = equal_inputs(x, i, x, j);
    count += again;
  }
  return count;
}
/// Inputs of `a` that are in `b` too.
int64_t slow_shared(const at::Tensor& a, const at::Tensor& b) {
  int64_t count = 0;
  for (int64_t i = 0; i < a.size(0); ++i) {
    bool there = false;
    for (int64_t j = 0; j < b.size(0) && !there; ++j) there = equal_inputs(a, i, b, j);
    count += there;
  }
  return count;
}
/// Inputs with an equal one of another label, and how many of them any prediction must get wrong.
std::pair<int64_t, int64_t> slow_conflicts(const at::Tensor& x, const at::Tensor& y, int64_t classes) {
  int64_t inputs = 0, wrong = 0;
  for (int64_t i = 0; i < x.size(0); ++i) {
    std::vector<int64_t> labels(static_cast<size_t>(classes), 0);
    bool first = true;
    for (int64_t j = 0; j < x.size(0); ++j)
      if (equal_inputs(x, i, x, j)) ++labels[size_t(y[j].item<int64_t>())], first = first && j >= i;
    int64_t all = 0, most = 0;
    for (int64_t count : labels) all += count, most = std::max(most, count);
    inputs += most < all;
    if (first) wrong += all - most;
  }
  return {inputs, wrong};
}

/// Some inputs are copied over others, within the tests and from training data into them.
Sound with_copies(uint64_t seed) {
  Sound sound(240, 300, seed);
  Random random(seed + 7);
  for (int i = 0; i < 40; ++i) sound.x[0][int64_t(random.below(240))] = sound.x[0][int64_t(random.below(240))].clone();
  for (int i = 0; i < 25; ++i) sound.x[0][int64_t(random.below(240))] = sound.x[1][int64_t(random.below(300))].clone();
  return sound;
}

TEST(DuplicateTwins, CountsAgreeWithComparingEveryPair) {
  for (uint64_t seed : {1, 2, 3}) {
    const Sound sound = with_copies(seed);
    const Results found = sound.check();
    EXPECT_EQ(raised(found, "duplicates:test").numbers["same"], slow_repeats(sound.x[0]));
    EXPECT_EQ(raised(found, "split-leak:train-test").numbers["same"], slow_shared(sound.x[0], sound.x[1]));
    const auto [inputs, wrong] = slow_conflicts(sound.x[0], sound.y[0], 3);
    const Finding conflict = raised(found, "conflicting-labels:test");
    EXPECT_EQ(conflict.numbers["inputs"], inputs);
    EXPECT_EQ(conflict.numbers["wrong_at_best"], wrong);
  }
}

TEST(DuplicateTwins, ThePairsThatViewsShowAreEqualInputs) {
  const Sound sound = with_copies(4);
  size_t pairs = 0;
  for (const Results::DuplicateList& list : sound.check().duplicates)
    for (const auto& [a, b] : list.pairs) {
      ++pairs;
      EXPECT_TRUE(equal_inputs(sound.x[a.split == "train"], a.sample, sound.x[b.split == "train"], b.sample));
      EXPECT_EQ(list.where, a.split == b.split ? a.split : "train-test");
    }
  EXPECT_GE(pairs, 40u);
}

Sound with_repeats(int64_t count) {
  Sound sound;
  for (int64_t i = 0; i < count; ++i) sound.x[0][800 + i] = sound.x[0][5];
  return sound;
}

TEST(DuplicateLimits, FiveInAThousandAreWorthNaming) {
  EXPECT_FALSE(raises(with_repeats(4).check(), "duplicates:test"));
  EXPECT_TRUE(raises(with_repeats(5).check(), "duplicates:test"));
}

TEST(DuplicateLimits, AFifthOfTheTestsIsSeriousWhateverTheMetricSays) {
  for (const auto& [count, level] :
       std::vector<std::pair<int64_t, Level>>{{40, Level::kNote}, {46, Level::kMinor}, {181, Level::kSerious}}) {
    Sound sound(900, 100);
    sound.wrong.clear();  // no failures: the metric does not move
    for (int64_t i = 0; i < count; ++i) sound.x[0][700 + i] = sound.x[0][int64_t(i)];
    EXPECT_EQ(raised(sound.check(), "duplicates:test").level, level) << count;
  }
}

TEST(DuplicateLimits, AFewRowsOfASmallTableAreNatural) {
  Sound sound = Sound::table();
  for (int part : {0, 1})
    for (int64_t i = 0; i < sound.x[part].size(0); ++i) sound.x[part][i][0] = double(i % 5), sound.x[part][i][1] = 1.0;
  const Results found = sound.check();
  for (const char* id : {"duplicates:test", "split-leak:train-test", "conflicting-labels:test"}) {
    const Finding finding = raised(found, id);
    EXPECT_EQ(finding.level, Level::kNote) << id;
    EXPECT_EQ(finding.effect.gain, 0) << id;
    EXPECT_NE(finding.evidence.find("to be expected"), std::string::npos) << finding.evidence;
  }
}

TEST(DuplicateLimits, TestsThatRepeatMoreOftenThanTrainingRowsAreNotNatural) {
  Sound sound = Sound::table();
  Random random(9);
  for (int part : {0, 1})
    for (int64_t i = 0; i < sound.x[part].size(0); ++i)
      sound.x[part][i][0] = double(random.below(80)), sound.x[part][i][1] = double(random.below(100));
  EXPECT_FALSE(raises(sound.check(), "duplicates:test") &&
               raised(sound.check(), "duplicates:test").level > Level::kNote);
  for (int64_t i = 0; i < 360; ++i) sound.x[0][500 + i] = sound.x[0][i];
  EXPECT_EQ(raised(sound.check(), "duplicates:test").level, Level::kSerious);
}

TEST(DuplicateLimits, ALeakIntoATableIsNotNatural) {
  // Few values in every column: rows collide, and a fifth of the tests more than that.
  for (const bool small : {false, true}) {
    Sound sound = Sound::table();
    Random random(9);
    if (small)
      for (int part : {0, 1})
        for (int64_t i = 0; i < sound.x[part].size(0); ++i)
          sound.x[part][i][0] = double(random.below(80)), sound.x[part][i][1] = double(random.below(100));
    const Results before = sound.check();
    EXPECT_TRUE(!raises(before, "split-leak") || raised(before, "split-leak").level == Level::kNote)
        << said(before.findings);
    for (int64_t i = 0; i < 180; ++i) sound.x[0][i] = sound.x[1][i];
    EXPECT_EQ(raised(sound.check(), "split-leak:train-test").level, Level::kSerious) << small;
  }
}

/// A source that repeats itself is on both sides of any split: that costs what the figures say, and is no leak of its
/// own.
TEST(DuplicateLimits, WhatTheSourceRepeatsIsJudgedByWhatItCosts) {
  for (const bool flatters : {false, true}) {
    Sound sound;
    sound.wrong.clear();
    for (int64_t i = 0; i < 75; ++i) sound.x[1][i] = sound.x[1][700 + i];  // a tenth of the training inputs
    for (int64_t i = 0; i < 80; ++i) sound.x[0][i] = sound.x[1][200 + i];  // and as many tests
    for (int64_t i = 0; i < 180; ++i) sound.wrong.push_back(flatters ? 100 + i : 5 * i);
    const Finding leak = raised(sound.check(), "split-leak:train-test");
    EXPECT_EQ(leak.level, flatters ? Level::kSerious : Level::kMinor) << leak.evidence;
    EXPECT_NE(leak.evidence.find("the source held these duplicates before it was split"), std::string::npos);
    // More than that was moved from one side to the other.
    for (int64_t i = 0; i < 200; ++i) sound.x[0][i] = sound.x[1][200 + i];
    EXPECT_EQ(raised(sound.check(), "split-leak:train-test").level, Level::kSerious);
  }
}

/// Sequences come close to each other by nature; pictures that are nearly the same were made of one.
TEST(DuplicateLimits, NearlyEqualSequencesAreALeakWhereTrainingHasFewer) {
  for (const bool pictures : {false, true}) {
    Sound sound = pictures ? Sound() : Sound::text();
    auto near = [&](const at::Tensor& x) {
      at::Tensor other = x.clone();
      pictures ? other.mul_(0.9) : other.narrow(0, 2, 1).add_(7);
      return other;
    };
    if (!pictures)
      for (int part : {0, 1}) {
        Random random(uint64_t(part) + 7);
        for (int64_t i = 0; i < sound.x[part].numel(); ++i)
          sound.x[part].data_ptr<int64_t>()[i] = int64_t(2 + random.below(500));
        sound.mask[part].fill_(true);
      }
    for (int64_t i = 0; i < 120; ++i) sound.x[1][i] = near(sound.x[1][700 + i]);
    for (int64_t i = 0; i < 120; ++i) sound.x[0][i] = near(sound.x[1][200 + i]);
    const Finding leak = raised(sound.check(), "split-leak:train-test");
    EXPECT_EQ(leak.numbers["near"], 120) << leak.evidence;
    EXPECT_EQ(leak.level, pictures ? Level::kSerious : Level::kMinor) << leak.evidence;
    for (int64_t i = 0; i < 300; ++i) sound.x[0][i] = near(sound.x[1][200 + i]);
    EXPECT_EQ(raised(sound.check(), "split-leak:train-test").level, Level::kSerious);
  }
}

TEST(DuplicateLimits, AFewRowsThatCollideAreNoLeak) {
  Sound sound = Sound::table();
  for (int64_t i = 0; i < 3; ++i) sound.x[1][i] = sound.x[1][100 + i];
  sound.x[0][7] = sound.x[1][50];
  EXPECT_FALSE(raises(sound.check(), "split-leak"));
}

TEST(DuplicateLimits, OneInAHundredTestsFromTrainingDataIsSerious) {
  for (const auto& [count, level] : std::vector<std::pair<int64_t, Level>>{{8, Level::kNote}, {9, Level::kSerious}}) {
    Sound sound;
    sound.wrong.clear();
    for (int64_t i = 0; i < count; ++i) sound.x[0][i] = sound.x[1][i];
    EXPECT_EQ(raised(sound.check(), "split-leak:train-test").level, level) << count;
  }
}

TEST(DuplicateLimits, OnlyALeakThatFlattersCosts) {
  for (const bool flatters : {true, false}) {
    Sound sound;
    sound.wrong.clear();
    for (int64_t i = 0; i < 60; ++i) sound.x[0][i] = sound.x[1][i], sound.y[0][i] = sound.y[1][i];
    for (int64_t i = 0; i < 50; ++i) sound.wrong.push_back(flatters ? 100 + i : i);
    const double gain = raised(sound.check(), "split-leak:train-test").effect.gain;
    EXPECT_NEAR(gain, flatters ? 50.0 / 840 - 50.0 / 900 : 0, 1e-9);
  }
}

TEST(DuplicateLimits, EqualInputsWithEqualLabelsAreNoConflict) {
  Sound sound = with_repeats(50);
  for (int64_t i = 0; i < 50; ++i) sound.y[0][800 + i] = sound.y[0][5];
  EXPECT_FALSE(raises(sound.check(), "conflicting-labels"));
  sound.y[0][800] = (sound.y[0][5].item<int64_t>() + 1) % 3;
  const Finding one = raised(sound.check(), "conflicting-labels:test");
  EXPECT_EQ(one.numbers["inputs"], 51);
  EXPECT_EQ(one.numbers["wrong_at_best"], 1);
}

}  // namespace
}  // namespace netmend::checks
