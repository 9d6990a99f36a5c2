// The machine's peak: independent chains of FMAs in registers. Compiled for several instruction sets; the best one
// runs.
#include "executor/peak.h"

#include <chrono>

namespace netmend::executor {
namespace {

constexpr int kLanes = 16, kChains = 12;
using Vector __attribute__((vector_size(kLanes * 4))) = float;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // not ready when the choice is made
#define NETMEND_PEAK_CLONES
#else
#define NETMEND_PEAK_CLONES __attribute__((target_clones("avx512f", "avx2,fma", "default")))
#endif

NETMEND_PEAK_CLONES float chains(long rounds, float seed) {
  Vector sums[kChains];
  Vector a = Vector{} + (0.999f + seed), b = Vector{} + (0.001f + seed);
  for (auto& sum : sums) sum = Vector{} + seed;
  for (long i = 0; i < rounds; ++i)
    for (auto& sum : sums) sum = sum * a + b;
  Vector total{};
  for (auto& sum : sums) total += sum;
  return total[0];
}

}  // namespace

double peak_flops(double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr long rounds = 2'000'000;
  volatile float sink = 0;
  double best = 0;
  auto end = Clock::now() + std::chrono::duration<double>(seconds);
  do {
    auto start = Clock::now();
    sink = chains(rounds, sink * 0);
    double spent = std::chrono::duration<double>(Clock::now() - start).count();
    best = best > 2.0 * kLanes * kChains * rounds / spent ? best : 2.0 * kLanes * kChains * rounds / spent;
  } while (Clock::now() < end);
  return best;
}

}  // namespace netmend::executor
