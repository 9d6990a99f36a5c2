#include "training/reinitialise.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "executor/layers.h"
#include "zoo/init.h"

namespace netmend::training {
namespace {

using model::Graph;
using model::Node;
using model::ValueId;

/// The first node and input slot that use a parameter, through whatever reorders it.
struct Use {
  const Node* node = nullptr;
  size_t slot = 0;
};

std::map<ValueId, Use> find_uses(const Graph& graph) {
  std::vector<int> made_by = model::producers(graph);
  std::map<ValueId, Use> uses;
  for (const Node& node : graph.nodes)
    for (size_t slot = 0; slot < node.inputs.size(); ++slot) {
      ValueId id = executor::root_constant(graph, made_by, node.inputs[slot]);
      bool carrier = id != model::kAbsent && !node.outputs.empty() &&
                     executor::root_constant(graph, made_by, node.outputs[0]) == id;
      if (id != model::kAbsent && !carrier) uses.emplace(id, Use{&node, slot});
    }
  return uses;
}

/// Rows × columns of a matrix: which of them feeds units depends on the operator.
zoo::Fan matrix_fan(const Node& node, size_t slot, at::IntArrayRef shape) {
  int64_t rows = shape[shape.size() - 2], columns = shape[shape.size() - 1];
  auto transposed = node.attributes.find(slot == 0 ? "transA" : "transB");
  const int64_t* flag = transposed == node.attributes.end() ? nullptr : std::get_if<int64_t>(&transposed->second);
  bool recurrent = node.op == "LSTM" || node.op == "GRU" || node.op == "RNN";
  bool units_first = recurrent || (slot == 0) != (flag && *flag != 0);
  return units_first ? zoo::Fan{columns, rows} : zoo::Fan{rows, columns};
}

bool is_norm(const std::string& op) { return op.ends_with("Normalization"); }

struct Fresh {
  zoo::Scheme scheme;
  uint64_t seed, stream;

  at::Tensor operator()(const Use& use, at::IntArrayRef shape) const {
    const Node& node = *use.node;
    if (is_norm(node.op)) return use.slot == 1 ? at::ones(shape) : at::zeros(shape);
    if (node.op == "Gather") return zoo::fresh_embedding(shape, seed, stream);
    if (node.op == "PRelu") return at::full(shape, 0.25);
    if (node.op == "Mul" || node.op == "Div") return at::ones(shape);
    bool weights = node.op != "Add" && node.op != "Sub" && shape.size() >= 2 && use.slot <= 2;
    bool bias = use.slot == 2 && (node.op == "Gemm" || node.op == "Conv" || node.op == "ConvTranspose");
    if (!weights || bias) return at::zeros(shape);
    bool window = node.op == "Conv" || node.op == "ConvTranspose";
    return zoo::fresh_weight(shape, window ? zoo::conv_fan(shape) : matrix_fan(node, use.slot, shape), scheme, seed,
                             stream);
  }
};

void reset_statistics(Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.op != "BatchNormalization" || node.inputs.size() < 5) continue;
    for (size_t slot : {3, 4})
      if (at::Tensor old = graph.constant(node.inputs[slot]); old.defined())
        graph.replace(node.inputs[slot], slot == 3 ? at::zeros_like(old) : at::ones_like(old));
  }
}

}  // namespace

void reinitialise(Graph& graph, const std::string& scheme, uint64_t seed) {
  std::map<ValueId, Use> uses = find_uses(graph);
  Fresh fresh{zoo::parse_scheme(scheme), seed, 0};
  for (ValueId id : executor::find_parameters(graph)) {
    at::Tensor old = graph.constant(id);
    if (!old.is_floating_point())
      throw Unsupported(fmt::format("{} is quantised and cannot be reinitialised", graph.values[size_t(id)].name));
    auto use = uses.find(id);
    if (use != uses.end()) graph.replace(id, fresh(use->second, old.sizes()).to(old.scalar_type()));
    ++fresh.stream;
  }
  reset_statistics(graph);
}

}  // namespace netmend::training
