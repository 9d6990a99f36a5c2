// Relevance of units and inputs for a decision: how much of the predicted class's logit came through each of them.
//
//   explain::Explainer explainer(graph, head, {layer.post, input}, {});
//   explain::Explained e = explainer.run(inputs);   // e.relevance[0] is shaped like the layer's value
//
// Layer-wise relevance propagation (Bach et al. 2015, DOI 10.1371/journal.pone.0130140), gradient × activation, and
// integrated gradients (Sundararajan et al. 2017, arXiv 1703.01365; for inner values the conductance of Dhamdhere et
// al. 2018, arXiv 1805.12233, which is the same path seen from there).
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <memory>
#include <span>
#include <vector>

#include "executor/layers.h"
#include "explain/rule.h"
#include "model/graph.h"

namespace netmend::explain {

enum class Method {
  kRelevance,   ///< layer-wise relevance propagation by Options::rules
  kGradient,    ///< value × gradient of the logit
  kIntegrated,  ///< gradients added up on the straight way from zeros to the input
};
/// `lrp`, `gradient` or `integrated`. Throws InputError with the nearest name.
Method parse_method(const std::string& text);

struct Options {
  Method method = Method::kRelevance;
  Rules rules;
  int steps = 50;  ///< of the way, for kIntegrated
  /// One output that says yes or no: no is explained by the negative of the logit. Set by itself behind a sigmoid.
  bool yes_or_no = false;
  at::ScalarType precision = at::kFloat;
  at::Device device = at::kCPU;
};

/// Instead of a class: nothing of this input is explained; what the input's largest logit says.
constexpr int64_t kLeftOut = -1, kLargest = -2;

struct Explained {
  /// One a wanted value, of its shape: what it contributed to the start, by element. Zeros where nothing flows.
  std::vector<at::Tensor> relevance;
  std::vector<at::Tensor> values;  ///< the wanted values themselves
  at::Tensor logits;               ///< inputs × columns
  at::Tensor classes;              ///< int64, one per input: what was explained, or kLeftOut
  at::Tensor start;                ///< one per input: the logit that is shared out; 0 for what was left out
  /// Of the whole batch: what of the sum of starts did not arrive, at the wanted values or beside them. Biases, other
  /// constants and stabilisers keep it.
  double absorbed = 0;
};

/// Any number of threads may run one explainer.
class Explainer {
 public:
  /// `graph`: the one that runs the batch (Batching::graph). `wanted`: inputs, values of layers or any others; what is
  /// wanted decides how far down relevance is followed. Batch norm is folded first. Throws InputError: an operator on
  /// the way that relevance cannot pass (all of them are named), inputs that are not quantities.
  Explainer(const model::Graph& graph, const executor::Head& head, std::vector<model::ValueId> wanted,
            Options options = {});
  ~Explainer();
  Explainer(Explainer&&) noexcept;

  /// `inputs` in the order of Graph::inputs. `classes` (int64, one per input) says what to explain; without it
  /// everything is kLargest. The relevance of inputs that are left out is 0; inputs with a logit that is not finite
  /// are.
  Explained run(std::span<const at::Tensor> inputs, const at::Tensor& classes = {}) const;

  /// Bytes of the values that a run on these inputs keeps at once; messages take about as much again.
  int64_t bytes(std::span<const at::Tensor> inputs) const;

  const std::vector<model::ValueId>& wanted() const;
  const Options& options() const;

 private:
  struct Plan;
  std::unique_ptr<const Plan> plan_;
};

/// The logits as inputs × columns. Throws InputError when there is more than one prediction per input.
at::Tensor logit_columns(const at::Tensor& logits);

}  // namespace netmend::explain
