// Whether predictions are right, and their loss, for many thousand rows: what the predictions observer does for one
// network, without its tables.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "observers/predictions.h"

namespace netmend::whatif {

struct Judgement {
  float loss = 0;          ///< as predictions report it; infinite where the output is NaN or Inf
  int32_t predicted = -1;  ///< class; -1 where predictions are no classes
  bool right = false;
};

/// Labels as rows of numbers. Throws InputError for a class that the model does not have.
struct Truth {
  std::vector<int64_t> classes;
  at::Tensor numbers;  ///< double inputs × outputs, for labels and numbers
};
Truth truth_of(const observers::PredictionSettings& settings, const at::Tensor& labels, int64_t count);

/// Row `r` of `answers` belongs to input `r mod inputs` of the truth. Rows whose best two outputs lie within `near` of
/// the largest are appended to `close`: another order of additions might change the prediction.
void judge(const observers::PredictionSettings& settings, const at::Tensor& answers, const Truth& truth, int64_t inputs,
           Judgement* rows, double near = 0, std::vector<int64_t>* close = nullptr);

/// The value that predictions are read from.
model::ValueId answers_of(const observers::PredictionSettings& settings);

}  // namespace netmend::whatif
