#include "diagnosis/rules.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace netmend::diagnosis {

Thresholds::Thresholds()
    : values_{// ours, relative to the run's own history
              {"still-learning-share", 0.05},
              {"few-steps", 200},
              {"slow-rate", 0.2},
              {"over-fit-rise", 0.1},
              {"over-fit-gap", 0.1},
              {"unstable-swings", 0.3},
              {"update-ratio-high", 0.1},
              {"update-ratio-low", 1e-5},
              {"dead-share", 0.5},
              {"saturated-share", 0.5},
              {"gradient-fall", 1e-3},
              {"gradient-growth", 100},
              {"input-largest", 20},
              {"input-deviation-ratio", 100},
              {"target-largest", 20},
              {"imbalance", 10},
              {"probe-error", 0.05},
              {"probe-blind", 0.05},
              {"probe-gradient", 1e-2},
              {"rows-little", 100},
              {"init-ratio-high", 4},
              {"init-ratio-low", 0.1},
              {"overlap-share", 0.01},
              {"first-loss-factor", 2},
              // AutoTrainer
              {"autotrainer-vanish-ratio", 1e-3},
              {"autotrainer-vanish-norm", 1e-4},
              {"autotrainer-explode-ratio", 70},
              {"autotrainer-dying-share", 0.7},
              {"autotrainer-swing", 0.03},
              {"autotrainer-swing-share", 0.2},
              {"autotrainer-slow-gain", 0.01},
              {"autotrainer-slow-best", 0.7},
              {"autotrainer-loss", 1e3},
              {"autotrainer-activation", 10},
              // DeepLocalize, DeepDiagnosis
              {"deeplocalize-unchanged", 5},
              {"deepdiagnosis-dead-share", 0.7},
              {"deepdiagnosis-saturated-share", 0.5},
              {"deepdiagnosis-gradient", 1e-7},
              {"deepdiagnosis-loss-checks", 5},
              {"deepdiagnosis-accuracy-checks", 20},
              {"deepdiagnosis-unchanged", 5},
              {"deepdiagnosis-update-high", 1e-1},
              {"deepdiagnosis-update-low", 1e-5},
              // UMLAUT
              {"umlaut-rate-high", 0.01},
              {"umlaut-rate-low", 1e-7},
              {"umlaut-dropout", 0.5},
              {"umlaut-accuracy", 0.95},
              {"umlaut-gap", 0.05},
              // TheDeepChecker
              {"deepchecker-dead", 0.5},
              {"deepchecker-saturated", 0.5},
              {"deepchecker-loss-fall", 0.05},
              {"deepchecker-diverging", 2},
              {"deepchecker-update-fast", -1},
              {"deepchecker-update-slow", -4},
              {"deepchecker-vanishing", 1e-6},
              {"deepchecker-exploding", 1e6},
              {"deepchecker-smooth", 0.5},
              {"deepchecker-perplexity", 0.5},
              {"deepchecker-correlation", 0.5},
              {"deepchecker-first-loss", 1},
              {"deepchecker-init-ratio", 2.70554},
              {"deepchecker-target-spread", 1e-3},
              {"deepchecker-zero-loss", 1e-8},
              // SageMaker Debugger
              {"sagemaker-dead", 0.5},
              {"sagemaker-vanishing", 1e-7},
              {"sagemaker-update-high", 10},
              {"sagemaker-update-low", 1e-8},
              {"sagemaker-imbalance", 10},
              {"sagemaker-overfit", 0.1},
              {"sagemaker-loss-steps", 10},
              {"sagemaker-init-ratio", 10},
              {"sagemaker-saturated", 0.5},
              {"sagemaker-unchanged", 3},
              {"sagemaker-overtraining", 10}} {}

void Thresholds::set(const std::string& name, double value) {
  const auto place = values_.find(name);
  if (place == values_.end()) {
    std::vector<std::string> names;
    for (const auto& [known, old] : values_) names.push_back(known);
    throw InputError("there is no threshold `" + name + "`" + did_you_mean(name, names),
                     "netmend diagnose --list shows all of them.");
  }
  place->second = value;
}

double Thresholds::operator[](const std::string& name) const {
  const auto place = values_.find(name);
  check(place != values_.end(), "there is no threshold {}", name);
  return place->second;
}

std::span<const Rule> rules() {
  static const std::vector<Rule> all = [] {
    std::vector<Rule> rows;
    for (std::span<const Rule> part : {exact_rules(), output_rules(), relative_rules(), published_rules()})
      rows.insert(rows.end(), part.begin(), part.end());
    return rows;
  }();
  return all;
}

std::vector<std::string> rule_sets() {
  std::vector<std::string> names;
  for (const Rule& rule : rules())
    if (std::find(names.begin(), names.end(), rule.set) == names.end()) names.emplace_back(rule.set);
  return names;
}

}  // namespace netmend::diagnosis
