#include "census/sequences.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "base/random.h"

namespace netmend::census {

std::array<uint32_t, kSketch> sketch_of(std::span<const int64_t> tokens) {
  std::array<uint32_t, kSketch> sketch;
  sketch.fill(UINT32_MAX);
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    const uint64_t run =
        Random::hash(uint64_t(tokens[i]) * 0x9e3779b97f4a7c15u ^ Random::hash(uint64_t(tokens[i + 1])));
    for (size_t k = 0; k < sketch.size(); k += 2) {
      const uint64_t both = Random::hash(run + k);
      sketch[k] = std::min(sketch[k], uint32_t(both)), sketch[k + 1] = std::min(sketch[k + 1], uint32_t(both >> 32));
    }
  }
  return sketch;
}

int64_t edit_distance(std::span<const int64_t> a, std::span<const int64_t> b, int64_t most) {
  const auto n = int64_t(a.size()), m = int64_t(b.size());
  if (std::abs(n - m) > most) return most + 1;
  std::vector<int64_t> row(size_t(m) + 1);
  std::iota(row.begin(), row.end(), int64_t(0));
  for (int64_t i = 1; i <= n; ++i) {
    int64_t diagonal = row[0], least = i;
    row[0] = i;
    for (int64_t j = 1; j <= m; ++j) {
      const int64_t replaced = diagonal + (a[size_t(i - 1)] != b[size_t(j - 1)]);
      diagonal = row[size_t(j)];
      row[size_t(j)] = std::min({replaced, row[size_t(j)] + 1, row[size_t(j - 1)] + 1});
      least = std::min(least, row[size_t(j)]);
    }
    if (least > most) return most + 1;
  }
  return std::min(row[size_t(m)], most + 1);
}

double alike_sequences(std::span<const int64_t> a, std::span<const int64_t> b) {
  const auto longer = int64_t(std::max(a.size(), b.size()));
  if (longer < kShortSequence) return std::equal(a.begin(), a.end(), b.begin(), b.end()) ? 1 : 0;
  const auto most = int64_t(std::floor(kMostEdits * double(longer)));
  const int64_t edits = edit_distance(a, b, most);
  return edits > most ? 0 : 1 - double(edits) / double(longer);
}

std::vector<std::vector<int64_t>> alike_sketches(std::span<const uint32_t> a, std::span<const uint32_t> b, bool below,
                                                 size_t most) {
  const size_t count = a.size() / kSketch, others = b.size() / kSketch;
  std::vector<std::vector<int64_t>> found(count);
  for (size_t k = 0; k < size_t(kSketch); k += 2) {
    auto key = [&](std::span<const uint32_t> of, size_t i) {
      return uint64_t(of[i * kSketch + k]) << 32 | of[i * kSketch + k + 1];
    };
    std::unordered_map<uint64_t, std::vector<int64_t>> there;
    for (size_t i = 0; i < others && !below; ++i)
      if (auto& list = there[key(b, i)]; list.size() < most) list.push_back(int64_t(i));
    for (size_t i = 0; i < count; ++i) {
      auto& list = there[key(a, i)];
      found[i].insert(found[i].end(), list.begin(), list.end());
      if (below && list.size() < most) list.push_back(int64_t(i));
    }
  }
  for (std::vector<int64_t>& list : found) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return found;
}

}  // namespace netmend::census
