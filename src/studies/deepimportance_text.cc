#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "studies/deepimportance.h"

namespace netmend::studies {

using Json = nlohmann::ordered_json;

namespace {

/// A Markdown table with columns as wide as they need to be, so that it can be read as it is.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const {
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

 private:
  static size_t width(const std::string& text) {
    return size_t(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
  }
  std::vector<std::vector<std::string>> rows_;
};

/// `34.6 ±2.2`; `–` where there is none.
std::string figure(const Json& json, int digits = 1) {
  if (json.is_null() || json["mean"].is_null()) return "–";
  std::string text = fmt::format("{:.{}f}", json["mean"].get<double>(), digits);
  if (json.contains("sd") && json["sd"].is_number()) text += fmt::format(" ±{:.{}f}", json["sd"].get<double>(), digits);
  return text;
}

std::string pair(const Json& row, int digits = 1) {
  return figure(row["ours"], digits) + " (" + figure(row["paper"], digits) + ")";
}

std::string plain(const Json& value, int digits = 2) {
  return value.is_number() ? fmt::format("{:.{}f}", value.get<double>(), digits) : "–";
}

/// Rows that agree in the keys of a line side by side: one column for each value of `across`.
std::string crossed(const Json& rows, const std::vector<std::string>& keys, const std::string& across) {
  std::vector<std::string> columns = keys;
  std::vector<std::vector<std::string>> lines;
  for (const Json& row : rows) {
    std::vector<std::string> own;
    for (const std::string& key : keys)
      own.push_back(row[key].is_string() ? row[key].get<std::string>() : json_text(row[key]));
    const std::string name = row[across];
    size_t column = size_t(std::find(columns.begin(), columns.end(), name) - columns.begin());
    if (column == columns.size()) columns.push_back(name);
    if (lines.empty() || !std::equal(own.begin(), own.end(), lines.back().begin())) lines.push_back(own);
    lines.back().resize(std::max(lines.back().size(), column + 1), "–");
    lines.back()[column] = pair(row, row.value("criterion", "") == "NLC" ? 4 : 1);
  }
  Table table(columns);
  for (auto& line : lines) line.resize(columns.size(), "–"), table.row(line);
  return table.text();
}

}  // namespace

std::string deepimportance_text(const Json& report) {
  std::string out =
      "# Importance-driven coverage, reproduced\n\nOur figures, and in brackets those of the paper; shares in percent, "
      "± is the standard deviation over runs (table 2: over inputs).\n\n";
  Table networks({"model", "runs", "training", "tests", "attacked", "accuracy"});
  for (const Json& row : report["networks"])
    networks.row({row["model"], json_text(row["runs"]), plain(row["training"], 0), plain(row["tests"], 0),
                  plain(row["attacked"], 0), figure(row["accuracy"]) + " (" + figure(row["paper"]) + ")"});
  out += networks.text() + "## Table 2: how far units move when relevant pixels change (L2)\n\n";
  Table reaction({"model", "units", "distance", "by each unit's own deviation"});
  for (const Json& row : report["table2"])
    reaction.row({row["model"], row["units"], pair(row, 2), plain(row["by_own_deviation"])});
  out += reaction.text() + "## Table 3: noise on random (U_S) and on relevant pixels (U_DI) added to the tests\n\n";
  out += crossed(report["table3"], {"model", "criterion"}, "set");
  out += "## Table 4: attacks added to the tests\n\n" + crossed(report["table4"], {"model", "set"}, "criterion");
  out += "NLC is not a share. How the network does on the added inputs:\n\n";
  Table sets({"model", "set", "inputs", "accuracy", "confidence"});
  for (const Json& row : report["sets"])
    sets.row(
        {row["model"], row["set"], plain(row["inputs"], 0), figure(row["accuracy"]), figure(row["confidence"], 3)});
  out += sets.text() + "## Table 5: layers\n\n" + crossed(report["table5"], {"model", "layer", "m"}, "set");
  out += "## Rank correlation of IDC6 with its rivals over the sets of table 4\n\n";
  Table together({"model", "criterion", "ours", "paper", "moves by points"});
  for (const Json& row : report["correlation"])
    together.row({row["model"], row["criterion"], plain(row["ours"]), plain(row["paper"]), plain(row["moved"], 1)});
  out += together.text() + "## Does it hold here?\n\n";
  for (const Json& row : report["conclusions"]) {
    out += fmt::format("- **{}**: {} ({} of {} cases)\n", row["verdict"].get<std::string>(),
                       row["claim"].get<std::string>(), row["held"].get<int64_t>(), row["cases"].get<int64_t>());
    std::vector<std::string> against = row["against"];
    const size_t all = against.size(), shown = std::min<size_t>(all, 6);
    against.resize(shown);
    if (shown > 0)
      out += fmt::format("  - exceptions: {}{}\n", join(against, ", "),
                         all > shown ? fmt::format(" and {} more", all - shown) : "");
  }
  return out;
}

}  // namespace netmend::studies
