// Rounds of many searches over one network: the networks that they came to are trained for an epoch and judged together
// where their form can be run in lockstep, else one by one.
#pragma once

#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <vector>

#include "observers/predictions.h"
#include "repair/problem.h"
#include "stream/pass.h"
#include "training/lockstep.h"

namespace netmend::studies {

/// How many threads may compute at a time, whatever number of them there is.
using Permits = std::counting_semaphore<>;

/// Runs body(0) … body(count − 1), each on a thread of its own that waits for a permit, and returns when all are done.
/// Throws the first exception.
void with_permits(Permits& permits, size_t count, const std::function<void(size_t)>& body);

/// The inputs of a data set that figures are taken over, with what judging them needs.
class JudgedPart {
 public:
  JudgedPart(const dataset::Dataset& data, const std::vector<int64_t>& samples);
  /// `outputs`: inputs of the whole data set × columns, as the network gives them before a softmax.
  repair::Figure judge(const observers::PredictionSettings& settings, const at::Tensor& outputs) const;
  const std::vector<int64_t>& samples() const { return batch_.samples; }

 private:
  dataset::Batch batch_;  ///< labels and numbers of the samples
  at::Tensor places_;
};

/// One of the networks of a round.
struct RoundNetwork {
  const model::Graph* graph = nullptr;
  std::vector<const JudgedPart*> parts;  ///< what to judge it on
  /// What came of it: the figures of each part, and a way to the trained weights, which is valid during the call. When
  /// training diverged the loss is infinite, the accuracy 0 and `weights` empty.
  std::function<void(const std::vector<repair::Figure>& figures, const std::function<void(model::Graph&)>& weights)>
      done;
};

class LockstepRounds {
 public:
  LockstepRounds(const stream::Subject& subject, const observers::PredictionSettings& settings,
                 std::shared_ptr<const training::Samples> train, std::shared_ptr<const training::Samples> test);

  /// Why these networks cannot be run in lockstep; "" when they can.
  const std::string& refusal() const { return plan_.refusal; }
  /// One round; without `options` nothing is trained. Each thread waits for a permit. Throws Interrupted.
  void run(Permits& permits, const std::vector<RoundNetwork>& networks, const training::Options* options) const;

 private:
  void run_some(std::span<const RoundNetwork> networks, const training::Options* options) const;
  stream::Subject subject_;
  observers::PredictionSettings settings_;
  std::shared_ptr<const training::Samples> train_, test_;
  training::LockstepPlan plan_;
  training::LossForm loss_;
};

}  // namespace netmend::studies
