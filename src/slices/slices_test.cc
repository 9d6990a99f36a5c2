#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "slices/failing.h"
#include "slices/groups.h"
#include "slices/rules.h"
#include "stats/distributions.h"

namespace netmend::slices {
namespace {

struct Made {
  std::vector<Column> columns;
  std::vector<double> failing;
  std::vector<uint8_t> half;
};

/// Numbers and words without meaning; `weak` says how often each row fails.
template <typename Weak>
Made made(size_t rows, uint64_t seed, Weak weak) {
  Random random(seed);
  Made out;
  for (int c = 0; c < 3; ++c) out.columns.push_back({fmt::format("n{}", c), {}, {}, {}, false});
  out.columns.push_back({"sex", {}, {}, {"F", "M"}, true});
  out.columns.push_back({"place", {}, {}, {"a", "b", "c", "d"}, true});
  for (size_t i = 0; i < rows; ++i) {
    for (int c = 0; c < 3; ++c) out.columns[size_t(c)].numbers.push_back(float(random.uniform() * 100));
    out.columns[3].codes.push_back(int32_t(random.below(2)));
    out.columns[4].codes.push_back(int32_t(random.below(4)));
    out.half.push_back(uint8_t(random.below(2)));
    out.failing.push_back(random.uniform() < weak(out.columns, i));
  }
  return out;
}

/// All rules, one after the other, by their definition: the clearest on half 0.
std::string slow_best(const Made& data, int64_t least, double apart) {
  std::vector<size_t> rows;
  for (size_t i = 0; i < data.failing.size(); ++i)
    if (data.half[i] == 0) rows.push_back(i);
  std::vector<Term> terms = make_terms(data.columns, rows, least);
  auto sums = [&](const Rule& rule, const Rule* but) {
    std::pair<stats::Moments, stats::Moments> out;
    for (size_t row : rows) {
      if (but && !but->holds(data.columns, row)) continue;
      (rule.holds(data.columns, row) ? out.first : out.second).add(data.failing[row]);
    }
    return out;
  };
  stats::Moments all;
  for (size_t row : rows) all.add(data.failing[row]);
  const double variance = all.variance();
  auto z_of = [&](const std::pair<stats::Moments, stats::Moments>& s) {
    return (s.first.mean() - s.second.mean()) /
           std::sqrt(variance * (1 / double(s.first.count()) + 1 / double(s.second.count())));
  };
  double one = 0, two = 0;
  Rule best_one, best_two;
  for (size_t i = 0; i < terms.size(); ++i)
    for (size_t j = i; j < terms.size(); ++j) {
      Rule rule{{terms[i]}};
      if (j != i) rule.terms.push_back(terms[j]);
      auto split = sums(rule, nullptr);
      if (split.first.count() < double(least) || split.second.count() < double(least) ||
          split.first.count() > 0.6 * double(rows.size()) || split.first.mean() - split.second.mean() < apart)
        continue;
      const double z = z_of(split);
      if (j == i) {
        if (z > one) one = z, best_one = rule;
        continue;
      }
      bool refines = true;
      for (size_t t : {i, j}) {
        Rule single{{terms[t]}};
        auto inside = sums(rule, &single);
        refines = refines && inside.second.count() >= 1 && z_of(inside) >= 2.5;
      }
      if (refines && z > two) two = z, best_two = rule;
    }
  const Rule& best = two > one + 1 ? best_two : best_one;
  return std::max(one, two) < 3 ? "" : rule_words(data.columns, best);
}

TEST(Rules, TheSearchAgreesWithTryingEveryRule) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    Made data = made(1200, seed, [&](const std::vector<Column>& c, size_t i) {
      if (seed % 3 == 0) return c[3].codes[i] == 0 && c[0].numbers[i] < 30 ? 0.5 : 0.08;
      if (seed % 3 == 1) return c[4].codes[i] == 2 ? 0.4 : 0.1;
      return c[1].numbers[i] >= 70 && c[2].numbers[i] >= 50 ? 0.6 : 0.05;
    });
    Search how;
    how.most = 1;
    Weakness found = find_weak(data.columns, data.failing, data.half, {}, how);
    ASSERT_EQ(found.slices.size(), 1u);
    EXPECT_EQ(found.slices[0].words, slow_best(data, 25, how.apart));
  }
}

TEST(Rules, FiguresAreThoseOfTheOtherHalf) {
  Made data = made(4000, 3, [](const std::vector<Column>& c, size_t i) { return c[3].codes[i] == 0 ? 0.3 : 0.05; });
  Weakness found = find_weak(data.columns, data.failing, data.half, {});
  ASSERT_GE(found.slices.size(), 1u);
  const Slice& slice = found.slices[0];
  EXPECT_EQ(slice.name, "sex=F");
  EXPECT_EQ(slice.words, "sex = F");
  stats::Moments here, rest;
  for (size_t i = 0; i < data.failing.size(); ++i)
    if (data.half[i]) (data.columns[3].codes[i] == 0 ? here : rest).add(data.failing[i]);
  EXPECT_NEAR(slice.here.value, here.mean(), 1e-12);
  EXPECT_NEAR(slice.rest.value, rest.mean(), 1e-12);
  EXPECT_NEAR(slice.gain, (here.mean() - rest.mean()) * double(here.count()) / double(here.count() + rest.count()),
              1e-12);
  EXPECT_EQ(slice.judged_on, here.count());
}

TEST(Rules, WhatIsSaidIsNotSaidAgainInOtherWords) {
  int64_t more = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Made data =
        made(3000, 300 + seed, [](const std::vector<Column>& c, size_t i) { return c[4].codes[i] == 1 ? 0.3 : 0.05; });
    Weakness found = find_weak(data.columns, data.failing, data.half, {});
    ASSERT_GE(found.slices.size(), 1u);
    EXPECT_EQ(found.slices[0].name, "place=b");
    more += int64_t(found.slices.size()) - 1;
  }
  EXPECT_LE(more, 3);
}

TEST(Rules, NoiseIsNoWeakness) {
  int64_t reported = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Made data = made(2000, 100 + seed, [](const std::vector<Column>&, size_t) { return 0.1; });
    reported += int64_t(find_weak(data.columns, data.failing, data.half, {}).slices.size());
  }
  EXPECT_LE(reported, 2);
}

TEST(Rules, NamesHaveNoNumbersAndCrossedRulesBothTerms) {
  Made data = made(6000, 8, [](const std::vector<Column>& c, size_t i) {
    return c[3].codes[i] == 1 && c[0].numbers[i] < 20 ? 0.5 : 0.05;
  });
  Weakness found = find_weak(data.columns, data.failing, data.half, {});
  ASSERT_GE(found.slices.size(), 1u);
  EXPECT_EQ(found.slices[0].name, "n0=low,sex=M");
}

TEST(Rules, MeanErrorsWork) {
  Made data = made(3000, 12, [](const std::vector<Column>&, size_t) { return 0; });
  Random random(1);
  for (size_t i = 0; i < data.failing.size(); ++i)
    data.failing[i] = std::abs(random.normal()) * (data.columns[4].codes[i] == 3 ? 0.6 : 0.2);
  Weakness found = find_weak(data.columns, data.failing, data.half, {});
  ASSERT_EQ(found.slices.size(), 1u);
  EXPECT_EQ(found.slices[0].name, "place=d");
}

TEST(Rules, WhatTheNetworkKnowsIsForeseen) {
  for (bool knows : {true, false}) {
    Random random(2);
    Made data = made(6000, 9, [](const std::vector<Column>& c, size_t i) { return c[3].codes[i] == 0 ? 0.4 : 0.1; });
    std::vector<float> confidence;
    for (size_t i = 0; i < data.failing.size(); ++i)
      confidence.push_back(float((knows && data.columns[3].codes[i] == 0 ? 0.6 : 0.9) + 0.01 * random.normal()));
    Weakness found =
        find_weak(data.columns, data.failing, data.half, expected_errors(confidence, {}, data.failing, data.half));
    ASSERT_EQ(found.slices.size(), 1u);
    if (knows)
      EXPECT_GT(found.slices[0].explained_by_confidence, 0.85);
    else
      EXPECT_LT(found.slices[0].explained_by_confidence, 0.2);
  }
}

TEST(Rules, AHardClassIsForeseenWhereverItOccurs) {
  Random random(5);
  Made data = made(6000, 21, [](const std::vector<Column>&, size_t) { return 0; });
  std::vector<double> classes;
  std::vector<float> confidence(6000, 0.9f);
  for (size_t i = 0; i < 6000; ++i) {
    classes.push_back(
        double(random.uniform() < (data.columns[3].codes[i] == 0 ? 0.8 : 0.2)));  // sex goes with the class
    data.failing[i] = random.uniform() < (classes[i] == 1 ? 0.4 : 0.05);
  }
  auto explained_by_confidence = [&](std::span<const double> by) {
    return find_weak(data.columns, data.failing, data.half, expected_errors(confidence, by, data.failing, data.half))
        .slices.at(0)
        .explained_by_confidence;
  };
  EXPECT_GT(explained_by_confidence(classes), 0.85);
  EXPECT_LT(explained_by_confidence({}), 0.1);
}

TEST(Groups, RatesAgreeWithCounting) {
  observers::PredictionSettings settings;
  settings.task = observers::Task::kBinary, settings.classes = {"no", "yes"}, settings.metric = "accuracy";
  Random random(6);
  std::vector<Column> columns{{"sex", {}, {}, {"F", "M"}, true}, {"race", {}, {}, {"x", "y"}, true}};
  std::vector<observers::SampleRow> rows;
  for (int i = 0; i < 3000; ++i) {
    const bool female = random.below(2) == 0, truth = random.below(3) == 0;
    columns[0].codes.push_back(female ? 0 : 1), columns[1].codes.push_back(random.below(40) ? 0 : 1);
    const bool yes = truth ? random.uniform() < (female ? 0.5 : 0.8) : random.uniform() < 0.1;
    rows.push_back({i, double(truth), double(yes), 0.9f, 0.1f, int64_t(yes == truth)});
  }
  std::vector<double> failing = failing_of(settings, rows);
  std::vector<Group> groups = compare_groups(columns, rows, failing, settings);
  bool seen = false, small = false;
  for (const Group& group : groups) {
    small = small || group.too_small;
    if (group.name() != "sex=F") continue;
    seen = true;
    int64_t positives = 0, found = 0;
    for (size_t i = 0; i < rows.size(); ++i)
      if (columns[0].codes[i] == 0 && rows[i].label == 1) ++positives, found += rows[i].predicted == 1;
    EXPECT_EQ(group.true_positive->count, positives);
    EXPECT_NEAR(group.true_positive->here.value, double(found) / double(positives), 1e-12);
    EXPECT_LT(group.true_positive->p, 1e-6);
    EXPECT_LT(group.true_positive->apart.high, 0);
    EXPECT_GT(group.false_positive->p, 0.01);
  }
  EXPECT_TRUE(seen);
  EXPECT_TRUE(small);  // of the rare race, crossed with a sex
  EXPECT_EQ(groups.size(), 8u);
}

TEST(Failing, MetricOfAPartIsTheMetric) {
  observers::PredictionSettings settings;
  settings.task = observers::Task::kClasses, settings.classes = {"a", "b", "c"}, settings.outputs = 3;
  settings.metric = "balanced_accuracy";
  std::vector<observers::SampleRow> rows{
      {0, 0, 0, 1, 0, 1}, {1, 0, 1, 1, 1, 0}, {2, 1, 1, 1, 0, 1}, {3, 2, 0, 1, 1, 0}};
  EXPECT_NEAR(metric_of(settings, rows).estimate.value, (0.5 + 1 + 0) / 3, 1e-12);
  EXPECT_NEAR(metric_of(settings, rows, [](size_t i) { return i != 3; }).estimate.value, 0.75, 1e-12);
  settings.metric = "accuracy";
  EXPECT_NEAR(metric_of(settings, rows).estimate.value, 0.5, 1e-12);
}

TEST(LargerByChance, IsExactForFewErrors) {
  auto counts = [](int64_t hits, int64_t all) {
    stats::Moments out;
    for (int64_t i = 0; i < all; ++i) out.add(i < hits);
    return out;
  };
  // 7 of 82 where 1.2 % are expected.
  const double p = larger_by_chance(counts(7, 82), counts(60, 5000));
  EXPECT_GT(p, 2e-5);
  EXPECT_LT(p, 2e-4);
  EXPECT_DOUBLE_EQ(p, stats::fisher_tail(7, 82, 67, 5082));
  EXPECT_EQ(larger_by_chance(counts(0, 10), counts(5, 10)), 1);
  EXPECT_EQ(larger_by_chance(counts(0, 0), counts(5, 10)), 1);
  // Numbers that are neither 0 nor 1 are compared by their means.
  stats::Moments low, high;
  for (int i = 0; i < 50; ++i) low.add(0.3 + 0.01 * (i % 7)), high.add(0.4 + 0.01 * (i % 5));
  EXPECT_LT(larger_by_chance(high, low), 1e-6);
}

}  // namespace
}  // namespace netmend::slices
