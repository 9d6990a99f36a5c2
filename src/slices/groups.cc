#include "slices/groups.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "slices/rules.h"
#include "stats/comparisons.h"

namespace netmend::slices {
namespace {

using observers::SampleRow;
using stats::Moments;

/// Two sides of a test of two shares.
double two_sided(const Moments& here, const Moments& rest) {
  return std::min(1.0, 2 * std::min(larger_by_chance(here, rest), larger_by_chance(rest, here)));
}

struct Count {
  Moments failing, selected, found, wrongly;
  void add(const SampleRow& row, double fails, const observers::PredictionSettings& settings) {
    if (!std::isnan(fails)) failing.add(fails);
    if (!settings.by_class() || settings.classes.size() != 2 || std::isnan(row.predicted)) return;
    const bool yes = row.predicted == double(settings.positive), truth = row.label == double(settings.positive);
    selected.add(yes);
    (truth ? found : wrongly).add(yes);
  }
};

stats::Estimate estimate(const Moments& sums, bool shares) {
  return shares ? stats::rate(std::llround(sums.sum()), sums.count()) : sums.mean_estimate();
}

Rate rate_of(const Moments& here, const Moments& all, bool shares) {
  Rate rate;
  const Moments rest = all.without(here);
  rate.here = estimate(here, shares), rate.rest = estimate(rest, shares);
  rate.apart = difference(rate.here, rate.rest);
  rate.count = here.count();
  rate.p = two_sided(here, rest);
  return rate;
}

/// Each kind of rate is one family of tests.
template <typename Pick>
void correct(std::vector<Group>& groups, Pick pick) {
  std::vector<Rate*> rates;
  for (Group& group : groups)
    if (Rate* rate = pick(group); rate && !group.too_small) rates.push_back(rate);
  std::vector<double> p;
  for (Rate* rate : rates) p.push_back(rate->p);
  p = stats::holm(p);
  for (size_t i = 0; i < rates.size(); ++i) rates[i]->p = p[i];
}

}  // namespace

std::string Group::name() const {
  std::vector<std::string> parts;
  for (size_t i = 0; i < columns.size(); ++i) parts.push_back(columns[i] + "=" + values[i]);
  return join(parts, ",");
}

stats::Estimate difference(const stats::Estimate& a, const stats::Estimate& b) {
  const double below = std::hypot(a.value - a.low, b.high - b.value),
               above = std::hypot(a.high - a.value, b.value - b.low);
  return {a.value - b.value, a.value - b.value - below, a.value - b.value + above};
}

std::vector<Group> compare_groups(const std::vector<Column>& columns, const std::vector<SampleRow>& rows,
                                  std::span<const double> failing, const observers::PredictionSettings& settings,
                                  const GroupSettings& how) {
  std::vector<size_t> aside;
  for (size_t c = 0; c < columns.size(); ++c)
    if (columns[c].aside && columns[c].is_words()) aside.push_back(c);
  using Key = std::vector<std::pair<size_t, int32_t>>;
  std::map<Key, Count> counts;
  std::map<std::vector<size_t>, Count> all;  // everybody whose values are known
  auto add = [&](const std::vector<size_t>& of, size_t row) {
    Key key;
    for (size_t c : of) {
      if (columns[c].codes[row] < 0) return;
      key.emplace_back(c, columns[c].codes[row]);
    }
    counts[key].add(rows[row], failing[row], settings);
    all[of].add(rows[row], failing[row], settings);
  };
  for (size_t row = 0; row < rows.size(); ++row)
    for (size_t i = 0; i < aside.size(); ++i) {
      add({aside[i]}, row);
      for (size_t j = i + 1; how.crossed && j < aside.size(); ++j) add({aside[i], aside[j]}, row);
    }
  const bool shares = settings.task != observers::Task::kNumber || settings.tolerance >= 0;
  const bool two = settings.by_class() && settings.classes.size() == 2;
  std::vector<Group> groups;
  for (const auto& [key, count] : counts) {
    Group group;
    std::vector<size_t> of;
    for (const auto& [column, code] : key) {
      of.push_back(column);
      group.columns.push_back(columns[column].name);
      group.values.push_back(columns[column].words[size_t(code)]);
    }
    const Count& everybody = all[of];
    group.inputs = std::max(count.failing.count(), count.selected.count());
    group.too_small = group.inputs < how.least || everybody.failing.count() - group.inputs < how.least;
    group.failing = rate_of(count.failing, everybody.failing, shares);
    if (two) {
      group.selected = rate_of(count.selected, everybody.selected, true);
      group.true_positive = rate_of(count.found, everybody.found, true);
      group.false_positive = rate_of(count.wrongly, everybody.wrongly, true);
    }
    groups.push_back(std::move(group));
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    if (a.columns.size() != b.columns.size()) return a.columns.size() < b.columns.size();
    return a.columns == b.columns && a.inputs > b.inputs;
  });
  if (int64_t(groups.size()) > how.most) groups.resize(size_t(how.most));
  correct(groups, [](Group& group) { return &group.failing; });
  correct(groups, [](Group& group) { return group.selected ? &*group.selected : nullptr; });
  correct(groups, [](Group& group) { return group.true_positive ? &*group.true_positive : nullptr; });
  correct(groups, [](Group& group) { return group.false_positive ? &*group.false_positive : nullptr; });
  return groups;
}

}  // namespace netmend::slices
