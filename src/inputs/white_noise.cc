// White noise: Gaussian noise of deviation eps on every value, clipped to the valid range, as TensorFuzz mutates (Odena
// et al., arXiv:1807.10875) and DeepImportance perturbs (deviation 0.3).
#include <ATen/ATen.h>

#include "inputs/noise.h"

namespace netmend::inputs {

Changed white_noise(const Network&, const Originals& originals, const Settings& settings) {
  return {clipped(originals.units + settings.eps * draw_normal(originals, settings, "white-noise"), originals.units)};
}

}  // namespace netmend::inputs
