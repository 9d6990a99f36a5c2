#include "netmend/stress_report.h"

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/text.h"
#include "netmend/show.h"
#include "observers/sample_table.h"

namespace netmend::app {
namespace {

using inputs::Summary;

Json spread_json(const std::optional<inputs::Spread>& spread) {
  if (!spread) return nullptr;
  return {{"mean", spread->mean}, {"median", spread->median}, {"max", spread->most}};
}

Json success_json(const Summary& summary) {
  Json json = {{"count", summary.successes}, {"of", summary.made}};
  const bool known = std::isfinite(summary.rate.value);
  json["rate"] = known ? Json(summary.rate.value) : Json(nullptr);
  json["low"] = known ? Json(summary.rate.low) : Json(nullptr);
  json["high"] = known ? Json(summary.rate.high) : Json(nullptr);
  return json;
}

Json distortion_json(const Summary& summary, const std::string& unit) {
  return {{"l0", spread_json(summary.l0)},
          {"l2", spread_json(summary.l2)},
          {"linf", spread_json(summary.linf)},
          {"unit", unit}};
}

std::string class_name(const observers::PredictionSettings& settings, int64_t number) {
  if (number < 0) return "no number";
  return number < int64_t(settings.classes.size()) ? settings.classes[size_t(number)] : std::to_string(number);
}

Json classes_json(const Summary& summary, const observers::PredictionSettings& settings) {
  Json list = Json::array();
  for (const inputs::ClassSummary& own : summary.classes)
    list.push_back({{"class", class_name(settings, own.label)},
                    {"inputs", own.made},
                    {"successes", own.successes},
                    {"rate", double(own.successes) / double(std::max<int64_t>(1, own.made))}});
  return list;
}

Json value_json(const observers::Figure& figure) {
  return std::isfinite(figure.value) ? Json(figure.value) : Json(nullptr);
}

Json coverage_json(const StressReport& report) {
  Json list = Json::array();
  for (const CoverageGain& gain : report.coverage) {
    Json row = {{"name", gain.before.name},
                {"before", value_json(gain.before)},
                {"after", value_json(gain.after)},
                {"covered_before", gain.before.covered},
                {"covered_after", gain.after.covered},
                {"total", gain.before.total < 0 ? Json(nullptr) : Json(gain.before.total)},
                {"methods", Json::array()}};
    size_t next = 0;
    for (const MethodReport& one : report.methods)
      if (one.skipped.empty() && one.summary.made > 0)
        row["methods"].push_back({{"method", one.name}, {"after", value_json(gain.by_method[next++])}});
    list.push_back(std::move(row));
  }
  return list;
}

std::string figure_words(const observers::Figure& figure) {
  return figure.total < 0 ? fmt::format("{:.4g}", figure.value) : fmt::format("{:.2f} %", 100 * figure.value);
}

void print_coverage_gain(const StressReport& report) {
  for (const CoverageGain& gain : report.coverage) {
    fmt::print("\n  {:<6} the originals reach {}, with all that was made {}", gain.before.name,
               figure_words(gain.before), figure_words(gain.after));
    size_t next = 0;
    for (const MethodReport& one : report.methods)
      if (one.skipped.empty() && one.summary.made > 0 && gain.by_method.size() > 1)
        fmt::print("{}{} {}", next ? ", " : "\n         with ", one.name, figure_words(gain.by_method[next])), ++next;
  }
  if (!report.coverage.empty()) fmt::print("\n");
}

std::string spread_text(const std::optional<inputs::Spread>& spread) {
  return spread ? fmt::format("{:.3g}", spread->median) : "–";
}

/// Methods with one reason share a line.
void print_skipped(const StressReport& report) {
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;
  for (const MethodReport& one : report.methods) {
    if (one.skipped.empty()) continue;
    auto same =
        std::find_if(reasons.begin(), reasons.end(), [&](const auto& reason) { return reason.first == one.skipped; });
    if (same == reasons.end()) same = reasons.insert(reasons.end(), {one.skipped, {}});
    same->second.push_back(one.name);
  }
  for (size_t i = 0; i < reasons.size(); ++i)
    fmt::print("{}{}: {}\n", i ? "            " : "\n  skipped   ", join(reasons[i].second, ", "), reasons[i].first);
}

}  // namespace

Json stress_json(const StressReport& report, const observers::PredictionSettings& settings) {
  Json json = {{"inputs", report.all.inputs},
               {"success", success_json(report.all)},
               {"distortion", distortion_json(report.all, report.unit)},
               {"methods", Json::array()},
               {"skipped", Json::array()}};
  for (const MethodReport& one : report.methods) {
    if (!one.skipped.empty()) {
      json["skipped"].push_back({{"method", one.name}, {"reason", one.skipped}});
      continue;
    }
    Json row = {{"method", one.name},
                {"inputs", one.summary.inputs},
                {"made", one.summary.made},
                {"success", success_json(one.summary)},
                {"distortion", distortion_json(one.summary, report.unit)},
                {"per_class", classes_json(one.summary, settings)}};
    if (one.settings.eps > 0) row["eps"] = one.settings.eps;
    if (one.settings.steps > 0) row["steps"] = one.settings.steps;
    if (one.result.out_of_time) row["out_of_time"] = true;
    if (one.fuzz)
      row["fuzz"] = {{"rounds", one.fuzz->rounds}, {"resumed", one.fuzz->resumed},
                     {"tried", one.fuzz->tried},   {"failing", one.fuzz->failing},
                     {"kept", one.fuzz->kept},     {"goals_of_seeds", one.fuzz->covered_before},
                     {"goals", one.fuzz->covered}};
    row["seconds"] = one.result.seconds;
    row["inputs_per_second"] = double(one.summary.inputs) / std::max(one.result.seconds, 1e-9);
    json["methods"].push_back(std::move(row));
  }
  if (!report.coverage.empty()) json["coverage"] = coverage_json(report);
  json["range"] = report.range.empty() ? Json(nullptr) : Json(report.range);
  json["right"] = report.right;
  json["of"] = report.of;
  json["changed_by_saving"] = report.changed_by_saving;
  json["file"] = report.file.empty() ? Json(nullptr) : Json(report.file);
  json["data_made"] = report.spec.empty() ? Json(nullptr) : Json(report.spec);
  json["sheet"] = report.sheet.empty() ? Json(nullptr) : Json(report.sheet);
  json["seconds"] = report.seconds;
  return json;
}

void print_stress(const StressReport& report, const Judged& judged) {
  fmt::print("{}  on {}\n", judged.subject.model_name, judged.subject.data->info().spec);
  fmt::print(
      "  {} of {} inputs are answered right; a success is another answer than before, as read back from the file\n",
      with_commas(report.right), with_commas(report.of));
  if (!report.range.empty()) fmt::print("  valid raw values {}; distances in {}\n", report.range, report.unit);
  fmt::print("\n  {:<15} {:>7}  {:>22}   {:>9} {:>9} {:>9}   {:>9}\n", "method", "inputs", "answered otherwise", "L0",
             "L2", "Linf", "inputs/s");
  bool unmade = false;
  for (const MethodReport& one : report.methods) {
    if (!one.skipped.empty()) continue;
    const Summary& s = one.summary;
    const std::string rate =
        s.made ? fmt::format("{:.1f} % ({:.1f}–{:.1f})", 100 * s.rate.value, 100 * s.rate.low, 100 * s.rate.high)
               : "nothing valid made";
    fmt::print("  {:<15} {:>7}  {:>22}   {:>9} {:>9} {:>9}   {:>9}{}\n", one.name, with_commas(s.made), rate,
               s.l0 ? with_commas(int64_t(s.l0->median)) : "–", spread_text(s.l2), spread_text(s.linf),
               with_commas(int64_t(double(s.inputs) / std::max(one.result.seconds, 1e-9))),
               one.result.out_of_time ? "  (--budget ended it)" : "");
    unmade = unmade || s.made < s.inputs;
  }
  fmt::print("  distances are medians of those answered otherwise\n");
  for (const MethodReport& one : report.methods)
    if (unmade && one.skipped.empty() && one.summary.made < one.summary.inputs)
      fmt::print("  {}: no valid change was found for {} of {} inputs\n", one.name,
                 with_commas(one.summary.inputs - one.summary.made), with_commas(one.summary.inputs));
  for (const MethodReport& one : report.methods)
    if (one.fuzz)
      fmt::print(
          "  fuzz: {} rounds{}, {} inputs tried, {} joined the queue, {} answered otherwise; {} goals covered, {} by "
          "the "
          "seeds\n",
          one.fuzz->rounds, one.fuzz->resumed ? fmt::format(" ({} found on disk)", one.fuzz->resumed) : "",
          with_commas(one.fuzz->tried), with_commas(one.fuzz->kept), with_commas(one.fuzz->failing),
          with_commas(one.fuzz->covered), with_commas(one.fuzz->covered_before));
  print_coverage_gain(report);
  std::vector<inputs::ClassSummary> weak = report.all.classes;
  std::stable_sort(weak.begin(), weak.end(),
                   [](const auto& a, const auto& b) { return a.successes * b.made > b.successes * a.made; });
  if (weak.size() > 1 && weak[0].successes > 0) {
    std::vector<std::string> words;
    for (size_t i = 0; i < std::min<size_t>(4, weak.size()); ++i)
      words.push_back(fmt::format("{} {:.1f} %", printable(class_name(judged.settings, weak[i].label)),
                                  100 * double(weak[i].successes) / double(weak[i].made)));
    fmt::print("\n  easiest to upset: {}\n", join(words, ", "));
  }
  if (report.changed_by_saving > 0)
    fmt::print("  {} answers differ between the inputs as they were made and as they were read back\n",
               with_commas(report.changed_by_saving));
  print_skipped(report);
}

void write_changes(const std::string& path, const StressReport& report, const Judged& judged) {
  const dataset::Dataset& data = *judged.subject.data;
  write_file(path, [&](std::ostream& out) {
    out << "method,sample,id,label,before,after,made,success,l0,l2,linf\n";
    for (const MethodReport& one : report.methods)
      for (const inputs::Attempt& a : one.result.attempts) {
        auto name = [&](int64_t number) { return observers::csv_field(class_name(judged.settings, number)); };
        out << fmt::format("{},{},{},{},{},{},{:d},{:d},{:.9g},{:.9g},{:.9g}\n", one.name, a.sample,
                           observers::csv_field(data.id(a.sample)), a.label < 0 ? "" : name(a.label), name(a.before),
                           name(a.after), a.made, a.success(), a.distance.l0, a.distance.l2, a.distance.linf);
      }
  });
}

}  // namespace netmend::app
