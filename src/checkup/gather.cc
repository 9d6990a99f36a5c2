#include "checkup/gather.h"

#include "adequacy/learn.h"
#include "base/error.h"
#include "executor/runtime.h"
#include "localise/candidates.h"

namespace netmend::checkup {

observers::SpacePtr hidden_space(const stream::Subject& subject, const observers::PredictionSettings& settings,
                                 const std::vector<model::Layer>& layers) {
  try {
    std::vector<model::Layer> hidden = localise::candidates(layers, subject.graph, settings.head, settings.outputs);
    return hidden.empty() ? nullptr : observers::make_unit_space(subject, std::move(hidden), {});
  } catch (const InputError&) {  // weights that are no numbers pass nothing on; the checks of weights name them
    return nullptr;
  }
}

Gathered gather(const std::string& name, const stream::Subject& subject, const observers::PredictionSettings& settings,
                const observers::SpacePtr& space, int64_t whole, const std::vector<const stream::Observer*>& more,
                const stream::PassOptions& options) {
  Gathered out;
  out.part.name = name;
  out.part.data = subject.data;
  out.part.whole = whole;
  observers::Predictions predictions(settings, true);
  observers::LikelyAnswers likely(settings);
  std::vector<const stream::Observer*> observers = {&predictions};
  if (settings.by_class()) observers.push_back(&likely);
  if (space) {
    const size_t last = space->layers().size() - 1;
    const int64_t size = subject.data->size();
    const int64_t stride = adequacy::stride_for(*space, last, size, double(executor::memory_budget()) / 8);
    out.part.units = std::make_unique<observers::Profile>(settings, space, last, size, stride);
    observers.push_back(&out.part.units->observer());
  }
  const size_t own = observers.size();
  observers.insert(observers.end(), more.begin(), more.end());
  stream::PassResult pass = stream::run_pass(subject, observers, options);
  out.seconds = pass.seconds;
  out.interrupted = pass.interrupted;
  auto answers = pass.collected[0].fold(predictions);
  auto& state = dynamic_cast<observers::PredictionState&>(*answers);
  out.part.result = observers::finish(predictions, state);
  out.part.rows = std::move(state.rows);
  size_t at = 1;
  if (settings.by_class()) {
    auto folded = pass.collected[at++].fold(likely);
    out.part.likely = std::move(dynamic_cast<observers::LikelyState&>(*folded).rows);
  }
  if (space) out.part.units->learned(pass.collected[at++].fold(out.part.units->observer()));
  for (size_t i = own; i < observers.size(); ++i) out.states.push_back(pass.collected[i].fold(*observers[i]));
  return out;
}

}  // namespace netmend::checkup
