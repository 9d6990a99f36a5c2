// netmend failures: the table of wrong predictions under the user's names, to be filtered, sorted, grouped and
// exported; with --on labels the labels that look wrong themselves.
#include "selection/failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/text.h"
#include "checks/label_judge.h"
#include "evidence/json.h"
#include "netmend/show.h"
#include "observers/figures.h"

namespace netmend::app {
namespace {

using observers::number_json;
using selection::DoubtfulLabel;
using selection::Failure;
using selection::FailureGroup;
using selection::FailureRow;
using selection::FailuresReport;

Json failure_json(session::Session& session, const Failure& failure) {
  const FailureRow row = selection::describe(session, failure);
  Json json = {{"sample", failure.row.sample},
               {"id", row.id},
               {"label", row.label},
               {"predicted", row.predicted},
               {"confidence", number_json(failure.row.confidence)},
               {"loss", number_json(failure.row.loss)}};
  if (session.task().by_class()) {
    json["second"] = row.second;
    json["second_confidence"] = number_json(failure.second_probability);
    json["margin"] = number_json(failure.margin);
  }
  if (!row.text.empty()) json["text"] = row.text;
  const std::vector<std::string>& columns = selection::group_columns(session);
  for (size_t c = 0; c < columns.size(); ++c) json["groups"][columns[c]] = row.groups.at(c);
  return json;
}

Json failures_json(session::Session& session, const FailuresOptions& options, const FailuresReport& report) {
  Json json = {{"inputs", report.inputs}, {"of", report.of}, {"wrong", report.wrong}, {"on", options.on}};
  Json rows = Json::array();
  const auto top = size_t(options.top);
  if (options.on == "labels") {
    json["issues"] = report.doubtful.size();
    for (size_t i = 0; i < std::min(report.doubtful.size(), top); ++i) {
      const DoubtfulLabel& one = report.doubtful[i];
      rows.push_back({{"sample", one.sample},
                      {"id", selection::input_name(session, one.sample)},
                      {"label", one.label},
                      {"suggested", one.suggested},
                      {"confidence", one.confidence},
                      {"margin", one.margin}});
    }
    json["rows"] = rows;
    return json;
  }
  json["failures"] = report.failures.size();
  json["accepted"] = report.accepted;
  json["sort"] = options.sort;
  for (size_t i = 0; i < std::min(report.failures.size(), top); ++i)
    rows.push_back(failure_json(session, report.failures[i]));
  json["rows"] = rows;
  if (options.group.empty()) return json;
  json["groups"] = Json::array();
  for (const FailureGroup& group : report.groups)
    json["groups"].push_back(
        {{"group", group.name}, {"on", group.on}, {"failures", group.count}, {"worst", group.worst}});
  return json;
}

std::string percent(double share) { return std::isfinite(share) ? fmt::format("{:.1f} %", 100 * share) : "–"; }

void print_failures(session::Session& session, const std::vector<Failure>& failures, int64_t top) {
  const bool classes = session.task().by_class();
  Table table{{"id", "label", "predicted", "confidence"}, "lllr"};
  auto column = [&](const std::string& name, char align) { table.head.push_back(name), table.align += align; };
  if (classes) column("second", 'l');
  column("loss", 'r');
  for (const std::string& name : selection::group_columns(session)) column(name, 'l');
  bool texts = false;
  for (size_t i = 0; i < std::min(failures.size(), size_t(top)); ++i) {
    const Failure& failure = failures[i];
    const FailureRow row = selection::describe(session, failure);
    const std::string predicted = row.predicted.empty() ? "NaN" : row.predicted;
    std::vector<std::string> cells = {row.id, row.label, predicted, percent(failure.row.confidence)};
    if (classes) cells.push_back(row.second.empty() ? "" : row.second + " " + percent(failure.second_probability));
    cells.push_back(std::isfinite(failure.row.loss) ? fmt::format("{:.3g}", failure.row.loss) : "–");
    cells.insert(cells.end(), row.groups.begin(), row.groups.end());
    if (!row.text.empty()) cells.push_back(row.text), texts = true;
    table.rows.push_back(std::move(cells));
  }
  if (texts) column("text", 'l');
  print_table(table);
  if (failures.size() > size_t(top)) print("  … and {} more\n", with_commas(int64_t(failures.size()) - top));
}

void print_failure_groups(const FailuresReport& report, int64_t top) {
  Table table{{"group", "failures", "share", "worst"}, "lrrl"};
  for (size_t i = 0; i < std::min(report.groups.size(), size_t(top)); ++i) {
    const FailureGroup& group = report.groups[i];
    table.rows.push_back({group.name, with_commas(group.count),
                          percent(double(group.count) / double(report.failures.size())), join(group.worst, "  ")});
  }
  print_table(table);
  if (report.groups.size() > size_t(top)) print("  … and {} more groups\n", report.groups.size() - size_t(top));
}

/// Why the model's doubts count little; "" where they count, or there are none.
std::string caveat(session::Session& session, const FailuresReport& report) {
  if (report.doubtful.empty() || report.inputs == 0) return "";
  return checks::poor_judge(session, 1 - double(report.wrong) / double(report.inputs));
}

void print_doubtful(session::Session& session, const FailuresReport& report, const std::string& caveat, int64_t top) {
  print("  {} look{} wrong{}\n", counted(int64_t(report.doubtful.size()), "label"),
        report.doubtful.size() == 1 ? "s" : "",
        report.doubtful.empty() ? "" : ": the model confidently predicts another class");
  if (report.training_data)
    print_wrapped("this is training data: the model may have learned its wrong labels too, which then stay hidden", 2);
  if (!caveat.empty()) print_wrapped("caution: " + caveat + " netmend check looks for its faults first.", 2);
  if (report.doubtful.empty()) return;
  Table table{{"id", "label", "suggested", "confidence", "probability of the label"}, "lllrr"};
  for (size_t i = 0; i < std::min(report.doubtful.size(), size_t(top)); ++i) {
    const DoubtfulLabel& one = report.doubtful[i];
    table.rows.push_back({selection::input_name(session, one.sample), one.label, one.suggested, percent(one.confidence),
                          fmt::format("{:.2g}", std::max(0.0, one.margin + one.confidence))});
  }
  print("\n");
  print_table(table);
  if (report.doubtful.size() > size_t(top))
    print("  … and {} more\n", with_commas(int64_t(report.doubtful.size()) - top));
  print("\n");
  print_wrapped("look at inputs before you delete them: removing what the model gets wrong inflates its accuracy", 2);
}

void print_report(session::Session& session, const FailuresOptions& options, const FailuresReport& report,
                  const std::string& caveat) {
  print("{}  on {}, {}, {}\n", session.model_name(), report.data, counted(report.inputs, "input"),
        counted(report.wrong, "wrong prediction"));
  if (options.on == "labels") return print_doubtful(session, report, caveat, options.top);
  if (report.failures.empty())
    return print("  no prediction{} is wrong\n", options.on.empty() ? "" : " of " + printable(options.on));
  if (report.accepted > 0)
    print("  accepted as known: {} of them (netmend accept --list)\n", with_commas(report.accepted));
  if (!options.on.empty())
    print("  {}: {}\n", printable(report.words), counted(int64_t(report.failures.size()), "failure"));
  print("\n");
  if (report.groups.empty()) return print_failures(session, report.failures, options.top);
  print_failure_groups(report, options.top);
  print("\n  next      {}\n", session.command("failures", {"--on", report.groups[0].on}).text());
}

}  // namespace

int failures(const Common& common, const FailuresOptions& options) {
  const selection::FailuresRequest request{options.on, options.sort, options.group};
  selection::check_request(request);
  session::Session session(request_of(common, options));
  const Examined examined = examine(common, options, session, "failures");
  if (examined.stop) return *examined.stop;
  const FailuresReport report = selection::find_failures(session, request);
  const int status = report.interrupted ? 130 : 0;
  const RunFolder& folder = session.folder("failures");
  const std::string table = request.labels() ? "relabel.csv" : "failures.csv";
  selection::write_table(folder.file(table), session, report, request.labels());
  const std::string product =
      options.product.empty() || !report.interrupted ? options.product : partial_name(options.product);
  if (!product.empty()) selection::write_table(product, session, report, request.labels());
  const std::string why = caveat(session, report);
  Json json = failures_json(session, options, report);
  if (request.labels()) json["caveat"] = why.empty() ? Json(nullptr) : Json(why);
  json["model"] = session.model_name();
  json["data"] = report.data;
  json["preflight"] = evidence::preflight_json(examined.preflight);
  json["table"] = folder.file(table);
  json["run"] = folder.path();
  json["seconds"] = report.seconds;
  mark_partial(json, status);
  write_file(folder.file("failures.json"), evidence::dump(json, 2));
  session.finish(report.seconds, status);
  if (common.json) return print_json(json), status;
  print_report(session, options, report, why);
  print("\n  all of them: {}/{}{}\n", folder.path(), table, product.empty() ? "" : "   " + product);
  if (report.interrupted)
    say(common, fmt::format("stopped: this is the result of the first {}", counted(report.inputs, "input")));
  return status;
}

}  // namespace netmend::app
