#include "census/duplicates.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace netmend::census {

std::vector<std::vector<int64_t>> equal_groups(std::span<const uint64_t> hashes) {
  std::unordered_map<uint64_t, int64_t> first;
  std::unordered_map<int64_t, size_t> group_of;
  std::vector<std::vector<int64_t>> groups;
  for (size_t i = 0; i < hashes.size(); ++i) {
    auto [known, added] = first.emplace(hashes[i], int64_t(i));
    if (added) continue;
    auto [group, fresh] = group_of.emplace(known->second, groups.size());
    if (fresh) groups.push_back({known->second});
    groups[group->second].push_back(int64_t(i));
  }
  std::sort(groups.begin(), groups.end());
  return groups;
}

std::vector<DuplicatePair> exact_duplicates(std::span<const uint64_t> hashes, std::span<const uint64_t> others) {
  std::unordered_map<uint64_t, int64_t> first;
  for (size_t i = 0; i < others.size(); ++i) first.emplace(others[i], int64_t(i));
  std::vector<DuplicatePair> found;
  for (size_t i = 0; i < hashes.size(); ++i)
    if (auto hit = first.find(hashes[i]); hit != first.end()) found.push_back({int64_t(i), hit->second, 1});
  return found;
}

std::vector<Conflict> conflicts(std::span<const uint64_t> hashes, std::span<const float> labels) {
  std::vector<Conflict> found;
  for (std::vector<int64_t>& group : equal_groups(hashes)) {
    std::map<float, int64_t> counts;
    int64_t most = 0, labelled = 0;
    for (int64_t sample : group)
      if (float label = labels[size_t(sample)]; !std::isnan(label)) most = std::max(most, ++counts[label]), ++labelled;
    if (counts.size() > 1) found.push_back({std::move(group), labelled - most});
  }
  return found;
}

}  // namespace netmend::census
