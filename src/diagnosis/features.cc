#include "diagnosis/features.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace netmend::diagnosis {
namespace {

using records::LayerStep;
using records::Line;

double known(double value) { return std::isfinite(value) ? std::clamp(value, -98.0, 1e6) : kUnknown; }
/// Decimal logarithm; far below where there is nothing.
double magnitude(double value) {
  return std::isfinite(value) ? std::log10(std::max(std::abs(value), 1e-12)) : (std::isinf(value) ? 20 : kUnknown);
}

double middle(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return NAN;
  std::nth_element(values.begin(), values.begin() + long(values.size() / 2), values.end());
  return values[values.size() / 2];
}

bool is_bias(const std::string& name) {
  const std::string word = lower(name);
  return word.find("bias") != std::string::npos || word.find("beta") != std::string::npos ||
         word.find("gamma") != std::string::npos;
}

double last_of(const std::vector<double>& values) { return values.empty() ? NAN : values.back(); }

/// Share of turns in the later two thirds, and their size against the level.
std::pair<double, double> swings_of(const std::vector<double>& values) {
  if (values.size() < 6) return {NAN, NAN};
  double turns = 0, size = 0, all = 0, level = 0;
  for (size_t i = values.size() / 3 + 1; i + 1 < values.size(); ++i) {
    const double a = values[i] - values[i - 1], b = values[i + 1] - values[i];
    if (a * b < 0) ++turns, size += std::min(std::abs(a), std::abs(b));
    ++all, level += std::abs(values[i]);
  }
  return {all > 0 ? turns / all : NAN, turns > 0 && level > 0 ? size / turns / (level / all) : 0};
}

class Features {
 public:
  explicit Features(const Run& run) : run_(run) {}

  std::vector<std::pair<std::string, double>> all() {
    curves();
    gradients();
    layers();
    data();
    settings();
    return std::move(found_);
  }

 private:
  void add(const char* name, double value) { found_.emplace_back(name, known(value)); }

  void curves() {
    const double first = run_.first_loss(), last = run_.last_loss(), best = run_.best_loss(),
                 constant = run_.constant_loss();
    add("finite", run_.finite() ? 1 : 0);
    add("first-loss", magnitude(first));
    add("last-against-first", magnitude(last / first)), add("best-against-first", magnitude(best / first));
    add("best-against-constant", magnitude(best / constant)),
        add("first-against-constant", magnitude(first / constant));
    add("last-against-best", magnitude(last / best));
    add("accuracy", last_of(run_.accuracies)), add("val-accuracy", last_of(run_.val_accuracies));
    add("majority", run_.majority());
    add("accuracy-gap", last_of(run_.accuracies) - last_of(run_.val_accuracies));
    double least = NAN;
    for (double value : run_.val_losses)
      if (!(value >= least)) least = value;
    add("val-rise", magnitude(last_of(run_.val_losses) / least));
    add("val-against-train", magnitude(last_of(run_.val_losses) / last_of(run_.losses)));
    add("validated", run_.val_losses.empty() && run_.val_accuracies.empty() ? 0 : 1);
    const auto [turns, size] = swings_of(run_.losses);
    add("turns", turns), add("turn-size", magnitude(size));
    const size_t n = run_.losses.size(), third = n - n / 3;
    add("late-fall", n >= 6 ? magnitude(run_.losses[third - 1] / run_.losses.back()) : NAN);
    add("early-fall", n >= 6 ? magnitude(run_.losses.front() / run_.losses[n / 3]) : NAN);
    add("learned", run_.learned() ? 1 : 0);
  }

  void gradients() {
    std::vector<double> ratios, first, norms;
    for (const Track& track : run_.tracks) {
      if (is_bias(track.name) || track.rows.empty()) continue;
      for (size_t i = 1; i < track.rows.size(); ++i) {
        const LayerStep& row = track.rows[i];
        const double steps = run_.keras ? std::max<double>(1, double(track.steps[i] - track.steps[i - 1])) : 1;
        if (row.weight > 0 && row.size >= 2) ratios.push_back(row.update / row.weight / std::sqrt(steps));
      }
      if (std::isfinite(track.first().gradient) && track.first().size >= 1)
        first.push_back(track.first().gradient / std::sqrt(track.first().size));
    }
    for (const records::Step& step : run_.probes) {
      double sum = 0;
      for (const auto& [name, row] : step.layers)
        if (std::isfinite(row.gradient)) sum += row.gradient * row.gradient;
      norms.push_back(std::sqrt(sum));
    }
    add("update-ratio", magnitude(middle(ratios)));
    add("gradient-at-start", norms.empty() ? NAN : magnitude(norms.front()));
    add("gradient-at-end", norms.empty() ? NAN : magnitude(norms.back()));
    add("gradient-largest", norms.empty() ? NAN : magnitude(*std::max_element(norms.begin(), norms.end())));
    add("gradient-first-against-last", first.size() >= 2 ? magnitude(first.front() / first.back()) : NAN);
  }

  void layers() {
    double dead = NAN, dead_start = NAN, saturated = NAN, zero = NAN, activation = NAN, shrink = NAN;
    std::vector<double> sizes;
    for (const Track& track : run_.tracks) {
      if (track.rows.empty()) continue;
      auto most = [](double& value, double other) {
        if (std::isfinite(other) && !(value >= other)) value = other;
      };
      most(dead, track.last().dead), most(dead_start, track.first().dead), most(saturated, track.last().saturated);
      most(zero, track.last().gradient_zero), most(activation, track.last().activation);
      if (std::isfinite(track.first().deviation)) sizes.push_back(track.first().deviation);
    }
    if (sizes.size() >= 2 && sizes.front() > 0) shrink = magnitude(sizes.back() / sizes.front());
    add("dead", dead), add("dead-at-start", dead_start), add("saturated", saturated), add("zero-gradients", zero);
    add("activation", magnitude(activation)), add("deviation-last-against-first", shrink);
    double large = NAN, small = NAN, bias = NAN;
    int64_t weighted = 0, same = 0;
    for (const Line& layer : run_.layers) {
      const double fan_in = layer.number("fan_in"), deviation = layer.number("weight_std");
      if (!(fan_in >= 1) || !std::isfinite(deviation)) continue;
      const double ratio = magnitude(deviation / std::sqrt(2 / fan_in));
      if (!(large >= ratio)) large = ratio;
      if (!(small <= ratio)) small = ratio;
      if (const double mean = layer.number("bias_mean"); std::isfinite(mean) && !(std::abs(bias) >= std::abs(mean)))
        bias = mean;
      ++weighted, same += layer.flag("same_units");
    }
    add("start-weights-largest", large), add("start-weights-smallest", small), add("start-bias", bias);
    add("layers", double(weighted)), add("equal-units", weighted > 0 ? double(same) / double(weighted) : NAN);
    const double pairs = run_.graph.number("pair_count"), all = run_.graph.number("weighted");
    add("linear-pairs", all > 1 ? pairs / (all - 1) : NAN);
    for (const char* name : {"relu", "sigmoid", "tanh"}) add(name, run_.hidden_is(name) ? 1 : 0);
  }

  void data() {
    const Inputs& x = run_.inputs;
    const Targets& y = run_.targets;
    add("input-largest", x.seen ? magnitude(std::max(std::abs(x.min), std::abs(x.max))) : NAN);
    add("input-deviation", x.seen ? magnitude(x.deviation) : NAN);
    add("target-largest", y.seen ? magnitude(std::max(std::abs(y.min), std::abs(y.max))) : NAN);
    add("target-deviation", y.seen ? magnitude(y.deviation) : NAN);
    double most = 0, least = INFINITY;
    for (const auto& [label, count] : y.counts) most = std::max(most, count), least = std::min(least, count);
    add("imbalance", y.counts.size() >= 2 ? magnitude(most / least) : NAN);
    add("outputs-against-classes",
        y.classes > 0 && run_.outputs > 0 ? magnitude(double(run_.outputs) / double(y.counts.size())) : NAN);
    add("rows", run_.rows > 0 ? magnitude(double(run_.rows)) : NAN);
    add("task", double(int(run_.task)));
    add("parameters-against-rows", run_.rows > 0 ? magnitude(double(run_.parameters) / double(run_.rows)) : NAN);
  }

  void settings() {
    const std::string name = lower(run_.optimizer);
    add("rate", magnitude(run_.rate));
    add("adaptive", name.find("ada") != std::string::npos || name.find("rms") != std::string::npos ? 1 : 0);
    add("steps", magnitude(double(run_.steps)));
    add("epochs", double(run_.record->epochs.size()));
    add("batch-against-rows",
        run_.rows > 0 && run_.batch > 0 ? magnitude(double(run_.batch) / double(run_.rows)) : NAN);
    add("squared-error", run_.loss == "mean_squared_error" ? 1 : 0);
    add("cross-entropy", run_.loss.find("crossentropy") != std::string::npos ? 1 : 0);
    add("softmax-twice", run_.last == "softmax" && run_.from_logits ? 1 : 0);
  }

  const Run& run_;
  std::vector<std::pair<std::string, double>> found_;
};

}  // namespace

std::vector<std::pair<std::string, double>> features_of(const Run& run) { return Features(run).all(); }

}  // namespace netmend::diagnosis
