// Importance-driven coverage put to the questions of its paper. Gerasimou, Eniser, Sen, Cakan: Importance-Driven Deep
// Learning System Testing, ICSE 2020 (arXiv:2002.03433), RQ1 … RQ5 with tables 2 … 5, by the protocol of the authors'
// program in two of its states and by a corrected one (protocol.h).
//
// What differs from the authors in every protocol: a run is a network of its own, trained from another seed, with its
// own noise (they drew noise five times for one network); one-dimensional clusters are exact (theirs are the best of
// ten starts); the random units of table 2 are also averaged over 20 draws.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "observers/predictions.h"
#include "stream/pass.h"
#include "studies/protocol.h"
#include "trials/parts.h"

namespace netmend::studies {

using trials::Store;

/// A trained network with what it has learned from and what it is tested with.
struct TrainedNetwork {
  std::string model;  ///< lenet1, lenet4, lenet5, cifar
  stream::Subject train, test;
  observers::PredictionSettings train_settings, test_settings;
};

struct DeepImportanceOptions {
  Protocol protocol;
  int64_t attacked = 0;        ///< tests of each class that C&W changes, and JSMA those of colour images; 0 for all
  int64_t carlini_steps = 50;  ///< of the corrected protocol, in each of nine steps of its search
  uint64_t seed = 42;
  int jobs = 0;
};

/// What is done with a network, one row of the store each.
const std::vector<std::string>& deepimportance_trials();

/// One trial at a time, and `progress` told of each with its seconds.
trials::PartsOptions telling_seconds(const std::function<void(const std::string&)>& progress);

/// The trials of one network, under keys `PREFIX|trial`; the network is opened when the first is run.
trials::Part deepimportance_part(const std::string& prefix, const std::string& model,
                                 const std::function<TrainedNetwork()>& open_network,
                                 const DeepImportanceOptions& options);

/// Does what the store does not hold yet, under keys `PREFIX|trial`. `progress` is told what is done. Throws
/// Interrupted.
void run_deepimportance(Store& store, const std::string& prefix, const TrainedNetwork& network,
                        const DeepImportanceOptions& options, const std::function<void(const std::string&)>& progress);

/// Tables 1 … 5 with the paper's figures beside ours, and whether its conclusions hold, for all protocols that the
/// store has trials of. `prefix`: of keys `PREFIX|protocol|model|run|trial`.
nlohmann::ordered_json report_deepimportance(const Store& store, const std::string& prefix,
                                             const std::vector<std::string>& models, int64_t runs);
/// The same for people, as Markdown.
std::string deepimportance_text(const nlohmann::ordered_json& report);

constexpr int kDeepImportanceVersion = 2;

}  // namespace netmend::studies
