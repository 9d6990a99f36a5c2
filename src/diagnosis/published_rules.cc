// The rules of the papers with their own thresholds, on what a record holds. They are not part of the default
// diagnosis:
// `--rules SET` runs one, and every one is listed with whether it fired.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnosis/rules.h"
#include "findings/phrases.h"

namespace netmend::diagnosis {
namespace {

using findings::Certainty;
using findings::Level;
using findings::plain;
using records::LayerStep;
using records::Line;

void say(const Scope& s, const char* kind, std::string what, std::string where = "") {
  Alarm alarm{.kind = kind,
              .where = std::move(where),
              .what = std::move(what),
              .level = Level::kMinor,
              .certainty = Certainty::kPossible};
  alarm.brief = alarm.what;
  alarm.evidence = alarm.what + ".";
  s.out.push_back(std::move(alarm));
}

/// Gradient norms of weights in the order of the network, in a look.
std::vector<double> norms(const Run& run, size_t look) {
  std::vector<double> found;
  for (const Track& track : run.tracks)
    if (track.rows.size() > look && std::isfinite(track.rows[look].gradient) &&
        lower(track.name).find("bias") == std::string::npos)
      found.push_back(track.rows[look].gradient);
  return found;
}

bool any_layer(const Run& run, double LayerStep::*field, double least, std::string& name) {
  for (const Track& track : run.tracks)
    if (track.last().*field >= least) return name = track.name, true;
  return false;
}

double best(const std::vector<double>& values) {
  double most = -INFINITY;
  for (double value : values)
    if (value > most) most = value;
  return most;
}

/// AutoTrainer raises gradient problems only when the run is slow too.
bool slow(const Scope& s) {
  const Run& run = s.run;
  if (run.accuracies.empty()) return !run.learned();
  double gain = 0;
  for (const auto* series : {&run.accuracies, &run.val_accuracies})
    for (size_t i = 1; i < series->size(); ++i) gain = std::max(gain, (*series)[i] - (*series)[i - 1]);
  return gain < s.limit["autotrainer-slow-gain"] && best(run.accuracies) < s.limit["autotrainer-slow-best"];
}

bool poor(const Scope& s) {
  return slow(s) || (!s.run.accuracies.empty() && best(s.run.accuracies) < s.limit["autotrainer-slow-best"]);
}

void autotrainer_vanish(const Scope& s) {
  for (size_t look = 0; look < s.run.probes.size(); ++look) {
    const auto g = norms(s.run, look);
    if (g.size() >= 2 && g.back() > 0 && g.front() / g.back() < s.limit["autotrainer-vanish-ratio"] &&
        g.front() < s.limit["autotrainer-vanish-norm"] && poor(s))
      return say(s, "vanishing-gradient", fmt::format("first gradient {} of the last", plain(g.front() / g.back())));
  }
}

void autotrainer_explode(const Scope& s) {
  if (!s.run.finite()) return say(s, "exploding-gradient", "NaN or Inf in the loss");
  for (size_t look = 0; look < s.run.probes.size(); ++look) {
    const auto g = norms(s.run, look);
    if (g.size() >= 2 && g.back() > 0 && g.front() / g.back() > s.limit["autotrainer-explode-ratio"] && poor(s))
      return say(s, "exploding-gradient", fmt::format("first gradient {} times the last", plain(g.front() / g.back())));
  }
}

void autotrainer_nan(const Scope& s) {
  const double limit = s.limit["autotrainer-loss"];
  for (double loss : s.run.losses)
    if (!(loss < limit))
      return say(s, "non-finite-training", fmt::format("a loss of {}", std::isnan(loss) ? "NaN" : plain(loss)));
}

void autotrainer_dying(const Scope& s) {
  double zero = 0, all = 0;
  for (const Track& track : s.run.tracks)
    if (std::isfinite(track.last().gradient_zero))
      zero += track.last().gradient_zero * track.last().size, all += track.last().size;
  if (all > 0 && zero / all >= s.limit["autotrainer-dying-share"] && poor(s))
    say(s, "dead-relu", fmt::format("{} of the gradients are 0", findings::percent(zero / all)));
}

void autotrainer_unstable(const Scope& s) {
  const auto& a = s.run.accuracies;
  size_t swings = 0;
  for (size_t i = 1; i + 1 < a.size(); ++i)
    if ((a[i] - a[i - 1]) * (a[i + 1] - a[i]) < 0 && std::abs(a[i] - a[i + 1]) >= s.limit["autotrainer-swing"])
      ++swings;
  if (a.size() >= 5 && double(swings) >= s.limit["autotrainer-swing-share"] * double(a.size()))
    say(s, "unstable-training", fmt::format("{} swings of the accuracy in {} epochs", swings, a.size()));
}

void autotrainer_slow(const Scope& s) {
  if (!s.run.accuracies.empty() && slow(s)) say(s, "learning-rate-low", "accuracy hardly grows");
}

void autotrainer_data(const Scope& s) {
  std::string name;
  if (any_layer(s.run, &LayerStep::activation, s.limit["autotrainer-activation"], name))
    say(s, "inputs-not-scaled", "large activations in " + name, name);
}

void autotrainer_loss(const Scope& s) {
  const bool binary = s.run.loss == "binary_crossentropy", many = s.run.loss.find("categorical") != std::string::npos;
  if (s.run.outputs < 1 || (!binary && !many)) return;
  if (s.run.outputs <= 2 ? !binary && s.run.outputs == 1 : !many)
    say(s, "wrong-loss", s.run.loss + fmt::format(" with {} outputs", s.run.outputs));
}

void deeplocalize_numbers(const Scope& s) {
  if (!s.run.finite()) return say(s, "non-finite-training", "NaN or Inf in the loss");
  for (const Track& track : s.run.tracks)
    if (std::any_of(track.rows.begin(), track.rows.end(),
                    [](const LayerStep& row) { return std::isinf(row.activation) || std::isinf(row.gradient); }))
      return say(s, "non-finite-training", "Inf in " + track.name, track.name);
}

void deeplocalize_unchanged(const Scope& s) {
  const auto n = size_t(s.limit["deeplocalize-unchanged"]);
  const auto& a = s.run.losses;
  if (a.size() >= n && std::all_of(a.end() - long(n), a.end(), [&](double value) { return value == a.back(); }))
    return say(s, "not-learning", fmt::format("the loss is the same in {} epochs", n));
  for (const Track& track : s.run.tracks)
    if (track.rows.size() >= 3 && track.last().gradient == 0)
      return say(s, "not-learning", "no gradient in " + track.name, track.name);
}

void deepdiagnosis_range(const Scope& s) {
  const Run& run = s.run;
  if (!run.targets.seen || run.last == "softmax" || run.last.empty()) return;
  const bool classes = run.loss.find("categorical") != std::string::npos && !run.from_logits;
  if (classes && (run.last == "relu" || run.last == "linear"))
    return say(s, "output-activation", run.last + " with " + run.loss);
  if ((run.last == "sigmoid" && (run.targets.min < 0 || run.targets.max > 1)) ||
      (run.last == "relu" && run.targets.min < 0) ||
      (run.last == "tanh" && (run.targets.min < -1 || run.targets.max > 1)))
    say(s, "output-activation", "labels outside the range of " + run.last);
}

void deepdiagnosis_dead(const Scope& s) {
  for (const Track& track : s.run.tracks)
    if (track.last().function == "relu" && track.last().zero >= s.limit["deepdiagnosis-dead-share"])
      return say(s, "dead-relu", findings::percent(track.last().zero) + " of the outputs of " + track.name + " are 0",
                 track.name);
}

void deepdiagnosis_saturated(const Scope& s) {
  std::string name;
  if (any_layer(s.run, &LayerStep::saturated, s.limit["deepdiagnosis-saturated-share"], name))
    say(s, "saturated-training", name, name);
}

void deepdiagnosis_loss(const Scope& s) {
  const auto n = size_t(s.limit["deepdiagnosis-loss-checks"]);
  const auto& a = s.run.losses;
  if (a.size() < n) return;
  if (*std::min_element(a.end() - long(n), a.end()) >= a[a.size() - n])
    say(s, "not-learning", fmt::format("loss not decreasing over {} checks", n));
}

void deepdiagnosis_accuracy(const Scope& s) {
  const auto n = size_t(s.limit["deepdiagnosis-accuracy-checks"]);
  const auto& a = s.run.accuracies;
  if (a.size() >= n && *std::max_element(a.end() - long(n), a.end()) <= a[a.size() - n])
    say(s, "not-learning", "accuracy not increasing");
}

/// A weight that is the same in so many looks in a row.
std::string unchanged_weight(const Run& run, size_t looks) {
  for (const Track& track : run.tracks) {
    if (track.rows.size() < looks || track.last().frozen || !(track.last().weight > 0)) continue;
    const bool still = std::all_of(track.rows.end() - long(looks), track.rows.end(),
                                   [](const LayerStep& row) { return row.unchanged || row.update == 0; });
    if (still) return track.name;
  }
  return "";
}

void deepdiagnosis_unchanged(const Scope& s) {
  if (const std::string name = unchanged_weight(s.run, size_t(std::max(1.0, s.limit["deepdiagnosis-unchanged"])));
      !name.empty())
    say(s, "lost-updates", name + " is the same in every check", name);
}

/// Of the causes that are tried once there is a symptom: rate · gradient / weight, of the median parameter.
void deepdiagnosis_rate(const Scope& s) {
  std::vector<double> ratios;
  for (const Track& track : s.run.tracks)
    if (const double ratio = s.run.rate * track.last().gradient / track.last().weight; std::isfinite(ratio))
      ratios.push_back(ratio);
  if (ratios.empty() || s.run.learned()) return;
  std::nth_element(ratios.begin(), ratios.begin() + long(ratios.size() / 2), ratios.end());
  const double middle = ratios[ratios.size() / 2];
  if (middle > s.limit["deepdiagnosis-update-high"]) say(s, "learning-rate-high", "steps of " + plain(middle));
  if (middle < s.limit["deepdiagnosis-update-low"]) say(s, "learning-rate-low", "steps of " + plain(middle));
}

void deepdiagnosis_vanish(const Scope& s) {
  for (const Track& track : s.run.tracks)
    if (track.last().size > 0 &&
        track.last().gradient / std::sqrt(track.last().size) < s.limit["deepdiagnosis-gradient"])
      return say(s, "vanishing-gradient", "gradient of " + track.name, track.name);
}

void umlaut_output(const Scope& s) {
  if (s.run.loss.find("categorical") == std::string::npos) return;
  if (!s.run.from_logits && s.run.last != "softmax" && !s.run.last.empty())
    say(s, "output-activation", "missing softmax before the loss");
  if (s.run.from_logits && s.run.last == "softmax") say(s, "output-activation", "softmax and from_logits");
}

void umlaut_linear(const Scope& s) {
  if (s.run.graph.whole("pair_count") > 0) say(s, "missing-nonlinearity", "layers without an activation");
}

void umlaut_inputs(const Scope& s) {
  if (s.run.inputs.seen && (s.run.inputs.max > 1 || s.run.inputs.min < -1))
    say(s, "inputs-not-scaled", "inputs outside -1 to 1");
}

void umlaut_nan(const Scope& s) {
  if (s.run.inputs.nan) say(s, "non-finite-training", "NaN in the inputs");
}

void umlaut_rate(const Scope& s) {
  if (s.run.rate > s.limit["umlaut-rate-high"]) say(s, "learning-rate-high", "rate " + plain(s.run.rate));
  if (s.run.rate < s.limit["umlaut-rate-low"]) say(s, "learning-rate-low", "rate " + plain(s.run.rate));
}

void umlaut_dropout(const Scope& s) {
  for (const Line& layer : s.run.layers)
    if (layer.number("rate", 0) > s.limit["umlaut-dropout"])
      return say(s, "over-fitting-run", "dropout above one half in " + layer.text("name"));
}

void umlaut_overfit(const Scope& s) {
  const auto &v = s.run.val_losses, &t = s.run.losses;
  if (v.size() >= 3 && t.size() == v.size() && v.back() > v[v.size() - 2] && t.back() <= t[t.size() - 2])
    say(s, "over-fitting-run", "validation loss rises");
}

void umlaut_accuracy(const Scope& s) {
  const auto &v = s.run.val_accuracies, &t = s.run.accuracies;
  if (v.size() >= 3 && !t.empty() &&
      (v.back() > s.limit["umlaut-accuracy"] || v.back() > t.back() + s.limit["umlaut-gap"]))
    say(s, "validation-overlap", "validation accuracy is suspiciously high");
}

void deepchecker_loss(const Scope& s) {
  const auto& a = s.run.losses;
  if (a.size() < 6) return;
  bool flat = true;
  for (size_t i = a.size() - 5; i < a.size(); ++i)
    flat = flat && a[i] > (1 - s.limit["deepchecker-loss-fall"]) * a[i - 1];
  if (flat && !s.run.learned()) say(s, "not-learning", "five checks with less than 5 % decrease");
  if (a.back() > s.limit["deepchecker-diverging"] * s.run.best_loss())
    say(s, "learning-rate-high", "loss is twice its best");
}

/// 1 − the share of turns: 1 is a curve that only falls or only grows.
void deepchecker_smooth(const Scope& s) {
  const auto& a = s.run.losses;
  const size_t from = a.size() > 50 ? a.size() - 50 : 0, n = a.size() - from;
  if (n < 10 || s.run.learned()) return;
  size_t turns = 0;
  for (size_t i = from + 1; i + 1 < a.size(); ++i) turns += (a[i] - a[i - 1]) * (a[i + 1] - a[i]) < 0;
  const double smooth = 1 - double(turns) / double(n - 2);
  if (smooth < s.limit["deepchecker-smooth"])
    say(s, "unstable-training", fmt::format("smoothness of the loss {}", plain(smooth)));
}

void deepchecker_correlation(const Scope& s) {
  const auto &a = s.run.losses, &b = s.run.accuracies;
  if (a.size() != b.size() || a.size() < 5 || !s.run.finite()) return;
  double x = 0, y = 0, xx = 0, yy = 0, xy = 0;
  const double n = double(a.size());
  for (size_t i = 0; i < a.size(); ++i) x += a[i], y += b[i], xx += a[i] * a[i], yy += b[i] * b[i], xy += a[i] * b[i];
  const double spread = (n * xx - x * x) * (n * yy - y * y);
  const double r = spread > 0 ? (n * xy - x * y) / std::sqrt(spread) : NAN;
  if (std::abs(r) < s.limit["deepchecker-correlation"])
    say(s, "wrong-loss", fmt::format("loss and accuracy hardly move together: correlation {}", plain(r)));
}

/// The variance of start weights against those of LeCun, He and Glorot: none of them fits.
void deepchecker_init(const Scope& s) {
  for (const Line& layer : s.run.layers) {
    const double fan_in = layer.number("fan_in"), deviation = layer.number("weight_std");
    const std::string role = layer.text("role");
    if (!(fan_in >= 8) || !std::isfinite(deviation) || (role != "linear" && role != "conv")) continue;
    double nearest = INFINITY;
    for (double wanted :
         {1 / fan_in, 2 / fan_in, 2 / (fan_in + std::max(1.0, layer.number("units", 1))), 1 / (3 * fan_in)}) {
      const double ratio = std::max(deviation * deviation, 1e-30) / wanted;
      nearest = std::min(nearest, std::max(ratio, 1 / ratio));
    }
    if (nearest > s.limit["deepchecker-init-ratio"])
      return say(s, "bad-initialization", "start weights of " + layer.text("name"), layer.text("name"));
  }
}

void deepchecker_targets(const Scope& s) {
  const Targets& y = s.run.targets;
  if (s.run.task == Task::kRegression && y.deviation < s.limit["deepchecker-target-spread"] * std::abs(y.mean))
    say(s, "targets-not-scaled", "targets hardly differ from their mean");
}

void deepchecker_zero(const Scope& s) {
  if (s.run.losses.size() >= 2 && std::abs(s.run.losses.back()) < s.limit["deepchecker-zero-loss"])
    say(s, "over-fitting-run", "a loss of 0: no regularisation");
}

/// The two experiments of `netmend watch --probe`.
void deepchecker_one_batch(const Scope& s) {
  for (const Line& probe : s.run.record->of("probe"))
    if (probe.text("probe") == "one-batch" &&
        probe.number("error") > (probe.flag("numbers") ? 1e-3 : s.limit["probe-error"]))
      return say(s, "not-learning", fmt::format("an error of {} on one batch", plain(probe.number("error"))));
}

void deepchecker_gradient_check(const Scope& s) {
  for (const Line& probe : s.run.record->of("probe"))
    if (probe.text("probe") == "gradient" && probe.number("worst") > s.limit["probe-gradient"])
      return say(s, "wrong-gradient", probe.text("parameter"), probe.text("parameter"));
}

void deepchecker_updates(const Scope& s) {
  for (const Track& track : s.run.tracks) {
    const LayerStep& row = track.last();
    if (!(row.weight > 0) || !(row.update > 0) || s.run.keras) continue;
    const double log = std::log10(row.update / row.weight);
    if (log > s.limit["deepchecker-update-fast"])
      return say(s, "learning-rate-high", "updates of " + track.name, track.name);
    if (log < s.limit["deepchecker-update-slow"])
      return say(s, "learning-rate-low", "updates of " + track.name, track.name);
  }
}

void deepchecker_units(const Scope& s) {
  std::string name;
  if (any_layer(s.run, &LayerStep::dead, s.limit["deepchecker-dead"], name)) say(s, "dead-relu", name, name);
  if (any_layer(s.run, &LayerStep::saturated, s.limit["deepchecker-saturated"], name))
    say(s, "saturated-training", name, name);
}

void deepchecker_data(const Scope& s) {
  const Inputs& x = s.run.inputs;
  if (x.seen && !(x.min >= -1 && x.max <= 1) && !(std::abs(x.mean) < 0.5 && x.deviation < 2))
    say(s, "inputs-not-scaled", "inputs are not normalised");
  double all = 0, entropy = 0;
  for (const auto& [label, count] : s.run.targets.counts) all += count;
  for (const auto& [label, count] : s.run.targets.counts) entropy -= count / all * std::log(count / all);
  if (s.run.targets.counts.size() >= 2 &&
      std::exp(entropy) / double(s.run.targets.counts.size()) < s.limit["deepchecker-perplexity"])
    say(s, "unbalanced-training", "labels are unbalanced");
}

void deepchecker_first(const Scope& s) {
  const double first = s.run.first_loss(), expected = s.run.outputs > 1 ? std::log(double(s.run.outputs)) : NAN;
  if (s.run.loss.find("categorical") != std::string::npos &&
      std::abs(first - expected) > s.limit["deepchecker-first-loss"] * expected)
    say(s, "bad-initialization", fmt::format("first loss {}, expected {}", plain(first), plain(expected)));
}

void deepchecker_gradients(const Scope& s) {
  for (const Track& track : s.run.tracks) {
    const double mean = track.last().size > 0 ? track.last().gradient / std::sqrt(track.last().size) : NAN;
    if (mean < s.limit["deepchecker-vanishing"]) return say(s, "vanishing-gradient", track.name, track.name);
    if (mean > s.limit["deepchecker-exploding"]) return say(s, "exploding-gradient", track.name, track.name);
  }
}

void neuralint_output(const Scope& s) {
  const Run& run = s.run;
  if (run.last.empty() || run.outputs < 1) return;
  const bool classes = run.loss.find("categorical") != std::string::npos;
  if ((classes && !run.from_logits && run.last != "softmax") ||
      (run.loss == "binary_crossentropy" && !run.from_logits && run.last != "sigmoid"))
    say(s, "output-activation", run.last + " with " + run.loss);
}

void neuralint_bias(const Scope& s) {
  for (size_t i = 1; i < s.run.layers.size(); ++i) {
    const std::string a = s.run.layers[i - 1].text("role"), b = s.run.layers[i].text("role");
    if (a == "dropout" && b == "norm") return say(s, "unstable-training", "batch normalisation after dropout");
  }
}

void neuralint_constant(const Scope& s) {
  for (const Line& layer : s.run.layers)
    if (layer.flag("same_units"))
      return say(s, "bad-initialization", "constant weights in " + layer.text("name"), layer.text("name"));
}

void neuralint_stacked(const Scope& s) {
  for (size_t i = 1; i < s.run.layers.size(); ++i)
    if (s.run.layers[i - 1].text("role") == "activation" && s.run.layers[i].text("role") == "activation")
      return say(s, "output-activation", "two activations in a row", s.run.layers[i].text("name"));
}

void neuralint_pooling(const Scope& s) {
  for (size_t i = 1; i < s.run.layers.size(); ++i)
    if (s.run.layers[i - 1].text("role") == "dropout" && s.run.layers[i].text("role") == "pool")
      return say(s, "over-fitting-run", "dropout before pooling", s.run.layers[i].text("name"));
}

void sagemaker_saturated(const Scope& s) {
  std::string name;
  if (any_layer(s.run, &LayerStep::saturated, s.limit["sagemaker-saturated"], name))
    say(s, "saturated-training", name, name);
}

void sagemaker_unchanged(const Scope& s) {
  if (const std::string name = unchanged_weight(s.run, size_t(std::max(1.0, s.limit["sagemaker-unchanged"])));
      !name.empty())
    say(s, "lost-updates", name, name);
}

/// Variances of the layers' start weights: the largest against the smallest.
void sagemaker_init(const Scope& s) {
  double most = 0, least = INFINITY;
  for (const Line& layer : s.run.layers)
    if (const double deviation = layer.number("weight_std"); deviation > 0)
      most = std::max(most, deviation * deviation), least = std::min(least, deviation * deviation);
  if (most / least > s.limit["sagemaker-init-ratio"])
    say(s, "bad-initialization",
        fmt::format("variances of start weights differ by a factor of {}", plain(most / least)));
}

void sagemaker_overtraining(const Scope& s) {
  const auto& v = s.run.val_losses;
  if (v.empty()) return;
  const size_t best = size_t(std::min_element(v.begin(), v.end()) - v.begin());
  if (double(v.size() - 1 - best) >= s.limit["sagemaker-overtraining"])
    say(s, "over-fitting-run", fmt::format("no better validation loss in {} epochs", v.size() - 1 - best));
}

void sagemaker_units(const Scope& s) {
  std::string name;
  if (any_layer(s.run, &LayerStep::dead, s.limit["sagemaker-dead"], name)) say(s, "dead-relu", name, name);
}

void sagemaker_vanish(const Scope& s) {
  for (const Track& track : s.run.tracks)
    if (track.last().size > 0 && track.last().gradient / std::sqrt(track.last().size) < s.limit["sagemaker-vanishing"])
      return say(s, "vanishing-gradient", track.name, track.name);
}

void sagemaker_updates(const Scope& s) {
  for (const Track& track : s.run.tracks) {
    const double ratio = track.last().update / track.last().weight;
    if (ratio > s.limit["sagemaker-update-high"]) return say(s, "learning-rate-high", track.name, track.name);
    if (ratio < s.limit["sagemaker-update-low"]) return say(s, "learning-rate-low", track.name, track.name);
  }
}

void sagemaker_loss(const Scope& s) {
  const auto n = size_t(s.limit["sagemaker-loss-steps"]);
  const auto& a = s.run.losses;
  if (a.size() > n && a.back() >= a[a.size() - 1 - n])
    say(s, "not-learning", fmt::format("loss not lower than {} checks ago", n));
}

void sagemaker_overfit(const Scope& s) {
  if (!s.run.val_losses.empty() && !s.run.losses.empty() &&
      (s.run.val_losses.back() - s.run.losses.back()) / s.run.losses.back() > s.limit["sagemaker-overfit"])
    say(s, "over-fitting-run", "validation loss above training loss");
}

void sagemaker_classes(const Scope& s) {
  double most = 0, least = INFINITY;
  for (const auto& [label, count] : s.run.targets.counts) most = std::max(most, count), least = std::min(least, count);
  if (s.run.targets.counts.size() >= 2 && most / least >= s.limit["sagemaker-imbalance"])
    say(s, "unbalanced-training", "classes");
}

void sagemaker_tensor(const Scope& s) {
  if (!s.run.finite()) say(s, "non-finite-training", "the loss");
}

constexpr Rule kRules[] = {
    {"autotrainer", "vanish", "vanishing gradient", "first against last kernel's gradient norm",
     "autotrainer-vanish-ratio, autotrainer-vanish-norm", "vanishing-gradient", "AutoTrainer, ICSE 2021",
     autotrainer_vanish},
    {"autotrainer", "explode", "exploding gradient", "first against last kernel's gradient norm",
     "autotrainer-explode-ratio", "exploding-gradient", "AutoTrainer, ICSE 2021", autotrainer_explode},
    {"autotrainer", "nan-loss", "NaN loss", "loss", "autotrainer-loss", "non-finite-training", "AutoTrainer, ICSE 2021",
     autotrainer_nan},
    {"autotrainer", "dying-relu", "dying ReLU", "share of zero gradients", "autotrainer-dying-share", "dead-relu",
     "AutoTrainer, ICSE 2021", autotrainer_dying},
    {"autotrainer", "unstable", "oscillation", "swings of the training accuracy",
     "autotrainer-swing, autotrainer-swing-share", "unstable-training", "AutoTrainer, ICSE 2021", autotrainer_unstable},
    {"autotrainer", "slow", "slow convergence", "gain of accuracy", "autotrainer-slow-gain, autotrainer-slow-best",
     "learning-rate-low", "AutoTrainer, ICSE 2021", autotrainer_slow},
    {"autotrainer", "data", "abnormal data", "mean activation", "autotrainer-activation", "inputs-not-scaled",
     "AutoTrainer, 2024", autotrainer_data},
    {"autotrainer", "loss", "improper loss", "outputs and loss", "exact", "wrong-loss", "AutoTrainer, 2024",
     autotrainer_loss},
    {"deeplocalize", "numbers", "NaN or Inf", "loss, activations, gradients", "exact", "non-finite-training",
     "DeepLocalize, ICSE 2021", deeplocalize_numbers},
    {"deeplocalize", "unchanged", "unchanged quantity", "loss, gradients", "deeplocalize-unchanged", "not-learning",
     "DeepLocalize, ICSE 2021", deeplocalize_unchanged},
    {"deepdiagnosis", "range", "out of range", "labels against the last activation", "exact", "output-activation",
     "DeepDiagnosis, ICSE 2022", deepdiagnosis_range},
    {"deepdiagnosis", "dead", "dead node", "share of zero outputs", "deepdiagnosis-dead-share", "dead-relu",
     "DeepDiagnosis, ICSE 2022", deepdiagnosis_dead},
    {"deepdiagnosis", "saturated", "saturated activation", "share of saturated outputs",
     "deepdiagnosis-saturated-share", "saturated-training", "DeepDiagnosis, ICSE 2022", deepdiagnosis_saturated},
    {"deepdiagnosis", "loss", "loss not decreasing", "loss", "deepdiagnosis-loss-checks", "not-learning",
     "DeepDiagnosis, ICSE 2022", deepdiagnosis_loss},
    {"deepdiagnosis", "accuracy", "accuracy not increasing", "accuracy", "deepdiagnosis-accuracy-checks",
     "not-learning", "DeepDiagnosis, ICSE 2022", deepdiagnosis_accuracy},
    {"deepdiagnosis", "vanish", "vanishing gradient", "mean gradient", "deepdiagnosis-gradient", "vanishing-gradient",
     "DeepDiagnosis, ICSE 2022", deepdiagnosis_vanish},
    {"deepdiagnosis", "unchanged", "unchanged weight", "weights in five checks", "deepdiagnosis-unchanged",
     "lost-updates", "DeepDiagnosis, ICSE 2022", deepdiagnosis_unchanged},
    {"deepdiagnosis", "rate", "steps too large or small", "rate times gradient against weight",
     "deepdiagnosis-update-high, deepdiagnosis-update-low", "learning-rate-high", "DeepDiagnosis, ICSE 2022",
     deepdiagnosis_rate},
    {"umlaut", "nan-inputs", "NaN in the inputs", "inputs", "exact", "non-finite-training", "UMLAUT, CHI 2021",
     umlaut_nan},
    {"umlaut", "output", "softmax and from_logits", "last activation, loss", "exact", "output-activation",
     "UMLAUT, CHI 2021", umlaut_output},
    {"umlaut", "linear", "linear layers in a row", "graph", "exact", "missing-nonlinearity", "UMLAUT, CHI 2021",
     umlaut_linear},
    {"umlaut", "inputs", "inputs outside -1 to 1", "range of inputs", "exact", "inputs-not-scaled", "UMLAUT, CHI 2021",
     umlaut_inputs},
    {"umlaut", "rate", "learning rate", "learning rate", "umlaut-rate-high, umlaut-rate-low", "learning-rate-high",
     "UMLAUT, CHI 2021", umlaut_rate},
    {"umlaut", "dropout", "dropout above one half", "rate of dropout", "umlaut-dropout", "over-fitting-run",
     "UMLAUT, CHI 2021", umlaut_dropout},
    {"umlaut", "over-fit", "validation loss rises", "validation loss", "exact", "over-fitting-run", "UMLAUT, CHI 2021",
     umlaut_overfit},
    {"umlaut", "accuracy", "validation accuracy too high", "validation accuracy", "umlaut-accuracy, umlaut-gap",
     "validation-overlap", "UMLAUT, CHI 2021", umlaut_accuracy},
    {"deepchecker", "loss", "loss not decreasing or diverging", "loss", "deepchecker-loss-fall, deepchecker-diverging",
     "not-learning", "TheDeepChecker, TOSEM 2023", deepchecker_loss},
    {"deepchecker", "updates", "updates too fast or slow", "log ratio of update and weight",
     "deepchecker-update-fast, deepchecker-update-slow", "learning-rate-high", "TheDeepChecker, TOSEM 2023",
     deepchecker_updates},
    {"deepchecker", "units", "dead or saturated units", "share of units", "deepchecker-dead, deepchecker-saturated",
     "dead-relu", "TheDeepChecker, TOSEM 2023", deepchecker_units},
    {"deepchecker", "data", "inputs and labels", "normalisation, perplexity of labels", "deepchecker-perplexity",
     "inputs-not-scaled", "TheDeepChecker, TOSEM 2023", deepchecker_data},
    {"deepchecker", "first-loss", "first loss", "first loss against ln C", "deepchecker-first-loss",
     "bad-initialization", "TheDeepChecker, TOSEM 2023", deepchecker_first},
    {"deepchecker", "gradients", "vanishing or exploding gradient", "mean gradient",
     "deepchecker-vanishing, deepchecker-exploding", "vanishing-gradient", "TheDeepChecker, TOSEM 2023",
     deepchecker_gradients},
    {"deepchecker", "fluctuation", "loss fluctuates", "smoothness of the loss", "deepchecker-smooth",
     "unstable-training", "TheDeepChecker, TOSEM 2023", deepchecker_smooth},
    {"deepchecker", "metric", "loss and metric", "correlation of loss and accuracy", "deepchecker-correlation",
     "wrong-loss", "TheDeepChecker, TOSEM 2023", deepchecker_correlation},
    {"deepchecker", "start-weights", "start weights", "variance against LeCun, He, Glorot", "deepchecker-init-ratio",
     "bad-initialization", "TheDeepChecker, TOSEM 2023", deepchecker_init},
    {"deepchecker", "targets", "targets hardly differ", "deviation against mean of targets",
     "deepchecker-target-spread", "targets-not-scaled", "TheDeepChecker, TOSEM 2023", deepchecker_targets},
    {"deepchecker", "zero-loss", "loss of 0", "loss", "deepchecker-zero-loss", "over-fitting-run",
     "TheDeepChecker, TOSEM 2023", deepchecker_zero},
    {"deepchecker", "one-batch", "one batch learnt by heart (--probe)", "error on one batch", "probe-error",
     "not-learning", "TheDeepChecker, TOSEM 2023", deepchecker_one_batch},
    {"deepchecker", "gradient-check", "gradients against differences (--probe)", "loss with a weight moved",
     "probe-gradient", "wrong-gradient", "TheDeepChecker, TOSEM 2023", deepchecker_gradient_check},
    {"neuralint", "constant-weights", "constant start weights", "start weights", "exact", "bad-initialization",
     "NeuraLint, TOSEM 2021", neuralint_constant},
    {"neuralint", "activations", "two activations in a row", "graph", "exact", "output-activation",
     "NeuraLint, TOSEM 2021", neuralint_stacked},
    {"neuralint", "pooling", "dropout before pooling", "graph", "exact", "over-fitting-run", "NeuraLint, TOSEM 2021",
     neuralint_pooling},
    {"neuralint", "output", "last activation and loss", "graph, loss", "exact", "output-activation",
     "NeuraLint, TOSEM 2021", neuralint_output},
    {"neuralint", "linear", "linear layers in a row", "graph", "exact", "missing-nonlinearity", "NeuraLint, TOSEM 2021",
     umlaut_linear},
    {"neuralint", "order", "batch normalisation after dropout", "graph", "exact", "unstable-training",
     "NeuraLint, TOSEM 2021", neuralint_bias},
    {"sagemaker", "dead-relu", "dead ReLU", "share of dead units", "sagemaker-dead", "dead-relu", "SageMaker Debugger",
     sagemaker_units},
    {"sagemaker", "saturated", "saturated activation", "share of saturated outputs", "sagemaker-saturated",
     "saturated-training", "SageMaker Debugger", sagemaker_saturated},
    {"sagemaker", "unchanged", "unchanged tensor", "weights in three looks", "sagemaker-unchanged", "lost-updates",
     "SageMaker Debugger", sagemaker_unchanged},
    {"sagemaker", "start-weights", "start weights", "variance of the layers' start weights", "sagemaker-init-ratio",
     "bad-initialization", "SageMaker Debugger", sagemaker_init},
    {"sagemaker", "overtraining", "no better validation loss", "epochs since the best validation loss",
     "sagemaker-overtraining", "over-fitting-run", "SageMaker Debugger", sagemaker_overtraining},
    {"sagemaker", "vanishing", "vanishing gradient", "mean gradient", "sagemaker-vanishing", "vanishing-gradient",
     "SageMaker Debugger", sagemaker_vanish},
    {"sagemaker", "updates", "weight update ratio", "update against weight",
     "sagemaker-update-high, sagemaker-update-low", "learning-rate-high", "SageMaker Debugger", sagemaker_updates},
    {"sagemaker", "loss", "loss not decreasing", "loss", "sagemaker-loss-steps", "not-learning", "SageMaker Debugger",
     sagemaker_loss},
    {"sagemaker", "over-fit", "over-fitting", "validation against training loss", "sagemaker-overfit",
     "over-fitting-run", "SageMaker Debugger", sagemaker_overfit},
    {"sagemaker", "imbalance", "class imbalance", "counts of labels", "sagemaker-imbalance", "unbalanced-training",
     "SageMaker Debugger", sagemaker_classes},
    {"sagemaker", "exploding-tensor", "NaN or Inf", "loss", "exact", "non-finite-training", "SageMaker Debugger",
     sagemaker_tensor},
};

}  // namespace

std::span<const Rule> published_rules() { return kRules; }

}  // namespace netmend::diagnosis
