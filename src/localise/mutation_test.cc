#include "localise/mutation.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "localise/blame.h"

namespace netmend::localise {
namespace {

/// Four failing and six passing inputs; mutants (f, p) = (2, 1) of unit 0 and (1, 0) of unit 1.
Draws two_mutants() {
  Draws draws;
  draws.failing = at::tensor({2.0, 1.0}, at::kDouble).view({1, 2});
  draws.passing = at::tensor({1.0, 0.0}, at::kDouble).view({1, 2});
  draws.failing_inputs = {4}, draws.passing_inputs = {6};
  return draws;
}

TEST(MutationLocalisation, MuseAndMetallaxisByHand) {
  const Draws draws = two_mutants();
  const at::Tensor muse = muse_scores(draws, {0, 1}, 3), ochiai = metallaxis_scores(draws, {0, 1}, 3);
  EXPECT_NEAR(muse[0][0].item<double>(), -0.25, 1e-12);  // α = 0.75 / (1/6) = 4.5
  EXPECT_NEAR(muse[0][1].item<double>(), 0.25, 1e-12);
  EXPECT_NEAR(ochiai[0][0].item<double>(), 0.57735, 1e-5);
  EXPECT_NEAR(ochiai[0][1].item<double>(), 0.5, 1e-12);
  EXPECT_EQ(ochiai[0][2].item<double>(), 0);
  // Of one unit: the mean of the terms, and the largest.
  EXPECT_NEAR(muse_scores(draws, {0, 0}, 1)[0][0].item<double>(), 0, 1e-12);
  EXPECT_NEAR(metallaxis_scores(draws, {0, 0}, 1)[0][0].item<double>(), 0.57735, 1e-5);
}

TEST(MutationLocalisation, MuseAsPublishedByHand) {
  // Of one layer: any mutant turns 3 of 4 failing and 1 of 6 passing inputs, so that α is 1/8.
  Draws draws;
  draws.failing = at::tensor({2.0, 1.0, 3.0}, at::kDouble).view({1, 3});
  draws.passing = at::tensor({1.0, 0.0, 1.0}, at::kDouble).view({1, 3});
  draws.failing_inputs = {4}, draws.passing_inputs = {6};
  const at::Tensor scores = published_muse_scores(draws, {0, 1}, {0, 0}, 2);
  EXPECT_NEAR(scores[0][0].item<double>(), 0.5 - 1.0 / 48, 1e-12);
  EXPECT_NEAR(scores[0][1].item<double>(), 0.25, 1e-12);
}

TEST(MutationLocalisation, WithoutABrokenPredictionTheFirstTermCounts) {
  Draws draws = two_mutants();
  draws.passing.zero_();
  EXPECT_NEAR(muse_scores(draws, {0, 1}, 2)[0][0].item<double>(), 0.5, 1e-12);
}

}  // namespace
}  // namespace netmend::localise
