// netmend next: which unlabelled inputs to label first.
#include "selection/next.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/escape.h"
#include "base/file.h"
#include "base/text.h"
#include "evidence/json.h"
#include "findings/phrases.h"
#include "netmend/show.h"

namespace netmend::app {
namespace {

using selection::ChosenInput;
using selection::NextReport;

constexpr size_t kShown = 20;

Json optional_json(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json next_json(const NextReport& report, const std::string& method) {
  Json json = {{"method", method}, {"pool", report.pool}, {"inputs", report.inputs}, {"chosen", Json::array()}};
  for (const ChosenInput& one : report.chosen) {
    Json row = {{"sample", one.sample}, {"id", one.id}, {"predicted", one.predicted}};
    if (report.classes) row["confidence"] = optional_json(one.confidence);
    if (!report.score_name.empty()) row["score"] = optional_json(one.score);
    json["chosen"].push_back(std::move(row));
  }
  if (!report.known_data.empty()) json["known"] = report.known, json["known_data"] = report.known_data;
  if (!report.layer.empty()) json["layer"] = report.layer;
  if (!report.unit.empty()) json["unit"] = report.unit, json["tests_reach"] = optional_json(report.tests_reach);
  if (report.above) json["above"] = *report.above;
  if (report.labelled) {
    json["wrong"] = report.wrong;
    json["chosen_wrong"] = report.chosen_wrong;
    json["apfd"] = optional_json(report.apfd);
    json["apfd_random"] = 0.5;
  }
  return json;
}

void print_next(const std::string& model, const NextReport& report) {
  print("{}  on {}, {} to choose from\n", model, report.pool, counted(report.inputs, "input"));
  print_wrapped(report.words, 2);
  if (report.labelled && report.wrong > 0) {
    const double expected = double(report.chosen.size()) * double(report.wrong) / double(report.inputs);
    print_wrapped(
        fmt::format("the pool has labels: the prediction is wrong for {} of {} chosen inputs; drawn at random "
                    "it would be {} on average{}",
                    report.chosen_wrong, report.chosen.size(), findings::plain(expected),
                    report.apfd ? fmt::format("; APFD {:.3f}, in random order 0.5", *report.apfd) : ""),
        2);
  }
  print("\n");
  Table table{{"", "input", "predicted", "confidence", report.score_name}, "rllrr", 2};
  for (size_t rank = 0; rank < std::min(report.chosen.size(), kShown); ++rank) {
    const ChosenInput& one = report.chosen[rank];
    table.rows.push_back({std::to_string(rank + 1), one.id, one.predicted,
                          one.confidence ? fmt::format("{:.1f} %", 100 * *one.confidence) : "",
                          one.score ? fmt::format("{:.4g}", *one.score) : ""});
  }
  print_table(table);
  if (report.chosen.size() > kShown) print("  … and {} more\n", report.chosen.size() - kShown);
}

}  // namespace

int next(const Common& common, const NextOptions& options) {
  selection::NextRequest request{options.method, options.on, options.layers, options.count};
  selection::check_request(request);
  session::Request flags = request_of(common, options);
  session::Request other = flags;
  other.limit = 0, other.note = {};  // --limit is about the pool, and what the model is fed with is told of it
  flags.data.clear(), flags.train.clear();
  flags.test = selection::pool_spec(options.pool);
  session::Session session(flags), known(other);
  const Examined examined = examine(common, options, session, "next");
  if (examined.stop) return *examined.stop;
  const NextReport report = selection::choose_next(session, known, request);
  const RunFolder& folder = session.folder("next");
  const std::string table = options.product.empty() ? folder.file("chosen.csv") : options.product;
  selection::write_chosen(folder.file("chosen.csv"), report);
  if (!options.product.empty()) selection::write_chosen(options.product, report);
  Json json = next_json(report, request.on.empty() ? request.method : "unit");
  json["model"] = session.model_name();
  json["preflight"] = evidence::preflight_json(examined.preflight);
  json["run"] = folder.path();
  json["seconds"] = report.seconds;
  write_file(folder.file("next.json"), evidence::dump(json, 2));
  session.finish(report.seconds, 0);
  if (common.json) return print_json(json), 0;
  print_next(session.model_name(), report);
  print("\n  chosen: {}\n", table);
  return 0;
}

}  // namespace netmend::app
