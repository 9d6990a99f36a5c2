// The importance of units against sums taken input by input; relevance of the data's own elements.
#include "observers/importance.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "observers/input_relevance.h"
#include "stream/layers.h"
#include "zoo/builder.h"
#include "zoo/zoo.h"

namespace netmend::observers {
namespace {

/// Waves in the shape of images, with labels.
class Waves : public dataset::Dataset {
 public:
  Waves(int64_t count, std::vector<int64_t> shape) {
    std::vector<int64_t> sizes = shape;
    sizes.insert(sizes.begin(), count);
    x_ = at::sin(at::arange(count * model::checked_count(shape), at::kFloat) * 1.7).view(sizes);
    info_.spec = "waves";
    info_.size = count;
    info_.features = {{"x", std::move(shape), at::kFloat, true}};
    info_.labels = dataset::LabelKind::kClass;
    for (int c = 0; c < 10; ++c) info_.classes.push_back(std::to_string(c));
  }
  dataset::Batch read(std::span<const int64_t> samples) const override {
    at::Tensor rows = at::tensor(at::IntArrayRef(samples.data(), samples.size()), at::kLong);
    return {{x_.index_select(0, rows)}, {at::Tensor()}, rows.remainder(10), {samples.begin(), samples.end()}};
  }
  dataset::Display display(int64_t) const override { return {}; }

 private:
  at::Tensor x_;
};

struct Setting {
  std::shared_ptr<Waves> data;
  stream::Subject subject;
  PredictionSettings settings;
  Setting(const std::string& network, std::vector<int64_t> shape, int64_t count)
      : Setting(zoo::make(network), std::move(shape), count) {}
  Setting(model::Graph graph, std::vector<int64_t> shape, int64_t count)
      : data(std::make_shared<Waves>(count, std::move(shape))), subject("network", std::move(graph), data, {}) {
    std::vector<int64_t> first{0, 1, 2, 3};
    dataset::Batch batch = data->read(first);
    executor::Head head = executor::find_head(subject.graph, subject.graph.outputs[0]);
    settings = infer_task(subject.graph, head, data->info(), batch, stream::run_few(subject, {head.output}, batch)[0]);
  }
};

/// Taken input by input, each by itself.
void expect_sums(const Setting& s, int64_t count) {
  std::vector<model::Layer> layers = stream::find_layers(s.subject);
  for (bool all : {false, true}) {
    ImportanceSettings how;
    how.explain.precision = at::kDouble;
    if (all) how.counts = [](const SampleRow&) { return true; };
    Importance observer(s.subject, s.settings, layers, how);
    stream::PassOptions options;
    options.quiet = true;
    auto folded = stream::run_pass(s.subject, {&observer}, options).collected[0].fold(observer);
    const auto& state = dynamic_cast<const ImportanceState&>(*folded);
    std::vector<model::ValueId> wanted;
    for (const model::Layer& layer : layers) wanted.push_back(layer.post);
    explain::Explainer explainer(s.subject.graph, s.settings.head, wanted, how.explain);
    std::vector<at::Tensor> sums;
    for (const model::Layer& layer : layers) sums.push_back(at::zeros({10, layer.units}, at::kDouble));
    int64_t counted = 0;
    double starts = 0, absorbed = 0;
    for (int64_t i = 0; i < count; ++i) {
      explain::Explained one = explainer.run(s.data->read(std::span(&i, 1)).inputs);
      auto answer = one.classes.item<int64_t>();
      if (!all && answer != i % 10) continue;
      ++counted;
      starts += one.start.item<double>();
      absorbed += one.absorbed;
      for (size_t l = 0; l < layers.size(); ++l)
        sums[l][answer].add_(model::unit_maps(layers[l], one.relevance[l]).sum(2).squeeze(0));
    }
    ASSERT_GT(counted, 0);
    EXPECT_EQ(state.inputs.sum().item<int64_t>(), counted);
    EXPECT_NEAR(state.starts.sum().item<double>(), starts, 1e-4 * std::abs(starts));
    EXPECT_NEAR(state.absorbed, absorbed, 1e-4 * std::abs(starts));
    for (size_t l = 0; l < layers.size(); ++l) {
      EXPECT_LT((state.sums[l] - sums[l]).abs().max().item<double>(), 1e-5 * sums[l].abs().max().item<double>());
      at::Tensor order = sums[l].sum(0).argsort(-1, true);
      std::vector<int64_t> first = most_important(state, l, 3);
      for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(first[size_t(i)], order[i].item<int64_t>());
      EXPECT_EQ(most_important(state, l, 1 << 20).size(), size_t(layers[l].units));
    }
  }
}

TEST(Importance, EqualsASumOverInputs) { expect_sums(Setting("lenet1", {1, 28, 28}, 150), 150); }

TEST(Importance, PartsOfABatchGiveWhatTheBatchGives) {
  Setting s("lenet1", {1, 28, 28}, 70);
  std::vector<model::Layer> layers = stream::find_layers(s.subject);
  std::vector<stream::Tap> taps;
  std::vector<model::ValueId> wanted;
  for (const model::Layer& layer : layers) taps.push_back(stream::tap_of(layer)), wanted.push_back(layer.post);
  explain::Explainer explainer(s.subject.graph, s.settings.head, wanted);
  EXPECT_EQ(explained_together(s.subject, explainer), stream::kBatch);
  std::vector<int64_t> samples(30);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = int64_t(2 * i);
  dataset::Batch batch = s.data->read(samples);
  explain::Explained whole = explain_batch(s.subject, explainer, taps, batch, 64);
  explain::Explained parts = explain_batch(s.subject, explainer, taps, batch, 7);
  EXPECT_TRUE(at::equal(whole.classes, parts.classes));
  EXPECT_NEAR(whole.absorbed, parts.absorbed, 1e-4);
  for (size_t i = 0; i < taps.size(); ++i)
    EXPECT_TRUE(at::allclose(whole.relevance[i], parts.relevance[i], 1e-3, 1e-6));
}

/// A network whose answers depend on what else is in the batch runs one input at a time.
model::Graph mixes_inputs() {
  zoo::Builder b("mixed", zoo::Scheme::kHe, 3);
  model::ValueId x = b.input("x", {12});
  model::ValueId most = b.plain("ReduceMax", {x}, {{"axes", std::vector<int64_t>{0}}});
  x = b.plain("Div", {x, b.plain("Exp", {most})});
  return b.finish(b.dense("fc2", b.relu(b.dense("fc1", x, 12, 8)), 8, 10), "y", 10);
}

TEST(Importance, EqualsASumOverInputsThatRunAlone) {
  Setting s(mixes_inputs(), {12}, 70);
  ASSERT_EQ(s.subject.batching.kind, executor::Batching::kOne);
  expect_sums(s, 70);
  std::vector<int64_t> samples{3, 9};
  InputRelevance two = InputExplainer(s.subject, s.settings).run(s.data->read(samples));
  InputRelevance one = InputExplainer(s.subject, s.settings).run(s.data->read(std::span(samples).subspan(1)));
  EXPECT_TRUE(at::allclose(two.features[0][1], one.features[0][0]));
}

TEST(InputRelevance, IsInTheLayoutOfTheData) {
  // The data has channels first or last, the network takes 28×28: the same pixels get the same relevance.
  Setting s("lenet1", {1, 28, 28}, 70);
  InputExplainer inputs(s.subject, s.settings);
  std::vector<int64_t> samples{3, 5, 64};
  dataset::Batch batch = s.data->read(samples);
  InputRelevance found = inputs.run(batch, at::tensor({2, int(explain::kLeftOut), 4}, at::kLong));
  explain::Explainer direct(s.subject.graph, s.settings.head, s.subject.graph.inputs);
  explain::Explained expected = direct.run(batch.inputs, at::tensor({2, int(explain::kLeftOut), 4}, at::kLong));
  EXPECT_TRUE(at::allclose(found.features[0], expected.relevance[0].to(at::kDouble), 1e-4, 1e-6));
  EXPECT_EQ(found.features[0][1].abs().sum().item<double>(), 0);
  EXPECT_NEAR((found.start - found.absorbed - found.features[0].flatten(1).sum(1)).abs().max().item<double>(), 0, 1e-5);

  Setting flat("mlp:48-10-10", {3, 4, 4}, 70);
  InputRelevance of_flat = InputExplainer(flat.subject, flat.settings).run(flat.data->read(samples));
  EXPECT_EQ(of_flat.features[0].sizes(), (at::IntArrayRef{3, 3, 4, 4}));
}

TEST(InputRelevance, FindsTokens) {
  model::Graph graph = zoo::make("textcnn", {.vocabulary = 50});
  std::vector<int64_t> shape;
  for (const model::Dim& dim : *graph.values[size_t(graph.inputs[0])].shape) shape.push_back(dim.size);
  class Words : public dataset::Dataset {
   public:
    explicit Words(int64_t length) : length_(length) {
      info_.spec = "words";
      info_.size = 10;
      info_.features = {{"ids", {length}, at::kLong}};
      info_.labels = dataset::LabelKind::kClass;
      info_.classes = {"no", "yes"};
    }
    dataset::Batch read(std::span<const int64_t> samples) const override {
      at::Tensor rows = at::tensor(at::IntArrayRef(samples.data(), samples.size()), at::kLong);
      at::Tensor ids = (rows.unsqueeze(1) * 7 + at::arange(length_, at::kLong) * 3).remainder(50);
      return {{ids}, {at::Tensor()}, rows.remainder(2), {samples.begin(), samples.end()}};
    }
    dataset::Display display(int64_t) const override { return {}; }
    int64_t length_;
  };
  auto data = std::make_shared<Words>(shape[1] > 0 ? shape[1] : 20);
  executor::Head head = executor::find_head(graph, graph.outputs[0]);
  stream::Subject subject("textcnn", graph, data, {});
  std::vector<int64_t> samples{0, 1, 2};
  dataset::Batch batch = data->read(samples);
  auto settings =
      infer_task(subject.graph, head, data->info(), batch, stream::run_few(subject, {head.output}, batch)[0]);
  InputRelevance found = InputExplainer(subject, settings).run(batch);
  ASSERT_TRUE(found.features[0].defined());
  EXPECT_EQ(found.features[0].sizes(), batch.inputs[0].sizes());
  explain::Explained direct = explain::Explainer(graph, head, executor::find_starts(graph)).run(batch.inputs);
  at::Tensor expected = direct.relevance[0].to(at::kDouble).reshape({3, batch.inputs[0].size(1), -1}).sum(2);
  EXPECT_TRUE(at::allclose(found.features[0], expected, 1e-4, 1e-7));
}

}  // namespace
}  // namespace netmend::observers
