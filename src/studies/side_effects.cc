#include "studies/side_effects.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/pool.h"
#include "inputs/campaign.h"

namespace netmend::studies {
namespace {

using observers::SampleRow;

constexpr int64_t kFewest = 20, kFewestOfGroup = 30;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

bool right(const SampleRow& row) { return row.right == SampleRow::kRight; }

/// What the sides of a comparison have right of each name.
struct Right {
  int64_t inputs = 0, before = 0, after = 0;
};
WorstChange worst(const std::map<std::string, Right>& all) {
  WorstChange out;
  for (const auto& [name, count] : all) {
    if (count.inputs < kFewestOfGroup) continue;
    const double change = double(count.after - count.before) / double(count.inputs);
    if (out.inputs == 0 || change < out.change) out = {name, change, count.inputs};
  }
  return out;
}

}  // namespace

Robustness robustness_of(const stream::Subject& subject, const observers::PredictionSettings& settings,
                         const std::vector<SampleRow>& rows, uint64_t seed, int jobs, int64_t inputs) {
  std::vector<int64_t> correct;
  for (size_t i = 0; i < rows.size(); ++i)
    if (right(rows[i])) correct.push_back(int64_t(i));
  inputs::Chosen chosen;
  for (int64_t i : stream::spread(int64_t(correct.size()), inputs, 0.5)) {
    chosen.samples.push_back(correct[size_t(i)]);
    chosen.predictions.push_back(int64_t(rows[size_t(correct[size_t(i)])].predicted));
  }
  Robustness out{kNone, kNone};
  if (chosen.count() < kFewest) return out;
  const inputs::Subject changed = inputs::find_subject(subject.data->info());
  std::optional<stream::RawRange> range;
  if (changed.kind != inputs::Kind::kTokens) range.emplace(*subject.data, changed.feature);
  const inputs::Network network(subject, settings, changed, range ? &*range : nullptr);
  at::Tensor pool = subject.data->read(stream::spread(subject.data->size(), 512)).inputs[changed.feature];
  if (range) pool = range->units(pool);
  pool = pool.contiguous();
  int64_t made = 0, flipped = 0;
  auto attack = [&](const char* name, double eps) {
    const inputs::Method& method = inputs::find_method(name);
    made = flipped = 0;
    if (!(method.kinds & int(changed.kind))) return;
    inputs::Settings how;
    how.seed = seed;
    if (eps > 0) how.eps = eps;
    how = inputs::settle(method, changed, how);
    if (!inputs::unsuited(method, network, how).empty()) return;
    how.pool = pool;
    const inputs::CampaignResult result = inputs::run_campaign(network, subject, chosen, method, how, {jobs, true});
    if (result.interrupted) throw Interrupted{};
    for (const inputs::Attempt& attempt : result.attempts) made += attempt.made, flipped += attempt.success();
  };
  int64_t all = 0, changes = 0;
  for (const auto& [name, eps] : {std::pair{"white-noise", 0.03},
                                  {"brightness", -1.0},
                                  {"contrast", -1.0},
                                  {"translate", -1.0},
                                  {"column-noise", 0.05},
                                  {"token-drop", 0.05},
                                  {"token-swap", 0.05}}) {
    attack(name, eps);
    all += made, changes += flipped;
  }
  if (all > 0) out.mild = double(changes) / double(all);
  attack("pgd", -1);
  if (made > 0) out.pgd = double(flipped) / double(made);
  return out;
}

WorstChange worst_class(const std::vector<std::string>& classes, const std::vector<SampleRow>& before,
                        const std::vector<SampleRow>& after) {
  std::map<std::string, Right> all;
  for (size_t i = 0; i < before.size(); ++i) {
    const auto label = int64_t(before[i].label);
    if (label < 0 || label >= int64_t(classes.size())) continue;
    Right& count = all[classes[size_t(label)]];
    ++count.inputs, count.before += right(before[i]), count.after += right(after[i]);
  }
  return worst(all);
}

WorstChange worst_group(const dataset::Dataset& data, const std::vector<SampleRow>& before,
                        const std::vector<SampleRow>& after) {
  std::map<std::string, Right> all;
  const std::vector<std::string>& columns = data.info().groups;
  for (size_t i = 0; i < before.size() && !columns.empty(); ++i) {
    const std::vector<std::string> values = data.groups(before[i].sample);
    for (size_t c = 0; c < columns.size() && c < values.size(); ++c) {
      Right& count = all[columns[c] + "=" + values[c]];
      ++count.inputs, count.before += right(before[i]), count.after += right(after[i]);
    }
  }
  return worst(all);
}

}  // namespace netmend::studies
