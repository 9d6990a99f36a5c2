#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/escape.h"
#include "base/text.h"
#include "compare/gate.h"
#include "observers/figures.h"

namespace netmend::compare {
namespace {

/// What stands beside a figure.
std::vector<std::string> notes_of(const Ruling& ruling) {
  std::vector<std::string> notes{ruling.about, doubt_words(ruling), accepted_words(ruling)};
  std::erase(notes, "");
  return notes;
}

std::string blocker_sentence(const preflight::Blocker& blocker) {
  return fmt::format("{}: {} {}", blocker.id(), blocker.title, blocker.evidence);
}

nlohmann::ordered_json ruling_json(const Ruling& ruling) {
  nlohmann::ordered_json json = {{"criterion", ruling.criterion.name},
                                 {"limit", ruling.criterion.limit},
                                 {"verdict", ruling.pass ? "pass" : "fail"},
                                 {"unclear", ruling.unclear}};
  json.update(observers::estimate_json(ruling.figure));
  json["inputs"] = ruling.inputs;
  json["more_inputs"] = nullptr;
  if (ruling.unclear && ruling.more > 0) json["more_inputs"] = ruling.more;
  json["accepted"] = ruling.accepted;
  json["about"] = ruling.about;
  return json;
}

}  // namespace

nlohmann::ordered_json gate_json(const GateReport& report) {
  nlohmann::ordered_json json = {{"pass", report.pass()},
                                 {"strict", report.strict},
                                 {"reason", report.blocker ? blocker_sentence(*report.blocker) : ""},
                                 {"criteria", nlohmann::ordered_json::array()},
                                 {"inputs", report.inputs},
                                 {"accepted", report.accepted},
                                 {"data", report.data}};
  for (const Ruling& ruling : report.rulings) json["criteria"].push_back(ruling_json(ruling));
  return json;
}

std::string gate_markdown(const GateReport& report) {
  std::string text = fmt::format("## netmend gate: {}\n\n{}\n\n", report.pass() ? "passed" : "not passed",
                                 markdown_text(report.title));
  if (report.blocker) return text + "**blocker** " + markdown_text(blocker_sentence(*report.blocker)) + "\n";
  text += "| | criterion | value | limit | |\n|---|---|---|---|---|\n";
  for (const Ruling& ruling : report.rulings) {
    const bool must_pass = ruling.criterion.kind == Criterion::kMustPass;
    text += fmt::format("| {} | {} | {} | {} | {} |\n", ruling.pass ? "pass" : "**fail**",
                        markdown_text(ruling.criterion.name), markdown_text(figure_words(ruling)),
                        markdown_text(must_pass ? "all correct" : ruling.criterion.limit),
                        markdown_text(join(notes_of(ruling), "; ")));
  }
  return text;
}

std::string gate_junit(const GateReport& report) {
  const size_t tests = report.blocker ? 1 : report.rulings.size();
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{0}\" failures=\"{1}\" time=\"{2:.3f}\">\n"
      "  <testsuite name=\"netmend gate\" tests=\"{0}\" failures=\"{1}\" errors=\"0\" skipped=\"0\" "
      "time=\"{2:.3f}\">\n",
      tests, report.blocker ? 1 : report.failed(), report.seconds);
  auto test = [&](const std::string& name, bool pass, const std::string& said) {
    text += fmt::format("    <testcase classname=\"netmend.gate\" name=\"{}\" time=\"0\">", xml_text(name));
    text += pass ? fmt::format("<system-out>{}</system-out>", xml_text(said))
                 : fmt::format("<failure message=\"{0}\">{0}</failure>", xml_text(said));
    text += "</testcase>\n";
  };
  if (report.blocker) test("preflight", false, blocker_sentence(*report.blocker));
  for (const Ruling& ruling : report.rulings) {
    std::string said = figure_words(ruling);
    for (const std::string& note : notes_of(ruling)) said += "; " + note;
    test(ruling.criterion.name + " " + ruling.criterion.limit, ruling.pass, said);
  }
  return text + "  </testsuite>\n</testsuites>\n";
}

}  // namespace netmend::compare
