// Surprise against slow twins written from the definitions, and what happens where there is nothing to compare with.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "observers/coverage/batches_for_test.h"
#include "observers/coverage/profile.h"
#include "observers/coverage/table.h"
#include "observers/surprise/dsa.h"
#include "observers/surprise/lsa.h"
#include "observers/surprise/mdsa.h"
#include "observers/surprise/surprise_coverage.h"
#include "observers/surprise/surprise_scores.h"

namespace netmend::observers {
namespace {

constexpr int64_t kUnits = 6, kClasses = 3;

UnitBatch traces(int64_t inputs, uint64_t seed, int64_t units = kUnits) {
  return random_values(*made_up_space({units}), inputs, seed, false, kClasses);
}

int64_t class_of(const UnitBatch& batch, int64_t row) { return int64_t(batch.rows[size_t(row)].predicted); }

at::Tensor rows_of_class(const UnitBatch& batch, int64_t c) {
  std::vector<at::Tensor> rows;
  for (int64_t row = 0; row < batch.count(); ++row)
    if (c < 0 || class_of(batch, row) == c)
      rows.push_back(at::tensor(at::ArrayRef<float>(batch.input(row), size_t(batch.units))).to(at::kDouble));
  return rows.empty() ? at::zeros({0, batch.units}, at::kDouble) : at::stack(rows);
}

double distance(const UnitBatch& a, int64_t i, const UnitBatch& b, int64_t j) {
  double sum = 0;
  for (int64_t u = 0; u < a.units; ++u) sum += std::pow(double(a.input(i)[u]) - double(b.input(j)[u]), 2);
  return std::sqrt(sum);
}

double distance_twin(const UnitBatch& training, const UnitBatch& tests, int64_t row, bool from_input) {
  int64_t nearest = -1;
  for (int64_t j = 0; j < training.count(); ++j)
    if (class_of(training, j) == class_of(tests, row) &&
        (nearest < 0 || distance(tests, row, training, j) < distance(tests, row, training, nearest)))
      nearest = j;
  double other = INFINITY;
  for (int64_t j = 0; j < training.count(); ++j)
    if (class_of(training, j) != class_of(tests, row))
      other =
          std::min(other, from_input ? distance(tests, row, training, j) : distance(training, nearest, training, j));
  return distance(tests, row, training, nearest) / other;
}

/// One kernel after the other, with the covariance inverted.
double likelihood_twin(const UnitBatch& training, const UnitBatch& tests, int64_t row) {
  at::Tensor points = rows_of_class(training, class_of(tests, row));
  const auto n = double(points.size(0)), d = double(points.size(1));
  at::Tensor centred = points - points.mean(0);
  at::Tensor covariance = at::mm(centred.t(), centred) / (n - 1) * std::pow(n, -2 / (d + 4));
  at::Tensor inverse = at::inverse(covariance);
  const double scale = 1 / std::sqrt(std::pow(2 * std::numbers::pi, d) * at::det(covariance).item<double>());
  at::Tensor x = at::tensor(at::ArrayRef<float>(tests.input(row), size_t(tests.units))).to(at::kDouble);
  double density = 0;
  for (int64_t j = 0; j < points.size(0); ++j) {
    at::Tensor apart = x - points[j];
    density += scale * std::exp(-0.5 * at::dot(apart, at::mv(inverse, apart)).item<double>()) / n;
  }
  return -std::log(density);
}

TEST(Lsa, EqualsASlowTwin) {
  UnitBatch training = traces(300, 1), tests = traces(60, 2);
  Lsa surprise(sort_by_class(training, kClasses, false));
  std::vector<double> scores = surprise.scores(sort_by_class(tests, kClasses, false), 1);
  for (int64_t row = 0; row < 60; ++row) EXPECT_NEAR(scores[size_t(row)], likelihood_twin(training, tests, row), 1e-8);
  EXPECT_EQ(surprise.regularised(), 0);
}

TEST(Dsa, EqualsASlowTwin) {
  for (int64_t units : {1, 6, 40}) {
    UnitBatch training = traces(700, 3, units), tests = traces(300, 4, units);
    // Near and equal traces far from the middle: where sums of squares lose most.
    for (int64_t row = 0; row < 50; ++row) {
      std::copy_n(training.input(row), units, tests.input(row));
      tests.rows[size_t(row)].predicted = training.rows[size_t(row)].predicted;
      if (row % 2) tests.input(row)[0] += 1e-3f;
    }
    ClassTraces known = sort_by_class(training, kClasses, false), asked = sort_by_class(tests, kClasses, false);
    for (Published published : {Published::kCorrected, Published::kNlc}) {
      std::vector<double> scores = Dsa(known, published).scores(asked, 2);
      for (int64_t row = 0; row < 300; ++row)
        EXPECT_NEAR(scores[size_t(row)], distance_twin(training, tests, row, published == Published::kNlc),
                    1e-12 * (1 + std::abs(scores[size_t(row)])))
            << row;
    }
    std::vector<double> one = Dsa(known).scores(asked, 1);
    EXPECT_EQ(one, Dsa(known).scores(asked, 5));
  }
}

TEST(Dsa, FindsTheNearestWhereRoundingHidesIt) {
  // A cloud that is tiny against its distance from the middle, which a second cloud opposite makes.
  UnitBatch training = traces(400, 5), tests = traces(50, 6);
  for (UnitBatch* batch : {&training, &tests})
    for (int64_t row = 0; row < batch->count(); ++row)
      for (int64_t u = 0; u < kUnits; ++u) {
        const bool far = batch->rows[size_t(row)].predicted == 0;
        batch->input(row)[u] = (far ? 1000.0f : -1000.0f) + batch->input(row)[u] * 1e-2f;
      }
  std::vector<double> scores =
      Dsa(sort_by_class(training, kClasses, false)).scores(sort_by_class(tests, kClasses, false));
  for (int64_t row = 0; row < 50; ++row) {
    const double twin = distance_twin(training, tests, row, false);
    EXPECT_NEAR(scores[size_t(row)], twin, 1e-12 * twin) << row;
  }
}

TEST(Mdsa, EqualsASlowTwin) {
  UnitBatch training = traces(300, 7), tests = traces(60, 8);
  ClassTraces known = sort_by_class(training, kClasses, false), asked = sort_by_class(tests, kClasses, false);
  for (Published published : {Published::kCorrected, Published::kDnnTip}) {
    const bool one = published == Published::kDnnTip;
    std::vector<double> scores = Mdsa(known, published).scores(asked);
    for (int64_t row = 0; row < 60; ++row) {
      at::Tensor points = rows_of_class(training, one ? -1 : class_of(tests, row));
      at::Tensor centred = points - points.mean(0);
      at::Tensor inverse = at::inverse(at::mm(centred.t(), centred) / double(points.size(0)));
      at::Tensor x = at::tensor(at::ArrayRef<float>(tests.input(row), kUnits)).to(at::kDouble) - points.mean(0);
      const double squared = at::dot(x, at::mv(inverse, x)).item<double>();
      EXPECT_NEAR(scores[size_t(row)], one ? squared : std::sqrt(squared), 1e-8 * (1 + squared));
    }
  }
}

TEST(Surprise, ClassesWithoutExamplesHaveNoScores) {
  UnitBatch training = traces(200, 9), tests = traces(80, 10);
  for (SampleRow& row : training.rows)
    if (row.predicted == 2) row.predicted = 1;
  ClassTraces known = sort_by_class(training, kClasses, false), asked = sort_by_class(tests, kClasses, false);
  for (const auto& scores : {Lsa(known).scores(asked), Dsa(known).scores(asked), Mdsa(known).scores(asked)})
    for (int64_t row = 0; row < 80; ++row)
      EXPECT_EQ(std::isfinite(scores[size_t(row)]), class_of(tests, row) != 2) << row;
}

TEST(Surprise, OneExampleOrOneClassIsNoDensity) {
  UnitBatch training = traces(3, 11), tests = traces(30, 12);
  for (size_t i = 0; i < 3; ++i) training.rows[i].predicted = double(i);
  ClassTraces known = sort_by_class(training, kClasses, false), asked = sort_by_class(tests, kClasses, false);
  Lsa likelihood(known);
  EXPECT_EQ(likelihood.without(), 3);
  for (double score : likelihood.scores(asked)) EXPECT_FALSE(std::isfinite(score));
  for (double score : Mdsa(known).scores(asked)) EXPECT_FALSE(std::isfinite(score));
  for (double score : Dsa(known).scores(asked)) EXPECT_TRUE(std::isfinite(score));
  ClassTraces single = sort_by_class(training, 1, false);
  for (double score : Dsa(single).scores(sort_by_class(tests, 1, false))) EXPECT_FALSE(std::isfinite(score));
  ClassTraces nothing = sort_by_class(traces(0, 1), kClasses, false);
  for (double score : Dsa(nothing).scores(asked)) EXPECT_FALSE(std::isfinite(score));
  EXPECT_EQ(Dsa(known).scores(nothing).size(), 0u);
}

TEST(Surprise, SingularCovariancesAreWidened) {
  UnitBatch training = traces(300, 13), tests = traces(40, 14);
  for (UnitBatch* batch : {&training, &tests})
    for (int64_t row = 0; row < batch->count(); ++row) batch->input(row)[5] = batch->input(row)[4];
  ClassTraces known = sort_by_class(training, kClasses, false), asked = sort_by_class(tests, kClasses, false);
  Lsa likelihood(known);
  Mdsa spread(known);
  EXPECT_EQ(likelihood.regularised(), 3);
  EXPECT_EQ(spread.regularised(), 3);
  for (double score : likelihood.scores(asked)) EXPECT_TRUE(std::isfinite(score));
  for (double score : spread.scores(asked)) EXPECT_TRUE(std::isfinite(score));
  // Fewer inputs than units.
  ClassTraces few = sort_by_class(traces(9, 15, 40), kClasses, false);
  for (double score : Lsa(few).scores(sort_by_class(traces(20, 16, 40), kClasses, false)))
    EXPECT_FALSE(std::isinf(score));
}

TEST(Surprise, UnitsThatHardlyVaryInAClassAreLeftOut) {
  UnitBatch training = traces(300, 17);
  for (int64_t row = 0; row < 300; ++row)
    if (class_of(training, row) == 1) training.input(row)[2] = 0.25f;
  Lsa some(sort_by_class(training, kClasses, false));
  EXPECT_EQ(some.units(), kUnits - 1);
  for (float& value : training.values) value = 1;
  ClassTraces constant = sort_by_class(training, kClasses, false);
  Lsa none(constant);
  EXPECT_EQ(none.units(), 0);
  for (double score : none.scores(constant)) EXPECT_FALSE(std::isfinite(score));
  for (double score : Mdsa(constant).scores(constant)) EXPECT_FALSE(std::isfinite(score));
  for (double score : Dsa(constant).scores(constant)) EXPECT_FALSE(std::isfinite(score));  // 0 of 0
}

TEST(Surprise, ValuesThatAreNotNumbersHaveNoScores) {
  UnitBatch training = traces(200, 18), tests = traces(20, 19);
  training.input(5)[1] = NAN, tests.input(7)[2] = INFINITY, tests.rows[8].predicted = NAN;
  ClassTraces known = sort_by_class(training, kClasses, false), asked = sort_by_class(tests, kClasses, false);
  EXPECT_EQ(known.rows.size(), 199u);
  for (const auto& scores : {Lsa(known).scores(asked), Dsa(known).scores(asked)})
    for (size_t row = 0; row < 20; ++row) EXPECT_EQ(std::isfinite(scores[row]), row != 7 && row != 8);
}

TEST(Surprise, EveryRowScoresEveryTestOrSaysWhyNot) {
  const UnitBatch training = traces(200, 20), tests = traces(30, 21);
  UnitBatch constant = training;
  for (float& value : constant.values) value = 1;
  const ClassTraces known = sort_by_class(training, kClasses, false), asked = sort_by_class(tests, kClasses, false),
                    same = sort_by_class(constant, kClasses, false);
  int measures = 0;
  for (const CriterionRow& row : criterion_rows()) {
    if (!row.score) continue;
    ++measures;
    SCOPED_TRACE(row.name);
    const SurpriseScores found = row.score({known, asked});
    EXPECT_EQ(found.skipped, "");
    EXPECT_EQ(found.name, row.also);
    EXPECT_LT(found.low, found.high);
    ASSERT_EQ(found.scores.size(), 30u);
    EXPECT_GT(SurpriseCoverage(found.name, found.low, found.high).figure(found.scores).covered, 0);
    const SurpriseScores nothing = row.score({same, asked});
    if (nothing.skipped.empty()) {
      EXPECT_EQ(nothing.scores.size(), 30u);
    } else {
      EXPECT_TRUE(nothing.scores.empty());
    }
  }
  EXPECT_EQ(measures, 3);
}

TEST(Lsa, TheLowestTrainingScoreIsNotedAndTakenFromThere) {
  const ClassTraces known = sort_by_class(traces(200, 20), kClasses, false),
                    asked = sort_by_class(traces(30, 21), kClasses, false);
  ProfileFacts facts;
  const SurpriseScores first = lsc_row().score({known, asked, Published::kCorrected, 0, &facts});
  EXPECT_EQ(facts.likelihood_low, first.low);
  facts.likelihood_low = -7;
  EXPECT_EQ(lsc_row().score({known, asked, Published::kCorrected, 0, &facts}).low, -7);
}

TEST(SurpriseCoverage, CountWhatIsInTheRange) {
  const std::vector<double> scores = {0, 0.1, 0.5, 1.9999, 2, 2.1, -1, NAN, 0.5};
  SurpriseCoverage buckets("DSC", 0, 2, 4);
  Figure figure = buckets.figure(scores);
  EXPECT_EQ(figure.covered, 3);  // 0 and 0.1; 0.5; 1.9999 and 2
  EXPECT_EQ(figure.total, 4);
  EXPECT_EQ(figure.notes.size(), 2u);
  EXPECT_EQ(buckets.figure({}).value, 0);
  EXPECT_EQ(SurpriseCoverage("LSC", 0, 2000, 1000, Published::kSadl).figure({5, 5.1, 3000, 4000}).covered, 2);
  EXPECT_EQ(SurpriseCoverage("LSC", 0, 2000, 1000, Published::kNlc).figure({1, 2.5, 3, 90000}).covered, 3);
  EXPECT_LT(SurpriseCoverage("LSC", 0, 2000, 1000, Published::kNlc).figure({1}).total, 0);
  EXPECT_EQ(SurpriseCoverage("LSC", 0, 0, 1000).figure({0, 1}).covered, 0);
  EXPECT_EQ(SurpriseCoverage("DSC", 0, 2, 4, Published::kSadl).figure({3, 3}).covered, 1);
}

TEST(SurpriseCoverage, NeverFallWhenInputsAreAdded) {
  Random random(4);
  std::vector<double> scores;
  double before = 0;
  for (int i = 0; i < 200; ++i) {
    scores.push_back(random.uniform(-0.5, 2.5));
    const double now = SurpriseCoverage("DSC", 0, 2, 50).figure(scores).covered;
    EXPECT_GE(now, before);
    before = now;
  }
}

}  // namespace
}  // namespace netmend::observers
