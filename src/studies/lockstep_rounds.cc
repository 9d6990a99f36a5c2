#include "studies/lockstep_rounds.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <exception>
#include <mutex>
#include <thread>

#include "executor/runtime.h"

namespace netmend::studies {

void with_permits(Permits& permits, size_t count, const std::function<void(size_t)>& body) {
  std::mutex mutex;
  std::exception_ptr error;
  auto work = [&](size_t number) {
    permits.acquire();
    try {
      executor::enter_worker();
      body(number);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
    permits.release();
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) threads.emplace_back(work, i);
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
}

JudgedPart::JudgedPart(const dataset::Dataset& data, const std::vector<int64_t>& samples)
    : batch_(data.read(samples)), places_(at::tensor(samples, at::kLong)) {
  batch_.inputs.clear(), batch_.masks.clear();
}

repair::Figure JudgedPart::judge(const observers::PredictionSettings& settings, const at::Tensor& outputs) const {
  const observers::Predictions predictions(settings, false);
  observers::PredictionState state(settings, false);
  const at::Tensor own = outputs.index_select(0, places_);
  state.observe({batch_, [&](model::ValueId) -> const at::Tensor& { return own; }});
  const observers::PredictionResult result = observers::finish(predictions, state);
  repair::Figure figure;
  figure.loss = result.loss, figure.accuracy = result.accuracy;
  return figure;
}

LockstepRounds::LockstepRounds(const stream::Subject& subject, const observers::PredictionSettings& settings,
                               std::shared_ptr<const training::Samples> train,
                               std::shared_ptr<const training::Samples> test)
    : subject_(subject), settings_(settings), train_(std::move(train)), test_(std::move(test)) {
  const int64_t first = 0;
  const at::Tensor one = test_->rows(std::span(&first, 1)).inputs.at(0);
  plan_ = training::plan_lockstep(subject.graph, settings.head.logits, one.sizes().slice(1));
  if (plan_.refusal.empty() && settings.head.without_logits()) plan_.refusal = "it gives probabilities alone";
  if (plan_.refusal.empty()) loss_ = training::infer_loss({}, train_->info(), plan_.blocks.back().units);
}

void LockstepRounds::run(Permits& permits, const std::vector<RoundNetwork>& networks,
                         const training::Options* options) const {
  const auto most = size_t(training::Lockstep::most(subject_.device));
  const std::span all(networks);
  with_permits(permits, (networks.size() + most - 1) / most, [&](size_t number) {
    run_some(all.subspan(number * most, std::min(most, all.size() - number * most)), options);
  });
}

void LockstepRounds::run_some(std::span<const RoundNetwork> networks, const training::Options* options) const {
  at::NoGradGuard no_grad;
  const auto lockstep = training::Lockstep::make(plan_, subject_.graph, settings_.head.logits, subject_.device);
  std::vector<const model::Graph*> graphs;
  for (const RoundNetwork& network : networks) graphs.push_back(network.graph);
  lockstep->take(graphs);
  std::vector<double> losses(networks.size(), 0.0);
  if (options) losses = lockstep->train_epoch(*train_, loss_, *options);
  const at::Tensor outputs = lockstep->outputs(*test_, 0, test_->size());
  for (size_t i = 0; i < networks.size(); ++i) {
    std::vector<repair::Figure> figures;
    for (const JudgedPart* part : networks[i].parts) {
      figures.push_back(std::isfinite(losses[i]) ? part->judge(settings_, outputs[int64_t(i)]) : repair::Figure{});
      if (!std::isfinite(losses[i])) figures.back().loss = INFINITY;
    }
    networks[i].done(figures, std::isfinite(losses[i]) ? std::function<void(model::Graph&)>([&](model::Graph& graph) {
                       lockstep->write_to(int64_t(i), graph);
                     })
                                                       : nullptr);
  }
}

}  // namespace netmend::studies
