// What an operator is: a row in one table. Its file says how it runs on LibTorch, which weights feed which unit, and
// what kind of thing it is. A row is prepared once for a node (attributes are read and checked then), and the kernel
// that comes back is called for every batch, from any number of threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/graph.h"

namespace netmend::ops {

/// A node as an operator sees it while it is prepared.
class NodeView {
 public:
  NodeView(const model::Graph& graph, const model::Node& node) : graph_(graph), node_(node) {}

  const model::Node& node() const { return node_; }
  int opset() const { return node_.opset; }
  size_t inputs() const { return node_.inputs.size(); }
  size_t outputs() const { return node_.outputs.size(); }
  bool has_input(size_t i) const { return i < inputs() && node_.inputs[i] != model::kAbsent; }
  bool has_output(size_t i) const { return i < outputs() && node_.outputs[i] != model::kAbsent; }
  /// The input's value when it is a constant, else an undefined tensor.
  at::Tensor constant(size_t i) const;
  /// The input's element type as declared in the file; undefined when the file does not say.
  model::Element declared_type(size_t i) const;
  /// The input's number of axes as declared in the file (or of the constant); nullopt when the file does not say.
  std::optional<size_t> declared_rank(size_t i) const;

  bool has(std::string_view attribute) const { return node_.attributes.count(attribute) > 0; }
  /// Attributes by name; an attribute of another type is the file's mistake and throws InputError.
  int64_t integer(std::string_view attribute, int64_t otherwise) const;
  double real(std::string_view attribute, double otherwise) const;
  std::string text(std::string_view attribute, std::string_view otherwise) const;
  std::vector<int64_t> integers(std::string_view attribute, std::vector<int64_t> otherwise = {}) const;
  std::vector<double> reals(std::string_view attribute, std::vector<double> otherwise = {}) const;
  std::vector<std::string> texts(std::string_view attribute, std::vector<std::string> otherwise = {}) const;
  at::Tensor tensor(std::string_view attribute) const;            ///< undefined when absent
  const model::Subgraph* body(std::string_view attribute) const;  ///< nullptr when absent

  /// Throws InputError that names the operator and the node.
  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    refuse_text(fmt::format(format, std::forward<Args>(args)...));
  }
  /// refuse() unless the condition holds.
  template <typename... Args>
  void require(bool holds, fmt::format_string<Args...> format, Args&&... args) const {
    if (!holds) refuse_text(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  [[noreturn]] void refuse_text(const std::string& reason) const;
  const model::Attribute* find(std::string_view attribute) const;
  const model::Graph& graph_;
  const model::Node& node_;
};

/// One execution of a node. Inputs are immutable unless `spare` says otherwise.
class Call {
 public:
  Call(std::span<const at::Tensor> inputs, std::span<at::Tensor> outputs, uint64_t spare = 0, bool training = false,
       uint64_t seed = 0, at::ScalarType real = at::kFloat)
      : inputs_(inputs), outputs_(outputs), spare_(spare), training_(training), seed_(seed), real_(real) {}

  size_t inputs() const { return inputs_.size(); }
  size_t outputs() const { return outputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i].defined(); }
  /// Throws InputError when the input is missing.
  const at::Tensor& in(size_t i) const;
  /// The output to set; one that nobody asked for may be left undefined.
  at::Tensor& out(size_t i) { return outputs_[i]; }
  /// out(i) = value, or nothing when the node has no such output. A value that shares memory with an input is another
  /// tensor object (a view), so that the storage's use count tells who else looks at it.
  void set(size_t i, at::Tensor value) {
    if (i < outputs_.size()) outputs_[i] = std::move(value);
  }
  /// Nobody needs in(i) after this call and no gradient flows: it may be overwritten and returned.
  bool spare(size_t i) const { return i < 64 && (spare_ >> i & 1); }
  /// Batch norm uses the batch's statistics, dropout drops.
  bool training() const { return training_; }
  /// Differs for every node and step of a training; the same for the same seed of the run.
  uint64_t seed() const { return seed_; }
  /// The type this run carries the file's float32 and half-precision values in: kFloat, or kDouble for a run that
  /// checks rounding. Operators that make such values from others (Cast, ConstantOfShape …) follow it.
  at::ScalarType real() const { return real_; }

 private:
  std::span<const at::Tensor> inputs_;
  std::span<at::Tensor> outputs_;
  uint64_t spare_;
  bool training_;
  uint64_t seed_;
  at::ScalarType real_;
};

using Kernel = std::function<void(Call&)>;

/// Which weights feed which unit.
struct Units {
  int64_t count = 0;
  int weight_slot = 1;  ///< input that holds the weight
  int weight_axis = 0;  ///< its axis that counts units
  int bias_slot = -1;   ///< input that holds the bias, when there is one
  int unit_axis = 1;    ///< axis of the output that counts units; negative from the end
  int batch_axis = 0;   ///< axis of the output that counts inputs
};

/// What an operator is to the layers around it.
enum class Kind {
  kOther,
  kLinear,      ///< has weights and units
  kNormalise,   ///< batch norm and its kin: part of the layer before it
  kActivation,  ///< acts on each element: ends the layer before it
  kBias,        ///< Add: part of the layer before it when its other operand is a constant
  kReorder,     ///< Transpose: carries a layer's units to another axis
};

constexpr int kOldestOpset = 7;   ///< older files are refused
constexpr int kNewestOpset = 28;  ///< newer files are refused: nobody has read what changed in them

struct Op {
  std::string_view name;
  Kernel (*prepare)(const NodeView&);
  Kind kind = Kind::kOther;
  std::optional<Units> (*units)(const NodeView&) = nullptr;  ///< for kLinear; nullopt when the weight is not a constant
  int newest = kNewestOpset;  ///< the last opset whose meaning of this operator is the one implemented here
  bool differentiable = true;
  std::string_view domain = "";
};

/// The row for an operator, or nullptr.
const Op* find(std::string_view domain, std::string_view name);
/// All rows, by name.
std::span<const Op> table();

/// Every node of the graph that cannot run: one InputError that names them all (type, node, opset); `needed` marks the
/// nodes that matter (empty: all).
void require_supported(const model::Graph& graph, const std::vector<bool>& needed = {});
/// The kernel of a node. Throws InputError.
Kernel prepare(const model::Graph& graph, const model::Node& node);

}  // namespace netmend::ops
