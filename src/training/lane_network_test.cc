// Networks in lanes against the executor and LibTorch's autograd, and their loops against plain ones.
#include "training/lane_network.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <numeric>

#include "executor/executor.h"
#include "training/data_for_test.h"
#include "training/prepare.h"
#include "zoo/builder.h"
#include "zoo/zoo.h"

namespace netmend::training {
namespace {

using model::ValueId;
using ops::kInputs, ops::Vectors;
using zoo::Builder;

struct Found {
  at::Tensor gradient;
  double loss = 0;
  int64_t right = 0;
  std::vector<at::Tensor> statistics;
};

Found by_autograd(const model::Graph& graph, const Rows& rows, const LossForm& form, int64_t total, uint64_t seed) {
  Parameters parameters(graph, graph.outputs[0]);
  executor::Request request;
  request.given = graph.inputs, request.mode = executor::Mode::kPlain;
  std::vector<at::Tensor> given = rows.inputs, leaves;
  for (size_t slot = 0; slot < parameters.slots().size(); ++slot) {
    request.given.push_back(parameters.slots()[slot].id);
    leaves.push_back(parameters.leaf(slot));
  }
  given.insert(given.end(), leaves.begin(), leaves.end());
  for (size_t i = 0; i < parameters.statistics().size(); ++i) {
    request.given.push_back(parameters.statistics_ids()[i]);
    given.push_back(parameters.statistics()[i]);
  }
  const at::Tensor answers = executor::Executor(graph, request).run(given, {.training = true, .seed = seed})[0];
  const LossSum sum = loss_of(form, answers, rows.labels, total);
  std::vector<at::Tensor> flat;
  for (const at::Tensor& g : torch::autograd::grad({answers}, leaves, {sum.gradient.view(answers.sizes())}))
    flat.push_back(g.flatten());
  return {at::cat(flat), sum.loss, sum.right, parameters.statistics()};
}

Found in_lanes(const model::Graph& graph, const Rows& rows, const LossForm& form, int64_t total, uint64_t seed,
               Vectors vectors) {
  Parameters parameters(graph, graph.outputs[0]);
  std::string refusal;
  const auto network =
      LaneNetwork::make(graph, graph.outputs[0], parameters, rows.inputs[0].sizes().slice(1), refusal, vectors);
  if (!network) {
    ADD_FAILURE() << refusal;
    return {};
  }
  at::Tensor gradient = at::full_like(parameters.values(), NAN);
  LossSum sum;
  for (int again = 0; again < 2; ++again) {  // memory of a pass is used again
    if (again)
      for (size_t i = 0; i < parameters.statistics().size(); ++i)
        parameters.statistics()[i].copy_(graph.constant(parameters.statistics_ids()[i]));
    sum = network->gradients(rows, form, total, seed, parameters, gradient);
  }
  return {gradient, sum.loss, sum.right, parameters.statistics()};
}

std::vector<Vectors> all_vectors() {
  switch (ops::widest_vectors()) {
    case Vectors::kWhole:
      return {Vectors::kWhole, Vectors::kHalf};
    case Vectors::kHalf:
      return {Vectors::kHalf};
    default:
      return {};
  }
}

ValueId input_image(Builder& b) { return b.input("x", {3, 11, 9}); }

model::Graph finish(Builder& b, ValueId x, int64_t width) { return b.finish(b.dense("fc", x, width, 4), "logits", 4); }

/// Windows of many sizes and strides, odd sizes, overlapping pools.
model::Graph windows() {
  Builder b("windows", zoo::Scheme::kGlorot, 3);
  ValueId x = b.relu(b.conv("c1", input_image(b), 3, 7, {.kernel = 3, .stride = 2, .padding = 1}));
  x = b.conv("c2", x, 7, 5, {.kernel = 2, .padding = 1, .bias = false});
  x = b.relu(b.conv("c3", x, 5, 9, {.kernel = 1, .stride = 2}));
  x = b.conv("c4", x, 9, 13, {.kernel = 5, .stride = 2, .padding = 2});
  return finish(b, b.flatten(x), 13 * 2 * 2);
}

model::Graph pools() {
  Builder b("pools", zoo::Scheme::kGlorot, 3);
  ValueId x = b.max_pool(b.relu(b.conv("c1", input_image(b), 3, 6, {.kernel = 3, .padding = 1})));
  x = b.relu(b.conv("c2", x, 6, 6, {.kernel = 3, .padding = 1}));
  return finish(b, b.flatten(b.max_pool(x)), 6 * 2 * 2);
}

/// A sum whose one way is the input of the other, one with two convolutions, and one of equal operands.
model::Graph sums() {
  Builder b("sums", zoo::Scheme::kGlorot, 3);
  ValueId x = b.relu(b.batch_norm("n1", b.conv("c1", input_image(b), 3, 6, {.kernel = 3, .padding = 1}), 6));
  ValueId y = b.relu(b.batch_norm("n2", b.conv("c2", x, 6, 6, {.kernel = 3, .padding = 1}), 6));
  y = b.batch_norm("n3", b.conv("c3", y, 6, 6, {.kernel = 3, .padding = 1}), 6);
  x = b.relu(b.add("a1", y, x));
  y = b.relu(b.conv("c4", x, 6, 5, {.kernel = 3, .stride = 2, .padding = 1}));
  x = b.relu(b.add("a2", y, b.conv("c5", x, 6, 5, {.kernel = 1, .stride = 2})));
  x = b.add("a3", x, b.relu(b.conv("c6", x, 5, 5, {.kernel = 3, .padding = 1})));
  x = b.add("a4", x, x);
  return finish(b, b.flatten(b.plain("GlobalAveragePool", {x})), 5);
}

model::Graph drops() {
  Builder b("drops", zoo::Scheme::kGlorot, 3);
  ValueId x = b.relu(b.conv("c1", input_image(b), 3, 6, {.kernel = 3}));
  x = b.dropout(b.max_pool(x), 0.25);
  return finish(b, b.dropout(b.relu(b.dense("fc1", b.flatten(x), 6 * 4 * 3, 17)), 0.5), 17);
}

struct Case {
  const char* name;
  model::Graph (*make)();
  std::vector<int64_t> shape;
  int64_t classes;
  double tolerance = 2e-5;  ///< of the largest gradient
};

class InLanes : public testing::TestWithParam<Case> {};

TEST_P(InLanes, GradientsAreThoseOfAutograd) {
  const Case& c = GetParam();
  model::Graph graph = c.make();
  pool_before_relu(graph);
  for (int64_t inputs : {16, 11, 1, 37}) {
    Parameters about(graph, graph.outputs[0]);
    const bool drops = std::string(c.name) == "drops";
    if (drops && inputs > kInputs) continue;  // the masks of further groups are others
    if (!about.statistics().empty() && inputs == 1) continue;
    const auto data = random_classes(inputs, c.shape, c.classes);
    std::vector<int64_t> all(size_t(inputs), 0);
    std::iota(all.begin(), all.end(), 0);
    const dataset::Batch batch = data->read(all);
    const Rows rows{{batch.inputs[0]}, batch.labels};
    const LossForm form = infer_loss({}, data->info(), c.classes);
    const Found plain = by_autograd(graph, rows, form, 50, 99);
    for (Vectors vectors : all_vectors()) {
      const Found own = in_lanes(graph, rows, form, 50, 99, vectors);
      ASSERT_TRUE(own.gradient.defined());
      const double size = plain.gradient.abs().max().item<double>();
      EXPECT_LT((own.gradient - plain.gradient).abs().max().item<double>(), c.tolerance * size) << inputs;
      EXPECT_NEAR(own.loss, plain.loss, 1e-5 * plain.loss);
      EXPECT_EQ(own.right, plain.right);
      for (size_t i = 0; i < plain.statistics.size(); ++i)
        EXPECT_TRUE(at::allclose(own.statistics[i], plain.statistics[i], 1e-5, 1e-6)) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Networks, InLanes,
    testing::Values(Case{"windows", windows, {3, 11, 9}, 4}, Case{"pools", pools, {3, 11, 9}, 4},
                    Case{"sums", sums, {3, 11, 9}, 4}, Case{"drops", drops, {3, 11, 9}, 4},
                    Case{"lenet5", [] { return zoo::make("lenet5"); }, {1, 28, 28}, 10},
                    Case{"dnn1", [] { return zoo::make("dnn1"); }, {784}, 10},
                    // Of its many values some are 0 to rounding, and relu passes their gradient or not.
                    Case{"resnet20", [] { return zoo::make("resnet20"); }, {3, 32, 32}, 10, 2e-2}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(LaneNetwork, SaysWhichNodeItDoesNotKnow) {
  Builder b("gelu", zoo::Scheme::kGlorot, 3);
  const model::Graph graph =
      finish(b, b.flatten(b.plain("Sigmoid", {b.conv("c1", input_image(b), 3, 6, {.kernel = 3})})), 6 * 9 * 7);
  Parameters parameters(graph, graph.outputs[0]);
  std::string refusal;
  EXPECT_EQ(LaneNetwork::make(graph, graph.outputs[0], parameters, {3, 11, 9}, refusal, Vectors::kHalf), nullptr);
  EXPECT_NE(refusal.find("Sigmoid"), std::string::npos) << refusal;
}

/// Against plain loops, values and gradients; windows may overlap and hang over the edge.
void expect_pools(const ops::LanePool& pool, int64_t height, int64_t width) {
  const ops::Plane in{2, 7, 6, 1, 1, 0, 1}, out{2, height, width, 0, 1, 1, 0};
  at::manual_seed(3);
  at::Tensor x = at::randn({2, 7, 6, kInputs}), g = at::randn({2, height, width, kInputs});
  x[0][0][0][3] = NAN;
  auto spread = [](const at::Tensor& t, const ops::Plane& p) {
    return at::constant_pad_nd(t, {0, 0, p.left, p.right, p.top, p.bottom}).contiguous();
  };
  const at::Tensor xs = spread(x, in), gs = spread(g, out), y = at::zeros_like(gs), again = at::zeros_like(gs),
                   gx = at::zeros_like(xs);
  at::Tensor which = at::empty({2 * height * width * kInputs}, at::kChar);
  ops::pool_lanes(xs.data_ptr<float>(), in, pool, true, y.data_ptr<float>(), out, which.data_ptr<int8_t>());
  ops::pool_lanes(xs.data_ptr<float>(), in, pool, true, again.data_ptr<float>(), out, nullptr);
  EXPECT_TRUE(at::allclose(y, again, 0, 0, true));
  ops::unpool_lanes(gs.data_ptr<float>(), out, y.data_ptr<float>(), out, which.data_ptr<int8_t>(), pool, true,
                    gx.data_ptr<float>(), in, !pool.apart());
  at::Tensor expected = at::zeros_like(x);
  for (int64_t c = 0; c < 2; ++c)
    for (int64_t h = 0; h < height; ++h)
      for (int64_t w = 0; w < width; ++w)
        for (int64_t l = 0; l < kInputs; ++l) {
          int64_t row = -1, column = -1;
          float most = 0;
          for (int64_t i = h * pool.stride_y - pool.top; i < h * pool.stride_y - pool.top + pool.height; ++i)
            for (int64_t j = w * pool.stride_x - pool.left; j < w * pool.stride_x - pool.left + pool.width; ++j) {
              if (i < 0 || i >= 7 || j < 0 || j >= 6) continue;
              const float value = x[c][i][j][l].item<float>();
              if (row < 0 || value > most || (std::isnan(value) && !std::isnan(most)))
                most = value, row = i, column = j;
            }
          const float result = y[c][out.top + h][out.left + w][l].item<float>();
          if (std::isnan(most))
            EXPECT_TRUE(std::isnan(result));
          else
            EXPECT_EQ(result, std::max(most, 0.0f));
          if (!(most <= 0)) expected[c][row][column][l] += g[c][h][w][l];
        }
  EXPECT_TRUE(at::allclose(gx.narrow(1, in.top, 7).narrow(2, in.left, 6), expected));
}

TEST(Lanes, PoolsAsPlainLoopsDo) {
  expect_pools({3, 2, 2, 2, 1, 1}, 4, 4);
  expect_pools({2, 2, 2, 2, 0, 0}, 3, 3);
  expect_pools({1, 3, 2, 3, 0, 0}, 4, 2);
}

}  // namespace
}  // namespace netmend::training
