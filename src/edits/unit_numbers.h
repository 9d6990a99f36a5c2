// The numbers of one unit, read and written back as edits: what planted faults and mutants are made of.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "edits/edit.h"
#include "edits/places.h"
#include "model/layer.h"

namespace netmend::edits {

/// Numbers of one role of a unit and where they stand.
struct UnitNumbers {
  model::ValueId parameter = model::kAbsent;
  std::vector<int64_t> positions;
  std::vector<double> values;
};
/// One entry per parameter; none where the layer has nothing of that role. Throws InputError for weights that are
/// shared, quantised or computed.
std::vector<UnitNumbers> unit_numbers(const model::Graph& graph, const model::Layer& layer, int64_t unit, Role role);
/// The same for what the next linear layers read the unit with; throws as find_readers does.
std::vector<UnitNumbers> outgoing_numbers(const model::Graph& graph, const model::Layer& layer, int64_t unit);

/// The edits that write `values` where `own` was read; none when nothing changes.
std::vector<Edit> written(const model::Graph& graph, const UnitNumbers& own, const std::vector<double>& values,
                          const std::string& unit);
/// The same for many units at once, one cut per parameter: single edits of units that share slices would not fit one
/// behind the other. `list` holds the new values.
std::vector<Edit> written_together(const model::Graph& graph, const std::vector<UnitNumbers>& list,
                                   const std::string& name);
/// Each number x of a role becomes to(x), called in order.
std::vector<Edit> change_unit(const model::Graph& graph, const model::Layer& layer, int64_t unit, Role role,
                              const std::function<double(double)>& to);
/// Weights, biases and norms of two units change places.
std::vector<Edit> swap_units(const model::Graph& graph, const model::Layer& layer, int64_t a, int64_t b);

}  // namespace netmend::edits
