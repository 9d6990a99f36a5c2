// The functions of the table's rows, by file. Each looks at what was observed and leaves findings, values that were
// fine, or what it would have needed.
#pragma once

namespace netmend::checks {

struct Observed;
struct Results;
using Row = void(Observed& seen, Results& out);

// preflight_checks.cc
Row check_preflight, check_search_overlap;
// graph_checks.cc
Row check_unused, check_double_softmax, check_nonlinearity, check_running_statistics;
// weight_checks.cc
Row check_finite_weights, check_duplicate_weights, check_weight_outliers, check_zero_units, check_duplicate_units,
    check_untrained_layers;
// unit_checks.cc
Row check_constant_layers, check_dead_units, check_saturated_units, check_activation_range;
// prediction_checks.cc
Row check_finite_predictions, check_majority_baseline, check_confusions, check_classes, check_metric, check_calibration,
    check_bias, check_clipping, check_constant_predictions, check_overfitting;
// label_checks.cc
Row check_labels;
/// Labels that a damaged network doubts are a note, and its confidence is no fault of its own; once all rows have run.
void weigh_labels(Results& out);
// data_classes.cc
Row check_test_size, check_imbalance, check_absent_classes, check_label_shift, check_label_order;
// data_duplicates.cc
Row check_duplicates, check_conflicting_labels, check_split_leak;
// data_values.cc
Row check_constant_features, check_missing_values, check_unknown_tokens, check_truncated_text, check_outliers;
// data_drift.cc
Row check_drift, check_label_leak;
// slice_checks.cc
Row check_groups, check_slices;
// cluster_checks.cc
Row check_failure_clusters;
// adequacy_checks.cc
Row check_untested;
// reference_checks.cc
Row check_reference;
// robustness_checks.cc
Row check_robustness;
// trial_repair.cc
Row check_trial_repair;

}  // namespace netmend::checks
