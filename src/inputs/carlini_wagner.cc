// Carlini and Wagner's L2 attack: Towards evaluating the robustness of neural networks (S&P 2017, arXiv:1608.04644).
// Minimise ‖x' − x‖² + c · max(z_y − max_{j≠y} z_j + κ, 0) over w, where x' = ½ + ½ tanh(w) stays in the valid range,
// by Adam; c is found by a binary search of 9 steps from 1e-3, multiplied by 10 until an attack succeeds. A search step
// ends early for an input whose loss has not fallen by a ten-thousandth over a tenth of the iterations; it then costs
// nothing any more. That is asked only once values at the edge of the range have had the time to come into play: Adam
// moves w by its rate a step, and the edge lies at |w| = 7.25. CleverHans
// searches in 5 steps from 1e-2 at a rate of 5e-3 and is not as patient; so does --as-published cleverhans.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "inputs/method.h"

namespace netmend::inputs {
namespace {

constexpr double kMost = 1e10, kFirstDecay = 0.9, kSecondDecay = 0.999, kTiny = 1e-8;
constexpr double kNearlyOne = 0.999999, kEdge = 7.25, kFallen = 0.9999;

/// What programs choose differently.
struct Form {
  int64_t search_steps = 9;
  double first = 1e-3, rate = 0.01;
  bool patient = true;  ///< an input is not dropped before the edge can have come into play
};
Form form_of(const Settings& settings) {
  Form form = settings.as_published == "cleverhans" ? Form{5, 1e-2, 5e-3, false} : Form{};
  if (settings.step_size > 0) form.rate = settings.step_size;
  return form;
}

/// What is known of each input over the whole search.
struct Search {
  at::Tensor c, low, high;         ///< the weight of the prediction, and between which values it is sought
  at::Tensor best, best_distance;  ///< the nearest input found that is predicted otherwise
  at::Tensor found;                ///< in this step of the search
};

/// Adam's sums and the inputs that one step of the search still works on.
struct Walk {
  at::Tensor rows;  ///< which inputs
  Originals inputs;
  at::Tensor from, w, first, second, c, last_loss;

  void keep(const at::Tensor& index) {
    for (at::Tensor* part : {&rows, &from, &w, &first, &second, &c, &last_loss}) *part = part->index_select(0, index);
    inputs = inputs.rows(index);
  }
};

/// How far the prediction is ahead of its strongest rival.
struct Margin {
  at::Tensor lead, rival;
  Margin(const at::Tensor& scores, const at::Tensor& predictions) {
    at::Tensor own = predictions.unsqueeze(1);
    auto [most, which] = scores.scatter(1, own, -INFINITY).max(1);
    lead = scores.gather(1, own).squeeze(1) - most, rival = which;
  }
  at::Tensor hinge(double confidence) const { return (lead + confidence).clamp_min(0); }
  /// Another class is predicted, by the margin asked for.
  at::Tensor fooled(double confidence) const { return confidence > 0 ? lead <= -confidence : lead < 0; }
};

/// The gradient of c · max(z_y − z_rival + κ, 0) by the scores.
at::Tensor hinge_weights(const at::Tensor& scores, const at::Tensor& predictions, const at::Tensor& c,
                         double confidence) {
  Margin margin(scores, predictions);
  at::Tensor active = at::where(margin.hinge(confidence) > 0, c, at::zeros_like(c)).unsqueeze(1);
  return at::zeros_like(scores)
      .scatter(1, predictions.unsqueeze(1), active)
      .scatter(1, margin.rival.unsqueeze(1), -active);
}

/// Notes inputs of this iteration that are predicted otherwise and nearer than any before.
void note_best(Search& search, const Walk& walk, const at::Tensor& units, const at::Tensor& distance,
               const at::Tensor& fooled) {
  at::Tensor better = fooled.logical_and(distance < search.best_distance.index_select(0, walk.rows));
  search.found.index_put_({walk.rows}, search.found.index_select(0, walk.rows).logical_or(fooled));
  at::Tensor which = better.nonzero().squeeze(1);
  if (which.numel() == 0) return;
  at::Tensor rows = walk.rows.index_select(0, which);
  search.best.index_put_({rows}, units.index_select(0, which));
  search.best_distance.index_put_({rows}, distance.index_select(0, which));
}

void walk_down(const Network& network, const Originals& originals, const Settings& settings, const Form& form,
               Search& search) {
  at::Tensor start = ((originals.units.clamp(0, 1) * 2 - 1) * kNearlyOne).atanh();
  Walk walk{at::arange(originals.count(), start.options().dtype(at::kLong)),
            originals,
            at::tanh(start) * 0.5 + 0.5,
            start,
            at::zeros_like(start),
            at::zeros_like(start),
            search.c,
            at::full({originals.count()}, INFINITY, start.options())};
  const int64_t look = std::max<int64_t>(1, settings.steps / 10);
  const double rate = form.rate;
  for (int64_t step = 1; step <= settings.steps && walk.rows.numel() > 0; ++step) {
    at::Tensor t = at::tanh(walk.w), units = t * 0.5 + 0.5, offset = units - walk.from;
    at::Tensor distance = offset.flatten(1).square().sum(1);
    auto gradient = network.gradient(walk.inputs, units, [&](const at::Tensor& scores, const at::Tensor& rows) {
      return std::vector<at::Tensor>{hinge_weights(scores, walk.inputs.predictions.index_select(0, rows),
                                                   walk.c.index_select(0, rows), settings.confidence)};
    });
    Margin margin(gradient.scores, walk.inputs.predictions);
    at::Tensor pull = gradient.gradients[0], fooled = margin.fooled(settings.confidence);
    note_best(search, walk, units, distance, fooled);
    if ((form.patient ? step : step - 1) % look == 0) {
      at::Tensor loss = distance + walk.c * margin.hinge(settings.confidence);
      at::Tensor go_on = (loss <= kFallen * walk.last_loss).nonzero().squeeze(1);
      walk.last_loss = loss;
      if ((!form.patient || double(step) * rate >= kEdge) && go_on.numel() < walk.rows.numel()) {
        walk.keep(go_on);
        auto pick = [&](at::Tensor& tensor) { tensor = tensor.index_select(0, go_on); };
        pick(t), pick(offset), pick(pull);
      }
    }
    at::Tensor g = (2 * offset + pull) * (1 - t.square()) * 0.5;
    walk.first.mul_(kFirstDecay).add_(g, 1 - kFirstDecay);
    walk.second.mul_(kSecondDecay).addcmul_(g, g, 1 - kSecondDecay);
    const double bias1 = 1 - std::pow(kFirstDecay, double(step)), bias2 = 1 - std::pow(kSecondDecay, double(step));
    walk.w = walk.w - rate / bias1 * walk.first / ((walk.second / bias2).sqrt_().add_(kTiny));
  }
}

}  // namespace

Changed carlini_wagner(const Network& network, const Originals& originals, const Settings& settings) {
  at::NoGradGuard no_grad;
  const int64_t count = originals.count();
  auto filled = [&](double value) { return at::full({count}, value, originals.units.options()); };
  const Form form = form_of(settings);
  Search search{filled(form.first), filled(0), filled(kMost), originals.units.clone(), filled(INFINITY), {}};
  for (int64_t step = 0; step < form.search_steps; ++step) {
    search.found = at::zeros({count}, originals.units.options().dtype(at::kBool));
    // The last try of an input that was never fooled is the strongest one.
    if (step == form.search_steps - 1 && form.patient)
      search.c = at::where(search.best_distance.isinf(), search.high.clamp_max(kMost), search.c);
    walk_down(network, originals, settings, form, search);
    search.high = at::where(search.found, at::minimum(search.high, search.c), search.high);
    search.low = at::where(search.found, search.low, at::maximum(search.low, search.c));
    at::Tensor bounded = search.high < kMost;
    search.c = at::where(bounded, (search.low + search.high) / 2, search.c * 10);
  }
  return {search.best};
}

}  // namespace netmend::inputs
