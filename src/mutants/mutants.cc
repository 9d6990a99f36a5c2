#include "mutants/mutants.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "executor/runtime.h"
#include "mutants/structure.h"
#include "mutants/table.h"

namespace netmend::mutants {
namespace {

/// Single weights have as many places as there are units, and more mutants than that.
constexpr int kRoundsOfWeights = 16;

Ground survey(const stream::Subject& subject, const std::vector<model::Layer>& layers,
              const std::vector<Strength>& strengths) {
  Ground ground{subject, layers, {}, {}, {}, strengths};
  const model::Graph& graph = subject.batching.graph;
  std::vector<model::ValueId> wanted;
  for (const model::Layer& layer : layers) {
    ground.outputs.push_back(subject.graph.nodes[size_t(layer.node)].outputs[0]);
    wanted.push_back(layer_input(graph, layer, ground.outputs.back()));
    wanted.push_back(layer.post);
  }
  // As the network runs, without a pass, which takes axis 0 for that of inputs: recurrent layers have positions there.
  const int64_t count = subject.batching.kind == executor::Batching::kAny ? 2 : subject.batch_size();
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < count; ++i) samples.push_back(i % subject.data->size());
  executor::Request request;
  request.wanted = wanted;
  const std::vector<at::Tensor> values =
      executor::Executor(graph, request).run(subject.feed.inputs(subject.data->read(samples)));
  for (size_t l = 0; l < layers.size(); ++l) {
    ground.input_shapes.push_back(values[2 * l].sizes().vec());
    ground.post_shapes.push_back(values[2 * l + 1].sizes().vec());
  }
  return ground;
}

/// One operator's mutants, one after the other.
class Source {
 public:
  Source(const Ground& ground, const Row& row, const observers::PredictionSettings& settings, const Generation& how)
      : ground_(ground), row_(row), settings_(settings), how_(how), places_(row.places(ground)) {
    std::erase_if(places_, [&](const Place& place) {
      return !how.layers.empty() && std::find(how.layers.begin(), how.layers.end(),
                                              ground.layers[size_t(place.layer)].name) == how.layers.end();
    });
    if (places_.empty()) reason = "no layer is of that kind";
    Random(how.seed, hash64(row.op.name)).shuffle(places_);
  }

  std::string reason;  ///< why the last place could not be changed

  /// False when there are no more.
  bool next(Mutant& mutant) {
    const int rounds = row_.op.level == Level::kWeight && how_.sample > 0 ? kRoundsOfWeights : 1;
    for (; round_ < rounds; ++round_, at_ = 0)
      while (at_ < places_.size())
        if (make(places_[at_++], mutant)) return true;
    return false;
  }

 private:
  bool make(const Place& place, Mutant& mutant) {
    const model::Layer& layer = ground_.layers[size_t(place.layer)];
    mutant = {};
    mutant.op = &row_.op, mutant.layer = place.layer, mutant.unit = place.number;
    mutant.id = fmt::format("{}:{}", row_.op.name,
                            row_.op.level == Level::kLayer ? layer.name : model::unit_name(layer, place.number));
    Random random(how_.seed, hash64(fmt::format("{}/{}/{}/{}", row_.op.name, layer.name, place.number, round_)));
    try {
      row_.make(ground_, random, mutant);
      if (!mutant.edits.empty()) return made_.insert(mutant.id).second;
      if (mutant.graph && runs(mutant)) return made_.insert(mutant.id).second;
      reason = "nothing would change";
    } catch (const InputError& error) {
      reason = error.what();
    }
    return false;
  }

  /// A rebuilt network must run and give outputs of the same shape.
  bool runs(const Mutant& mutant) const {
    stream::Subject other = ground_.subject;
    other.batching.graph = *mutant.graph;
    dataset::Batch few = other.data->read(stream::spread(other.data->size(), 2));
    const model::ValueId output = whatif::answers_of(settings_);
    const at::Tensor value = stream::run_few(other, {output}, few)[0];
    return value.sizes() == stream::run_few(ground_.subject, {output}, few)[0].sizes();
  }

  const Ground& ground_;
  const Row& row_;
  const observers::PredictionSettings& settings_;
  const Generation& how_;
  std::vector<Place> places_;
  size_t at_ = 0;
  int round_ = 0;
  std::set<std::string> made_;
};

void require_layers(const std::vector<model::Layer>& layers, const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  for (const model::Layer& layer : layers) names.push_back(layer.name);
  for (const std::string& name : wanted)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw InputError(fmt::format("there is no layer {}{}", printable(name), did_you_mean(name, names)),
                       "netmend info lists the layers.");
}

}  // namespace

Generated generate(const stream::Subject& subject, const std::vector<model::Layer>& layers,
                   const observers::PredictionSettings& settings, const Generation& how) {
  if (layers.empty()) fail("{} has no layers with weights: there is nothing to mutate", subject.model_name);
  require_layers(layers, how.layers);
  at::NoGradGuard no_grad;
  const Ground ground = survey(subject, layers, how.strengths);
  std::vector<std::unique_ptr<Source>> sources;
  std::vector<const Operator*> ops;
  for (const Row& row : rows())
    if (std::find(how.operators.begin(), how.operators.end(), &row.op) != how.operators.end())
      sources.push_back(std::make_unique<Source>(ground, row, settings, how)), ops.push_back(&row.op);
  Generated made;
  std::vector<int64_t> counts(sources.size());
  std::vector<bool> done(sources.size());
  auto full = [&] { return how.sample > 0 && int64_t(made.list.size()) >= how.sample; };
  for (bool more = true; more && !full();) {
    more = false;
    for (size_t s = 0; s < sources.size() && !full(); ++s) {
      Mutant mutant;
      if (done[s] || (done[s] = !sources[s]->next(mutant))) continue;
      made.list.push_back(std::move(mutant));
      ++counts[s], more = true;
    }
  }
  for (size_t s = 0; s < sources.size(); ++s)
    if (counts[s] == 0 && done[s]) made.without.emplace_back(ops[s]->name, sources[s]->reason);
  return made;
}

whatif::Question question_of(const Mutant& mutant, whatif::WhatIf& whatif) {
  if (mutant.graph) return {{}, -1, -1, 0, mutant.graph, mutant.from};
  if (mutant.blocked && whatif.has_shortcut(mutant.layer)) return {{}, mutant.layer, mutant.unit, 0};
  return {mutant.edits};
}

}  // namespace netmend::mutants
