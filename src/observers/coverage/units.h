// The units of some layers side by side, as criteria look at them: one value a unit and input. What a unit is may be
// chosen (a feature map's mean, or each of its positions; before or after the activation); its name stays the same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/layer.h"
#include "observers/predictions.h"
#include "stream/pass.h"

namespace netmend::observers {

struct UnitChoice {
  bool before_activation = false;
  bool elements = false;  ///< each position of a map is a unit of its own
};

/// Which layers, how they are looked at, and where each one's units begin.
class UnitSpace {
 public:
  UnitSpace() = default;
  using Connections = std::vector<std::pair<size_t, size_t>>;
  /// `positions`: of each layer's maps; ignored unless elements are asked for. `connections`: which layer reads which,
  /// lower and upper; nothing: each layer the one before.
  UnitSpace(std::vector<model::Layer> layers, UnitChoice choice = {}, std::vector<int64_t> positions = {},
            std::optional<Connections> connections = {});

  const std::vector<model::Layer>& layers() const { return layers_; }
  const UnitChoice& choice() const { return choice_; }
  /// Layers with another one that reads them without a third in between.
  const Connections& connections() const { return connections_; }
  int64_t units() const { return first_.back(); }
  int64_t first(size_t layer) const { return first_[layer]; }
  int64_t units(size_t layer) const { return first_[layer + 1] - first_[layer]; }
  size_t layer_of(int64_t unit) const;
  /// `conv2/7`; an element is a position of a unit, not a unit of another name: see position().
  std::string name(int64_t unit) const;
  /// Of an element in its map; -1 where units are whole maps.
  int64_t position(int64_t unit) const;
  /// The place of the layer with this name. Throws InputError with the nearest name.
  size_t find(const std::string& layer) const;

 private:
  std::vector<model::Layer> layers_;
  UnitChoice choice_;
  std::vector<int64_t> positions_, first_{0};
  Connections connections_;
};

using SpacePtr = std::shared_ptr<const UnitSpace>;

/// Which of these layers reads which other one, through whatever has no weights: joins and skips too.
UnitSpace::Connections find_connections(const model::Graph& graph, const std::vector<model::Layer>& layers);

/// Runs one input to learn how many positions maps have, where that matters. Throws InputError where inputs differ in
/// length, so that positions of one are not those of another.
SpacePtr make_unit_space(const stream::Subject& subject, std::vector<model::Layer> layers, UnitChoice choice);

/// Values of some inputs. Padding does not count: a unit's value is its mean over positions that do, and an element
/// that does not is not a number, which covers nothing.
struct UnitBatch {
  int64_t units = 0, layers = 0;
  std::vector<SampleRow> rows;   ///< how each input was answered
  std::vector<float> values;     ///< inputs × units
  std::vector<float> low, high;  ///< inputs × layers: the extremes of all elements of the layer

  int64_t count() const { return int64_t(rows.size()); }
  const float* input(int64_t row) const { return values.data() + row * units; }
  float* input(int64_t row) { return values.data() + row * units; }
};

/// Reads batches into the form above.
class UnitReader {
 public:
  explicit UnitReader(const UnitSpace& space) : space_(space) {}
  std::vector<stream::Tap> taps() const;
  /// Fills all but the rows.
  void read(const stream::View& view, UnitBatch& batch) const;

 private:
  /// A rectified map is read before the rectifier and rectified on the way: the network can then pool first.
  bool rectifies(const model::Layer& layer) const;
  model::ValueId tapped(const model::Layer& layer) const;
  bool read_plain(size_t layer, const at::Tensor& value, UnitBatch& batch) const;
  void read_any(size_t layer, const at::Tensor& value, const at::Tensor& mask, UnitBatch& batch) const;
  const UnitSpace& space_;
};

}  // namespace netmend::observers
