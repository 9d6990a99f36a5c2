#include "adequacy/learn.h"

#include <ATen/ATen.h>

#include <optional>

#include "base/error.h"
#include "base/pool.h"
#include "observers/importance.h"

namespace netmend::adequacy {

using observers::Importance;
using observers::ImportanceState;

Lesson learn(const stream::Subject& training, const observers::PredictionSettings& settings, observers::SpacePtr space,
             size_t layer, const LearnOptions& options) {
  Lesson lesson{observers::Profile(settings, space, layer, training.data->size(), options.stride)};
  std::vector<const stream::Observer*> observers{&lesson.profile.observer()};
  std::optional<Importance> importance;
  if (options.importance) try {
      observers::ImportanceSettings how;
      how.before_activation = space->choice().before_activation;
      importance.emplace(training, settings, std::vector<model::Layer>{space->layers()[layer]}, how);
      observers.push_back(&*importance);
    } catch (const InputError& error) {
      lesson.no_importance = error.what();
    }
  stream::PassResult done = stream::run_pass(training, observers, options.pass);
  if (done.interrupted) throw Interrupted{};
  lesson.profile.learned(std::move(done.collected[0].pieces.at(0).state));
  lesson.profile.facts.data = training.data->info().spec;
  lesson.seconds = done.seconds;
  if (importance) {
    auto& state = dynamic_cast<ImportanceState&>(*done.collected[1].pieces.at(0).state);
    at::Tensor scores = observers::importance_of(state, 0).contiguous();
    if (state.inputs.sum().item<int64_t>() == 0)
      lesson.no_importance = "no training input is answered right, so that nothing tells which units are important";
    else
      lesson.profile.facts.importance.assign(scores.data_ptr<double>(), scores.data_ptr<double>() + scores.numel());
  }
  return lesson;
}

int64_t stride_for(const observers::UnitSpace& space, size_t layer, int64_t inputs, double bytes) {
  const double each = 4 * double(space.units(layer)) + 8 + sizeof(observers::SampleRow);
  return std::max<int64_t>(1, int64_t(std::ceil(each * double(inputs) / std::max(bytes, each))));
}

}  // namespace netmend::adequacy
