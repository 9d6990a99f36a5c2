#include "search/differential_evolution.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"

namespace netmend::search {

Evolved evolve(const std::vector<Bounds>& bounds, const Point& origin,
               const std::function<double(size_t, double)>& start, const Judge& judge,
               const EvolutionOptions& options) {
  const size_t size = bounds.size(), count = size_t(std::max(4, options.population));
  check(size > 0, "there is something to search");
  Random random(options.seed, 23);
  auto within = [&](size_t i, double x) {
    if (options.clip) return std::clamp(x, bounds[i].low, bounds[i].high);
    return x >= bounds[i].low && x <= bounds[i].high ? x : random.uniform(bounds[i].low, bounds[i].high);
  };
  std::vector<Point> population(count, Point(size));
  for (size_t p = 0; p < count; ++p)
    for (size_t i = 0; i < size; ++i) population[p][i] = within(i, start(i, random.normal()));
  if (!origin.empty()) population[0] = origin;
  std::vector<double> scores = judge(population);
  auto best = [&] { return size_t(std::max_element(scores.begin(), scores.end()) - scores.begin()); };
  double top = scores[best()];
  Evolved out;
  int idle = 0;
  for (int generation = 0; generation < options.generations; ++generation) {
    const double weight = random.uniform(options.weight_low, options.weight_high);
    std::vector<Point> trials = population;
    for (size_t p = 0; p < count; ++p) {
      size_t a, b, c;
      do a = random.below(count);
      while (a == p);
      do b = random.below(count);
      while (b == p || b == a);
      do c = random.below(count);
      while (c == p || c == a || c == b);
      const size_t forced = random.below(size);
      for (size_t i = 0; i < size; ++i)
        if (i == forced || random.uniform() < options.crossover)
          trials[p][i] = within(i, population[a][i] + weight * (population[b][i] - population[c][i]));
    }
    std::vector<double> found = judge(trials);
    for (size_t p = 0; p < count; ++p)
      if (found[p] >= scores[p]) population[p] = std::move(trials[p]), scores[p] = found[p];
    out.generations = generation + 1;
    const double now = scores[best()];
    idle = now > top ? 0 : idle + 1;
    top = std::max(top, now);
    if (idle > std::max(options.patience, options.generations / 10) || (options.stop && options.stop())) break;
  }
  out.best = population[best()], out.score = top;
  return out;
}

}  // namespace netmend::search
