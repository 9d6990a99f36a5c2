// deepimportance from names of networks, which are trained here, to the paper's tables.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "dataset/spec.h"
#include "onnx/reader.h"
#include "session/split.h"
#include "studies/deepimportance.h"
#include "studies/tables.h"
#include "studies/trained_networks.h"

namespace netmend::studies {
namespace {

using Json = nlohmann::ordered_json;

struct Architecture {
  std::string name, network, data;
  int64_t epochs;
};
const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> all = {{"lenet1", "lenet1", "mnist", 3},
                                                {"lenet4", "lenet4", "mnist", 3},
                                                {"lenet5", "lenet5", "mnist", 3},
                                                // Fed 0 … 1: the authors' network is fed 0 … 255, which is the same
                                                // with weights of the first layer 255 times as large.
                                                {"cifar", "cifar-deepimportance", "cifar10", 12}};
  return all;
}

const Architecture& find_architecture(const std::string& name) {
  std::vector<std::string> names;
  for (const Architecture& one : architectures()) {
    if (one.name == name) return one;
    names.push_back(one.name);
  }
  throw InputError(
      fmt::format("--models {}: the study has no such network{}", printable(name), did_you_mean(name, names)),
      fmt::format("Choose from {}.", join(names, ", ")));
}

/// How much of the data is used.
struct Sizes {
  int64_t training = 0, tests = 0;  ///< 0 for all
};

std::shared_ptr<const dataset::Dataset> first_inputs(std::shared_ptr<const dataset::Dataset> data, int64_t limit) {
  if (limit <= 0 || limit >= data->size()) return data;
  return dataset::subset(data, stream::spread(limit, limit));
}

TrainedNetwork open_network(const StudyContext& context, const Architecture& about, const std::string& file,
                            uint64_t seed, const Sizes& sizes) {
  make_once(file, [&] {
    tell(context, fmt::format("training {} on {}", about.network, about.data));
    TrainingPlan plan = plan_for(about.data, seed, context.device);
    plan.epochs = about.epochs, plan.limit = sizes.training;
    train_named(about.network, about.data, file, plan, context.jobs);
  });
  model::Graph graph = onnx::read_model(file);
  const dataset::Splits splits = dataset::parse_splits(about.data);
  session::Request request;
  request.model = file, request.seed = seed, request.jobs = context.jobs, request.device = context.device,
  request.quiet = true;
  auto test = first_inputs(session::open_data(*splits.test, graph, {}), sizes.tests);
  auto train = first_inputs(session::open_data(*splits.train, graph, {}), sizes.training);
  session::Session session(std::move(request), file, std::move(graph), std::move(test), std::move(train));
  return {about.name, session.train()->subject, session.test().subject, session.task_of(*session.train()),
          session.task()};
}

std::string given_file(const std::string& folder, const std::string& model) {
  const std::string file = fmt::format("{}/{}.onnx", folder, model);
  if (!std::filesystem::exists(file))
    throw InputError(fmt::format("--networks {}: there is no {}.onnx", printable(folder), model),
                     "--models names those that are there.");
  return file;
}

/// Of what all of the files hold: trials of other networks have other keys.
std::string given_networks(const std::string& folder, const std::vector<std::string>& models) {
  std::string sums;
  for (const std::string& model : models) sums += checksum(read_file(given_file(folder, model), int64_t(1) << 30));
  return checksum(sums);
}

}  // namespace

std::string deepimportance_models() {
  std::vector<std::string> names;
  for (const Architecture& one : architectures()) names.push_back(one.name);
  return join(names, ", ");
}

Json run_deepimportance_study(const StudyContext& context, const DeepImportanceRequest& request) {
  std::vector<std::string> models = request.models;
  for (const Architecture& one : architectures())
    if (request.models.empty() && (!request.quick || models.empty())) models.push_back(one.name);
  for (const std::string& model : models) find_architecture(model);
  const int64_t runs = request.runs > 0 ? request.runs : request.quick ? 1 : 5;
  make_folders(context.folder);
  DeepImportanceOptions how;
  how.jobs = context.jobs;
  how.protocol = changed(find_protocol(request.as_published), request.changes);
  how.attacked = request.attacked >= 0 ? request.attacked : request.quick ? 20 : 100;
  Sizes sizes;
  if (request.quick) sizes = {20000, 2000};
  const std::string kind = request.quick ? "quick" : "full";
  std::string prefix = fmt::format("{}, seed {}, {} attacked", kind, context.seed, how.attacked);
  if (!request.networks.empty()) prefix += ", networks " + given_networks(request.networks, models);
  refuse_slice(context, request.slice);
  Store store =
      open_store(context, "deepimportance",
                 fmt::format("{}, {}, networks {}, runs {}", prefix, how.protocol.text(), join(models, "+"), runs),
                 kDeepImportanceVersion);
  add_trials(store, request.add, "deepimportance", kDeepImportanceVersion);
  const Slice slice = parse_slice(request.slice);
  std::vector<trials::Part> parts;
  int64_t number = 0;
  for (int64_t run = 1; run <= runs; ++run)
    for (const std::string& model : models) {
      const std::string key = fmt::format("{}|{}|{}|{}", prefix, how.protocol.text(), model, run);
      if (!slice.holds(number++)) continue;
      how.seed = context.seed + uint64_t(run - 1) * 7919;
      const std::string file = request.networks.empty()
                                   ? fmt::format("{}/{}-{}-seed{}.onnx", context.folder, model, kind, how.seed)
                                   : given_file(request.networks, model);
      parts.push_back(deepimportance_part(
          key, model,
          [&context, &sizes, model, file, seed = how.seed] {
            return open_network(context, find_architecture(model), file, seed, sizes);
          },
          how));
    }
  trials::run_parts(store, parts, telling_seconds(context.progress));
  Json json = report_deepimportance(store, prefix, models, runs);
  json["out"] = context.folder;
  const std::string text = deepimportance_text(json);
  write_trials(store, context.folder + "/trials.csv");
  write_file(context.folder + "/deepimportance.json", json_text(json, 2) + "\n");
  write_file(context.folder + "/deepimportance.md", text);
  json["text"] = text;
  return json;
}

}  // namespace netmend::studies
