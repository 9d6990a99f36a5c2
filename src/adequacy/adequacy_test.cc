#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "adequacy/assess.h"
#include "adequacy/learn.h"
#include "base/error.h"
#include "base/random.h"
#include "executor/layers.h"
#include "zoo/zoo.h"

namespace netmend::adequacy {
namespace {

using observers::Published;

TEST(Reduce, KeepsEveryGoalAndNothingToSpare) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    InputGoals goals;
    goals.count = 1 + uint32_t(random.below(40));
    std::vector<std::set<uint32_t>> own;
    for (uint64_t input = 0; input < random.below(30); ++input) {
      own.emplace_back();
      for (uint64_t i = 0; i < random.below(6); ++i) own.back().insert(uint32_t(random.below(goals.count)));
      goals.goals.insert(goals.goals.end(), own.back().begin(), own.back().end());
      goals.starts.push_back(goals.goals.size());
    }
    std::set<uint32_t> all, reached;
    for (const auto& some : own) all.insert(some.begin(), some.end());
    const std::vector<Kept> kept = reduce(goals);
    int64_t added = 0;
    for (const Kept& one : kept) {
      const size_t before = reached.size();
      reached.insert(own[size_t(one.input)].begin(), own[size_t(one.input)].end());
      EXPECT_EQ(int64_t(reached.size() - before), one.adds);
      EXPECT_GT(one.adds, 0);
      added += one.adds;
    }
    EXPECT_EQ(reached, all);
    EXPECT_EQ(added, int64_t(all.size()));
    for (const Kept& left_out : kept) {
      std::set<uint32_t> others;
      for (const Kept& one : kept)
        if (one.input != left_out.input) others.insert(own[size_t(one.input)].begin(), own[size_t(one.input)].end());
      EXPECT_LT(others.size(), all.size());
    }
  }
}

TEST(Choice, NamesParametersAndSlips) {
  EXPECT_EQ(parse_criteria("all").size(), criteria().size() - 3);  // kinds of MC/DC that are asked for by name
  std::vector<Wanted> some = parse_criteria("nc:0.5, KMNC:100,lsa");
  ASSERT_EQ(some.size(), 3u);
  EXPECT_EQ(some[0].parameter, 0.5);
  EXPECT_EQ(some[1].parameter, 100);
  EXPECT_EQ(some[2].name, "LSC");
  for (const char* wrong : {"", "NCC", "KMNC:0", "KMNC:1.5", "IDC:3", "NC,NC", "TKNC:0", "NC:nan", "NC:"})
    EXPECT_THROW(parse_criteria(wrong), InputError) << wrong;
  try {
    parse_criteria("KMCN");
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean KMNC"), std::string::npos);
  }
  EXPECT_EQ(parse_counts("8,6,8", "--m"), (std::vector<int64_t>{6, 8}));
  for (const char* wrong : {"", "0", "-1", "6,x", "6,,8"})
    EXPECT_THROW(parse_counts(wrong, "--m"), InputError) << wrong;
}

/// Inputs around one point a class, in memory.
class Clouds : public dataset::Dataset {
 public:
  Clouds(int64_t count, uint64_t seed, double spread) {
    Random random(seed);
    x_ = at::empty({count, 12}, at::kFloat);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < 12; ++j) x_[i][j] = float(std::sin(double(j * (i % 4 + 1))) + spread * random.normal());
    info_.spec = "clouds";
    info_.size = count;
    info_.features = {{"x", {12}, at::kFloat, false}};
    info_.labels = dataset::LabelKind::kClass;
    for (int c = 0; c < 4; ++c) info_.classes.push_back(std::to_string(c));
  }
  dataset::Batch read(std::span<const int64_t> samples) const override {
    at::Tensor rows = at::tensor(at::IntArrayRef(samples.data(), samples.size()), at::kLong);
    return {{x_.index_select(0, rows)}, {at::Tensor()}, rows.remainder(4), {samples.begin(), samples.end()}};
  }
  dataset::Display display(int64_t) const override { return {}; }

 private:
  at::Tensor x_;
};

struct Fixture {
  stream::Subject training, tests;
  observers::PredictionSettings settings;
  observers::SpacePtr space;

  Fixture(int64_t train = 1500, int64_t test = 300)
      : training(subject(std::make_shared<Clouds>(train, 1, 0.6))),
        tests(subject(std::make_shared<Clouds>(test, 2, 0.5))) {
    executor::Head head = executor::find_head(tests.graph, tests.graph.outputs[0]);
    dataset::Batch batch = tests.data->read(std::vector<int64_t>{0});
    settings = observers::infer_task(tests.graph, head, tests.data->info(), batch,
                                     stream::run_few(tests, {head.output}, batch)[0]);
    std::vector<model::Layer> layers = executor::find_layers(tests.graph);
    layers.pop_back();
    space = std::make_shared<observers::UnitSpace>(layers);
  }
  static stream::Subject subject(std::shared_ptr<Clouds> data) {
    model::Graph graph = zoo::make("mlp:12-14-9-4");
    std::vector<model::ValueId> outputs = graph.outputs;
    return {"m", std::move(graph), data, outputs};
  }
  LearnedProfile learn(int64_t stride = 1, int jobs = 2) const {
    LearnOptions options;
    options.pass.quiet = true;
    options.pass.jobs = jobs;
    options.stride = stride;
    return adequacy::learn(training, settings, space, 1, options);
  }
  AssessOptions options(const std::string& criteria = "all") const {
    AssessOptions options;
    options.criteria = parse_criteria(criteria);
    options.pass.quiet = true;
    options.important = {3, 5};
    return options;
  }
  Assessment assess(observers::Profile* profile, const AssessOptions& how) const {
    return adequacy::assess(tests, settings, space, profile, how);
  }
};

double value_of(const Assessment& found, const std::string& name) {
  for (const observers::Figure& figure : found.figures)
    if (figure.name == name) return figure.covered;
  return -1;
}

TEST(Assess, GivesAFigureForEveryCriterion) {
  Fixture fixture;
  LearnedProfile learned = fixture.learn();
  EXPECT_EQ(learned.no_importance, "");
  Assessment found = fixture.assess(&learned.profile, fixture.options());
  EXPECT_EQ(found.inputs, 300);
  for (const Wanted& wanted : parse_criteria("all")) EXPECT_GE(value_of(found, wanted.name), 0) << wanted.name;
  EXPECT_EQ(found.figures.size(), parse_criteria("all").size() + 1);  // IDC for two m
  EXPECT_TRUE(found.skipped.empty());
  for (const observers::Figure& figure : found.figures) {
    EXPECT_TRUE(std::isfinite(figure.value)) << figure.name;
    if (figure.total > 0) {
      EXPECT_LE(figure.covered, figure.total) << figure.name;
    }
  }
  // Regions share out the inputs of each unit.
  int64_t training = 0, tests = 0;
  for (const Region& region : found.regions) training += region.training, tests += region.tests;
  EXPECT_EQ(training, 5 * 1500);
  EXPECT_EQ(tests, 5 * 300);
}

TEST(Assess, TheSubsetReachesAsMuch) {
  Fixture fixture;
  LearnedProfile learned = fixture.learn();
  AssessOptions how = fixture.options("IDC,NC,KMNC:20,NBC,SNAC,TKNC,LSC:50,DSC:50,MDSC:50");
  Assessment all = fixture.assess(&learned.profile, how);
  ASSERT_TRUE(all.subset);
  EXPECT_LT(all.subset->kept.size(), 300u);
  std::set<int64_t> kept;
  for (const Kept& one : all.subset->kept) kept.insert(all.rows[size_t(one.input)].sample);
  how.counts = [&](const observers::SampleRow& row) { return kept.count(row.sample) > 0; };
  Assessment some = fixture.assess(&learned.profile, how);
  EXPECT_EQ(some.inputs, int64_t(kept.size()));
  ASSERT_EQ(some.figures.size(), all.figures.size());
  for (size_t i = 0; i < all.figures.size(); ++i)
    EXPECT_EQ(some.figures[i].covered, all.figures[i].covered) << all.figures[i].name;
  ASSERT_TRUE(some.subset);
  EXPECT_EQ(some.subset->kept.size(), kept.size());
}

TEST(Assess, WithoutTrainingDataSaysWhatIsMissing) {
  Fixture fixture;
  AssessOptions how = fixture.options();
  how.no_training = "give --train";
  Assessment found = fixture.assess(nullptr, how);
  EXPECT_GE(value_of(found, "NC"), 0);
  EXPECT_EQ(value_of(found, "KMNC"), -1);
  int64_t needing = 0;
  for (const CriterionRow& row : criteria()) needing += row.needs.training;
  EXPECT_EQ(int64_t(found.skipped.size()), needing);
  for (const Skipped& skipped : found.skipped) EXPECT_EQ(skipped.why, "give --train");
}

TEST(Assess, WorkersChangeNothing) {
  Fixture fixture(2100, 1100);
  auto run = [&](int jobs) {
    LearnedProfile learned = fixture.learn(1, jobs);
    AssessOptions how = fixture.options();
    how.pass.jobs = jobs;
    return fixture.assess(&learned.profile, how);
  };
  Assessment one = run(1), many = run(5);
  for (size_t i = 0; i < one.figures.size(); ++i) EXPECT_EQ(one.figures[i].value, many.figures[i].value);
  for (size_t i = 0; i < one.surprise.size(); ++i)
    for (size_t row = 0; row < one.surprise[i].scores.size(); ++row)
      EXPECT_EQ(one.surprise[i].scores[row], many.surprise[i].scores[row]);
}

TEST(Assess, MoreImportantUnitsThanThereAre) {
  Fixture fixture;
  LearnedProfile learned = fixture.learn();
  AssessOptions how = fixture.options("IDC");
  how.important = {3, 9, 50, 90};
  Assessment found = fixture.assess(&learned.profile, how);
  EXPECT_EQ(found.figures.size(), 2u);
  EXPECT_EQ(found.notes.size(), 2u);
}

TEST(Assess, FewInputsAreNoTrouble) {
  Fixture fixture(1, 1);
  LearnedProfile learned = fixture.learn();
  Assessment found = fixture.assess(&learned.profile, fixture.options());
  for (const observers::Figure& figure : found.figures) EXPECT_TRUE(std::isfinite(figure.value)) << figure.name;
  EXPECT_FALSE(found.highs_judged);
}

TEST(Assess, NothingThatCountsIsZeroEverywhere) {
  Fixture fixture;
  LearnedProfile learned = fixture.learn();
  AssessOptions how = fixture.options();
  how.counts = [](const observers::SampleRow&) { return false; };
  Assessment found = fixture.assess(&learned.profile, how);
  EXPECT_EQ(found.inputs, 0);
  for (const observers::Figure& figure : found.figures) EXPECT_EQ(figure.value, 0) << figure.name;
}

TEST(Assess, PublishedWaysRun) {
  Fixture fixture;
  LearnedProfile learned = fixture.learn();
  for (const char* name : {"deepimportance", "sadl", "nlc", "dnn-tip", "deepgini"}) {
    AssessOptions how = fixture.options();
    how.published = observers::parse_published(name);
    Assessment found = fixture.assess(&learned.profile, how);
    for (const observers::Figure& figure : found.figures)
      EXPECT_TRUE(std::isfinite(figure.value)) << figure.name << name;
  }
}

TEST(Assess, TracesMayBeThinnedOut) {
  Fixture fixture;
  EXPECT_EQ(stride_for(*fixture.space, 1, 1000, 1e9), 1);
  EXPECT_GT(stride_for(*fixture.space, 1, 1000, 1e4), 5);
  LearnedProfile learned = fixture.learn(4);
  EXPECT_EQ(learned.profile.traces().count(), 375);
  Assessment found = fixture.assess(&learned.profile, fixture.options());
  EXPECT_GE(value_of(found, "DSC"), 0);
  AssessOptions tight = fixture.options();
  tight.most_bytes = 40e3;
  found = fixture.assess(&learned.profile, tight);
  EXPECT_FALSE(found.subset);
  EXPECT_FALSE(found.skipped.empty());
}

}  // namespace
}  // namespace netmend::adequacy
