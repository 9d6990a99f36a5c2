// A training step against plain twins written with LibTorch's own operators, and against itself in other splits.
#include "training/step.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <numeric>

#include "base/error.h"
#include "stream/feed.h"
#include "training/data_for_test.h"
#include "training/thread_pool.h"
#include "zoo/builder.h"
#include "zoo/zoo.h"

namespace netmend::training {
namespace {

const Work kSplit{1e9}, kWhole{0}, kSmall{7e5};

struct Stepped {
  at::Tensor gradient, values;
  std::vector<at::Tensor> statistics;
  StepResult result;
};

Stepped step_once(const model::Graph& graph, const std::shared_ptr<TensorData>& data, Options options, const Work& work,
                  int steps = 1) {
  Parameters parameters(graph, graph.outputs[0]);
  stream::Feed feed(graph, "model", data->info());
  Samples samples(data, feed, 1, int64_t(1) << 30);
  LossForm loss = infer_loss({}, data->info(), (*graph.values[size_t(graph.outputs[0])].shape)[1].size);
  options.batch = data->size();
  Stepper stepper(graph, graph.outputs[0], parameters, loss, options, work);
  std::vector<int64_t> all(size_t(data->size()));
  std::iota(all.begin(), all.end(), 0);
  Stepped done;
  for (int i = 0; i < steps; ++i) done.result = stepper.step(samples, all, options.rate);
  done.gradient = stepper.gradient().clone(), done.values = parameters.values().clone();
  for (const at::Tensor& tensor : parameters.statistics()) done.statistics.push_back(tensor.clone());
  return done;
}

at::Tensor parameter(const model::Graph& graph, const std::string& name) {
  return graph.constant(graph.find(name)).clone().requires_grad_(true);
}

at::Tensor all_of(const std::shared_ptr<TensorData>& data, bool labels) {
  std::vector<int64_t> all(size_t(data->size()));
  std::iota(all.begin(), all.end(), 0);
  dataset::Batch batch = data->read(all);
  return labels ? batch.labels : batch.inputs[0];
}

TEST(Step, EqualsAPlainTwin) {
  model::Graph graph = zoo::make("mlp:20-16-5");
  auto data = random_classes(64, {20}, 5);
  std::vector<at::Tensor> leaves;
  for (const char* name : {"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"})
    leaves.push_back(parameter(graph, name));
  at::Tensor hidden = at::relu(at::linear(all_of(data, false), leaves[0], leaves[1]));
  at::Tensor loss = at::cross_entropy_loss(at::linear(hidden, leaves[2], leaves[3]), all_of(data, true));
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& g : torch::autograd::grad({loss}, leaves)) gradients.push_back(g.flatten());
  at::Tensor expected = at::cat(gradients);
  for (const Work& work : {kSplit, kWhole}) {
    Stepped ours = step_once(graph, data, {.method = Method::kSgd, .rate = 0.1}, work);
    EXPECT_TRUE(at::allclose(ours.gradient, expected, 1e-4, 1e-6));
    EXPECT_NEAR(ours.result.loss / 64, loss.item<double>(), 1e-5);
    at::Tensor first = ours.values.narrow(0, 0, 320).view({16, 20});
    EXPECT_TRUE(at::allclose(first, leaves[0].detach() - 0.1 * gradients[0].view({16, 20}), 1e-5, 1e-6));
  }
}

TEST(Step, ClipsByTheNormOfAllGradientsAndAddsL1) {
  model::Graph graph = zoo::make("mlp:20-16-5");
  auto data = random_classes(64, {20}, 5);
  for (const Work& work : {kSplit, kWhole}) {
    const Options plain{.method = Method::kSgd, .rate = 0.1};
    const Stepped free = step_once(graph, data, plain, work);
    const double norm = free.gradient.norm().item<double>();
    Options clipped = plain, wide = plain, lasso = plain;
    clipped.clip = norm / 4, wide.clip = 2 * norm, lasso.l1 = 0.01;
    EXPECT_TRUE(at::allclose(step_once(graph, data, clipped, work).gradient, free.gradient / 4, 1e-4, 1e-7));
    EXPECT_TRUE(step_once(graph, data, wide, work).values.equal(free.values));
    Parameters start(graph, graph.outputs[0]);
    EXPECT_TRUE(at::allclose(step_once(graph, data, lasso, work).gradient, free.gradient + 0.01 * start.values().sign(),
                             1e-4, 1e-7));
    Options many = clipped;
    many.jobs = 3, many.l1 = 0.01;
    Options one = many;
    one.jobs = 1;
    EXPECT_TRUE(step_once(graph, data, many, work, 3).values.equal(step_once(graph, data, one, work, 3).values));
  }
  for (Options bad : {Options{.l1 = -1}, Options{.clip = NAN}}) EXPECT_THROW(check_options(bad), InputError);
}

/// Three channels of input are computed with channels innermost, one channel plane by plane.
/// Lanes do not know the sigmoid: a network with it is run by the executor.
model::Graph normed_network(bool dense, int64_t channels = 3, bool sigmoid = false) {
  zoo::Builder b("normed", zoo::Scheme::kGlorot, 3);
  model::ValueId x;
  if (dense) {
    x = b.relu(b.batch_norm("bn1", b.dense("fc1", b.input("x", {12}), 12, 8), 8));
  } else {
    x = b.relu(b.batch_norm("bn1", b.conv("conv1", b.input("x", {channels, 9, 7}), channels, 8, {.kernel = 3}), 8));
    x = b.batch_norm("bn2", b.conv("conv2", x, 8, 8, {.kernel = 3, .padding = 1}), 8);
    x = sigmoid ? b.plain("Sigmoid", {x}) : b.relu(x);
    x = b.flatten(b.plain("GlobalAveragePool", {x}));
  }
  return b.finish(b.dense("fc", x, 8, 4), "logits", 4);
}

/// The convolutional network above by LibTorch's batch norm over the whole batch.
class SplitNorm : public testing::TestWithParam<std::pair<int64_t, bool>> {};

TEST_P(SplitNorm, EqualsLibTorchs) {
  const auto [channels, sigmoid] = GetParam();
  model::Graph graph = normed_network(false, channels, sigmoid);
  auto data = random_classes(48, {channels, 9, 7}, 4);
  std::vector<at::Tensor> leaves;
  for (const char* name : {"conv1.weight", "conv1.bias", "bn1.weight", "bn1.bias", "conv2.weight", "conv2.bias",
                           "bn2.weight", "bn2.bias", "fc.weight", "fc.bias"})
    leaves.push_back(parameter(graph, name));
  at::Tensor mean = at::zeros({8}), variance = at::ones({8}), mean2 = at::zeros({8}), variance2 = at::ones({8});
  at::Tensor x = at::conv2d(all_of(data, false), leaves[0], leaves[1]);
  x = at::relu(at::batch_norm(x, leaves[2], leaves[3], mean, variance, true, 0.1, 1e-5, false));
  x = at::conv2d(x, leaves[4], leaves[5], 1, 1);
  x = at::batch_norm(x, leaves[6], leaves[7], mean2, variance2, true, 0.1, 1e-5, false);
  x = sigmoid ? at::sigmoid(x) : at::relu(x);
  at::Tensor loss = at::cross_entropy_loss(at::linear(x.mean({2, 3}), leaves[8], leaves[9]), all_of(data, true));
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& g : torch::autograd::grad({loss}, leaves)) gradients.push_back(g.flatten());
  for (const Work& work : {kSplit, kWhole}) {
    Stepped ours = step_once(graph, data, {.rate = 0}, work);
    EXPECT_TRUE(at::allclose(ours.gradient, at::cat(gradients), 1e-3, 1e-5));
    EXPECT_NEAR(ours.result.loss / 48, loss.item<double>(), 1e-5);
    const std::vector<at::Tensor> running{mean, variance, mean2, variance2};
    for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(at::allclose(ours.statistics[i], running[i], 1e-4, 1e-6)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Channels, SplitNorm,
                         testing::Values(std::pair<int64_t, bool>{1, false}, std::pair<int64_t, bool>{3, false},
                                         std::pair<int64_t, bool>{1, true}, std::pair<int64_t, bool>{3, true}));

TEST(Step, NoNumberOfWorkersChangesABit) {
  struct Case {
    model::Graph graph;
    std::shared_ptr<TensorData> data;
    Work work;
  };
  zoo::Builder b("dropped", zoo::Scheme::kGlorot, 3);
  model::ValueId hidden = b.dropout(b.relu(b.dense("fc1", b.input("x", {12}), 12, 8)), 0.5);
  for (Case c : {Case{zoo::make("lenet1"), random_classes(100, {1, 28, 28}, 10), kSplit},
                 Case{normed_network(false), random_classes(300, {3, 9, 7}, 4), kSplit},
                 Case{normed_network(false, 3, true), random_classes(100, {3, 9, 7}, 4), kSplit},
                 Case{normed_network(true), random_classes(100, {12}, 4), kSplit},
                 Case{b.finish(b.dense("fc", hidden, 8, 4), "logits", 4), random_classes(100, {12}, 4), kSplit}}) {
    Stepped one = step_once(c.graph, c.data, {.jobs = 1}, c.work, 3);
    for (int jobs : {2, 7, 16}) {
      Stepped more = step_once(c.graph, c.data, {.jobs = jobs}, c.work, 3);
      EXPECT_TRUE(one.values.equal(more.values)) << jobs;
      EXPECT_EQ(one.result.loss, more.result.loss);
      for (size_t i = 0; i < one.statistics.size(); ++i) EXPECT_TRUE(one.statistics[i].equal(more.statistics[i]));
    }
  }
}

TEST(Step, AFailureInOnePartSendsAllHome) {
  auto good = random_classes(64, {3, 9, 7}, 4);
  at::Tensor labels = all_of(good, true).clone();
  labels[40] = 9;  // only one part sees it, and the others wait for that part in batch norm
  auto bad = std::make_shared<TensorData>(all_of(good, false), labels, 4);
  for (bool sigmoid : {false, true})
    for (int jobs : {1, 2, 4})
      EXPECT_THROW(step_once(normed_network(false, 3, sigmoid), bad, {.jobs = jobs}, kSplit), InputError);
}

TEST(Step, PartsDependOnBatchAndWorkAlone) {
  EXPECT_EQ(parts_of(32, kSplit), 2);
  EXPECT_EQ(parts_of(31, kSplit), 1);
  EXPECT_EQ(parts_of(1, kSplit), 1);
  EXPECT_EQ(parts_of(100000, kSplit), 8);
  EXPECT_EQ(parts_of(64, kWhole), 1);
  EXPECT_EQ(parts_of(64, kSplit), 4);
  EXPECT_EQ(parts_of(32, kSmall), 2);
  EXPECT_EQ(parts_of(64, kSmall), 2);
  EXPECT_EQ(parts_of(128, kSmall), 4);
  EXPECT_EQ(parts_of(256, kSplit, true), 16);
  EXPECT_EQ(parts_of(33, kSplit, true), 3);
  EXPECT_EQ(parts_of(15, kSplit, true), 1);
  EXPECT_EQ(parts_of(100000, kSplit, true), 32);
  EXPECT_EQ(parts_of(256, kWhole, true), 1);
}

TEST(Prepare, PoolingBeforeReluChangesNothing) {
  model::Graph graph = zoo::make("lenet1"), swapped = graph;
  pool_before_relu(swapped);
  EXPECT_NE(graph.nodes[1].op, swapped.nodes[1].op);
  auto data = random_classes(32, {1, 28, 28}, 10);
  Stepped one = step_once(graph, data, {}, kWhole), two = step_once(swapped, data, {}, kWhole);
  EXPECT_TRUE(one.gradient.equal(two.gradient));
}

TEST(ThreadPool, RunsEveryTaskOnceAndThrowsTheFirstError) {
  ThreadPool pool(4);
  for (int round = 0; round < 2000; ++round) {
    std::atomic<int> sum{0};
    pool.run(round % 9, [&](int task) { sum += task + 1; });
    ASSERT_EQ(sum, (round % 9) * (round % 9 + 1) / 2);
  }
  try {
    pool.run(8, [](int task) {
      if (task >= 3) fail("{}", task);
    });
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "3");
  }
}

}  // namespace
}  // namespace netmend::training
