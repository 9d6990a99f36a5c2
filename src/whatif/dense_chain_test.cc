// Chains of dense layers against the executor; loops over rows against plain ones.
#include "whatif/dense_chain.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "executor/executor.h"
#include "whatif/row_loops.h"
#include "zoo/builder.h"
#include "zoo/zoo.h"

namespace netmend::whatif {
namespace {

TEST(DenseChain, EqualsTheExecutor) {
  at::manual_seed(5);
  for (const char* name : {"mlp:37-29-17-10", "mlp:16-16-1", "mlp:65-64-3"}) {
    SCOPED_TRACE(name);
    const model::Graph graph = zoo::make(name);
    const at::Tensor weight = graph.constant(graph.nodes[0].inputs[1]);
    for (bool behind_first : {false, true}) {
      const model::ValueId from = behind_first ? graph.nodes[0].outputs[0] : graph.inputs[0];
      executor::Request request;
      request.given = {from};
      const executor::Executor plain(graph, request);
      for (ops::Vectors vectors : {ops::Vectors::kHalf, ops::Vectors::kWhole}) {
        if (vectors > ops::widest_vectors()) continue;
        const auto chain = DenseChain::find(graph, from, graph.outputs[0], vectors);
        ASSERT_TRUE(chain);
        for (int64_t count : {1, 6, 13, 100}) {
          const at::Tensor rows = at::randn({count, weight.size(behind_first ? 0 : 1)});
          ASSERT_TRUE(chain->suits(rows));
          EXPECT_TRUE(at::allclose(chain->run(rows), plain.run({&rows, 1})[0], 1e-5, 1e-5)) << count;
        }
        EXPECT_FALSE(chain->suits(at::randn({4, 999})));
      }
    }
  }
}

TEST(DenseChain, IsThereForNothingButReluAndProducts) {
  zoo::Builder b("bent", zoo::Scheme::kGlorot, 3);
  const model::ValueId x = b.dense("fc1", b.input("x", {12}), 12, 8);
  const model::Graph graph = b.finish(b.dense("fc2", b.plain("Sigmoid", {x}), 8, 4), "logits", 4);
  EXPECT_EQ(DenseChain::find(graph, x, graph.outputs[0], ops::Vectors::kHalf), nullptr);
  EXPECT_EQ(DenseChain::find(graph, x, graph.outputs[0], ops::Vectors::kNone), nullptr);
}

TEST(Rows, AreRatedAsOneByOne) {
  at::manual_seed(6);
  for (int64_t width : {2, 10, 64}) {
    at::Tensor rows = at::randn({kRowsAtOnce, width}) * 20;
    rows[3][0] = rows[3][1] = 300;  // the first of equal ones
    rows[4][1] = NAN;
    rows[5][0] = INFINITY;
    const float* x = rows.data_ptr<float>();
    RowRatings ratings;
    rate_rows(x, width, ratings);
    for (int64_t l = 0; l < kRowsAtOnce; ++l) {
      const std::vector<float> row(x + l * width, x + (l + 1) * width);
      EXPECT_EQ(ratings.finite[l] == 0, l != 4 && l != 5) << l;
      if (l == 4 || l == 5) continue;
      const auto best = std::max_element(row.begin(), row.end());
      EXPECT_EQ(ratings.best[l], best - row.begin());
      std::vector<float> sorted = row;
      std::sort(sorted.rbegin(), sorted.rend());
      EXPECT_EQ(ratings.margin[l], sorted[0] - sorted[1]);
      double sum = 0;
      float largest = 0;
      for (float value : row) sum += std::exp(double(value) - *best), largest = std::max(largest, std::abs(value));
      EXPECT_NEAR(ratings.sum[l], sum, 3e-7 * sum);
      EXPECT_EQ(ratings.largest[l], largest);
      EXPECT_EQ(ratings.value[l], *best);
    }
  }
}

TEST(Rows, AreShiftedAndMeasuredAsOneByOne) {
  at::manual_seed(7);
  const at::Tensor z = at::randn({5, 37}), delta = at::randn({5}), w = at::randn({37}), out = at::empty_like(z);
  std::vector<float> most(5), again(5);
  add_scaled_rows(z.data_ptr<float>(), delta.data_ptr<float>(), w.data_ptr<float>(), 5, 37, out.data_ptr<float>(),
                  most.data());
  EXPECT_TRUE(at::allclose(out, z + delta.unsqueeze(1) * w));
  largest_of_rows(out.data_ptr<float>(), 5, 37, again.data());
  for (int64_t row = 0; row < 5; ++row) {
    EXPECT_EQ(most[size_t(row)], out[row].abs().max().item<float>());
    EXPECT_EQ(most[size_t(row)], again[size_t(row)]);
  }
}

}  // namespace
}  // namespace netmend::whatif
