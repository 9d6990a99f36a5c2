// Mutants of a trained network: changes as values, made from operators and places, nothing run but a few inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "edits/edit.h"
#include "mutants/inhibitors.h"
#include "mutants/operators.h"
#include "stream/pass.h"
#include "whatif/whatif.h"

namespace netmend::mutants {

/// A small identity and what it changes. Either edits, or a rebuilt graph for operators that change structure.
struct Mutant {
  std::string id;  ///< `gf:conv1/7`, `afr:fc1:Tanh`; the same seed gives the same list
  const Operator* op = nullptr;
  int layer = -1;                  ///< in the list of layers; -1 for inputs
  int64_t unit = -1;               ///< -1 for whole layers
  std::vector<edits::Edit> edits;  ///< none for operators that change structure
  bool blocked = false;            ///< the edits do no more than set the unit's value to 0 for whoever reads it
  std::shared_ptr<const model::Graph> graph;  ///< as whatif::Question has it
  model::ValueId from = model::kAbsent;
};

struct Generation {
  std::vector<const Operator*> operators;
  int64_t sample = 500;  ///< mutants in all, drawn over operators in turn; 0 for every place once
  uint64_t seed = 42;
  std::vector<std::string> layers;  ///< only these; empty for all
  std::vector<Strength> strengths;  ///< of MuFF's inhibitors, which have no mutants without
};
struct Generated {
  std::vector<Mutant> list;
  std::vector<std::pair<std::string, std::string>> without;  ///< operators that made none, and why
};

/// Depends on the network, `layers`, operators and seed alone. Places that an operator cannot change (weights that are
/// shared, quantised or computed, layers of unequal input and output) are passed over. Throws InputError: no such
/// layer, no mutant at all.
Generated generate(const stream::Subject& subject, const std::vector<model::Layer>& layers,
                   const observers::PredictionSettings& settings, const Generation& how);

/// The shortest question with the same answer.
whatif::Question question_of(const Mutant& mutant, whatif::WhatIf& whatif);

}  // namespace netmend::mutants
