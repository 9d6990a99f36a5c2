// What is written to the terminal: one JSON document, lines for people, wrapped text. Needs no model and no tensors.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netmend/commands.h"

namespace netmend::app {

using Json = nlohmann::ordered_json;

/// Text for people, the only way it gets to the terminal: control characters and what is no UTF-8 come from names in
/// files, and a terminal would act on them. Line ends and tabs stay.
void print_text(std::FILE* out, std::string_view text);
template <typename... Args>
void print(std::FILE* out, fmt::format_string<Args...> format, Args&&... args) {
  print_text(out, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  print_text(stdout, fmt::format(format, std::forward<Args>(args)...));
}

/// Says in a document that Ctrl-C (130) ended the work early.
void mark_partial(Json& json, int status);
/// One JSON document on stdout.
void print_json(const Json& json);
/// A line for people on stderr, unless --quiet.
void say(const Common& common, const std::string& line);
/// A line on stderr; one that cannot be written is no error.
void tell(const std::string& line);
/// `1 unit`, `1,204 units`
std::string counted(int64_t count, const std::string& what);

/// Columns of the terminal: with --wide no limit, else COLUMNS, else its width, else 100.
size_t terminal_width();
/// --wide: from now on no line is wrapped and no table folded.
void never_wrap();
/// Bold or dim on a terminal that has that.
void print_weighted(const std::string& text, bool bold);
/// Columns that a text takes; our own words hold only characters of one column.
size_t text_columns(const std::string& text);
/// Lines of at most the terminal's width behind a margin; the first line continues at `first` columns.
void print_wrapped(const std::string& text, size_t margin, size_t first = 0, std::FILE* out = stdout);
/// Parts that stay whole, three spaces between them, wrapped like words.
void print_parts(const std::vector<std::string>& parts, size_t margin, size_t first = 0);
/// `  next      …`: a word, and behind it a text that is wrapped at the column where it begins.
void print_labelled(const std::string& label, const std::string& text);

/// A table for people. Columns are as wide as they must be, names are never cut. Where lines would be wider than the
/// terminal, a text at their end is wrapped, or the names get lines of their own; where that is not enough, every value
/// stands behind its heading.
struct Table {
  std::vector<std::string> head;
  std::string align;  ///< a letter per column, l or r
  size_t names = 1;   ///< leading columns that say what the row is about
  size_t margin = 2;  ///< columns before each line
  std::vector<std::vector<std::string>> rows = {};
};
void print_table(const Table& table);

std::string flops_text(double flops);  ///< `1.40 M`, `4.1 G`

}  // namespace netmend::app
