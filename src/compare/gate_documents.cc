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
  Markdown text = Markdown::of("## netmend gate: {}\n\n{}\n\n", report.pass() ? "passed" : "not passed", report.title);
  if (report.blocker) return (text + Markdown::of("**blocker** {}\n", blocker_sentence(*report.blocker))).text();
  text += Markdown::of("| | criterion | value | limit | |\n|---|---|---|---|---|\n");
  for (const Ruling& ruling : report.rulings) {
    const bool must_pass = ruling.criterion.kind == Criterion::kMustPass;
    text += Markdown::of("| {} | {} | {} | {} | {} |\n", ruling.pass ? Markdown::of("pass") : Markdown::of("**fail**"),
                         ruling.criterion.name, figure_words(ruling),
                         must_pass ? "all correct" : ruling.criterion.limit, join(notes_of(ruling), "; "));
  }
  return text.text();
}

std::string gate_junit(const GateReport& report) {
  const size_t tests = report.blocker ? 1 : report.rulings.size();
  Xml text = Xml::of(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{0}\" failures=\"{1}\" time=\"{2:.3f}\">\n"
      "  <testsuite name=\"netmend gate\" tests=\"{0}\" failures=\"{1}\" errors=\"0\" skipped=\"0\" "
      "time=\"{2:.3f}\">\n",
      tests, report.blocker ? 1 : report.failed(), report.seconds);
  auto test = [&](const std::string& name, bool pass, const std::string& said) {
    const Xml about =
        pass ? Xml::of("<system-out>{}</system-out>", said) : Xml::of("<failure message=\"{0}\">{0}</failure>", said);
    text += Xml::of("    <testcase classname=\"netmend.gate\" name=\"{}\" time=\"0\">{}</testcase>\n", name, about);
  };
  if (report.blocker) test("preflight", false, blocker_sentence(*report.blocker));
  for (const Ruling& ruling : report.rulings) {
    std::string said = figure_words(ruling);
    for (const std::string& note : notes_of(ruling)) said += "; " + note;
    test(ruling.criterion.name + " " + ruling.criterion.limit, ruling.pass, said);
  }
  return (text + Xml::of("  </testsuite>\n</testsuites>\n")).text();
}

}  // namespace netmend::compare
