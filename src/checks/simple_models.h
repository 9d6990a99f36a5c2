// What simple models reach on the same data. A network that does not do better than a linear one has learned little of
// its own; and where a simple model fails on the same inputs, these are hard, and nothing in the network is broken.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checks/observed.h"
#include "stats/intervals.h"

namespace netmend::checks {

/// Two models fitted to a sample of the training data (of the other tests where there is none): a ridge classifier, and
/// the five nearest inputs' vote. Of the values as fed, of large images shrunk, of tokens which of them occur.
struct SimpleModels {
  stats::Estimate linear, neighbours;  ///< accuracy on `judged`
  std::vector<int64_t> judged;         ///< tests
  std::vector<int64_t> predicted;      ///< by the better of the two
  bool by_neighbours = false;          ///< the better one is the vote

  /// `A linear model` or `The nearest inputs' vote`.
  std::string name() const;
};

/// Computed once; null where labels are no classes or inputs are few.
const SimpleModels* simple_models(Observed& seen);

/// Accuracy of the ridge classifier.
std::optional<stats::Estimate> linear_baseline(Observed& seen);

/// Whether the better simple model fails more often on some tests than on the others too, about as much as the network
/// does (half of its log odds ratio or more): a sentence that says so, or "". `part`: 1 for a test in question, 0 for
/// one to compare with, -1 for neither, by its row. `rows`: predictions to judge in place of those that were seen.
std::string as_hard_for_simple(Observed& seen, const std::function<int(size_t)>& part,
                               const std::vector<observers::SampleRow>* rows = nullptr);

/// The same of one class predicted as another.
std::string as_confused_by_simple(Observed& seen, size_t label, size_t predicted,
                                  const std::vector<observers::SampleRow>* rows = nullptr);

}  // namespace netmend::checks
