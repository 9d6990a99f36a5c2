// Tables of studies: written as Markdown, and one of them taken out again, as it is or for LaTeX.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "trials/store.h"

namespace netmend::studies {

/// A Markdown table with columns as wide as they need to be, so that it can be read as it is.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// Out of Markdown: the table under the heading that says `Table NUMBER`, or where no heading has numbers the one at
/// that place, from 1. Throws InputError with how many there are.
std::string table_of(const std::string& text, int64_t number);
/// A Markdown table as a LaTeX tabular.
std::string latex_of(const std::string& table);

/// Every number of every trial as a line of CSV: the parts of its key, where in the result it stands, and the value.
void write_trials(const trials::Store& store, const std::string& path);
/// The same of a document that holds a study's trials, where no store does. `text` is left out.
void write_numbers(const std::string& study, const nlohmann::ordered_json& document, const std::string& path);
/// Trials of other folders' stores of the same study that this one lacks. Returns how many.
int64_t add_trials(trials::Store& store, const std::vector<std::string>& folders, const std::string& study,
                   int version);

/// `2/5`: every fifth piece of work from the second on.
struct Slice {
  int64_t index = 1, count = 1;
  bool holds(int64_t number) const { return number % count == index - 1; }
};
/// "" is all of it. Throws InputError.
Slice parse_slice(const std::string& text);

}  // namespace netmend::studies
