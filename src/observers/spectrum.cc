#include "observers/spectrum.h"

#include <ATen/ATen.h>

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
  for (const model::Layer& layer : layers_) taps.push_back({layer.post, layer.batch_axis});
  return taps;
}

std::unique_ptr<stream::State> Spectrum::fresh() const { return std::make_unique<SpectrumState>(*this); }

SpectrumState::SpectrumState(const Spectrum& observer)
    : active(at::zeros({2, kSampleGroups, count_units(observer.layers_)}, at::kInt)),
      inputs(at::zeros({2, kSampleGroups}, at::kLong)),
      observer_(observer),
      judge_(observer.predictions_.settings(), true) {}

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
    if (any) count(model::unit_values(layer, view.value(layer.post), view.mask), first);
    first += layer.units;
  }
}

void SpectrumState::count(const at::Tensor& values, int64_t first_unit) {
  at::Tensor rows = values.to(at::kCPU, at::kFloat).contiguous();
  const int64_t units = rows.size(1), all = active.size(2);
  const auto threshold = float(observer_.settings_.threshold);
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
