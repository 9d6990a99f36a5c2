// Values of made-up units, for tests: no network is needed to judge a criterion.
#pragma once

#include <cmath>
#include <sstream>

#include "base/random.h"
#include "observers/coverage/criterion.h"

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

}  // namespace netmend::observers
