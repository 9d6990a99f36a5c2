#include "adequacy/reduce.h"

#include <algorithm>
#include <queue>

namespace netmend::adequacy {
namespace {

struct Offer {
  int64_t adds, input;
  bool operator<(const Offer& other) const { return adds != other.adds ? adds < other.adds : input > other.input; }
};

}  // namespace

std::vector<Kept> reduce(const InputGoals& goals) {
  std::vector<uint32_t> reached(goals.count);
  auto each_goal = [&](int64_t input, auto&& visit) {
    for (size_t at = goals.starts[size_t(input)]; at < goals.starts[size_t(input) + 1]; ++at) visit(goals.goals[at]);
  };
  auto adds = [&](int64_t input) {
    int64_t count = 0;
    each_goal(input, [&](uint32_t goal) { count += reached[goal] == 0; });
    return count;
  };
  // What an input adds can only fall, so an offer that still stands when it comes up is the best.
  std::priority_queue<Offer> offers;
  for (int64_t input = 0; input < goals.inputs(); ++input) offers.push({adds(input), input});
  std::vector<int64_t> chosen;
  while (!offers.empty()) {
    Offer best = offers.top();
    offers.pop();
    const int64_t now = adds(best.input);
    if (now == 0) continue;
    if (now < best.adds) {
      offers.push({now, best.input});
      continue;
    }
    chosen.push_back(best.input);
    each_goal(best.input, [&](uint32_t goal) { ++reached[goal]; });
  }
  std::vector<bool> spared(chosen.size());
  for (size_t i = chosen.size(); i-- > 0;) {
    bool needed = false;
    each_goal(chosen[i], [&](uint32_t goal) { needed = needed || reached[goal] == 1; });
    spared[i] = !needed;
    if (!needed) each_goal(chosen[i], [&](uint32_t goal) { --reached[goal]; });
  }
  std::vector<Kept> kept;
  std::fill(reached.begin(), reached.end(), 0);
  for (size_t i = 0; i < chosen.size(); ++i) {
    if (spared[i]) continue;
    kept.push_back({chosen[i], adds(chosen[i])});
    each_goal(chosen[i], [&](uint32_t goal) { ++reached[goal]; });
  }
  return kept;
}

}  // namespace netmend::adequacy
