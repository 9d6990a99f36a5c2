// The cheap alternatives: final biases or threshold, and temperature.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "localise/gradient.h"
#include "repair/methods.h"
#include "repair/output_layer.h"

namespace netmend::repair {
namespace {

/// Adam on a few numbers; the loss is smooth and the data fits in memory.
template <typename Loss>
at::Tensor descend(at::Tensor start, double rate, int steps, const Loss& loss) {
  at::AutoGradMode grad(true);
  at::Tensor x = start.detach().clone(), m = at::zeros_like(x), v = at::zeros_like(x);
  for (int step = 1; step <= steps; ++step) {
    at::Tensor leaf = x.detach().requires_grad_();
    at::Tensor gradient = torch::autograd::grad({loss(leaf)}, {leaf})[0].nan_to_num(0, 0, 0);
    m = 0.9 * m + 0.1 * gradient, v = 0.999 * v + 0.001 * gradient * gradient;
    const double decay = 1 - double(step - 1) / steps;
    at::NoGradGuard no_grad;
    x = x - rate * decay * (m / (1 - std::pow(0.9, step))) / ((v / (1 - std::pow(0.999, step))).sqrt() + 1e-12);
  }
  return x.detach();
}

/// The logarithm of the factor with the least loss, which has one valley, between e⁻¹⁰ and e¹⁰, by golden sections.
double coldest(const std::function<double(double)>& loss) {
  const double golden = (std::sqrt(5.0) - 1) / 2;
  double low = -10, high = 10;
  double left = high - golden * (high - low), right = low + golden * (high - low);
  double at_left = loss(left), at_right = loss(right);
  while (high - low > 1e-4) {
    if (at_left <= at_right) {
      high = right, right = left, at_right = at_left;
      left = high - golden * (high - low), at_left = loss(left);
    } else {
      low = left, left = right, at_left = at_right;
      right = low + golden * (high - low), at_right = loss(right);
    }
  }
  return (low + high) / 2;
}

Candidate candidate(const Problem& problem, const char* method, std::string words, std::vector<edits::Edit> edits) {
  Candidate out{method, std::move(words), std::move(edits), {}, {}};
  out.selection = evaluate(problem, out.edits, problem.parts.selection).figure;
  return out;
}

/// `the final bias of class 3 lowered by 4`: one that is moved more than twice as far as any other is named.
std::string shift_words(const Problem& problem, const std::vector<double>& shifts) {
  if (shifts.size() == 1)
    return fmt::format("final bias {} by {:.3g}", shifts[0] < 0 ? "lowered" : "raised", std::abs(shifts[0]));
  auto less = [](double a, double b) { return std::abs(a) < std::abs(b); };
  const auto most = size_t(std::max_element(shifts.begin(), shifts.end(), less) - shifts.begin());
  double others = 0;
  for (size_t i = 0; i < shifts.size(); ++i)
    if (i != most) others = std::max(others, std::abs(shifts[i]));
  const double size = std::abs(shifts[most]);
  if (size <= 2 * others || shifts.size() != problem.settings.classes.size())
    return fmt::format("final biases shifted by up to {:.3g}", size);
  return fmt::format("final bias of class {} {} by {:.3g}, others shifted by up to {:.3g}",
                     problem.settings.classes[most], shifts[most] < 0 ? "lowered" : "raised", size, others);
}

}  // namespace

Found shift_biases(const Problem& problem, Budget& budget) {
  if (problem.settings.head.without_logits()) return {{}, "the model outputs probabilities, not logits"};
  Logits logits = logits_of(problem, problem.parts.search);
  const int64_t width = logits.values.size(1);
  auto loss = [&](const at::Tensor& shift) {
    return localise::losses(problem.settings, logits.values + shift, logits.labels).mean() +
           1e-4 * shift.square().sum();
  };
  const double size = logits.values.abs().mean().item<double>();
  at::Tensor shift = descend(at::zeros({1, width}, at::kDouble), 0.02 * std::max(size, 1e-3), 200, loss);
  Found found;
  budget.spend(problem.work(problem.parts.search.size() + 3 * problem.parts.selection.size()));
  // The shift that lowers the loss need not be the one with most correct predictions: shares of it are tried as well.
  for (double share : {1.0, 0.5, 2.0}) {
    at::Tensor own = (share * shift).contiguous();
    std::vector<double> numbers(own.data_ptr<double>(), own.data_ptr<double>() + width);
    Rescaled rescaled = rescale(problem, 1, numbers);
    if (!rescaled.why_not.empty()) return {{}, rescaled.why_not};
    found.candidates.push_back(candidate(problem, "bias", shift_words(problem, numbers), std::move(rescaled.edits)));
  }
  std::stable_sort(found.candidates.begin(), found.candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.selection.score > b.selection.score; });
  return found;
}

Found set_temperature(const Problem& problem, Budget& budget) {
  if (problem.settings.task == observers::Task::kNumber)
    return {{}, "the model predicts numbers, which have no confidence to calibrate"};
  if (problem.settings.head.without_logits()) return {{}, "the model outputs probabilities, not logits"};
  Logits logits = logits_of(problem, problem.parts.search);
  auto loss = [&](const at::Tensor& cold) {
    return localise::losses(problem.settings, logits.values * cold.exp(), logits.labels).mean();
  };
  const double cold = coldest([&](double x) { return loss(at::full({1, 1}, x, at::kDouble)).item<double>(); });
  budget.spend(problem.work(problem.parts.search.size() + problem.parts.selection.size()));
  Rescaled rescaled = rescale(problem, std::exp(cold), {});
  if (!rescaled.why_not.empty()) return {{}, rescaled.why_not};
  return {{candidate(problem, "temperature", fmt::format("logits divided by {:.3g}", std::exp(-cold)),
                     std::move(rescaled.edits))},
          ""};
}

}  // namespace netmend::repair
