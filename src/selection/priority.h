// Which inputs to label first, from predictions alone: the most uncertain ones.
//
// DeepGini: Feng et al., DeepGini: Prioritizing Massive Tests to Enhance the Robustness of Deep Neural Networks, ISSTA
// 2020. MCP: Shen et al., Multiple-Boundary Clustering and Prioritization to Promote Neural Network Retraining, ASE
// 2020; a re-implementation picks its remainder by replacing the smallest ratio kept, which can lose equal ones: here
// it is a stable sort. APFD: Rothermel et al., Prioritizing Test Cases for Regression Testing, TSE 2001.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "observers/top_predictions.h"

namespace netmend::selection {

/// A method that gives each input a score, the largest first.
struct Score {
  std::string_view name, words;
  double (*of)(const observers::TopRow&);
};
std::span<const Score> scores();

/// All rows, most useful first, as positions in `rows`; of equal scores the earlier input first. Rows whose predictions
/// are NaN come first: something is wrong with them. `budget` matters for mcp alone, which spreads so many over the
/// borders between classes. Throws InputError for a method that is not in the table.
std::vector<size_t> prioritise(std::span<const observers::TopRow> rows, const std::string& method, int64_t budget);

/// MCP alone: rows sorted into cells by their two likeliest classes; the best of every cell in turn.
std::vector<size_t> spread_over_borders(std::span<const observers::TopRow> rows, int64_t budget);

/// How early an order brings the inputs that fail: 1 − Σ positions / (failing × all) + 1 / (2 × all); empty when none
/// fails or there is nothing.
std::optional<double> apfd(std::span<const size_t> order, const std::vector<bool>& fails);

}  // namespace netmend::selection
