// What each unit does over the data: smallest, largest, mean, variance, how often it is zero, how often it is not a
// number.
#pragma once

#include <string>
#include <vector>

#include "model/layer.h"
#include "stream/observer.h"

namespace netmend::observers {

/// Values that are not finite are counted and left out of everything else.
struct UnitStats {
  int64_t seen = 0, zeros = 0, not_finite = 0;
  double min = 0, max = 0, mean = 0;
  double squares = 0;  ///< sum of squared distances from the mean
  double variance() const { return seen > 0 ? squares / double(seen) : 0; }
  double zero_fraction() const { return seen > 0 ? double(zeros) / double(seen) : 0; }
  void add(double value);
  void merge(const UnitStats& later);
};

struct UnitProfileState;

class UnitProfile : public stream::Observer {
 public:
  using State = UnitProfileState;
  explicit UnitProfile(std::vector<model::Layer> layers) : layers_(std::move(layers)) {}
  std::string name() const override { return "unit-profile"; }
  std::vector<stream::Tap> taps() const override;
  std::unique_ptr<stream::State> fresh() const override;
  const std::vector<model::Layer>& layers() const { return layers_; }

 private:
  std::vector<model::Layer> layers_;
};

struct UnitProfileState : stream::State {
  explicit UnitProfileState(const std::vector<model::Layer>& layers);
  void observe(const stream::View& view) override;
  void merge(const stream::State& later) override;
  void save(std::ostream& out) const override;
  void load(std::istream& in) override;

  std::vector<std::vector<UnitStats>> stats;  ///< by layer, by unit

 private:
  const std::vector<model::Layer>& layers_;
};

}  // namespace netmend::observers
