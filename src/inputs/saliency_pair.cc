#include "inputs/saliency_pair.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace netmend::inputs {
namespace {

struct Point {
  double a, b;  ///< alpha and −beta: the larger the better, both
  int64_t feature;
};

/// Takes the points that no other one beats in both respects out of `points`, which is sorted by falling a, then b.
std::vector<Point> take_front(std::vector<Point>& points) {
  std::vector<Point> front, rest;
  double highest = -INFINITY;
  for (const Point& point : points) {
    const bool beaten = point.b <= highest;
    (beaten ? rest : front).push_back(point);
    highest = std::max(highest, point.b);
  }
  points = std::move(rest);
  return front;
}

}  // namespace

/// The score of a pair grows with a and b of both. So in a best pair each of the two may be exchanged for any point
/// that beats it, except for the other one: some best pair consists of points that nobody beats but the other. These
/// lie on the first or the second front. There are few of them, and a bound on what a point can reach skips most of the
/// pairs.
std::pair<int64_t, int64_t> best_pair(std::span<const float> alpha, std::span<const float> beta,
                                      std::span<const uint8_t> free) {
  std::vector<Point> points;
  for (size_t i = 0; i < alpha.size(); ++i)
    if (free[i] && std::isfinite(alpha[i]) && std::isfinite(beta[i]))
      points.push_back({double(alpha[i]), -double(beta[i]), int64_t(i)});
  std::sort(points.begin(), points.end(), [](const Point& x, const Point& y) {
    return x.a != y.a ? x.a > y.a : x.b != y.b ? x.b > y.b : x.feature < y.feature;
  });
  std::vector<Point> some = take_front(points);
  for (const Point& point : take_front(points)) some.push_back(point);
  double most_a = -INFINITY, most_b = -INFINITY, best = 0;
  for (const Point& point : some) most_a = std::max(most_a, point.a), most_b = std::max(most_b, point.b);
  std::pair<int64_t, int64_t> pair{-1, -1};
  for (size_t p = 0; p < some.size(); ++p) {
    const double reach_a = some[p].a + most_a, reach_b = some[p].b + most_b;
    if (reach_a <= 0 || reach_b <= 0 || reach_a * reach_b <= best) continue;
    for (size_t q = p + 1; q < some.size(); ++q) {
      const double a = some[p].a + some[q].a, b = some[p].b + some[q].b;
      if (a > 0 && b > 0 && a * b > best) {
        best = a * b;
        pair = std::minmax(some[p].feature, some[q].feature);
      }
    }
  }
  return pair;
}

}  // namespace netmend::inputs
