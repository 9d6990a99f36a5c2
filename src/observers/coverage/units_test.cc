// Reading units from a network, and what was learned of them as a file.
#include "observers/coverage/units.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "base/random.h"
#include "observers/coverage/batches_for_test.h"
#include "observers/coverage/nc.h"
#include "observers/coverage/profile.h"
#include "zoo/builder.h"
#include "zoo/zoo.h"

namespace netmend::observers {
namespace {

class WavyData : public dataset::Dataset {
 public:
  WavyData(int64_t count, std::vector<int64_t> shape) {
    std::vector<int64_t> sizes = shape;
    sizes.insert(sizes.begin(), count);
    x_ = at::sin(at::arange(model::checked_count(sizes), at::kFloat) * 1.3).view(sizes);
    info_.spec = "wavy";
    info_.size = count;
    info_.features = {{"x", std::move(shape), at::kFloat, false}};
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

struct Fixture {
  std::shared_ptr<WavyData> data;
  stream::Subject subject;
  PredictionSettings settings;
  std::vector<model::Layer> layers;

  Fixture(const std::string& network, std::vector<int64_t> shape, int64_t count)
      : data(std::make_shared<WavyData>(count, std::move(shape))), subject(make(network, data)) {
    executor::Head head = executor::find_head(subject.graph, subject.graph.outputs[0]);
    dataset::Batch batch = data->read(std::vector<int64_t>{0, 1, 2});
    settings = infer_task(subject.graph, head, data->info(), batch, stream::run_few(subject, {head.output}, batch)[0]);
    layers = executor::find_layers(subject.graph);
  }
  static stream::Subject make(const std::string& network, std::shared_ptr<WavyData> data) {
    model::Graph graph = zoo::make(network);
    std::vector<model::ValueId> outputs = graph.outputs;
    return {network, std::move(graph), data, outputs};
  }
  /// The values of all units for all inputs, through a pass.
  UnitBatch read(const SpacePtr& space, int jobs = 2) const {
    Criteria observer(settings, space, {std::make_shared<Traces>(space, 0, space->layers().size())});
    stream::PassOptions options;
    options.jobs = jobs;
    options.quiet = true;
    auto done = stream::run_pass(subject, {&observer}, options);
    return dynamic_cast<TraceTally&>(*dynamic_cast<CriteriaState&>(*done.collected[0].pieces[0].state).tallies[0]).kept;
  }
};

TEST(Units, AreReadAsTheNetworkComputesThem) {
  struct Net {
    const char* name;
    std::vector<int64_t> shape;
  };
  for (const Net& net : {Net{"lenet5", {1, 28, 28}}, Net{"lenet1", {1, 28, 28}}, Net{"cifar-convnet", {3, 32, 32}},
                         Net{"mlp:12-9-7-10", {12}}}) {
    Fixture fixture(net.name, net.shape, 70);
    for (bool before : {false, true})
      for (bool elements : {false, true}) {
        SpacePtr space = make_unit_space(fixture.subject, fixture.layers, {before, elements});
        UnitBatch read = fixture.read(space);
        ASSERT_EQ(read.count(), 70);
        executor::Request request;
        for (const model::Layer& layer : fixture.layers) request.wanted.push_back(before ? layer.pre : layer.post);
        request.mode = executor::Mode::kPlain;
        at::NoGradGuard no_grad;
        std::vector<int64_t> all(70);
        std::iota(all.begin(), all.end(), 0);
        std::vector<at::Tensor> values =
            executor::Executor(fixture.subject.graph, request).run(fixture.data->read(all).inputs);
        for (size_t l = 0; l < values.size(); ++l) {
          at::Tensor maps = model::unit_maps(fixture.layers[l], values[l]);
          at::Tensor units = elements ? maps.flatten(1) : maps.mean(2), flat = maps.flatten(1);
          ASSERT_EQ(units.size(1), space->units(l));
          for (int64_t row = 0; row < 70; row += 23) {
            for (int64_t u = 0; u < units.size(1); u += 1 + units.size(1) / 50)
              EXPECT_NEAR(read.input(row)[space->first(l) + u], units[row][u].item<float>(), 2e-5)
                  << net.name << " " << u;
            const size_t at = size_t(row * read.layers) + l;
            EXPECT_NEAR(read.low[at], flat[row].min().item<float>(), 2e-5);
            EXPECT_NEAR(read.high[at], flat[row].max().item<float>(), 2e-5);
          }
        }
      }
  }
}

TEST(Units, LayersAreConnectedWhereOneReadsTheOther) {
  zoo::Builder b("branched", zoo::Scheme::kHe, 1);
  model::ValueId x = b.relu(b.conv("conv1", b.input("x", {2, 8, 8}), 2, 4, {.kernel = 3, .padding = 1}));
  model::ValueId left = b.relu(b.conv("conv2", x, 4, 4, {.kernel = 3, .padding = 1})),
                 right = b.relu(b.conv("conv3", x, 4, 4, {.kernel = 3, .padding = 1}));
  model::ValueId sum = b.max_pool(b.add("sum", b.add("both", left, right), x));
  model::Graph graph = b.finish(b.dense("fc1", b.flatten(sum), 64, 10), "y", 10);
  const std::vector<model::Layer> layers = executor::find_layers(graph);
  ASSERT_EQ(layers.size(), 4u);
  using Pairs = UnitSpace::Connections;
  EXPECT_EQ(find_connections(graph, layers), (Pairs{{0, 1}, {0, 2}, {0, 3}, {1, 3}, {2, 3}}));
  // What is not looked at is in between all the same.
  EXPECT_EQ(find_connections(graph, {layers[0], layers[3]}), (Pairs{{0, 1}}));
  EXPECT_EQ(find_connections(graph, {layers[1], layers[2]}), Pairs());
}

TEST(Units, HaveNamesAndPlaces) {
  Fixture fixture("lenet5", {1, 28, 28}, 4);
  SpacePtr maps = make_unit_space(fixture.subject, fixture.layers, {});
  EXPECT_EQ(maps->name(0), fixture.layers[0].name + "/0");
  EXPECT_EQ(maps->name(maps->first(1) + 3), fixture.layers[1].name + "/3");
  EXPECT_EQ(maps->position(2), -1);
  SpacePtr elements = make_unit_space(fixture.subject, fixture.layers, {false, true});
  const int64_t positions = elements->units(0) / fixture.layers[0].units;
  EXPECT_GT(positions, 1);
  EXPECT_EQ(elements->name(positions), fixture.layers[0].name + "/1");
  EXPECT_EQ(elements->position(positions + 5), 5);
  EXPECT_EQ(maps->find(fixture.layers[2].name), 2u);
  try {
    maps->find(fixture.layers[2].name + "x");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean " + fixture.layers[2].name), std::string::npos);
  }
}

/// Values of a layer over time, with padding.
TEST(Units, PaddingDoesNotCount) {
  model::Layer layer;
  layer.name = "rnn";
  layer.units = 3;
  layer.unit_axis = 2;
  layer.pre = layer.post = 0;
  at::Tensor value = at::arange(2 * 4 * 3, at::kFloat).view({2, 4, 3});
  at::Tensor mask = at::tensor({1, 1, 1, 1, 1, 0, 0, 0}, at::kInt).view({2, 4}).to(at::kBool);
  dataset::Batch batch;
  batch.samples = {0, 1};
  stream::View view{batch, [&](model::ValueId) -> const at::Tensor& { return value; }, mask};
  UnitBatch read;
  UnitSpace channels({layer});
  UnitReader(channels).read(view, read);
  for (int64_t u = 0; u < 3; ++u) {
    EXPECT_EQ(read.values[size_t(u)], float(u) + 4.5f);
    EXPECT_EQ(read.values[size_t(3 + u)], float(u) + 12);
  }
  EXPECT_EQ(read.low, (std::vector<float>{0, 12}));
  EXPECT_EQ(read.high, (std::vector<float>{11, 14}));
  UnitSpace elements({layer}, {false, true}, {4});
  UnitReader(elements).read(view, read);
  ASSERT_EQ(read.units, 12);
  EXPECT_EQ(read.input(0)[5], 4);  // unit 1 at position 1
  EXPECT_EQ(read.input(1)[4], 13);
  EXPECT_TRUE(std::isnan(read.input(1)[5]));
}

TEST(Criteria, CountOnlyWhatTheyAreShown) {
  Fixture fixture("mlp:12-9-7-10", {12}, 200);
  auto space = std::make_shared<UnitSpace>(fixture.layers);
  stream::PassOptions options;
  options.quiet = true;
  Criteria some(fixture.settings, space, {std::make_shared<Traces>(space, 0, 2)},
                [](const SampleRow& row) { return row.label == 3; });
  auto done = stream::run_pass(fixture.subject, {&some}, options);
  const auto& state = dynamic_cast<CriteriaState&>(*done.collected[0].pieces[0].state);
  const UnitBatch& kept = dynamic_cast<const TraceTally&>(*state.tallies[0]).kept;
  EXPECT_EQ(state.samples, 20);
  UnitBatch all = fixture.read(space);
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(kept.rows[size_t(i)].sample, 10 * i + 3);
    EXPECT_EQ(kept.input(i)[10], all.input(10 * i + 3)[10]);
  }
}

class Profiles : public testing::Test {
 protected:
  Profiles() : fixture("mlp:12-9-7-10", {12}, 300), space(std::make_shared<UnitSpace>(fixture.layers)) {
    path = testing::TempDir() + "/netmend-profile-" + std::to_string(getpid());
    Profile made(fixture.settings, space, 1, 300, 2);
    stream::PassOptions options;
    options.quiet = true;
    stream::Pass pass(fixture.subject);
    auto watched = pass.watch(made.observer());
    pass.run(options);
    made.learned(pass.release(watched));
    made.facts.model = "this model";
    made.facts.data = "wavy";
    made.facts.importance = {1, 2, 3, 4, 5, 6, 7};
    made.facts.likelihood_low = -3.5;
    made.save(path);
    high = (*made.ranges())[4].high;
    EXPECT_EQ(made.traces().count(), 150);  // still there
  }
  ~Profiles() override { std::filesystem::remove(path); }
  Profile load(const std::string& model = "this model", SpacePtr other = {}, size_t layer = 1) {
    return load_profile(path, fixture.settings, other ? other : space, layer, model);
  }
  Fixture fixture;
  SpacePtr space;
  std::string path;
  double high = 0;
};

TEST_F(Profiles, ComeBackAsTheyWere) {
  Profile read = load();
  EXPECT_EQ(read.facts.inputs, 300);
  EXPECT_EQ(read.facts.stride, 2);
  EXPECT_EQ(read.facts.importance.size(), 7u);
  EXPECT_EQ(read.facts.likelihood_low, -3.5);
  EXPECT_TRUE(std::isnan(read.facts.mahalanobis_high));
  EXPECT_EQ((*read.ranges())[4].high, high);
  EXPECT_EQ(read.traces().count(), 150);
  EXPECT_EQ(read.peaks().kept(3), 64);
}

TEST_F(Profiles, OfAnotherModelOrViewAreRefused) {
  auto words = [&](auto&& body) -> std::string {
    try {
      body();
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(words([&] { load("another"); }).find("another model"), std::string::npos);
  EXPECT_NE(
      words([&] { load("this model", std::make_shared<UnitSpace>(fixture.layers, UnitChoice{true})); }).find("tap"),
      std::string::npos);
  EXPECT_NE(words([&] { load("this model", {}, 0); }).find("traced"), std::string::npos);
  auto fewer = std::make_shared<UnitSpace>(std::vector<model::Layer>{fixture.layers[0], fixture.layers[1]});
  EXPECT_NE(words([&] { load("this model", fewer); }).find("other layers"), std::string::npos);
  EXPECT_NE(words([&] { load_profile(path + "x", fixture.settings, space, 1, "m"); }), "");
}

TEST_F(Profiles, DamageIsAnErrorAndNothingWorse) {
  const std::string whole = read_file(path);
  Random random(3);
  int tried = 0;
  for (int trial = 0; trial < 300; ++trial) {
    std::string damaged = whole.substr(0, trial % 3 ? whole.size() : random.below(whole.size()));
    if (trial % 3)
      for (uint64_t flips = 0; flips <= random.below(8); ++flips)
        damaged[random.below(std::min<size_t>(damaged.size(), trial % 2 ? 700 : damaged.size()))] =
            char(random.below(256));
    write_file(path, damaged);
    if (damaged == whole) continue;
    ++tried;
    EXPECT_THROW(load(), InputError) << trial;
  }
  EXPECT_GT(tried, 250);
}

}  // namespace
}  // namespace netmend::observers
