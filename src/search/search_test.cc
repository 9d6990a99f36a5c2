#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "search/particle_swarm.h"

namespace netmend::search {
namespace {

double bowl(const Point& x) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum -= (x[i] - double(i)) * (x[i] - double(i));
  return sum;
}

Judge by(double (*one)(const Point&), int64_t* asked = nullptr) {
  return [=](std::span<const Point> points) {
    std::vector<double> scores;
    for (const Point& point : points) scores.push_back(one(point));
    if (asked) *asked += int64_t(points.size());
    return scores;
  };
}

TEST(Evolution, FindsTheTopOfASmoothHill) {
  std::vector<Bounds> bounds(5, {-10, 10});
  auto start = [](size_t, double normal) { return 3 * normal; };
  Evolved found = evolve(bounds, {}, start, by(bowl), {.population = 40, .generations = 300, .patience = 50});
  for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(found.best[i], double(i), 0.05);
  EXPECT_NEAR(found.score, bowl(found.best), 1e-12);
}

TEST(Evolution, FindsOneHillAmongMany) {
  auto bumps = [](const Point& x) {
    double sum = 0;
    for (double v : x) sum -= v * v - 10 * std::cos(6.283185307179586 * v) + 10;
    return sum;
  };
  Evolved found = evolve({{-5, 5}, {-5, 5}}, {}, [](size_t, double n) { return 2 * n; }, by(bumps),
                         {.population = 60, .generations = 200});
  EXPECT_GT(found.score, -1e-3);
}

TEST(Evolution, NeverLosesWhereItBegan) {
  std::vector<Bounds> bounds(3, {-1, 5});
  Evolved found =
      evolve(bounds, {0, 1, 2}, [](size_t, double n) { return n; }, by(bowl), {.population = 8, .generations = 2});
  EXPECT_EQ(found.score, 0);
  EXPECT_EQ(found.best, (Point{0, 1, 2}));
}

/// The sphere in ten dimensions: known figures of both forms.
std::vector<double> spheres(bool as_published, int seeds) {
  std::vector<double> found;
  for (int seed = 1; seed <= seeds; ++seed) {
    auto sphere = [](std::span<const Point> points) {
      std::vector<double> scores;
      for (const Point& x : points) {
        double sum = 0;
        for (double v : x) sum -= v * v;
        scores.push_back(sum);
      }
      return scores;
    };
    Random random(uint64_t(seed), 5);
    auto start = [&](size_t, double) { return random.uniform(-5, 5); };
    found.push_back(
        -swarm(std::vector<Bounds>(10, {-5, 5}), {}, start, sphere,
               {.particles = 40, .rounds = 300, .patience = 300, .as_published = as_published, .seed = uint64_t(seed)})
             .score);
  }
  std::sort(found.begin(), found.end());
  return found;
}

TEST(Swarm, CanonicalSettlesAndAsPublishedDoesNot) {
  const std::vector<double> canonical = spheres(false, 20), published = spheres(true, 6);
  EXPECT_LT(canonical[10], 1e-13);  // 2e-15 in the reference
  EXPECT_LT(canonical.back(), 1e-11);
  EXPECT_GT(published.front(), 1);  // 20 to 39 there
  EXPECT_LT(published.back(), 100);
}

TEST(Swarm, NeverLosesWhereItBeganStaysInItsBoundsAndRepeats) {
  const std::vector<Bounds> bounds(3, {-1, 5});
  auto start = [](size_t, double normal) { return 10 * normal; };
  Judge judge = [&](std::span<const Point> points) {
    for (const Point& point : points)
      for (double x : point) EXPECT_TRUE(x >= -1 && x <= 5) << x;
    return by(bowl)(points);
  };
  const Evolved found = swarm(bounds, {0, 1, 2}, start, judge, {.particles = 8, .rounds = 20});
  EXPECT_EQ(found.score, 0);
  EXPECT_EQ(found.best, (Point{0, 1, 2}));
  EXPECT_EQ(swarm(bounds, {}, start, judge, {.rounds = 9}).best, swarm(bounds, {}, start, judge, {.rounds = 9}).best);
  int64_t asked = 0;
  auto flat = [](const Point&) { return 1.0; };
  swarm({{0, 1}}, {}, start, by(flat, &asked), {.particles = 10, .rounds = 100, .patience = 10});
  EXPECT_EQ(asked, 10 * (1 + 11));
}

TEST(Evolution, StaysWithinBoundsAndRepeats) {
  std::vector<Bounds> bounds = {{-1, 1}, {0, 0.5}};
  auto judge = [&](std::span<const Point> points) {
    for (const Point& point : points)
      for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(point[i] >= bounds[i].low && point[i] <= bounds[i].high);
    return by(bowl)(points);
  };
  auto start = [](size_t, double n) { return 10 * n; };
  EXPECT_EQ(evolve(bounds, {}, start, judge, {.generations = 20}).best,
            evolve(bounds, {}, start, judge, {.generations = 20}).best);
}

TEST(Evolution, StopsWhenNothingGetsBetterOrTimeIsUp) {
  int64_t asked = 0;
  auto flat = [](const Point&) { return 1.0; };
  evolve({{0, 1}}, {}, [](size_t, double n) { return n; }, by(flat, &asked), {.population = 10, .generations = 100});
  EXPECT_EQ(asked, 10 * (1 + 11));
  asked = 0;
  evolve({{0, 1}}, {}, [](size_t, double n) { return n; }, by(flat, &asked),
         {.population = 10, .stop = [] { return true; }});
  EXPECT_EQ(asked, 20);
}

}  // namespace
}  // namespace netmend::search
