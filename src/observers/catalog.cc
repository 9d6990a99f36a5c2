#include "observers/catalog.h"

#include <cmath>

#include "base/text.h"
#include "observers/coverage/criteria.h"
#include "observers/coverage/materials.h"
#include "observers/coverage/peaks.h"
#include "observers/coverage/table.h"
#include "observers/coverage/traces.h"
#include "observers/importance.h"
#include "observers/part_predictions.h"
#include "observers/spectrum.h"
#include "observers/top_predictions.h"
#include "observers/unit_profile.h"

namespace netmend::observers {
namespace {

/// A row of an observer class: how it is built, and what its states have found.
template <typename T>
CatalogRow row_of(std::string name, std::string about, std::string state_size,
                  std::function<std::unique_ptr<T>(const Materials&)> make,
                  std::function<Found(const typename T::State&)> found, bool counts_not_finite = false) {
  return {std::move(name),
          std::move(about),
          std::move(state_size),
          [make = std::move(make)](const Materials& m) -> std::unique_ptr<stream::Observer> { return make(m); },
          [found = std::move(found)](const stream::State& state) {
            return found(static_cast<const typename T::State&>(state));
          },
          counts_not_finite};
}

void append(std::vector<double>& numbers, const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kDouble).contiguous();
  numbers.insert(numbers.end(), flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
}

Found found_in(const PredictionState& state) {
  Found found{state.samples, state.not_finite, {double(state.correct), state.loss, state.loss_squares}};
  for (int64_t count : state.confusion) found.numbers.push_back(double(count));
  for (const SampleRow& row : state.rows)
    if (std::isfinite(row.loss))
      for (double number : {double(row.sample), row.label, row.predicted, double(row.confidence), double(row.loss)})
        found.numbers.push_back(number);
  return found;
}

Found found_in(const TopState& state) {
  Found found{int64_t(state.rows.size()), 0, {}};
  for (const TopRow& row : state.rows) {
    found.not_finite += row.classes[0] < 0;
    if (row.classes[0] < 0) continue;
    for (double number : {double(row.sample), double(row.given), double(row.gini), double(row.entropy)})
      found.numbers.push_back(number);
    for (float probability : row.probabilities) found.numbers.push_back(probability);
  }
  return found;
}

Found found_in(const UnitProfileState& state) {
  Found found;
  for (const auto& layer : state.stats)
    for (const UnitStats& unit : layer) {
      found.inputs = unit.seen + unit.not_finite;
      found.not_finite += unit.not_finite;
      for (double number : {double(unit.seen), double(unit.zeros), unit.min, unit.max, unit.mean, unit.variance()})
        found.numbers.push_back(number);
    }
  return found;
}

Found found_in(const SpectrumState& state) {
  Found found{state.samples, 0, {}};
  append(found.numbers, state.active);
  return found;
}

Found found_in(const ImportanceState& state) {
  Found found{0, state.not_finite, {state.absorbed}};
  for (const at::Tensor& sums : state.sums) append(found.numbers, sums);
  append(found.numbers, state.inputs);
  append(found.numbers, state.starts);
  found.inputs = state.inputs.sum().item<int64_t>() + state.not_finite;
  return found;
}

/// A criterion alone, over all layers. `found` may look into its tallies; else its figure is what it has found.
CatalogRow alone(std::string name, std::string about, std::string state_size,
                 std::function<std::shared_ptr<const Criterion>(const SpacePtr&)> make,
                 std::function<std::vector<double>(const Tally&)> found) {
  return row_of<Criteria>(
      std::move(name), std::move(about), std::move(state_size),
      [make = std::move(make)](const Materials& m) {
        auto space = std::make_shared<UnitSpace>(m.layers);
        return std::make_unique<Criteria>(m.predictions, space, Criteria::List{make(space)});
      },
      [found = std::move(found)](const CriteriaState& state) {
        if (found) return Found{state.samples, 0, found(*state.tallies[0])};
        const Figure figure = state.observer().list()[0]->figure(*state.tallies[0]);
        Found numbers{state.samples, 0, {figure.covered, figure.total, figure.value}};
        for (const Figure::Part& part : figure.layers) numbers.numbers.push_back(part.covered);
        return numbers;
      });
}

/// What stands in for training data where nothing was learned: the same range for all units, traces that wave, and
/// every unit as important as the next.
struct NominalTraining {
  explicit NominalTraining(const SpacePtr& space) : traces{space->units(0), 1} {
    constexpr int64_t kInputs = 40;
    for (int64_t row = 0; row < kInputs; ++row) {
      traces.rows.push_back({row});
      for (int64_t u = 0; u < traces.units; ++u) traces.values.push_back(float(std::sin(double(3 * row + u))));
    }
    materials.space = space;
    materials.ranges =
        std::make_shared<std::vector<UnitRange>>(size_t(space->units()), UnitRange{-0.25, 0.5, 0.1, 3, 100});
    materials.traces = &traces;
    materials.importance.assign(size_t(traces.units), 1.0);
    materials.important = {3};
  }
  UnitBatch traces;
  CriterionMaterials materials;
};

CatalogRow row_of_criterion(const CriterionRow& row) {
  const bool by_input = row.memory == CriterionRow::Memory::kPerInput;
  return alone(lower(std::string(row.name)), std::string(row.asks), by_input ? "per input" : "per unit",
               [&row](const SpacePtr& space) {
                 NominalTraining training(space);
                 training.materials.parameter = row.parameter.usual;
                 return row.make(training.materials).list.at(0);
               },
               {});
}

std::vector<CatalogRow> make_rows() {
  std::vector<CatalogRow> rows = {
      row_of<Predictions>(
          "predictions", "metric, loss, per class, confusion, one row per input", "per input",
          [](const Materials& m) { return std::make_unique<Predictions>(m.predictions, true); },
          [](const PredictionState& state) { return found_in(state); }, true),
      row_of<TopPredictions>(
          "top-predictions", "the most probable classes of each input and the entropy of its prediction", "per input",
          [](const Materials& m) { return std::make_unique<TopPredictions>(m.predictions); },
          [](const TopState& state) { return found_in(state); }, true),
      row_of<PartPredictions>(
          "part-predictions", "the metrics of a part of the inputs", "constant",
          [](const Materials& m) {
            return std::make_unique<PartPredictions>(m.predictions, [](int64_t sample) { return sample % 3 == 0; });
          },
          [](const PartState& state) { return found_in(state.judged); }, true),
      row_of<UnitProfile>(
          "unit-profile", "range, mean, variance, zeros, NaN and Inf of each unit", "per unit",
          [](const Materials& m) { return std::make_unique<UnitProfile>(m.layers); },
          [](const UnitProfileState& state) { return found_in(state); }, true),
      row_of<Spectrum>(
          "spectrum", "how often each unit is active on failing and on passing inputs", "per unit",
          [](const Materials& m) { return std::make_unique<Spectrum>(m.predictions, m.layers); },
          [](const SpectrumState& state) { return found_in(state); }),
      row_of<Importance>(
          "importance", "relevance of each unit for the predictions, by class", "per unit",
          [](const Materials& m) {
            ImportanceSettings all;
            all.counts = [](const SampleRow&) { return true; };
            return std::make_unique<Importance>(*m.subject, m.predictions, m.layers, all);
          },
          [](const ImportanceState& state) { return found_in(state); }, true),
      alone(
          "ranges", "smallest, largest, mean and spread of each unit", "per unit",
          [](const SpacePtr& space) { return std::make_shared<Ranges>(space); },
          [](const Tally& tally) {
            std::vector<double> numbers;
            for (const UnitRange& range : static_cast<const RangeTally&>(tally).ranges)
              for (double number : {double(range.seen), range.low, range.high, range.mean, range.deviation()})
                numbers.push_back(number);
            return numbers;
          }),
      alone(
          "peaks", "the inputs with the highest activation of each unit", "per unit",
          [](const SpacePtr& space) { return std::make_shared<Peaks>(space); },
          [](const Tally& tally) {
            const auto& peaks = static_cast<const PeakTally&>(tally);
            std::vector<double> numbers;
            for (int64_t unit = 0; unit < peaks.units(); ++unit)
              for (int64_t n = 0; n < peaks.kept(unit); ++n) numbers.push_back(peaks.value(unit, n));
            return numbers;
          }),
      alone(
          "traces", "values of units for every input: what surprise is computed from", "per input",
          [](const SpacePtr& space) { return std::make_shared<Traces>(space, 0, space->layers().size()); },
          [](const Tally& tally) {
            std::vector<double> numbers;  // traces are the values as they are: NaN stays where it was
            for (float value : static_cast<const TraceTally&>(tally).kept.values)
              if (std::isfinite(value)) numbers.push_back(value);
            return numbers;
          }),
  };
  for (const CriterionRow& row : criterion_rows())
    if (row.make) rows.push_back(row_of_criterion(row));
  return rows;
}

}  // namespace

std::span<const CatalogRow> catalog() {
  static const std::vector<CatalogRow> rows = make_rows();
  return rows;
}

}  // namespace netmend::observers
