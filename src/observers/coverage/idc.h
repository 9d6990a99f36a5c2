// IDC, importance-driven coverage: the values of the most important units of a layer are clustered on training data,
// and an input tries one combination of clusters. Gerasimou, Eniser, Sen, Cakan: Importance-Driven Deep Learning System
// Testing, ICSE 2020.
//
// Every input shows exactly one combination: each unit's value has one nearest centroid (the lower of two equally
// near). Which units are important is given from outside. The authors' program differs from the paper: it leaves out
// zeros of dense layers before clustering, takes the single centroid 0 for fewer than ten values, rounds centroids to
// two digits (so that equal ones can never both be reached), among numbers of clusters with equal silhouettes keeps the
// last, and reads tests one layer before the one it chose units and clusters in.
#pragma once

#include <cstdint>
#include <vector>

#include "observers/coverage/clusters.h"
#include "observers/coverage/patterns.h"
#include "observers/coverage/row.h"

namespace netmend::observers {

/// An important unit and where its values gather.
struct QuantisedUnit {
  int64_t unit = 0;  ///< in its layer
  Clusters clusters;
};

struct QuantiseOptions {
  bool zero_cluster = false;   ///< zeros are a cluster of their own and left out of the others
  bool without_zeros = false;  ///< zeros are left out, and nothing stands for them
  /// As the authors' program cuts: the single centroid 0 for fewer than ten values, centroids rounded to two digits,
  /// the last of equal silhouettes.
  bool as_published = false;
  int64_t clusters = 0;  ///< exactly so many; 0: as many as the silhouette likes best
};
/// `values`: of the unit on training inputs.
QuantisedUnit quantise(int64_t unit, std::span<const float> values, const QuantiseOptions& options = {});

class Idc : public PatternCriterion {
 public:
  /// Units of one layer, the most important first. Those without any centroid (no finite training value) are left out.
  Idc(SpacePtr space, size_t layer, std::vector<QuantisedUnit> units);
  std::string name() const override { return "IDC"; }
  /// One byte a unit: its cluster.
  std::string pattern(const UnitBatch& batch, int64_t row) const override;
  /// The same from the values of the layer's units.
  std::string combination(const float* values) const;
  std::optional<int64_t> reach_by_input(const UnitBatch& batch, Reached& reached) const override;
  std::vector<Parameter> parameters() const override;
  double total() const override;
  int64_t pattern_bytes() const override { return int64_t(units_.size()); }
  const std::vector<QuantisedUnit>& units() const { return units_; }
  /// As the authors' program does it: tests are read at another layer, by the same numbers of units.
  void read_at(size_t layer) { read_ = layer; }

 private:
  SpacePtr space_;
  size_t layer_, read_;
  std::vector<QuantisedUnit> units_;
};

CriterionRow idc_row();

}  // namespace netmend::observers
