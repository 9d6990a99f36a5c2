#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "studies/deepimportance.h"
#include "studies/tables.h"

namespace netmend::studies {

using Json = nlohmann::ordered_json;

namespace {

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
      "± is the standard deviation over runs, each a network of its own (table 2: over inputs). Protocols: corrected; "
      "df63927 and head are the authors' program in the state of the paper and the newest. C&W changes part of the "
      "tests, as table 1 says, and JSMA those of colour images, which it would change value by value; noise and "
      "distances are parts of the values' range.\n\n## Table 1: networks\n\n";
  Table networks({"model", "protocol", "runs", "parameters", "training", "tests", "by C&W", "accuracy"});
  for (const Json& row : report["networks"])
    networks.row({row["model"], row["protocol"], json_text(row["runs"]), plain(row["parameters"], 0),
                  plain(row["training"], 0), plain(row["tests"], 0), plain(row["attacked"], 0),
                  figure(row["accuracy"]) + " (" + figure(row["paper"]) + ")"});
  out +=
      networks.text() +
      "## Table 2: how far units move when relevant pixels change (L2)\n\nThe class and the one draw of random "
      "units of the authors' script; the ratio also with the mean of 20 draws, so over all classes, and there at the "
      "other percentile (98 and 90).\n\n";
  Table reaction({"model", "protocol", "units", "distance", "by own deviation", "ratio", "single draws", "20 draws",
                  "all classes", "other percentile"});
  for (const Json& row : report["table2"]) {
    const bool last = row.contains("ratio");
    reaction.row({row["model"], row["protocol"], row["units"], pair(row, 2), plain(row["by_own_deviation"]),
                  last ? plain(row["ratio"]) + " (" + plain(row["ratio_paper"]) + ")" : "",
                  last && row.contains("ratio_low") ? plain(row["ratio_low"]) + " … " + plain(row["ratio_high"]) : "",
                  last ? plain(row["ratio_draws"]) : "", last ? plain(row["ratio_classes"]) : "",
                  last ? plain(row["ratio_other_percentile"]) : ""});
  }
  out += reaction.text() + "## Table 3: noise on random (U_S) and on relevant pixels (U_DI) added to the tests\n\n";
  out += crossed(report["table3"], {"model", "protocol", "criterion"}, "set");
  out += "## Table 4: noise on all pixels (+S) and attacks added to the tests\n\n" +
         crossed(report["table4"], {"model", "protocol", "set"}, "criterion");
  out += "NLC is not a share.\n\n## Sets: how the network does on what was added\n\n";
  Table sets({"model", "protocol", "set", "inputs", "predicted otherwise", "accuracy", "confidence"});
  for (const Json& row : report["sets"])
    sets.row({row["model"], row["protocol"], row["set"], plain(row["inputs"], 0), figure(row["success"]),
              figure(row["accuracy"]), figure(row["confidence"], 3)});
  out += sets.text() + "## Table 5: layers\n\n" + crossed(report["table5"], {"model", "protocol", "layer", "m"}, "set");
  out += "## Switches: IDC of the tests, one difference from the corrected form at a time\n\n" +
         crossed(report["switches"], {"model", "protocol", "switch"}, "criterion");
  out += "## Rank correlation of IDC6 with its rivals over the sets of table 4\n\n";
  Table together({"model", "protocol", "criterion", "ours", "paper", "moves by points"});
  for (const Json& row : report["correlation"])
    together.row({row["model"], row["protocol"], row["criterion"], plain(row["ours"]), plain(row["paper"]),
                  plain(row["moved"], 1)});
  out +=
      together.text() +
      "## Does it hold here?\n\nEach network is one observation, the mean of its cases: their mean with its 95 % "
      "interval and the p-value of a t-test against 0, neither of a single network; cases that go the claimed way.\n\n";
  Table verdicts({"conclusion", "protocol", "mean difference", "p", "cases", "verdict", "over protocols"});
  for (const Json& row : report["conclusions"]) {
    bool first = true;
    for (const auto& [protocol, found] : row["by_protocol"].items()) {
      verdicts.row({first ? row["claim"].get<std::string>() : "", protocol,
                    found["low"].is_null()
                        ? plain(found["mean"])
                        : fmt::format("{} [{}, {}]", plain(found["mean"]), plain(found["low"]), plain(found["high"])),
                    found["p"].is_number() ? fmt::format("{:.2g}", found["p"].get<double>()) : "–",
                    fmt::format("{}/{}", found["held"].get<int64_t>(), found["cases"].get<int64_t>()), found["verdict"],
                    first ? row["verdict"].get<std::string>() : ""});
      first = false;
    }
  }
  return out + verdicts.text();
}

}  // namespace netmend::studies
