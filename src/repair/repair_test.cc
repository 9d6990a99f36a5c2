#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "faults/plant.h"
#include "repair/mend.h"
#include "repair/output_layer.h"
#include "repair/sbfl_mutation.h"
#include "repair/unit_fit.h"
#include "stream/layers.h"
#include "training/trainer.h"
#include "zoo/builder.h"
#include "zoo/zoo.h"

namespace netmend::repair {
namespace {

using observers::SampleRow;

/// A small network that reads drawn digits, trained once.
struct Sound {
  model::Graph graph;
  std::shared_ptr<const dataset::Dataset> data;
};
const Sound& sound() {
  static const Sound made = [] {
    std::shared_ptr<const dataset::Dataset> whole = dataset::open("glyphs:train");
    model::Graph graph = zoo::make("mlp:784-24-16-10", {.seed = 1});
    training::Task task{"sound", graph, graph.outputs[0], dataset::subset(whole, stream::spread(whole->size(), 4000)),
                        nullptr, {}};
    task.options.epochs = 4, task.options.rate = 0.003;
    training::Trainer trainer(std::move(task));
    while (!trainer.done()) trainer.run_epoch();
    std::shared_ptr<const dataset::Dataset> test = dataset::open("glyphs:test");
    return Sound{trainer.result(), dataset::subset(test, stream::spread(test->size(), 2500))};
  }();
  return made;
}

struct Fixture {
  stream::Subject subject;
  observers::PredictionSettings settings;
  std::vector<model::Layer> layers;

  explicit Fixture(model::Graph graph, observers::TaskOverrides overrides = {})
      : subject("faulty", graph, sound().data,
                {graph.outputs[0], executor::find_head(graph, graph.outputs[0]).logits}) {
    executor::Head head = executor::find_head(graph, graph.outputs[0]);
    dataset::Batch few = subject.data->read(stream::spread(subject.data->size(), 8));
    settings = observers::infer_task(graph, head, subject.data->info(), few,
                                     stream::run_few(subject, {head.output}, few)[0], overrides);
    layers = stream::find_layers(subject);
  }

  Problem problem(double work = 2e10) const {
    Problem out{subject, settings, layers};
    std::vector<int64_t> all(static_cast<size_t>(subject.data->size()));
    for (size_t i = 0; i < all.size(); ++i) all[i] = int64_t(i);
    out.rows = evaluate(out, {}, all).rows;
    std::vector<int64_t> strata;
    for (const SampleRow& row : out.rows) strata.push_back(int64_t(row.label) * 3 + row.right);
    out.parts = split(strata, {}, 1);
    out.budget = Budget::of_work(work);
    return out;
  }
};

model::Graph damaged(const std::string& kind, const std::string& layer, uint64_t seed, std::string* unit = nullptr) {
  model::Graph graph = sound().graph;
  faults::Fault fault =
      faults::plant(graph, executor::find_layers(graph), faults::find_kind(kind), {.layer = layer, .seed = seed});
  edits::apply(graph, fault.edits);
  if (unit) *unit = fault.units.empty() ? "" : fault.units[0];
  return graph;
}

TEST(Split, PartsAreDisjointStratifiedAndRepeat) {
  std::vector<int64_t> strata;
  Random random(3);
  for (int i = 0; i < 3000; ++i) strata.push_back(int64_t(random.below(7)) * (i % 5 == 0));
  Parts parts = split(strata, {}, 9);
  std::set<int64_t> seen;
  for (const auto* part : {&parts.search, &parts.selection, &parts.holdout}) seen.insert(part->begin(), part->end());
  EXPECT_EQ(seen.size(), parts.search.size() + parts.selection.size() + parts.holdout.size());
  EXPECT_GE(seen.size() + 3, strata.size());  // fractions of strata that no part can have
  for (int64_t stratum = 0; stratum < 7; ++stratum) {
    auto count = [&](const std::vector<int64_t>& part) {
      return std::count_if(part.begin(), part.end(), [&](int64_t i) { return strata[size_t(i)] == stratum; });
    };
    const auto all = std::count(strata.begin(), strata.end(), stratum);
    EXPECT_NEAR(double(count(parts.search)), 0.5 * double(all), 1.5) << stratum;
    EXPECT_NEAR(double(count(parts.holdout)), 0.3 * double(all), 1.5) << stratum;
  }
  EXPECT_EQ(split(strata, {}, 9).search, parts.search);
  EXPECT_NE(split(strata, {}, 10).search, parts.search);
  Parts few = split(strata, {.most_search = 100, .most_selection = 50, .most_holdout = 60}, 9);
  EXPECT_NEAR(double(few.search.size()), 100, 7);
  EXPECT_NEAR(double(few.holdout.size()), 60, 7);
}

TEST(Rescale, GivesTheLogitsThatWereAskedFor) {
  Fixture at(sound().graph);
  Problem problem = at.problem();
  std::vector<double> shift;
  for (int c = 0; c < 10; ++c) shift.push_back(0.1 * c - 0.3);
  Rescaled rescaled = rescale(problem, 0.5, shift);
  ASSERT_EQ(rescaled.why_not, "");
  Logits before = logits_of(problem, problem.parts.selection);
  stream::Subject changed = edited(problem, rescaled.edits);
  Problem other{changed, at.settings, at.layers};
  at::Tensor after = logits_of(other, problem.parts.selection).values;
  at::Tensor wanted = before.values * 0.5 + at::tensor(shift, at::kDouble);
  EXPECT_LT((after - wanted).abs().max().item<double>(), 1e-4);
}

TEST(Bias, BringsBackShiftedAnswers) {
  model::Graph graph = sound().graph;
  std::vector<model::Layer> layers = executor::find_layers(graph);
  edits::apply(graph, edits::operate(graph, layers.back(), 4, {edits::Target::kBias, edits::Change::kSet, 12}, 1));
  Fixture at(graph);
  Problem problem = at.problem();
  Outcome outcome = mend(problem, "bias", {});
  EXPECT_EQ(outcome.verdict, Verdict::kRepaired) << outcome.reason;
  EXPECT_GT(outcome.after.result.accuracy, outcome.before.result.accuracy + 0.2);
  EXPECT_LT(outcome.p, 1e-6);
  EXPECT_EQ(outcome.flips.net(), outcome.flips.fixed - outcome.flips.broken);
  EXPECT_EQ(int64_t(outcome.list.size()), outcome.flips.fixed + outcome.flips.broken);
}

TEST(Temperature, IsFoundHoweverFarOffItIs) {
  std::vector<double> losses;
  for (double factor : {1.0, 100.0, 0.01}) {
    model::Graph graph = sound().graph;
    Fixture plain(graph);
    edits::apply(graph, rescale(plain.problem(), factor, {}).edits);
    Fixture at(graph);
    Problem problem = at.problem();
    Found found = set_temperature(problem, problem.budget);
    ASSERT_FALSE(found.candidates.empty());
    losses.push_back(found.candidates[0].selection.loss);
  }
  EXPECT_NEAR(losses[1], losses[0], 0.002 * losses[0]);
  EXPECT_NEAR(losses[2], losses[0], 0.002 * losses[0]);
}

TEST(Temperature, LowersTheLossAndChangesNoAnswer) {
  model::Graph graph = sound().graph;
  Fixture loud(graph);
  Rescaled loudly = rescale(loud.problem(), 6, {});
  edits::apply(graph, loudly.edits);
  Fixture at(graph);
  Problem problem = at.problem();
  Outcome outcome = mend(problem, "temperature", {});
  EXPECT_LT(outcome.after.result.loss, outcome.before.result.loss);
  EXPECT_EQ(outcome.flips.fixed + outcome.flips.broken, 0);
  EXPECT_EQ(outcome.verdict, Verdict::kRepaired);
  Fixture by_loss(graph, {.metric = "log_loss"});
  Problem same = by_loss.problem();
  EXPECT_EQ(mend(same, "temperature", {}).verdict, Verdict::kRepaired);
}

double share_right(const Problem& problem) {
  double hits = 0;
  for (const SampleRow& row : problem.rows) hits += row.right == SampleRow::kRight;
  return hits / double(problem.rows.size());
}

void win_back(const char* kind) {
  Fixture fine(sound().graph);
  const double whole = share_right(fine.problem());
  std::string unit;
  for (uint64_t seed = 1; seed < 60; ++seed) {
    Fixture at(damaged(kind, "fc2", seed, &unit));
    Problem problem = at.problem(1e12);  // ends by epochs
    const double lost = whole - share_right(problem);
    if (lost < 0.02) continue;
    SCOPED_TRACE(fmt::format("{} {} lost {}", kind, unit, lost));
    Outcome outcome = mend(problem, "surgical", {});
    EXPECT_EQ(outcome.verdict, Verdict::kRepaired) << outcome.reason;
    EXPECT_GT(outcome.after.result.accuracy - outcome.before.result.accuracy, 0.6 * lost);
    // Everything else is as it was.
    const Candidate& best = *outcome.tried[size_t(outcome.chosen)].best;
    std::set<std::string> named(best.units.begin(), best.units.end());
    for (const edits::Edit& edit : best.edits) EXPECT_TRUE(named.count(edit.unit)) << edit.unit;
    const std::string count = with_commas(outcome.tried[size_t(outcome.chosen)].weights);
    EXPECT_TRUE(best.words.ends_with("(" + count + " weights)")) << best.words;
    return;
  }
  ADD_FAILURE() << kind << ": no unit of fc2 matters";
}

TEST(Surgical, WinsBackWhatADamagedUnitCost) { win_back("random-weights"); }
TEST(SlowSurgical, WinsBackWhatADamagedUnitCost) {
  for (const char* kind : {"saturated", "zeroed"}) win_back(kind);
}

TEST(Surgical, TakesTheUnitsItIsGiven) {
  Fixture at(damaged("random-weights", "fc2", 4));
  Problem problem = at.problem(5e9);
  problem.units = {{1, 3}};
  Outcome outcome = mend(problem, "surgical", {});
  ASSERT_GE(outcome.chosen, 0);
  EXPECT_EQ(outcome.tried[size_t(outcome.chosen)].best->units, std::vector<std::string>{"fc2/3"});
}

TEST(UnitFit, NumberOfWorkersChangesNothing) {
  Fixture at(damaged("random-weights", "fc2", 4));
  std::vector<std::vector<edits::Edit>> found;
  for (int jobs : {1, 3}) {
    Problem problem = at.problem();
    problem.jobs = jobs;
    UnitFit fit(problem, {{1, 2}, {0, 5}});
    found.push_back(fit.run({.most_epochs = 1}));
    EXPECT_EQ(fit.weights(), 25 + 785);
  }
  EXPECT_EQ(found[0], found[1]);
}

TEST(Retrain, Helps) {
  Fixture at(damaged("random-weights", "fc2", 4));
  Problem problem = at.problem(8e9);
  Outcome outcome = mend(problem, "retrain", {});
  ASSERT_GE(outcome.chosen, 0);
  EXPECT_GT(outcome.after.result.accuracy, outcome.before.result.accuracy);
}

TEST(Arachne, ChangesAFewWeightsOfTheLastLayers) {
  Fixture at(damaged("random-weights", "fc2", 4));
  Problem problem = at.problem(8e9);
  Found found = arachne(problem, problem.budget);
  ASSERT_FALSE(found.candidates.empty()) << found.why_not;
  std::set<std::string> parameters;
  for (const edits::Edit& edit : found.candidates[0].edits) parameters.insert(edit.parameter);
  for (const std::string& name : parameters) EXPECT_TRUE(name.starts_with("fc2") || name.starts_with("fc3")) << name;
}

TEST(Arachne, SwarmAndPublishedFormsSearchTheSameWeights) {
  Fixture at(damaged("random-weights", "fc2", 4));
  Problem problem = at.problem(8e9);
  const double before = evaluate(problem, {}, problem.parts.selection).figure.loss;
  Found swarm = arachne_pso(problem, problem.budget);
  ASSERT_FALSE(swarm.candidates.empty()) << swarm.why_not;
  EXPECT_EQ(swarm.candidates[0].method, "arachne-pso");
  EXPECT_LT(swarm.candidates[0].selection.loss, before);  // it began at the network as it is
  problem.sbfl.as_published = true;
  for (Found (*search)(const Problem&, Budget&) : {arachne, arachne_pso}) {
    Budget budget = Budget::of_work(8e9);
    Found found = search(problem, budget);
    ASSERT_FALSE(found.candidates.empty()) << found.why_not;
    for (const edits::Edit& edit : found.candidates[0].edits)
      EXPECT_TRUE(edit.parameter.starts_with("fc2") || edit.parameter.starts_with("fc3")) << edit.parameter;
  }
}

TEST(Choice, OfRepairsThatCannotBeToldApartTheSmallestIsTaken) {
  // Shifted biases can be mended in ten numbers, in a few units, or in all weights.
  model::Graph graph = sound().graph;
  std::vector<model::Layer> layers = executor::find_layers(graph);
  edits::apply(graph, edits::operate(graph, layers.back(), 4, {edits::Target::kBias, edits::Change::kSet, 12}, 1));
  Fixture at(graph);
  Problem problem = at.problem(8e9);
  Outcome outcome = mend(problem, "auto", {});
  ASSERT_GE(outcome.chosen, 0);
  const Tried& chosen = outcome.tried[size_t(outcome.chosen)];
  EXPECT_EQ(chosen.method, "bias");
  EXPECT_LE(chosen.weights, 10);
  const Tried* best = &chosen;
  for (const Tried& one : outcome.tried)
    if (one.best && one.best->selection.score > best->best->selection.score) best = &one;
  // Where another one scored higher, the sentence says which gave way.
  EXPECT_EQ(outcome.smaller.empty(), best == &chosen) << outcome.smaller;
  EXPECT_NE((best == &chosen ? chosen.method : outcome.smaller).find(best->method), std::string::npos);
}

int64_t right_of(const Evaluation& evaluation) {
  return std::count_if(evaluation.rows.begin(), evaluation.rows.end(),
                       [](const SampleRow& row) { return row.right == SampleRow::kRight; });
}

/// Inputs that only the first, and that only the second gets right.
std::pair<int64_t, int64_t> apart(const Evaluation& a, const Evaluation& b) {
  std::pair<int64_t, int64_t> out;
  for (size_t i = 0; i < a.rows.size(); ++i) {
    const bool x = a.rows[i].right == SampleRow::kRight, y = b.rows[i].right == SampleRow::kRight;
    out.first += x && !y, out.second += y && !x;
  }
  return out;
}

TEST(Choice, ALargerChangeIsTakenOnlyWhereASmallerOneIsWorseBeyondChance) {
  for (uint64_t seed : {4}) {
    Fixture at(damaged("random-weights", "fc2", seed));
    Problem problem = at.problem(2e10);
    Outcome outcome = mend(problem, "auto", {});
    if (outcome.chosen < 0) continue;
    const Tried& chosen = outcome.tried[size_t(outcome.chosen)];
    const Tried* best = &chosen;
    int64_t states = 0;
    for (const Tried& one : outcome.tried) {
      states += one.looked_at;
      if (!one.best) continue;
      EXPECT_GE(one.looked_at, 1) << one.method;
      EXPECT_EQ(one.selection.rows.size(), problem.parts.selection.size());
      if (right_of(one.selection) > right_of(best->selection)) best = &one;
    }
    const double level = 0.05 / double(states);
    const auto [c, b] = apart(chosen.selection, best->selection);
    EXPECT_GT(stats::sign_test(c, b), level) << chosen.method << " against " << best->method;
    const double now = evaluate(problem, {}, problem.parts.selection).figure.score;
    for (const Tried& one : outcome.tried) {
      if (!one.best || one.weights >= chosen.weights || one.best->selection.score <= now) continue;
      const auto [own, other] = apart(one.selection, best->selection);
      const auto [better, worse] = apart(one.holdout, best->holdout);
      const bool worse_to_select = other > own && stats::sign_test(own, other) <= level;
      const bool worse_held_out = double(worse - better) > std::sqrt(double(better + worse));
      EXPECT_TRUE(worse_to_select || worse_held_out) << one.method << " is smaller than " << chosen.method;
    }
  }
}

TEST(Judge, WhatBreaksMoreThanItFixesIsRefused) {
  Fixture at(sound().graph);
  Problem problem = at.problem();
  Candidate bad{
      "edits", "all of a unit",
      edits::operate(at.subject.graph, at.layers[1], 0, {edits::Target::kWeights, edits::Change::kSet, 2}, 1)};
  EXPECT_EQ(judge_edits(problem, bad).verdict, Verdict::kRefuse);
  EXPECT_THROW(mend(problem, "surgcal", {}), InputError);
}

Round round_of(double loss, double accuracy) { return {loss, accuracy, {}, {}}; }

TEST(Follower, StopsAsTheRuleSays) {
  // Corrected: an offset is patience.
  Follower accuracy({StopRule::kAccuracy, 0, 0.01, true, false}, 1, 0.8);
  EXPECT_TRUE(accuracy.goes_on(round_of(1, 0.795)));
  EXPECT_FALSE(accuracy.goes_on(round_of(1, 0.789)));  // the offset is 0.005 by now
  EXPECT_EQ(accuracy.kept(), 1);
  Follower loss({StopRule::kLoss, 0.005, 0, true, false}, 1, 0.8);
  EXPECT_TRUE(loss.goes_on(round_of(1.004, 0.1)));
  EXPECT_FALSE(loss.goes_on(round_of(1.0075, 0.9)));
  // As published, the loss offset makes it stop sooner, and the rejected round stays in.
  Follower published({StopRule::kLoss, 0.005, 0, true, true}, 1, 0.8);
  EXPECT_FALSE(published.goes_on(round_of(0.996, 0.9)));
  EXPECT_EQ(published.kept(), 1);
  Follower both({StopRule::kBoth, 0, 0, false, false}, 1, 0.8), either({StopRule::kEither, 0, 0, false, false}, 1, 0.8);
  EXPECT_TRUE(both.goes_on(round_of(2, 0.9)));
  EXPECT_FALSE(either.goes_on(round_of(2, 0.9)));
  EXPECT_EQ(parse_when("both"), StopRule::kBoth);
  EXPECT_THROW(parse_when("acuracy"), InputError);
}

TEST(NumpyOrder, GivesEqualScoresTheirPlacesAsNumpyDoes) {
  // numpy.argsort of NumPy 1.24.4.
  const std::vector<double> twenty = {0.5, 0.75, 0.25, 0.5,  1,    1,   0.25, 0.25, 0,    0.5,
                                      0,   0.5,  0.75, 0.25, 0.75, 0.5, 0,    0.5,  0.25, 0.5};
  EXPECT_EQ(numpy_order(twenty),
            (std::vector<size_t>{16, 8, 10, 2, 13, 6, 7, 18, 0, 17, 15, 9, 3, 11, 19, 12, 14, 1, 5, 4}));
  std::vector<double> many;  // quarters, 64 of them
  for (const char c : std::string("1314223211032141213221111114410133020234133402423232000143323344"))
    many.push_back((c - '0') / 4.0);
  EXPECT_EQ(numpy_order(many),
            (std::vector<size_t>{34, 54, 53, 52, 44, 36, 30, 10, 23, 24, 25, 26, 0,  22, 40, 55, 29, 21, 31, 17, 15, 13,
                                 9,  8,  2,  19, 47, 49, 51, 4,  37, 7,  35, 45, 59, 12, 16, 20, 5,  57, 58, 60, 61, 50,
                                 48, 1,  41, 32, 42, 18, 6,  38, 33, 11, 14, 27, 28, 43, 56, 46, 3,  39, 62, 63}));
  EXPECT_EQ(numpy_order({0, 0, 0, -1}), (std::vector<size_t>{3, 0, 1, 2}));  // few: by place
}

TEST(Trajectory, MutatesTheMostSuspiciousFirstAndAsPublishedTheLeast) {
  Fixture at(damaged("random-weights", "fc2", 4));
  Problem problem = at.problem();
  SbflOptions options;
  options.measure = localise::find_measure("ochiai");
  options.operation = {edits::Target::kBias, edits::Change::kSet, 0.5};
  Trajectory right(problem, options, problem.parts.search);
  options.as_published = true;
  Trajectory published(problem, options, problem.parts.search);
  std::vector<std::string> first, last;
  while (const Round* round = right.next()) first.push_back(round->units.at(0));
  while (const Round* round = published.next()) last.insert(last.begin(), round->units.at(0));
  EXPECT_EQ(first.size(), 40u);
  EXPECT_EQ(first[0], last[0]);
  EXPECT_EQ(std::set(first.begin(), first.end()), std::set(last.begin(), last.end()));  // ties go another way
  EXPECT_EQ(right.rounds().back().loss, published.rounds().back().loss);  // biases set to a value, in any order
}

/// The listing takes row j of a dense kernel, that is input j; behind maps Keras counts channels fastest.
TEST(Trajectory, AsPublishedADenseUnitNamesAnInputOfItsLayer) {
  zoo::Builder b("listing", zoo::Scheme::kHe, 3);
  model::ValueId x = b.max_pool(b.relu(b.conv("conv1", b.input("x", {1, 28, 28}), 1, 3, {.kernel = 3, .padding = 1})));
  x = b.relu(b.dense("fc1", b.flatten(x), 3 * 14 * 14, 5));
  Fixture at(b.finish(b.dense("fc2", x, 5, 10), "y", 10));
  Problem problem = at.problem();
  SbflOptions options;
  options.operation = {edits::Target::kWeights, edits::Change::kSet, 7};
  options.as_published = true;
  const std::vector<int64_t> few = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  Trajectory trajectory(problem, options, few);
  const model::Graph* before = &at.subject.graph;
  int64_t seen = 0;
  while (const Round* round = trajectory.next()) {
    if (!round->units.at(0).starts_with("fc1/")) continue;
    const int64_t unit = std::stoll(round->units[0].substr(4));
    model::Graph now = *before;
    edits::apply(now, round->edits);
    for (const auto& [id, constant] : now.constants) {
      if (now.values[size_t(id)].name != "fc1.weight") continue;
      at::Tensor sevens = constant.value.eq(7).reshape({5, 588});  // units × inputs, channels slowest
      // Channel `unit`, position 0: all weights that leave it. Units from 3 on: the next position.
      EXPECT_TRUE(sevens.select(1, unit % 3 * 196 + unit / 3).all().item<bool>()) << unit;
      ++seen;
    }
  }
  EXPECT_EQ(seen, 5);
}

TEST(Trajectory, FiguresAreThoseOfTheEditedNetwork) {
  Fixture at(damaged("random-weights", "fc2", 4));
  Problem problem = at.problem();
  for (bool published : {false, true}) {
    SbflOptions options;
    options.operation = {edits::Target::kWeights, edits::Change::kScaleGaussEach, 1};
    options.most_rounds = 3, options.at_a_time = 2, options.refresh = !published, options.as_published = published;
    Trajectory trajectory(problem, options, problem.parts.search);
    while (const Round* round = trajectory.next()) {
      EXPECT_EQ(round->units.size(), 2u);
      Figure twin = evaluate(problem, round->edits, problem.parts.search).figure;
      EXPECT_EQ(twin.accuracy, round->accuracy);
      EXPECT_NEAR(twin.loss, round->loss, 1e-9);
    }
    EXPECT_EQ(trajectory.rounds().size(), 3u);
  }
}

}  // namespace
}  // namespace netmend::repair
