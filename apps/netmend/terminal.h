// What is written to the terminal: one JSON document, lines for people, wrapped text. Needs no model and no tensors.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "netmend/commands.h"

namespace netmend::app {

using Json = nlohmann::ordered_json;

/// One JSON document on stdout.
void print_json(const Json& json);
/// A line for people on stderr, unless --quiet.
void say(const Common& common, const std::string& line);
/// `1 unit`, `1,204 units`
std::string counted(int64_t count, const std::string& what);

/// Columns of the terminal: COLUMNS, else its width, else 100.
size_t terminal_width();
bool use_colours();
/// Columns that a text takes; our own words hold only characters of one column.
size_t text_columns(const std::string& text);
/// Lines of at most the terminal's width behind a margin; the first line continues at `first` columns.
void print_wrapped(const std::string& text, size_t margin, size_t first = 0);

}  // namespace netmend::app
