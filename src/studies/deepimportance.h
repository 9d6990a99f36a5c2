// Importance-driven coverage put to the questions of its paper. Gerasimou, Eniser, Sen, Cakan: Importance-Driven Deep
// Learning System Testing, ICSE 2020 (arXiv:2002.03433), RQ1 … RQ5 with tables 2 … 5.
//
// What the paper leaves open is read plainly. A run is a network of its own, trained from another seed. Units of
// convolutions are whole maps, by their mean. RQ1: pixels whose relevance is above the 90th percentile become 0 where
// it is above half of the input's largest, else 1; the random choice is the mean over 20 draws. U_S and U_DI change
// every test. For table 4 all sets change the same tests, predicted correctly and spread evenly; FGSM and BIM use
// CleverHans's defaults on digits (0.3; ten steps of 0.05) and 8/255 on colour images. Table 4's noise is that of U_S;
// noise on all pixels is given too.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "observers/predictions.h"
#include "stream/pass.h"
#include "trials/store.h"

namespace netmend::studies {

using trials::Store;

/// A trained network with what it has learned from and what it is tested with.
struct TrainedNetwork {
  std::string model;  ///< lenet1, lenet4, lenet5, cifar
  stream::Subject train, test;
  observers::PredictionSettings train_settings, test_settings;
};

struct DeepImportanceOptions {
  int64_t attacked = 1000;     ///< tests that are changed for table 4
  int64_t carlini_steps = 50;  ///< in each of nine steps of its search; at ten times the usual rate
  uint64_t seed = 42;
  int jobs = 0;
};

/// What is done with each network, one row of the store each.
const std::vector<std::string>& deepimportance_trials();

/// Does what the store does not hold yet, under keys `PREFIX|trial`. `progress` is told what is done. Throws
/// Interrupted.
void run_deepimportance(Store& store, const std::string& prefix, const TrainedNetwork& network,
                        const DeepImportanceOptions& options, const std::function<void(const std::string&)>& progress);

/// Tables 2 … 5 with the paper's figures beside ours, and whether its conclusions hold. `prefix`: of keys
/// `PREFIX|model|run|trial`.
nlohmann::ordered_json report_deepimportance(const Store& store, const std::string& prefix,
                                             const std::vector<std::string>& models, int64_t runs);
/// The same for people, as Markdown.
std::string deepimportance_text(const nlohmann::ordered_json& report);

/// Spearman's rank correlation, with mean ranks for equal values; NaN where one side does not vary.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

constexpr int kDeepImportanceVersion = 1;

}  // namespace netmend::studies
