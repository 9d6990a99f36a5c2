// Random numbers that depend on a seed and a position alone, not on the order in which threads ask for them.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>
#include <vector>

namespace netmend {

/// Splitmix64: the n-th number of a stream is a pure function of seed and n.
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0) : state_(hash(seed + 0x632be59bd9b4e019u * (stream + 1))) {}

  static uint64_t hash(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  uint64_t bits() { return hash(state_++ * 0xd1342543de82ef95u); }
  /// In [0, 1).
  double uniform() { return double(bits() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// In 0 … n−1.
  uint64_t below(uint64_t n) { return uint64_t((unsigned __int128)(bits()) * n >> 64); }
  double normal() {
    double radius = std::sqrt(-2 * std::log(1 - uniform())), angle = 2 * std::numbers::pi * uniform();
    return radius * std::cos(angle);
  }
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  uint64_t state_;
};

}  // namespace netmend
