#include "repair/problem.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/pool.h"
#include "base/random.h"

namespace netmend::repair {

using observers::SampleRow;
using observers::Side;

namespace {

/// Duplicates follow the first of them.
void gather_copies(Parts& parts, const std::vector<uint64_t>& hashes) {
  std::map<uint64_t, int> home;
  std::vector<int64_t>* all[] = {&parts.holdout, &parts.search, &parts.selection};
  for (int part = 0; part < 3; ++part)
    for (int64_t sample : *all[part]) home.try_emplace(hashes[size_t(sample)], part);
  Parts moved;
  std::vector<int64_t>* into[] = {&moved.holdout, &moved.search, &moved.selection};
  for (int part = 0; part < 3; ++part)
    for (int64_t sample : *all[part]) into[home.at(hashes[size_t(sample)])]->push_back(sample);
  parts = std::move(moved);
}

}  // namespace

Parts split(const std::vector<int64_t>& strata, const Shares& shares, uint64_t seed,
            const std::vector<uint64_t>& hashes) {
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
  if (!hashes.empty()) gather_copies(parts, hashes);
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

double score_error(const Problem& problem, const Figure& figure) {
  const std::string& metric = problem.settings.metric;
  if (metric != "accuracy" && metric != "balanced_accuracy" && metric != "f1") return 0.01 * std::abs(figure.score);
  return std::sqrt(std::max(figure.accuracy * (1 - figure.accuracy), 0.0) /
                   double(std::max<size_t>(1, problem.parts.selection.size())));
}

int64_t changed_values(const std::vector<edits::Edit>& edits) {
  int64_t count = 0;
  for (const edits::Edit& edit : edits)
    for (size_t i = 0; i < edit.after.size(); ++i) count += edit.after[i] != edit.before[i];
  return count;
}

Evaluation evaluate(const Problem& problem, const std::vector<edits::Edit>& edits,
                    const std::vector<int64_t>& samples) {
  stream::Subject subject = edited(problem, edits, &samples);
  observers::Predictions predictions(problem.settings, true);
  stream::PassOptions how;
  how.jobs = problem.jobs, how.quiet = true;
  stream::Pass pass(subject);
  auto handle = pass.watch(predictions);
  pass.run(how);
  if (pass.interrupted()) throw Interrupted{};
  observers::PredictionState& state = pass.state(handle);
  Evaluation out;
  out.result = observers::finish(predictions, state);
  out.rows = std::move(state.rows);
  for (SampleRow& row : out.rows) row.sample = samples[size_t(row.sample)];
  out.figure.metric = out.result.metrics.empty() ? NAN : out.result.metrics[0].estimate.value;
  out.figure.loss = out.result.loss, out.figure.accuracy = out.result.accuracy;
  out.figure.score = observers::is_error(problem.settings.metric) ? -out.figure.metric : out.figure.metric;
  if (!std::isfinite(out.figure.score)) out.figure.score = -1e30;
  // Means leave out outputs that are NaN or Inf; a search must not make such outputs to win.
  if (out.result.not_finite > 0)
    out.figure.score -= 1e6 * double(out.result.not_finite) / double(std::max<size_t>(1, samples.size()));
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
