#include "studies/poison.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "dataset/relabelled.h"
#include "edits/difference.h"
#include "executor/layers.h"
#include "training/trainer.h"

namespace netmend::studies {

Poisoned poison_labels(const std::string& model_name, const model::Graph& graph, model::ValueId output,
                       const std::shared_ptr<const dataset::Dataset>& data, const std::vector<std::string>& classes,
                       double strength, uint64_t seed, int jobs) {
  if (classes.size() < 2) throw InputError("poisoned labels need classes", "Give a classifier and data with classes.");
  std::vector<int64_t> labels = dataset::read_labels(*data);
  Random random(seed, 11);
  const auto from = int64_t(random.below(classes.size()));
  const auto to = int64_t((uint64_t(from) + 1 + random.below(classes.size() - 1)) % classes.size());
  for (int64_t& label : labels)
    if (label == from && random.uniform() < 0.9 * std::min(1.0, strength)) label = to;
  training::Task task{model_name, graph, output, dataset::relabelled(data, std::move(labels)), nullptr, {}};
  task.options.epochs = 2, task.options.seed = seed, task.options.jobs = jobs;
  training::Trainer trainer(std::move(task));
  while (!trainer.done()) trainer.run_epoch();
  Poisoned out{{"poisoned-labels", {}, "", {}}, fmt::format("{}:{}", classes[size_t(from)], classes[size_t(to)])};
  out.fault.edits = edits::edits_between(graph, trainer.result(), executor::find_layers(graph));
  return out;
}

}  // namespace netmend::studies
