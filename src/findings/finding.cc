#include "findings/finding.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/escape.h"
#include "base/text.h"
#include "findings/kinds.h"

namespace netmend::findings {
namespace {

const std::vector<std::string> kLevels{"note", "minor", "serious", "blocker"};
constexpr const char* kCertainty[] = {"possible", "likely", "confirmed"};
constexpr double kWeight[] = {0.3, 0.7, 1.0};  ///< of possible, likely and confirmed

/// Fills `{name}` from `words`; what has no word stays empty, but for training data, without which nothing is trained.
std::string fill(std::string_view pattern, const Words& words, bool command) {
  std::string text;
  while (!pattern.empty()) {
    size_t open = pattern.find('{');
    text += pattern.substr(0, open);
    if (open == std::string_view::npos) break;
    size_t close = pattern.find('}', open);
    std::string name(pattern.substr(open + 1, close - open - 1));
    auto word = words.find(name);
    if (word != words.end())
      text += command ? word->second.command.text() : word->second.text;
    else if (name == "train")
      text += "SPEC";
    pattern.remove_prefix(close + 1);
  }
  return text;
}

/// A command of a pattern; what is filled with nothing leaves no gap. Names may hold any spaces and keep them.
Shell command_of(std::string_view pattern, const Words& words) {
  std::string text = "netmend";
  for (const std::string& part : split(pattern, ' '))
    if (const std::string word = fill(part, words, true); !word.empty()) text += " " + word;
  const std::optional<Shell> command = ShellPlace::read(text);
  check(command.has_value(), "a pattern of a command is more than one command");
  return *command;
}

/// What a finding weighs among those of its level. Calibration costs no accuracy; it is weighed by the error itself.
double worth(const Finding& finding) {
  const bool calibration = finding.kind == "over-confident" || finding.kind == "under-confident";
  return (calibration ? finding.value / 4 : finding.effect.gain) * kWeight[int(finding.certainty)];
}

/// What follows from something else, more often than not.
bool is_symptom(const Finding& finding) {
  static constexpr std::string_view kinds[] = {"confused-classes", "weak-class", "failure-cluster",  "weak-slice",
                                               "regressed-class",  "over-fit",   "misleading-metric"};
  return std::find(std::begin(kinds), std::end(kinds), finding.kind) != std::end(kinds);
}

}  // namespace

std::string level_name(Level level) { return kLevels[size_t(level)]; }
std::string certainty_name(Certainty certainty) { return kCertainty[int(certainty)]; }

Certainty parse_certainty(const std::string& name) {
  const auto hit = std::find(std::begin(kCertainty), std::end(kCertainty), name);
  if (hit == std::end(kCertainty)) fail("there is no certainty `{}`: expected confirmed, likely or possible", name);
  return Certainty(hit - std::begin(kCertainty));
}

Level parse_level(const std::string& name) {
  for (int i = 0; i < 4; ++i)
    if (name == kLevels[size_t(i)]) return Level(i);
  throw InputError(fmt::format("there is no level `{}`{}", name, did_you_mean(name, kLevels)),
                   "Levels are blocker, serious, minor and note.");
}

Finding make(const std::string& kind, const std::string& where, const Words& words, const Effect& effect,
             Certainty certainty, std::string brief, std::string evidence) {
  const Kind& row = find_kind(kind);
  Finding finding;
  finding.kind = kind;
  finding.where = where;
  finding.effect = effect;
  finding.certainty = certainty;
  finding.level = level_of(row.rule, effect);
  finding.value = std::max(effect.gain, effect.local);
  finding.title = fill(row.title, words, false);
  finding.title[0] = char(std::toupper(static_cast<unsigned char>(finding.title[0])));
  finding.brief = std::move(brief);
  finding.evidence = std::move(evidence);
  for (std::string_view line : split(row.next, '\n'))
    if (!line.empty()) finding.next.push_back(command_of(line, words));
  return finding;
}

std::vector<Finding> rank(std::vector<Finding> found) {
  std::stable_sort(found.begin(), found.end(), [](const Finding& a, const Finding& b) {
    if (a.level != b.level) return a.level > b.level;
    if (a.level >= Level::kMinor && is_symptom(a) != is_symptom(b)) return is_symptom(b);
    if (worth(a) != worth(b)) return worth(a) > worth(b);
    if (a.certainty != b.certainty) return a.certainty > b.certainty;
    return a.id() < b.id();
  });
  return found;
}

Json to_json(const Finding& finding) {
  // A check of the user's own has no row in the table.
  const bool own = finding.kind.starts_with("user:");
  const std::string_view meaning = own ? "" : find_kind(finding.kind).meaning,
                         fault = own ? "" : find_kind(finding.kind).fault;
  Json inputs = Json::array();
  for (const Shown& shown : finding.inputs) inputs.push_back({{"split", shown.split}, {"sample", shown.sample}});
  return {{"id", finding.id()},
          {"kind", finding.kind},
          {"where", finding.where},
          {"level", level_name(finding.level)},
          {"certainty", certainty_name(finding.certainty)},
          {"title", finding.title},
          {"brief", finding.brief},
          {"evidence", finding.evidence},
          {"meaning", meaning},
          {"fault", fault},
          {"gain", finding.effect.gain},
          {"local", finding.effect.local},
          {"value", finding.value},
          {"next", finding.next},
          {"inputs", inputs},
          {"numbers", finding.numbers},
          {"related", finding.related}};
}

Finding finding_from_json(const JsonView& json) {
  Finding finding;
  finding.kind = json.at("kind").text();
  finding.where = json.at("where").text();
  finding.level = parse_level(json.at("level").choice(kLevels));
  finding.certainty = parse_certainty(json.at("certainty").choice({std::begin(kCertainty), std::end(kCertainty)}));
  finding.title = json.at("title").text();
  finding.brief = json.at("brief").text();
  finding.evidence = json.at("evidence").text();
  finding.effect = {json.at("gain").number(), json.at("local").number()};
  finding.value = json.at("value").number();
  // Commands are there to be pasted, and this file may come from anywhere.
  for (const std::string& line : json.at("next").texts())
    if (auto command = finding.kind.starts_with("user:") ? ShellPlace::read(line, "") : ShellPlace::read(line))
      finding.next.push_back(*std::move(command));
  const JsonView inputs = json.at("inputs");
  for (size_t i = 0; i < inputs.size(); ++i)
    finding.inputs.push_back({inputs.at(i).at("split").text(), inputs.at(i).at("sample").whole()});
  finding.numbers = json.at("numbers").json();
  finding.related = json.at("related").texts();
  return finding;
}

}  // namespace netmend::findings
