#include "studies/training_operators.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "dataset/relabelled.h"
#include "executor/layers.h"
#include "mutants/structure.h"
#include "studies/altered.h"
#include "training/reinitialise.h"

namespace netmend::studies {
namespace {

std::vector<int64_t> sizes_of(const std::vector<int64_t>& labels) {
  std::vector<int64_t> sizes;
  for (int64_t label : labels) {
    if (size_t(label) >= sizes.size()) sizes.resize(size_t(label) + 1);
    ++sizes[size_t(label)];
  }
  return sizes;
}

/// Classes by size, the largest first.
std::vector<int64_t> by_size(const std::vector<int64_t>& labels) {
  const std::vector<int64_t> sizes = sizes_of(labels);
  std::vector<int64_t> order(sizes.size());
  for (size_t c = 0; c < order.size(); ++c) order[c] = int64_t(c);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return sizes[size_t(a)] > sizes[size_t(b)]; });
  return order;
}

bool drawn(const Plan& plan, size_t i, double percent) {
  return Random(plan.seed, uint64_t(i) + 1000).uniform() * 100 < percent;
}

void change_labels(Plan& plan, double percent) {
  std::vector<int64_t> labels = plan.labels;
  const int64_t most = by_size(labels)[0], classes = int64_t(sizes_of(labels).size());
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] == most && drawn(plan, i, percent))
      labels[i] = (most + 1 + int64_t(Random(plan.seed, i).below(uint64_t(classes - 1)))) % classes;
  plan.train = dataset::relabelled(plan.train, labels);
}

void keep(Plan& plan, const std::function<bool(size_t)>& stays) {
  std::vector<int64_t> samples;
  for (size_t i = 0; i < plan.labels.size(); ++i)
    if (stays(i)) samples.push_back(int64_t(i));
  if (samples.empty()) samples.push_back(0);
  plan.train = dataset::subset(plan.train, samples);
}

/// The same share of every class.
void remove_data(Plan& plan, double percent) {
  std::vector<std::vector<size_t>> members(sizes_of(plan.labels).size());
  for (size_t i = 0; i < plan.labels.size(); ++i) members[size_t(plan.labels[i])].push_back(i);
  std::vector<bool> stays(plan.labels.size(), true);
  for (size_t c = 0; c < members.size(); ++c) {
    Random(plan.seed, c + 1).shuffle(members[c]);
    const auto removed = size_t(std::llround(percent / 100 * double(members[c].size())));
    for (size_t k = 0; k < removed; ++k) stays[members[c][k]] = false;
  }
  keep(plan, [&](size_t i) { return bool(stays[i]); });
}

void unbalance(Plan& plan, double percent) {
  const std::vector<int64_t> sizes = sizes_of(plan.labels);
  const double average = double(plan.labels.size()) / double(sizes.size());
  keep(plan, [&](size_t i) { return double(sizes[size_t(plan.labels[i])]) >= average || !drawn(plan, i, percent); });
}

void add_noise(Plan& plan, double percent) {
  const uint64_t seed = plan.seed;
  plan.train = altered(plan.train, {.change = [=](dataset::Batch& batch, std::span<const int64_t> rows) {
                         for (at::Tensor& input : batch.inputs) {
                           if (!input.is_floating_point()) continue;
                           input = input.clone();
                           for (size_t i = 0; i < rows.size(); ++i) {
                             Random random(seed, uint64_t(rows[i]));
                             if (random.uniform() * 100 >= percent) continue;
                             at::Tensor row = input[int64_t(i)].view(-1);
                             const double deviation = percent / 100 * row.std().item<double>();
                             auto values = row.accessor<float, 1>();
                             for (int64_t k = 0; k < row.numel(); ++k) values[k] += float(deviation * random.normal());
                           }
                         }
                       }});
}

void overlap(Plan& plan, double percent) {
  const std::vector<int64_t> order = by_size(plan.labels);
  std::vector<int64_t> samples, labels;
  for (size_t i = 0; i < plan.labels.size(); ++i) samples.push_back(int64_t(i)), labels.push_back(plan.labels[i]);
  for (size_t i = 0; i < plan.labels.size(); ++i)
    if (plan.labels[i] == order[0] && drawn(plan, i, percent))
      samples.push_back(int64_t(i)), labels.push_back(order[1]);
  plan.train = dataset::relabelled(dataset::subset(plan.train, samples), labels);
}

/// The first layer with an activation function, and the last layer of all.
model::Layer activated_layer(const model::Graph& graph) {
  for (const model::Layer& layer : executor::find_layers(graph))
    if (layer.post != layer.pre) return layer;
  fail("no layer has an activation function");
}

void change_activation(Plan& plan, const std::string& op) {
  const model::Layer layer = activated_layer(plan.graph);
  mutants::replace_activation(plan.graph, layer, op);
  if (op != "Softmax") return;
  for (model::Node& node : plan.graph.nodes)  // over the units
    if (node.outputs[0] == layer.post) node.attributes["axis"] = int64_t(1), node.opset = 13;
}

void remove_biases(Plan& plan, double) {
  int64_t removed = 0;
  for (model::Node& node : plan.graph.nodes)
    if ((node.op == "Conv" || node.op == "Gemm") && node.inputs.size() > 2) node.inputs.resize(2), ++removed;
  if (removed == 0) fail("no layer has a bias");
}

// ---- what DeepCrime's operators for regularisers, dropout, clipping and early stopping need in the original

constexpr double kDecay = 1e-4, kDropout = 0.25, kClip = 1;
constexpr int64_t kPatience = 1, kMoreEpochs = 3;

void set_dropout(Plan& plan, double ratio) {
  for (model::Node& node : plan.graph.nodes)
    if (node.op == "Dropout") node.attributes["ratio"] = float(ratio);
}

/// The first layer's bias taken away: WAB gives it back.
void remove_first_bias(Plan& plan) {
  const model::Layer first = executor::find_layers(plan.graph).front();
  for (model::Node& node : plan.graph.nodes)
    if (node.inputs.size() > 2 && node.inputs[2] == first.bias_input) return node.inputs.resize(2);
  fail("the first layer has no bias");
}

Configuration named(const std::string& value, std::function<void(Plan&)> apply) { return {value, 0, std::move(apply)}; }

}  // namespace

void enrich(Plan& plan, bool with_bias) {
  if (!with_bias) remove_first_bias(plan);
  model::Layer last;
  for (const model::Layer& layer : executor::find_layers(plan.graph))
    if (layer.post != layer.pre) last = layer;
  mutants::insert_activation(plan.graph, last, "Dropout");
  for (model::Node& node : plan.graph.nodes)
    if (node.op == "Dropout") node.opset = 11;  // whose ratio is an attribute
  set_dropout(plan, kDropout);
  plan.options.decay = kDecay, plan.options.clip = kClip;
  plan.patience = kPatience, plan.validation = true, plan.options.epochs *= kMoreEpochs;
}

std::vector<TrainingOperator> operators_for(const training::Options& usual, int64_t inputs) {
  auto optimiser = [](const char* name) {
    return named(name, [=](Plan& p) { p.options.method = training::parse_method(name); });
  };
  auto activation = [](const char* op) { return named(op, [=](Plan& p) { change_activation(p, op); }); };
  auto init = [](const char* scheme) {
    return named(scheme, [=](Plan& p) { training::reinitialise(p.graph, scheme, p.seed); });
  };
  auto batch = [&](int64_t size) { return named(std::to_string(size), [=](Plan& p) { p.options.batch = size; }); };
  auto decay = [](double value) {
    return named(fmt::format("{:g}", value), [=](Plan& p) { p.options.decay = value; });
  };
  auto dropout = [](double ratio) {
    return named(fmt::format("{:g}", ratio), [=](Plan& p) { set_dropout(p, ratio); });
  };
  auto clip = [](double norm) {
    return named(norm > 0 ? fmt::format("{:g}", norm) : "none", [=](Plan& p) { p.options.clip = norm; });
  };
  auto patience = [](int64_t epochs) { return named(std::to_string(epochs), [=](Plan& p) { p.patience = epochs; }); };
  auto enriched = [](const char* name, const char* words, std::vector<Configuration> list) {
    return TrainingOperator{name, words, 0, 0, 0, nullptr, std::move(list), true};
  };
  std::vector<TrainingOperator> all = {
      {"TCL", "labels of the most frequent class changed", 0, 100, 5, change_labels},
      {"TRD", "training data removed", 0, 99, 5, remove_data},
      {"TUD", "classes below average size made smaller", 0, 100, 5, unbalance},
      {"TAN", "noise added to training inputs", 0, 100, 5, add_noise},
      {"TCO", "inputs of the most frequent class repeated under the second's label", 0, 100, 5, overlap},
      {"HBS", "batch size", 0, 0, 0, nullptr, {batch(32), batch(256), batch(512)}},
      {"HLR", "learning rate as a power of ten below the usual", 0, 4, 0.5,
       [](Plan& p, double power) { p.options.rate *= std::pow(10.0, -power); }},
      {"HNE", "epochs", double(usual.epochs), 1, 1,
       [](Plan& p, double n) { p.options.epochs = std::max<int64_t>(1, std::llround(n)); }},
      {"HDB", "no batches: all inputs at once", 0, 0, 0, nullptr, {batch(inputs)}},
      {"ACH",
       "activation function of the first layer changed",
       0,
       0,
       0,
       nullptr,
       {activation("Elu"), activation("Softmax"), activation("Selu"), activation("Softplus"), activation("Softsign"),
        activation("Tanh"), activation("Sigmoid"), activation("HardSigmoid"), activation("Exp")}},
      {"ARM", "activation function of the first layer removed", 0, 0, 0, nullptr, {activation("Identity")}},
      {"AAL",
       "activation function added after the first layer",
       0,
       0,
       0,
       nullptr,
       {named("Sigmoid", [](Plan& p) { mutants::insert_activation(p.graph, activated_layer(p.graph), "Sigmoid"); }),
        named("Tanh", [](Plan& p) { mutants::insert_activation(p.graph, activated_layer(p.graph), "Tanh"); })}},
      {"RAW", "weight decay added", 0, 0, 0, nullptr, {decay(1e-4), decay(1e-2), decay(0.1)}},
      enriched(
          "RCW", "regulariser changed from L2 of 1e-4",
          {decay(1e-2), decay(0.1), named("L1 of 1e-4", [](Plan& p) { p.options.decay = 0, p.options.l1 = 1e-4; })}),
      enriched("RRW", "regulariser removed", {decay(0)}),
      enriched("RCD", "dropout rate changed from 0.25", {dropout(0.125), dropout(0.5), dropout(0.75), dropout(0.95)}),
      enriched("RCP", "patience of early stopping changed from 1", {patience(2), patience(5)}),
      {"WCI", "initialiser changed", 0, 0, 0, nullptr, {init("he"), init("uniform"), init("normal")}},
      enriched("WAB", "bias added to the first layer", {named("first layer", [](Plan&) {})}),
      {"WRB", "biases removed", 0, 0, 0, nullptr, {named("all", [](Plan& p) { remove_biases(p, 0); })}},
      {"LCH",
       "loss changed",
       0,
       0,
       0,
       nullptr,
       {named("mse", [](Plan& p) { p.options.loss = training::LossKind::kMse; })}},
      {"OCH",
       "optimiser changed",
       0,
       0,
       0,
       nullptr,
       {optimiser("sgd"), optimiser("rmsprop"), optimiser("adagrad"), optimiser("adamax"), optimiser("nadam")}},
      enriched("OCG", "gradients clipped to another norm than 1", {clip(0), clip(0.1), clip(0.01)}),
      enriched("VRM", "validation removed: nothing stops the training early",
               {named("none", [](Plan& p) { p.validation = false, p.patience = 0; })}),
  };
  return all;
}

}  // namespace netmend::studies
