// netmend lab study deepimportance: the paper's questions, put to networks that are trained here.
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "netmend/lab_study.h"
#include "netmend/shared.h"
#include "onnx/reader.h"
#include "studies/deepimportance.h"

namespace netmend::app {
namespace {

struct Architecture {
  std::string name, network, data;
  int64_t epochs;
};
const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> all = {{"lenet1", "lenet1", "mnist", 3},
                                                {"lenet4", "lenet4", "mnist", 3},
                                                {"lenet5", "lenet5", "mnist", 3},
                                                {"cifar", "cifar-convnet", "cifar10", 12}};
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
      fmt::format("There are {}.", join(names, ", ")));
}

/// How much of the data is used.
struct Sizes {
  int64_t training = 0, tests = 0;  ///< 0 for all
};

studies::TrainedNetwork open_network(const Common& common, const Architecture& about, const std::string& file, uint64_t seed,
                               const Sizes& sizes) {
  Common silent = common;
  silent.quiet = true;
  if (!std::filesystem::exists(file)) {
    say(common, fmt::format("training {} on {}", about.network, about.data));
    train_named(silent, about.network, about.data, file, {seed, about.epochs, sizes.training});
  }
  model::Graph graph = onnx::read_model(file);
  dataset::Splits splits = dataset::parse_splits(about.data);
  auto judged = [&](const dataset::Spec& spec, int64_t limit) {
    return make_judged(silent, file, graph, first_inputs(open_data(silent, spec, graph, {}), limit), "", {});
  };
  Judged train = judged(*splits.train, sizes.training), test = judged(*splits.test, sizes.tests);
  return {about.name, std::move(train.subject), std::move(test.subject), std::move(train.settings),
          std::move(test.settings)};
}

bool done_already(const studies::Store& store, const std::string& prefix) {
  for (const std::string& trial : studies::deepimportance_trials())
    if (!store.find(prefix + "|" + trial)) return false;
  return true;
}

}  // namespace

int study_deepimportance(const Common& common, const StudyOptions& options) {
  std::vector<std::string> models = options.models;
  if (models.empty())
    models = options.quick ? std::vector<std::string>{"lenet1"}
                           : std::vector<std::string>{"lenet1", "lenet4", "lenet5", "cifar"};
  for (const std::string& model : models) find_architecture(model);
  const int64_t runs = options.runs > 0 ? options.runs : options.quick ? 1 : 5;
  const std::string folder = common.out.empty() ? "netmend-study-deepimportance" : common.out;
  make_folders(folder);
  studies::Store store(folder + "/trials.db", "deepimportance", studies::kDeepImportanceVersion);
  studies::DeepImportanceOptions how;
  how.jobs = common.jobs;
  Sizes sizes;
  if (options.quick) sizes = {20000, 2000}, how.attacked = 200;
  const std::string kind = options.quick ? "quick" : "full";
  const std::string prefix = fmt::format("{}, seed {}", kind, common.seed);
  for (int64_t run = 1; run <= runs; ++run)
    for (const std::string& model : models) {
      const std::string key = fmt::format("{}|{}|{}", prefix, model, run);
      if (done_already(store, key)) continue;
      how.seed = common.seed + uint64_t(run - 1) * 7919;
      const std::string file = fmt::format("{}/{}-{}-seed{}.onnx", folder, model, kind, how.seed);
      studies::TrainedNetwork network = open_network(common, find_architecture(model), file, how.seed, sizes);
      studies::run_deepimportance(store, key, network, how, [&](const std::string& line) { say(common, line); });
    }
  Json json = studies::report_deepimportance(store, prefix, models, runs);
  json["out"] = folder;
  const std::string text = studies::deepimportance_text(json);
  write_file(folder + "/deepimportance.json", json.dump(2) + "\n");
  write_file(folder + "/deepimportance.md", text);
  if (common.json)
    print_json(json);
  else
    fmt::print(
        "{}\n  tables    {}/deepimportance.md and .json; run again with more --runs or --models and only what is "
        "missing is done\n",
        text, folder);
  return 0;
}

}  // namespace netmend::app
