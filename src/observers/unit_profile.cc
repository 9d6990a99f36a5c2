#include "observers/unit_profile.h"

#include <ATen/ATen.h>

#include <cmath>

#include "stream/layers.h"

namespace netmend::observers {

void UnitStats::add(double value) {
  if (!std::isfinite(value)) {
    ++not_finite;
    return;
  }
  min = seen ? std::min(min, value) : value;
  max = seen ? std::max(max, value) : value;
  zeros += value == 0;
  ++seen;
  double from_old = value - mean;
  mean += from_old / double(seen);
  squares += from_old * (value - mean);
}

void UnitStats::merge(const UnitStats& later) {  // Chan, Golub, LeVeque: the pairwise form of the running variance
  not_finite += later.not_finite;
  if (later.seen == 0) return;
  if (seen == 0) {
    int64_t counted = not_finite;
    *this = later;
    not_finite = counted;
    return;
  }
  double both = double(seen + later.seen), apart = later.mean - mean;
  squares += later.squares + apart * apart * double(seen) * double(later.seen) / both;
  mean += apart * double(later.seen) / both;
  min = std::min(min, later.min);
  max = std::max(max, later.max);
  zeros += later.zeros;
  seen += later.seen;
}

std::vector<stream::Tap> UnitProfile::taps() const {
  std::vector<stream::Tap> taps;
  for (const model::Layer& layer : layers_) taps.push_back(stream::tap_of(layer));
  return taps;
}

std::unique_ptr<stream::State> UnitProfile::fresh() const { return std::make_unique<UnitProfileState>(layers_); }

UnitProfileState::UnitProfileState(const std::vector<model::Layer>& layers) : layers_(layers) {
  for (const model::Layer& layer : layers) stats.emplace_back(size_t(layer.units));
}

void UnitProfileState::observe(const stream::View& view) {
  for (size_t l = 0; l < layers_.size(); ++l) {
    at::Tensor values =
        model::unit_values(layers_[l], view.value(layers_[l].post), view.mask).to(at::kCPU, at::kDouble).contiguous();
    const double* at = values.data_ptr<double>();
    for (int64_t row = 0; row < values.size(0); ++row)
      for (UnitStats& unit : stats[l]) unit.add(*at++);
  }
}

void UnitProfileState::merge(const stream::State& later) {
  const auto& other = dynamic_cast<const UnitProfileState&>(later);
  for (size_t l = 0; l < stats.size(); ++l)
    for (size_t u = 0; u < stats[l].size(); ++u) stats[l][u].merge(other.stats[l][u]);
}

void UnitProfileState::save(std::ostream& out) const {
  for (const auto& layer : stats)
    for (const UnitStats& unit : layer) {
      for (int64_t count : {unit.seen, unit.zeros, unit.not_finite}) stream::put(out, count);
      for (double number : {unit.min, unit.max, unit.mean, unit.squares}) stream::put(out, number);
    }
}

void UnitProfileState::load(std::istream& in) {
  for (auto& layer : stats)
    for (UnitStats& unit : layer) {
      for (int64_t* count : {&unit.seen, &unit.zeros, &unit.not_finite}) *count = stream::get_int(in);
      for (double* number : {&unit.min, &unit.max, &unit.mean, &unit.squares}) *number = stream::get_double(in);
    }
}

}  // namespace netmend::observers
