// The table of kinds of findings. One row serves terminal, JSON, page and `why`. Texts are plain sentences with the
// field's own words (docs/glossary.md), true in every case in which a check raises the kind; tests/why_test.py runs the
// examples.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "findings/finding.h"

namespace netmend::findings {

/// How the level of a finding follows from what it costs.
enum class Rule {
  kBlocker,  ///< other results cannot be trusted
  kEffect,   ///< serious from 1 point of the metric or 5 points in a class or slice; minor from a fifth of that; else
             ///< note
  kMinor,    ///< minor with any effect worth naming, unless the check grades it itself
  kNote,
};

/// What a check needs to raise a kind; what is missing is named under `skipped`.
enum Needs : unsigned {
  kModel = 0,
  kData = 1,
  kLabels = 2,
  kTrain = 4,
  kGroups = 8,
  kReference = 16,
  kClasses = 32,       ///< predictions are classes
  kNumbers = 64,       ///< predictions are numbers
  kHidden = 128,       ///< a hidden layer
  kAnyBatch = 256,     ///< the model takes any number of inputs at once
  kPredictions = 512,  ///< the network is run: model and data belong together
  kRecord = 1024,      ///< of a training run; no model is asked for
};

struct Need {
  unsigned bit;
  std::string_view name;    ///< `training data`
  std::string_view enable;  ///< how a user provides it; empty: nobody can, the check does not apply
};
std::span<const Need> need_table();
/// `data, labels, training data`; `the model alone` for none.
std::string needs_words(unsigned needs);

struct Kind {
  std::string_view name;
  std::string_view title;  ///< `{a} and {b} are often confused.`
  Rule rule;
  unsigned needs;
  std::string_view fault;    ///< ids of the taxonomy, most likely first
  std::string_view meaning;  ///< what it is and why it matters
  std::string_view cause;    ///< what usually causes it
  std::string_view confirm;  ///< how to confirm it
  std::string_view repair;   ///< what to do about it
  std::string_view next;     ///< commands as patterns, a line each: `failures {case} --on confusion={a}:{b}`
  std::string_view example;  ///< a script without any file of the user's; its last line raises this kind
};

std::span<const Kind> kinds();
/// By name, or by the id of a finding. Throws InputError with the nearest name.
const Kind& find_kind(const std::string& name_or_id);

Level level_of(Rule rule, const Effect& effect);

}  // namespace netmend::findings
