#include "inputs/noise.h"

#include <ATen/ATen.h>

namespace netmend::inputs {
namespace {

template <typename Draw>
at::Tensor draw(const Originals& originals, const Settings& settings, std::string_view method, const Draw& one) {
  at::Tensor noise = at::empty(originals.units.sizes(), at::kFloat);
  const int64_t size = noise.numel() / std::max<int64_t>(1, noise.size(0));
  for (int64_t row = 0; row < noise.size(0); ++row) {
    Random random = random_for(settings.seed, method, originals.batch.samples[size_t(row)], settings.attempt);
    float* to = noise.data_ptr<float>() + row * size;
    for (int64_t i = 0; i < size; ++i) to[i] = float(one(random));
  }
  return noise.to(originals.units.device());
}

}  // namespace

at::Tensor draw_normal(const Originals& originals, const Settings& settings, std::string_view method) {
  return draw(originals, settings, method, [](Random& random) { return random.normal(); });
}

at::Tensor draw_uniform(const Originals& originals, const Settings& settings, std::string_view method) {
  return draw(originals, settings, method, [](Random& random) { return random.uniform(-1, 1); });
}

at::Tensor clipped(const at::Tensor& units, const at::Tensor& originals) {
  return at::minimum(at::maximum(units, originals.clamp_max(0)), originals.clamp_min(1));
}

}  // namespace netmend::inputs
