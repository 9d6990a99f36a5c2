#include "preflight/assignment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace netmend::preflight {
namespace {

using Matrix = std::vector<std::vector<double>>;

double worth_of(const Matrix& worth, const std::vector<int64_t>& order) {
  double sum = 0;
  for (size_t i = 0; i < worth.size(); ++i) sum += worth[i][size_t(order[i])];
  return sum;
}

/// The best of all orders, by trying them.
double best_by_trying(const Matrix& worth) {
  std::vector<int64_t> order(worth.size());
  std::iota(order.begin(), order.end(), 0);
  double best = -INFINITY;
  do best = std::max(best, worth_of(worth, order));
  while (std::next_permutation(order.begin(), order.end()));
  return best;
}

void expect_permutation(const std::vector<int64_t>& order, size_t size) {
  std::vector<int64_t> sorted = order, all(size);
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all);
}

TEST(LargestAssignment, IsTheBestForNumbersOfAnySignAndSize) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 300; ++trial) {
    const size_t n = 1 + random() % 6;
    const double size = std::pow(10, double(random() % 7) - 3);
    Matrix worth(n, std::vector<double>(n));
    for (auto& row : worth)
      for (double& entry : row) entry = trial % 3 ? size * normal(random) : -double(random() % 3);  // with many ties
    const std::vector<int64_t> found = largest_assignment(worth);
    expect_permutation(found, n);
    EXPECT_NEAR(worth_of(worth, found), best_by_trying(worth), 1e-9 * size * double(n));
  }
}

TEST(LargestAssignment, DoesNotDependOnHowRowsAreOrdered) {
  std::mt19937 random(8);
  const size_t n = 60;
  Matrix worth(n, std::vector<double>(n));
  for (auto& row : worth)
    for (double& entry : row) entry = double(random() % 1000);
  const double best = worth_of(worth, largest_assignment(worth));
  for (int trial = 0; trial < 5; ++trial) {
    std::shuffle(worth.begin(), worth.end(), random);
    const std::vector<int64_t> found = largest_assignment(worth);
    expect_permutation(found, n);
    EXPECT_DOUBLE_EQ(worth_of(worth, found), best);
  }
  EXPECT_TRUE(largest_assignment({}).empty());
}

/// Predictions are the labels in another order, with some noise.
std::vector<observers::SampleRow> renumbered_rows(const std::vector<int64_t>& order, int count, double noise) {
  std::mt19937 random(9);
  std::vector<observers::SampleRow> rows(static_cast<size_t>(count));
  for (observers::SampleRow& row : rows) {
    row.label = double(random() % order.size());
    const bool off = double(random() % 1000) < 1000 * noise;
    row.predicted = double(off ? int64_t(random() % order.size()) : order[size_t(row.label)]);
  }
  return rows;
}

observers::PredictionSettings classes_of(size_t count) {
  observers::PredictionSettings settings;
  for (size_t c = 0; c < count; ++c) settings.classes.push_back(std::to_string(c));
  return settings;
}

TEST(BestAssignment, FindsTheOrderThatWasPlanted) {
  std::mt19937 random(10);
  for (const size_t n : {size_t(2), size_t(5), size_t(40)}) {
    std::vector<int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    EXPECT_EQ(best_assignment(classes_of(n), renumbered_rows(order, int(60 * n), 0.3)), order) << n;
  }
}

/// Few rows leave ties: of orders that do equally well, the one that moves the fewest classes.
TEST(BestAssignment, OfEqualOrdersTheOneThatMovesLess) {
  std::mt19937 random(12);
  for (int trial = 0; trial < 200; ++trial) {
    const size_t n = 2 + random() % 4;
    std::vector<observers::SampleRow> rows(1 + random() % 8);
    Matrix worth(n, std::vector<double>(n));
    for (size_t c = 0; c < n; ++c) worth[c][c] = 0.5;
    for (observers::SampleRow& row : rows) {
      row.label = double(random() % n), row.predicted = double(random() % n);
      ++worth[size_t(row.label)][size_t(row.predicted)];
    }
    const std::vector<int64_t> found = best_assignment(classes_of(n), rows);
    expect_permutation(found, n);
    EXPECT_EQ(worth_of(worth, found), best_by_trying(worth));
  }
}

TEST(BestAssignment, ClassesThatNothingIsKnownOfStayWhereTheyAre) {
  EXPECT_EQ(best_assignment(classes_of(3), {}), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(best_assignment(classes_of(1), {}), std::vector<int64_t>{0});
  std::vector<observers::SampleRow> rows(10);
  for (observers::SampleRow& row : rows) row.label = 0, row.predicted = 1;
  rows.resize(20);
  for (size_t i = 10; i < 20; ++i) rows[i].label = 1, rows[i].predicted = 0;
  EXPECT_EQ(best_assignment(classes_of(5), rows), (std::vector<int64_t>{1, 0, 2, 3, 4}));
  for (observers::SampleRow& row : rows) row.predicted = NAN;  // no prediction speaks for any order
  EXPECT_EQ(best_assignment(classes_of(3), rows), (std::vector<int64_t>{0, 1, 2}));
}

}  // namespace
}  // namespace netmend::preflight
