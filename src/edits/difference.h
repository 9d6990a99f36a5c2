// Two models of one structure: which parameters, layers and units differ, by how much, and the edits that lead from one
// to the other.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "edits/changes.h"
#include "edits/edit.h"
#include "model/layer.h"

namespace netmend::edits {

/// Constants of the two models that stand in the same place. Names may differ; operators, attributes, sizes and types
/// may not: InputError that says what differs first.
std::vector<std::pair<model::ValueId, model::ValueId>> matching_constants(const model::Graph& a, const model::Graph& b);

/// `layers` are those of `a`. Values are compared bit by bit (a zero that changed its sign has changed).
Difference compare(const model::Graph& a, const model::Graph& b, std::span<const model::Layer> layers);
/// The edits that turn `a` into `b`, cut along the units' axis where a layer owns the parameter and this is not
/// wasteful.
std::vector<Edit> edits_between(const model::Graph& a, const model::Graph& b, std::span<const model::Layer> layers);

}  // namespace netmend::edits
