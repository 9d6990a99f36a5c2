// Results as people read them on a terminal.
#pragma once

#include "netmend/shared.h"
#include "observers/groups.h"
#include "observers/result.h"

namespace netmend::app {

/// The evaluation; `eval` and `lab merge` print the same.
void print_result(const observers::PredictionSettings& settings, const observers::PredictionResult& result,
                  double seconds);
void print_groups(const observers::PredictionSettings& settings, const std::vector<observers::GroupResult>& groups);
Json groups_json(const observers::PredictionSettings& settings, const std::vector<observers::GroupResult>& groups);

/// What the preflight looked at, in a line; the blocker with the set-ups that were tried, when there is one.
void print_preflight(const preflight::Preflight& preflight, const std::string& metric);

/// Columns of the terminal: COLUMNS, else its width, else 100.
size_t terminal_width();
bool use_colours();
/// Columns that a text takes; our own words hold only characters of one column.
size_t text_columns(const std::string& text);
/// Lines of at most the terminal's width behind a margin; the first line continues at `first` columns.
void print_wrapped(const std::string& text, size_t margin, size_t first = 0);

}  // namespace netmend::app
