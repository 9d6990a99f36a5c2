#include "observers/catalog.h"

#include "observers/importance.h"
#include "observers/spectrum.h"
#include "observers/unit_profile.h"

namespace netmend::observers {
namespace {

constexpr CatalogRow kRows[] = {
    {"predictions", "metric, loss, per class, confusion, one row an input", "per input",
     [](const Materials& m) -> std::unique_ptr<stream::Observer> {
       return std::make_unique<Predictions>(m.predictions, true);
     }},
    {"unit-profile", "range, mean, variance, zeros and broken numbers of each unit", "per unit",
     [](const Materials& m) -> std::unique_ptr<stream::Observer> { return std::make_unique<UnitProfile>(m.layers); }},
    {"spectrum", "how often each unit is active on failing and on passing inputs", "per unit",
     [](const Materials& m) -> std::unique_ptr<stream::Observer> {
       return std::make_unique<Spectrum>(m.predictions, m.layers);
     }},
    {"importance", "relevance of each unit for the answers, by class", "per unit",
     [](const Materials& m) -> std::unique_ptr<stream::Observer> {
       return std::make_unique<Importance>(*m.subject, m.predictions, m.layers);
     }},
};

}  // namespace

std::span<const CatalogRow> catalog() { return kRows; }

}  // namespace netmend::observers
