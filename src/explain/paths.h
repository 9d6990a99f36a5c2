// Which nodes of a network relevance passes, on its way from the logits down to what is wanted.
#pragma once

#include <vector>

#include "explain/relevance.h"

namespace netmend::explain {

struct Paths {
  /// Throws InputError that names every operator on the way that relevance cannot pass.
  Paths(const model::Graph& graph, const std::vector<model::ValueId>& starts, const std::vector<model::ValueId>& wanted,
        model::ValueId logits, const Options& options);

  std::vector<model::ValueId> starts;  ///< where quantities begin, embeddings of computed ids among them
  std::vector<int> gates;              ///< by value, see find_gates

  bool followed(size_t node) const { return followed_[node]; }
  /// Inputs that relevance goes on to.
  std::vector<bool> open_inputs(size_t node) const;
  /// The node's own, or that of the Add which is its bias.
  std::vector<model::ValueId> outputs(size_t node) const;
  /// The constant that the next node adds when the two are taken as one; undefined for none.
  at::Tensor bias_after(size_t node) const;
  bool used(model::ValueId id) const { return used_[size_t(id)]; }
  Rule rule(size_t node, const Rules& rules) const;
  /// Values that get relevance and do not hand it on.
  std::vector<model::ValueId> frontier() const;

 private:
  void find_active();
  void find_followed(const std::vector<model::ValueId>& wanted, model::ValueId logits);
  void join_biases(const std::vector<model::ValueId>& wanted);
  void refuse(bool gradients) const;

  const model::Graph& graph_;
  std::vector<bool> active_;    ///< by value: depends on the starts
  std::vector<bool> raw_;       ///< by value: made of the starts without any layer between
  std::vector<bool> used_;      ///< by value: read by a node that is followed, or the logits
  std::vector<bool> followed_;  ///< by node
  std::vector<int> bias_node_;  ///< by node: the Add behind it, or −1
};

}  // namespace netmend::explain
