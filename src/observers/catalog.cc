#include "observers/catalog.h"

#include "observers/coverage/combinations.h"
#include "observers/coverage/criteria.h"
#include "observers/coverage/layer_spread.h"
#include "observers/coverage/neuron_coverage.h"
#include "observers/coverage/peaks.h"
#include "observers/coverage/sections.h"
#include "observers/coverage/sign_pairs.h"
#include "observers/coverage/top_units.h"
#include "observers/coverage/traces.h"
#include "observers/importance.h"
#include "observers/top_predictions.h"
#include "observers/part_predictions.h"
#include "observers/spectrum.h"
#include "observers/unit_profile.h"

namespace netmend::observers {
namespace {

/// A criterion alone, over all layers.
template <typename Make>
std::unique_ptr<stream::Observer> alone(const Materials& m, const Make& make) {
  auto space = std::make_shared<UnitSpace>(m.layers);
  return std::make_unique<Criteria>(m.predictions, space, Criteria::List{make(space)});
}

template <typename T>
std::shared_ptr<const Criterion> shared(T criterion) {
  return std::make_shared<T>(std::move(criterion));
}

/// What stands in for training data where nothing was learned: the same range for all units.
RangesPtr nominal_ranges(const UnitSpace& space) {
  return std::make_shared<std::vector<UnitRange>>(size_t(space.units()), UnitRange{-0.25, 0.5, 0.1, 3, 100});
}

constexpr CatalogRow kRows[] = {
    {"predictions", "metric, loss, per class, confusion, one row an input", "per input",
     [](const Materials& m) -> std::unique_ptr<stream::Observer> {
       return std::make_unique<Predictions>(m.predictions, true);
     }},
    {"top-predictions", "the likeliest classes of each input and how spread the answer is", "per input",
     [](const Materials& m) -> std::unique_ptr<stream::Observer> {
       return std::make_unique<TopPredictions>(m.predictions);
     }},
    {"part-predictions", "the metrics of a part of the inputs", "constant",
     [](const Materials& m) -> std::unique_ptr<stream::Observer> {
       return std::make_unique<PartPredictions>(m.predictions, [](int64_t sample) { return sample % 3 == 0; });
     }},
    {"unit-profile", "range, mean, variance, zeros and broken numbers of each unit", "per unit",
     [](const Materials& m) -> std::unique_ptr<stream::Observer> { return std::make_unique<UnitProfile>(m.layers); }},
    {"spectrum", "how often each unit is active on failing and on passing inputs", "per unit",
     [](const Materials& m) -> std::unique_ptr<stream::Observer> {
       return std::make_unique<Spectrum>(m.predictions, m.layers);
     }},
    {"nc", "units that are strongly active once", "per unit",
     [](const Materials& m) {
       return alone(m, [](const SpacePtr& space) { return shared(NeuronCoverage(space, 0.5)); });
     }},
    {"kmnc", "sections of each unit's training range", "per unit",
     [](const Materials& m) {
       return alone(m,
                    [](const SpacePtr& space) { return shared(SectionCoverage(space, nominal_ranges(*space), 100)); });
     }},
    {"nbc", "values beyond the training range on both sides", "per unit",
     [](const Materials& m) {
       return alone(m,
                    [](const SpacePtr& space) { return shared(CornerCoverage(space, nominal_ranges(*space), true)); });
     }},
    {"snac", "values above the training range", "per unit",
     [](const Materials& m) {
       return alone(m,
                    [](const SpacePtr& space) { return shared(CornerCoverage(space, nominal_ranges(*space), false)); });
     }},
    {"tknc", "units among the largest of their layer", "per unit",
     [](const Materials& m) { return alone(m, [](const SpacePtr& space) { return shared(TopUnits(space)); }); }},
    {"tknp", "sets of largest units", "per input",
     [](const Materials& m) { return alone(m, [](const SpacePtr& space) { return shared(TopPatterns(space)); }); }},
    {"mcdc", "pairs of signs in consecutive layers", "per input",
     [](const Materials& m) { return alone(m, [](const SpacePtr& space) { return shared(SignPairs(space)); }); }},
    {"nlc", "how widely the units of a layer spread together", "per unit",
     [](const Materials& m) { return alone(m, [](const SpacePtr& space) { return shared(LayerSpread(space)); }); }},
    {"idc", "combinations of what important units do", "per input",
     [](const Materials& m) {
       return alone(m, [](const SpacePtr& space) {
         return shared(ImportanceCoverage(
             space, 0, {QuantisedUnit{0, {{0.0, 0.3}, 0}}, QuantisedUnit{1, {{-0.2, 0.1, 0.4}, 0}}}));
       });
     }},
    {"ranges", "smallest, largest, mean and spread of each unit", "per unit",
     [](const Materials& m) { return alone(m, [](const SpacePtr& space) { return shared(Ranges(space)); }); }},
    {"peaks", "the inputs that drive each unit highest", "per unit",
     [](const Materials& m) { return alone(m, [](const SpacePtr& space) { return shared(Peaks(space)); }); }},
    {"traces", "values of units for every input: what surprise is computed from", "per input",
     [](const Materials& m) {
       return alone(m, [](const SpacePtr& space) { return shared(Traces(space, 0, space->layers().size())); });
     }},
    {"importance", "relevance of each unit for the predictions, by class", "per unit",
     [](const Materials& m) -> std::unique_ptr<stream::Observer> {
       return std::make_unique<Importance>(*m.subject, m.predictions, m.layers);
     }},
};

}  // namespace

std::span<const CatalogRow> catalog() { return kRows; }

}  // namespace netmend::observers
