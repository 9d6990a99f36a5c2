// Every row of the catalogue goes through the same checks.
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/error.h"
#include "observers/random_case_for_test.h"
#include "observers/unit_profile.h"
#include "stream/state_file.h"

namespace netmend::observers {
namespace {

using stream::Observer;
using stream::State;

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
  RandomCase fixture(kInputs);
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
  RandomCase fixture(100);
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
  RandomCase fixture(200);
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
    RandomCase fixture(100, FirstInputs::kSound, network, shape);
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
    RandomCase fixture(300);
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
std::vector<std::unique_ptr<State>> states_of(const RandomCase& fixture, const Observer& observer, int64_t batches) {
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
  RandomCase fixture(330);
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
  auto found = [&](FirstInputs first) {
    RandomCase fixture(300, first);
    auto observer = row().make(fixture.materials);
    return row().found(*fixture.run(*observer, 2).collected[0].fold(*observer));
  };
  const Found sound = found(FirstInputs::kLeftOut), nan = found(FirstInputs::kNan), inf = found(FirstInputs::kInf);
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

TEST(Shards, MissingDoubleAndForeignPartsAreRefused) {
  RandomCase fixture(kInputs);
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
