#include "studies/trained_networks.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/text.h"
#include "dataset/spec.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "session/split.h"
#include "training/trainer.h"
#include "zoo/zoo.h"

namespace netmend::studies {

void tell(const StudyContext& context, const std::string& line) {
  if (context.progress) context.progress(line);
}

void make_once(const std::string& file, const std::function<void()>& make) {
  if (std::filesystem::exists(file)) return;
  constexpr double kDay = 86400;
  const Lock lock(file + ".lock", file, kDay);
  if (!std::filesystem::exists(file)) make();
}

trials::Store open_store(const StudyContext& context, const std::string& study, const std::string& settings,
                         int version) {
  if (context.store.empty()) return {context.folder + "/trials.db", study, version};
  if (!trials::is_database(context.store))
    throw InputError(fmt::format("--store {}: expected postgresql://HOST/DATABASE", printable(context.store)),
                     "Without --store trials are kept in the study's folder (--out).");
  return {context.store, study + ", " + settings, version, context.lease};
}

void refuse_slice(const StudyContext& context, const std::string& slice) {
  if (!slice.empty() && !context.store.empty())
    throw InputError("--slice goes with a store in a folder", "With --store workers share out the whole study.");
}

void train_named(const std::string& network, const std::string& data, const std::string& file, const TrainingPlan& plan,
                 int jobs) {
  const dataset::Splits splits = dataset::parse_splits(data);
  model::Graph graph = zoo::make(network, {.seed = plan.seed});
  if (!splits.train)
    throw InputError(fmt::format("{} has no training split", data), "Name a built-in data set, for example mnist.");
  auto train = session::open_data(*splits.train, graph, {});
  if (plan.limit > 0 && plan.limit < train->size())
    train = dataset::subset(train, stream::spread(plan.limit, plan.limit));
  training::Task task{network, graph, graph.outputs[0], train, nullptr, {}};
  task.options.rate = plan.rate, task.options.batch = 64, task.options.epochs = plan.epochs;
  task.options.schedule = training::parse_schedule("linear");
  task.options.seed = plan.seed, task.options.jobs = jobs, task.options.device = plan.device;
  training::Trainer trainer(std::move(task));
  while (!trainer.done()) trainer.run_epoch();
  onnx::write_model(trainer.result(), file);
}

TrainingPlan plan_for(const std::string& data, uint64_t seed, const std::string& device) {
  TrainingPlan plan{seed};
  plan.device = device;
  // Deeper networks on photographs take longer, and at a higher rate some never begin to learn.
  if (data.starts_with("cifar10")) plan.epochs = 12, plan.rate = 0.001;
  return plan;
}

NetworkFile trained_file(const StudyContext& context, const std::string& text) {
  const size_t at = text.find('@');
  if (at == std::string::npos)
    throw InputError(fmt::format("`{}` does not name a network with its data", text),
                     "Write it as lenet5@mnist, model.onnx@mnist:test or model.onnx@TEST@TRAIN.");
  const std::string network = text.substr(0, at), data = text.substr(at + 1);
  if (network.ends_with(".onnx")) {
    const size_t second = data.find('@');
    if (second == std::string::npos) return {network, data};
    return {network, data.substr(0, second), data.substr(second + 1)};
  }
  std::string name = network + "-" + data + ".onnx";
  std::replace(name.begin(), name.end(), ':', '-');
  const std::string file = context.folder + "/" + name;
  make_once(file, [&] {
    tell(context, fmt::format("training {} on {}", network, data));
    train_named(network, data, file, plan_for(data, context.seed, context.device), context.jobs);
  });
  return {file, data};
}

session::Session open_session(const StudyContext& context, const NetworkFile& network, int64_t limit) {
  session::Request request;
  request.model = network.file, request.limit = limit, request.seed = context.seed, request.jobs = context.jobs;
  request.device = context.device, request.quiet = true;
  model::Graph graph = onnx::read_model(network.file);
  dataset::Splits splits = dataset::parse_splits(network.data);
  if (!network.train.empty()) splits.train = dataset::parse_spec(network.train);
  auto test = session::open_data(*splits.test, graph, {});
  auto train = splits.train ? session::open_data(*splits.train, graph, {}) : nullptr;
  return session::Session(std::move(request), network.file, std::move(graph), std::move(test), std::move(train));
}

}  // namespace netmend::studies
