#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "checks/check.h"
#include "checks/observed.h"
#include "checks/results.h"
#include "checks/rows.h"

namespace netmend::checks {
namespace {

using findings::kAnyBatch;
using findings::kClasses;
using findings::kData;
using findings::kGroups;
using findings::kHidden;
using findings::kLabels;
using findings::kNumbers;
using findings::kPredictions;
using findings::kReference;
using findings::kTrain;

constexpr unsigned kJudged = kData | kPredictions | kLabels, kByClass = kJudged | kClasses;
constexpr unsigned kRows = kWatchPredictions;

const std::vector<Check>& table() {
  static const std::vector<Check> rows = {
      // Do model and data belong together?
      {"preflight",
       "whether model and data belong together",
       {"preprocessing", "class-order", "wrong-output", "wrong-split", "output-kind", "double-softmax", "expectation",
        "reference"},
       kData,
       0,
       check_preflight},
      {"search-overlap",
       "inputs that were used to search for a repair",
       {"seen-in-search"},
       kData,
       0,
       check_search_overlap},
      // The model alone.
      {"unused-weights", "parts of the file that reach no output", {"unused-weights"}, 0, 0, check_unused},
      {"double-softmax", "a softmax applied twice", {"double-softmax"}, 0, 0, check_double_softmax},
      {"nonlinearity",
       "layers with no nonlinearity between them",
       {"linear-network", "linear-pair"},
       0,
       0,
       check_nonlinearity},
      {"running-statistics",
       "running statistics of batch normalisation",
       {"stale-running-statistics"},
       0,
       0,
       check_running_statistics},
      {"finite-weights", "weights that are NaN or Inf", {"non-finite-weights"}, 0, 0, check_finite_weights},
      {"duplicate-weights",
       "layers with equal weights",
       {"duplicate-weights"},
       0,
       0,
       check_duplicate_weights,
       "non-finite-weights"},
      {"weight-outliers",
       "weights far larger than the rest of their layer",
       {"extreme-weights"},
       0,
       0,
       check_weight_outliers,
       "non-finite-weights"},
      {"zero-units", "units whose weights are all 0", {"zero-units"}, 0, 0, check_zero_units, "non-finite-weights"},
      {"duplicate-units", "duplicate units", {"duplicate-units"}, 0, 0, check_duplicate_units, "non-finite-weights"},
      {"untrained-layers",
       "layers that training never changed",
       {"untrained-layer"},
       0,
       0,
       check_untrained_layers,
       "non-finite-weights"},
      // Activations.
      {"constant-layers",
       "layers whose activations never change",
       {"constant-layer"},
       kData | kPredictions | kHidden,
       kRows | kWatchUnits,
       check_constant_layers},
      {"dead-units",
       "dead units",
       {"dead-units"},
       kData | kPredictions | kHidden,
       kRows | kWatchUnits,
       check_dead_units},
      {"saturated-units",
       "units that stay at the limit of their activation",
       {"saturated-units"},
       kData | kPredictions | kHidden,
       kRows | kWatchUnits,
       check_saturated_units},
      {"activation-range",
       "activations above 10,000 in magnitude",
       {"exploding-activations"},
       kData | kPredictions | kHidden,
       kRows | kWatchUnits,
       check_activation_range},
      // Predictions.
      {"finite-predictions",
       "predictions that are NaN or Inf",
       {"non-finite-predictions"},
       kData | kPredictions,
       kRows,
       check_finite_predictions},
      {"constant-predictions",
       "predictions that hardly vary",
       {"constant-predictions"},
       kData | kPredictions,
       kRows,
       check_constant_predictions},
      {"majority-baseline",
       "accuracy against the majority-class baseline",
       {"no-better-than-baseline"},
       kByClass,
       kRows,
       check_majority_baseline},
      {"confusions",
       "classes that are confused with each other",
       {"confused-classes"},
       kByClass,
       kRows,
       check_confusions,
       "no-better-than-baseline"},
      {"weak-classes",
       "classes with low recall",
       {"weak-class", "never-predicted"},
       kByClass,
       kRows,
       check_classes,
       "no-better-than-baseline"},
      {"metric",
       "accuracy against balanced accuracy",
       {"misleading-metric"},
       kByClass,
       kRows,
       check_metric,
       "no-better-than-baseline"},
      {"calibration",
       "confidence against accuracy",
       {"over-confident", "under-confident"},
       kByClass,
       kRows,
       check_calibration,
       "no-better-than-baseline"},
      {"bias",
       "predicted numbers that are too high or too low on average",
       {"biased-numbers"},
       kJudged | kNumbers,
       kRows,
       check_bias,
       "constant-predictions"},
      {"clipping",
       "predicted numbers that stop at a limit",
       {"clipped-numbers"},
       kJudged | kNumbers,
       kRows,
       check_clipping,
       "constant-predictions"},
      {"over-fitting",
       "accuracy on training data against tests",
       {"over-fit"},
       kJudged | kTrain,
       kRows,
       check_overfitting},
      {"label-errors", "test labels that look wrong", {"mislabelled"}, kByClass, kRows, check_labels},
      // Data.
      {"test-size", "whether there are enough tests", {"few-tests"}, kData, kWatchCensus, check_test_size},
      {"imbalance", "shares of classes", {"imbalance"}, kData | kLabels, kWatchCensus, check_imbalance},
      {"absent-classes",
       "classes without inputs",
       {"absent-class"},
       kData | kLabels,
       kWatchCensus,
       check_absent_classes},
      {"label-shift",
       "shares of classes, training against tests",
       {"class-shift"},
       kData | kLabels | kTrain,
       kWatchCensus,
       check_label_shift},
      {"label-order",
       "training labels in sorted order",
       {"sorted-data"},
       kData | kLabels | kTrain,
       kWatchCensus,
       check_label_order},
      {"duplicates", "inputs that occur more than once", {"duplicates"}, kData, kWatchCensus, check_duplicates},
      {"conflicting-labels",
       "equal inputs with different labels",
       {"conflicting-labels"},
       kData | kLabels,
       kWatchCensus,
       check_conflicting_labels},
      {"split-leak",
       "tests that are also in training data",
       {"split-leak"},
       kData | kTrain,
       kWatchCensus,
       check_split_leak},
      {"constant-features",
       "features that never change",
       {"constant-features"},
       kData,
       kWatchCensus,
       check_constant_features},
      {"missing-values", "inputs with NaN or Inf", {"missing-values"}, kData, kWatchCensus, check_missing_values},
      {"unknown-tokens",
       "tokens outside the vocabulary",
       {"unknown-tokens"},
       kData,
       kWatchCensus,
       check_unknown_tokens},
      {"truncated-text", "texts that were truncated", {"truncated-text"}, kData, kWatchCensus, check_truncated_text},
      {"outliers", "inputs unlike all others", {"outlier-inputs"}, kData, kWatchCensus, check_outliers},
      {"drift",
       "covariate shift between training data and tests",
       {"range-shift", "drift"},
       kData | kTrain,
       kWatchCensus,
       check_drift},
      {"label-leak",
       "features that nearly determine the label",
       {"label-leak"},
       kData | kLabels,
       kWatchCensus,
       check_label_leak},
      // Subgroups and failures.
      {"groups", "gaps between groups", {"group-gap"}, kJudged | kGroups, kRows | kWatchCensus, check_groups},
      {"slices", "weak slices", {"weak-slice"}, kJudged, kRows | kWatchCensus, check_slices},
      {"failure-clusters",
       "failures that lie together in feature space",
       {"failure-cluster"},
       kByClass | kHidden,
       kRows | kWatchUnits,
       check_failure_clusters},
      // Tests.
      {"untested",
       "activations that training data reaches and tests do not",
       {"untested-units", "untested-region"},
       kData | kPredictions | kHidden | kTrain,
       kRows | kWatchUnits | kWatchCriteria,
       check_untested},
      // Another model, other inputs, other weights.
      {"reference",
       "what is worse than in the reference",
       {"regressed", "regressed-class"},
       kJudged | kReference,
       kRows,
       check_reference},
      {"robustness",
       "predictions under small perturbations",
       {"not-robust"},
       kData | kPredictions | kClasses | kAnyBatch,
       kRows,
       check_robustness},
      {"trial-repair",
       "units and layers to blame, and whether repairing them helps",
       {"suspicious-unit", "damaged-layer", "under-trained", "shifted-biases"},
       kJudged | kHidden | kAnyBatch,
       kRows | kWatchCensus,  // duplicates must not be on both sides of its split
       check_trial_repair},
  };
  return rows;
}

}  // namespace

bool Results::has(std::string_view kind) const {
  return std::any_of(findings.begin(), findings.end(), [&](const findings::Finding& one) { return one.kind == kind; });
}

std::span<const Check> checks() { return table(); }

const Check& find_check(const std::string& name) {
  std::vector<std::string> names;
  for (const Check& row : table()) {
    if (row.name == name) return row;
    names.emplace_back(row.name);
  }
  throw InputError(fmt::format("there is no check `{}`{}", printable(name), did_you_mean(name, names)),
                   "netmend check --list shows all of them.");
}

}  // namespace netmend::checks
