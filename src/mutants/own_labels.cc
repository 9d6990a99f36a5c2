#include "mutants/own_labels.h"

#include "base/error.h"
#include "base/pool.h"
#include "dataset/relabelled.h"
#include "observers/top_predictions.h"

namespace netmend::mutants {

OwnLabels with_own_labels(session::Session& session, const session::Split& split) {
  const observers::PredictionSettings task = session.task_of(split);
  if (task.outputs < 2)
    throw InputError(fmt::format("{} has no labels, and predictions that are not classes cannot take their place",
                                 split.data->info().spec),
                     "Give data with labels.");
  const observers::TopPredictions likely(task);
  stream::Pass pass(split.subject);
  auto ranked = pass.watch(likely);
  session.run(pass, split, "own predictions");
  if (pass.interrupted()) throw Interrupted();
  std::vector<int64_t> labels;
  for (const observers::TopRow& row : pass.state(ranked).rows) labels.push_back(std::max<int32_t>(0, row.classes[0]));
  std::vector<std::string> names = session.config().classes;
  if (int64_t(names.size()) != task.outputs) {
    names.clear();
    for (int64_t c = 0; c < task.outputs; ++c) names.push_back(std::to_string(c));
  }
  OwnLabels own{split, {}};
  own.split.data = dataset::labelled(split.subject.data, std::move(labels), std::move(names));
  own.split.subject.data = own.split.data;
  own.task = session.task_of(own.split);
  return own;
}

}  // namespace netmend::mutants
