// Differential evolution (Storn and Price 1997, DE/rand/1/bin) whose candidates are judged a generation at a time:
// judging many at once is where what-if is fast.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace netmend::search {

using Point = std::vector<double>;
/// A score for each point; larger is better.
using Judge = std::function<std::vector<double>(std::span<const Point> points)>;

struct Bounds {
  double low = 0, high = 0;
};

struct EvolutionOptions {
  int population = 100, generations = 100;
  double weight_low = 0.5, weight_high = 1;  ///< F, drawn anew each generation
  double crossover = 0.7;                    ///< CR; one coordinate always crosses
  int patience = 10;  ///< generations without a better best, or a tenth of all where that is more
  bool clip = false;  ///< values that leave their bounds are put on them, as Arachne's program does, not drawn again
  uint64_t seed = 42;
  std::function<bool()> stop;  ///< asked after each generation
};

struct Evolved {
  Point best;
  double score = 0;
  int generations = 0;
};

/// `start` makes the first population (it is asked for each number of each point); `origin` is one of its points when
/// it is not empty. Values that leave their bounds are drawn again within them, or clipped.
Evolved evolve(const std::vector<Bounds>& bounds, const Point& origin,
               const std::function<double(size_t coordinate, double normal)>& start, const Judge& judge,
               const EvolutionOptions& options);

}  // namespace netmend::search
