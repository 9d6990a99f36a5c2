// What all checks look at, gathered once: the network, its data and its answers; and what they leave behind.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "findings/finding.h"
#include "observers/likely_answers.h"
#include "observers/predictions.h"
#include "stream/pass.h"

namespace netmend::checkup {

/// One part of the data, and what the network answers to it.
struct Part {
  std::string name;                              ///< test or train
  std::shared_ptr<const dataset::Dataset> data;  ///< what was used: all of it, or a sample
  int64_t whole = 0;                             ///< inputs there are
  std::vector<observers::SampleRow> rows;        ///< one an input, in the order of `data`; empty: it was not run
  observers::PredictionResult result;
  std::vector<observers::LikelyRow> likely;  ///< one an input where answers are classes
};

struct Context {
  const stream::Subject& subject;  ///< the network, fed by the test data
  const observers::PredictionSettings& settings;
  Part test;
  std::optional<Part> train;
  std::string words;  ///< model and data as the user would type them after a command
  uint64_t seed = 42;
  int jobs = 0;
  double seconds = 60;  ///< that all checks may take together
};

struct Passed {
  std::string what, value;
};
struct Skipped {
  std::string what, enable;
};

/// What a check leaves: findings, or the value that was fine, or what it would need.
struct Found {
  std::vector<findings::Finding> findings;
  std::vector<Passed> passed;
  std::vector<Skipped> skipped;
  void add(findings::Finding finding) { findings.push_back(std::move(finding)); }
};

}  // namespace netmend::checkup
