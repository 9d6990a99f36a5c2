#include "evidence/run_report.h"

#include <ctime>
#include <filesystem>
#include <map>

#include "base/escape.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "base/version.h"
#include "edits/edit_file.h"
#include "evidence/evidence.h"
#include "evidence/json.h"
#include "executor/layers.h"
#include "findings/phrases.h"
#include "observers/figures.h"
#include "report/page.h"

namespace netmend::evidence {
namespace {

using Json = nlohmann::ordered_json;
using checks::Checkup;
using findings::Finding;
using observers::estimate_json;

std::string now_text() {
  std::time_t now = std::time(nullptr);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", std::localtime(&now));
  return text;
}

/// Of the model's file; "" for a model in memory.
std::string checksum_of(const session::Session& session) {
  std::error_code error;
  return std::filesystem::is_regular_file(session.model_name(), error) ? file_checksum(session.model_name()) : "";
}

Json findings_list(const std::vector<Finding>& found) {
  Json list = Json::array();
  for (const Finding& finding : found) {
    list.push_back(findings::to_json(finding));
    if (finding.numbers.contains("toml")) list.back()["toml"] = finding.numbers["toml"];  // the line to write down
  }
  return list;
}

const observers::PredictionResult* result_of(const Checkup& checkup) {
  return checkup.seen && checkup.seen->test && !checkup.seen->test->rows.empty() ? &checkup.seen->test->result
                                                                                 : nullptr;
}

Json metric_json(const Checkup& checkup) {
  const observers::PredictionResult* result = result_of(checkup);
  if (!result || result->metrics.empty()) return nullptr;
  Json json = estimate_json(result->metrics[0].estimate);
  json["name"] = result->metrics[0].name;
  return json;
}

Json run_json(session::Session& session, bool pictures, double seconds) {
  int64_t units = 0, weights = 0;
  std::vector<model::Layer> layers = executor::find_layers(session.graph());
  for (const model::Layer& layer : layers) units += layer.units;
  for (model::ValueId id : executor::find_parameters(session.graph())) weights += session.graph().constant(id).numel();
  Shell command = Shell::of("netmend");
  for (size_t i = 1; i < session.request().arguments.size(); ++i)
    command += Shell::of(" {}", session.request().arguments[i]);
  Json json = {{"command", command},
               {"version", kVersion},
               {"started", now_text()},
               {"seconds", seconds},
               {"seed", session.request().seed},
               {"budget", session.budget().name()},
               {"timed", session.budget().timed()},
               {"model",
                {{"name", session.model_name()},
                 {"checksum", checksum_of(session)},
                 {"layers", layers.size()},
                 {"units", units},
                 {"weights", weights}}},
               {"data", Json::array()},
               {"pictures", pictures}};
  if (!session.has_data()) return json;
  for (const session::Split* split : {&session.test(), session.train()})
    if (split)
      json["data"].push_back({{"split", split->name},
                              {"spec", split->data->info().spec},
                              {"size", split->inputs()},
                              {"used", split->used()}});
  return json;
}

/// A rule's accuracy is that on held-out inputs, as in its finding; a group's that on all of its inputs.
std::string slice_detail(const Json& slice) {
  const bool rule = slice.contains("held_out");
  const auto inputs = slice[rule ? "held_out" : "samples"].get<int64_t>();
  return fmt::format("{}: {} {}input{}", slice["name"].get<std::string>(), with_commas(inputs), rule ? "held-out " : "",
                     inputs == 1 ? "" : "s");
}

/// Metric, worst class, worst slice, failures.
Json tiles(const Checkup& checkup, const Json& evidence) {
  Json list = Json::array();
  const observers::PredictionResult* result = result_of(checkup);
  if (!result) return list;
  const auto& settings = checkup.seen->settings;
  if (!result->metrics.empty()) {
    const observers::Metric& metric = result->metrics[0];
    std::string text = observers::figure_text(metric.name, metric.estimate);
    const size_t open = text.find(" (");
    list.push_back(
        {{"name", metric.name},
         {"value", text.substr(0, open)},
         {"detail", open == std::string::npos ? "" : "95 %: " + text.substr(open + 2, text.size() - open - 3)}});
    const auto& compared = checkup.seen->comparison;
    if (compared && metric.name == "accuracy")
      list.back()["change"] =
          fmt::format("{:+.1f} points against the reference", 100 * compared->flips.whole().change().value);
  }
  if (const observers::ClassResult* worst = observers::worst_class(*result))
    list.push_back({{"name", "worst class"},
                    {"value", fmt::format("{:.1f} %", 100 * worst->recall)},
                    {"detail", fmt::format("class {}: {}", worst->name, findings::counted(worst->samples, "input"))},
                    {"filter", {{"class", worst->name}}}});
  const Json* slice = nullptr;
  if (evidence.contains("slices"))
    for (const Json& one : evidence["slices"])
      if (one["source"] != "cluster" && (!slice || one["value"] < (*slice)["value"])) slice = &one;
  if (slice)
    list.push_back({{"name", "worst slice"},
                    {"value", fmt::format("{:.1f} %", 100 * (*slice)["value"].get<double>())},
                    {"detail", slice_detail(*slice)},
                    {"filter", {{"slice", (*slice)["name"]}}}});
  if (settings.has_right_and_wrong())
    list.push_back({{"name", "failures"},
                    {"value", with_commas(result->samples - result->correct)},
                    {"detail", "of " + findings::counted(result->samples, "test")}});
  return list;
}

/// Findings with the user's names of the inputs they show.
Json named_findings(const Checkup& checkup) {
  Json list = findings_list(checkup.results.findings);
  if (!checkup.seen) return list;
  for (Json& finding : list)
    for (Json& input : finding["inputs"]) {
      const auto& split = input["split"] == "train" ? checkup.seen->train : checkup.seen->test;
      if (split) input["id"] = split->data->id(input["sample"].get<int64_t>());
    }
  return list;
}

/// Findings that netmend.toml accepts, each with who wrote what about it.
Json accepted_findings(const session::Session& session, const Checkup& checkup) {
  Json list = findings_list(checkup.known.accepted);
  for (Json& finding : list)
    for (const findings::Acceptance& one : session.config().accepted)  // of two the later one counts
      if (finding["id"] == one.id)
        finding["accepted"] = {
            {"reason", one.reason}, {"until", one.until}, {"value", observers::number_json(one.value)}};
  return list;
}

/// Flips name samples; the report's table of inputs says which rows those are.
void add_comparison(Json& evidence, const Json& comparison, const observers::PredictionResult& reference) {
  std::map<int64_t, int64_t> rows;
  const Json &splits = evidence["inputs"]["split"], &samples = evidence["inputs"]["sample"];
  for (size_t i = 0; i < samples.size(); ++i)
    if (splits[i] == 0) rows[samples[i].get<int64_t>()] = int64_t(i);
  evidence["compare"] = comparison;
  evidence["compare"]["flips"] = Json::array();
  for (const Json& flip : comparison["flips"])
    if (auto hit = rows.find(flip["sample"].get<int64_t>()); hit != rows.end())
      evidence["compare"]["flips"].push_back(
          {{"row", hit->second}, {"fixed", flip["fixed"]}, {"confidence_before", flip["confidence_before"]}});
  Json confusion = Json::array();  // of a reference that is a model; a baseline has no counts by class
  for (size_t i = 0; i < reference.confusion.size(); ++i)
    for (size_t j = 0; j < reference.confusion[i].size(); ++j)
      if (reference.confusion[i][j] > 0) confusion.push_back({i, j, reference.confusion[i][j]});
  if (!confusion.empty()) evidence["compare"]["confusion"] = std::move(confusion);
}

/// The edits of the trial repair as edits.json; the command that tries them, or none.
Shell write_edits(session::Session& session, const Checkup& checkup) {
  const auto& outcome = checkup.results.repair.repair;
  if (!outcome || outcome->chosen < 0 || !outcome->tried[size_t(outcome->chosen)].best) return {};
  const std::string path = session.folder("check").file("edits.json");
  edits::write_edits(edits::describe(session.graph(), outcome->tried[size_t(outcome->chosen)].best->edits,
                                     session.model_name(), checksum_of(session)),
                     path);
  Shell command = Shell::of("netmend whatif {}", session.model_name());
  if (const Shell words = session.words(false); !words.empty()) command += Shell::of(" {}", words);
  return command + Shell::of(" {}", path);
}

Json tables_of_evidence(const Checkup& checkup, bool pictures) {
  if (!result_of(checkup)) return Json::object();
  EvidenceOptions how;
  how.pictures = pictures;
  try {
    return evidence(checkup, checkup.results.findings, how);
  } catch (const Interrupted&) {
    return Json::object();
  }
}

/// `pictures`: slices may speak of their properties.
Json method(bool pictures) {
  Json list = Json::array();
  auto add = [&](const std::string& name, const std::string& text) {
    list.push_back({{"name", name}, {"text", text}});
  };
  add("intervals",
      "95 % intervals: Wilson's for shares, combined for means over classes; of changes, Bonett and Price's; p-values "
      "by "
      "McNemar's exact test.");
  add("levels",
      "blocker: other results cannot be trusted; serious: at least 1 point of the metric or 5 points in a class or "
      "slice, with a cause that can be removed; minor; note.");
  add("certainty",
      "confirmed: counted, or confirmed on held-out data; likely: tested on inputs that were not used to find it, or "
      "stable over resamples; possible.");
  add("units",
      "A unit is an output feature of a layer; its value for an input is the mean over positions after the "
      "activation.");
  if (pictures)
    add("properties",
        "Of images, as shares of their range. Brightness: mean; contrast: standard deviation; filled: share of the "
        "pixels that differ from the background; sharpness: mean difference between neighbouring pixels; "
        "colourfulness: mean difference between the strongest and the weakest colour channel.");
  return list;
}

}  // namespace

Json findings_document(const Checkup& checkup) {
  Json json = {{"verdict", checkup.verdict}, {"metric", metric_json(checkup)}};
  if (checkup.interrupted) json["partial"] = true;
  json["findings"] = findings_list(checkup.results.findings);
  json["accepted"] = findings_list(checkup.known.accepted);
  json["passed"] = Json::array();
  for (const checks::Passed& one : checkup.results.passed)
    json["passed"].push_back({{"what", one.what}, {"value", one.value}});
  json["skipped"] = Json::array();
  for (const checks::Skipped& one : checkup.results.skipped)
    json["skipped"].push_back({{"what", one.what}, {"enable", one.enable}});
  if (checkup.preflight) json["preflight"] = preflight_json(*checkup.preflight);
  if (const observers::PredictionResult* result = result_of(checkup))
    json["result"] = result_json(checkup.seen->settings, *result);
  return json;
}

std::string write_report(session::Session& session, Checkup& checkup, const ReportOptions& options) {
  // All that Ctrl-C can stop comes before the first file.
  Json more = tables_of_evidence(checkup, options.pictures);
  if (was_interrupted()) stop(checkup);
  const RunFolder& folder = session.folder("check");
  const Json found = findings_document(checkup);
  write_file(folder.file("findings.json"), dump(found, 2));
  if (more.contains("repair")) more["repair"]["whatif"] = write_edits(session, checkup);
  double seconds = 0;
  for (const auto& [what, took] : checkup.times) seconds += took;
  Json json = {{"format", "netmend.report/1"},
               {"run", run_json(session, options.pictures, seconds)},
               {"verdict", checkup.verdict},
               {"partial", checkup.interrupted}};
  if (const observers::PredictionResult* result = result_of(checkup)) {
    json["task"] = task_name(checkup.seen->settings.task);
    if (!result->metrics.empty()) {
      json["metric"] = found["metric"];
      json["metric"]["error"] = observers::is_error(result->metrics[0].name);
    }
  }
  json["tiles"] = tiles(checkup, more);
  json["findings"] = named_findings(checkup);
  json["accepted"] = accepted_findings(session, checkup);
  for (const char* key : {"passed", "skipped"}) json[key] = found[key];
  json["preflight"] = {{"lines", Json::array()}, {"tried", Json::array()}};
  if (checkup.preflight) {
    json["preflight"]["lines"] = found["preflight"]["lines"];
    for (const preflight::Tried& tried : checkup.preflight->tried)  // what was tried without need is no news
      if (tried.runs && checkup.preflight->blocker)
        json["preflight"]["tried"].push_back(
            {{"words", tried.words}, {"line", tried.line}, {"accuracy", estimate_json(tried.accuracy)}});
  }
  const bool pictures = checkup.seen && checkup.seen->test && !checkup.seen->test->data->info().features.empty() &&
                        checkup.seen->test->data->info().features[0].image;
  json["method"] = method(pictures);
  json["latency"] = options.latency;
  if (!checkup.results.comparison.is_null() && more.contains("inputs"))
    add_comparison(more, checkup.results.comparison,
                   checkup.seen->comparison ? checkup.seen->comparison->before : observers::PredictionResult{});
  json.update(more);
  write_file(folder.file(report::kEvidence), dump(json));
  report::write_page(folder.path());
  return folder.file(report::kPage);
}

}  // namespace netmend::evidence
