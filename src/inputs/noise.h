// Random numbers like a batch of inputs, that depend on seed, method, input and attempt alone.
#pragma once

#include <string_view>

#include "inputs/method.h"

namespace netmend::inputs {

/// Standard normal, and uniform in −1 … 1.
at::Tensor draw_normal(const Originals& originals, const Settings& settings, std::string_view method);
at::Tensor draw_uniform(const Originals& originals, const Settings& settings, std::string_view method);
/// Values in the valid range; where an original lies outside it, not farther out.
at::Tensor clipped(const at::Tensor& units, const at::Tensor& originals);
/// A picture's channels as an axis of their own, a view: inputs × channels × places. Other inputs have one channel.
at::Tensor by_place(const at::Tensor& values, const Subject& changed);
/// A value of a batch by input and position.
inline float* row_of(at::Tensor& tensor, int64_t row) { return tensor.data_ptr<float>() + row * tensor.stride(0); }

}  // namespace netmend::inputs
