// netmend explain: which units of each layer answers come from, and which parts of single inputs.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "localise/candidates.h"
#include "netmend/explanation.h"
#include "netmend/show.h"
#include "stream/layers.h"

namespace netmend::app {
namespace {

using observers::Importance;
using observers::SampleRow;

constexpr int64_t kMapsUnasked = 4;

explain::Options method_of(const Common& common, const ExplainOptions& options) {
  explain::Options how;
  how.method = explain::parse_method(options.method);
  how.rules = explain::parse_rules(options.rule);
  how.steps = int(options.steps);
  how.precision = options.float64 ? at::kDouble : at::kFloat;
  how.device = pass_options(common).device;
  if (how.method != explain::Method::kRelevance && !options.rule.empty() && options.rule != "z")
    throw InputError(fmt::format("--rule {} belongs to --method lrp", printable(options.rule)),
                     "Leave out one of the two.");
  return how;
}

/// Whose relevance is added up; empty for the usual.
std::function<bool(const SampleRow&)> whose(const ExplainOptions& options, const observers::Target& target) {
  if (!options.on.empty())
    return [target](const SampleRow& row) { return target.side(row) == observers::Side::kFailing; };
  if (options.answers == "all") return [](const SampleRow&) { return true; };
  if (options.answers == "wrong") return [](const SampleRow& row) { return row.right == SampleRow::kWrong; };
  return {};
}

/// Positions of the inputs named; by name first, then by number.
std::vector<int64_t> chosen_inputs(const ExplainOptions& options, const dataset::Dataset& data) {
  if (options.inputs.empty()) return stream::spread(data.size(), kMapsUnasked, 0.5);
  std::vector<int64_t> chosen(options.inputs.size(), -1);
  size_t open = chosen.size();
  for (int64_t sample = 0; sample < data.size() && open > 0; ++sample) {
    std::string id = data.id(sample);
    for (size_t i = 0; i < chosen.size(); ++i)
      if (chosen[i] < 0 && options.inputs[i] == id) chosen[i] = sample, --open;
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    int64_t position = -1;
    if (chosen[i] < 0 && parse_int(options.inputs[i], position) && position >= 0 && position < data.size())
      chosen[i] = position;
    if (chosen[i] < 0)
      throw InputError(
          fmt::format("{} has no input `{}`", data.info().spec, printable(options.inputs[i])),
          fmt::format("It has {} inputs; the first is called `{}`.", with_commas(data.size()), printable(data.id(0))));
  }
  return chosen;
}

Explanation find(const Common& common, const ExplainOptions& options, const Judged& judged, const NamedTarget& target,
                 std::vector<model::Layer> layers) {
  Explanation found;
  found.layers = std::move(layers);
  observers::Predictions predictions(judged.settings, false);
  observers::ImportanceSettings settings{method_of(common, options), whose(options, target.target),
                                         options.tap == "pre"};
  found.importance = std::make_unique<Importance>(judged.subject, judged.settings, found.layers, settings);
  if (found.importance->groups() > 1) found.classes = judged.settings.classes;
  stream::PassResult done =
      stream::run_pass(judged.subject, {&predictions, found.importance.get()}, pass_options(common));
  auto answers = done.collected[0].fold(predictions);
  found.result = observers::finish(predictions, dynamic_cast<const observers::PredictionState&>(*answers));
  found.state = done.collected[1].fold(*found.importance);
  found.seconds = done.seconds;
  found.interrupted = done.interrupted;
  return found;
}

void require_some(const ExplainOptions& options, const Explanation& found) {
  if (found.inputs() > 0) return;
  if (found.sums().not_finite > 0)
    throw InputError(
        fmt::format("relevance is not a finite number on any of {}", counted(found.sums().not_finite, "input")),
        "Try --float64 or --rule epsilon.");
  throw InputError(fmt::format("none of {} {}", counted(found.result.samples, "input"),
                               !options.on.empty()          ? "fails in the way that --on asks for"
                               : options.answers == "wrong" ? "is answered wrong"
                                                            : "is answered right"),
                   "--answers all explains every answer.");
}

/// Layers may be explained where inputs cannot: what nobody asked for is then left out.
std::optional<observers::InputExplainer> input_explainer(const Common& common, const ExplainOptions& options,
                                                         const Judged& judged, const explain::Options& how) {
  std::optional<observers::InputExplainer> explainer;
  try {
    explainer.emplace(judged.subject, judged.settings, how);
  } catch (const InputError& error) {
    if (!options.inputs.empty()) throw;
    say(common, fmt::format("no maps of single inputs: {}", error.what()));
  }
  return explainer;
}

int refuse(const Common& common, const checkup::Preflight& preflight, const std::string& model) {
  if (common.json)
    print_json({{"preflight", preflight_json(preflight)},
                {"findings", Json::array({blocker_json(*preflight.blocker, "netmend explain " + model)})}});
  return 1;
}

}  // namespace

int explain(const Common& common, const ExplainOptions& options) {
  explain::Options how = method_of(common, options);  // a slip of the finger shows before the work
  Case about = open_case(common, options);
  Judged& judged = about.judged;
  std::vector<model::Layer> layers =
      localise::candidates(stream::find_layers(judged.subject), judged.subject.graph, judged.settings.head,
                           judged.settings.outputs, options.layers);
  NamedTarget target = parse_target(options.on, judged.settings, *about.data);
  const std::vector<int64_t> mapped = chosen_inputs(options, *about.data);
  checkup::Preflight preflight = examine(common, options, about);
  if (!common.json) print_preflight(preflight, judged.settings.metric);
  if (preflight.blocker && !options.anyway) return refuse(common, preflight, judged.subject.model_name);
  Plan plan = plan_pass(common, options, about, how.method == explain::Method::kIntegrated ? 3 * options.steps : 5);
  judged.subject.data = plan.data;
  if (plan.data != about.data) target = parse_target(options.on, judged.settings, *plan.data);

  std::optional<observers::InputExplainer> explainer = input_explainer(common, options, judged, how);
  Explanation found = find(common, options, judged, target, std::move(layers));
  if (found.interrupted && found.inputs() == 0) return say(common, "stopped before anything was found"), 130;
  require_some(options, found);
  RunFolder folder(common.out, "explain", common.arguments);
  if (explainer) found.maps = map_inputs(judged, *about.data, folder, mapped, *explainer);
  write_importance(folder.file("importance.csv"), found);
  folder.note_file(judged.subject.model_name);
  for (const std::string& file : plan.data->info().files) folder.note_file(file);
  folder.note("data", plan.data->info().spec);
  Json json = explanation_json(options, found);
  json["of"] = plan.whole;
  json["model"] = judged.subject.model_name;
  json["data"] = plan.data->info().spec;
  json["preflight"] = preflight_json(preflight);
  json["run"] = folder.path();
  write_file(folder.file("explain.json"), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  folder.finish(common.seed, found.seconds, found.interrupted ? 130 : 0);
  if (common.json) {
    print_json(json);
  } else {
    print_explanation(options, judged, target, found, folder.path());
    fmt::print("\n  every unit, by class: {}/importance.csv\n", folder.path());
  }
  if (found.interrupted)
    say(common, fmt::format("stopped: this is the result of the first {} inputs", with_commas(found.result.samples)));
  return found.interrupted ? 130 : 0;
}

}  // namespace netmend::app
