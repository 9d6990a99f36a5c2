#include "netmend/check_report.h"

#include <chrono>
#include <ctime>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "base/version.h"
#include "checkup/evidence.h"
#include "netmend/show.h"
#include "report/page.h"

namespace netmend::app {
namespace {

std::string now_text() {
  std::time_t now = std::time(nullptr);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", std::localtime(&now));
  return text;
}

Json run_json(const ReportParts& parts) {
  int64_t units = 0, weights = 0;
  std::vector<model::Layer> layers = executor::find_layers(*parts.graph);
  for (const model::Layer& layer : layers) units += layer.units;
  for (model::ValueId id : executor::find_parameters(*parts.graph)) weights += parts.graph->constant(id).numel();
  std::vector<std::string> words{"netmend"};
  for (size_t i = 1; i < parts.common.arguments.size(); ++i)
    words.push_back(findings::shell_word(parts.common.arguments[i]));
  Json json = {{"command", join(words, " ")},
               {"version", kVersion},
               {"started", now_text()},
               {"seconds", parts.seconds},
               {"seed", parts.common.seed},
               {"model",
                {{"name", parts.model},
                 {"checksum", file_checksum(parts.model)},
                 {"layers", layers.size()},
                 {"units", units},
                 {"weights", weights}}},
               {"data", Json::array()},
               {"pictures", parts.pictures}};
  for (const auto& split : parts.data)
    json["data"].push_back({{"split", split.name}, {"spec", split.spec}, {"size", split.size}, {"used", split.used}});
  return json;
}

/// Metric, worst class, worst slice, failures.
Json tiles(const ReportParts& parts, const Json& evidence) {
  Json list = Json::array();
  if (!parts.checkup) return list;
  const auto& result = parts.checkup->context->test.result;
  const auto& settings = parts.checkup->context->settings;
  if (!result.metrics.empty()) {
    const observers::Metric& metric = result.metrics[0];
    std::string text = figure_text(metric.name, metric.estimate);
    const size_t open = text.find(" (");
    list.push_back(
        {{"name", metric.name},
         {"value", text.substr(0, open)},
         {"detail", open == std::string::npos ? "" : "95 %: " + text.substr(open + 2, text.size() - open - 3)}});
  }
  const observers::ClassResult* worst = nullptr;
  for (const observers::ClassResult& one : result.per_class)
    if (one.samples > 0 && (!worst || one.recall < worst->recall)) worst = &one;
  if (worst && result.per_class.size() > 1)
    list.push_back({{"name", "worst class"},
                    {"value", fmt::format("{:.1f} %", 100 * worst->recall)},
                    {"detail", fmt::format("{}, {} inputs", worst->name, with_commas(worst->samples))},
                    {"filter", {{"class", worst->name}}}});
  const Json* slice = nullptr;
  if (evidence.contains("slices"))
    for (const Json& one : evidence["slices"])
      if (one["source"] != "cluster" && (!slice || one["value"] < (*slice)["value"])) slice = &one;
  if (slice)
    list.push_back({{"name", "worst slice"},
                    {"value", fmt::format("{:.1f} %", 100 * (*slice)["value"].get<double>())},
                    {"detail", (*slice)["name"]},
                    {"filter", {{"slice", (*slice)["name"]}}}});
  if (settings.task != observers::Task::kNone && (settings.task != observers::Task::kNumber || settings.tolerance >= 0))
    list.push_back({{"name", "failures"},
                    {"value", with_commas(result.samples - result.correct)},
                    {"detail", fmt::format("of {} tests", with_commas(result.samples))}});
  return list;
}

Json finding_list(const ReportParts& parts) {
  Json list = findings_json(parts.view.findings);
  if (!parts.checkup) return list;
  for (Json& finding : list)
    for (Json& input : finding["inputs"]) {
      const checkup::Context& context = *parts.checkup->context;
      const bool train = input["split"] == "train";
      if (train && !context.train) continue;
      input["id"] = (train ? *context.train : context.test).data->id(input["sample"].get<int64_t>());
    }
  return list;
}

/// Flips name samples; the report's table of inputs says which rows those are.
void add_compare(Json& evidence, const Json& compare) {
  std::map<int64_t, int64_t> rows;
  const Json &splits = evidence["inputs"]["split"], &samples = evidence["inputs"]["sample"];
  for (size_t i = 0; i < samples.size(); ++i)
    if (splits[i] == 0) rows[samples[i].get<int64_t>()] = int64_t(i);
  evidence["compare"] = compare;
  evidence["compare"]["flips"] = Json::array();
  for (const Json& flip : compare["flips"])
    if (auto hit = rows.find(flip["sample"].get<int64_t>()); hit != rows.end())
      evidence["compare"]["flips"].push_back(
          {{"row", hit->second}, {"fixed", flip["fixed"]}, {"confidence_before", nullptr}});
}

Json method(const ReportParts& parts) {
  Json list = Json::array();
  auto add = [&](const std::string& name, const std::string& text) {
    list.push_back({{"name", name}, {"text", text}});
  };
  add("intervals",
      "95 %: Wilson's for shares, carried through for means of classes; changes by Bonett and Price, p by McNemar's "
      "exact test.");
  add("levels",
      "blocker: other results cannot be trusted; serious: at least 1 point of the metric or 5 points in a class or "
      "slice that something could be done about; minor; note.");
  add("sureness", "sure: counted; likely: held on inputs that it was not found on, or over resamples; hint.");
  add("units",
      "A unit is an output feature of a layer; its value for an input is the mean over positions after the "
      "activation.");
  if (parts.checkup)
    for (const auto& [what, seconds] : parts.checkup->times) add("time: " + what, fmt::format("{:.1f} s", seconds));
  return list;
}

}  // namespace

std::string write_report(const RunFolder& folder, const ReportParts& parts) {
  Json more = Json::object();
  if (parts.checkup) {
    checkup::EvidenceOptions how;
    how.pictures = parts.pictures;
    more = checkup::evidence(*parts.checkup, parts.view.findings, how);
  }
  Json json = {{"format", "netmend.report/1"}, {"run", run_json(parts)}, {"verdict", parts.view.verdict}};
  if (parts.checkup) {
    const checkup::Context& context = *parts.checkup->context;
    json["task"] = task_name(context.settings.task);
    if (!context.test.result.metrics.empty()) {
      json["metric"] = estimate_json(context.test.result.metrics[0].estimate);
      json["metric"]["name"] = context.test.result.metrics[0].name;
      json["metric"]["error"] = observers::is_error(context.test.result.metrics[0].name);
    }
  }
  json["tiles"] = tiles(parts, more);
  json["findings"] = finding_list(parts);
  json["accepted"] = findings_json(parts.view.known.accepted);
  json["passed"] = Json::array();
  for (const checkup::Passed& one : parts.view.passed)
    json["passed"].push_back({{"what", one.what}, {"value", one.value}});
  json["skipped"] = skipped_json(parts.view.skipped);
  json["preflight"] = {{"lines", Json::array()}, {"tried", Json::array()}};
  if (parts.preflight) {
    for (const checkup::Line& line : parts.preflight->lines)
      json["preflight"]["lines"].push_back({{"text", line.text}, {"holds", line.holds}});
    for (const checkup::Tried& tried : parts.preflight->tried)  // what was tried without need is no news
      if (tried.runs && parts.preflight->blocker)
        json["preflight"]["tried"].push_back(
            {{"words", tried.words}, {"line", tried.line}, {"accuracy", estimate_json(tried.accuracy)}});
  }
  json["method"] = method(parts);
  if (!parts.compare.is_null()) add_compare(more, parts.compare);
  json.update(more);
  write_file(folder.file("evidence.json"), json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  report::write_page(folder.path());
  return folder.file("report.html");
}

}  // namespace netmend::app
