#include "diagnosis/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/child.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/json.h"
#include "base/python_package.h"
#include "base/text.h"
#include "base/version.h"
#include "findings/kinds.h"

namespace netmend::diagnosis {
namespace {

using findings::Finding;
using findings::Level;
using Json = nlohmann::ordered_json;

Json sarif_of(const std::vector<LintFinding>& all) {
  Json rules = Json::array(), results = Json::array();
  std::vector<std::string> known;
  for (const LintFinding& one : all) {
    const findings::Kind& kind = findings::find_kind(one.finding.kind);
    if (std::find(known.begin(), known.end(), one.finding.kind) == known.end()) {
      known.push_back(one.finding.kind);
      rules.push_back(
          {{"id", kind.name}, {"shortDescription", {{"text", kind.meaning}}}, {"help", {{"text", kind.repair}}}});
    }
    const char* level = one.finding.level >= Level::kSerious ? "error"
                        : one.finding.level == Level::kMinor ? "warning"
                                                             : "note";
    results.push_back(
        {{"ruleId", one.finding.kind},
         {"level", level},
         {"message", {{"text", one.finding.title}}},
         {"locations",
          Json::array({{{"physicalLocation",
                         {{"artifactLocation", {{"uri", one.file}}}, {"region", {{"startLine", one.line}}}}}}})}});
  }
  return {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
          {"version", "2.1.0"},
          {"runs", Json::array({{{"tool", {{"driver", {{"name", "netmend"}, {"version", kVersion}, {"rules", rules}}}}},
                                 {"results", results}}})}};
}

}  // namespace

std::vector<LintFinding> lint_files(const std::vector<std::string>& programs, const std::string& python) {
  std::vector<std::string> words = {python, python_package_folder() + "/netmend/lint.py"};
  for (const std::string& file : programs) {
    InputFile readable(file);  // says what is wrong with it
    words.push_back(file);
  }
  std::string output;
  if (const int status = run_child(words, {{"PYTHONDONTWRITEBYTECODE", "1"}, {"NETMEND_WATCH", ""}}, &output);
      status != 0)
    throw InputError(
        fmt::format("{} ended with status {} while it read {}", python, status, join(programs, ", ")),
        "Python 3.9 or newer is needed, and memory for the program's syntax tree: --python names another.");
  const JsonDocument document(output, "netmend/lint.py");
  const JsonView errors = document.top().at("errors"), list = document.top().at("findings");
  for (const std::string& error : errors.texts())
    throw InputError(error, "Programs of up to 1 MB and 50,000 lines are read, if this Python can parse them.");
  std::vector<LintFinding> all;
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonView row = list.at(i);
    const std::string file = row.at("file").text(), what = row.at("what").text();
    const int64_t line = row.at("line").whole(1);
    Finding finding = findings::make(row.at("kind").text(), fmt::format("{}:{}", file, line),
                                     {{"case", Shell()}, {"what", what}, {"program", file}}, {},
                                     findings::parse_certainty(row.at("certainty").text()), what, what + ".");
    finding.level = findings::parse_level(row.at("level").text());
    finding.next = {Shell::of("netmend why {}", finding.kind)};
    all.push_back({std::move(finding), file, line});
  }
  return all;
}

void add_from_text(Diagnosis& found, const std::vector<std::string>& command, const std::string& python) {
  if (found.summary["steps"].get<int64_t>() > 0 || found.summary["epochs"].get<int64_t>() > 0) return;
  std::vector<std::string> programs;
  for (const std::string& word : command)
    if (std::error_code error; word.ends_with(".py") && std::filesystem::is_regular_file(word, error))
      programs = {word};
  if (programs.empty()) return;
  try {
    for (LintFinding& one : lint_files(programs, python)) {
      const auto same = std::find_if(found.findings.begin(), found.findings.end(),
                                     [&](const Finding& known) { return known.kind == one.finding.kind; });
      if (same != found.findings.end()) continue;
      one.finding.numbers["category"] = category_of(one.finding.kind);
      one.finding.numbers["rules"] = Json::array({"lint"});
      one.finding.evidence += " This is read from the text: the program ended before a step was seen.";
      found.findings.push_back(one.finding);
    }
  } catch (const InputError& error) {
    found.troubles.push_back(std::string("the program's text was not read: ") + error.what());
  }
  std::stable_sort(found.findings.begin(), found.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.level > b.level; });
}

std::string lint_sarif(const std::vector<LintFinding>& all) { return json_text(sarif_of(all), 1); }

}  // namespace netmend::diagnosis
