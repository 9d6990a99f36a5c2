#include "training/loss.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "ops/cuda_kernel.h"

namespace netmend::training {
namespace {

using dataset::LabelKind;

/// Loss of one input's outputs x, and its gradient into g (null for none).
double cross_entropy(const float* x, int64_t width, int64_t label, float scale, float* g) {
  float most = *std::max_element(x, x + width);
  double sum = 0;
  for (int64_t c = 0; c < width; ++c) {
    float e = std::exp(x[c] - most);
    if (g) g[c] = e;
    sum += e;
  }
  float factor = float(scale / sum);
  for (int64_t c = 0; g && c < width; ++c) g[c] *= factor;
  if (g) g[label] -= scale;
  return std::log(sum) + double(most) - double(x[label]);
}

/// Written so that neither exponent overflows.
double binary(float x, float target, float scale, float* g) {
  double e = std::exp(-std::abs(double(x)));
  double chance = x >= 0 ? 1 / (1 + e) : e / (1 + e);
  if (g) *g = float((chance - target) * scale);
  return std::max(double(x), 0.0) - double(x) * target + std::log1p(e);
}

double squared(float x, float target, float scale, float* g) {
  double off = double(x) - target;
  if (g) *g = float(2 * off * scale);
  return off * off;
}

int64_t class_of(const at::Tensor& labels, int64_t row, int64_t classes) {
  int64_t label = labels.data_ptr<int64_t>()[row];
  if (label < 0 || label >= classes)
    fail("a label is {}, but the model has outputs for classes 0 to {}", label, classes - 1);
  return label;
}

/// What an output should be, for losses that compare them one by one.
float target_of(const LossForm& form, const at::Tensor& labels, int64_t row, int64_t column) {
  if (form.labels != LabelKind::kClass) return labels.data_ptr<float>()[row * form.width + column];
  if (form.width == 1) return float(class_of(labels, row, 2));
  return class_of(labels, row, form.width) == column ? 1.0f : 0.0f;
}

bool is_right(const LossForm& form, const float* x, const at::Tensor& labels, int64_t row) {
  if (form.labels == LabelKind::kClass && form.width > 1)
    return std::max_element(x, x + form.width) - x == class_of(labels, row, form.width);
  float threshold = form.kind == LossKind::kMse ? 0.5f : 0.0f;
  for (int64_t c = 0; c < form.width; ++c)
    if ((x[c] > threshold) != (target_of(form, labels, row, c) > 0.5f)) return false;
  return true;
}

/// Losses that compare output by output are means over them.
double one_by_one(const LossForm& form, const float* x, const at::Tensor& labels, int64_t row, float scale, float* g) {
  double sum = 0;
  scale /= float(form.width);
  for (int64_t c = 0; c < form.width; ++c) {
    float target = target_of(form, labels, row, c);
    float* at = g ? g + c : nullptr;
    sum += form.kind == LossKind::kBce ? binary(x[c], target, scale, at) : squared(x[c], target, scale, at);
  }
  return sum / double(form.width);
}

}  // namespace

LossForm infer_loss(std::optional<LossKind> asked, const dataset::Info& data, int64_t width) {
  LossForm form{LossKind::kCrossEntropy, data.labels, width};
  if (data.labels == LabelKind::kNone)
    throw InputError(fmt::format("{} has no labels to learn from", data.spec), "Give --train data with labels.");
  bool classes = data.labels == LabelKind::kClass;
  if (data.labels == LabelKind::kNumber)
    form.kind = LossKind::kMse;
  else if (!classes || width == 1)
    form.kind = LossKind::kBce;
  if (asked) form.kind = *asked;
  if (form.kind == LossKind::kCrossEntropy && (!classes || width < 2))
    fail("cross-entropy needs class labels and an output for each class; {} has {} and the model has {} outputs",
         data.spec, classes ? "classes" : "other labels", width);
  if (form.kind == LossKind::kBce && data.labels == LabelKind::kNumber)
    fail("binary cross-entropy needs labels that are classes; those of {} are numbers", data.spec);
  int64_t known = int64_t(data.classes.size());
  if (classes && width > 1 && known > width)
    fail("{} has {} classes, the model has {} outputs", data.spec, known, width);
  if (!classes && data.label_width != width)
    fail("{} has {} numbers per input, the model has {} outputs", data.spec, data.label_width, width);
  return form;
}

bool counts_right(const LossForm& form) { return form.labels != LabelKind::kNumber; }

namespace {

/// Cross-entropy of a batch in one kernel: one block, whose threads go over the rows and add up in a fixed order.
constexpr const char* kCrossEntropy = R"(
extern "C" __global__ void cross_entropy(const float* __restrict__ x, const long long* __restrict__ labels,
    float* __restrict__ gradient, double* __restrict__ sums, int rows, int width, float scale) {
  __shared__ double parts[3][THREADS];
  double loss = 0, right = 0, wrong = 0;
  for (int row = threadIdx.x; row < rows; row += THREADS) {
    const float* own = x + (long long)row * width;
    float most = own[0];
    int best = 0;
    for (int c = 1; c < width; ++c)  // the lowest class wins a tie; NaN is never above anything
      if (own[c] > most) most = own[c], best = c;
    float sum = 0;
    for (int c = 0; c < width; ++c) sum += expf(own[c] - most);
    long long label = labels[row];
    if (label < 0 || label >= width) wrong += 1, label = label < 0 ? 0 : width - 1;
    loss += (double)logf(sum) + most - own[label];
    right += best == label;
    if (scale > 0) {
      const float factor = scale / sum;
      for (int c = 0; c < width; ++c)
        gradient[(long long)row * width + c] = expf(own[c] - most) * factor - (c == label ? scale : 0.f);
    }
  }
  parts[0][threadIdx.x] = loss, parts[1][threadIdx.x] = right, parts[2][threadIdx.x] = wrong;
  for (int half = THREADS / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half)
      for (int i = 0; i < 3; ++i) parts[i][threadIdx.x] += parts[i][threadIdx.x + half];
  }
  if (threadIdx.x < 3) sums[threadIdx.x] = parts[threadIdx.x][0];
}
)";
constexpr unsigned kThreads = 256;
constexpr int64_t kMostRows = 8192, kMostWidth = 128;  ///< that one block goes over quickly

std::optional<LossOnDevice> cross_entropy_by_kernel(const at::Tensor& x, const at::Tensor& labels, float scale) {
  if (x.size(0) > kMostRows || x.size(1) > kMostWidth || x.size(0) == 0) return {};
  static const std::string source = fmt::format("#define THREADS {}\n{}", kThreads, kCrossEntropy);
  const ops::CudaKernel* kernel = x.is_cuda() ? ops::CudaKernel::find(source, "cross_entropy") : nullptr;
  if (!kernel) return {};
  const at::Tensor values = x.contiguous(), classes = labels.to(at::kLong).contiguous();
  LossOnDevice found{at::empty({3}, x.options().dtype(at::kDouble)), {}};
  if (scale > 0) found.gradient = at::empty_like(values);
  const float* from = values.data_ptr<float>();
  const int64_t* which = classes.data_ptr<int64_t>();
  float* gradient = scale > 0 ? found.gradient.data_ptr<float>() : nullptr;
  double* sums = found.sums.data_ptr<double>();
  int rows = int(x.size(0)), width = int(x.size(1));
  kernel->launch(x, {1, kThreads}, {&from, &which, &gradient, &sums, &rows, &width, &scale});
  return found;
}

}  // namespace

LossOnDevice loss_on_device(const LossForm& form, const at::Tensor& answers, const at::Tensor& labels, int64_t total) {
  const at::Tensor x = answers.detach().to(at::kFloat).reshape({answers.size(0), form.width});
  const bool classes = form.labels == LabelKind::kClass;
  const double scale = total > 0 ? 1.0 / double(total) : 0;
  if (form.kind == LossKind::kCrossEntropy)
    if (auto found = cross_entropy_by_kernel(x, labels, float(scale))) return *found;
  const int64_t most = form.width == 1 ? 2 : form.width;
  at::Tensor loss, gradient, right, wrong = at::zeros({}, x.options());
  at::Tensor label = classes ? labels.reshape({-1, 1}).clamp(0, most - 1) : at::Tensor();
  if (classes) wrong = (labels.reshape({-1, 1}) != label).sum();
  if (form.kind == LossKind::kCrossEntropy) {
    at::Tensor log_p = at::log_softmax(x, 1);
    loss = -log_p.gather(1, label).to(at::kDouble).sum();
    if (total > 0) gradient = (log_p.exp() - at::zeros_like(x).scatter_(1, label, 1.0)) * scale;
    right = (x.argmax(1, true) == label).sum();
  } else {
    const at::Tensor target = !classes          ? labels.to(at::kFloat).reshape(x.sizes())
                              : form.width == 1 ? label.to(at::kFloat)
                                                : at::zeros_like(x).scatter_(1, label, 1.0);
    const bool binary = form.kind == LossKind::kBce;
    at::Tensor off = binary ? at::sigmoid(x) - target : 2 * (x - target);
    at::Tensor each = binary ? at::softplus(x) - x * target : (x - target).square();
    loss = each.to(at::kDouble).mean(1).sum();
    if (total > 0) gradient = off * (scale / double(form.width));
    right = classes && form.width > 1 ? (x.argmax(1, true) == label).sum()
                                      : ((x > (binary ? 0.0 : 0.5)) == (target > 0.5)).all(1).sum();
  }
  return {at::stack({loss, right.to(at::kDouble), wrong.to(at::kDouble)}), gradient};
}

LossSum read_sums(const LossForm& form, const double* sums) {
  if (sums[2] > 0)
    fail("a label is not among the classes 0 to {} that the model has outputs for",
         (form.width == 1 ? 2 : form.width) - 1);
  return {sums[0], counts_right(form) ? int64_t(sums[1]) : 0, {}};
}

LossSum loss_of(const LossForm& form, const at::Tensor& answers, const at::Tensor& labels, int64_t total,
                double* each) {
  if (!answers.device().is_cpu()) {
    const LossOnDevice found = loss_on_device(form, answers, labels, total);
    LossSum sum = read_sums(form, found.sums.to(at::kCPU).data_ptr<double>());
    sum.gradient = found.gradient;
    return sum;
  }
  at::Tensor x = answers.detach().to(at::kFloat).contiguous(), y = labels.contiguous();
  int64_t count = x.size(0);
  LossSum sum;
  if (total > 0) sum.gradient = at::empty(x.sizes(), at::kFloat);
  float scale = total > 0 ? 1.0f / float(total) : 0.0f;
  for (int64_t row = 0; row < count; ++row) {
    const float* at = x.data_ptr<float>() + row * form.width;
    float* g = total > 0 ? sum.gradient.data_ptr<float>() + row * form.width : nullptr;
    const double loss = form.kind == LossKind::kCrossEntropy
                            ? cross_entropy(at, form.width, class_of(y, row, form.width), scale, g)
                            : one_by_one(form, at, y, row, scale, g);
    sum.loss += loss;
    if (each) each[row] = loss;
    if (counts_right(form)) sum.right += is_right(form, at, y, row);
  }
  return sum;
}

}  // namespace netmend::training
