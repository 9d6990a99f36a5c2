// Jacobian-based saliency map attack. Papernot, McDaniel, Jha, Fredrikson, Celik, Swami: The limitations of deep
// learning in adversarial settings (EuroS&P 2016, arXiv:1511.07528). Towards the second most likely class: the pair of
// features with the best saliency is raised by theta = 1, until the class is reached, 14.5 % of the features are
// changed or no pair helps. Published code differs: the Adversarial Robustness Toolbox takes the two features of
// largest target gradient; --as-published art does so too. CleverHans goes by probabilities towards a class drawn at
// random, uses a feature once, may change all of them, and where no pair helps changes the first feature; so does
// --as-published cleverhans.
#include <ATen/ATen.h>

#include <cmath>

#include "inputs/method.h"
#include "inputs/saliency_pair.h"

namespace netmend::inputs {
namespace {

constexpr double kTheta = 1, kGamma = 0.145;

/// Largest target gradient of the features that may still change.
std::pair<int64_t, int64_t> largest_pair(std::span<const float> alpha, std::span<const uint8_t> free) {
  int64_t first = -1, second = -1;
  for (size_t i = 0; i < alpha.size(); ++i) {
    if (!free[i] || !std::isfinite(alpha[i])) continue;
    if (first < 0 || alpha[i] > alpha[size_t(first)])
      second = first, first = int64_t(i);
    else if (second < 0 || alpha[i] > alpha[size_t(second)])
      second = int64_t(i);
  }
  return second < 0 ? std::pair<int64_t, int64_t>{-1, -1} : std::pair{first, second};
}

/// CleverHans's attack. Probabilities add up to 1, so what the target gains the others lose: the best pair are the two
/// free features of largest gradient.
Changed as_cleverhans(const Network& network, const Originals& originals, const Settings& settings) {
  const int64_t count = originals.count(), size = originals.units.numel() / count;
  const at::TensorOptions places = originals.units.options().dtype(at::kLong);
  at::Tensor units = originals.units.clone().reshape({count, size});
  at::Tensor free = units < 1;
  std::vector<int64_t> drawn;
  for (int64_t sample : originals.batch.samples)
    drawn.push_back(
        1 +
        int64_t(random_for(settings.seed, "jsma", sample, settings.attempt).below(uint64_t(network.classes() - 1))));
  at::Tensor targets = (originals.predictions.to(places.device()) + at::tensor(drawn, places)) % network.classes();
  at::Tensor open = at::arange(count, places);
  for (int64_t round = 0; round <= size / 2 && open.numel() > 0; ++round) {
    Originals some = originals.rows(open);
    at::Tensor target = targets.index_select(0, open).unsqueeze(1);
    at::Tensor now = units.index_select(0, open);
    auto gradient =
        network.gradient(some, now.reshape(some.units.sizes()), [&](const at::Tensor& scores, const at::Tensor& rows) {
          at::Tensor p = scores.softmax(1), own = target.index_select(0, rows);
          at::Tensor towards = at::zeros_like(scores).scatter(1, own, 1.0);
          return std::vector<at::Tensor>{p.gather(1, own) * (towards - p)};
        });
    at::Tensor may = free.index_select(0, open);
    at::Tensor go_on = (gradient.scores.argmax(1) != target.squeeze(1)).logical_and(may.sum(1) >= 2);
    if (round == size / 2) break;
    at::Tensor which = go_on.nonzero().squeeze(1);
    open = open.index_select(0, which);
    if (open.numel() == 0) break;
    at::Tensor gains =
        at::where(may, gradient.gradients[0].reshape(now.sizes()), at::full({}, -INFINITY, now.options()))
            .index_select(0, which);
    auto [most, pair] = gains.topk(2, 1);
    pair = at::where(most.sum(1, true) > 0, pair, at::zeros_like(pair));
    at::Tensor row = open.unsqueeze(1).expand({-1, 2});
    units.index_put_({row, pair}, at::ones({}, units.options()));
    free.index_put_({row, pair}, at::zeros({}, free.options()));
  }
  return {units.reshape(originals.units.sizes())};
}

at::Tensor runner_up(const at::Tensor& scores, const at::Tensor& predictions) {
  return scores.scatter(1, predictions.unsqueeze(1), -INFINITY).argmax(1);
}

}  // namespace

Changed jsma(const Network& network, const Originals& originals, const Settings& settings) {
  if (settings.as_published == "cleverhans") return as_cleverhans(network, originals, settings);
  const int64_t count = originals.count(), size = originals.units.numel() / count;
  const int64_t rounds = std::max<int64_t>(1, int64_t(kGamma * double(size) / 2));
  at::Tensor units = originals.units.clone().contiguous();
  at::Tensor free = (units < 1).to(at::kByte).contiguous();
  at::Tensor targets = runner_up(network.scores(originals, units), originals.predictions);
  at::Tensor open = at::arange(count, at::kLong);  // inputs that are not finished
  for (int64_t round = 0; round < rounds && open.numel() > 0; ++round) {
    Originals some = originals.rows(open);
    at::Tensor target = targets.index_select(0, open).unsqueeze(1);
    auto gradient =
        network.gradient(some, units.index_select(0, open), [&](const at::Tensor& scores, const at::Tensor& rows) {
          at::Tensor towards = at::zeros_like(scores).scatter(1, target.index_select(0, rows), 1.0);
          return std::vector<at::Tensor>{towards, 1 - towards};
        });
    at::Tensor alpha = gradient.gradients[0].contiguous(), beta = gradient.gradients[1].contiguous();
    at::Tensor reached = gradient.scores.argmax(1) == target.squeeze(1);
    std::vector<int64_t> still;
    for (int64_t i = 0; i < open.numel(); ++i) {
      if (reached[i].item<bool>()) continue;
      const int64_t row = open.data_ptr<int64_t>()[i];
      std::span<const float> a(alpha.data_ptr<float>() + i * size, size_t(size)),
          b(beta.data_ptr<float>() + i * size, size_t(size));
      std::span<uint8_t> may(free.data_ptr<uint8_t>() + row * size, size_t(size));
      auto [p, q] = settings.as_published == "art" ? largest_pair(a, may) : best_pair(a, b, may);
      if (p < 0) continue;
      for (int64_t feature : {p, q}) {
        float& value = units.data_ptr<float>()[row * size + feature];
        value = float(std::min(1.0, double(value) + kTheta));
        if (value >= 1) may[size_t(feature)] = 0;
      }
      still.push_back(row);
    }
    open = at::tensor(still, at::kLong);
  }
  return {units};
}

}  // namespace netmend::inputs
