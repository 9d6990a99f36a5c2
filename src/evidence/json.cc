#include "evidence/json.h"

#include <cmath>

#include "base/json.h"
#include "observers/figures.h"

namespace netmend::evidence {

using Json = nlohmann::ordered_json;
using observers::estimate_json;
using observers::Task;

std::string dump(const Json& json, int indent) { return json_text(json, indent) + "\n"; }

Json preflight_json(const preflight::Preflight& preflight) {
  Json json = {
      {"passed", !preflight.blocker}, {"inputs", preflight.inputs}, {"lines", Json::array()}, {"tried", Json::array()}};
  for (const preflight::Line& line : preflight.lines)
    json["lines"].push_back({{"text", line.text}, {"holds", line.holds}});
  for (const preflight::Tried& tried : preflight.tried)
    json["tried"].push_back({{"about", tried.about},
                             {"setup", tried.words},
                             {"line", tried.line},
                             {"runs", tried.runs},
                             {"figure", estimate_json(tried.accuracy)}});
  return json;
}

Json result_json(const observers::PredictionSettings& settings, const observers::PredictionResult& result) {
  Json json;
  const bool judged = settings.task != Task::kNone, rated = judged && settings.task != Task::kNumber;
  json["samples"] = result.samples;
  json["task"] = task_name(settings.task);
  json["metric"] = settings.metric.empty() ? Json(nullptr) : Json(settings.metric);
  json["metrics"] = Json::object();
  for (const observers::Metric& metric : result.metrics) json["metrics"][metric.name] = estimate_json(metric.estimate);
  json["accuracy"] = rated ? Json(result.accuracy) : Json(nullptr);
  json["loss"] = judged && std::isfinite(result.loss) ? Json(result.loss) : Json(nullptr);
  if (settings.task == Task::kNumber) json["mae"] = result.mae, json["rmse"] = result.rmse;
  json["not_finite"] = result.not_finite;
  json["classes"] = settings.classes;
  json["per_class"] = Json::array();
  for (const observers::ClassResult& about : result.per_class)
    json["per_class"].push_back({{"class", about.name},
                                 {"samples", about.samples},
                                 {"correct", about.correct},
                                 {"recall", about.recall},
                                 {"low", about.samples ? Json(about.range.low) : Json(nullptr)},
                                 {"high", about.samples ? Json(about.range.high) : Json(nullptr)},
                                 {"precision", about.precision}});
  json["confusion"] = result.confusion;
  return json;
}

}  // namespace netmend::evidence
