// What a network costs: the unit in which budgets are counted.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <vector>

#include "model/graph.h"

namespace netmend::executor {

/// Multiply-adds that computing `wanted` from these inputs (the graph's, or `given`) takes, by the shapes of the
/// operands; every value that is written counts as a few more, since small networks wait for memory. Depends on shapes
/// alone, never on the machine.
double multiply_adds(const model::Graph& graph, std::span<const at::Tensor> inputs,
                     const std::vector<model::ValueId>& wanted, const std::vector<model::ValueId>& given = {});

/// Multiply-adds of one operator by the shapes of its operands; 0 for those that only move or compare.
double multiply_adds(const std::string& op, std::span<const at::Tensor> inputs, std::span<const at::Tensor> outputs);

}  // namespace netmend::executor
