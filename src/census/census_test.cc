#include "census/census.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <sstream>

#include "base/random.h"
#include "census/comparison.h"
#include "census/near_duplicates.h"
#include "dataset/memory_dataset.h"
#include "stream/pass.h"
#include "zoo/zoo.h"

namespace netmend::census {
namespace {

std::string bytes_of(const stream::State& state) {
  std::ostringstream out;
  state.save(out);
  return out.str();
}

at::Tensor random_tensor(std::vector<int64_t> shape, uint64_t seed) {
  at::Tensor out = at::empty(shape, at::kFloat);
  Random random(seed);
  for (int64_t i = 0; i < out.numel(); ++i) out.data_ptr<float>()[i] = float(random.uniform());
  return out;
}

/// Asks for a value, as some observer of a pass always does.
struct Watcher : stream::Observer {
  struct Seen : stream::State {
    void observe(const stream::View&) override {}
    void merge(const stream::State&) override {}
    void save(std::ostream&) const override {}
    void load(std::istream&) override {}
  };
  explicit Watcher(model::ValueId value) : value_(value) {}
  std::string name() const override { return "watcher"; }
  std::vector<stream::Tap> taps() const override { return {{value_}}; }
  std::unique_ptr<stream::State> fresh() const override { return std::make_unique<Seen>(); }
  model::ValueId value_;
};

TEST(Census, NeitherWorkersNorThePassNorTheFileChangeABit) {
  std::shared_ptr<const dataset::Dataset> whole = dataset::open("glyphs:test"),
                                          data = dataset::subset(whole, stream::spread(whole->size(), 2500));
  Census census(*data);
  auto one = take(*data, census, 1), many = take(*data, census, 3);
  EXPECT_EQ(bytes_of(*one), bytes_of(*many));
  model::Graph graph = zoo::make("mlp:784-4-10", {.seed = 1});
  stream::Subject subject("small", graph, data, {graph.outputs[0]});
  Watcher watcher(graph.outputs[0]);
  auto rode = stream::run_pass(subject, {&watcher, &census}, {}).collected[1].fold(census);
  EXPECT_EQ(bytes_of(*one), bytes_of(*rode));
  CensusState again(census);
  std::istringstream in(bytes_of(*one));
  again.load(in);
  EXPECT_EQ(bytes_of(again), bytes_of(*one));
  EXPECT_EQ(one->inputs(), 2500);
  EXPECT_LE(int64_t(one->hashes.size() * 8 + one->descriptors.size() + one->properties.size() * 4),
            census.form().bytes);
}

TEST(Census, PropertiesAreWhatTheySay) {
  at::Tensor x = at::zeros({4, 1, 10, 10}, at::kFloat);
  x[1].fill_(1);
  x[2].slice(1, 0, 5).fill_(1);  // the upper half is white
  x[3] = x[2] * 0.5;
  dataset::MemoryDataset data(dataset::picture_feature(10), x, {});
  Census census(data);
  auto state = take(data, census, 1);
  std::vector<float> brightness = state->property(0), contrast = state->property(1), filled = state->property(2);
  EXPECT_EQ(brightness, (std::vector<float>{0, 1, 0.5f, 0.25f}));
  EXPECT_NEAR(contrast[2], 0.5, 1e-6);
  EXPECT_NEAR(filled[2], 0.5, 1e-6);
  EXPECT_EQ(filled[0], 0);
  EXPECT_NEAR(state->property(3)[2], 10.0 / 180, 1e-6);  // ten edges between rows of 180 neighbours
  EXPECT_EQ(state->moments[0].low(), 0);
  EXPECT_EQ(state->moments[0].high(), 1);
  EXPECT_NEAR(state->moments[0].mean(), (0 + 1 + 0.5 + 0.25) / 4, 1e-9);
}

TEST(Census, RawUnitsComeBack) {
  // Fed values are (raw / 255 − 0.5) / 0.25.
  at::Tensor raw = random_tensor({64, 1, 6, 6}, 1) * 255;
  dataset::MemoryDataset data(dataset::picture_feature(6), (raw / 255 - 0.5) / 0.25, {});
  data.info_to_change().preprocess = {1.0 / 255, {0.5}, {0.25}};
  Census census(data);
  auto state = take(data, census, 1);
  EXPECT_NEAR(state->moments[0].mean(), raw.mean().item<double>(), 1e-3);
  EXPECT_NEAR(state->moments[0].deviation(), raw.std(false).item<double>(), 1e-3);
  EXPECT_EQ(census.form().high, 255);
  EXPECT_NEAR(state->property(0)[3], raw[3].mean().item<double>() / 255, 1e-5);
}

TEST(Census, ColumnsOfATableGetTheirUnitsAndWordsBack) {
  Random random(4);
  at::Tensor x = at::zeros({100, 3}, at::kFloat);
  std::vector<std::string> rows;
  for (int64_t i = 0; i < 100; ++i) {
    const auto age = int64_t(20 + random.below(50));
    const bool female = random.below(2) == 0;
    x[i][0] = (double(age) - 40) / 12.5, x[i][female ? 1 : 2] = 1;
    rows.push_back(fmt::format("age={} sex={}", age, female ? "Female" : "Male"));
  }
  dataset::MemoryDataset data(dataset::table_feature({"age", "sex=Female", "sex=Male"}), x, {});
  data.set_rows(rows);
  std::vector<SourceColumn> columns = source_columns(data, 0);
  ASSERT_EQ(columns.size(), 2u);
  EXPECT_EQ(columns[0].name, "age");
  EXPECT_TRUE(columns[0].in_units);
  EXPECT_NEAR(columns[0].line.raw(0), 40, 1e-3);
  EXPECT_NEAR(columns[0].line.factor, 12.5, 1e-3);
  EXPECT_EQ(columns[1].words, (std::vector<std::string>{"Female", "Male"}));
  data.set_rows({});
  dataset::MemoryDataset bare(dataset::table_feature({"age", "sex=Female", "sex=Male"}), x, {});
  EXPECT_FALSE(source_columns(bare, 0)[0].in_units);
}

TEST(Duplicates, AgreeWithComparingAllPairs) {
  Random random(7);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<uint64_t> a, b;
    std::vector<float> labels;
    for (int i = 0; i < 60; ++i) a.push_back(random.below(40)), labels.push_back(float(random.below(3)));
    for (int i = 0; i < 30; ++i) b.push_back(random.below(80));
    int64_t repeated = 0, copied = 0, conflicting = 0, counted = 0, counted_conflicts = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      bool before = false, other = false;
      for (size_t j = 0; j < a.size(); ++j) {
        if (j != i && a[i] == a[j] && labels[i] != labels[j]) other = true;
        if (j < i && a[i] == a[j]) before = true;
      }
      repeated += before, conflicting += other;
      copied += std::find(b.begin(), b.end(), a[i]) != b.end();
    }
    for (const auto& group : equal_groups(a)) counted += int64_t(group.size()) - 1;
    for (const Conflict& conflict : conflicts(a, labels)) counted_conflicts += int64_t(conflict.samples.size());
    EXPECT_EQ(counted, repeated);
    EXPECT_EQ(int64_t(exact_duplicates(a, b).size()), copied);
    EXPECT_EQ(counted_conflicts, conflicting);
    for (const DuplicatePair& twin : exact_duplicates(a, b)) EXPECT_EQ(a[size_t(twin.sample)], b[size_t(twin.other)]);
  }
}

TEST(NearDuplicates, AlikeAgreesWithEachPair) {
  Random random(9);
  std::vector<int8_t> a, b;
  for (int i = 0; i < 300 * kDescriptor; ++i) a.push_back(int8_t(int(random.below(255)) - 127));
  for (int i = 0; i < 90 * kDescriptor; ++i) b.push_back(int8_t(int(random.below(255)) - 127));
  for (int i = 0; i < kDescriptor; ++i) a[size_t(271 * kDescriptor + i)] = b[size_t(5 * kDescriptor + i)];
  auto row = [](const std::vector<int8_t>& of, int64_t i) {
    return std::vector<float>(of.begin() + i * kDescriptor, of.begin() + (i + 1) * kDescriptor);
  };
  for (bool below : {false, true})
    for (double least : {0.2, 0.9}) {
      auto found = alike(a, below ? a : b, least, below, 2);
      for (int64_t i = 0; i < 300; ++i) {
        std::vector<double> plain;
        for (int64_t j = 0; j < (below ? i : 90); ++j)
          if (double r = correlation(row(a, i), row(below ? a : b, j)); r >= least) plain.push_back(r);
        std::sort(plain.rbegin(), plain.rend());
        ASSERT_EQ(found[size_t(i)].size(), std::min<size_t>(4, plain.size()));
        for (size_t k = 0; k < found[size_t(i)].size(); ++k) EXPECT_NEAR(found[size_t(i)][k].alike, plain[k], 1e-4);
      }
    }
}

TEST(NearDuplicates, ReExposedAndNoisyCopiesAreFoundAndOthersAreNot) {
  at::Tensor train = random_tensor({400, 1, 16, 16}, 2), test = random_tensor({100, 1, 16, 16}, 3);
  test[7] = train[11];                                                                // the same
  test[20] = train[30] * 0.6 + 0.2;                                                   // other exposure
  test[21] = (train[31] + (random_tensor({1, 16, 16}, 5) - 0.5) * 0.04).clamp(0, 1);  // noise
  dataset::MemoryDataset a(dataset::picture_feature(16), test, {}), b(dataset::picture_feature(16), train, {});
  Census of_a(a), of_b(b);
  auto tests = take(a, of_a, 1), trains = take(b, of_b, 1);
  EXPECT_EQ(exact_duplicates(tests->hashes, trains->hashes).size(), 1u);
  NearSearch found = near_duplicates(*tests, a, *trains, b, 2);
  ASSERT_EQ(found.pairs.size(), 2u);
  EXPECT_EQ(found.pairs[0].sample, 20);
  EXPECT_EQ(found.pairs[0].other, 30);
  EXPECT_EQ(found.pairs[1].other, 31);
  NearSearch thinned = near_duplicates(*tests, a, *trains, b, 2, 20 * 400);
  EXPECT_EQ(thinned.looked_at, 20);
  EXPECT_EQ(thinned.of, 100);
}

TEST(Comparison, DistancesAgreeWithTheirDefinitions) {
  Random random(1);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<float> a, b;
    for (size_t i = 0; i < 1 + random.below(40); ++i) a.push_back(float(random.below(10)));
    for (size_t i = 0; i < 1 + random.below(40); ++i) b.push_back(float(random.below(12)));
    double most = 0;
    for (float x = -1; x < 13; ++x) {
      auto share = [&](const std::vector<float>& of) {
        return double(std::count_if(of.begin(), of.end(), [&](float v) { return v <= x; })) / double(of.size());
      };
      most = std::max(most, std::abs(share(a) - share(b)));
    }
    EXPECT_NEAR(ks_distance(a, b), most, 1e-12);
  }
  const std::vector<float> tied = {1, 1, 1, 2}, nearly = {1.001f, 0.999f, 1, 2};
  EXPECT_GT(ks_distance(tied, nearly), 0.2);
  EXPECT_EQ(ks_distance(tied, nearly, 0.01f), 0);
  EXPECT_EQ(ks_distance(nearly, tied, 0.01f), 0);
  EXPECT_NEAR(standardised_difference(std::vector<float>{0, 2}, std::vector<float>{3, 5}), 3, 1e-9);
  EXPECT_NEAR(shares_distance(std::vector<int64_t>{50, 50}, std::vector<int64_t>{80, 20}), 0.3, 1e-12);
  EXPECT_LT(shares_p(std::vector<int64_t>{500, 500}, std::vector<int64_t>{800, 200}), 1e-6);
  EXPECT_GT(shares_p(std::vector<int64_t>{50, 50}, std::vector<int64_t>{52, 48}), 0.3);
  // Exact where counts are few: 4 of 4 against 0 of 4.
  EXPECT_NEAR(shares_p(std::vector<int64_t>{4, 0}, std::vector<int64_t>{0, 4}), 2.0 / 70, 1e-12);
  EXPECT_NEAR(shares_p(std::vector<int64_t>{30, 1, 0, 1}, std::vector<int64_t>{30, 0, 1, 0}), 1, 0.6);
  EXPECT_EQ(shares_p(std::vector<int64_t>{1, 0}, std::vector<int64_t>{1, 0}), 1);
  EXPECT_EQ(shares_p(std::vector<int64_t>{0, 0}, std::vector<int64_t>{1, 0}), 1);
  EXPECT_NEAR(evenness(std::vector<int64_t>{10, 10, 10}), 1, 1e-12);
  EXPECT_NEAR(evenness(std::vector<int64_t>{30, 0, 0}), 1.0 / 3, 1e-12);
}

TEST(Comparison, RunsAgreeWithShuffling) {
  std::vector<float> labels;
  for (int i = 0; i < 60; ++i) labels.push_back(float(i % 7 < 3 ? 0 : i % 7 < 6 ? 1 : 2));
  Random random(3);
  double sum = 0, squares = 0;
  const int draws = 4000;
  for (int draw = 0; draw < draws; ++draw) {
    random.shuffle(labels);
    const auto runs = double(runs_test(labels).runs);
    sum += runs, squares += runs * runs;
  }
  Runs last = runs_test(labels);
  const double mean = sum / draws, deviation = std::sqrt(squares / draws - mean * mean);
  EXPECT_NEAR(last.expected, mean, 0.3);
  EXPECT_NEAR((double(last.runs) - last.expected) / last.z, deviation, 0.15 * deviation);
  std::sort(labels.begin(), labels.end());
  EXPECT_LT(runs_test(labels).z, -5);
}

TEST(Comparison, OneColumnThatTellsTheLabelIsSeen) {
  Random random(5);
  std::vector<float> labels, telling_column, chance;
  for (int i = 0; i < 2000; ++i) {
    labels.push_back(float(random.below(3)));
    telling_column.push_back(labels.back() * 10 + float(random.normal()));
    chance.push_back(float(random.normal()));
  }
  EXPECT_GT(leakage_score(telling_column, labels, 3, false).right, 0.97);
  EXPECT_LT(leakage_score(chance, labels, 3, false).right, 0.42);
}

TEST(Census, OfASeriesMeanDeviationAndRoughness) {
  at::Tensor x = at::zeros({3, 2, 50}, at::kFloat);
  x[1].fill_(2);
  for (int64_t v = 0; v < 100; ++v) x[2].view(-1)[v] = v % 2 ? 1.0 : -1.0;
  dataset::Feature feature;
  feature.shape = {2, 50};
  dataset::MemoryDataset data(feature, x, {});
  Census census(data);
  EXPECT_EQ(census.form().content, Content::kSeries);
  ASSERT_EQ(census.form().properties, (std::vector<std::string>{"mean", "deviation", "roughness"}));
  const auto state = take(data, census, 1);
  EXPECT_EQ(state->property(0)[1], 2);
  EXPECT_NEAR(state->property(0)[2], 0, 1e-12);
  EXPECT_EQ(state->property(1), (std::vector<float>{0, 0, 1}));
  EXPECT_EQ(state->property(2), (std::vector<float>{0, 0, 2}));
}

TEST(Census, ARowOfFewNumbersIsATableWithoutNames) {
  dataset::Feature feature;
  feature.shape = {5};
  const at::Tensor x = random_tensor({30, 5}, 3);
  dataset::MemoryDataset data(feature, x, {});
  Census census(data);
  EXPECT_EQ(census.form().content, Content::kTable);
  EXPECT_EQ(census.form().columns.at(4), "value 4");
  const auto state = take(data, census, 1);
  EXPECT_NEAR(state->moments.at(4).mean(), x.select(1, 4).mean().item<double>(), 1e-6);
  // Ids that a file stores as numbers are none.
  at::Tensor ids = at::arange(0, 5 * 400, at::kFloat).view({400, 5});
  dataset::MemoryDataset words(feature, ids, {});
  EXPECT_EQ(Census(words).form().content, Content::kSeries);
}

}  // namespace
}  // namespace netmend::census
