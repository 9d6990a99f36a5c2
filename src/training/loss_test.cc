#include "training/loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/error.h"

namespace netmend::training {
namespace {

using dataset::LabelKind;

/// LibTorch's loss (a mean) and its gradient.
template <typename F>
void expect_like(const LossForm& form, const at::Tensor& answers, const at::Tensor& labels, F loss) {
  at::Tensor x = answers.clone().requires_grad_(true);
  at::Tensor value = loss(x);
  at::Tensor gradient = torch::autograd::grad({value}, {x})[0];
  LossSum sum = loss_of(form, answers, labels, answers.size(0));
  EXPECT_NEAR(sum.loss / double(answers.size(0)), value.item<double>(), 1e-5);
  EXPECT_TRUE(at::allclose(sum.gradient, gradient, 1e-4, 1e-6));
}

TEST(Losses, EqualLibTorchs) {
  at::manual_seed(1);
  at::Tensor x = at::randn({37, 5}) * 10, classes = at::randint(0, 5, {37}, at::kLong);
  at::Tensor bits = at::randint(0, 2, {37, 5}, at::kFloat), numbers = at::randn({37, 5});
  expect_like({LossKind::kCrossEntropy, LabelKind::kClass, 5}, x, classes,
              [&](const at::Tensor& v) { return at::cross_entropy_loss(v, classes); });
  expect_like({LossKind::kBce, LabelKind::kMulti, 5}, x, bits,
              [&](const at::Tensor& v) { return at::binary_cross_entropy_with_logits(v, bits); });
  expect_like({LossKind::kMse, LabelKind::kNumber, 5}, x, numbers,
              [&](const at::Tensor& v) { return at::mse_loss(v, numbers); });
  expect_like({LossKind::kMse, LabelKind::kClass, 5}, x, classes,
              [&](const at::Tensor& v) { return at::mse_loss(v, at::one_hot(classes, 5).to(at::kFloat)); });
}

TEST(Losses, SurviveHugeAnswers) {
  at::Tensor x = at::tensor({1e30f, -1e30f, 0.0f, 5e4f}).view({2, 2}), y = at::tensor({0, 0}, at::kLong);
  LossSum sum = loss_of({LossKind::kCrossEntropy, LabelKind::kClass, 2}, x, y, 2);
  EXPECT_NEAR(sum.loss, 5e4, 1);
  EXPECT_TRUE(sum.gradient.isfinite().all().item<bool>());
}

TEST(Losses, CountWhatIsRight) {
  at::Tensor x = at::tensor({3.0f, 1.0f, 1.0f, 3.0f}).view({2, 2}), y = at::tensor({0, 0}, at::kLong);
  EXPECT_EQ(loss_of({LossKind::kCrossEntropy, LabelKind::kClass, 2}, x, y, 0).right, 1);
  at::Tensor one = at::tensor({2.0f, -2.0f}).view({2, 1}), label = at::tensor({1, 1}, at::kLong);
  EXPECT_EQ(loss_of({LossKind::kBce, LabelKind::kClass, 1}, one, label, 0).right, 1);
}

TEST(Losses, RefuseWhatDoesNotFit) {
  at::Tensor x = at::zeros({1, 3}), bad = at::tensor({3}, at::kLong), worse = at::tensor({-1}, at::kLong);
  EXPECT_THROW(loss_of({LossKind::kCrossEntropy, LabelKind::kClass, 3}, x, bad, 1), InputError);
  EXPECT_THROW(loss_of({LossKind::kCrossEntropy, LabelKind::kClass, 3}, x, worse, 1), InputError);
  dataset::Info info;
  info.labels = LabelKind::kClass, info.classes = {"a", "b", "c"};
  EXPECT_THROW(infer_loss({}, info, 2), InputError);
  EXPECT_EQ(infer_loss({}, info, 3).kind, LossKind::kCrossEntropy);
  info.labels = LabelKind::kNone;
  EXPECT_THROW(infer_loss({}, info, 3), InputError);
  info.labels = LabelKind::kNumber, info.label_width = 1, info.classes.clear();
  EXPECT_EQ(infer_loss({}, info, 1).kind, LossKind::kMse);
  EXPECT_THROW(infer_loss(LossKind::kCrossEntropy, info, 1), InputError);
}

}  // namespace
}  // namespace netmend::training
