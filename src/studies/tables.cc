#include "studies/tables.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/text.h"
#include "trials/network_folder.h"

namespace netmend::studies {
namespace {

using Json = nlohmann::ordered_json;

size_t width(const std::string& text) {
  return size_t(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::vector<std::string> lines_of(const std::string& text) { return split(text, '\n'); }

/// Cells of `| a | b |`.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells = split(line, '|');
  if (cells.size() >= 2) cells.erase(cells.begin()), cells.pop_back();
  for (std::string& cell : cells) {
    const size_t from = cell.find_first_not_of(' '), to = cell.find_last_not_of(' ');
    cell = from == std::string::npos ? "" : cell.substr(from, to - from + 1);
  }
  return cells;
}

std::string for_latex(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (text.compare(i, 2, "**") == 0) {
      ++i;
    } else if (std::string("%&_#${}").find(c) != std::string::npos) {
      out += '\\', out += c;
    } else if (text.compare(i, 2, "±") == 0) {
      out += "$\\pm$", ++i;
    } else if (text.compare(i, 3, "–") == 0) {
      out += "--", i += 2;
    } else if (text.compare(i, 3, "−") == 0) {
      out += "$-$", i += 2;
    } else {
      out += c;
    }
  }
  return out;
}

void add_leaves(const Json& json, const std::string& path, const std::string& key, CsvWriter& out) {
  if (json.is_object()) {
    for (const auto& [name, value] : json.items()) add_leaves(value, path.empty() ? name : path + "/" + name, key, out);
  } else if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) add_leaves(json[i], fmt::format("{}/{}", path, i), key, out);
  } else if (json.is_number()) {
    out << key << path << Digits{json.get<double>(), 9};
    out.end();
  } else {
    out.row(key, path, json.is_string() ? json.get<std::string>() : json_text(json));
  }
}

/// A store that another machine wrote, on this one's disk: SQLite must not open it where it is.
class LocalCopy {
 public:
  explicit LocalCopy(const std::string& file) : path_(file) {
    if (trials::network_kind_at(file).empty()) return;
    std::string folder = (std::filesystem::temp_directory_path() / "netmend-add-XXXXXX").string();
    if (!mkdtemp(folder.data())) fail("cannot make a folder such as {}", folder);
    folder_ = folder, path_ = folder + "/trials.db";
    std::filesystem::copy_file(file, path_);
  }
  ~LocalCopy() {
    std::error_code none;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, none);
  }
  LocalCopy(const LocalCopy&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_, folder_;
};

}  // namespace

std::string Table::text() const {
  std::vector<size_t> widths(rows_[0].size());
  for (const auto& row : rows_)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  std::string out;
  for (size_t r = 0; r < rows_.size(); ++r) {
    for (size_t i = 0; i < rows_[r].size(); ++i)
      out += "| " + rows_[r][i] + std::string(widths[i] - width(rows_[r][i]) + 1, ' ');
    out += "|\n";
    if (r > 0) continue;
    for (size_t each : widths) out += "| " + std::string(each, '-') + " ";
    out += "|\n";
  }
  return out + "\n";
}

std::string table_of(const std::string& text, int64_t number) {
  struct Found {
    std::string heading, table;
  };
  std::vector<Found> tables;
  std::string heading;
  bool inside = false;
  for (const std::string& line : lines_of(text)) {
    const bool row = line.starts_with("|");
    if (line.starts_with("#")) heading = line;
    if (row && !inside) tables.push_back({heading, ""});
    if (row) tables.back().table += line + "\n";
    inside = row;
  }
  const std::string wanted = fmt::format("Table {}", number);
  bool numbered = false;
  for (const Found& one : tables) {
    const size_t at = one.heading.find("Table ");
    numbered = numbered || at != std::string::npos;
    if (at == std::string::npos || !one.heading.substr(at).starts_with(wanted)) continue;
    const char next = (one.heading.substr(at) + " ")[wanted.size()];
    if (next < '0' || next > '9') return one.table;
  }
  if (!numbered && number >= 1 && number <= int64_t(tables.size())) return tables[size_t(number) - 1].table;
  throw InputError(fmt::format("--table {}: the study has no such table", number),
                   fmt::format("It has {}; without --table all of it is printed.",
                               tables.size() == 1 ? "one table" : fmt::format("{} tables", tables.size())));
}

std::string latex_of(const std::string& table) {
  std::vector<std::string> lines = lines_of(table);
  std::erase_if(lines, [](const std::string& line) { return !line.starts_with("|"); });
  if (lines.empty()) return "";
  std::string out = "\\begin{tabular}{" + std::string(cells_of(lines[0]).size(), 'l') + "}\n\\hline\n";
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i == 1) {
      out += "\\hline\n";
      continue;
    }
    std::vector<std::string> cells = cells_of(lines[i]);
    for (std::string& cell : cells) cell = for_latex(cell);
    out += join(cells, " & ") + " \\\\\n";
  }
  return out + "\\hline\n\\end{tabular}\n";
}

void write_trials(const trials::Store& store, const std::string& path) {
  write_csv(path, "trial,field,value", [&](CsvWriter& out) {
    for (const auto& [key, result] : store.all()) add_leaves(trials::trial_document(key, result).json(), "", key, out);
  });
}

void write_numbers(const std::string& study, const nlohmann::ordered_json& document, const std::string& path) {
  nlohmann::json numbers = document;
  numbers.erase("text");
  write_csv(path, "trial,field,value", [&](CsvWriter& out) { add_leaves(numbers, "", study, out); });
}

int64_t add_trials(trials::Store& store, const std::vector<std::string>& folders, const std::string& study,
                   int version) {
  int64_t added = 0;
  for (const std::string& folder : folders) {
    const std::string file = folder + "/trials.db";
    if (!std::filesystem::exists(file))
      throw InputError(fmt::format("--add {}: there is no trials.db", printable(folder)),
                       "Name the folder of the same study that another run wrote.");
    const LocalCopy local(file);
    const trials::Store other(local.path(), study, version);
    for (const auto& [key, result] : other.all())
      if (!store.find(key)) store.put(key, result), ++added;
  }
  return added;
}

Slice parse_slice(const std::string& text) {
  if (text.empty()) return {};
  Slice slice;
  const std::vector<std::string> parts = split(text, '/');
  if (parts.size() != 2 || !parse_int(parts[0], slice.index) || !parse_int(parts[1], slice.count) || slice.index < 1 ||
      slice.count < slice.index)
    throw InputError(fmt::format("--slice {}: expected a part such as 2/5", printable(text)),
                     "Parts are numbered from 1; --add puts their results together.");
  return slice;
}

}  // namespace netmend::studies
