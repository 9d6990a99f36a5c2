// netmend check: what model and data are, whether they belong together, and how well the model does.
#include "base/file.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "netmend/show.h"
#include "onnx/reader.h"

namespace netmend::app {
namespace {

std::string identity(const std::string& name, const model::Graph& graph) {
  int64_t units = 0, weights = 0;
  std::vector<model::Layer> layers = executor::find_layers(graph);
  for (const model::Layer& layer : layers) units += layer.units;
  for (model::ValueId id : executor::find_parameters(graph)) weights += graph.constant(id).numel();
  return fmt::format("{}  {} layers · {} units · {} weights", name, layers.size(), with_commas(units),
                     with_commas(weights));
}

/// A model without data: that it can be read and run is all that can be said.
int check_alone(const Common& common, const std::string& model) {
  model::Graph graph = onnx::read_model(model);
  executor::Executor runs(graph);  // names all operators that it could not
  const std::string skipped = "everything that needs data: give --data SPEC, or data.test in netmend.toml";
  if (common.json)
    print_json({{"verdict", "The model can be run; there is no data to judge it on."},
                {"metric", nullptr},
                {"findings", Json::array()},
                {"skipped", Json::array({skipped})}});
  else
    fmt::print("{}\n  skipped   {}\n  next      netmend init {} --data SPEC\n", identity(model, graph), skipped, model);
  return 0;
}

std::string worst_class_text(const observers::PredictionResult& result) {
  const observers::ClassResult* worst = nullptr;
  for (const observers::ClassResult& about : result.per_class)
    if (about.samples > 0 && (!worst || about.recall < worst->recall)) worst = &about;
  return worst ? fmt::format("   worst class {} {:.1f} %", worst->name, 100 * worst->recall) : "";
}

}  // namespace

int check(const Common& common, const CheckOptions& options) {
  Config config = read_config(common.config, options.model);
  if (options.data.empty() && options.test.empty() && config.test.empty() && !(options.model + config.model).empty())
    return check_alone(common, options.model.empty() ? config.model : options.model);
  Case about = open_case(common, options);
  if (!common.json)
    fmt::print("{}   {}:{}  {} inputs\n", identity(about.judged.subject.model_name, about.judged.subject.graph),
               about.spec.head, about.spec.rest, with_commas(about.data->size()));
  checkup::Preflight preflight = examine(common, options, about);
  const bool blocked = preflight.blocker && !options.anyway;
  const std::string command = next_command("check", about.judged.subject.model_name, options);
  if (!common.json) print_preflight(preflight, about.judged.settings.metric);
  Json json = {{"verdict", preflight.blocker ? preflight.blocker->title : "Model and data belong together."},
               {"metric", nullptr},
               {"findings", Json::array()},
               {"skipped", Json::array()},
               {"preflight", preflight_json(preflight)}};
  if (preflight.blocker) json["findings"].push_back(blocker_json(*preflight.blocker, command));
  RunFolder folder(common.out, "check", common.arguments);
  double seconds = 0;
  if (blocked) {
    json["skipped"].push_back("everything about the model: the preflight found a blocker (--anyway overrules)");
  } else {
    about.judged.subject.data = plan_pass(common, options, about).data;
    observers::Predictions observer(about.judged.settings, false);
    stream::PassResult pass = stream::run_pass(about.judged.subject, {&observer}, pass_options(common));
    auto state = pass.collected[0].fold(observer);
    auto result = observers::finish(observer, dynamic_cast<const observers::PredictionState&>(*state));
    seconds = pass.seconds;
    json["result"] = result_json(about.judged.settings, result, pass.seconds);
    if (!result.metrics.empty()) {
      json["metric"] = estimate_json(result.metrics[0].estimate);
      json["metric"]["name"] = result.metrics[0].name;
      if (!common.json)
        fmt::print("\n  {} {}{}   {} inputs\n", result.metrics[0].name,
                   figure_text(result.metrics[0].name, result.metrics[0].estimate), worst_class_text(result),
                   with_commas(result.samples));
    }
    if (!common.json) fmt::print("\n  next      {}\n", next_command("eval", about.judged.subject.model_name, options));
  }
  json["run"] = folder.path();
  write_file(folder.file("findings.json"), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  folder.note_file(about.judged.subject.model_name);
  folder.note("data", about.data->info().spec);
  folder.finish(common.seed, seconds, blocked ? 1 : 0);
  if (common.json) print_json(json);
  return blocked ? 1 : 0;
}

}  // namespace netmend::app
