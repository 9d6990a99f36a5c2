// A change to the weights as a value: it prints, is saved, applied and taken back, and is what a person looks at before
// accepting a repair. An edit is one slice of one parameter with its numbers before and after.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/graph.h"

namespace netmend::edits {

struct Edit {
  std::string parameter;  ///< name of the constant in the file
  std::string unit;       ///< `conv1/7`; for people, and empty where no unit owns the slice
  int64_t axis = 0, index = 0;
  std::vector<double> before, after;  ///< the slice in order; every stored type but the largest integers fits a double

  bool operator==(const Edit&) const = default;
};

/// Writes `after` of each edit in turn. An edit whose `before` is not what the model holds at its turn was made for
/// another model: InputError that names parameter, unit and first differing value. All are applied, or none.
/// Numbers are rounded to the stored type first: a file may say 0.1.
/// Call it as edits::apply: without its namespace a list of edits would find std::apply.
void apply(model::Graph& graph, std::span<const Edit> edits);
/// The inverse, from the last edit to the first: restores every bit.
void revert(model::Graph& graph, std::span<const Edit> edits);

/// The same change told in fewer edits: those that follow one another in one slice become one, and what ends where it
/// began goes. Parameters that are cut along different axes keep their edits as they are.
std::vector<Edit> compact(std::span<const Edit> edits);

/// The edits that write `values` to the flat `positions` of a constant: the fewest numbers that whole slices can hold.
/// Slices without a change are left out. Throws InputError when the stored type cannot hold a value.
std::vector<Edit> cut(const model::Graph& graph, model::ValueId parameter, std::span<const int64_t> positions,
                      std::span<const double> values, const std::string& unit);

/// The axis of `shape` along which the fewest numbers lie in slices that hold all the positions.
int64_t best_axis(std::span<const int64_t> shape, std::span<const int64_t> positions);
/// A slice's numbers in order. A constant without axes is its own slice 0 of axis 0.
at::Tensor slice(const at::Tensor& value, int64_t axis, int64_t index);
std::vector<double> numbers(const at::Tensor& value);
/// Equal, or both NaN.
bool same_number(double a, double b);
/// The constant with this name. Throws InputError with the nearest name.
model::ValueId find_parameter(const model::Graph& graph, std::string_view name);

}  // namespace netmend::edits
