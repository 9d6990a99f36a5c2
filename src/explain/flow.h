// How relevance flows through one operator, from its outputs to its inputs. One table says it for every operator.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "explain/rule.h"
#include "ops/op.h"

namespace netmend::explain {

/// The relevance of a value x is x ⊙ scaled + loose. Most rules hand on what a unit of x is worth (`scaled`): that
/// needs no division by sums that may be near 0, and for operators that are positively homogeneous it is their
/// derivative. Rules that give relevance to inputs that are 0 need the other part. Either may be undefined: zero.
struct Message {
  at::Tensor scaled, loose;
  bool empty() const { return !scaled.defined() && !loose.defined(); }
  void add(const Message& other);
  /// All of it as `scaled`, for a rule that shares out in proportion. What is loose where x is 0 is lost.
  at::Tensor per_unit(const at::Tensor& x) const;
  /// All of it as relevance.
  at::Tensor relevance(const at::Tensor& x) const;
};

/// a / b with a denominator kept from 0, on the side it is on; 0 where b is exactly 0.
at::Tensor over(const at::Tensor& a, const at::Tensor& b);

/// One execution.
struct Flow {
  std::span<const at::Tensor> inputs, outputs;
  std::span<const Message> from;  ///< one per output
  std::span<Message> to;          ///< one per input; those that are not open stay empty
};
using Step = std::function<void(const Flow&)>;

/// A node at the place where it stands.
struct Site {
  const model::Graph& graph;
  const model::Node& node;
  std::vector<bool> open;  ///< inputs that relevance goes on to
  std::vector<int> gate;   ///< one per input: how much it looks like a gate, 0 for not at all
  at::Tensor bias;         ///< that the next node adds and that is taken as part of this one
  Rule rule;               ///< for operators with weights
};

struct Row {
  std::string_view op;
  /// nullptr: carries no quantity; relevance stops here without being asked for.
  Step (*prepare)(const Site&);
  uint64_t slots = ~uint64_t(0);  ///< inputs that carry the quantity: not indices, shapes, conditions
  const char* refused = nullptr;  ///< why relevance cannot pass
};

/// The row of an operator, whatever its domain; nullptr when there is none.
const Row* find_row(std::string_view op);

/// The derivative, for Method::kGradient.
Step derivative(const Site& site);

namespace flows {
Step linear(const Site& site);      ///< weights by the site's rule; two activations as a product
Step product(const Site& site);     ///< gates are constants; equals share evenly
Step quotient(const Site& site);    ///< the divisor is a constant
Step activation(const Site& site);  ///< element by element: the gradient of the line from 0
Step biased_activation(const Site& site);
Step power(const Site& site);       ///< passes on what it gets
Step route(const Site& site);       ///< elements move, the winner takes all
Step sum(const Site& site);         ///< in proportion to the summands
Step share(const Site& site);       ///< in proportion: means, pools, resampling
Step taylor(const Site& site);      ///< first-order part; the rest is absorbed
Step layer_norm(const Site& site);  ///< norms: what they divide by is a constant
Step skip_layer_norm(const Site& site);
Step channel_norm(const Site& site);
Step mean_variance_norm(const Site& site);
Step divided_norm(const Site& site);
Step recurrent(const Site& site);  ///< gates are constants (Arras et al. 2017, arXiv 1706.07206)
Step square_sum(const Site& site);
}  // namespace flows

/// How much a value looks like a gate, for every value: 2 behind a sigmoid or softmax, 1 behind what is bounded.
std::vector<int> find_gates(const model::Graph& graph);

/// Derivative of a kernel's outputs at `inputs`, multiplied by `gradients` (one per output, undefined for none), for
/// the inputs that are open; undefined for the others and where nothing depends.
std::vector<at::Tensor> pulled_back(const ops::Kernel& kernel, std::span<const at::Tensor> inputs,
                                    const std::vector<bool>& open, const std::vector<at::Tensor>& gradients);

}  // namespace netmend::explain
