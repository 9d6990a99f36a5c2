// The rules that turn gradients into steps, over one flat buffer. Element by element, so that any part of the buffer
// may be updated by any thread. The formulas are those of PyTorch's optimisers of the same names.
#pragma once

#include <array>
#include <cstdint>

#include "training/options.h"

namespace at {
class Tensor;
}

namespace netmend::training {

constexpr double kFirstDecay = 0.9, kSecondDecay = 0.999;  ///< of adam, adamax, nadam
constexpr double kSquareDecay = 0.99;                      ///< of rmsprop
constexpr float kSmall = 1e-8f, kSmallSum = 1e-10f;        ///< kSmallSum: of adagrad

/// How many numbers (moments) the rule keeps for each parameter.
int state_count(Method method);

struct StepForm {
  Method method = Method::kAdam;
  double rate = 0.001, momentum = 0.9, decay = 0;
  int64_t step = 1;  ///< from 1
};

/// What a step of nadam takes of the gradient and of the mean: Dozat's schedule of momentum.
struct NadamRates {
  double gradient = 0, mean = 0;
};
NadamRates nadam_rates(const StepForm& form);

/// Updates `count` parameters in place; `first` and `second` are the states (null where there are fewer).
void update(const StepForm& form, float* parameters, const float* gradients, float* first, float* second,
            int64_t count);
/// What differs from step to step, once the moments' corrections of the first steps are in it.
std::array<float, 3> step_numbers(const StepForm& form);
/// The same in one kernel of a GPU, which reads step_numbers() from memory there, so that the launch is the same in
/// every step. False, and nothing is done, where kernels of our own cannot be compiled.
bool update_by_kernel(const StepForm& form, at::Tensor& parameters, const at::Tensor& gradients, at::Tensor& first,
                      at::Tensor& second, const at::Tensor& numbers);
/// The same by operations on whole tensors, wherever they lie.
void update(const StepForm& form, at::Tensor& parameters, const at::Tensor& gradients, at::Tensor& first,
            at::Tensor& second);

}  // namespace netmend::training
