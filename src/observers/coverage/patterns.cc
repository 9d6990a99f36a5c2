#include "observers/coverage/patterns.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace netmend::observers {
namespace {

void note(PatternSeen& seen, int64_t count, const std::array<int64_t, 3>& samples) {
  for (int64_t sample : samples) {
    auto free = std::find(seen.samples.begin(), seen.samples.end(), -1);
    if (sample >= 0 && free != seen.samples.end()) *free = sample;
  }
  seen.count += count;
}

}  // namespace

std::unique_ptr<Tally> PatternCriterion::fresh() const { return std::make_unique<PatternTally>(*this); }

Figure PatternCriterion::figure(const Tally& tally) const {
  Figure figure{name(), parameters()};
  figure.covered = double(dynamic_cast<const PatternTally&>(tally).seen.size());
  figure.total = total();
  figure.value = figure.total > 0 ? figure.covered / figure.total : figure.covered;
  return figure;
}

void PatternTally::add(const UnitBatch& batch) {
  for (int64_t row = 0; row < batch.count(); ++row) {
    std::string pattern = criterion_.pattern(batch, row);
    if (!pattern.empty()) note(seen[std::move(pattern)], 1, {batch.rows[size_t(row)].sample, -1, -1});
  }
}

void PatternTally::merge(const Tally& later) {
  for (const auto& [pattern, other] : dynamic_cast<const PatternTally&>(later).seen)
    note(seen[pattern], other.count, other.samples);
}

void PatternTally::save(std::ostream& out) const {
  std::vector<const std::pair<const std::string, PatternSeen>*> sorted;
  for (const auto& entry : seen) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return a->first < b->first; });
  stream::put(out, int64_t(sorted.size()));
  for (const auto* entry : sorted) {
    stream::put(out, entry->first);
    stream::put(out, entry->second.count);
    for (int64_t sample : entry->second.samples) stream::put(out, sample);
  }
}

void PatternTally::load(std::istream& in) {
  const int64_t count = stream::get_int(in);
  if (count < 0) fail("the state file is damaged");
  seen.clear();
  for (int64_t i = 0; i < count; ++i) {
    std::string pattern = stream::get_text(in);
    PatternSeen entry{stream::get_int(in)};
    for (int64_t& sample : entry.samples) sample = stream::get_int(in);
    if (entry.count < 1 || int64_t(pattern.size()) != criterion_.pattern_bytes() ||
        !seen.emplace(pattern, entry).second)
      fail("the state file is damaged");
  }
}

}  // namespace netmend::observers
