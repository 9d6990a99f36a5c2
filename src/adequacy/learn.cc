#include "adequacy/learn.h"

#include <ATen/ATen.h>

#include <optional>

#include "base/error.h"
#include "base/pool.h"
#include "observers/importance.h"

namespace netmend::adequacy {

using observers::Importance;
using observers::ImportanceState;

LearnedProfile learn(const stream::Subject& training, const observers::PredictionSettings& settings,
                     observers::SpacePtr space, size_t layer, const LearnOptions& options) {
  LearnedProfile learned{observers::Profile(settings, space, layer, training.data->size(), options.stride)};
  stream::Pass pass(training);
  auto profile = pass.watch(learned.profile.observer());
  std::optional<stream::Watched<Importance>> relevance;
  std::optional<Importance> importance;
  if (options.importance) try {
      observers::ImportanceSettings how;
      how.before_activation = space->choice().before_activation;
      importance.emplace(training, settings, std::vector<model::Layer>{space->layers()[layer]}, how);
      relevance = pass.watch(*importance);
    } catch (const InputError& error) {
      learned.no_importance = error.what();
    }
  pass.run(options.pass);
  if (pass.interrupted()) throw Interrupted{};
  learned.profile.learned(pass.release(profile));
  learned.profile.facts.data = training.data->info().spec;
  learned.seconds = pass.seconds();
  if (relevance) {
    ImportanceState& state = pass.state(*relevance);
    at::Tensor scores = observers::importance_of(state, 0, options.of_class).contiguous();
    learned.profile.facts.of_class = options.of_class;
    const at::Tensor counted = options.of_class < 0 ? state.inputs.sum() : state.inputs[options.of_class];
    if (counted.item<int64_t>() == 0)
      learned.no_importance =
          fmt::format("no training input{} is predicted correctly, so it is unknown which units are important",
                      options.of_class < 0 ? "" : " of this class");
    else
      learned.profile.facts.importance.assign(scores.data_ptr<double>(), scores.data_ptr<double>() + scores.numel());
  }
  return learned;
}

int64_t stride_for(const observers::UnitSpace& space, size_t layer, int64_t inputs, double bytes) {
  const double each = 4 * double(space.units(layer)) + 8 + sizeof(observers::SampleRow);
  return std::max<int64_t>(1, int64_t(std::ceil(each * double(inputs) / std::max(bytes, each))));
}

}  // namespace netmend::adequacy
