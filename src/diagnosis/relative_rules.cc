// Rules with thresholds, relative to the run's own history where that works better. What they say is a guess with a
// likelihood; where an exact check explains the run they step back (diagnose.cc).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "diagnosis/rules.h"
#include "findings/phrases.h"

namespace netmend::diagnosis {
namespace {

using findings::Certainty;
using findings::Level;
using findings::percent;
using findings::plain;
using records::LayerStep;
using records::Line;

bool is_adaptive(const Run& run) {
  const std::string name = lower(run.optimizer);
  return name.find("ada") != std::string::npos || name.find("rms") != std::string::npos ||
         name.find("adam") != std::string::npos;
}

double median(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return NAN;
  std::nth_element(values.begin(), values.begin() + long(values.size() / 2), values.end());
  return values[values.size() / 2];
}

bool is_small(const std::string& parameter) {
  const std::string name = lower(parameter);
  return name.find("bias") != std::string::npos || name.find("beta") != std::string::npos ||
         name.find("gamma") != std::string::npos;
}

/// Size of an update against the weight, over layers and looks; NaN where it was not seen. In Keras a look covers an
/// epoch or several: divided by its steps.
double update_ratio(const Run& run) {
  std::vector<double> ratios;
  for (const Track& track : run.tracks) {
    if (is_small(track.name)) continue;  // biases start at 0: any step is large
    for (size_t i = 1; i < track.rows.size(); ++i) {
      const LayerStep& row = track.rows[i];
      if (!(row.weight > 0) || !std::isfinite(row.update) || row.size < 2) continue;
      const double steps = run.keras ? std::max<double>(1, double(track.steps[i] - track.steps[i - 1])) : 1;
      ratios.push_back(row.update / row.weight / (run.keras ? std::sqrt(steps) : 1));
    }
  }
  return median(ratios);
}

/// Gradient per weight of the parameters with two axes or more, in the order of the network: first look.
std::vector<std::pair<std::string, double>> gradients(const Run& run, size_t look) {
  std::vector<std::pair<std::string, double>> found;
  for (const Track& track : run.tracks) {
    if (track.rows.size() <= look || !std::isfinite(track.rows[look].gradient) || track.rows[look].size < 1) continue;
    if (is_small(track.name)) continue;
    found.emplace_back(track.name, track.rows[look].gradient / std::sqrt(track.rows[look].size));
  }
  return found;
}

bool input_is_embedded(const Run& run) {
  for (const Line& layer : run.layers) {
    if (layer.text("role") == "embedding") return true;
    if (layer.text("role") == "norm") return true;  // scales by itself
    if (layer.text("role") == "linear" || layer.text("role") == "conv" || layer.text("role") == "recurrent")
      return false;
  }
  return run.inputs.integer;
}

Alarm guess(const char* kind, std::string what, Level level, double likelihood, std::string evidence) {
  Alarm alarm{
      .kind = kind, .what = std::move(what), .level = level, .certainty = Certainty::kLikely, .likelihood = likelihood};
  alarm.brief = alarm.what;
  alarm.evidence = std::move(evidence);
  return alarm;
}

/// What a step does to the weights, at the end of a sentence; nothing where it is not known.
std::string step_words(double ratio) {
  return std::isfinite(ratio) ? fmt::format("; a step changes weights by {} of their size", percent(ratio)) : "";
}

/// The step-0 test: what is large before any update is not the learning rate's doing.
void inputs_scaled(const Scope& s) {
  const Inputs& x = s.run.inputs;
  if (!x.seen || input_is_embedded(s.run)) return;
  const double largest = std::max(std::abs(x.min), std::abs(x.max));
  const bool pixels = x.whole && x.max > 100 && x.max <= 255 && x.min >= 0;
  const bool large = largest > s.limit["input-largest"] && (x.deviation > 5 || x.largest_deviation > 5);
  const bool uneven = x.deviation_ratio > s.limit["input-deviation-ratio"] && x.largest_deviation > 2;
  if (!pixels && !large && !uneven) return;
  const bool bad = !s.run.learned();
  const bool far = largest > 50 || pixels;
  s.out.push_back(guess(
      "inputs-not-scaled", fmt::format("values from {} to {}", plain(x.min), plain(x.max)),
      bad && far ? Level::kSerious : (bad ? Level::kMinor : Level::kNote), bad ? (far ? 0.9 : 0.6) : 0.3,
      fmt::format(
          "Inputs lie between {} and {} with standard deviation {}{}.", plain(x.min), plain(x.max), plain(x.deviation),
          uneven ? fmt::format("; those of the columns differ by a factor of up to {}", plain(x.deviation_ratio))
                 : "")));
}

void targets_scaled(const Scope& s) {
  const Targets& y = s.run.targets;
  if (!y.seen || s.run.task != Task::kRegression || s.run.loss.find("crossentropy") != std::string::npos) return;
  const double largest = std::max(std::abs(y.min), std::abs(y.max));
  if (largest <= s.limit["target-largest"]) return;
  const bool bad = !s.run.learned();
  s.out.push_back(guess("targets-not-scaled", fmt::format("values from {} to {}", plain(y.min), plain(y.max)),
                        bad && largest > 1000 ? Level::kSerious : (bad ? Level::kMinor : Level::kNote),
                        bad ? (largest > 1000 ? 0.87 : 0.6) : 0.2,
                        fmt::format("Targets lie between {} and {}; an untrained network predicts values near 0.",
                                    plain(y.min), plain(y.max))));
}

void rate_high(const Scope& s) {
  const Run& run = s.run;
  if (run.losses.size() < 2) return;
  const double ratio = update_ratio(run), first = run.first_loss(), last = run.last_loss(), best = run.best_loss();
  const bool broke = !run.finite() && std::isfinite(first);  // what is NaN before any step is no rate's doing
  const bool enough = run.steps >= 20 || run.record->epochs.size() >= 5;
  const bool grew = enough && std::isfinite(first) && first > 0 &&
                    (last > 3 * first || (last > 1.5 * first && last > run.losses.front() && run.losses.size() >= 5));
  const bool apart = enough && std::isfinite(best) && best > 0 && last > 3 * best && last > 0.7 * first;
  const bool large = ratio > s.limit["update-ratio-high"];
  const bool steep = std::isfinite(run.rate) && run.rate > (is_adaptive(run) ? 0.02 : 0.5);
  // A hundred times the usual rate: a network may get somewhere in spite of it.
  const bool absurd = is_adaptive(run) && run.rate >= 0.1 && !(last < 0.3 * run.constant_loss());
  if (!(absurd || broke || grew || apart || (large && enough && !run.learned()) || (steep && !run.learned()))) return;
  const bool serious = (broke || grew || apart) && (large || steep);
  s.out.push_back(guess("learning-rate-high",
                        std::isfinite(run.rate) ? fmt::format("{} with {}", plain(run.rate), run.optimizer)
                        : broke                 ? "the loss is NaN or Inf"
                        : grew || apart         ? "the loss grows"
                                        : fmt::format("a step changes weights by {} of their size", percent(ratio)),
                        serious || ((large || steep) && !run.learned()) ? Level::kSerious : Level::kMinor,
                        serious ? 0.85 : (large && steep ? 0.8 : (large || steep || absurd ? 0.7 : 0.5)),
                        fmt::format("The loss went from {} to {} (best {}){}.", plain(first), plain(last), plain(best),
                                    step_words(ratio))));
}

/// What an optimiser of this kind is usually started with.
double usual_rate(const Run& run) { return is_adaptive(run) ? 0.001 : 0.01; }

/// The loss falls in nearly every epoch, and hardly gets anywhere.
bool creeps(const Run& run) {
  const size_t n = run.losses.size();
  if (!run.by_epoch || n < 8 || run.rate > usual_rate(run) || run.learned()) return false;
  size_t falls = 0;
  for (size_t i = 1; i < n; ++i) falls += run.losses[i] < run.losses[i - 1];
  const double fall = 1 - run.losses.back() / run.losses.front();
  return double(falls) >= 0.9 * double(n - 1) && fall > 1e-4 && fall < 0.2;
}

void rate_low(const Scope& s) {
  const Run& run = s.run;
  if (run.losses.size() < 3 || !run.finite()) return;
  const double ratio = update_ratio(run), first = run.first_loss(), last = run.last_loss();
  if (creeps(run)) {
    s.out.push_back(guess("learning-rate-low", fmt::format("{} with {}", plain(run.rate), run.optimizer), Level::kMinor,
                          0.61,
                          fmt::format("The loss fell in nearly every epoch, but only from {} to {} in all.",
                                      plain(run.losses.front()), plain(run.losses.back()))));
    return;
  }
  // Updates are tiny without a gradient too: only a rate that is not above the usual one can be to blame.
  const bool tiny = std::isfinite(ratio) && ratio < s.limit["update-ratio-low"] * (run.keras ? 10 : 1) &&
                    !(run.rate >= usual_rate(run));
  const bool low = std::isfinite(run.rate) && run.rate < (is_adaptive(run) ? 5e-5 : 5e-4);
  const bool moved = std::isfinite(first) && (last < 0.8 * first || last > 1.2 * first);
  // A network that happens to start above chance has not learned either where nothing moves at all.
  const bool stands = tiny && low && last > 0.98 * first && run.losses.back() > 0.98 * run.losses.front();
  if (!(tiny || low) || moved || (run.learned() && !stands)) return;
  s.out.push_back(guess("learning-rate-low",
                        std::isfinite(run.rate)
                            ? fmt::format("{} with {}", plain(run.rate), run.optimizer)
                            : fmt::format("a step changes weights by {} of their size", percent(ratio)),
                        tiny && low ? Level::kSerious : Level::kMinor, tiny && low ? 0.85 : 0.6,
                        fmt::format("The loss went from {} to {}{}.", plain(first), plain(last), step_words(ratio))));
}

/// Where nothing else shows: a network that had hardly any steps, or one to three epochs of few.
void few_steps(const Scope& s, int64_t epochs) {
  const Run& run = s.run;
  const double few = s.limit["few-steps"], steps = double(run.steps);
  const bool learned = run.learned(), hardly = steps < few / 4;
  const bool once = epochs > 0 && epochs <= 3 && steps < 2.5 * few && !learned;
  if (steps <= 0 || !(hardly || once || (steps < few && !learned))) return;
  s.out.push_back(
      guess("still-learning", "", once ? Level::kMinor : Level::kNote, once ? 0.6 : (hardly ? 0.62 : 0.35),
            fmt::format("Training had {}{}.", findings::counted(run.steps, "step"),
                        epochs > 0 ? fmt::format(" in {}", findings::counted(epochs, "epoch")) : std::string())));
}

/// A loss that still falls asks for more steps or for larger ones. With a rate far below the usual one of its optimiser
/// larger ones may do, and after many steps that comes first.
void slow(const Scope& s, int64_t epochs) {
  const Run& run = s.run;
  const Alarm longer = s.out.back();
  const bool many = run.steps >= 500 && epochs >= 20;
  const bool sgd = lower(run.optimizer) == "sgd";
  const double usual = usual_rate(run);
  if (!(run.rate <= s.limit["slow-rate"] * usual) || !(sgd || is_adaptive(run))) return;
  s.out.push_back(guess("learning-rate-low", fmt::format("{} with {}", plain(run.rate), run.optimizer),
                        many ? longer.level : Level::kNote, many ? longer.likelihood + 0.02 : 0.28,
                        fmt::format("The loss still fell at the end, and the learning rate is {}; {} usually starts "
                                    "with {}.",
                                    plain(run.rate), run.optimizer, plain(usual))));
}

/// A line through the last third; its fall against what is left above the best possible.
void still_learning(const Scope& s) {
  const Run& run = s.run;
  const size_t n = run.losses.size();
  if (!run.finite() || n < 1 || run.record->cut) return;  // what has not ended has not ended too early
  const int64_t epochs = run.epochs_planned > 0 ? run.epochs_planned : int64_t(run.record->epochs.size());
  if (n < 4) {  // one to three epochs: too few to see a trend
    few_steps(s, epochs);
    return;
  }
  const size_t window = std::max<size_t>(3, n / 3), from = n - window;
  std::vector<double> tail(run.losses.begin() + long(from), run.losses.end());
  size_t falls = 0;
  for (size_t i = 1; i < tail.size(); ++i) falls += tail[i] < tail[i - 1];
  double x = 0, y = 0, xx = 0, xy = 0;
  for (size_t i = 0; i < tail.size(); ++i) x += double(i), y += tail[i], xx += double(i * i), xy += double(i) * tail[i];
  const double m = double(tail.size()), slope = (m * xy - x * y) / (m * xx - x * x);
  const double fall = -slope * (m - 1), level = y / m;
  double rest = 0;
  for (size_t i = 0; i < tail.size(); ++i) rest += std::pow(tail[i] - (level + slope * (double(i) - (m - 1) / 2)), 2);
  const double error = m > 2 ? std::sqrt(rest / (m - 2) / ((m * m - 1) * m / 12)) : INFINITY;
  const bool steady = double(falls) >= 0.7 * (m - 1) || slope < -3 * error;
  const bool low = run.learned() && level < 0.2 * run.first_loss();
  bool val_rises = false;
  if (run.val_losses.size() >= 4) {
    double least = INFINITY;
    for (double value : run.val_losses) least = std::min(least, value);
    val_rises = run.val_losses.back() > 1.05 * least;
  }
  const bool few = run.steps > 0 && run.steps < 100 && epochs <= 3 && !run.learned();
  if (!(fall > (few ? 0.2 : 1.0) * s.limit["still-learning-share"] * level) || !(steady || few) || low || val_rises)
    return few_steps(s, epochs);
  const bool much = fall > 0.15 * level || (epochs > 0 && epochs <= 10 && fall > 0.08 * level);
  const bool far = !run.learned() || level > 0.4 * run.first_loss();
  s.out.push_back(guess("still-learning", "", far && (much || few) ? Level::kMinor : Level::kNote,
                        !run.learned() ? 0.6 : 0.3,
                        fmt::format("In the last third of the run, the loss still fell by {} of its value, to {}.",
                                    percent(fall / level), plain(run.losses.back()))));
  slow(s, epochs);
}

void over_fit(const Scope& s) {
  const Run& run = s.run;
  if (run.val_losses.size() >= 5 && run.losses.size() == run.val_losses.size()) {
    size_t best = 0;
    for (size_t i = 1; i < run.val_losses.size(); ++i)
      if (run.val_losses[i] < run.val_losses[best]) best = i;
    const double least = run.val_losses[best], end = run.val_losses.back();
    const bool falls = run.losses.back() < run.losses[best];
    const bool old = run.val_losses.size() - best > std::max<size_t>(3, run.val_losses.size() / 5);
    if (falls && old && end > least * (1 + s.limit["over-fit-rise"]) && run.losses.back() < 0.8 * end) {
      const bool strong = end > 1.3 * least;
      s.out.push_back(guess(
          "over-fitting-run", fmt::format("best validation loss in epoch {}", best + 1),
          strong ? Level::kMinor : Level::kNote, 0.65,
          fmt::format("The validation loss was lowest in epoch {} ({}) and ended at {}; the training loss fell to {}.",
                      best + 1, plain(least), plain(end), plain(run.losses.back()))));
      return;
    }
  }
  if (run.accuracies.empty() || run.val_accuracies.size() < 3) return;
  const double gap = run.accuracies.back() - run.val_accuracies.back();
  if (gap >= s.limit["over-fit-gap"] && run.accuracies.back() > 0.9)
    s.out.push_back(guess("over-fitting-run",
                          fmt::format("{} on training, {} on validation data", percent(run.accuracies.back()),
                                      percent(run.val_accuracies.back())),
                          gap >= 0.2 ? Level::kMinor : Level::kNote, 0.5,
                          fmt::format("Accuracy is {} on training data and {} on validation data.",
                                      percent(run.accuracies.back()), percent(run.val_accuracies.back()))));
}

/// The worst hidden layer by a share that was recorded.
const Track* worst(const Run& run, double LayerStep::*share, double least, size_t& look) {
  const Track* found = nullptr;
  double most = least;
  for (const Track& track : run.tracks)
    if (const double value = track.last().*share; std::isfinite(value) && value >= most && track.rows.size() >= 1)
      found = &track, most = value, look = track.rows.size() - 1;
  return found;
}

void dead(const Scope& s) {
  size_t look = 0;
  const Track* track = worst(s.run, &LayerStep::dead, s.limit["dead-share"], look);
  if (!track) return;
  const double end = track->last().dead, start = track->first().dead;
  const bool stuck = !s.run.learned();
  const bool early = start >= s.limit["dead-share"];
  s.out.push_back(guess(
      "dead-relu", track->name, stuck && end > 0.9 ? Level::kSerious : (stuck ? Level::kMinor : Level::kNote),
      stuck ? (end > 0.9 ? 0.82 : 0.55) : 0.25,
      fmt::format("{} of the units of {} give 0 for every input of the batch; before the first step it was {}{}.",
                  percent(end), track->name, percent(start), early ? ", so the learning rate is not the cause" : "")));
  s.out.back().where = track->name;
}

void saturated(const Scope& s) {
  std::string last_layer;
  for (const Line& layer : s.run.layers)
    if (layer.text("role") == "linear" || layer.text("role") == "activation") last_layer = layer.text("name");
  const Track* found = nullptr;
  for (const Track& track : s.run.tracks)
    if (track.name != last_layer && track.last().saturated > s.limit["saturated-share"] &&
        (!found || track.last().saturated > found->last().saturated))
      found = &track;
  if (!found) return;
  const bool stuck = !s.run.learned();
  const bool early = found->first().saturated > s.limit["saturated-share"];  // the start weights are to blame
  s.out.push_back(guess(
      "saturated-training", found->name, stuck ? Level::kSerious : (early ? Level::kMinor : Level::kNote),
      stuck ? 0.72 : (early ? 0.5 : 0.25),
      fmt::format("{} of the outputs of {} lie where the activation function is flat{}.",
                  percent(found->last().saturated), found->name, early ? ", and most did in the first look" : "")));
  s.out.back().where = found->name;
}

void vanishing(const Scope& s) {
  const Run& run = s.run;
  if (run.probes.empty()) return;
  const auto first = gradients(run, 0);
  if (first.size() < 3) return;
  const double ratio = first.front().second / std::max(first.back().second, 1e-300);
  const double limit = s.limit["gradient-fall"];
  const bool flat = run.hidden_is("sigmoid") || run.hidden_is("tanh");
  const bool stuck = !run.learned();
  if (!(first.back().second > 0) || !(ratio < (flat && stuck ? 30 * limit : limit))) return;
  s.out.push_back(
      guess("vanishing-gradient",
            fmt::format("{} gets {} of the gradient of {}", first.front().first, percent(ratio), first.back().first),
            stuck ? (ratio < limit ? Level::kSerious : Level::kMinor) : Level::kNote, stuck ? 0.75 : 0.2,
            fmt::format("Per weight, the gradient of {} is {} times that of {} in the first step.", first.front().first,
                        plain(ratio), first.back().first)));
  s.out.back().where = first.front().first;
}

void exploding(const Scope& s) {
  const Run& run = s.run;
  for (const Line& layer : run.layers)
    if (layer.text("role") == "recurrent" &&
        (layer.text("activation") == "relu" || layer.text("activation") == "linear")) {
      const bool broke = !run.finite() || !run.record->first("nonfinite").empty();
      s.out.push_back(guess(
          "exploding-gradient", fmt::format("{} is recurrent with {}", layer.text("name"), layer.text("activation")),
          broke ? Level::kSerious : Level::kNote, broke ? 0.92 : 0.3,
          fmt::format(
              "{} multiplies its state in every time step, and {} does not bound it, so it can grow without limit.",
              layer.text("name"), layer.text("activation"))));
      s.out.back().where = layer.text("name");
      s.out.back().numbers["category"] = "bad-hidden-activation";
      return;
    }
  std::vector<double> norms;
  for (const records::Step& step : run.probes) {
    double sum = 0;
    bool any = false;
    for (const auto& [name, row] : step.layers)
      if (std::isfinite(row.gradient)) sum += row.gradient * row.gradient, any = true;
    if (any) norms.push_back(std::sqrt(sum));
  }
  if (norms.empty()) return;
  const double usual = median(norms);
  const double seen = *std::max_element(norms.begin(), norms.end());
  const double most = run.largest_gradient > seen ? run.largest_gradient : seen;
  // Compared with the loss, so that large targets alone are no explosion; the first look is before any step.
  const bool at_start = norms.front() > 1e3 * std::max(1.0, run.first_loss() / 10) && run.first_loss() < 1e3;
  const bool grew = norms.size() >= 4 && most > s.limit["gradient-growth"] * std::max(usual, 1e-3) && most > 100;
  if (!at_start && !grew) return;
  s.out.push_back(guess("exploding-gradient", fmt::format("norm up to {}", plain(most)),
                        run.learned() ? Level::kNote : Level::kSerious, run.learned() ? 0.2 : 0.6,
                        fmt::format("The gradient norm was {} before the first step and {} at most; the median is {}.",
                                    plain(norms.front()), plain(most), plain(usual))));
}

/// Mean activation of the layers in the first look: flat, growing or shrinking with depth.
void start_weights(const Scope& s) {
  const Run& run = s.run;
  std::vector<std::string> large, small, uniform;
  size_t hidden = 0, last = 0;
  for (size_t i = 0; i < run.layers.size(); ++i)
    if (run.layers[i].has("fan_in")) last = i;
  for (size_t i = 0; i < run.layers.size(); ++i) {
    const Line& layer = run.layers[i];
    const double fan_in = layer.number("fan_in"), deviation = layer.number("weight_std");
    if (!(fan_in >= 2) || !std::isfinite(deviation) || layer.flag("same_units") || layer.text("role") == "embedding")
      continue;
    if (layer.text("role") != "linear" && layer.text("role") != "conv") continue;
    ++hidden;
    const double he = std::sqrt(2 / fan_in), glorot = std::sqrt(2 / (fan_in + std::max(1.0, layer.number("units", 1))));
    if (deviation > s.limit["init-ratio-high"] * he) large.push_back(layer.text("name"));
    if (deviation < s.limit["init-ratio-low"] * glorot && i != last) small.push_back(layer.text("name"));
    if (layer.text("initializer") == "RandomUniform" || layer.text("initializer") == "RandomNormal")
      uniform.push_back(layer.text("name"));
  }
  const bool stuck = !run.learned();
  if (!large.empty())
    s.out.push_back(
        guess("bad-initialization", fmt::format("{} starts with large weights", large[0]),
              stuck ? Level::kSerious : Level::kNote, stuck ? 0.88 : 0.25,
              fmt::format("Of {}, {} {} with weights more than {} times as large as He initialisation gives.",
                          findings::counted(int64_t(hidden), "layer"), large.size(),
                          large.size() == 1 ? "starts" : "start", plain(s.limit["init-ratio-high"]))));
  else if (!small.empty())
    s.out.push_back(guess("bad-initialization", fmt::format("{} starts with small weights", small[0]),
                          stuck ? Level::kSerious : Level::kNote, stuck ? 0.83 : 0.2,
                          fmt::format("Of {}, {} {} with weights less than {} as large as Glorot initialisation gives.",
                                      findings::counted(int64_t(hidden), "layer"), small.size(),
                                      small.size() == 1 ? "starts" : "start", percent(s.limit["init-ratio-low"]))));
  else if (stuck && uniform.size() >= 3 && uniform.size() * 2 >= hidden)
    s.out.push_back(guess("bad-initialization", "a fixed range, whatever the width", Level::kMinor, 0.58,
                          fmt::format("{} layers draw their initial weights from a fixed range that ignores their "
                                      "width, so signals may shrink or grow layer by layer.",
                                      uniform.size())));
}

/// A network that knows nothing gives every class the same probability: its first loss is ln C, whatever the labels
/// are.
void first_loss(const Scope& s) {
  const Run& run = s.run;
  const double first = run.first_class_loss(), uniform = run.uniform_loss();
  if (!std::isfinite(first) || !(first > s.limit["first-loss-factor"] * uniform)) return;
  const double classes = std::round(std::exp(uniform));
  const bool far = first > 20 * uniform, ignored = run.learned() && !far;
  s.out.push_back(
      guess("bad-initialization", fmt::format("first loss {} instead of {}", plain(first), plain(uniform)),
            ignored ? Level::kNote : Level::kMinor, ignored ? 0.2 : 0.52,
            fmt::format("The first loss is {}; a network that gives each of {} classes the same probability has ln "
                        "{} = {}. Outputs are large before anything was learnt: start weights or inputs are too "
                        "large.",
                        plain(first), plain(classes), plain(classes), plain(uniform))));
}

/// What `netmend watch --probe` tried with a copy: sixteen inputs by heart, and the same without the inputs.
void one_batch(const Scope& s) {
  for (const Line& probe : s.run.record->of("probe")) {
    if (probe.text("probe") != "one-batch") continue;
    const bool numbers = probe.flag("numbers");
    const double error = probe.number("error"), blind = probe.number("blind_p"), last = probe.number("last_loss");
    const bool poor = !std::isfinite(last) || error > s.limit["probe-error"];
    const bool unused = blind > s.limit["probe-blind"];
    if (!poor && !unused) continue;
    const std::string tried = fmt::format(
        "A copy of the network was trained on one batch of {}: after {} {} {}.",
        findings::counted(probe.whole("rows"), "input"), findings::counted(probe.whole("iterations"), "step"),
        percent(error), numbers ? "of the variance of the targets was left" : "of them were still wrong");
    s.out.push_back(
        guess("not-learning",
              poor ? fmt::format("{} cannot be learnt by heart", findings::counted(probe.whole("rows"), "input"))
                   : "inputs play no role",
              poor && !s.run.learned() ? Level::kSerious : Level::kMinor, poor ? 0.7 : 0.6,
              tried + (unused ? " With all inputs set to 0, the loss falls as much." : "")));
    return;
  }
}

void swings(const Scope& s) {
  const Run& run = s.run;
  const std::vector<double>& series = run.accuracies.size() >= 8 && run.by_epoch ? run.accuracies : run.losses;
  if (series.size() < 8 || (!run.by_epoch && run.steps < 20) || !run.finite()) return;
  size_t turns = 0;
  double size = 0;
  const size_t from = series.size() / 3;
  for (size_t i = from + 1; i + 1 < series.size(); ++i) {
    const double a = series[i] - series[i - 1], b = series[i + 1] - series[i];
    if (a * b < 0) ++turns, size += std::min(std::abs(a), std::abs(b));
  }
  if (turns == 0) return;
  const double all = double(series.size() - from - 2), mean = size / double(turns);
  const double scale = &series == &run.accuracies ? 1 : std::max(1e-12, std::abs(median(series)));
  if (double(turns) < s.limit["unstable-swings"] * all ||
      mean < (scale == 1 ? 0.05 : std::max(0.25 * scale, 0.04 * run.first_loss())))
    return;
  const char* parts = run.by_epoch ? "epochs" : "parts of the run";  // each the mean loss of some steps
  s.out.push_back(guess("unstable-training", fmt::format("turns in {} of {} {}", turns, int64_t(all), parts),
                        Level::kMinor, run.learned() ? 0.35 : 0.55,
                        fmt::format("Over {} {}, {} changes direction {} times, by {} on average.", int64_t(all), parts,
                                    &series == &run.accuracies ? "the accuracy" : "the loss", turns, plain(mean))));
}

void batch(const Scope& s) {
  const Run& run = s.run;
  if (run.rows <= 0 || run.batch <= 0) return;
  const int64_t epochs = std::max<int64_t>({1, run.epochs_planned, int64_t(run.record->epochs.size())});
  if (run.batch >= run.rows && run.rows > 64 && epochs < 100)
    s.out.push_back(
        guess("batch-size", fmt::format("one batch of {} rows", run.rows), run.learned() ? Level::kNote : Level::kMinor,
              run.learned() ? 0.35 : 0.7,
              fmt::format("An epoch is a single step, so training has {}.", findings::counted(epochs, "step"))));
  else if (run.batch == 1 && run.rows > 200)
    s.out.push_back(guess("batch-size", "one input per batch", Level::kNote, 0.3,
                          "Every step follows the gradient of a single input, which is mostly noise."));
}

void imbalance(const Scope& s) {
  double most = 0, least = INFINITY, all = 0;
  for (const auto& [label, count] : s.run.targets.counts)
    most = std::max(most, count), least = std::min(least, count), all += count;
  if (s.run.targets.counts.size() < 2 || all < 50 || s.run.task == Task::kRegression ||
      !(most / least >= s.limit["imbalance"]))
    return;
  s.out.push_back(
      guess("unbalanced-training", fmt::format("{} to {}", plain(most), plain(least)),
            most / least >= 2 * s.limit["imbalance"] ? Level::kMinor : Level::kNote, 0.5,
            fmt::format("The most frequent class occurs {} times as often as the rarest.", plain(most / least))));
}

void little(const Scope& s) {
  if (s.run.rows <= 0 || double(s.run.rows) >= s.limit["rows-little"]) return;
  s.out.push_back(guess(
      "little-data", findings::counted(s.run.rows, "input"), Level::kNote, 0.4,
      fmt::format("The training data has {}{}.", findings::counted(s.run.rows, "input"),
                  s.run.parameters > 0 ? ", the network " + findings::counted(s.run.parameters, "parameter") : "")));
}

void held_out(const Scope& s) {
  const Line fit = s.run.record->first("fit");
  const bool missing = s.run.keras
                           ? fit.has("validation") && !fit.flag("validation")
                           : !s.run.record->of("optimizer").empty() &&
                                 s.run.record->last("modes").number("eval_calls", 0) == 0 && s.run.val_losses.empty() &&
                                 !s.run.record->cut && s.run.record->of("failed").empty();
  if (missing)
    s.out.push_back(
        guess("evaluation-missing", "", Level::kNote, 0.1, "No evaluation on held-out data was seen during training."));
}

/// The last resort: nothing else is to blame, and yet the loss stays.
void stuck(const Scope& s) {
  const Run& run = s.run;
  if (run.losses.size() < 4 || !run.finite() || run.learned()) return;
  if (run.record->cut && run.steps < 50) return;  // it has hardly begun
  const double first = run.first_loss(), last = run.last_loss(), constant = run.constant_loss();
  const bool still = last > 0.95 * first, chance = std::isfinite(constant) && last > 0.9 * constant;
  if (!still && !chance) return;
  std::string narrow;
  for (size_t i = 0; i + 1 < run.layers.size(); ++i)
    if (const int64_t units = run.layers[i].whole("units");
        narrow.empty() && run.layers[i].text("role") == "linear" && units >= 1 && units <= 2 && run.outputs <= units)
      narrow = fmt::format(" The hidden layer {} has only {}.", run.layers[i].text("name"),
                           findings::counted(units, "unit"));
  s.out.push_back(
      guess("not-learning", fmt::format("loss {} at the start, {} at the end", plain(first), plain(last)),
            Level::kMinor, narrow.empty() ? 0.4 : 0.605,
            fmt::format("The loss was {} at the start and {} at the end{}.{}", plain(first), plain(last),
                        chance ? fmt::format("; a constant prediction reaches {}", plain(constant)) : "", narrow)));
}

/// Sigmoid or tanh in hidden layers of a network that does not learn.
void hidden_functions(const Scope& s) {
  const Run& run = s.run;
  if (run.losses.size() < 3) return;
  const bool learned = run.learned();
  if (learned && !(run.last_loss() > 0.4 * run.first_loss())) return;
  for (const char* name : {"sigmoid", "softmax", "hard_sigmoid"})
    if (run.hidden_is(name) && run.keras) {
      s.out.push_back(guess("vanishing-gradient", fmt::format("{} in hidden layers", name),
                            learned ? Level::kNote : Level::kMinor, learned ? 0.29 : 0.63,
                            fmt::format("Hidden layers use {}, whose derivative is at most 0.25, and the network {}.",
                                        name, learned ? "learns slowly" : "does not learn")));
      return;
    }
}

constexpr Rule kRules[] = {
    {"netmend", "inputs-scaled", "large or uneven inputs", "range and deviation of inputs",
     "input-largest, input-deviation-ratio", "inputs-not-scaled", "TheDeepChecker", inputs_scaled},
    {"netmend", "targets-scaled", "large targets", "range of targets", "target-largest", "targets-not-scaled", "own",
     targets_scaled},
    {"netmend", "rate-high", "loss grows", "loss, update ratio", "update-ratio-high", "learning-rate-high",
     "DeepDiagnosis", rate_high},
    {"netmend", "rate-low", "loss hardly moves", "loss, update ratio", "update-ratio-low", "learning-rate-low",
     "DeepDiagnosis", rate_low},
    {"netmend", "still-learning", "loss still falls at the end", "trend of the last third, steps",
     "still-learning-share, few-steps, slow-rate", "still-learning", "TheDeepChecker", still_learning},
    {"netmend", "over-fit", "validation loss rises", "validation loss against its minimum",
     "over-fit-rise, over-fit-gap", "over-fitting-run", "SageMaker Debugger", over_fit},
    {"netmend", "dead", "dead ReLU units", "share of units that give 0", "dead-share", "dead-relu",
     "SageMaker Debugger", dead},
    {"netmend", "saturated", "saturated functions", "share of outputs at the flat ends", "saturated-share",
     "saturated-training", "SageMaker Debugger", saturated},
    {"netmend", "vanishing", "gradient falls towards the input", "gradient of the first against the last layer",
     "gradient-fall", "vanishing-gradient", "AutoTrainer", vanishing},
    {"netmend", "hidden-functions", "flat functions inside", "activation of hidden layers", "exact",
     "vanishing-gradient", "AutoTrainer", hidden_functions},
    {"netmend", "exploding", "gradient grows", "gradient norm against its median", "gradient-growth",
     "exploding-gradient", "SageMaker Debugger", exploding},
    {"netmend", "start-weights", "weights far from He initialisation", "deviation of start weights",
     "init-ratio-high, init-ratio-low", "bad-initialization", "TheDeepChecker", start_weights},
    {"netmend", "first-loss", "first loss far above ln C", "first loss against ln C", "first-loss-factor",
     "bad-initialization", "TheDeepChecker", first_loss},
    {"netmend", "one-batch", "one batch cannot be learnt by heart (--probe)", "error on one batch, loss without inputs",
     "probe-error, probe-blind", "not-learning", "TheDeepChecker", one_batch},
    {"netmend", "swings", "loss or accuracy swings", "turns and their size", "unstable-swings", "unstable-training",
     "AutoTrainer", swings},
    {"netmend", "batch", "one step per epoch", "batch size, rows", "exact", "batch-size", "own", batch},
    {"netmend", "imbalance", "rare classes", "counts of labels", "imbalance", "unbalanced-training",
     "SageMaker Debugger", imbalance},
    {"netmend", "little-data", "few rows", "rows", "rows-little", "little-data", "own", little},
    {"netmend", "held-out", "no validation", "evaluations", "exact", "evaluation-missing", "own", held_out},
    {"netmend", "stuck", "loss stays", "loss against its start and a constant prediction", "exact", "not-learning",
     "SageMaker Debugger", stuck},
};

}  // namespace

std::span<const Rule> relative_rules() { return kRules; }

}  // namespace netmend::diagnosis
