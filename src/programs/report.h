// The report of injected bugs: the paper's Tables IV, V and VI and Figures 1 to 6 for the user's program, its findings
// restated, and the bugs that nobody would notice.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "programs/analysis.h"

namespace netmend::programs {

nlohmann::ordered_json to_json(const InjectResult& result, const Analysis& analysis);
/// What the trace saw of processes that the program starts; "" where it starts none.
std::string children_words(const InjectResult& result);
/// As Markdown.
std::string report_text(const InjectResult& result, const Analysis& analysis);

/// Box plots by file name, as SVG: metric and time, of all, by operator and by phase, each with and without outliers.
std::vector<std::pair<std::string, std::string>> figures(const InjectResult& result, const Analysis& analysis);
/// One row per bug, as CSV.
void write_bugs(const std::string& path, const InjectResult& result, const Analysis& analysis);

}  // namespace netmend::programs
