// Hit spectra: how often each unit is active on failing and on passing inputs. Inputs fall into groups by a hash of
// their position and are counted by group, so that what other samples of the data would have shown can be drawn from
// the counts afterwards: one addition an input and unit, whatever the number of draws.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "model/layer.h"
#include "observers/predictions.h"
#include "observers/target.h"
#include "stream/observer.h"

namespace netmend::observers {

/// Enough for ranks and 95 % intervals: the spread over groups itself is known to an eighth.
constexpr int64_t kSampleGroups = 128;
/// Depends on the position alone, so that neither workers nor shards matter.
int64_t sample_group(int64_t sample);

struct SpectrumSettings {
  double threshold = 0;  ///< a unit is active when its value is larger
  Target target;
  bool before_activation =
      false;  ///< take the value before the activation; rectified maps are hardly ever 0 on average
};

/// Units of all layers stand side by side, in the order of the layers.
int64_t count_units(const std::vector<model::Layer>& layers);

struct SpectrumState;

class Spectrum : public stream::Observer {
 public:
  using State = SpectrumState;
  Spectrum(PredictionSettings predictions, std::vector<model::Layer> layers, SpectrumSettings settings = {});
  std::string name() const override { return "spectrum"; }
  std::vector<stream::Tap> taps() const override;
  std::unique_ptr<stream::State> fresh() const override;
  bool merges_exactly() const override { return true; }
  const std::vector<model::Layer>& layers() const { return layers_; }

 private:
  friend struct SpectrumState;
  /// The mean of a rectified map is above 0 where any position before the rectifier is. Looking there is cheaper by
  /// far: the network need not rectify before it pools, and mostly the first few positions tell.
  bool looks_before(const model::Layer& layer) const;
  model::ValueId tap_of(const model::Layer& layer) const;
  Predictions predictions_;
  std::vector<model::Layer> layers_;
  SpectrumSettings settings_;
};

/// A unit is active when its mean over positions that count is above the threshold. Values that are not numbers do not
/// make it so.
struct SpectrumState : stream::State {
  explicit SpectrumState(const Spectrum& observer);
  void observe(const stream::View& view) override;
  void merge(const stream::State& later) override;
  void save(std::ostream& out) const override;
  void load(std::istream& in) override;

  int64_t samples = 0;  ///< all that were seen, on whichever side
  at::Tensor active;    ///< int32 side × group × unit; sides as in enum Side
  at::Tensor inputs;    ///< int64 side × group

 private:
  void count(const at::Tensor& values, double threshold, int64_t first_unit);
  const Spectrum& observer_;
  PredictionState judge_;       ///< of the batch at hand
  std::vector<int64_t> lines_;  ///< of the batch at hand: the line side × group of each input; -1 for neither side
};

}  // namespace netmend::observers
