#include "selection/priority.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/text.h"

namespace netmend::selection {
namespace {

using observers::TopRow;

constexpr Score kScores[] = {
    {"gini", "Gini impurity of the probabilities", [](const TopRow& row) -> double { return row.gini; }},
    {"margin", "smallest margin between the two most likely classes",
     [](const TopRow& row) -> double { return -row.margin(); }},
    {"entropy", "entropy of the probabilities", [](const TopRow& row) -> double { return row.entropy; }},
    {"max-p", "lowest confidence", [](const TopRow& row) -> double { return 1 - row.probabilities[0]; }},
};

bool is_finite(const TopRow& row) { return row.classes[0] >= 0; }

double ratio(const TopRow& row) {
  return row.probabilities[0] > 0 ? double(row.probabilities[1]) / row.probabilities[0] : 0;
}

}  // namespace

std::span<const Score> scores() { return kScores; }

std::vector<size_t> spread_over_borders(std::span<const TopRow> rows, int64_t budget) {
  std::map<std::pair<int32_t, int32_t>, std::vector<size_t>> sorted;
  std::vector<size_t> order;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (is_finite(rows[i]))
      sorted[{rows[i].classes[0], rows[i].classes[1]}].push_back(i);
    else
      order.push_back(i);
  }
  auto nearer = [&](size_t a, size_t b) { return ratio(rows[a]) > ratio(rows[b]); };
  std::vector<std::vector<size_t>> cells;
  for (auto& [pair, members] : sorted) {
    std::stable_sort(members.begin(), members.end(), nearer);
    cells.push_back(std::move(members));
  }
  // Whole rounds, the best of every cell in turn, while the budget lasts for one.
  size_t taken = 0;
  std::vector<size_t> round;
  auto fill = [&] {
    round.clear();
    for (const auto& cell : cells)
      if (taken < cell.size()) round.push_back(cell[taken]);
    std::stable_sort(round.begin(), round.end(), nearer);
  };
  for (fill(); !round.empty() && int64_t(order.size() + round.size()) <= budget; fill()) {
    order.insert(order.end(), round.begin(), round.end());
    ++taken;
  }
  // What is left of the budget, and then everything else, by how near it is to a border.
  order.insert(order.end(), round.begin(), round.end());
  std::vector<size_t> rest;
  for (const auto& cell : cells)
    if (taken + 1 < cell.size()) rest.insert(rest.end(), cell.begin() + std::ptrdiff_t(taken) + 1, cell.end());
  std::sort(rest.begin(), rest.end());
  std::stable_sort(rest.begin(), rest.end(), nearer);
  order.insert(order.end(), rest.begin(), rest.end());
  return order;
}

std::vector<size_t> prioritise(std::span<const TopRow> rows, const std::string& method, int64_t budget) {
  if (method == "mcp") return spread_over_borders(rows, budget);
  std::vector<std::string> names{"mcp"};
  for (const Score& score : kScores) {
    names.emplace_back(score.name);
    if (score.name != method) continue;
    std::vector<size_t> order(rows.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      if (is_finite(rows[a]) != is_finite(rows[b])) return !is_finite(rows[a]);
      return is_finite(rows[a]) && score.of(rows[a]) > score.of(rows[b]);
    });
    return order;
  }
  fail("there is no method `{}`{}", method, did_you_mean(method, names));
}

std::optional<double> apfd(std::span<const size_t> order, const std::vector<bool>& fails) {
  double positions = 0, failing = 0;
  const double count = double(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    if (fails[order[i]]) positions += double(i + 1), ++failing;
  if (failing == 0) return std::nullopt;
  return 1 - positions / (failing * count) + 1 / (2 * count);
}

}  // namespace netmend::selection
