#include "inputs/stress_json.h"

#include <algorithm>

#include "inputs/campaign.h"
#include "observers/figures.h"

namespace netmend::inputs {

std::vector<const MethodResult*> makers(const StressReport& report) {
  std::vector<const MethodResult*> list;
  for (const MethodResult& one : report.methods)
    if (one.skipped.empty() && one.summary.made > 0) list.push_back(&one);
  return list;
}

namespace {

using Json = nlohmann::ordered_json;
using observers::number_json;
using observers::PredictionSettings;

Json optional_text(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json spread_json(const std::optional<Spread>& spread) {
  if (!spread) return nullptr;
  return {{"mean", spread->mean}, {"median", spread->median}, {"max", spread->most}};
}

Json success_json(const Summary& summary) {
  return {{"count", summary.successes},
          {"of", summary.made},
          {"rate", number_json(summary.rate.value)},
          {"low", number_json(summary.rate.low)},
          {"high", number_json(summary.rate.high)}};
}

Json distortion_json(const Summary& summary, const std::string& unit) {
  return {{"l0", spread_json(summary.l0)},
          {"l2", spread_json(summary.l2)},
          {"linf", spread_json(summary.linf)},
          {"unit", unit}};
}

Json classes_json(const Summary& summary, const PredictionSettings& task) {
  Json list = Json::array();
  for (const ClassSummary& own : summary.classes)
    list.push_back({{"class", class_words(task, own.label)},
                    {"inputs", own.made},
                    {"successes", own.successes},
                    {"rate", double(own.successes) / double(std::max<int64_t>(1, own.made))}});
  return list;
}

Json coverage_json(const StressReport& report) {
  Json list = Json::array();
  for (const CoverageGain& gain : report.coverage) {
    Json row = {{"name", gain.criterion},
                {"before", number_json(gain.before.value)},
                {"after", number_json(gain.after.value)},
                {"covered_before", gain.before.covered},
                {"covered_after", gain.after.covered},
                {"total", gain.before.total < 0 ? Json(nullptr) : Json(gain.before.total)},
                {"methods", Json::array()}};
    const std::vector<const MethodResult*> made = makers(report);
    for (size_t m = 0; m < std::min(made.size(), gain.by_method.size()); ++m)
      row["methods"].push_back({{"method", made[m]->name}, {"after", number_json(gain.by_method[m].value)}});
    list.push_back(std::move(row));
  }
  return list;
}

Json method_json(const MethodResult& one, const std::string& unit, const PredictionSettings& task) {
  Json row = {{"method", one.name},
              {"inputs", one.summary.inputs},
              {"made", one.summary.made},
              {"success", success_json(one.summary)},
              {"distortion", distortion_json(one.summary, unit)},
              {"per_class", classes_json(one.summary, task)}};
  if (one.eps > 0) row["eps"] = one.eps;
  if (one.steps > 0) row["steps"] = one.steps;
  if (one.cut) row["cut_by_budget"] = true;
  if (one.fuzz)
    row["fuzz"] = {{"rounds", one.fuzz->rounds}, {"resumed", one.fuzz->resumed},
                   {"tried", one.fuzz->tried},   {"failing", one.fuzz->failing},
                   {"kept", one.fuzz->kept},     {"goals_of_seeds", one.fuzz->goals_of_seeds},
                   {"goals", one.fuzz->goals}};
  row["seconds"] = one.seconds;
  row["inputs_per_second"] = double(one.summary.inputs) / std::max(one.seconds, 1e-9);
  return row;
}

}  // namespace

nlohmann::ordered_json to_json(const StressReport& report, const PredictionSettings& task) {
  Json json = {{"inputs", report.all.inputs},
               {"success", success_json(report.all)},
               {"distortion", distortion_json(report.all, report.unit)},
               {"methods", Json::array()},
               {"skipped", Json::array()}};
  for (const MethodResult& one : report.methods)
    if (one.skipped.empty())
      json["methods"].push_back(method_json(one, report.unit, task));
    else
      json["skipped"].push_back({{"method", one.name}, {"reason", one.skipped}});
  if (!report.coverage.empty()) json["coverage"] = coverage_json(report);
  json["range"] = optional_text(report.range);
  json["right"] = report.right;
  json["of"] = report.of;
  json["changed_by_saving"] = report.changed_by_saving;
  json["file"] = optional_text(report.file);
  json["data_made"] = optional_text(report.made_data);
  json["sheet"] = optional_text(report.sheet);
  json["seconds"] = report.seconds;
  return json;
}

}  // namespace netmend::inputs
