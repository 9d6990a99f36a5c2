// Particle swarm optimisation (Kennedy and Eberhart 1995) with the constriction of Clerc and Kennedy (2002), a round of
// points judged at once.
//
// As published by the first version of Arachne (arXiv:1912.12463; also in NeuRecover's toolkit) the swarm differs: both
// pulls are drawn up to 4.1 instead of 2.05, one number of each for all coordinates of a particle; the position moves
// by the velocity of the round before; every speed is kept within a fifth and five times the bounds' width, and a speed
// of 0 becomes that fifth downwards. Such a swarm cannot settle: 8.2 · χ is beyond what is stable, and only the limits
// hold it.
#pragma once

#include "search/differential_evolution.h"

namespace netmend::search {

struct SwarmOptions {
  int particles = 40, rounds = 100;
  int patience = 10;  ///< rounds without a better best
  bool as_published = false;
  uint64_t seed = 42;
  std::function<bool()> stop;  ///< asked after each round
};

/// `start` makes the first points as in evolve(); `origin` is one of them when it is not empty. Canonical particles
/// that leave their bounds are reflected into them; as published they are free to leave.
Evolved swarm(const std::vector<Bounds>& bounds, const Point& origin,
              const std::function<double(size_t coordinate, double normal)>& start, const Judge& judge,
              const SwarmOptions& options);

}  // namespace netmend::search
