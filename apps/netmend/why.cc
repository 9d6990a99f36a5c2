// netmend why: the story of a finding: what it means, what causes it, how to confirm, how to repair.
#include <fmt/format.h>

#include "base/error.h"
#include "base/escape.h"
#include "base/text.h"
#include "findings/kinds.h"
#include "netmend/terminal.h"
#include "session/run_findings.h"

namespace netmend::app {
namespace {

using findings::Finding;
using findings::Kind;
using findings::needs_words;
using session::RunFindings;

/// `{a} and {b} are …` → `A and B are …`
std::string open_title(std::string_view pattern) {
  std::string text;
  bool inside = false;
  for (char c : pattern) {
    if (c == '{' || c == '}')
      inside = c == '{';
    else
      text += inside ? char(std::toupper(static_cast<unsigned char>(c))) : c;
  }
  return text;
}

std::vector<std::string> commands(std::string_view lines) {
  std::vector<std::string> all;
  for (const std::string& line : split(lines, '\n'))
    if (!trim(line).empty()) all.emplace_back(trim(line));
  return all;
}

/// A script as it is typed: the indentation of its lines may mean something.
std::vector<std::string> script(std::string_view lines) {
  std::vector<std::string> all;
  for (const std::string& line : split(lines, '\n'))
    if (!trim(line).empty()) all.push_back(line.substr(0, line.find_last_not_of(" \t") + 1));
  return all;
}

/// Patterns with the places to fill in capitals: `netmend failures --on class=CLASS`.
std::vector<std::string> open_commands(std::string_view lines) {
  std::vector<std::string> all = commands(lines);
  for (std::string& line : all) {
    if (size_t at = line.find(" {case}"); at != std::string::npos) line.erase(at, 7);
    line = "netmend " + open_title(line);
  }
  return all;
}

std::vector<std::string> next_of(const Kind& kind, const Finding* finding) {
  if (!finding) return open_commands(kind.next);
  std::vector<std::string> all;
  for (const Shell& command : finding->next) all.push_back(command.text());
  return all;
}

void list_kinds(const Common& common) {
  if (common.json) {
    Json json = Json::array();
    for (const Kind& kind : findings::kinds())
      json.push_back({{"kind", kind.name},
                      {"title", open_title(kind.title)},
                      {"needs", needs_words(kind.needs)},
                      {"fault", kind.fault}});
    return print_json({{"kinds", json}});
  }
  Table table{{"kind", "what it says"}, "ll"};
  for (const Kind& kind : findings::kinds()) table.rows.push_back({std::string(kind.name), open_title(kind.title)});
  print_table(table);
  print("\n  netmend why KIND explains one: what it means, what causes it, how to repair it\n");
}

void list_findings(const Common& common, const RunFindings& run) {
  if (common.json) {
    Json json = Json::array();
    for (const Finding& finding : run.findings) json.push_back(findings::to_json(finding));
    Json document = {{"run", run.folder}, {"findings", json}};
    mark_partial(document, run.partial ? 130 : 0);
    return print_json(document);
  }
  if (run.partial) print("  {} was stopped before its end, so more findings are possible\n", run.folder);
  if (run.findings.empty()) return print("  {} found nothing: there is nothing to explain\n", run.folder);
  for (const Finding& finding : run.findings) {
    print("  {:<8} {}\n", findings::level_name(finding.level), printable(finding.id()));
    print_wrapped(finding.title, 11);
    if (!finding.brief.empty() && finding.brief != finding.title)
      print_wrapped(fmt::format("{} ({})", finding.brief, findings::certainty_name(finding.certainty)), 11);
  }
  print("\n  next      {}\n", Shell::of("netmend why {}", run.findings[0].id()).text());
}

Json story_json(const Kind& kind, const Finding* finding, const std::string& folder) {
  Json json = {{"kind", kind.name},
               {"title", finding ? finding->title : open_title(kind.title)},
               {"meaning", kind.meaning},
               {"cause", kind.cause},
               {"confirm", kind.confirm},
               {"repair", kind.repair},
               {"needs", needs_words(kind.needs)},
               {"fault", kind.fault},
               {"next", next_of(kind, finding)},
               {"example", script(kind.example)}};
  json["finding"] = finding ? findings::to_json(*finding) : Json(nullptr);
  if (finding) json["run"] = folder;
  return json;
}

/// `data, labels and groups`
std::string and_last(std::string list) {
  if (const size_t at = list.rfind(", "); at != list.npos) list.replace(at, 2, " and ");
  return list;
}

void print_story(const Kind& kind, const Finding* finding, const std::string& folder) {
  auto part = [](const char* name, std::string_view text) {
    if (text.empty()) return;
    print("\n  {}\n", name);
    print_wrapped(std::string(text), 4);
  };
  print("{}\n", finding ? printable(finding->id()) : std::string(kind.name));
  print_wrapped(finding ? finding->title : open_title(kind.title), 2);
  if (finding) {
    print("  {}, {}   in {}\n", findings::level_name(finding->level), findings::certainty_name(finding->certainty),
          folder);
    part("what was seen", finding->evidence);
  }
  part("what it means", kind.meaning);
  part("what usually causes it", kind.cause);
  part("how to confirm it", kind.confirm);
  part("how to repair it", kind.repair);
  auto list = [](const char* name, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    print("\n  {}\n", name);
    for (const std::string& line : lines) print("    {}\n", printable(line));
  };
  list("next", next_of(kind, finding));
  print("\n  an example that needs no file of yours; it can be pasted into a shell\n");
  for (const std::string& line : script(kind.example)) print("{}\n", printable(line));
  print("\n");
  print_wrapped(kind.needs & findings::kRecord
                    ? "netmend watch and netmend diagnose look for this in the record of a training run"
                    : "netmend check looks for this when it has " + and_last(needs_words(kind.needs)),
                2);
}

}  // namespace

int why(const Common& common, const WhyOptions& options) {
  if (options.list) return list_kinds(common), 0;
  if (options.about.empty()) {
    if (options.run.empty() && !session::has_findings())
      throw InputError("no finding is given, and no run has findings",
                       "netmend why KIND explains a kind of finding; netmend why --list shows all kinds.");
    return list_findings(common, session::read_findings(options.run)), 0;
  }
  const Kind& kind = findings::find_kind(options.about);
  RunFindings run;
  const Finding* finding = nullptr;
  const bool whole_id = options.about.find(':') != std::string::npos;
  if (!options.run.empty() || session::has_findings()) {
    run = session::read_findings(options.run);
    finding = run.find(options.about);
    // A kind alone means the first finding of that kind: findings are ranked.
    if (!finding && !whole_id)
      for (const Finding& one : run.findings)
        if (one.kind == kind.name) finding = finding ? finding : &one;
    if (!finding && (whole_id || !options.run.empty()))
      say(common, fmt::format("{} has no such finding{}; this explains its kind", run.folder,
                              did_you_mean(options.about, run.ids())));
  }
  common.json ? print_json(story_json(kind, finding, run.folder)) : print_story(kind, finding, run.folder);
  return 0;
}

}  // namespace netmend::app
