// Losses that a file computes itself.
#include "ops/arguments.h"
#include "ops/families.h"

namespace netmend::ops::families {
namespace {

enum class LossReduction { kNone, kSum, kMean };

struct LossForm {
  LossReduction reduction;
  std::optional<int64_t> ignored;

  explicit LossForm(const NodeView& node) {
    std::string name = node.text("reduction", "mean");
    node.require(name == "none" || name == "sum" || name == "mean", "reduction is {}, expected none, sum or mean",
                 name);
    reduction = name == "none" ? LossReduction::kNone : name == "sum" ? LossReduction::kSum : LossReduction::kMean;
    if (node.has("ignore_index")) ignored = node.integer("ignore_index", 0);
  }
};

/// Minus the logarithm that belongs to each label, times the label's weight; ignored labels count nothing.
at::Tensor likelihood_loss(const at::Tensor& logs, const at::Tensor& labels, const at::Tensor& weight,
                           const LossForm& form) {
  if (logs.dim() < 2 || labels.dim() != logs.dim() - 1)
    fail("labels have {} axes, scores {}", labels.dim(), logs.dim());
  for (int64_t i = 0; i < labels.dim(); ++i)
    if (labels.size(i) != logs.size(i == 0 ? 0 : i + 1)) fail("labels and scores differ in shape");
  at::Tensor target = labels.to(at::kLong), ignored = at::zeros(labels.sizes(), labels.options().dtype(at::kBool));
  if (form.ignored) ignored = target == *form.ignored;
  target = target.masked_fill(ignored, 0);
  if (target.numel() && (target.min().item<int64_t>() < 0 || target.max().item<int64_t>() >= logs.size(1)))
    fail("a label lies outside the {} classes", logs.size(1));
  if (weight.defined() && (weight.dim() != 1 || weight.size(0) != logs.size(1)))
    fail("weight has {} numbers for {} classes", weight.numel(), logs.size(1));
  at::Tensor counts = at::ones(target.sizes(), logs.options());
  if (weight.defined()) counts = weight.index_select(0, target.reshape({-1})).reshape(target.sizes());
  counts = counts.masked_fill(ignored, 0);
  at::Tensor picked = logs.gather(1, target.unsqueeze(1)).squeeze(1).masked_fill(ignored, 0);
  at::Tensor loss = -picked * counts;
  if (form.reduction == LossReduction::kNone) return loss;
  return form.reduction == LossReduction::kSum ? loss.sum() : loss.sum() / counts.sum();
}

at::Tensor weight_of(const Call& call) { return call.has(2) ? call.in(2) : at::Tensor(); }

}  // namespace

Kernel negative_log_likelihood_loss(const NodeView& node) {
  LossForm form(node);
  return [=](Call& call) { call.set(0, likelihood_loss(call.in(0), call.in(1), weight_of(call), form)); };
}

Kernel softmax_cross_entropy_loss(const NodeView& node) {
  LossForm form(node);
  return [=](Call& call) {
    if (call.in(0).dim() < 2) fail("scores have {} axes, expected 2 or more", call.in(0).dim());
    at::Tensor logs = at::log_softmax(call.in(0), 1);
    call.set(0, likelihood_loss(logs, call.in(1), weight_of(call), form));
    call.set(1, logs);
  };
}

// clang-format off
std::span<const Op> loss_rows() {
  static constexpr Op kRows[] = {
      {.name = "NegativeLogLikelihoodLoss", .prepare = negative_log_likelihood_loss},
      {.name = "SoftmaxCrossEntropyLoss", .prepare = softmax_cross_entropy_loss},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families
