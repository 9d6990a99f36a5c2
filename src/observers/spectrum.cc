#include "observers/spectrum.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "stream/pass.h"

namespace netmend::observers {

int64_t sample_group(int64_t sample) { return int64_t(Random::hash(uint64_t(sample)) % kSampleGroups); }

int64_t count_units(const std::vector<model::Layer>& layers) {
  int64_t units = 0;
  for (const model::Layer& layer : layers) units += layer.units;
  return units;
}

Spectrum::Spectrum(PredictionSettings predictions, std::vector<model::Layer> layers, SpectrumSettings settings)
    : predictions_(std::move(predictions), true), layers_(std::move(layers)), settings_(std::move(settings)) {}

std::vector<stream::Tap> Spectrum::taps() const {
  std::vector<stream::Tap> taps = predictions_.taps();
  for (const model::Layer& layer : layers_) taps.push_back({tap_of(layer), layer.batch_axis, layer.merged});
  return taps;
}

model::ValueId Spectrum::tap_of(const model::Layer& layer) const {
  return settings_.before_activation || looks_before(layer) ? layer.pre : layer.post;
}

bool Spectrum::looks_before(const model::Layer& layer) const {
  return !settings_.before_activation && settings_.threshold == 0 && layer.op == "Conv" && layer.activation == "Relu" &&
         layer.batch_axis == 0 && layer.unit_axis == 1 && layer.merged == model::Merged::kNo;
}

std::unique_ptr<stream::State> Spectrum::fresh() const { return std::make_unique<SpectrumState>(*this); }

SpectrumState::SpectrumState(const Spectrum& observer)
    : active(at::zeros({2, kSampleGroups, count_units(observer.layers_)}, at::kInt)),
      inputs(at::zeros({2, kSampleGroups}, at::kLong)),
      observer_(observer),
      judge_(observer.predictions_.settings(), true) {}

namespace {

/// In blocks that the compiler turns into vector comparisons; mostly the first one tells.
bool any_above_zero(const float* values, int64_t count) {
  constexpr int64_t block = 64;
  for (; count >= block; values += block, count -= block) {
    int32_t found = 0;
    for (int64_t i = 0; i < block; ++i) found |= values[i] > 0;
    if (found) return true;
  }
  return std::any_of(values, values + count, [](float value) { return value > 0; });
}

/// inputs × units: 1 where a position that counts is above 0. `maps`: inputs × units × positions.
at::Tensor units_above_zero(const model::Layer& layer, const at::Tensor& maps, const at::Tensor& mask) {
  if (mask.defined()) return model::unit_values(layer, maps.gt(0).to(at::kFloat), mask);
  if (maps.dim() < 3 || !maps.is_contiguous() || maps.scalar_type() != at::kFloat || !maps.is_cpu())
    return model::unit_values(layer, maps.gt(0).to(at::kFloat));
  at::Tensor found = at::empty({maps.size(0), maps.size(1)}, at::kFloat);
  const int64_t rows = found.numel(), positions = rows > 0 ? maps.numel() / rows : 0;
  const float* map = maps.data_ptr<float>();
  for (int64_t i = 0; i < rows; ++i, map += positions) found.data_ptr<float>()[i] = any_above_zero(map, positions);
  return found;
}

}  // namespace

void SpectrumState::observe(const stream::View& view) {
  judge_.rows.clear();
  judge_.observe(view);
  samples += int64_t(judge_.rows.size());
  lines_.clear();
  bool any = false;
  for (const SampleRow& row : judge_.rows) {
    Side side = observer_.settings_.target.side(row);
    bool counts = side != Side::kNeither;
    lines_.push_back(counts ? int64_t(side) * kSampleGroups + sample_group(row.sample) : -1);
    if (counts) ++inputs.data_ptr<int64_t>()[lines_.back()];
    any = any || counts;
  }
  int64_t first = 0;
  for (const model::Layer& layer : observer_.layers_) {
    const at::Tensor& value = view.value(observer_.tap_of(layer));
    if (any && observer_.looks_before(layer))
      count(units_above_zero(layer, value, view.mask), 0, first);
    else if (any)
      count(model::unit_values(layer, value, view.mask), observer_.settings_.threshold, first);
    first += layer.units;
  }
}

void SpectrumState::count(const at::Tensor& values, double above, int64_t first_unit) {
  at::Tensor rows = values.to(at::kCPU, at::kFloat).contiguous();
  const int64_t units = rows.size(1), all = active.size(2);
  const auto threshold = float(above);
  const float* value = rows.data_ptr<float>();
  for (size_t i = 0; i < lines_.size(); ++i, value += units) {
    if (lines_[i] < 0) continue;
    int32_t* counts = active.data_ptr<int32_t>() + lines_[i] * all + first_unit;
    for (int64_t u = 0; u < units; ++u) counts[u] += value[u] > threshold;
  }
}

void SpectrumState::merge(const stream::State& later) {
  const auto& other = dynamic_cast<const SpectrumState&>(later);
  samples += other.samples;
  active.add_(other.active);
  inputs.add_(other.inputs);
}

void SpectrumState::save(std::ostream& out) const {
  stream::put(out, samples);
  stream::put(out, active);
  stream::put(out, inputs);
}

void SpectrumState::load(std::istream& in) {
  samples = stream::get_int(in);
  for (at::Tensor* tensor : {&active, &inputs}) {
    at::Tensor read = stream::get_tensor(in);
    if (read.sizes() != tensor->sizes() || read.scalar_type() != tensor->scalar_type())
      fail("the state file is damaged");
    *tensor = read.clone();
  }
}

}  // namespace netmend::observers
