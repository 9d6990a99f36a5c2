// Values of made-up units, for tests: no network is needed to judge a criterion.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <sstream>

#include "base/random.h"
#include "observers/coverage/materials.h"

namespace netmend::observers {

inline SpacePtr made_up_space(const std::vector<int64_t>& units) {
  std::vector<model::Layer> layers;
  for (size_t l = 0; l < units.size(); ++l) {
    model::Layer layer;
    layer.name = "layer" + std::to_string(l + 1);
    layer.units = units[l];
    layers.push_back(layer);
  }
  return std::make_shared<UnitSpace>(layers);
}

/// Rectified, so that zeros occur, or not; the elements of a layer reach a little beyond its units.
inline UnitBatch random_values(const UnitSpace& space, int64_t inputs, uint64_t seed, bool rectified = true,
                               int64_t classes = 3) {
  Random random(seed);
  UnitBatch batch{space.units(), int64_t(space.layers().size())};
  for (int64_t row = 0; row < inputs; ++row) {
    SampleRow about;
    about.sample = row;
    about.label = double(random.below(uint64_t(classes)));
    about.predicted = random.below(4) ? about.label : double(random.below(uint64_t(classes)));
    about.right = about.label == about.predicted;
    batch.rows.push_back(about);
    for (size_t l = 0; l < space.layers().size(); ++l) {
      float low = INFINITY, high = -INFINITY;
      for (int64_t u = 0; u < space.units(l); ++u) {
        auto value = float(random.normal() + 0.3 * about.predicted * double(u % 3));
        if (rectified) value = std::max(0.0f, value);
        batch.values.push_back(value);
        low = std::min(low, value), high = std::max(high, value);
      }
      batch.low.push_back(low - (rectified ? 0.0f : 0.1f));
      batch.high.push_back(high + 0.1f);
    }
  }
  return batch;
}

/// Some rows, in the order given.
inline UnitBatch rows_of(const UnitBatch& all, const std::vector<int64_t>& rows) {
  UnitBatch part{all.units, all.layers};
  for (int64_t row : rows) {
    part.rows.push_back(all.rows[size_t(row)]);
    part.values.insert(part.values.end(), all.input(row), all.input(row) + all.units);
    for (auto [from, to] : {std::pair(&all.low, &part.low), std::pair(&all.high, &part.high)})
      to->insert(to->end(), from->begin() + row * all.layers, from->begin() + (row + 1) * all.layers);
  }
  return part;
}

inline std::vector<int64_t> range_of(int64_t from, int64_t to) {
  std::vector<int64_t> rows;
  for (int64_t row = from; row < to; ++row) rows.push_back(row);
  return rows;
}

inline std::unique_ptr<Tally> tally_of(const Criterion& criterion, const UnitBatch& batch) {
  auto tally = criterion.fresh();
  if (batch.count() > 0) tally->add(batch);
  return tally;
}

inline std::string bytes_of(const Tally& tally) {
  std::ostringstream out;
  tally.save(out);
  return out.str();
}

/// By the definition.
inline RangesPtr ranges_of(const UnitSpace& space, const UnitBatch& batch) {
  std::vector<UnitRange> ranges(size_t(space.units()));
  for (int64_t u = 0; u < space.units(); ++u) {
    UnitRange& range = ranges[size_t(u)];
    double sum = 0, squares = 0;
    range.low = INFINITY, range.high = -INFINITY;
    for (int64_t row = 0; row < batch.count(); ++row) {
      const double value = batch.input(row)[u];
      range.low = std::min(range.low, value), range.high = std::max(range.high, value);
      sum += value, squares += value * value;
    }
    range.seen = batch.count();
    range.mean = sum / double(batch.count());
    range.squares = squares - sum * range.mean;
  }
  return std::make_shared<std::vector<UnitRange>>(ranges);
}

/// One unit, one value per input.
inline UnitBatch line(std::vector<float> values) {
  UnitBatch batch{1, 1};
  for (float value : values) {
    batch.rows.push_back({int64_t(batch.rows.size())});
    batch.values.push_back(value);
    batch.low.push_back(0), batch.high.push_back(1);
  }
  return batch;
}

/// Three layers, one of them wider than a word of bits.
inline const SpacePtr& test_space() {
  static const SpacePtr made = made_up_space({5, 70, 8});
  return made;
}
inline const UnitBatch& test_training() {
  static const UnitBatch made = [] {
    UnitBatch batch = random_values(*test_space(), 400, 1);
    for (int64_t row = 0; row < 400; ++row) batch.input(row)[6] = 0.5f;  // a constant unit
    return batch;
  }();
  return made;
}
inline const RangesPtr& test_ranges() {
  static const RangesPtr made = ranges_of(*test_space(), test_training());
  return made;
}

/// What a profile of these would teach, with the second layer traced and its units 3, 0, 7 and 12 the most important.
inline CriterionMaterials test_materials() {
  static const UnitBatch traced = [] {
    const UnitBatch& all = test_training();
    UnitBatch part{test_space()->units(1), 1, all.rows};
    for (int64_t row = 0; row < all.count(); ++row)
      part.values.insert(part.values.end(), all.input(row) + test_space()->first(1),
                         all.input(row) + test_space()->first(2));
    return part;
  }();
  CriterionMaterials materials;
  materials.space = test_space();
  materials.ranges = test_ranges();
  materials.traces = &traced;
  materials.layer = 1;
  materials.importance.assign(size_t(traced.units), 0);
  double importance = 4;
  for (size_t unit : {3, 0, 7, 12}) materials.importance[unit] = importance--;
  materials.important = {4};
  return materials;
}

/// What is covered equals what a slow twin, written from the definition, says.
inline void expect_twin(const Criterion& criterion, const std::function<double(const UnitBatch&)>& twin,
                        double tolerance = 0) {
  for (uint64_t seed : {11, 12, 13})
    for (bool rectified : {true, false}) {
      const UnitBatch batch = random_values(*test_space(), 90, seed, rectified);
      EXPECT_NEAR(criterion.figure(*tally_of(criterion, batch)).covered, twin(batch), tolerance) << seed;
    }
}

}  // namespace netmend::observers
