// Which units, or single weights, of a session's model are to blame for its failures. No tensors: commands and other
// programs call it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/escape.h"
#include "localise/measures.h"
#include "observers/result.h"

namespace netmend::session {
class Session;
}

namespace netmend::localise {

struct LocateRequest {
  std::string measure = "auto";     ///< a name of measures(), or `all`
  std::string on;                   ///< which failures: class=cat, confusion=cat:dog …; "" for all
  bool before_activation = false;   ///< a unit's value is taken there
  std::vector<std::string> layers;  ///< empty: all but the output layer
  int64_t top = 10, resamples = 100;
  double threshold = 0;  ///< a unit is active above it
};

struct ScoredUnit {
  std::string unit, layer;
  double score = 0;
  double chance = 0;  ///< score of a unit that is as often active, whatever the outcome
  Counts counts;
  double in_top = 0;                    ///< share of resamples in which it is among the first; NaN without resamples
  int64_t rank_low = 0, rank_high = 0;  ///< of 95 % of the resamples
  // Of measures by ablation:
  std::vector<std::pair<std::string, double>> saved;  ///< loss saved per input by each ablation; NaN where not tried
  std::string best_ablation;
  double more_correct = 0;  ///< share of inputs that would be predicted right in addition
};
struct ScoredLayer {
  std::string layer;
  int64_t units = 0, in_top = 0;
  double mean = 0, best = 0;
  double by_chance = 0;  ///< units among the first when ranked at random
  double first = 0;      ///< share of resamples in which its mean is the highest
};
struct MeasureRanking {
  std::string measure, formula;
  bool of_counts = false;  ///< made of counts of active units alone
  int64_t top = 0, resamples = 0;
  std::vector<ScoredUnit> units;  ///< all, the most suspicious first
  std::vector<ScoredLayer> layers;
  double random_rank = 0, random_in_top = 0;  ///< of a unit drawn at random
  /// From 1; 0 when it is not there.
  int64_t rank_of(const std::string& unit) const;
};

struct LocateResult {
  std::string model, data, target;  ///< `target`: the failures in words; "" for all
  int64_t inputs = 0, of = 0;       ///< used, and how many there are
  int64_t failing = 0, passing = 0;
  int64_t units = 0, always_active = 0;
  int64_t gradients_failing = 0, gradients_passing = 0;  ///< inputs whose gradients were taken
  bool all = false;                                      ///< every measure was asked for
  std::vector<MeasureRanking> rankings;                  ///< the one asked for first
  std::vector<Shell> next;                               ///< commands that show more
  double seconds = 0, scoring_seconds = 0;
  bool interrupted = false;
};

/// One pass counts the spectra of all units; gradients and ablations are taken on samples. Throws InputError: no
/// labels, no such layer or failures; Interrupted when Ctrl-C came before anything was found.
LocateResult locate(session::Session& session, const LocateRequest& request);
nlohmann::ordered_json to_json(const LocateRequest& request, const LocateResult& result);
/// All units of a ranking, as CSV.
void write_ranking(const std::string& path, const MeasureRanking& ranking);

/// A weight that Arachne's localisation blames.
struct LocatedWeight {
  std::string unit, layer, parameter, index;  ///< `index`: `3,0,1,2`
  double value = 0, impact = 0, gradient = 0;
};
struct WeightResult {
  std::string model, data;
  int64_t failing = 0, passing = 0;
  std::vector<LocatedWeight> weights;    ///< the Pareto front, largest gradient first
  std::vector<std::string> passed_over;  ///< layers whose weights cannot be blamed one by one
  std::vector<Shell> next;
  double seconds = 0;
};
/// `measure` of the request does not count.
WeightResult locate_weights(session::Session& session, const LocateRequest& request);
nlohmann::ordered_json to_json(const WeightResult& result);

}  // namespace netmend::localise
