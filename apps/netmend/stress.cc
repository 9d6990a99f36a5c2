// netmend stress: new inputs from old ones, and how often the prediction changes.
#include "inputs/stress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/text.h"
#include "evidence/json.h"
#include "inputs/stress_json.h"
#include "netmend/show.h"
#include "observers/figures.h"
#include "observers/task.h"

namespace netmend::app {
namespace {

using inputs::CoverageGain;
using inputs::Covered;
using inputs::MethodResult;
using inputs::StressReport;
using inputs::Summary;
using observers::PredictionSettings;

std::string covered_text(const Covered& covered) {
  return covered.total < 0 ? fmt::format("{:.4g}", covered.value) : fmt::format("{:.2f} %", 100 * covered.value);
}

void print_coverage_gain(const StressReport& report) {
  const std::vector<const MethodResult*> made = inputs::makers(report);
  for (const CoverageGain& gain : report.coverage) {
    print("\n  {:<6} the originals cover {}, together with the new inputs {}", gain.criterion,
          covered_text(gain.before), covered_text(gain.after));
    for (size_t m = 0; gain.by_method.size() > 1 && m < made.size(); ++m)
      print("{}{} {}", m ? ", " : "\n         with ", made[m]->name, covered_text(gain.by_method[m]));
  }
  if (!report.coverage.empty()) print("\n");
}

std::string speed_text(double per_second) {
  return per_second < 10 ? fmt::format("{:.2g}", per_second) : with_commas(std::llround(per_second));
}

void print_methods(const StressReport& report) {
  auto median = [](const std::optional<inputs::Spread>& spread) {
    return spread ? fmt::format("{:.3g}", spread->median) : std::string("–");
  };
  Table table{{"method", "inputs", "success rate", "L0", "L2", "Linf", "inputs/s", ""}, "lrrrrrrl"};
  for (const MethodResult& one : report.methods) {
    if (!one.skipped.empty()) continue;
    const Summary& s = one.summary;
    const std::string rate =
        s.made ? fmt::format("{:.1f} % ({:.1f}–{:.1f})", 100 * s.rate.value, 100 * s.rate.low, 100 * s.rate.high)
               : "no valid input";
    table.rows.push_back({one.name, with_commas(s.made), rate, s.l0 ? with_commas(int64_t(s.l0->median)) : "–",
                          median(s.l2), median(s.linf), speed_text(double(s.inputs) / std::max(one.seconds, 1e-9)),
                          one.cut ? "(as many as --budget allows)" : ""});
  }
  print("\n");
  print_table(table);
  print_wrapped("success: the predicted class changes; sizes of perturbations are medians over successes", 2);
  for (const MethodResult& one : report.methods)
    if (one.skipped.empty() && one.summary.made < one.summary.inputs)
      print_wrapped(fmt::format("{}: no valid change was found for {} of {} inputs", one.name,
                                with_commas(one.summary.inputs - one.summary.made), with_commas(one.summary.inputs)),
                    2);
  for (const MethodResult& one : report.methods)
    if (one.fuzz)
      print_wrapped(
          fmt::format(
              "fuzz: rounds: {}{}; inputs: {} tried, {} joined the queue, {} predicted as another class; goals: {} "
              "covered, {} by the seeds",
              one.fuzz->rounds, one.fuzz->resumed ? fmt::format(" ({} found on disk)", one.fuzz->resumed) : "",
              with_commas(one.fuzz->tried), with_commas(one.fuzz->kept), with_commas(one.fuzz->failing),
              with_commas(one.fuzz->goals), with_commas(one.fuzz->goals_of_seeds)),
          2);
}

void print_weakest_classes(const StressReport& report, const PredictionSettings& task) {
  std::vector<inputs::ClassSummary> weak = report.all.classes;
  std::stable_sort(weak.begin(), weak.end(),
                   [](const auto& a, const auto& b) { return a.successes * b.made > b.successes * a.made; });
  if (weak.size() < 2 || weak[0].successes == 0) return;
  std::vector<std::string> words;
  for (size_t i = 0; i < std::min<size_t>(4, weak.size()); ++i)
    words.push_back(fmt::format("{}: {:.1f} %", printable(inputs::class_words(task, weak[i].label)),
                                100 * double(weak[i].successes) / double(weak[i].made)));
  print("\n");
  print_wrapped("highest success rate by class: " + join(words, ", "), 2);
}

/// Methods with one reason share a line.
void print_skipped(const StressReport& report) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const MethodResult& one : report.methods) {
    if (one.skipped.empty()) continue;
    auto same =
        std::find_if(reasons.begin(), reasons.end(), [&](const auto& reason) { return reason.first == one.skipped; });
    if (same == reasons.end()) same = reasons.insert(reasons.end(), {one.skipped, {}});
    same->second.push_back(one.name);
  }
  for (size_t i = 0; i < reasons.size(); ++i)
    print("{}", i ? "" : "\n"),
        print_labelled(i ? "" : "skipped", fmt::format("{}: {}", join(reasons[i].second, ", "), reasons[i].first));
}

void print_stress(const std::string& model, const StressReport& report, const PredictionSettings& task) {
  print("{}  on {}\n", model, report.data);
  const bool judged = task.task != observers::Task::kNone;
  print_wrapped((judged ? fmt::format("the prediction is correct for {} of {}", with_commas(report.right),
                                      counted(report.of, "input"))
                        : counted(report.of, "input") + " without labels") +
                    "; new inputs are judged as read back from the file",
                2);
  if (!report.range.empty())
    print_wrapped(fmt::format("valid raw values {}; perturbations in {}", report.range, report.unit), 2);
  print_methods(report);
  print_coverage_gain(report);
  print_weakest_classes(report, task);
  if (report.changed_by_saving > 0)
    print_wrapped(fmt::format("predictions that differ between inputs as made and as read back: {}",
                              with_commas(report.changed_by_saving)),
                  2);
  print_skipped(report);
  if (!report.next.empty()) print("\n  next  {}\n", report.next.text());
}

inputs::StressRequest stress_request(const StressOptions& options) {
  inputs::StressRequest request;
  request.method = options.method, request.product = options.product;
  request.eps = options.eps, request.step_size = options.step_size, request.range = options.range;
  request.on = options.on, request.from = options.from, request.as_published = options.as_published;
  request.criteria = options.criteria, request.profile = options.profile, request.queue = options.queue;
  request.units = options.units, request.layers = options.layers;
  request.steps = options.steps, request.tries = options.tries;
  request.confidence = options.confidence, request.round = options.round;
  return request;
}

}  // namespace

int stress(const Common& common, const StressOptions& options) {
  const inputs::StressRequest request = stress_request(options);
  inputs::check_request(request);
  session::Session session(request_of(common, options));
  const Examined examined = examine(common, options, session, "stress");
  if (examined.stop) return *examined.stop;
  const StressReport report = inputs::stress(session, request);
  const int status = report.interrupted ? 130 : 0;
  const RunFolder& folder = session.folder("stress");
  Json json = inputs::to_json(report, session.task());
  json["model"] = session.model_name();
  json["data"] = report.data;
  json["preflight"] = evidence::preflight_json(examined.preflight);
  json["next"] = report.next.empty() ? Json::array() : Json::array({report.next});
  json["run"] = folder.path();
  mark_partial(json, status);
  write_file(folder.file("stress.json"), evidence::dump(json, 2));
  session.finish(report.seconds, status);
  if (common.json) {
    print_json(json);
  } else {
    print_stress(session.model_name(), report, session.task());
    print("  per input: {}/changes.csv{}\n", folder.path(), report.sheet.empty() ? "" : ", images: changed.png");
  }
  if (report.interrupted) say(common, "stopped: these are the results so far");
  return status;
}

}  // namespace netmend::app
