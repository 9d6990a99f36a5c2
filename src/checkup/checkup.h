// The check-up: everything that fits a model and its data, in one pass over the tests and one over training data where
// that is possible, and what is left of the time for trying things.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "census/census.h"
#include "checkup/context.h"
#include "checkup/preflight.h"
#include "checkup/trial_checks.h"
#include "selection/label_issues.h"
#include "slices/rules.h"

namespace netmend::checkup {

struct CheckupOptions {
  double seconds = 60;  ///< for everything behind the preflight
  uint64_t seed = 42;
  stream::PassOptions pass;
  std::string words, model_words, data_words, train_words;  ///< as in Context
  std::function<void(const std::string&)> heard;            ///< told what is being done; may be empty
};

/// One split, ready to be run.
struct Given {
  const stream::Subject* subject = nullptr;
  int64_t whole = 0;  ///< inputs there are; the subject's data may be a sample
};

struct Checkup {
  std::unique_ptr<Context> context;
  Found found;                    ///< findings are merged and ranked
  std::vector<int64_t> clusters;  ///< of failures, by row of the tests; -1 for none
  std::vector<selection::LabelIssue> label_issues;
  std::vector<slices::Slice> slices;
  std::optional<adequacy::Assessment> tests;
  Attempts tried;
  std::vector<std::unique_ptr<census::Census>> censuses;  ///< of tests and training data; states look at them
  std::vector<std::unique_ptr<stream::State>> counted;    ///< what they saw
  const census::CensusState& census(size_t part) const {
    return dynamic_cast<const census::CensusState&>(*counted[part]);
  }
  std::vector<std::pair<std::string, double>> times;  ///< what took how long, in order
  bool interrupted = false;                           ///< by Ctrl-C: what is here is all there is
};

/// `train` may have no subject. The subjects outlive the result.
Checkup check_up(const Given& test, const Given& train, const observers::PredictionSettings& settings,
                 const CheckupOptions& options);

/// The data alone, where nothing can be said about the model.
Found check_data_alone(const Given& test, const Given& train, const observers::PredictionSettings& settings,
                       const CheckupOptions& options);

/// The model alone: graph and weights.
Found check_model(const model::Graph& graph, const executor::Head& head, const findings::Words& words);

/// What it comes to, in one sentence.
std::string verdict(const std::vector<findings::Finding>& findings, bool judged);

}  // namespace netmend::checkup
