#include "healing/solutions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace netmend::healing {
namespace {

constexpr auto kSet = Change::kSet, kTimes = Change::kTimes;
constexpr const char *kPaper = "AutoTrainer", *kOwn = "own";

/// AutoTrainer's order is that of its mode "balance" (docs/training.md names what has no counterpart here).
const std::vector<Solution>& table() {
  static const std::vector<Solution> rows = {
      {"vanishing-gradient", kPaper, {{"activation", kSet, "selu"}}},
      {"vanishing-gradient", kPaper, {{"activation", kSet, "relu"}, {"init", kSet, "he"}}},
      {"vanishing-gradient", kPaper, {{"batch_norm", kSet, true}}},
      {"vanishing-gradient",
       kOwn,
       {{"activation", kSet, "relu"}, {"init", kSet, "he"}, {"optimiser", kSet, "adam"}, {"rate", kSet, 1e-3}}},
      {"exploding-gradient", kPaper, {{"activation", kSet, "selu"}}},
      {"exploding-gradient", kPaper, {{"activation", kSet, "relu"}}},
      {"exploding-gradient", kPaper, {{"clip", kSet, 10.0}}},
      {"exploding-gradient", kPaper, {{"activation", kSet, "tanh"}}},
      {"exploding-gradient", kPaper, {{"batch_norm", kSet, true}}},
      {"exploding-gradient", kOwn, {{"init", kSet, "he"}}},
      {"exploding-gradient", kOwn, {{"rate", kTimes, 0.1}}},
      {"dead-relu", kPaper, {{"activation", kSet, "selu"}}},
      {"dead-relu", kPaper, {{"batch_norm", kSet, true}}},
      {"dead-relu", kPaper, {{"init", kSet, "he"}}},
      {"dead-relu", kPaper, {{"init", kSet, "glorot"}}},
      {"dead-relu", kPaper, {{"activation", kSet, "elu"}}},
      {"dead-relu", kOwn, {{"init", kSet, "he"}, {"rate", kTimes, 0.1}}},
      {"unstable-training", kPaper, {{"optimiser", kSet, "adam"}, {"rate", kSet, 1e-3}}},
      {"unstable-training", kPaper, {{"rate", kTimes, 0.1}}},
      {"unstable-training", kPaper, {{"rate", kTimes, 0.01}}},
      {"unstable-training", kPaper, {{"rate", kTimes, 0.001}}},
      {"unstable-training", kPaper, {{"schedule", kSet, "cosine"}}},
      {"unstable-training", kPaper, {{"batch", kSet, 128}}},
      {"unstable-training", kPaper, {{"momentum", kSet, 0.9}}},
      {"unstable-training", kPaper, {{"init", kSet, "he"}}},
      {"not-learning", kPaper, {{"optimiser", kSet, "adam"}, {"rate", kSet, 1e-3}}},
      {"not-learning", kPaper, {{"optimiser", kSet, "momentum"}, {"rate", kSet, 0.01}}},
      {"not-learning", kPaper, {{"rate", kTimes, 10.0}}},
      {"not-learning", kPaper, {{"rate", kTimes, 100.0}}},
      {"not-learning", kPaper, {{"init", kSet, "he"}}},
      {"not-learning", kPaper, {{"init", kSet, "glorot"}}},
      {"over-fitting-run", kPaper, {{"decay", kSet, 0.01}}},
      {"over-fitting-run", kPaper, {{"epochs", kTimes, 0.5}}},
      {"over-fitting-run", kPaper, {{"epochs", kTimes, 0.2}}},
      {"over-fitting-run", kPaper, {{"dropout", kSet, 0.25}}},
      {"over-fitting-run", kOwn, {{"decay", kSet, 0.05}}},
      {"learning-rate-high", kOwn, {{"rate", kTimes, 0.1}}},
      {"learning-rate-high", kOwn, {{"optimiser", kSet, "adam"}, {"rate", kSet, 1e-3}}},
      {"learning-rate-high", kOwn, {{"rate", kTimes, 0.01}}},
      {"learning-rate-high", kOwn, {{"rate", kTimes, 0.001}}},
      {"learning-rate-low", kOwn, {{"optimiser", kSet, "adam"}, {"rate", kSet, 1e-3}}},
      {"learning-rate-low", kOwn, {{"rate", kTimes, 100.0}}},
      {"learning-rate-low", kOwn, {{"rate", kTimes, 1e4}}},
      {"learning-rate-low", kOwn, {{"rate", kTimes, 10.0}}},
      {"still-learning", kOwn, {{"epochs", kTimes, 3.0}}},
      {"still-learning", kOwn, {{"optimiser", kSet, "adam"}, {"rate", kSet, 1e-3}}},
      {"still-learning", kOwn, {{"epochs", kTimes, 10.0}}},
      {"still-learning", kOwn, {{"rate", kTimes, 10.0}}},
      {"inputs-not-scaled", kOwn, {{"scale_inputs", kSet, true}}},
      {"targets-not-scaled", kOwn, {{"scale_targets", kSet, true}, {"optimiser", kSet, "adam"}, {"rate", kSet, 1e-3}}},
      {"targets-not-scaled", kOwn, {{"scale_targets", kSet, true}, {"optimiser", kSet, "adam"}, {"rate", kSet, 1e-2}}},
      {"targets-not-scaled", kOwn, {{"scale_targets", kSet, true}}},
      {"bad-initialization", kOwn, {{"init", kSet, "he"}}},
      {"bad-initialization", kOwn, {{"init", kSet, "glorot"}}},
      {"bad-initialization", kOwn, {{"init", kSet, "he"}, {"optimiser", kSet, "adam"}, {"rate", kSet, 1e-3}}},
      {"saturated-training", kOwn, {{"init", kSet, "glorot"}}},
      {"saturated-training", kOwn, {{"activation", kSet, "relu"}, {"init", kSet, "he"}}},
      {"saturated-training", kOwn, {{"scale_inputs", kSet, true}}},
      {"missing-nonlinearity", kOwn, {{"activation", kSet, "relu"}}},
      {"missing-nonlinearity", kOwn, {{"activation", kSet, "relu"}, {"init", kSet, "he"}}},
      {"wrong-loss", kOwn, {{"loss", kSet, ""}}},
      {"wrong-loss", kOwn, {{"loss", kSet, "cross_entropy"}}},
      {"batch-size", kOwn, {{"batch", kSet, 32}}},
      {"batch-size", kOwn, {{"batch", kSet, 16}}},
      {"non-finite-training", kOwn, {{"rate", kTimes, 0.01}}},
      {"non-finite-training", kOwn, {{"scale_inputs", kSet, true}}},
      {"non-finite-training", kOwn, {{"clip", kSet, 10.0}}},
      {"non-finite-training", kOwn, {{"optimiser", kSet, "adam"}, {"rate", kSet, 1e-3}}},
      {"unbalanced-training", kOwn, {{"class_weights", kSet, true}}},
      {"not-shuffled", kOwn, {{"shuffle", kSet, true}}},
      {"*", kOwn, {{"optimiser", kSet, "adam"}, {"rate", kSet, 1e-3}, {"init", kSet, "he"}}},
      {"*", kOwn, {{"rate", kTimes, 0.1}}},
      {"*", kOwn, {{"scale_inputs", kSet, true}}},
      {"*", kOwn, {{"batch_norm", kSet, true}}},
      {"*", kOwn, {{"rate", kTimes, 10.0}}},
  };
  return rows;
}

}  // namespace

std::vector<const Solution*> solutions_for(std::string_view kind) {
  std::vector<const Solution*> found;
  for (const Solution& one : table())
    if (one.kind == kind) found.push_back(&one);
  return found;
}

std::optional<Settings> apply(const Solution& solution, const Settings& settings, const Knobs& knobs) {
  Settings changed = settings;
  for (const Change& change : solution.changes) {
    const auto knob = knobs.find(std::string(change.name));
    if (knob == knobs.end()) return std::nullopt;
    Json& value = changed[knob->first];
    if (change.how == Change::kTimes) {
      if (!value.is_number()) return std::nullopt;
      const double product = value.get<double>() * change.value.get<double>();
      value = value.is_number_integer() ? Json(std::max<int64_t>(1, std::llround(product)))
                                        : Json(std::strtod(fmt::format("{:.9g}", product).c_str(), nullptr));
    } else {
      const auto& allowed = knob->second.choices;
      if (!(knob->second.open && change.value.is_number()) &&
          std::none_of(allowed.begin(), allowed.end(), [&](const Json& one) { return one == change.value; }))
        return std::nullopt;
      value = change.value;
    }
  }
  if (changed == settings) return std::nullopt;
  return changed;
}

}  // namespace netmend::healing
