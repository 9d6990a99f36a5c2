// Labels of the data at the limits of their checks, and against plain counts.
#include <gtest/gtest.h>

#include <cmath>

#include "checks/data_for_test.h"

namespace netmend::checks {
namespace {

using findings::Finding;
using findings::Level;

/// Two classes; of the training data so many are of the second.
Sound two_classes(int64_t rare, int64_t all) {
  Sound sound(900, all);
  sound.classes = sound.settings.classes = {"no", "yes"}, sound.settings.outputs = 2;
  for (int64_t i = 0; i < 900; ++i) sound.y[0][i] = i * 7 % 2;
  for (int64_t i = 0; i < all; ++i) sound.y[1][i] = 0;
  for (int64_t i = 0; i < rare; ++i) sound.y[1][i * 7919 % all] = 1;
  return sound;
}

TEST(ClassLimits, TenToOneIsStillBalancedEnough) {
  EXPECT_FALSE(raises(two_classes(100, 1100).check(), "imbalance"));
  const Finding finding = raised(two_classes(99, 1100).check(), "imbalance:train");
  EXPECT_EQ(finding.numbers["smallest"], 99);
  EXPECT_EQ(finding.numbers["largest"], 1001);
  EXPECT_NEAR(finding.value, 1001.0 / 99, 1e-9);
}

TEST(ClassLimits, TwentyNineTestsOfAClassAreFew) {
  for (const auto& [count, few] : std::vector<std::pair<int64_t, bool>>{{29, true}, {30, false}}) {
    Sound sound(3000, 3000);  // so many that the metric is known well
    sound.wrong.clear();
    for (int part : {0, 1})
      for (int64_t i = 0; i < 3000; ++i) sound.y[part][i] = i * 101 % 3000 < count ? 2 : i % 2;
    const Results found = sound.check();
    EXPECT_EQ(raises(found, "few-tests"), few) << said(found.findings);
    if (few) {
      EXPECT_NE(raised(found, "few-tests").evidence.find("owl"), std::string::npos);
    }
  }
}

TEST(ClassLimits, AClassThatIsNowhereIsNotMissedAndOneLeftOutByASampleIsNotAbsent) {
  Sound sound;
  sound.classes.push_back("unicorn"), sound.settings.classes = sound.classes;
  EXPECT_FALSE(raises(sound.check(), "absent-class")) << "it is in neither split";
  for (int64_t i = 0; i < 900; ++i) sound.y[0][i] = i % 2;  // no owl among the tests
  EXPECT_TRUE(raises(sound.check(), "absent-class:owl"));
  Observed seen = sound.observed();
  seen.test->whole = 10 * seen.test->data->size();
  Results sampled;
  run_rows(seen, sampled, {"absent-classes"});
  EXPECT_FALSE(raises(sampled, "absent-class:owl"));
}

TEST(ClassLimits, OfManyAbsentClassesThreeAreToldAndTheOthersCounted) {
  Sound sound;
  for (int i = 0; i < 5; ++i) sound.classes.push_back("extra" + std::to_string(i));
  sound.settings.classes = sound.classes;
  for (int64_t i = 0; i < 5; ++i) sound.y[1][i] = 3 + i;  // training data has them, the tests do not
  const Results found = sound.check();
  EXPECT_EQ(std::count_if(found.findings.begin(), found.findings.end(),
                          [](const Finding& one) { return one.kind == "absent-class"; }),
            3);
  EXPECT_TRUE(std::any_of(found.findings.begin(), found.findings.end(), [](const Finding& one) {
    return one.kind == "absent-class" && one.evidence.find("In all, 5 classes have no inputs") != std::string::npos;
  }));
}

/// Half of the sum of differences of shares, class by class.
double slow_distance(const Sound& sound) {
  double sum = 0;
  for (int64_t c = 0; c < 3; ++c) {
    double share[2];
    for (int part : {0, 1}) {
      int64_t count = 0;
      for (int64_t i = 0; i < sound.y[part].size(0); ++i) count += sound.y[part][i].item<int64_t>() == c;
      share[part] = double(count) / double(sound.y[part].size(0));
    }
    sum += std::abs(share[0] - share[1]);
  }
  return sum / 2;
}

TEST(ClassTwins, AShiftOfSharesIsTheirDistance) {
  for (const int64_t more : {20, 90, 250}) {
    Sound sound(3000, 3000);
    for (int part : {0, 1})
      for (int64_t i = 0; i < 3000; ++i) sound.y[part][i] = i % 3;
    for (int64_t i = 0; i < more; ++i) sound.y[0][3 * i + 1] = 0;
    const double distance = slow_distance(sound);
    const Results found = sound.check();
    EXPECT_EQ(raises(found, "class-shift"), distance >= 0.05) << distance;
    if (distance >= 0.05) {
      EXPECT_NEAR(raised(found, "class-shift:train-test").value, distance, 1e-12);
    }
  }
}

TEST(ClassTwins, RunsOfTrainingLabelsAreCountedOneByOne) {
  Sound sound;
  for (int64_t i = 0; i < 1500; ++i) sound.y[1][i] = i / 100 % 3;
  int64_t runs = 1;
  for (int64_t i = 1; i < 1500; ++i) runs += sound.y[1][i].item<int64_t>() != sound.y[1][i - 1].item<int64_t>();
  const Finding finding = raised(sound.check(), "sorted-data:train");
  EXPECT_NE(finding.brief.find(std::to_string(runs) + " runs of equal labels"), std::string::npos) << finding.brief;
  for (int64_t i = 0; i < 1500; ++i) sound.y[1][i] = i * 7919 % 1500 % 3;
  EXPECT_FALSE(raises(sound.check(), "sorted-data"));
}

TEST(ClassLimits, OneClassAloneIsNeitherUnevenNorSorted) {
  Sound sound;
  sound.classes = sound.settings.classes = {"cat"}, sound.settings.outputs = 1;
  for (int part : {0, 1}) sound.y[part].zero_();
  sound.wrong.clear();
  const Results found = sound.check(true);
  EXPECT_TRUE(found.findings.empty()) << said(found.findings);
}

TEST(ClassLimits, LabelsThatAreNoClassesSayWhatWouldBeNeeded) {
  Sound sound;
  Observed seen = sound.observed();
  auto numbers = std::make_shared<dataset::MemoryDataset>(sound.feature, sound.x[0], at::rand({900}));
  seen.train.reset();
  seen.test->rows.clear(), seen.test->data = numbers;
  seen.test->census_observer = std::make_unique<census::Census>(*numbers);
  seen.test->census = census::take(*numbers, *seen.test->census_observer, 1);
  Results found;
  run_rows(seen, found, {"imbalance", "absent-classes", "conflicting-labels", "test-size", "label-leak"});
  EXPECT_TRUE(found.findings.empty()) << said(found.findings);
  ASSERT_EQ(found.skipped.size(), 1u);
  EXPECT_EQ(found.skipped[0].enable, "labels that are classes");
}

}  // namespace
}  // namespace netmend::checks
