// Relevance against a slow twin that shares nothing with it but the forward pass: contributions are written out as
// numbers and divided by their sums, as papers write the rules.
#include <gtest/gtest.h>

#include <cmath>

#include "executor/executor.h"
#include "explain/networks_for_test.h"
#include "explain/relevance.h"

namespace netmend::explain {
namespace {

using model::ValueId;
using Numbers = std::vector<double>;

Numbers numbers(const at::Tensor& t) {
  at::Tensor flat = t.to(at::kDouble).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

class Twin {
 public:
  Twin(const model::Graph& graph, const at::Tensor& input, Rules rules) : graph_(graph), rules_(rules) {
    executor::Request request;
    request.precision = at::kDouble;
    request.mode = executor::Mode::kPlain;
    for (const model::Node& node : graph.nodes) request.wanted.push_back(node.outputs[0]);
    std::vector<at::Tensor> found = executor::Executor(graph, request).run({{input}});
    for (size_t i = 0; i < found.size(); ++i) values_[request.wanted[i]] = found[i];
    values_[graph.inputs[0]] = input;
  }

  /// Of one input, down to the network's.
  Numbers run() {
    ValueId output = graph_.outputs[0];
    Numbers logits = numbers(values_[output]);
    relevance_[output].assign(logits.size(), 0);
    size_t best = size_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
    relevance_[output][best] = logits[best];
    for (size_t n = graph_.nodes.size(); n-- > 0;) back(graph_.nodes[n]);
    return relevance_[graph_.inputs[0]];
  }

 private:
  double& at(ValueId id, size_t i) {
    Numbers& own = relevance_[id];
    if (own.empty()) own.assign(size_t(values_[id].numel()), 0);
    return own[i];
  }

  at::Tensor node_on(const model::Node& node, const std::vector<at::Tensor>& inputs) {
    std::vector<at::Tensor> outputs(1);
    ops::Call call(inputs, outputs, 0, false, 0, at::kDouble);
    ops::prepare(graph_, node)(call);
    return outputs[0];
  }

  void back(const model::Node& node) {
    ValueId out = node.outputs[0], in = node.inputs[0];
    Numbers above = relevance_[out], x = numbers(values_[in]), z = numbers(values_[out]);
    if (above.empty()) above.assign(z.size(), 0);
    if (node.op == "Relu" || node.op == "LeakyRelu" || node.op == "Flatten") {
      for (size_t i = 0; i < x.size(); ++i) at(in, i) += above[i];
    } else if (node.op == "Add" || node.op == "Max") {
      Numbers y = numbers(values_[node.inputs[1]]);
      for (size_t i = 0; i < x.size(); ++i) {
        const bool add = node.op == "Add";
        at(in, i) += add ? x[i] / stable(z[i]) * above[i] : x[i] > y[i] ? above[i] : 0;
        at(node.inputs[1], i) += add ? y[i] / stable(z[i]) * above[i] : x[i] > y[i] ? 0 : above[i];
      }
    } else if (node.op == "Transpose" || node.op == "Concat") {
      move(node, above);
    } else if (node.op == "MaxPool") {
      pool(in, out, above);
    } else {
      linear(node, x, z, above);
    }
  }

  /// Elements are numbered and sent through the node.
  void move(const model::Node& node, const Numbers& above) {
    std::vector<at::Tensor> sent;
    double from = 0;
    std::vector<std::pair<ValueId, size_t>> places;
    for (ValueId id : node.inputs) {
      int64_t count = values_[id].numel();
      sent.push_back(at::arange(from, from + double(count), at::kDouble).reshape(values_[id].sizes()));
      for (int64_t i = 0; i < count; ++i) places.emplace_back(id, size_t(i));
      from += double(count);
    }
    Numbers arrived = numbers(node_on(node, sent));
    for (size_t k = 0; k < arrived.size(); ++k) {
      auto [id, i] = places[size_t(arrived[k])];
      at(id, i) += above[k];
    }
  }

  /// 2 × 2, side by side: the first largest takes all.
  void pool(ValueId in, ValueId out, const Numbers& above) {
    int64_t height = values_[in].size(2), width = values_[in].size(3);
    Numbers x = numbers(values_[in]);
    int64_t planes = values_[out].size(1), rows = values_[out].size(2), columns = values_[out].size(3);
    for (int64_t p = 0; p < planes; ++p)
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c) {
          size_t best = size_t(p * height * width + 2 * r * width + 2 * c);
          for (int64_t dy = 0; dy < 2; ++dy)
            for (int64_t dx = 0; dx < 2; ++dx) {
              size_t here = size_t(p * height * width + (2 * r + dy) * width + 2 * c + dx);
              if (x[here] > x[best]) best = here;
            }
          at(in, best) += above[size_t((p * rows + r) * columns + c)];
        }
  }

  static double stable(double z) { return z + (z < 0 ? -1e-16 : 1e-16); }

  /// The matrix of the operator, found by sending unit vectors through it.
  void linear(const model::Node& node, const Numbers& x, const Numbers& z, const Numbers& above) {
    ValueId in = node.inputs[0];
    std::vector<at::Tensor> given;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      given.push_back(i == 0 || node.inputs[i] == model::kAbsent ? at::Tensor()
                                                                 : graph_.constant(node.inputs[i]).to(at::kDouble));
    const bool pooling = node.op == "AveragePool", weights = !pooling;
    at::Tensor nothing = at::zeros_like(values_[in]);
    given[0] = nothing;
    Numbers bias = numbers(node_on(node, given));
    if (weights && given.size() > 2) given.resize(2);
    Rule rule = pooling ? Rule{} : node.op == "Conv" ? rules_.conv : rules_.dense;
    if (weights && reads_input(node)) rule = rules_.first;
    std::vector<Numbers> w(x.size());  // by input, by output
    for (size_t j = 0; j < x.size(); ++j) {
      at::Tensor unit = at::zeros(int64_t(x.size()), at::kDouble);
      unit[int64_t(j)] = 1;
      given[0] = unit.reshape(values_[in].sizes());
      w[j] = numbers(node_on(node, given));
    }
    for (size_t k = 0; k < z.size(); ++k) share(rule, w, x, z[k], bias[k], above[k], k, in);
  }

  void share(const Rule& rule, const std::vector<Numbers>& w, const Numbers& x, double z, double bias, double above,
             size_t k, ValueId in) {
    double plus = std::max(bias, 0.0), minus = std::min(bias, 0.0), connected = 0, squares = 0;
    for (size_t j = 0; j < x.size(); ++j) {
      double c = x[j] * w[j][k];
      plus += std::max(c, 0.0), minus += std::min(c, 0.0);
      connected += w[j][k] != 0, squares += w[j][k] * w[j][k];
    }
    const double p = rule.parameter;
    for (size_t j = 0; j < x.size(); ++j) {
      double c = x[j] * w[j][k], part = 0;
      if (rule.kind == Rule::kZ) part = c / stable(z);
      if (rule.kind == Rule::kEpsilon) part = c / (z + (z < 0 ? -p : p));
      if (rule.kind == Rule::kGamma)
        part = z >= 0 ? (c + p * std::max(c, 0.0)) / (z + p * plus) : (c + p * std::min(c, 0.0)) / (z + p * minus);
      if (rule.kind == Rule::kAlphaBeta)
        part = (plus > 0 ? p * std::max(c, 0.0) / plus : 0) + (minus < 0 ? (1 - p) * std::min(c, 0.0) / minus : 0);
      if (rule.kind == Rule::kFlat) part = w[j][k] != 0 ? 1 / connected : 0;
      if (rule.kind == Rule::kW2) part = w[j][k] * w[j][k] / squares;
      at(in, j) += part * above;
    }
  }

  bool reads_input(const model::Node& node) const {
    ValueId at = node.inputs[0];
    std::vector<int> made_by = model::producers(graph_);
    while (made_by[size_t(at)] >= 0) {
      const model::Node& maker = graph_.nodes[size_t(made_by[size_t(at)])];
      if (maker.op != "Transpose") return false;
      at = maker.inputs[0];
    }
    return true;
  }

  const model::Graph& graph_;
  Rules rules_;
  std::map<ValueId, at::Tensor> values_;
  std::map<ValueId, Numbers> relevance_;
};

TEST(Twin, AgreesOnRandomNetworks) {
  for (uint64_t seed = 0; seed < 16; ++seed) {
    model::Graph graph = random_network(seed);
    give_biases(graph, seed);
    at::Tensor x = random_tensor({1, 2, 8, 8}, 100 + seed);
    bool pools = false;
    for (const model::Node& node : graph.nodes) pools = pools || node.op == "MaxPool";
    for (const char* rule : {"z", "epsilon:0.1", "gamma:0.5", "alpha-beta:2", "alpha-beta:3", "flat", "w2", "composite",
                             "dense=gamma,conv=epsilon,first=w2"}) {
      Options options;
      options.rules = parse_rules(rule);
      options.precision = at::kDouble;
      // These give relevance to windows that hold nothing but zeros, where any element may be the largest.
      if (options.rules.dense.kind >= Rule::kFlat && pools) continue;
      at::Tensor ours = Explainer(graph, head_of(graph), graph.inputs, options).run({{x}}).relevance[0].flatten();
      at::Tensor theirs = at::tensor(Twin(graph, x, options.rules).run(), at::kDouble);
      EXPECT_LT((ours - theirs).abs().max().item<double>(), 1e-7 * (1 + theirs.abs().max().item<double>()))
          << "seed " << seed << ", rule " << rule;
    }
  }
}

TEST(Twin, Float32FollowsFloat64) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    model::Graph graph = random_network(seed);
    give_biases(graph, seed);
    at::Tensor x = random_tensor({64, 2, 8, 8}, seed);
    Options exact;
    exact.precision = at::kDouble;
    at::Tensor fine = Explainer(graph, head_of(graph), graph.inputs, exact).run({{x}}).relevance[0];
    at::Tensor coarse = Explainer(graph, head_of(graph), graph.inputs).run({{x.to(at::kFloat)}}).relevance[0];
    at::Tensor off = (fine - coarse.to(at::kDouble)).flatten(1).norm(2, 1) / (fine.flatten(1).norm(2, 1) + 1e-6);
    // An input near a kink may fall on its other side in float32; the others agree to rounding.
    EXPECT_LT(off.median().item<double>(), 1e-5) << seed;
  }
}

}  // namespace
}  // namespace netmend::explain
