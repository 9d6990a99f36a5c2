#include "repair/problem.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/random.h"

namespace netmend::repair {

using observers::SampleRow;
using observers::Side;

Parts split(const std::vector<int64_t>& strata, const Shares& shares, uint64_t seed) {
  std::map<int64_t, std::vector<int64_t>> by_stratum;
  for (size_t i = 0; i < strata.size(); ++i) by_stratum[strata[i]].push_back(int64_t(i));
  const auto all = double(strata.size());
  auto share_of = [&](double share, int64_t most) { return std::min(share, double(most) / std::max(1.0, all)); };
  const double search = share_of(shares.search, shares.most_search),
               selection = share_of(shares.selection, shares.most_selection),
               holdout = share_of(1 - shares.search - shares.selection, shares.most_holdout);
  Parts parts;
  double owed[3] = {0, 0, 0};  // fractions that small strata could not pay
  for (auto& [stratum, samples] : by_stratum) {
    Random(seed, 0x9e11 + uint64_t(stratum)).shuffle(samples);
    size_t next = 0;
    const double wanted[3] = {holdout, search, selection};
    std::vector<int64_t>* into[3] = {&parts.holdout, &parts.search, &parts.selection};
    for (int part = 0; part < 3; ++part) {
      owed[part] += wanted[part] * double(samples.size());
      auto take = std::min(size_t(std::max(0.0, std::floor(owed[part] + 1e-9))), samples.size() - next);
      owed[part] -= double(take);
      into[part]->insert(into[part]->end(), samples.begin() + int64_t(next), samples.begin() + int64_t(next + take));
      next += take;
    }
  }
  for (auto* part : {&parts.search, &parts.selection, &parts.holdout}) std::sort(part->begin(), part->end());
  return parts;
}

std::vector<int64_t> Problem::on(Side side, const std::vector<int64_t>& samples) const {
  std::vector<int64_t> found;
  for (int64_t sample : samples)
    if (target.side(rows[size_t(sample)]) == side) found.push_back(sample);
  return found;
}

stream::Subject edited(const Problem& problem, const std::vector<edits::Edit>& edits,
                       const std::vector<int64_t>* samples) {
  stream::Subject subject = problem.subject;
  if (!edits.empty()) {
    edits::apply(subject.graph, edits);
    edits::apply(subject.batching.graph, edits);
  }
  if (samples) subject.data = dataset::subset(problem.subject.data, *samples);
  return subject;
}

Answers answer(const Problem& problem, const std::vector<edits::Edit>& edits, const std::vector<int64_t>& samples) {
  stream::Subject subject = edited(problem, edits, &samples);
  observers::Predictions predictions(problem.settings, true);
  stream::PassOptions how;
  how.jobs = problem.jobs, how.quiet = true;
  auto done = stream::run_pass(subject, {&predictions}, how);
  auto folded = done.collected[0].fold(predictions);
  auto& state = dynamic_cast<observers::PredictionState&>(*folded);
  Answers out;
  out.result = observers::finish(predictions, state);
  out.rows = std::move(state.rows);
  for (SampleRow& row : out.rows) row.sample = samples[size_t(row.sample)];
  out.figure.metric = out.result.metrics.empty() ? NAN : out.result.metrics[0].estimate.value;
  out.figure.loss = out.result.loss, out.figure.accuracy = out.result.accuracy;
  out.figure.score = observers::is_error(problem.settings.metric) ? -out.figure.metric : out.figure.metric;
  if (!std::isfinite(out.figure.score)) out.figure.score = -1e30;
  out.figure.target = NAN;
  if (problem.targeted) {
    int64_t right = 0, all = 0;
    for (const SampleRow& row : out.rows) {
      if (problem.target.side(problem.rows[size_t(row.sample)]) == Side::kNeither) continue;
      right += row.right == SampleRow::kRight, ++all;
    }
    out.figure.target = all ? double(right) / double(all) : NAN;
    // Both count: what the user is after, and that the rest does not pay for it.
    if (all && !observers::is_error(problem.settings.metric)) out.figure.score += out.figure.target;
  }
  return out;
}

}  // namespace netmend::repair
