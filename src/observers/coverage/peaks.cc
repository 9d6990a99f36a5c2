#include "observers/coverage/peaks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace netmend::observers {

std::unique_ptr<Tally> Peaks::fresh() const { return std::make_unique<PeakTally>(space_->units()); }

PeakTally::PeakTally(int64_t units)
    : values_(size_t(units * Peaks::kKept)),
      least_(size_t(units), -std::numeric_limits<float>::infinity()),
      samples_(size_t(units * Peaks::kKept)),
      counts_(size_t(units)) {}

void PeakTally::insert(int64_t unit, float value, int64_t sample) {
  float* values = values_.data() + unit * Peaks::kKept;
  int64_t* samples = samples_.data() + unit * Peaks::kKept;
  int32_t& count = counts_[size_t(unit)];
  int64_t at = count < Peaks::kKept ? count++ : Peaks::kKept - 1;
  for (; at > 0 && values[at - 1] < value; --at) values[at] = values[at - 1], samples[at] = samples[at - 1];
  values[at] = value, samples[at] = sample;
  if (count == Peaks::kKept) least_[size_t(unit)] = values[Peaks::kKept - 1];
}

void PeakTally::add(const UnitBatch& batch) {
  for (int64_t row = 0; row < batch.count(); ++row) {
    const float* values = batch.input(row);
    for (int64_t u = 0; u < batch.units; ++u)
      if (values[u] > least_[size_t(u)] && std::isfinite(values[u]))
        insert(u, values[u], batch.rows[size_t(row)].sample);
  }
}

void PeakTally::merge(const Tally& later) {
  const auto& other = dynamic_cast<const PeakTally&>(later);
  for (int64_t u = 0; u < int64_t(counts_.size()); ++u)
    for (int64_t n = 0; n < other.kept(u) && other.value(u, n) > least_[size_t(u)]; ++n)
      insert(u, other.value(u, n), other.sample(u, n));
}

void PeakTally::save(std::ostream& out) const {
  for (int64_t u = 0; u < int64_t(counts_.size()); ++u) {
    stream::put(out, int64_t(kept(u)));
    for (int64_t n = 0; n < kept(u); ++n) stream::put(out, double(value(u, n))), stream::put(out, sample(u, n));
  }
}

void PeakTally::load(std::istream& in) {
  *this = PeakTally(int64_t(counts_.size()));
  for (int64_t u = 0; u < int64_t(counts_.size()); ++u) {
    const int64_t count = stream::get_int(in);
    if (count < 0 || count > Peaks::kKept) fail("the state file is damaged");
    for (int64_t n = 0; n < count; ++n) {
      const auto value = float(stream::get_double(in));
      const int64_t sample = stream::get_int(in);
      if (!std::isfinite(value) || sample < 0 || (n > 0 && value > this->value(u, n - 1)))
        fail("the state file is damaged");
      insert(u, value, sample);
    }
  }
}

std::vector<LowUnit> find_low_units(const PeakTally& peaks, int64_t training_inputs,
                                    const std::vector<double>& test_highs, int64_t tests, bool& judged) {
  std::vector<LowUnit> low;
  // Where n of N training inputs go higher, M tests drawn alike all stay below with a chance of about exp(−M·n/N).
  const double needed = tests > 0 ? std::ceil(7.0 * double(training_inputs) / double(tests)) : INFINITY;
  judged = needed <= double(std::min(Peaks::kKept, training_inputs));
  if (!judged) return low;
  for (int64_t u = 0; u < int64_t(test_highs.size()); ++u) {
    if (peaks.kept(u) < int64_t(needed) || !(double(peaks.value(u, int64_t(needed) - 1)) > test_highs[size_t(u)]))
      continue;
    LowUnit unit{u, test_highs[size_t(u)], peaks.value(u, 0)};
    while (unit.higher < peaks.kept(u) && double(peaks.value(u, unit.higher)) > unit.tests) ++unit.higher;
    for (int64_t n = 0; n < std::min<int64_t>(12, unit.higher); ++n) unit.samples.push_back(peaks.sample(u, n));
    low.push_back(std::move(unit));
  }
  return low;
}

}  // namespace netmend::observers
