#include "observers/coverage/criteria.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace netmend::observers {

Published parse_published(const std::string& name) {
  constexpr std::string_view names[] = {"", "deepimportance", "sadl", "nlc", "dnn-tip", "deepgini"};
  auto place = std::find(std::begin(names), std::end(names), lower(name));
  if (place != std::end(names)) return Published(place - std::begin(names));
  std::vector<std::string> known;
  for (std::string_view one : names)
    if (!one.empty()) known.emplace_back(one);
  throw InputError(fmt::format("--as-published {}: there is no such program{}", name, did_you_mean(lower(name), known)),
                   "Choose from " + join(known, ", ") + ".");
}

Criteria::Criteria(PredictionSettings predictions, SpacePtr space, List list, Filter counts)
    : predictions_(std::move(predictions), true),
      space_(std::move(space)),
      reader_(*space_),
      list_(std::move(list)),
      counts_(std::move(counts)) {}

std::vector<stream::Tap> Criteria::taps() const {
  std::vector<stream::Tap> taps = predictions_.taps();
  for (const stream::Tap& tap : reader_.taps()) taps.push_back(tap);
  return taps;
}

std::unique_ptr<stream::State> Criteria::fresh() const { return std::make_unique<CriteriaState>(*this); }

bool Criteria::merges_exactly() const {
  return std::all_of(list_.begin(), list_.end(), [](const auto& criterion) { return criterion->merges_exactly(); });
}

CriteriaState::CriteriaState(const Criteria& observer)
    : observer_(observer), judge_(observer.predictions_.settings(), true) {
  for (const auto& criterion : observer.list_) tallies.push_back(criterion->fresh());
}

namespace {

/// Keeps the inputs that count.
void keep(UnitBatch& batch, const Criteria::Filter& counts) {
  int64_t kept = 0;
  for (int64_t row = 0; row < batch.count(); ++row) {
    if (!counts(batch.rows[size_t(row)])) continue;
    if (row != kept) {
      batch.rows[size_t(kept)] = batch.rows[size_t(row)];
      std::copy_n(batch.input(row), batch.units, batch.input(kept));
      for (std::vector<float>* part : {&batch.low, &batch.high})
        std::copy_n(part->begin() + row * batch.layers, batch.layers, part->begin() + kept * batch.layers);
    }
    ++kept;
  }
  batch.rows.resize(size_t(kept));
}

}  // namespace

void CriteriaState::observe(const stream::View& view) {
  judge_.rows.clear();
  judge_.observe(view);
  observer_.reader_.read(view, batch_);
  batch_.rows = judge_.rows;
  if (observer_.counts_) keep(batch_, observer_.counts_);
  samples += batch_.count();
  if (batch_.count() == 0) return;
  for (auto& tally : tallies) tally->add(batch_);
}

const Tally& CriteriaState::tally(const Criterion& criterion) const {
  for (size_t i = 0; i < tallies.size(); ++i)
    if (observer_.list_[i].get() == &criterion) return *tallies[i];
  throw std::logic_error(criterion.name() + " is not among the criteria of this pass");
}

void CriteriaState::merge(const stream::State& later) {
  const auto& other = dynamic_cast<const CriteriaState&>(later);
  samples += other.samples;
  for (size_t i = 0; i < tallies.size(); ++i) tallies[i]->merge(*other.tallies[i]);
}

void CriteriaState::save(std::ostream& out) const {
  stream::put(out, samples);
  for (const auto& tally : tallies) tally->save(out);
}

void CriteriaState::load(std::istream& in) {
  samples = stream::get_int(in);
  if (samples < 0) fail("the state file is damaged");
  for (auto& tally : tallies) tally->load(in);
}

}  // namespace netmend::observers
