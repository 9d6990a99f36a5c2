// Losses with their gradients in one pass over the outputs for a few inputs.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "dataset/dataset.h"
#include "training/options.h"

namespace netmend::training {

struct LossForm {
  LossKind kind = LossKind::kCrossEntropy;
  dataset::LabelKind labels = dataset::LabelKind::kClass;
  int64_t width = 0;  ///< outputs per input
};

/// What fits the labels: cross-entropy for classes, binary for one output or many yes-or-no labels, squares for
/// numbers. Throws InputError when labels and outputs do not go together.
LossForm infer_loss(std::optional<LossKind> asked, const dataset::Info& data, int64_t width);

struct LossSum {
  double loss = 0;      ///< sum over inputs
  int64_t right = 0;    ///< inputs whose prediction is right; of classes and yes-or-no labels
  at::Tensor gradient;  ///< of loss / `total` with respect to the outputs; undefined when it was not asked for
};

/// `answers`: inputs × width (any shape with as many elements); `total`: inputs of the whole batch, 0 for no gradient;
/// `each`: where the loss of each input goes, on the CPU alone; may be null. Throws InputError when a label is out of
/// range.
LossSum loss_of(const LossForm& form, const at::Tensor& answers, const at::Tensor& labels, int64_t total,
                double* each = nullptr);
/// The same on a GPU without waiting for it: loss, right ones and labels that are out of range, in float64.
struct LossOnDevice {
  at::Tensor sums, gradient;
};
LossOnDevice loss_on_device(const LossForm& form, const at::Tensor& answers, const at::Tensor& labels, int64_t total);
/// What `sums` says, brought to the CPU. Throws InputError when a label is out of range.
LossSum read_sums(const LossForm& form, const double* sums);
/// Whether `right` means something.
bool counts_right(const LossForm& form);

}  // namespace netmend::training
