#include "zoo/init.h"

#include <ATen/ATen.h>

#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"

namespace netmend::zoo {
namespace {

template <typename Draw>
at::Tensor filled(at::IntArrayRef shape, Draw draw) {
  at::Tensor tensor = at::empty(shape, at::kFloat);
  float* data = tensor.data_ptr<float>();
  for (int64_t i = 0; i < tensor.numel(); ++i) data[i] = float(draw());
  return tensor;
}

}  // namespace

const std::vector<std::string>& scheme_names() {
  static const std::vector<std::string> names = {"glorot", "he", "uniform", "normal"};
  return names;
}

Scheme parse_scheme(const std::string& name) {
  for (size_t i = 0; i < scheme_names().size(); ++i)
    if (scheme_names()[i] == name) return Scheme(i);
  fail("there is no initialisation `{}`{}; choose from {}", name, did_you_mean(name, scheme_names()),
       join(scheme_names(), ", "));
}

Fan conv_fan(at::IntArrayRef shape) {
  int64_t window = 1;
  for (size_t axis = 2; axis < shape.size(); ++axis) window *= shape[axis];
  return {shape[1] * window, shape[0] * window};
}

at::Tensor fresh_weight(at::IntArrayRef shape, Fan fan, Scheme scheme, uint64_t seed, uint64_t stream) {
  Random random(seed, stream);
  double reach = std::sqrt(6.0 / double(fan.in + fan.out)), deviation = std::sqrt(2.0 / double(fan.in));
  switch (scheme) {
    case Scheme::kGlorot:
      return filled(shape, [&] { return random.uniform(-reach, reach); });
    case Scheme::kHe:
      return filled(shape, [&] { return deviation * random.normal(); });
    case Scheme::kUniform:
      return filled(shape, [&] { return random.uniform(-0.05, 0.05); });
    case Scheme::kNormal:
      return filled(shape, [&] { return 0.05 * random.normal(); });
  }
  throw std::logic_error("a scheme without a rule");
}

at::Tensor fresh_embedding(at::IntArrayRef shape, uint64_t seed, uint64_t stream) {
  Random random(seed, stream);
  return filled(shape, [&] { return random.uniform(-0.25, 0.25); });
}

}  // namespace netmend::zoo
