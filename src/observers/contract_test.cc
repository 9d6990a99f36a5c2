// Every row of the catalogue goes through the same checks.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "executor/layers.h"
#include "observers/catalog.h"
#include "observers/part_predictions.h"
#include "observers/spectrum.h"
#include "observers/unit_profile.h"
#include "stream/pass.h"
#include "stream/state_file.h"
#include "zoo/zoo.h"

namespace netmend::observers {
namespace {

using stream::Collected;
using stream::Observer;
using stream::State;

/// What stands in the first number of the first two inputs; kLeftOut: these inputs are not there at all.
enum class First { kSound, kNan, kInf, kLeftOut };
constexpr int64_t kBroken = 2;

/// Random inputs and labels, in memory.
class RandomData : public dataset::Dataset {
 public:
  RandomData(int64_t count, First first = First::kSound, std::vector<int64_t> shape = {12})
      : left_out_(first == First::kLeftOut ? kBroken : 0) {
    at::Tensor noise = at::arange(count * model::checked_count(shape), at::kFloat);
    x_ = at::sin(noise * 1.7).view({count, -1});
    if (first == First::kNan) x_[0][0] = NAN, x_[1][0] = NAN;
    if (first == First::kInf) x_[0][0] = INFINITY, x_[1][0] = -INFINITY;
    std::vector<int64_t> sizes = shape;
    sizes.insert(sizes.begin(), count);
    x_ = x_.view(sizes);
    info_.spec = "random";
    info_.size = count - left_out_;
    info_.features = {{"x", std::move(shape), at::kFloat, false}};
    info_.labels = dataset::LabelKind::kClass;
    for (int c = 0; c < 4; ++c) info_.classes.push_back(std::to_string(c));
  }
  dataset::Batch read(std::span<const int64_t> samples) const override {
    std::vector<int64_t> numbers(samples.begin(), samples.end());  // the others keep their numbers
    for (int64_t& number : numbers) number += left_out_;
    at::Tensor rows = at::tensor(numbers, at::kLong);
    return {{x_.index_select(0, rows)}, {at::Tensor()}, rows.remainder(4), numbers};
  }
  dataset::Display display(int64_t) const override { return {}; }

 private:
  int64_t left_out_;
  at::Tensor x_;
};

struct Fixture {
  std::shared_ptr<RandomData> data;
  stream::Subject subject;
  Materials materials;

  explicit Fixture(int64_t count, First inputs = First::kSound, const std::string& network = "mlp:12-9-7-4",
                   std::vector<int64_t> shape = {12})
      : data(std::make_shared<RandomData>(count, inputs, std::move(shape))), subject(make(network, data)) {
    executor::Head head = executor::find_head(subject.graph, subject.graph.outputs[0]);
    std::vector<int64_t> first{0, 1, 2, 3};
    dataset::Batch batch = data->read(first);
    at::NoGradGuard no_grad;
    at::Tensor output = executor::Executor(subject.graph).run(batch.inputs)[0];
    materials.predictions = infer_task(subject.graph, head, data->info(), batch, output);
    materials.layers = executor::find_layers(subject.graph);
    materials.subject = &subject;
  }
  static stream::Subject make(const std::string& network, std::shared_ptr<RandomData> data) {
    model::Graph graph = zoo::make(network);
    std::vector<model::ValueId> outputs = graph.outputs;
    return {network, std::move(graph), data, outputs};
  }
  stream::PassResult run(const Observer& observer, int jobs, stream::Shard shard = {}) const {
    stream::PassOptions options;
    options.jobs = jobs;
    options.shard = shard;
    options.quiet = true;
    return stream::run_pass(subject, {&observer}, options);
  }
};

std::string bytes(const State& state) {
  std::ostringstream out;
  state.save(out);
  return out.str();
}

class Contract : public testing::TestWithParam<size_t> {
 protected:
  const CatalogRow& row() const { return catalog()[GetParam()]; }
};

constexpr int64_t kInputs = 3000;  // three chunks, the last batch not full

TEST_P(Contract, WorkersAndShardsChangeNoBit) {
  Fixture fixture(kInputs);
  auto observer = row().make(fixture.materials);
  std::string alone = bytes(*fixture.run(*observer, 1).collected[0].fold(*observer));
  for (int jobs : {2, 5}) EXPECT_EQ(bytes(*fixture.run(*observer, jobs).collected[0].fold(*observer)), alone);
  for (int64_t shards : {2, 3, 7}) {
    std::vector<stream::StateFile> files(static_cast<size_t>(shards));
    std::vector<std::string> paths;
    for (int64_t i = shards; i >= 1; --i) {  // in any order
      stream::PassResult part = fixture.run(*observer, 2, {i, shards});
      std::string path = testing::TempDir() + "/part" + std::to_string(i) + ".state";
      stream::StateFile file;
      file.subject = "s";
      file.chunks = part.chunks;
      file.collected = std::move(part.collected[0]);
      stream::write_state(path, file, *observer);
      files[size_t(shards - i)] = stream::read_state(path, *observer);
      paths.push_back(path);
    }
    EXPECT_EQ(bytes(*stream::join_states(std::move(files), paths).fold(*observer)), alone) << shards;
  }
}

TEST_P(Contract, StatesSurviveSavingAndRefuseDamage) {
  Fixture fixture(100);
  auto observer = row().make(fixture.materials);
  std::string saved = bytes(*fixture.run(*observer, 1).collected[0].fold(*observer));
  auto again = observer->fresh();
  std::istringstream in(saved);
  again->load(in);
  EXPECT_EQ(bytes(*again), saved);
  for (size_t length : {size_t(0), saved.size() / 2, saved.size() - 1}) {
    std::istringstream cut(saved.substr(0, length));
    EXPECT_THROW(observer->fresh()->load(cut), InputError);
  }
}

TEST_P(Contract, MergingLeavesItsSourceAndAnEmptyStreamIsFine) {
  Fixture fixture(200);
  auto observer = row().make(fixture.materials);
  auto state = fixture.run(*observer, 1).collected[0].fold(*observer);
  std::string before = bytes(*state);
  auto into = observer->fresh();
  into->merge(*state);
  EXPECT_EQ(bytes(*state), before);
  state->merge(*observer->fresh());
  EXPECT_EQ(bytes(*state), before);
  EXPECT_FALSE(bytes(*observer->fresh()).empty());
}

/// How far sums may move when inputs are grouped otherwise. A float carries seven digits; matrix products of other
/// sizes add up in another order, which costs the last of them, and sums over hundreds of inputs a little more. Counts
/// move only where a value lies that near to a threshold, and none of these do.
constexpr double kRounding = 1e-5;

void expect_near(const std::vector<double>& numbers, const std::vector<double>& expected) {
  ASSERT_EQ(numbers.size(), expected.size());
  for (size_t i = 0; i < numbers.size(); ++i)
    EXPECT_NEAR(numbers[i], expected[i], kRounding * (1 + std::abs(expected[i]))) << i;
}

/// Keeps the network's outputs, bit for bit.
struct OutputState : State {
  explicit OutputState(model::ValueId value) : output(value) {}
  void observe(const stream::View& view) override {
    at::Tensor values = view.value(output).contiguous();
    seen.append(static_cast<const char*>(values.data_ptr()), values.nbytes());
  }
  void merge(const State& later) override { seen += dynamic_cast<const OutputState&>(later).seen; }
  void save(std::ostream& out) const override { stream::put(out, seen); }
  void load(std::istream& in) override { seen = stream::get_text(in); }
  model::ValueId output;
  std::string seen;
};
struct Outputs : Observer {
  using State = OutputState;
  explicit Outputs(model::ValueId value) : output(value) {}
  std::string name() const override { return "outputs"; }
  std::vector<stream::Tap> taps() const override { return {{output}}; }
  std::unique_ptr<stream::State> fresh() const override { return std::make_unique<OutputState>(output); }
  model::ValueId output;
};

TEST_P(Contract, ChangesNoOutputOfTheNetwork) {
  for (const auto& [network, shape] : {std::pair<const char*, std::vector<int64_t>>{"mlp:12-9-7-4", {12}},
                                       std::pair<const char*, std::vector<int64_t>>{"lenet5", {1, 28, 28}}}) {
    Fixture fixture(100, First::kSound, network, shape);
    const Outputs outputs(fixture.subject.graph.outputs[0]);
    auto observer = row().make(fixture.materials);
    auto outputs_of = [&](const Observer* watching) {
      stream::Pass pass(fixture.subject);
      if (watching) pass.watch(*watching);
      auto handle = pass.watch(outputs);
      stream::PassOptions options;
      options.quiet = true;
      pass.run(options);
      return pass.state(handle).seen;
    };
    const std::string alone = outputs_of(nullptr);
    EXPECT_FALSE(alone.empty());
    EXPECT_TRUE(outputs_of(observer.get()) == alone) << network;
  }
}

TEST_P(Contract, BatchSizesChangeNothingButRounding) {
  std::vector<double> expected;
  for (int64_t size : {stream::kBatch, int64_t(7), int64_t(1)}) {
    Fixture fixture(300);
    fixture.subject.batching.kind = executor::Batching::kFixed;
    fixture.subject.batching.size = size;
    auto observer = row().make(fixture.materials);
    const Found found = row().found(*fixture.run(*observer, 2).collected[0].fold(*observer));
    EXPECT_GT(found.inputs, 0);
    if (expected.empty()) expected = found.numbers;
    ASSERT_FALSE(expected.empty());
    SCOPED_TRACE(size);
    expect_near(found.numbers, expected);
  }
}

/// The states of consecutive parts, so many batches each; 0 for all of them in one.
std::vector<std::unique_ptr<State>> states_of(const Fixture& fixture, const Observer& observer, int64_t batches) {
  constexpr int64_t kInputsABatch = 20;
  executor::Request request;
  for (const stream::Tap& tap : observer.taps()) request.wanted.push_back(tap.value);
  const executor::Executor network(fixture.subject.graph, request);
  at::NoGradGuard no_grad;
  std::vector<std::unique_ptr<State>> states;
  int64_t part = 0;
  for (int64_t first = 0; first < fixture.data->info().size; first += kInputsABatch, ++part) {
    if (states.empty() || (batches > 0 && part % batches == 0)) states.push_back(observer.fresh());
    std::vector<int64_t> samples;
    for (int64_t i = first; i < std::min(first + kInputsABatch, fixture.data->info().size); ++i) samples.push_back(i);
    const dataset::Batch batch = fixture.data->read(samples);
    const std::vector<at::Tensor> values = network.run(batch.inputs);
    states.back()->observe({batch, [&](model::ValueId id) -> const at::Tensor& {
                              auto place = std::find(request.wanted.begin(), request.wanted.end(), id);
                              return values.at(size_t(place - request.wanted.begin()));
                            }});
  }
  return states;
}

TEST_P(Contract, MergedPartsAreTheWhole) {
  Fixture fixture(330);
  auto observer = row().make(fixture.materials);
  const auto whole = states_of(fixture, *observer, 0);
  for (int64_t batches : {1, 3, 10}) {
    auto merged = observer->fresh();
    for (const auto& part : states_of(fixture, *observer, batches)) merged->merge(*part);
    if (observer->merges_exactly()) {
      EXPECT_EQ(bytes(*merged), bytes(*whole[0])) << batches;
    }
    EXPECT_EQ(row().found(*merged).inputs, row().found(*whole[0]).inputs);
    expect_near(row().found(*merged).numbers, row().found(*whole[0]).numbers);
  }
}

/// NaN makes every value behind it NaN, so that all figures but the counts are those of the other inputs alone.
TEST_P(Contract, BrokenNumbersAreCountedNotSpread) {
  auto found = [&](First first) {
    Fixture fixture(300, first);
    auto observer = row().make(fixture.materials);
    return row().found(*fixture.run(*observer, 2).collected[0].fold(*observer));
  };
  const Found sound = found(First::kLeftOut), nan = found(First::kNan), inf = found(First::kInf);
  EXPECT_EQ(sound.not_finite, 0);
  EXPECT_GT(nan.inputs, sound.inputs);
  EXPECT_GT(inf.inputs, sound.inputs);
  EXPECT_EQ(nan.not_finite > 0, row().counts_not_finite);
  EXPECT_EQ(inf.not_finite > 0, row().counts_not_finite);
  expect_near(nan.numbers, sound.numbers);
  for (double number : inf.numbers) EXPECT_TRUE(std::isfinite(number));
}

INSTANTIATE_TEST_SUITE_P(Catalog, Contract, testing::Range<size_t>(0, catalog().size()), [](const auto& info) {
  std::string name(catalog()[info.param].name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Predictions, EqualASlowTwin) {
  Fixture fixture(500);
  Predictions observer(fixture.materials.predictions, true);
  auto folded = fixture.run(observer, 2).collected[0].fold(observer);
  const auto& state = dynamic_cast<const PredictionState&>(*folded);
  PredictionResult result = finish(observer, state);
  std::vector<int64_t> all(500);
  for (int64_t i = 0; i < 500; ++i) all[size_t(i)] = i;
  dataset::Batch batch = fixture.data->read(all);
  at::NoGradGuard no_grad;
  at::Tensor logits = executor::Executor(fixture.subject.graph).run(batch.inputs)[0];
  EXPECT_EQ(result.correct, (logits.argmax(1) == batch.labels).sum().item<int64_t>());
  EXPECT_NEAR(result.loss, at::nll_loss(at::log_softmax(logits, 1), batch.labels).item<double>(), 1e-5);
  int64_t counted = 0;
  for (const auto& row : result.confusion)
    for (int64_t count : row) counted += count;
  EXPECT_EQ(counted, 500);
  ASSERT_EQ(state.rows.size(), 500u);
  for (int64_t i = 0; i < 500; ++i) EXPECT_EQ(state.rows[size_t(i)].sample, i);
}

TEST(PartPredictions, EqualTheRowsOfThePart) {
  Fixture fixture(500);
  Predictions whole(fixture.materials.predictions, true);
  PartPredictions part(fixture.materials.predictions, [](int64_t sample) { return sample % 7 < 2; });
  auto all = fixture.run(whole, 2).collected[0].fold(whole), some = fixture.run(part, 2).collected[0].fold(part);
  int64_t samples = 0, right = 0;
  double loss = 0;
  for (const SampleRow& row : dynamic_cast<const PredictionState&>(*all).rows)
    if (row.sample % 7 < 2) ++samples, right += row.right == SampleRow::kRight, loss += row.loss;
  PredictionResult result = finish(part.whole(), dynamic_cast<const PartState&>(*some).judged);
  EXPECT_EQ(result.samples, samples);
  EXPECT_EQ(result.correct, right);
  EXPECT_NEAR(result.loss, loss / double(samples), 1e-6);
}

TEST(UnitProfile, EqualsASlowTwin) {
  Fixture fixture(1500);
  UnitProfile observer(fixture.materials.layers);
  auto folded = fixture.run(observer, 2).collected[0].fold(observer);
  const auto& state = dynamic_cast<const UnitProfileState&>(*folded);
  std::vector<int64_t> all(1500);
  for (int64_t i = 0; i < 1500; ++i) all[size_t(i)] = i;
  executor::Request request;
  request.wanted = {fixture.materials.layers[1].post};
  at::NoGradGuard no_grad;
  at::Tensor values =
      executor::Executor(fixture.subject.graph, request).run(fixture.data->read(all).inputs)[0].to(at::kDouble);
  for (int64_t u = 0; u < 7; ++u) {
    const UnitStats& unit = state.stats[1][size_t(u)];
    at::Tensor column = values.select(1, u);
    EXPECT_NEAR(unit.mean, column.mean().item<double>(), 1e-6);
    EXPECT_NEAR(unit.variance(), column.var(false).item<double>(), 1e-6);
    EXPECT_NEAR(unit.min, column.min().item<double>(), 1e-6);
    EXPECT_NEAR(unit.max, column.max().item<double>(), 1e-6);
    EXPECT_EQ(unit.zeros, (column == 0).sum().item<int64_t>());
  }
}

TEST(UnitProfile, CountsWhatIsNotFinite) {
  Fixture fixture(300, First::kNan);
  UnitProfile observer(fixture.materials.layers);
  auto folded = fixture.run(observer, 1).collected[0].fold(observer);
  const auto& state = dynamic_cast<const UnitProfileState&>(*folded);
  int64_t broken = 0;
  for (const UnitStats& unit : state.stats[0]) {
    broken += unit.not_finite;
    EXPECT_TRUE(std::isfinite(unit.mean));
  }
  EXPECT_GT(broken, 0);
}

/// Counted input by input, without groups or batches.
void expect_spectrum(const Fixture& fixture, const SpectrumSettings& settings, int64_t inputs) {
  Spectrum observer(fixture.materials.predictions, fixture.materials.layers, settings);
  auto folded = fixture.run(observer, 2).collected[0].fold(observer);
  const auto& state = dynamic_cast<const SpectrumState&>(*folded);
  EXPECT_EQ(state.samples, inputs);
  std::vector<int64_t> all(static_cast<size_t>(inputs));
  for (int64_t i = 0; i < inputs; ++i) all[size_t(i)] = i;
  executor::Request request;
  request.wanted = {fixture.subject.graph.outputs[0]};
  for (const model::Layer& layer : observer.layers())
    request.wanted.push_back(settings.before_activation ? layer.pre : layer.post);
  at::NoGradGuard no_grad;
  std::vector<at::Tensor> values =
      executor::Executor(fixture.subject.graph, request).run(fixture.data->read(all).inputs);
  at::Tensor predicted = values[0].argmax(1);
  for (size_t l = 0; l < observer.layers().size(); ++l)
    values[l + 1] = model::unit_values(observer.layers()[l], values[l + 1]);
  std::vector<std::vector<int64_t>> active(2, std::vector<int64_t>(size_t(count_units(observer.layers()))));
  std::vector<int64_t> sides(2);
  for (int64_t i = 0; i < inputs; ++i) {
    int64_t label = i % 4, answer = predicted[i].item<int64_t>();
    if (settings.target.label >= 0 && label != settings.target.label) continue;
    if (settings.target.predicted >= 0 && answer != label && answer != settings.target.predicted) continue;
    size_t side = answer == label ? 1 : 0;
    ++sides[side];
    size_t unit = 0;
    for (size_t l = 0; l < observer.layers().size(); ++l)
      for (int64_t u = 0; u < observer.layers()[l].units; ++u)
        active[side][unit++] += values[l + 1][i][u].item<float>() > float(settings.threshold);
  }
  at::Tensor counted = state.active.sum(1), totals = state.inputs.sum(1);
  for (int64_t side = 0; side < 2; ++side) {
    EXPECT_EQ(totals[side].item<int64_t>(), sides[size_t(side)]);
    for (int64_t u = 0; u < counted.size(1); ++u)
      EXPECT_EQ(counted[side][u].item<int64_t>(), active[size_t(side)][size_t(u)]) << u;
  }
}

TEST(Spectrum, EqualsASlowTwin) {
  Fixture fixture(1100);
  expect_spectrum(fixture, {}, 1100);
  expect_spectrum(fixture, {0.2, {}}, 1100);
  expect_spectrum(fixture, {-0.1, {2}}, 1100);
  expect_spectrum(fixture, {0, {3, 1}}, 1100);
}

TEST(Spectrum, EqualsASlowTwinWhereUnitsHaveMaps) {
  for (const char* network : {"lenet5", "lenet4", "cnn1"}) {
    Fixture fixture(70, First::kSound, network, {1, 28, 28});
    expect_spectrum(fixture, {}, 70);
    expect_spectrum(fixture, {0.01, {}}, 70);
    expect_spectrum(fixture, {0, {}, true}, 70);
  }
  Fixture wide(6, First::kSound, "cifar-convnet", {3, 32, 32});
  expect_spectrum(wide, {}, 6);
}

TEST(Spectrum, SidesFollowTheTarget) {
  auto row = [](double label, double predicted) { return SampleRow{7, label, predicted, 0, 0, label == predicted}; };
  EXPECT_EQ(Target{}.side(row(1, 1)), Side::kPassing);
  EXPECT_EQ(Target{}.side(row(1, 2)), Side::kFailing);
  EXPECT_EQ(Target{}.side(SampleRow{}), Side::kNeither);
  EXPECT_EQ((Target{1}.side(row(2, 2))), Side::kNeither);
  EXPECT_EQ((Target{1, 2}.side(row(1, 3))), Side::kNeither);
  EXPECT_EQ((Target{1, 2}.side(row(1, 2))), Side::kFailing);
  Target listed;
  listed.may_fail = [](int64_t sample) { return sample == 8; };
  EXPECT_EQ(listed.side(row(1, 2)), Side::kNeither);
  EXPECT_EQ(listed.side(row(1, 1)), Side::kPassing);
}

TEST(Shards, MissingDoubleAndForeignPartsAreRefused) {
  Fixture fixture(kInputs);
  UnitProfile observer(fixture.materials.layers);
  auto part = [&](int64_t i, const std::string& subject) {
    stream::PassResult result = fixture.run(observer, 1, {i, 2});
    stream::StateFile file;
    file.subject = subject;
    file.chunks = result.chunks;
    file.collected = std::move(result.collected[0]);
    return file;
  };
  auto join = [&](std::vector<std::pair<int64_t, std::string>> parts) {
    std::vector<stream::StateFile> files;
    std::vector<std::string> paths(parts.size(), "part");
    for (auto& [i, subject] : parts) files.push_back(part(i, subject));
    return stream::join_states(std::move(files), paths);
  };
  EXPECT_NO_THROW(join({{2, "a"}, {1, "a"}}));
  EXPECT_THROW(join({{1, "a"}}), InputError);
  EXPECT_THROW(join({{2, "a"}}), InputError);
  EXPECT_THROW(join({{1, "a"}, {1, "a"}, {2, "a"}}), InputError);
  EXPECT_THROW(join({{1, "a"}, {2, "b"}}), InputError);
  for (const char* text : {"0/2", "3/2", "a/b", "1", "1/0", "-1/2"})
    EXPECT_THROW(stream::parse_shard(text), InputError) << text;
}

TEST(Feed, ReshapesWhatIsSafeAndRefusesTheRest) {
  auto graph_for = [](std::vector<int64_t> shape) {
    model::Graph graph;
    model::ValueId id = graph.add_value("x", model::Element::kFloat);
    graph.values[0].shape.emplace();
    for (int64_t size : shape) graph.values[0].shape->push_back({size, ""});
    graph.inputs = {id};
    return graph;
  };
  auto data_of = [](std::vector<int64_t> shape, bool image) {
    dataset::Info info;
    info.spec = "d";
    info.features = {{"x", shape, at::kFloat, image}};
    return info;
  };
  auto fed = [&](std::vector<int64_t> wanted, std::vector<int64_t> have, bool image = true) {
    stream::Feed feed(graph_for(wanted), "m.onnx", data_of(have, image));
    std::vector<int64_t> shape{2};
    shape.insert(shape.end(), have.begin(), have.end());
    dataset::Batch batch;
    batch.inputs = {at::arange(2 * model::checked_count(have), at::kFloat).view(shape)};
    batch.samples = {0, 1};
    return std::pair(feed.inputs(batch)[0], feed.notes().size());
  };
  EXPECT_EQ(fed({1, 784}, {1, 28, 28}).first.sizes(), (at::IntArrayRef{2, 784}));
  EXPECT_EQ(fed({1, 784}, {1, 28, 28}).second, 1u);
  EXPECT_EQ(fed({1, 1, 28, 28}, {1, 28, 28}).second, 0u);
  EXPECT_EQ(fed({-1, 28, 28, 1}, {1, 28, 28}).first.sizes(), (at::IntArrayRef{2, 28, 28, 1}));
  auto [nhwc, notes] = fed({1, 32, 32, 3}, {3, 32, 32});
  EXPECT_EQ(nhwc[1][4][5][2].item<float>(), 3072 + 2 * 1024 + 4 * 32 + 5);  // moved, not reshaped
  EXPECT_EQ(notes, 1u);
  EXPECT_THROW(fed({1, 3, 32, 32}, {3, 28, 28}), InputError);
  EXPECT_THROW(fed({1, 10}, {12}, false), InputError);
  EXPECT_THROW(fed({1, 4, 6}, {6, 4}, false), InputError);
}

}  // namespace
}  // namespace netmend::observers
