// netmend locate --measure arachne: which single weights are to blame.
#include <ATen/ATen.h>

#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "edits/places.h"
#include "localise/arachne.h"
#include "netmend/show.h"
#include "netmend/target.h"
#include "stream/layers.h"

namespace netmend::app {
namespace {

/// The unit that a number of a layer's weights belongs to.
std::string owner(const model::Graph& graph, const model::Layer& layer, int64_t position) {
  for (const edits::Part& part : edits::find_parts(graph, layer).list) {
    if (part.role != edits::Role::kWeight || part.parameter != layer.weight) continue;
    for (int64_t unit = 0; unit < layer.units; ++unit) {
      std::vector<int64_t> own = part.positions(graph, unit);
      if (std::binary_search(own.begin(), own.end(), position)) return model::unit_name(layer, unit);
    }
  }
  return layer.name;
}

std::string index_text(at::IntArrayRef sizes, int64_t position) {
  std::vector<std::string> parts(sizes.size());
  for (size_t axis = sizes.size(); axis-- > 0; position /= sizes[axis])
    parts[axis] = std::to_string(position % sizes[axis]);
  return join(parts, ",");
}

}  // namespace

int locate_weights(const Common& common, const LocateOptions& options) {
  Case about = open_case(common, options);
  Judged& judged = about.judged;
  if (!judged.settings.by_class())
    throw InputError("arachne needs answers that are right or wrong",
                     "Other measures are listed by netmend locate --help.");
  std::vector<model::Layer> layers = stream::find_layers(judged.subject);
  if (!options.layers.empty()) {
    std::vector<std::string> names;
    for (const model::Layer& layer : layers) names.push_back(layer.name);
    for (const std::string& name : options.layers)
      if (std::find(names.begin(), names.end(), name) == names.end())
        fail("there is no layer {}{}: there are {}", name, did_you_mean(name, names), join(names, ", "));
    std::erase_if(layers, [&](const model::Layer& layer) {
      return std::find(options.layers.begin(), options.layers.end(), layer.name) == options.layers.end();
    });
  }
  NamedTarget target = parse_target(options.on, judged.settings, *about.data);
  observers::Predictions predictions(judged.settings, true);
  stream::PassResult done = stream::run_pass(judged.subject, {&predictions}, pass_options(common));
  if (done.interrupted) throw Interrupted{};
  auto folded = done.collected[0].fold(predictions);
  auto& state = dynamic_cast<observers::PredictionState&>(*folded);
  std::vector<int64_t> sides[2];
  for (const observers::SampleRow& row : state.rows)
    if (auto side = target.target.side(row); side != observers::Side::kNeither)
      sides[size_t(side)].push_back(row.sample);
  require_both_sides(target, judged.settings, observers::finish(predictions, state), int64_t(sides[0].size()),
                     int64_t(sides[1].size()));
  std::vector<std::string> passed_over;
  auto front =
      localise::arachne(judged.subject, judged.settings, layers, sides[0], sides[1], common.jobs, &passed_over);
  Json list = Json::array();
  for (const localise::BlamedWeight& one : front) {
    const model::Layer& layer = layers[one.layer];
    at::Tensor weight = judged.subject.graph.constant(layer.weight);
    list.push_back({{"unit", owner(judged.subject.graph, layer, one.position)},
                    {"layer", layer.name},
                    {"parameter", judged.subject.graph.values[size_t(layer.weight)].name},
                    {"index", index_text(weight.sizes(), one.position)},
                    {"value", weight.contiguous().view(-1)[one.position].item<double>()},
                    {"impact", one.impact},
                    {"gradient", one.gradient}});
  }
  RunFolder folder(common.out, "locate", common.arguments);
  Json json = {{"measure", "arachne"},
               {"model", judged.subject.model_name},
               {"data", about.data->info().spec},
               {"failures", sides[0].size()},
               {"passes", sides[1].size()},
               {"weights", list},
               {"passed_over", passed_over},
               {"run", folder.path()}};
  write_file(folder.file("locate.json"), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  folder.finish(common.seed, done.seconds, 0);
  if (common.json) return print_json(json), 0;
  fmt::print(
      "{}  on {}\n  {} weights that no other beats both in forward impact and in gradient of the loss, failing against "
      "passing inputs\n\n",
      judged.subject.model_name, about.data->info().spec, front.size());
  fmt::print("  {:<20} {:<24} {:<14} {:>10} {:>11} {:>11}\n", "unit", "parameter", "index", "value", "impact", "gradient");
  for (size_t i = 0; i < list.size() && int64_t(i) < std::max<int64_t>(options.top, 20); ++i)
    fmt::print("  {:<20} {:<24} {:<14} {:>10.4g} {:>11.4g} {:>11.4g}\n", printable(list[i]["unit"].get<std::string>()),
               printable(list[i]["parameter"].get<std::string>()), list[i]["index"].get<std::string>(),
               list[i]["value"].get<double>(), list[i]["impact"].get<double>(), list[i]["gradient"].get<double>());
  if (!passed_over.empty())
    fmt::print("  passed over (weights that cannot be blamed one by one): {}\n", join(passed_over, ", "));
  fmt::print("  next      {} --method arachne -o fixed.onnx\n",
             next_command("repair", judged.subject.model_name, options));
  return 0;
}

}  // namespace netmend::app
