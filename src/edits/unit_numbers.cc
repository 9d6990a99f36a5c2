#include "edits/unit_numbers.h"

#include <ATen/ATen.h>

#include <map>

#include "base/error.h"

namespace netmend::edits {
namespace {

UnitNumbers read_numbers(const model::Graph& graph, model::ValueId parameter, std::vector<int64_t> positions) {
  UnitNumbers own{parameter, std::move(positions), {}};
  at::Tensor flat = graph.constant(parameter).contiguous().view(-1);
  own.values = numbers(flat.index_select(0, at::tensor(own.positions, at::kLong)));
  return own;
}

void append(std::vector<Edit>& all, std::vector<Edit> more) {
  for (Edit& edit : more) all.push_back(std::move(edit));
}

}  // namespace

std::vector<UnitNumbers> unit_numbers(const model::Graph& graph, const model::Layer& layer, int64_t unit, Role role) {
  std::vector<UnitNumbers> list;
  for (const Part& part : find_parts(graph, layer).list) {
    if (part.role != role) continue;
    if (!part.refusal.empty()) fail("the weights of {} cannot be changed: {}", layer.name, part.refusal);
    list.push_back(read_numbers(graph, part.parameter, part.positions(graph, unit)));
  }
  return list;
}

std::vector<UnitNumbers> outgoing_numbers(const model::Graph& graph, const model::Layer& layer, int64_t unit) {
  std::vector<UnitNumbers> list;
  for (Reader& reader : find_readers(graph, layer, unit))
    list.push_back(read_numbers(graph, reader.parameter, std::move(reader.positions)));
  return list;
}

std::vector<Edit> written(const model::Graph& graph, const UnitNumbers& own, const std::vector<double>& values,
                          const std::string& unit) {
  return cut(graph, own.parameter, own.positions, values, unit);
}

std::vector<Edit> written_together(const model::Graph& graph, const std::vector<UnitNumbers>& list,
                                   const std::string& name) {
  std::map<model::ValueId, std::map<int64_t, double>> by_parameter;
  for (const UnitNumbers& own : list)
    for (size_t i = 0; i < own.positions.size(); ++i) by_parameter[own.parameter][own.positions[i]] = own.values[i];
  std::vector<Edit> all;
  for (const auto& [parameter, numbers] : by_parameter) {
    UnitNumbers whole{parameter, {}, {}};
    for (const auto& [position, value] : numbers) whole.positions.push_back(position), whole.values.push_back(value);
    append(all, written(graph, whole, whole.values, name));
  }
  return all;
}

std::vector<Edit> change_unit(const model::Graph& graph, const model::Layer& layer, int64_t unit, Role role,
                              const std::function<double(double)>& to) {
  std::vector<Edit> all;
  for (const UnitNumbers& own : unit_numbers(graph, layer, unit, role)) {
    std::vector<double> values = own.values;
    for (double& value : values) value = to(value);
    append(all, written(graph, own, values, model::unit_name(layer, unit)));
  }
  return all;
}

std::vector<Edit> swap_units(const model::Graph& graph, const model::Layer& layer, int64_t a, int64_t b) {
  std::vector<Edit> all;
  for (Role role : {Role::kWeight, Role::kBias, Role::kNorm}) {
    const std::vector<UnitNumbers> of_a = unit_numbers(graph, layer, a, role),
                                   of_b = unit_numbers(graph, layer, b, role);
    for (size_t i = 0; i < of_a.size(); ++i) {
      append(all, written(graph, of_a[i], of_b[i].values, model::unit_name(layer, a)));
      append(all, written(graph, of_b[i], of_a[i].values, model::unit_name(layer, b)));
    }
  }
  return all;
}

}  // namespace netmend::edits
