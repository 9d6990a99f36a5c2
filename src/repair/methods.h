// The ways to repair a network. Each searches on the search split and returns edits; mend.h chooses between them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "repair/names.h"
#include "repair/problem.h"

namespace netmend::repair {

/// Found candidates, best first by the method's own judgement; `why_not` when there is none.
struct Found {
  std::vector<Candidate> candidates;
  std::string why_not;
  int64_t looked_at = 0;  ///< states judged on the selection split, where these are more than the candidates
};

/// Final biases (or the threshold, where there is one output): what shifting the outputs alone can do.
Found shift_biases(const Problem& problem, Budget& budget);
/// One number that divides the logits: calibrates, changes no prediction.
Found set_temperature(const Problem& problem, Budget& budget);
/// All weights, fine-tuned on failing inputs mixed with passing ones: what everybody would try first.
Found retrain(const Problem& problem, Budget& budget);
/// Gradient descent on the weights of the located units alone, with a price on the way from where they were.
Found surgical(const Problem& problem, Budget& budget);

/// Differential evolution on single weights that Arachne's localisation blames.
Found arachne(const Problem& problem, Budget& budget);
Found arachne_pso(const Problem& problem, Budget& budget);
/// The thesis's algorithm: suspicious units mutated until it stops helping (sbfl_mutation.h).
Found sbfl_mutation(const Problem& problem, Budget& budget);

struct Method {
  std::string_view name;
  std::string_view story;
  Found (*search)(const Problem& problem, Budget& budget);
  bool cheap = false;  ///< shown beside every other repair
  double share = 1;    ///< of the budget, in `auto`; 0: not part of it
};
std::span<const Method> methods();
/// Throws InputError with the nearest name.
const Method& find_method(const std::string& name);

}  // namespace netmend::repair
