#include "training/lockstep.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "stream/pass.h"
#include "training/data_for_test.h"
#include "training/lockstep_tensors.h"
#include "training/trainer.h"
#include "zoo/builder.h"
#include "zoo/zoo.h"

namespace netmend::training {
namespace {

using model::Graph;

struct Form {
  const char* name;
  std::vector<int64_t> shape;
  Graph (*make)(uint64_t seed);
};

/// What the zoo's do not have: strides, padding on one side, pools of another shape, relu before and behind a pool.
Graph odd(uint64_t seed) {
  zoo::Builder b("odd", zoo::Scheme::kGlorot, seed);
  model::ValueId x = b.input("image", {2, 11, 10});
  x = b.conv("a", x, 2, 5, {.kernel = 3, .stride = 2, .padding = 1});
  x = b.relu(b.conv("b", x, 5, 7, {.kernel = 2, .padding = 1}));
  x = b.relu(
      b.plain("MaxPool", {x}, {{"kernel_shape", std::vector<int64_t>{3, 2}}, {"strides", std::vector<int64_t>{3, 2}}}));
  x = b.conv("c", x, 7, 3, {.kernel = 2});
  x = b.flatten(x);
  return b.finish(b.dense("fc", x, 3 * 1 * 2, 4), "logits", 4);
}

const std::vector<Form>& forms() {
  static const std::vector<Form> all = {
      {"dense", {30}, [](uint64_t seed) { return zoo::make("mlp:30-11-7-5", {.seed = seed}); }},
      {"cnn1", {1, 28, 28}, [](uint64_t seed) { return zoo::make("cnn1", {.seed = seed}); }},
      {"cnn2", {1, 28, 28}, [](uint64_t seed) { return zoo::make("cnn2", {.seed = seed}); }},
      {"lenet4", {1, 28, 28}, [](uint64_t seed) { return zoo::make("lenet4", {.seed = seed}); }},
      {"odd", {2, 11, 10}, odd},
  };
  return all;
}

int64_t classes_of(const Graph& graph) { return (*graph.values[size_t(graph.outputs[0])].shape)[1].size; }

Graph alone(const Graph& graph, const std::shared_ptr<const dataset::Dataset>& data, const Options& options) {
  Task task{"alone", graph, graph.outputs[0], data, nullptr, options};
  Trainer trainer(std::move(task));
  trainer.run_epoch();
  return trainer.result();
}

struct Together {
  std::vector<Graph> graphs;
  std::vector<double> losses;
  at::Tensor outputs;
};

Together together(std::vector<Graph> graphs, const std::shared_ptr<const dataset::Dataset>& data,
                  const Options& options, bool as_tensors = false) {
  stream::Feed feed(graphs[0], "together", data->info());
  const Samples samples(data, std::move(feed), 1, samples_limit());
  const LockstepPlan plan = plan_lockstep(graphs[0], graphs[0].outputs[0], data->info().features[0].shape);
  EXPECT_EQ(plan.refusal, "");
  const LossForm loss = infer_loss({}, data->info(), classes_of(graphs[0]));
  const model::ValueId wanted = graphs[0].outputs[0];
  const auto lockstep = as_tensors ? make_lockstep_tensors(plan, graphs[0], wanted, at::kCPU)
                                   : Lockstep::make(plan, graphs[0], wanted, at::kCPU);
  std::vector<const Graph*> all;
  for (const Graph& graph : graphs) all.push_back(&graph);
  lockstep->take(all);
  Together out;
  out.losses = lockstep->train_epoch(samples, loss, options);
  out.outputs = lockstep->outputs(samples, 0, samples.size());
  for (size_t i = 0; i < graphs.size(); ++i) lockstep->write_to(int64_t(i), graphs[i]);
  out.graphs = std::move(graphs);
  return out;
}

double farthest(const Graph& a, const Graph& b) {
  double most = 0;
  for (const auto& [id, constant] : a.constants)
    if (constant.value.is_floating_point())
      most = std::max(most, (constant.value - b.constant(id)).abs().max().item<double>());
  return most;
}

/// The share of weights that differ by more than rounding. Adam moves a weight by its rate whatever the size of its
/// gradient: a unit that relu lets through or not by rounding alone moves or does not with all its weights.
double share_apart(const Graph& a, const Graph& b) {
  int64_t apart = 0, all = 0;
  for (const auto& [id, constant] : a.constants)
    if (constant.value.is_floating_point()) {
      apart += ((constant.value - b.constant(id)).abs() > 2e-4).sum().item<int64_t>();
      all += constant.value.numel();
    }
  return double(apart) / double(all);
}

bool equal(const Graph& a, const Graph& b) {
  for (const auto& [id, constant] : a.constants)
    if (!at::equal(constant.value, b.constant(id))) return false;
  return true;
}

/// The slow twin is the trainer itself, network by network.
TEST(Lockstep, TrainsEachNetworkAsTheTrainerDoes) {
  for (const Form& form : forms())
    for (Method method : {Method::kAdam, Method::kMomentum}) {
      std::vector<Graph> graphs;
      for (uint64_t seed = 1; seed <= 3; ++seed) graphs.push_back(form.make(seed));
      const auto data = random_classes(237, form.shape, classes_of(graphs[0]));
      Options options;
      options.method = method, options.rate = 0.003, options.epochs = 1;
      const Together made = together(graphs, data, options);
      for (size_t i = 0; i < graphs.size(); ++i) {
        const Graph expected = alone(graphs[i], data, options);
        const std::string which = fmt::format("{} {} {}", form.name, i, method_name(method));
        if (method == Method::kAdam)
          EXPECT_LT(share_apart(made.graphs[i], expected), 2e-2) << which;
        else
          EXPECT_LT(farthest(made.graphs[i], expected), 2e-4) << which;
        EXPECT_GT(farthest(graphs[i], expected), 2e-3);
        stream::Subject subject(form.name, expected, data, {expected.outputs[0]});
        std::vector<int64_t> every(size_t(data->size()));
        for (size_t k = 0; k < every.size(); ++k) every[k] = int64_t(k);
        const at::Tensor outputs = stream::run_few(subject, {expected.outputs[0]}, data->read(every), 1)[0];
        EXPECT_LT((outputs - made.outputs[int64_t(i)]).abs().max().item<double>(), 2e-2) << form.name;
      }
    }
}

TEST(Lockstep, ANetworkDependsOnItselfAlone) {
  for (const Form& form : forms()) {
    std::vector<Graph> graphs;
    for (uint64_t seed = 1; seed <= 16; ++seed) graphs.push_back(form.make(seed));
    const auto data = random_classes(90, form.shape, classes_of(graphs[0]));
    Options options;
    options.epochs = 1;
    const Together all = together(graphs, data, options);
    // One of them holds NaN, one diverges: the rest must not see it.
    std::vector<Graph> others = {graphs[7], graphs[3], graphs[11]};
    for (const auto& [id, constant] : graphs[7].constants)
      if (constant.value.is_floating_point()) others[0].replace(id, at::full_like(constant.value, NAN));
    const Together some = together(others, data, options);
    EXPECT_TRUE(std::isnan(some.losses[0]));
    EXPECT_TRUE(equal(some.graphs[1], all.graphs[3])) << form.name;
    EXPECT_TRUE(equal(some.graphs[2], all.graphs[11])) << form.name;
    EXPECT_EQ(some.losses[1], all.losses[3]);
  }
}

/// What a GPU runs, on the CPU.
TEST(Lockstep, TensorsAgreeWithLanes) {
  for (const Form& form : forms()) {
    std::vector<Graph> graphs;
    for (uint64_t seed = 1; seed <= 3; ++seed) graphs.push_back(form.make(seed));
    for (const auto& [id, constant] : graphs[2].constants)
      if (constant.value.is_floating_point()) graphs[2].replace(id, at::full_like(constant.value, INFINITY));
    const auto data = random_classes(70, form.shape, classes_of(graphs[0]));
    Options options;
    options.epochs = 1;
    const Together lanes = together(graphs, data, options), tensors = together(graphs, data, options, true);
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_LT(farthest(lanes.graphs[i], tensors.graphs[i]), 2e-4) << form.name;
      EXPECT_NEAR(lanes.losses[i], tensors.losses[i], 1e-5) << form.name;
    }
    EXPECT_LT((lanes.outputs - tensors.outputs).narrow(0, 0, 2).abs().max().item<double>(), 5e-3) << form.name;
    EXPECT_FALSE(std::isfinite(tensors.losses[2]));
    EXPECT_FALSE(std::isfinite(lanes.losses[2]));
  }
}

TEST(Lockstep, RefusesByNameWhatItDoesNotKnow) {
  auto reason = [](const Graph& graph, std::vector<int64_t> shape) {
    return plan_lockstep(graph, graph.outputs[0], shape).refusal;
  };
  EXPECT_EQ(reason(zoo::make("lenet5"), {1, 28, 28}), "");
  EXPECT_NE(reason(zoo::make("resnet20"), {3, 32, 32}).find("BatchNormalization"), std::string::npos);
  EXPECT_NE(reason(zoo::make("cifar-convnet"), {3, 32, 32}).find("Dropout"), std::string::npos);
  EXPECT_NE(reason(zoo::make("textcnn"), {56}), "");
}

}  // namespace
}  // namespace netmend::training
