#include "edits/operations.h"

#include <ATen/ATen.h>

#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/text.h"
#include "edits/places.h"

namespace netmend::edits {

using model::Graph;
using model::Layer;

namespace {

constexpr NamedOperation kOperations[] = {
    {"set-weights", "modify_all_weights", {Target::kWeights, Change::kSet, 0}},
    {"delete", "delete_neuron", {Target::kWeights, Change::kSet, 0}},
    {"gauss-weights-one", "modify_weight_one_random_gauss", {Target::kWeights, Change::kSetGauss, 0.5}},
    {"gauss-weights", "modify_weight_all_random_gauss", {Target::kWeights, Change::kSetGaussEach, 0.5}},
    {"scale-weights", "modify_all_weights_by_scalar", {Target::kWeights, Change::kScale, 0.5}},
    {"scale-weights-gauss-one",
     "modify_all_weights_by_scalar_random_gauss",
     {Target::kWeights, Change::kScaleGauss, 1}},
    {"scale-weights-gauss", "modify_weight_all_random_by_scalar_gauss", {Target::kWeights, Change::kScaleGaussEach, 1}},
    {"set-bias", "modify_bias", {Target::kBias, Change::kSet, 0}},
    {"gauss-bias", "modify_bias_random_gauss", {Target::kBias, Change::kSetGauss, 0.5}},
    {"scale-bias", "modify_bias_by_scalar", {Target::kBias, Change::kScale, 0.5}},
    {"scale-bias-gauss", "modify_bias_by_scalar_random_gauss", {Target::kBias, Change::kScaleGauss, 0.5}},
    {"scale-outgoing", "", {Target::kOutgoing, Change::kScale, 0}},
};

/// New numbers for old ones, in the order they are asked for.
class Source {
 public:
  Source(const Operation& operation, uint64_t seed, uint64_t stream)
      : change_(operation.change), value_(operation.value), random_(seed, stream) {
    bool one = change_ == Change::kSetGauss || change_ == Change::kScaleGauss;
    if (one) value_ *= random_.normal();
  }

  double next(double before) {
    bool each = change_ == Change::kSetGaussEach || change_ == Change::kScaleGaussEach;
    double factor = each ? value_ * random_.normal() : value_;
    bool scales = change_ == Change::kScale || change_ == Change::kScaleGauss || change_ == Change::kScaleGaussEach;
    return scales ? factor * before : factor;
  }

 private:
  Change change_;
  double value_;
  Random random_;
};

struct Place {
  model::ValueId parameter;
  std::vector<int64_t> positions;
};

std::vector<Place> own_places(const Graph& graph, const Layer& layer, int64_t unit, Role role) {
  const char* word = role == Role::kBias ? "bias" : "weights";
  Parts parts = find_parts(graph, layer);
  std::string reason = role == Role::kBias ? parts.no_bias : parts.no_weight;
  std::vector<Place> places;
  for (const Part& part : parts.list) {
    if (part.role != role) continue;
    if (reason.empty()) reason = part.refusal;
    places.push_back({part.parameter, part.positions(graph, unit)});
  }
  if (!reason.empty())
    throw InputError(fmt::format("the {} of {} cannot be changed: {}", word, layer.name, reason),
                     "netmend info lists the layers; choose another one.");
  return places;
}

std::vector<Place> places_of(const Graph& graph, const Layer& layer, int64_t unit, Target target) {
  if (target != Target::kOutgoing)
    return own_places(graph, layer, unit, target == Target::kBias ? Role::kBias : Role::kWeight);
  std::vector<Place> places;
  for (Reader& reader : find_readers(graph, layer, unit))
    places.push_back({reader.parameter, std::move(reader.positions)});
  return places;
}

void require_sound(const Layer& layer, int64_t unit, const Operation& operation) {
  if (unit < 0 || unit >= layer.units)
    fail("there is no unit {}: {} has {} of them, counted from 0", model::unit_name(layer, unit), layer.name,
         layer.units);
  if (!std::isfinite(operation.value)) fail("an operation needs a number, not {}", operation.value);
  bool plain = operation.change == Change::kSet || operation.change == Change::kScale;
  if (!plain && operation.value < 0) fail("a standard deviation cannot be negative, but {} is", operation.value);
}

double finite(double after, double before, const std::string& unit) {
  if (!std::isfinite(after) && std::isfinite(before)) fail("a weight of {} would become {}", unit, after);
  return after;
}

/// Units differ in their numbers though one seed serves them all.
uint64_t stream_of(const std::string& unit) { return hash64(unit); }

}  // namespace

std::span<const NamedOperation> operations() { return kOperations; }

std::string operation_names() {
  std::vector<std::string> names;
  for (const NamedOperation& row : kOperations) names.emplace_back(row.name);
  return join(names, ", ");
}

const NamedOperation& find_operation(std::string_view name) {
  std::vector<std::string> names;
  for (const NamedOperation& row : kOperations) {
    if (row.name == name || (!row.thesis.empty() && row.thesis == name)) return row;
    names.emplace_back(row.name);
  }
  throw InputError(fmt::format("there is no operation {}{}", name, did_you_mean(name, names)),
                   "Choose from " + operation_names() + ".");
}

std::vector<Edit> operate(const Graph& graph, const Layer& layer, int64_t unit, const Operation& operation,
                          uint64_t seed) {
  require_sound(layer, unit, operation);
  std::string name = model::unit_name(layer, unit);
  Source source(operation, seed, stream_of(name));
  std::vector<Edit> edits;
  for (const Place& place : places_of(graph, layer, unit, operation.target)) {
    at::Tensor flat = graph.constant(place.parameter).contiguous().view(-1);
    at::Tensor index = at::tensor(at::IntArrayRef(place.positions), at::kLong);
    std::vector<double> values = numbers(flat.index_select(0, index));
    for (double& value : values) value = finite(source.next(value), value, name);
    for (Edit& edit : cut(graph, place.parameter, place.positions, values, name)) edits.push_back(std::move(edit));
  }
  return edits;
}

std::vector<Edit> scale_layer(const model::Graph& graph, const model::Layer& layer, double factor) {
  std::vector<Edit> all;
  try {
    for (int64_t unit = 0; unit < layer.units; ++unit)
      for (Edit& edit : operate(graph, layer, unit, {Target::kWeights, Change::kScale, factor}, 0))
        all.push_back(std::move(edit));
  } catch (const InputError&) {
    return {};
  }
  return all;
}

}  // namespace netmend::edits
