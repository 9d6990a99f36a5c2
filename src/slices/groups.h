// Rates of groups that the data keeps aside, alone and crossed: how often each is right, predicted
// positive, true and false positive; against everybody else, with intervals, corrected for how many are compared.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "observers/result.h"
#include "observers/task.h"
#include "slices/columns.h"
#include "stats/intervals.h"

namespace netmend::slices {

/// A rate of a group and how far it lies from that of everybody else.
struct Rate {
  stats::Estimate here, rest, apart;  ///< apart: here − rest
  int64_t count = 0;                  ///< inputs of the group that it is a rate of
  double p = 1;                       ///< corrected (Holm) over all rates of one kind of all groups
};

struct Group {
  std::vector<std::string> columns, values;  ///< one, or two that are crossed
  std::string name() const;                  ///< `sex=Female`, `race=Black,sex=Female`
  int64_t inputs = 0;
  bool too_small = false;
  Rate failing;  ///< share wrong, or mean error in deviations of the label
  std::optional<Rate> selected, true_positive, false_positive;  ///< of two classes: predicted positive, and of these
};

struct GroupSettings {
  int64_t least = 50;
  bool crossed = true;
  int64_t most = 2000;  ///< groups; more values are left out, rarest first
};

/// Rows: one per input, those of `columns`, of which only words that are kept aside count. The largest groups first.
std::vector<Group> compare_groups(const std::vector<Column>& columns, const std::vector<observers::SampleRow>& rows,
                                  std::span<const double> failing, const observers::PredictionSettings& settings,
                                  const GroupSettings& how = {});

/// Difference of two rates with its interval (Newcombe's, from the two score intervals).
stats::Estimate difference(const stats::Estimate& a, const stats::Estimate& b);

}  // namespace netmend::slices
