// netmend gate: pass or fail against the limits in netmend.toml. One line per criterion; gate.md for a merge request,
// gate.xml for a pipeline, gate.json for programs.
#include "compare/gate.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "evidence/json.h"
#include "netmend/show.h"

namespace netmend::app {
namespace {

using compare::Criterion;
using compare::GateReport;
using compare::Ruling;

void print_rulings(const std::vector<Ruling>& rulings) {
  Table table{{"", "criterion", "measured", "limit", ""}, "lllll", 2};
  for (const Ruling& ruling : rulings) {
    std::vector<std::string> notes;
    for (const std::string& note : {ruling.about, doubt_words(ruling), accepted_words(ruling)})
      if (!note.empty()) notes.push_back(note);
    table.rows.push_back({ruling.pass ? "pass" : "FAIL", ruling.criterion.name, figure_words(ruling),
                          ruling.criterion.limit, join(notes, "; ")});
  }
  print_table(table);
}

void print_report(const GateReport& report, const std::string& folder) {
  if (!report.blocker) {
    print("{}\n", report.title);
    print_rulings(report.rulings);
    print("\n");
    print_wrapped(fmt::format("{}{}",
                              report.pass() ? "passed: exit 0"
                                            : fmt::format("not passed, {} of {} not met: exit 1", report.failed(),
                                                          counted(int64_t(report.rulings.size()), "limit")),
                              report.strict ? " (the worse end of each interval decides)" : ""),
                  2);
  } else {
    print("\n  not passed, because model and data do not belong together: exit 1\n");
  }
  if (!report.next.empty()) print("  next      {}\n", report.next.text());
  print("  {0}/gate.md   {0}/gate.xml   {0}/gate.json\n", folder);
}

}  // namespace

int gate(const Common& common, const GateOptions& options) {
  compare::read_gate(session::read_config(common.config, options.model));  // a slip of the finger shows before the work
  session::Session session(request_of(common, options));
  const compare::GateRequest request{options.against, options.common_only, options.strict};
  const std::vector<Criterion> criteria = compare::gate_criteria(session, request);
  const preflight::Preflight preflight = preflight::examine(session);
  const bool blocked = preflight.blocker && !options.anyway && compare::stops_gate(session, *preflight.blocker);
  if (!common.json) print_preflight(preflight, session.task().metric, blocked ? OnBlocker::kStop : OnBlocker::kGoOn);
  const GateReport report = blocked ? compare::blocked_gate(session, request, *preflight.blocker)
                                    : compare::run_gate(session, criteria, request);
  const int status = report.pass() ? 0 : 1;
  const RunFolder& folder = session.folder("gate");
  Json json = compare::gate_json(report);
  json["model"] = session.model_name();
  json["reference"] = options.against;
  json["preflight"] = evidence::preflight_json(preflight);
  if (blocked)
    json["findings"] = Json::array({findings::to_json(preflight::finding_of(*preflight.blocker, session, "gate"))});
  json["next"] = report.next.empty() ? Json::array() : Json::array({report.next});
  json["run"] = folder.path();
  json["seconds"] = report.seconds;
  write_file(folder.file("gate.json"), evidence::dump(json, 2));
  write_file(folder.file("gate.md"), gate_markdown(report));
  write_file(folder.file("gate.xml"), gate_junit(report));
  session.finish(report.seconds, status);
  common.json ? print_json(json) : print_report(report, folder.path());
  return status;
}

}  // namespace netmend::app
