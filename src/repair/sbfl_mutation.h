// L. Mühlhahn, "Mutation-Based Accuracy Improvements in Neural Networks using Spectrum-Based Fault Localization" (2024,
// listing 4.5): suspicious units are mutated one after the other until it stops helping.
//
// What differs from the listing, unless as_published: the most suspicious unit goes first (the list was taken from its
// end); a dense unit's own weights are mutated (its kernel was cut by inputs); an offset makes it more patient, not
// less; the round that was rejected is taken back. Where it is judged is the caller's: the thesis judged on the data
// that located the units.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "edits/operations.h"
#include "localise/measures.h"
#include "repair/problem.h"

namespace netmend::repair {

struct SbflOptions {
  localise::Choice measure;  ///< tarantula unless set
  edits::Operation operation{edits::Target::kWeights, edits::Change::kSet, 0};
  bool train_between = false;  ///< an epoch after each mutation
  int64_t at_a_time = 1;       ///< units mutated in a round
  bool refresh = false;        ///< count the spectrum anew before each round
  int64_t most_rounds = 0;     ///< 0 for as many as there are units
  bool as_published = false;
};

/// When to stop, told from the figures of a round and of the one before.
struct StopRule {
  enum When { kLoss, kAccuracy, kBoth, kEither } when = kAccuracy;
  double loss_offset = 0, accuracy_offset = 0;
  bool halve = true;  ///< the offsets, each round
  bool as_published = false;
};
/// loss, accuracy, both, either. Throws InputError with the nearest.
StopRule::When parse_when(const std::string& name);
std::string when_name(StopRule::When when);

struct Round {
  double loss = 0, accuracy = 0;
  std::vector<std::string> units;
  std::vector<edits::Edit> edits;  ///< all that was done so far; none where others judged it (Trajectory::judged)
};

/// What searches over one network, one measure and one part of the data have in common.
struct SearchStart {
  double loss = 0, accuracy = 0;             ///< as the network is
  std::vector<localise::UnitPlace> waiting;  ///< units, the one to be mutated first at the end
};
SearchStart start_search(const Problem& problem, const SbflOptions& options, const std::vector<int64_t>& samples);

/// Places by ascending score as NumPy's default argsort gives them, which decides between equal scores: stable for up
/// to 16 of them, else by the steps of its quicksort.
std::vector<size_t> numpy_order(const std::vector<double>& scores);

/// Follows a rule over a trajectory, round by round; several rules may follow one.
class Follower {
 public:
  Follower(StopRule rule, double loss, double accuracy) : rule_(rule), loss_(loss), accuracy_(accuracy) {}
  /// False when the rule says to stop after this round.
  bool goes_on(const Round& round);
  bool stopped() const { return stopped_; }
  int64_t rounds() const { return rounds_; }  ///< seen, the one that stopped it included
  /// Rounds whose mutations are in the model that comes back: without the rejected one, unless as published.
  int64_t kept() const { return stopped_ && !rule_.as_published ? rounds_ - 1 : rounds_; }

 private:
  StopRule rule_;
  double loss_, accuracy_;
  int64_t rounds_ = 0;
  bool stopped_ = false;
};

/// The rounds of one search, each computed when it is asked for.
class Trajectory {
 public:
  /// Units are located and rounds judged on `samples` of the problem; training uses `train`.
  Trajectory(const Problem& problem, const SbflOptions& options, const std::vector<int64_t>& samples,
             std::shared_ptr<const dataset::Dataset> train = nullptr);
  /// The same from where start_search() came to.
  Trajectory(const Problem& problem, const SbflOptions& options, const std::vector<int64_t>& samples,
             const SearchStart& start);
  ~Trajectory();

  double loss() const;  ///< as the network is
  double accuracy() const;
  /// nullptr when there are no more units.
  const Round* next();
  const std::vector<Round>& rounds() const;

  /// next() in parts, for those who train and judge many networks at once. Mutates; false when there are no more units.
  bool mutate();
  const model::Graph& network() const;  ///< as mutated
  /// What the epoch between two rounds is drawn by.
  uint64_t training_seed() const;
  /// Puts trained weights in: `write` is given graphs of the same form.
  void take(const std::function<void(model::Graph&)>& write);
  const Round& judged(double loss, double accuracy);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace netmend::repair
