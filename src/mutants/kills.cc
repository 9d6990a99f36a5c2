#include "mutants/kills.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <queue>

#include "base/error.h"
#include "base/text.h"
#include "stats/moments.h"

namespace netmend::mutants {

Kill find_kill(const std::string& name) {
  const std::string asked = lower(name);
  if (asked == "class") return Kill::kClass;
  if (asked == "strict") return Kill::kStrict;
  if (asked == "statistical") return Kill::kStatistical;
  throw InputError(fmt::format("--kill {}: there is no such criterion", printable(name)),
                   "Choose class (DeepMutation: a correct prediction of a class becomes wrong), strict (any prediction "
                   "changes) or statistical (DeepCrime: accuracy falls over several trainings, see --original).");
}

KillTable::KillTable(Kill kill, size_t mutants, std::vector<int32_t> classes, int64_t class_count)
    : kill_(kill),
      mutants_(mutants),
      words_((mutants + 63) / 64),
      classes_(std::move(classes)),
      class_count_(std::max<int64_t>(1, class_count)),
      bits_(words_ * classes_.size()) {}

Killed killed(const KillTable& table, const std::vector<int64_t>& tests) {
  Killed out;
  out.goals.resize(table.mutants()), out.inputs.resize(table.mutants());
  out.by_class.resize(size_t(table.goals()));
  std::vector<uint64_t> met(table.words() * size_t(table.goals()));
  auto visit = [&](int64_t input) {
    const auto bits = table.killed_by(input);
    uint64_t* own = met.data() + size_t(table.goal(input)) * table.words();
    for (size_t w = 0; w < bits.size(); ++w) {
      own[w] |= bits[w];
      for (uint64_t left = bits[w]; left; left &= left - 1) ++out.inputs[w * 64 + size_t(std::countr_zero(left))];
    }
  };
  if (tests.empty())
    for (int64_t i = 0; i < table.inputs(); ++i) visit(i);
  for (int64_t i : tests) visit(i);
  for (int64_t g = 0; g < table.goals(); ++g)
    for (size_t w = 0; w < table.words(); ++w)
      for (uint64_t left = met[size_t(g) * table.words() + w]; left; left &= left - 1)
        ++out.goals[w * 64 + size_t(std::countr_zero(left))], ++out.by_class[size_t(g)];
  return out;
}

stats::Estimate score(const KillTable& table, const Killed& killed, const std::vector<size_t>& mutants) {
  if (table.goals() == 1) {
    int64_t hits = 0;
    for (size_t m : mutants) hits += killed.goals[m] > 0;
    return stats::rate(hits, int64_t(mutants.size()));
  }
  stats::Moments moments;
  for (size_t m : mutants) moments.add(double(killed.goals[m]) / double(table.goals()));
  stats::Estimate out = moments.mean_estimate();
  out.low = std::max(out.low, 0.0), out.high = std::min(out.high, 1.0);
  return out;
}

std::vector<LoneKiller> lone_killers(const KillTable& table) {
  const size_t words = table.words();
  std::vector<uint64_t> once(words * size_t(table.goals())), twice(once.size());
  for (int64_t i = 0; i < table.inputs(); ++i) {
    const auto bits = table.killed_by(i);
    const size_t first = size_t(table.goal(i)) * words;
    for (size_t w = 0; w < words; ++w) twice[first + w] |= once[first + w] & bits[w], once[first + w] |= bits[w];
  }
  std::vector<LoneKiller> list;
  for (int64_t i = 0; i < table.inputs(); ++i) {
    const auto bits = table.killed_by(i);
    const size_t first = size_t(table.goal(i)) * words;
    int64_t alone = 0;
    for (size_t w = 0; w < words; ++w) alone += std::popcount(bits[w] & ~twice[first + w]);
    if (alone > 0) list.push_back({i, alone});
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const LoneKiller& a, const LoneKiller& b) { return a.alone > b.alone; });
  return list;
}

namespace {

/// From the first chosen on: a test all of whose goals others meet too is left out.
std::vector<int64_t> without_needless(const KillTable& table, std::vector<int64_t> chosen) {
  const size_t words = table.words(), each = words * 64;
  std::vector<int32_t> met(each * size_t(table.goals()));
  auto visit = [&](int64_t input, const auto& goal) {
    const auto bits = table.killed_by(input);
    int32_t* own = met.data() + size_t(table.goal(input)) * each;
    for (size_t w = 0; w < words; ++w)
      for (uint64_t left = bits[w]; left; left &= left - 1) goal(own[w * 64 + size_t(std::countr_zero(left))]);
  };
  for (int64_t input : chosen) visit(input, [](int32_t& count) { ++count; });
  std::erase_if(chosen, [&](int64_t input) {
    bool needed = false;
    visit(input, [&](int32_t& count) { needed = needed || count == 1; });
    if (!needed) visit(input, [](int32_t& count) { --count; });
    return !needed;
  });
  return chosen;
}

}  // namespace

std::vector<int64_t> few_tests(const KillTable& table) {
  const size_t words = table.words();
  std::vector<uint64_t> left(words * size_t(table.goals()), ~uint64_t(0));
  auto gain = [&](int64_t input) {
    const auto bits = table.killed_by(input);
    const uint64_t* open = left.data() + size_t(table.goal(input)) * words;
    int64_t sum = 0;
    for (size_t w = 0; w < words; ++w) sum += std::popcount(bits[w] & open[w]);
    return sum;
  };
  // Gains only fall: one that is still the largest after it was counted anew is the largest of all.
  std::priority_queue<std::pair<int64_t, int64_t>> queue;  // gain, −input: of equal ones the first
  for (int64_t i = 0; i < table.inputs(); ++i)
    if (const int64_t own = gain(i); own > 0) queue.emplace(own, -i);
  std::vector<int64_t> chosen;
  while (!queue.empty()) {
    const int64_t input = -queue.top().second;
    queue.pop();
    const int64_t own = gain(input);
    if (own == 0) continue;
    if (!queue.empty() && std::pair(own, -input) < queue.top()) {
      queue.emplace(own, -input);
      continue;
    }
    chosen.push_back(input);
    const auto bits = table.killed_by(input);
    for (size_t w = 0; w < words; ++w) left[size_t(table.goal(input)) * words + w] &= ~bits[w];
  }
  return without_needless(table, std::move(chosen));
}

int64_t fewest_tests(const KillTable& table) {
  const size_t words = table.words(), each = words * 64;
  std::vector<int64_t> tests(each * size_t(table.goals()));  // that meet a goal
  for (int64_t i = 0; i < table.inputs(); ++i) {
    const auto bits = table.killed_by(i);
    for (size_t w = 0; w < words; ++w)
      for (uint64_t left = bits[w]; left; left &= left - 1)
        ++tests[size_t(table.goal(i)) * each + w * 64 + size_t(std::countr_zero(left))];
  }
  std::vector<size_t> order;
  for (size_t g = 0; g < tests.size(); ++g)
    if (tests[g] > 0) order.push_back(g);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return tests[a] < tests[b]; });
  std::vector<uint64_t> shared(words * size_t(table.goals()));  // goals that have a test in common with a taken one
  int64_t taken = 0;
  for (size_t g : order) {
    const size_t goal = g / each, mutant = g % each;
    if (shared[goal * words + mutant / 64] >> mutant % 64 & 1) continue;
    ++taken;
    for (int64_t i = 0; i < table.inputs(); ++i) {
      if (size_t(table.goal(i)) != goal || !table.get(mutant, i)) continue;
      const auto bits = table.killed_by(i);
      for (size_t w = 0; w < words; ++w) shared[goal * words + w] |= bits[w];
    }
  }
  return taken;
}

}  // namespace netmend::mutants
