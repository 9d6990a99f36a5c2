// Simple models against what they can and cannot learn, and what is hard for them too.
#include "checks/simple_models.h"

#include <gtest/gtest.h>

#include "checks/data_for_test.h"

namespace netmend::checks {
namespace {

TEST(LinearBaseline, LearnsALineAndNoParity) {
  for (const bool line : {true, false}) {
    Sound sound = Sound::table();
    sound.classes = sound.settings.classes = {"no", "yes"}, sound.settings.outputs = 2;
    for (int part : {0, 1})
      for (int64_t i = 0; i < sound.x[part].size(0); ++i) {
        const double a = sound.x[part][i][0].item<double>(), b = sound.x[part][i][1].item<double>();
        sound.y[part][i] = int64_t(line ? a + b > 0 : a * b > 0);
      }
    for (const bool train : {true, false}) {
      sound.train = train;
      Observed seen = sound.observed();
      const std::optional<stats::Estimate> linear = linear_baseline(seen);
      ASSERT_TRUE(linear);
      if (line)
        EXPECT_GT(linear->value, 0.95) << train;
      else
        EXPECT_LT(linear->value, 0.62) << train;
    }
  }
}

TEST(LinearBaseline, OfTextsIsOneOfWords) {
  Sound sound = Sound::text();
  for (int part : {0, 1})
    for (int64_t i = 0; i < sound.x[part].size(0); ++i)  // a word says the class
      sound.x[part][i][int64_t(i % 4)] = 10 + sound.y[part][i].item<int64_t>();
  Observed seen = sound.observed();
  ASSERT_TRUE(linear_baseline(seen));
  EXPECT_GT(linear_baseline(seen)->value, 0.9);
}

TEST(LinearBaseline, OfFewInputsIsUnknown) {
  Sound sound(60, 50);
  Observed seen = sound.observed();
  EXPECT_FALSE(linear_baseline(seen));
}

TEST(SimpleModels, NeighboursLearnParity) {
  Sound sound = Sound::table();
  sound.classes = sound.settings.classes = {"no", "yes"}, sound.settings.outputs = 2;
  for (int part : {0, 1})
    for (int64_t i = 0; i < sound.x[part].size(0); ++i)
      sound.y[part][i] = int64_t(sound.x[part][i][0].item<double>() * sound.x[part][i][1].item<double>() > 0);
  Observed seen = sound.observed();
  const SimpleModels* models = simple_models(seen);
  ASSERT_TRUE(models);
  EXPECT_GT(models->neighbours.value, 0.85);
  EXPECT_TRUE(models->by_neighbours);
  EXPECT_EQ(models->predicted.size(), models->judged.size());
}

/// The class is whether the first column is positive; where the second is, some labels are drawn by chance. The network
/// fails there, on inputs that nobody could predict or on others.
struct Hard {
  Sound sound = Sound::table();
  explicit Hard(bool by_nature) {
    sound.classes = sound.settings.classes = {"no", "yes"}, sound.settings.outputs = 2, sound.wrong.clear();
    Random random(4);
    for (int part : {0, 1})
      for (int64_t i = 0; i < sound.x[part].size(0); ++i) {
        const bool yes = sound.x[part][i][0].item<double>() > 0, there = sound.x[part][i][1].item<double>() > 0;
        const bool chance = there && random.uniform() < 0.4;
        sound.y[part][i] = int64_t(by_nature && chance ? !yes : yes);
        if (part == 0 && (chance || random.uniform() < 0.02)) sound.wrong.push_back(i);
      }
  }
  std::string said() {
    Observed seen = sound.observed();
    return as_hard_for_simple(seen, [&](size_t i) { return int(sound.x[0][int64_t(i)][1].item<double>() > 0); });
  }
};

TEST(SimpleModels, FailWhereInputsAreHardAndNotWhereTheNetworkIsDamaged) {
  EXPECT_NE(Hard(true).said().find("these inputs are harder for simple models"), std::string::npos);
  EXPECT_EQ(Hard(false).said(), "");
}

TEST(SimpleModels, ConfuseClassesThatAreAlike) {
  for (const bool alike : {true, false}) {
    Sound sound = Sound::table();
    Random random(6);
    sound.wrong.clear();
    for (int part : {0, 1})
      for (int64_t i = 0; i < sound.x[part].size(0); ++i) {
        const int64_t label = sound.y[part][i].item<int64_t>();
        sound.x[part][i][0] = alike && label == 1 ? 0.0 : 3.0 * double(label);
        if (part == 0 && label == 0 && random.uniform() < 0.5) sound.wrong.push_back(i);  // 0 predicted as 1
      }
    Observed seen = sound.observed();
    for (auto& row : seen.test->rows)
      if (row.label == 0 && row.right == observers::SampleRow::kWrong) row.predicted = 1;
    EXPECT_EQ(as_confused_by_simple(seen, 0, 1).empty(), !alike);
  }
}

}  // namespace
}  // namespace netmend::checks
