// What all checks look at, gathered once: the network, its data and its answers; and what they leave behind.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "findings/finding.h"
#include "observers/coverage/profile.h"
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
  /// Ranges and peaks of all hidden units, traces of the last hidden layer; nothing where there is no hidden layer.
  std::unique_ptr<observers::Profile> units;
};

struct Context {
  const stream::Subject& subject;  ///< the network, fed by the test data
  const observers::PredictionSettings& settings;
  Part test;
  std::optional<Part> train;
  std::vector<model::Layer> layers;  ///< all, in order
  observers::SpacePtr space;         ///< the hidden ones; null when there are none
  std::string words;                 ///< model and data as the user would type them after a command
  std::string model_words;           ///< the model alone
  std::string data_words;            ///< the spec of the test data
  std::string train_words;           ///< the spec of the training data, or ""
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

/// The words that every finding's commands may use.
findings::Words words_of(const Context& context, findings::Words more = {});

/// What a check leaves: findings, or the value that was fine, or what it would need.
struct Found {
  std::vector<findings::Finding> findings;
  std::vector<Passed> passed;
  std::vector<Skipped> skipped;
  void add(findings::Finding finding) { findings.push_back(std::move(finding)); }
};

}  // namespace netmend::checkup
