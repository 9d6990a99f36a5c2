#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "base/error.h"
#include "selection/core_set.h"
#include "selection/label_issues.h"
#include "selection/priority.h"

namespace netmend::selection {
namespace {

using observers::TopRow;

struct Drawn {
  std::vector<std::vector<double>> probabilities;
  std::vector<TopRow> rows;
};

/// Random predictions: mostly confident ones, some not, labels mostly as predicted.
Drawn draw(int64_t inputs, int64_t classes, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Drawn drawn;
  for (int64_t i = 0; i < inputs; ++i) {
    std::vector<double> p(static_cast<size_t>(classes));
    double sum = 0;
    auto truth = size_t(random() % size_t(classes));
    for (double& x : p) sum += x = std::exp(2 * normal(random));
    double boost = std::exp(3 + 3 * normal(random));
    sum += boost, p[truth] += boost;
    for (double& x : p) x /= sum;
    std::vector<int32_t> order(p.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return p[size_t(a)] > p[size_t(b)]; });
    TopRow row;
    row.sample = 10 + i;
    row.label = random() % 5 ? order[0] : int32_t(random() % size_t(classes));
    row.given = float(p[size_t(row.label)]);
    row.classes.fill(-1);
    for (size_t k = 0; k < std::min<size_t>(5, p.size()); ++k)
      row.classes[k] = order[k], row.probabilities[k] = float(p[size_t(order[k])]);
    double squares = 0;
    for (double x : p) squares += x * x, row.entropy -= float(x * std::log(x));
    row.gini = float(1 - squares);
    drawn.rows.push_back(row);
    drawn.probabilities.push_back(p);
  }
  return drawn;
}

TEST(LabelIssues, EqualASlowTwin) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const int64_t classes = 2 + seed % 4;
    Drawn drawn = draw(300, classes, seed);
    std::vector<double> mean(static_cast<size_t>(classes), 0);
    for (int64_t c = 0; c < classes; ++c) {
      double sum = 0, count = 0;
      for (size_t i = 0; i < drawn.rows.size(); ++i)
        if (drawn.rows[i].label == c) sum += float(drawn.probabilities[i][size_t(c)]), ++count;
      mean[size_t(c)] = sum / count;
    }
    std::vector<double> shares;
    for (size_t i = 0; i < drawn.rows.size(); ++i) {
      auto sorted = drawn.probabilities[i];
      std::sort(sorted.rbegin(), sorted.rend());
      if (drawn.probabilities[i][size_t(drawn.rows[i].label)] == sorted[0])
        shares.push_back(double(float(sorted[1])) / float(sorted[0]));
    }
    std::sort(shares.begin(), shares.end());
    const double ruled_out = shares[size_t(kClearest * double(shares.size() - 1))];
    std::map<int64_t, LabelIssue> expected;
    for (size_t i = 0; i < drawn.rows.size(); ++i) {
      const auto& p = drawn.probabilities[i];
      int32_t label = drawn.rows[i].label, likely = -1;
      double other = 0;
      for (int32_t c = 0; c < classes; ++c) {
        if (float(p[size_t(c)]) >= mean[size_t(c)] && (likely < 0 || p[size_t(c)] > p[size_t(likely)])) likely = c;
        if (c != label) other = std::max(other, p[size_t(c)]);
      }
      if (likely < 0 || likely == label || float(p[size_t(label)]) > ruled_out * float(p[size_t(likely)])) continue;
      expected[drawn.rows[i].sample] = {drawn.rows[i].sample, label, likely, p[size_t(likely)],
                                        p[size_t(label)] - other};
    }
    std::vector<LabelIssue> found = label_issues(drawn.rows, classes);
    ASSERT_EQ(found.size(), expected.size()) << seed;
    double before = -2;
    for (const LabelIssue& issue : found) {
      const LabelIssue& twin = expected.at(issue.sample);
      EXPECT_EQ(issue.given, twin.given);
      EXPECT_EQ(issue.suggested, twin.suggested);
      EXPECT_NEAR(issue.confidence, twin.confidence, 1e-6);
      EXPECT_NEAR(issue.margin, twin.margin, 1e-6);
      EXPECT_GE(issue.margin, before);
      before = issue.margin;
    }
  }
}

/// The logits of a network of the same accuracy but higher or lower confidence are the same times a factor.
TEST(LabelIssues, HowSureANetworkIsDoesNotMatterMuch) {
  std::vector<size_t> counts;
  for (double factor : {0.3, 1.0, 3.0}) {
    Drawn drawn = draw(2000, 5, 77);
    for (size_t i = 0; i < drawn.rows.size(); ++i) {
      TopRow& row = drawn.rows[i];
      double sum = 0;
      for (double p : drawn.probabilities[i]) sum += std::pow(p, factor);
      auto turn = [&](float p) { return float(std::pow(double(p), factor) / sum); };
      row.given = turn(row.given);
      for (float& p : row.probabilities) p = turn(p);
    }
    counts.push_back(label_issues(drawn.rows, 5).size());
  }
  EXPECT_GT(counts[1], 50u);
  for (size_t count : counts) EXPECT_NEAR(double(count), double(counts[1]), 0.35 * double(counts[1]));
}

TEST(LabelIssues, NothingToJudgeIsNoIssue) {
  EXPECT_TRUE(label_issues({}, 3).empty());
  TopRow without, broken;
  without.classes[0] = 1, without.probabilities[0] = 1;
  broken.label = 0, broken.classes.fill(-1);
  std::vector<TopRow> rows{without, broken};
  EXPECT_TRUE(label_issues(rows, 3).empty());
  EXPECT_LT(ruled_out_share(rows), 0);
  EXPECT_EQ(class_thresholds(rows, 3), (std::vector<double>{2, 2, 2}));
}

TEST(Priority, OrdersByScoreAndIsAPermutation) {
  Drawn drawn = draw(200, 6, 5);
  drawn.rows[40].classes.fill(-1);
  auto key = [&](const std::string& method, size_t i) -> double {
    const auto& p = drawn.probabilities[i];
    auto sorted = p;
    std::sort(sorted.rbegin(), sorted.rend());
    double squares = 0, entropy = 0;
    for (double x : p) squares += x * x, entropy -= x * std::log(x);
    return method == "gini"      ? 1 - squares
           : method == "entropy" ? entropy
           : method == "max-p"   ? 1 - sorted[0]
                                 : sorted[1] - sorted[0];
  };
  for (const char* method : {"gini", "margin", "entropy", "max-p", "mcp"}) {
    std::vector<size_t> order = prioritise(drawn.rows, method, 50);
    ASSERT_EQ(std::set<size_t>(order.begin(), order.end()).size(), drawn.rows.size()) << method;
    EXPECT_EQ(order[0], 40u) << method;
    if (std::string(method) == "mcp") continue;
    for (size_t i = 2; i < order.size(); ++i)
      EXPECT_GE(key(method, order[i - 1]) + 1e-6, key(method, order[i])) << method << " " << i;
  }
  EXPECT_THROW(prioritise(drawn.rows, "ginny", 5), InputError);
}

TEST(Priority, BordersBetweenClassesAreServedInTurn) {
  Drawn drawn = draw(400, 4, 9);
  std::set<std::pair<int32_t, int32_t>> cells;
  for (const TopRow& row : drawn.rows) cells.insert({row.classes[0], row.classes[1]});
  const int64_t budget = int64_t(cells.size()) * 2 + 3;
  std::vector<size_t> order = spread_over_borders(drawn.rows, budget);
  std::map<std::pair<int32_t, int32_t>, int> taken;
  auto ratio = [&](size_t i) { return drawn.rows[i].probabilities[1] / drawn.rows[i].probabilities[0]; };
  for (int64_t i = 0; i < budget; ++i) {
    const TopRow& row = drawn.rows[order[size_t(i)]];
    ++taken[{row.classes[0], row.classes[1]}];
  }
  for (const auto& cell : cells) {
    int64_t members = 0;
    for (const TopRow& row : drawn.rows) members += std::pair(row.classes[0], row.classes[1]) == cell;
    EXPECT_GE(taken[cell], std::min<int64_t>(2, members));
    EXPECT_LE(taken[cell], 3);
    // Nothing of a cell is left behind that is nearer to its border than what was taken.
    double least = 2, best_left = 0;
    for (int64_t i = 0; i < int64_t(order.size()); ++i) {
      const TopRow& row = drawn.rows[order[size_t(i)]];
      if (std::pair(row.classes[0], row.classes[1]) != cell) continue;
      (i < budget ? least : best_left) = i < budget ? std::min<double>(least, ratio(order[size_t(i)]))
                                                    : std::max<double>(best_left, ratio(order[size_t(i)]));
    }
    EXPECT_GE(least, best_left);
  }
}

TEST(Priority, EarlierFailuresGiveALargerShare) {
  std::vector<bool> fails{false, true, false, true};
  std::vector<size_t> best{1, 3, 0, 2}, worst{0, 2, 1, 3};
  EXPECT_DOUBLE_EQ(*apfd(best, fails), 1 - 3.0 / 8 + 1.0 / 8);
  EXPECT_DOUBLE_EQ(*apfd(worst, fails), 1 - 7.0 / 8 + 1.0 / 8);
  EXPECT_FALSE(apfd(best, std::vector<bool>(4, false)));
  // The mean over all orders is a half.
  std::vector<size_t> order{0, 1, 2, 3};
  double sum = 0, count = 0;
  do sum += *apfd(order, fails), ++count;
  while (std::next_permutation(order.begin(), order.end()));
  EXPECT_NEAR(sum / count, 0.5, 1e-12);
}

/// Distances between all, every time.
std::vector<size_t> slow_core_set(const at::Tensor& pool, at::Tensor centres, int64_t count) {
  std::vector<size_t> chosen;
  if (!centres.defined()) {
    chosen.push_back(size_t((pool - pool.mean(0)).square().sum(1).argmin().item<int64_t>()));
    centres = pool[int64_t(chosen[0])].unsqueeze(0);
  }
  while (int64_t(chosen.size()) < count) {
    at::Tensor far = std::get<0>(at::cdist(pool, centres).min(1));
    for (size_t taken : chosen) far[int64_t(taken)] = -1;
    chosen.push_back(size_t(far.argmax().item<int64_t>()));
    centres = at::cat({centres, pool[int64_t(chosen.back())].unsqueeze(0)});
  }
  return chosen;
}

TEST(CoreSet, EqualsASlowTwin) {
  at::manual_seed(3);
  for (int trial = 0; trial < 5; ++trial) {
    at::Tensor pool = at::randn({300, 7}), known = at::randn({40, 7}) * 0.5;
    EXPECT_EQ(core_set(pool, known, 25), slow_core_set(pool.to(at::kDouble), known.to(at::kDouble), 25));
    EXPECT_EQ(core_set(pool, {}, 25), slow_core_set(pool.to(at::kDouble), {}, 25));
  }
}

TEST(CoreSet, LeavesOutWhatIsNoNumberAndStopsWhenAllAreChosen) {
  at::Tensor pool = at::randn({10, 3});
  pool[4][1] = NAN;
  std::vector<size_t> chosen = core_set(pool, {}, 100);
  EXPECT_EQ(chosen.size(), 9u);
  EXPECT_EQ(std::count(chosen.begin(), chosen.end(), 4u), 0);
  EXPECT_TRUE(core_set(pool, {}, 0).empty());
  EXPECT_TRUE(core_set(at::full({2, 3}, NAN), {}, 2).empty());
}

}  // namespace
}  // namespace netmend::selection
