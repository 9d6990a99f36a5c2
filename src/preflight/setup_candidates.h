// The set-ups that are tried on a network, and what each makes of some inputs.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "preflight/examination.h"
#include "preflight/setups.h"
#include "preflight/trial.h"

namespace netmend::preflight {

constexpr double kTemperature = 8;  ///< networks are that much too confident at most

/// What a set-up makes of some inputs.
struct Outcome {
  at::Tensor values;
  Rows rows;
  Fitted loss;  ///< at the temperature that suits it; empty for tasks without classes
  double error = INFINITY;
  bool made() const { return !rows.empty(); }
};

/// Something to try: inputs prepared otherwise, classes numbered otherwise, another output.
struct Candidate {
  std::vector<Setup> setups;
  std::vector<int64_t> order;  ///< the output that each label stands for; empty for its own number
  observers::PredictionSettings settings;
  model::ValueId value = model::kAbsent;
  Tried tried;
  std::string kind, where, title;
  Outcome few, first, fresh, further;
  size_t plainness = 0;  ///< of how its values are scaled: the place in the menu, the most usual first
  size_t changes() const { return setups.size() + size_t(!order.empty()) + size_t(kind == "wrong-output"); }
  bool unusual() const {
    return std::any_of(setups.begin(), setups.end(), [](const Setup& one) { return one.unusual; });
  }
  bool scales() const { return !setups.empty() && setups[0].about == "scale"; }
};

/// Everything that was tried, looked at on a few inputs first.
class Candidates {
 public:
  using Places = std::vector<Candidate*>;

  /// `work`: multiply-adds that a first look at all may take.
  Candidates(const Trial& trial, double work);

  Candidate& as_it_is() const { return *found_[0]; }
  Places all() const;  ///< as it is first
  /// Those that ran, the fewest mistakes first; of equals the lower loss.
  Places ranked() const;
  /// On all of the first inputs.
  const Outcome& on_first(Candidate& candidate) const;
  Outcome outcome(const Candidate& candidate, const dataset::Batch& batch) const;
  /// The last set-up is applied first: an arrangement speaks of the data as it is, a scaling of what comes out.
  dataset::Batch prepared(const Candidate& candidate, const dataset::Batch& batch) const;

 private:
  Candidate unchanged() const;
  Candidate with(std::vector<Setup> setups) const;
  Candidate numbered(const Candidate& base, const std::string& words, const std::vector<int64_t>& order) const;
  Candidate* look(Candidate candidate);
  void try_inputs();
  void try_classes();
  void try_outputs();
  bool changes_nothing(const std::vector<Setup>& setups) const;
  bool affords(size_t looks) const;
  bool takes_rows() const;
  int64_t assigned(const Candidate& candidate) const;
  std::string order_words(const std::vector<int64_t>& order) const;
  std::string order_line(const std::vector<int64_t>& order) const;

  const Trial& trial_;
  double work_;
  std::vector<std::unique_ptr<Candidate>> found_;
};

}  // namespace netmend::preflight
