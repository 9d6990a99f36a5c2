// What training data teaches the criteria, learned in one pass and kept in a file: ranges of all units, the inputs that
// drive them highest, the traces of one layer, how important its units are. The file belongs to one model.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "base/file.h"
#include "observers/coverage/criteria.h"
#include "observers/coverage/materials.h"
#include "observers/coverage/peaks.h"
#include "observers/coverage/ranges.h"
#include "observers/coverage/traces.h"

namespace netmend::observers {

struct ProfileFacts {
  std::string model;               ///< checksum of the model file
  std::string data;                ///< spec of the training data
  int64_t inputs = 0;              ///< that were looked at
  int64_t stride = 1;              ///< every n-th trace is kept
  std::vector<double> importance;  ///< of the traced layer's units; empty when that is not known
  int64_t of_class = -1;           ///< the class that they are important for; -1: all
  /// Extremes of surprise on training data; not finite when they are not known.
  double likelihood_low = NAN, mahalanobis_high = NAN;
};

class Profile {
 public:
  /// `layer` of the space is traced; `expected` inputs, every `stride`-th trace kept.
  Profile(const PredictionSettings& settings, SpacePtr space, size_t layer, int64_t expected, int64_t stride);

  /// What learns, in a pass over training data.
  const Criteria& observer() const { return *observer_; }
  /// Takes over what it has learned.
  void learned(std::unique_ptr<CriteriaState> state);

  ProfileFacts facts;
  size_t layer() const { return layer_; }
  RangesPtr ranges() const { return ranges_; }
  const PeakTally& peaks() const;
  const UnitBatch& traces() const;
  double bytes(int64_t inputs) const;
  /// What criteria can be made from; looks into this profile.
  CriterionMaterials materials() const;

  /// Throws InputError when it cannot be written; then nothing is left that was learned.
  void save(const std::string& path);

 private:
  friend Profile load_profile(const std::string& path, const PredictionSettings& settings, SpacePtr space, size_t layer,
                              const std::string& model, FileRole role);
  std::string description() const;
  /// Throws InputError when what was read of the file at `path` does not agree with itself.
  void require_consistent(const std::string& path, int64_t inputs) const;
  SpacePtr space_;
  size_t layer_;
  std::shared_ptr<const Ranges> kept_ranges_;
  std::shared_ptr<const Peaks> kept_peaks_;
  std::shared_ptr<const Traces> kept_traces_;
  std::unique_ptr<const Criteria> observer_;  ///< states look at it, so it stays where it is
  std::unique_ptr<CriteriaState> state_;
  RangesPtr ranges_;
};

/// Throws InputError: a damaged file, one of another version, model, tap, kind of unit, or of other layers.
Profile load_profile(const std::string& path, const PredictionSettings& settings, SpacePtr space, size_t layer,
                     const std::string& model, FileRole role = FileRole::kInput);

}  // namespace netmend::observers
