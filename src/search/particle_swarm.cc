#include "search/particle_swarm.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"

namespace netmend::search {
namespace {

constexpr double kPull = 4.1;
const double kConstriction = 2 / (kPull - 2 + std::sqrt(kPull * kPull - 4 * kPull));

/// Into the bounds as a mirror would; the velocity turns with it.
void reflect(const Bounds& bounds, double& x, double& velocity) {
  const double width = bounds.high - bounds.low;
  if (x >= bounds.low && x <= bounds.high) return;
  if (!(width > 0)) {
    x = bounds.low, velocity = 0;
    return;
  }
  const double off = std::fmod(std::abs(x - bounds.low), 2 * width);
  x = bounds.low + (off > width ? 2 * width - off : off);
  velocity = -velocity;
}

/// The published limits of speed; 0 counts as negative.
double limited(const Bounds& bounds, double velocity) {
  const double width = bounds.high - bounds.low, least = width / 5, most = width * 5;
  return velocity > 0 ? std::clamp(velocity, least, most) : std::clamp(velocity, -most, -least);
}

struct Particle {
  Point at, velocity, best;
  double score = -INFINITY;  ///< of its best
};

}  // namespace

Evolved swarm(const std::vector<Bounds>& bounds, const Point& origin,
              const std::function<double(size_t, double)>& start, const Judge& judge, const SwarmOptions& options) {
  const size_t size = bounds.size(), count = size_t(std::max(2, options.particles));
  check(size > 0, "there is something to search");
  Random random(options.seed, 29);
  std::vector<Particle> particles(count);
  for (Particle& one : particles) {
    one.velocity.resize(size);
    for (size_t i = 0; i < size; ++i) {
      double x = start(i, random.normal()), none = 0;
      if (!options.as_published) reflect(bounds[i], x, none);
      one.at.push_back(x);
    }
  }
  if (!origin.empty()) particles[0].at = origin;
  Evolved out;
  out.score = -INFINITY;
  auto judge_all = [&] {
    std::vector<Point> points;
    for (const Particle& one : particles) points.push_back(one.at);
    const std::vector<double> scores = judge(points);
    for (size_t p = 0; p < count; ++p) {
      if (scores[p] > particles[p].score) particles[p].score = scores[p], particles[p].best = particles[p].at;
      if (scores[p] > out.score) out.score = scores[p], out.best = particles[p].at;
    }
  };
  auto renew = [&](Particle& one) {
    const double both[] = {random.uniform(0, kPull), random.uniform(0, kPull)};
    for (size_t i = 0; i < size; ++i) {
      const double own = options.as_published ? both[0] : random.uniform(0, kPull / 2),
                   all = options.as_published ? both[1] : random.uniform(0, kPull / 2);
      double& v = one.velocity[i];
      v = kConstriction * (v + own * (one.best[i] - one.at[i]) + all * (out.best[i] - one.at[i]));
      const double width = bounds[i].high - bounds[i].low;
      v = options.as_published ? limited(bounds[i], v) : std::clamp(v, -width, width);
    }
  };
  judge_all();
  int idle = 0;
  for (int round = 0; round < options.rounds; ++round) {
    const double before = out.score;
    for (Particle& one : particles) {
      if (!options.as_published) renew(one);
      for (size_t i = 0; i < size; ++i) {
        one.at[i] += one.velocity[i];
        if (!options.as_published) reflect(bounds[i], one.at[i], one.velocity[i]);
      }
      if (options.as_published) renew(one);
    }
    judge_all();
    out.generations = round + 1;
    idle = out.score > before ? 0 : idle + 1;
    if (idle > options.patience || (options.stop && options.stop())) break;
  }
  return out;
}

}  // namespace netmend::search
