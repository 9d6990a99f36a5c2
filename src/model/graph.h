// The network as a value: nodes in an order they can run in, values by number, constants as tensors, and the document
// it was read from. Copying a graph is cheap: tensors are shared and treated as immutable (replace, never write into).
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "model/element.h"
#include "model/ids.h"

namespace netmend::model {

/// Known size, or -1 with the symbol the file gives it (possibly "").
struct Dim {
  int64_t size = -1;
  std::string symbol;
};

struct Value {
  std::string name;
  Element type = Element::kUndefined;     ///< as declared; undefined when the file does not say
  std::optional<std::vector<Dim>> shape;  ///< as declared
};

struct Graph;
/// A graph that a node holds: a branch of an If, the body of a Loop. Its inputs are those that the operator hands it,
/// then one for each of `reads`: an input of the node that stands for a value or constant from outside. So whoever
/// follows inputs and outputs of nodes sees all that a body depends on without looking inside. It holds no constants of
/// its own: they are constants of the outermost graph.
struct Subgraph {
  std::shared_ptr<const Graph> graph;
  std::vector<size_t> reads;
};
using Attribute = std::variant<int64_t, float, std::string, at::Tensor, std::vector<int64_t>, std::vector<float>,
                               std::vector<std::string>, Subgraph>;

struct Node {
  std::string name;  ///< as in the file, else made from the first output's name; unique
  std::string op;
  std::string domain;  ///< "" for the standard operators
  int opset = 0;       ///< version of the domain that the file imports
  std::vector<ValueId> inputs, outputs;
  std::map<std::string, Attribute, std::less<>> attributes;
  size_t captured = 0;  ///< how many of the last inputs only its graphs read
};

/// Where in the document a constant is stored, so that a changed one can be put back.
struct Origin {
  enum Kind { kNone, kInitializer, kConstantNode } kind = kNone;
  int index = -1;
};

struct Constant {
  at::Tensor value;  ///< carrier type; immutable
  Element stored = Element::kFloat;
  Origin origin;
  bool changed = false;
};

struct Document;  ///< the file as read; only src/onnx looks inside

struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<Node> nodes;  ///< every node stands after those whose outputs it uses
  std::unordered_map<ValueId, Constant> constants;
  std::vector<ValueId> inputs, outputs;
  std::map<std::string, std::string> metadata;
  std::map<std::string, int> opsets;
  std::string producer;
  std::shared_ptr<const Document> document;

  ValueId add_value(std::string value_name, Element type = Element::kUndefined);
  /// Number of the value with this name, or kAbsent. Linear: for names that a user types.
  ValueId find(std::string_view value_name) const;
  bool is_constant(ValueId id) const { return id != kAbsent && constants.count(id) > 0; }
  /// The constant's tensor, or an undefined one.
  at::Tensor constant(ValueId id) const;
  /// Gives a constant a new value of the same shape, rounded to the type it is stored in, and marks it as changed.
  void replace(ValueId id, const at::Tensor& value);
};

/// For each value the node that makes it, or -1.
std::vector<int> producers(const Graph& graph);
/// For each value the nodes that use it, in order.
std::vector<std::vector<int>> consumers(const Graph& graph);
/// Sorts nodes so that each stands after its inputs. Throws InputError on a cycle or a value that nothing makes.
void sort_nodes(Graph& graph);

/// The axes of an image input by its declared shape, NCHW or NHWC; "" when it is none.
std::string image_layout(const Value& input);

}  // namespace netmend::model
