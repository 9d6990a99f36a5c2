// Labels that look wrong, by confident learning. Northcutt, Jiang, Chuang: Confident Learning: Estimating Uncertainty
// in Dataset Labels, JAIR 2021.
//
// A class's threshold is the mean probability that the network gives it where the label says so. An input is
// confidently of the likeliest class that reaches its own threshold; where that is another class than the label's, the
// label is in doubt. The network must not have been trained on these labels: on its own training data it has learned
// the mistakes.
//
// A sound network's own mistakes look like wrong labels too, so of what is in doubt only those are told whose label the
// network rules out as clearly as it rules out the runner-up where it is right and most confident: label against
// likelier class, in the clearest 30 % of such ratios. Ratios tell the same whether a network is over- or
// under-confident, which fixed limits do not. The published program takes all that are in doubt, or a number estimated
// from the joint. With two classes the label is always the runner-up, and fewer of the wrong ones are found.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "observers/top_predictions.h"

namespace netmend::selection {

struct LabelIssue {
  int64_t sample = 0;
  int32_t given = 0, suggested = 0;
  double confidence = 0;  ///< probability of `suggested`
  double margin = 0;      ///< probability of `given` less the largest of any other: near -1 is most convincing
};

/// Ruled out: the label's share of the likelier class's probability is below this part of the runners-up's shares
/// where the network is right.
constexpr double kClearest = 0.3;
/// That share; below 0 when the network is never right.
double ruled_out_share(std::span<const observers::TopRow> rows);

/// Mean probability of each class over inputs with that label; 2, which nothing reaches, for classes without inputs.
std::vector<double> class_thresholds(std::span<const observers::TopRow> rows, int64_t classes);

/// The most convincing first, of equal ones the earlier input. Rows without a label or without a finite prediction are
/// passed over.
std::vector<LabelIssue> label_issues(std::span<const observers::TopRow> rows, int64_t classes);

}  // namespace netmend::selection
