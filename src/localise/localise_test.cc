#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "localise/candidates.h"
#include "localise/gradient.h"
#include "localise/ranking.h"
#include "zoo/zoo.h"

namespace netmend::localise {
namespace {

/// Each measure once more, as its paper prints it.
double by_hand(const std::string& name, double as, double af, double ns, double nf, double star) {
  double fails = af + nf, passes = as + ns;
  if (name == "tarantula") return (af / fails) / (af / fails + as / passes);
  if (name == "ochiai") return af / (std::sqrt(fails) * std::sqrt(af + as));
  if (name == "dstar") return std::exp(star * std::log(af)) / (as + nf);
  if (name == "jaccard") return af / (fails + as);
  if (name == "barinel") return af / (af + as);
  if (name == "op2") return af - as / (passes + 1);
  if (name == "zoltar") return af / (fails + as + 10000 * nf * as / af);
  if (name == "wong2") return af - as;
  ADD_FAILURE() << name << " has no twin";
  return 0;
}

TEST(Measures, EqualTheirFormulas) {
  Random random(1);
  for (int round = 0; round < 200; ++round) {
    double as = 1 + double(random.below(50)), af = 1 + double(random.below(50)), ns = 1 + double(random.below(50)),
           nf = 1 + double(random.below(50));
    for (const Measure& measure : measures()) {
      if (!measure.score || measure.name == "random") continue;
      for (double star : {2.0, 3.0, 0.5}) {
        double expected = by_hand(std::string(measure.name), as, af, ns, nf, star);
        EXPECT_NEAR(measure.score({as, af, ns, nf}, {star, 0}), expected, 1e-9 * std::abs(expected) + 1e-12)
            << measure.name;
      }
    }
  }
}

TEST(Measures, StayFiniteWhereCountsVanish) {
  for (const Measure& measure : measures()) {
    if (!measure.score) continue;
    std::vector<double> scores;
    for (double as : {0, 5})
      for (double af : {0, 5})
        for (double ns : {0, 5})
          for (double nf : {0, 5}) scores.push_back(measure.score({as, af, ns, nf}, {}));
    finite_scores(scores);
    for (double score : scores) EXPECT_TRUE(std::isfinite(score)) << measure.name;
    // A unit that is active exactly when the network fails is never less suspicious than one that never is.
    std::vector<double> two{measure.score({0, 7, 9, 0}, {}), measure.score({9, 0, 0, 7}, {})};
    finite_scores(two);
    EXPECT_TRUE(measure.name == "random" || two[0] > two[1]) << measure.name;
  }
}

TEST(Measures, APerfectSuspectIsTheLargestPlusOne) {
  std::vector<double> scores{2.5, INFINITY, NAN, -3, INFINITY};
  finite_scores(scores);
  EXPECT_EQ(scores, (std::vector<double>{2.5, 3.5, 0, -3, 3.5}));
}

TEST(Measures, AreFoundByName) {
  EXPECT_EQ(find_measure("Ochiai").measure->name, "ochiai");
  EXPECT_EQ(find_measure("dstar").star, 3);
  EXPECT_EQ(find_measure("D*").measure->name, "dstar");
  EXPECT_EQ(find_measure("dstar2").star, 2);
  EXPECT_EQ(find_measure("dstar:2.5").star, 2.5);
  EXPECT_EQ(find_measure("d*4").name(), "dstar4");
  for (const char* bad : {"", "dstar-1", "dstarx", "nonsense", "dstar0", "dstarnan"})
    EXPECT_THROW(find_measure(bad), InputError) << bad;
  try {
    find_measure("ochia");
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("ochiai"), std::string::npos);
  }
}

TEST(Measures, ChanceIsTheScoreOfAnUnrelatedUnit) {
  Choice tarantula = find_measure("tarantula");
  EXPECT_NEAR(chance_score({30, 20, 60, 10}, tarantula), 0.5, 1e-12);
  // Counts that are even already score what chance would.
  Counts even{30, 10, 60, 20};
  for (const Measure& measure : measures()) {
    if (!measure.score || measure.name == "random") continue;
    EXPECT_NEAR(chance_score(even, {&measure}), measure.score(even, {}), 1e-9) << measure.name;
  }
  EXPECT_EQ(chance_score({0, 0, 5, 5}, tarantula), 0);
}

std::vector<UnitPlace> places_of(std::vector<int64_t> units) {
  std::vector<model::Layer> layers(units.size());
  for (size_t l = 0; l < units.size(); ++l) layers[l].units = units[l];
  return unit_places(layers);
}

TEST(Ranking, TiesGoToTheDeeperLayerThenToTheSmallerUnit) {
  at::Tensor scores = at::tensor({1.0, 2.0, 1.0, 1.0, 1.0}, at::kDouble).unsqueeze(0);
  Ranking ranking = rank_units(places_of({3, 2}), scores, 10);
  std::vector<size_t> order;
  for (const RankedUnit& unit : ranking.units) order.push_back(unit.place);
  EXPECT_EQ(order, (std::vector<size_t>{1, 3, 4, 0, 2}));
  EXPECT_EQ(ranking.top, 5);
  EXPECT_TRUE(std::isnan(ranking.units[0].in_top));
  EXPECT_EQ(ranking.random_rank(), 3);
  EXPECT_EQ(ranking.layers[0].layer, 0u);  // 4/3 against 1
}

TEST(Ranking, EqualsASlowTwin) {
  const int64_t draws = 41, units = 12, top = 4;
  Random random(5);
  at::Tensor scores = at::empty({draws, units}, at::kDouble);
  for (int64_t i = 0; i < scores.numel(); ++i)
    scores.data_ptr<double>()[i] = double(random.below(6)) + 3 * double(i % units == 7);
  std::vector<UnitPlace> places = places_of({5, 4, 3});
  Ranking ranking = rank_units(places, scores, top);
  EXPECT_EQ(ranking.resamples, draws - 1);
  auto rank = [&](int64_t draw, size_t unit) {
    int64_t before = 1;
    for (size_t v = 0; v < size_t(units); ++v) {
      double a = scores[draw][int64_t(v)].item<double>(), b = scores[draw][int64_t(unit)].item<double>();
      bool tie_first = places[v].layer > places[unit].layer || (places[v].layer == places[unit].layer && v < unit);
      before += a > b || (a == b && v != unit && tie_first);
    }
    return before;
  };
  for (size_t i = 0; i < ranking.units.size(); ++i) {
    const RankedUnit& unit = ranking.units[i];
    EXPECT_EQ(rank(0, unit.place), int64_t(i) + 1);
    std::vector<int64_t> ranks;
    for (int64_t d = 1; d < draws; ++d) ranks.push_back(rank(d, unit.place));
    std::sort(ranks.begin(), ranks.end());
    EXPECT_NEAR(unit.in_top,
                double(std::count_if(ranks.begin(), ranks.end(), [&](int64_t r) { return r <= top; })) / 40, 1e-12);
    // "First of N units in X of 100 resamples" counts being first, not being among the first few.
    EXPECT_NEAR(unit.first, double(std::count(ranks.begin(), ranks.end(), 1)) / 40, 1e-12);
    EXPECT_EQ(unit.rank_low, ranks[0]);
    EXPECT_EQ(unit.rank_high, ranks[39]);
  }
  std::map<size_t, std::pair<double, double>> sums;
  for (size_t u = 0; u < size_t(units); ++u) {
    auto& [sum, count] = sums[places[u].layer];
    sum += scores[0][int64_t(u)].item<double>(), ++count;
  }
  double firsts = 0, chance = 0;
  for (const RankedLayer& layer : ranking.layers) {
    EXPECT_NEAR(layer.mean, sums[layer.layer].first / sums[layer.layer].second, 1e-12);
    firsts += layer.first, chance += layer.by_chance;
  }
  EXPECT_NEAR(firsts, 1, 1e-9);
  EXPECT_NEAR(chance, double(top), 1e-9);
}

/// Inputs of which each fails, and drives each of two units, with some chance.
Evidence made_up_evidence(int64_t inputs) {
  Evidence evidence{at::zeros({2, observers::kSampleGroups, 2}, at::kDouble),
                    at::zeros({2, observers::kSampleGroups}, at::kDouble)};
  for (int64_t i = 0; i < inputs; ++i) {
    Random random(3, uint64_t(i));
    int64_t side = random.uniform() < 0.1 ? 0 : 1, group = observers::sample_group(i);
    evidence.inputs[side][group] += 1;
    for (int64_t u = 0; u < 2; ++u)
      if (random.uniform() < (u == 0 ? 0.3 : 0.8)) evidence.sums[side][group][u] += 1;
  }
  return evidence;
}

TEST(Draws, BeginWithTheEvidenceAndDependOnTheSeedAlone) {
  Evidence evidence = made_up_evidence(500);
  Draws a = draw(evidence, 30, 7), b = draw(evidence, 30, 7), c = draw(evidence, 30, 8), d = draw(evidence, 10, 7);
  EXPECT_TRUE(a.failing.equal(b.failing) && a.passing.equal(b.passing));
  EXPECT_FALSE(a.failing.equal(c.failing));
  EXPECT_TRUE(a.failing.narrow(0, 0, 11).equal(d.failing));
  EXPECT_TRUE(a.failing[0].equal(evidence.sums[0].sum(0)));
  Counts counts = a.counts(0, 1);
  EXPECT_EQ(counts.af + counts.nf + counts.as + counts.ns, 500);
  Choice random = find_measure("random");
  EXPECT_TRUE(spectrum_scores(a, random, 1).equal(spectrum_scores(a, random, 1)));
}

TEST(Draws, SpreadAsInputsDrawnOneByOneWould) {
  const int64_t inputs = 4000;
  Draws draws = draw(made_up_evidence(inputs), 2000, 1);
  for (int64_t unit = 0; unit < 2; ++unit) {
    at::Tensor counts = draws.failing.select(1, unit).narrow(0, 1, 2000);
    double share = draws.failing[0][unit].item<double>() / double(inputs);
    double expected = std::sqrt(double(inputs) * share * (1 - share));
    // The spread over 128 groups is known to one part in sixteen, give or take.
    EXPECT_NEAR(counts.std().item<double>(), expected, 0.25 * expected);
    EXPECT_NEAR(counts.mean().item<double>(), share * double(inputs), 0.3 * expected);
  }
}

TEST(Draws, ThoseWithoutAFailureSayNothing) {
  Evidence evidence = made_up_evidence(300);
  evidence.sums[0].zero_(), evidence.inputs[0].zero_();
  evidence.inputs[0][5] = 1, evidence.sums[0][5][0] = 1;
  Draws draws = draw(evidence, 100, 1);
  EXPECT_LT(draws.resamples(), 90);
  EXPECT_GT(draws.resamples(), 40);
  for (double failing : draws.failing_inputs) EXPECT_GT(failing, 0);
}

class RandomData : public dataset::Dataset {
 public:
  RandomData(int64_t count, std::vector<int64_t> shape) {
    std::vector<int64_t> sizes = shape;
    sizes.insert(sizes.begin(), count);
    int64_t numbers = 1;
    for (int64_t size : sizes) numbers *= size;
    x_ = at::sin(at::arange(numbers, at::kFloat) * 1.7).view(sizes);
    info_.spec = "random";
    info_.size = count;
    info_.features = {{"x", shape, at::kFloat, false}};
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
  std::shared_ptr<RandomData> data;
  stream::Subject subject;
  observers::PredictionSettings settings;
  std::vector<model::Layer> layers;

  Fixture(const std::string& network, int64_t count, std::vector<int64_t> shape)
      : data(std::make_shared<RandomData>(count, std::move(shape))), subject(make(network, data)) {
    executor::Head head = executor::find_head(subject.graph, subject.graph.outputs[0]);
    dataset::Batch batch = data->read(std::vector<int64_t>{0, 1, 2, 3});
    at::Tensor output = stream::run_few(subject, {head.output}, batch)[0];
    settings = observers::infer_task(subject.graph, head, data->info(), batch, output);
    layers = executor::find_layers(subject.graph);
  }
  static stream::Subject make(const std::string& network, std::shared_ptr<RandomData> data) {
    model::Graph graph = zoo::make(network);
    std::vector<model::ValueId> outputs = graph.outputs;
    return {network, std::move(graph), data, outputs};
  }
};

/// The gradient of the losses' sum when a unit's activations grow in proportion, by two runs from the layer on.
double gradient_by_differences(const Fixture& fixture, const model::Layer& layer, int64_t unit,
                               const std::vector<int64_t>& samples) {
  at::NoGradGuard no_grad;
  dataset::Batch batch = fixture.data->read(samples);
  executor::Request first, rest;
  first.wanted = {layer.post};
  rest.given = {layer.post};
  rest.wanted = {fixture.settings.head.logits};
  first.precision = rest.precision = at::kDouble;
  first.mode = rest.mode = executor::Mode::kPlain;
  executor::Executor behind(fixture.subject.batching.graph, rest);
  at::Tensor value =
      executor::Executor(fixture.subject.batching.graph, first).run(fixture.subject.feed.inputs(batch))[0];
  auto loss = [&](double factor) {
    at::Tensor moved = value.clone();
    moved.select(layer.unit_axis, unit).mul_(factor);
    at::Tensor columns = observers::as_columns(behind.run(std::vector<at::Tensor>{moved})[0]);
    return -at::log_softmax(columns, 1).gather(1, batch.labels.unsqueeze(1)).sum().item<double>();
  };
  return (loss(1 + 1e-4) - loss(1 - 1e-4)) / 2e-4;
}

void expect_gradients(const Fixture& fixture, const std::vector<model::Layer>& layers) {
  std::vector<int64_t> failing{1, 4, 5, 9, 70, 71}, passing{0, 2, 3, 80};
  Evidence evidence = gradient_evidence(fixture.subject, fixture.settings, layers, failing, passing, 2);
  EXPECT_EQ(evidence.inputs.sum().item<double>(), 10);
  at::Tensor sums = evidence.sums.sum(1);
  double largest = sums.abs().max().item<double>();
  EXPECT_GT(largest, 0);
  int64_t first = 0;
  for (const model::Layer& layer : layers) {
    for (int64_t unit = 0; unit < std::min<int64_t>(layer.units, 6); ++unit) {
      EXPECT_NEAR(sums[0][first + unit].item<double>(), gradient_by_differences(fixture, layer, unit, failing),
                  1e-3 * largest)
          << layer.name << "/" << unit;
      EXPECT_NEAR(sums[1][first + unit].item<double>(), gradient_by_differences(fixture, layer, unit, passing),
                  1e-3 * largest);
    }
    first += layer.units;
  }
}

TEST(Gradient, EqualsFiniteDifferences) {
  Fixture dense("mlp:12-9-7-4", 100, {12});
  expect_gradients(dense, dense.layers);
  Fixture conv("lenet1", 100, {1, 28, 28});
  expect_gradients(conv, conv.layers);
}

TEST(Gradient, WorkersChangeNoBitAndInputsRunAloneToo) {
  Fixture fixture("mlp:12-9-7-4", 400, {12});
  std::vector<int64_t> failing, passing;
  for (int64_t i = 0; i < 400; ++i) (i % 3 ? passing : failing).push_back(i);
  auto run = [&](int jobs) {
    return gradient_evidence(fixture.subject, fixture.settings, fixture.layers, failing, passing, jobs).sums;
  };
  at::Tensor alone = run(1);
  for (int jobs : {2, 5}) EXPECT_TRUE(run(jobs).equal(alone));
  fixture.subject.batching.kind = executor::Batching::kOne;
  EXPECT_TRUE(at::allclose(run(2), alone, 1e-4, 1e-6));
}

TEST(Gradient, LossesAreThoseOfEveryTask) {
  observers::PredictionSettings settings;
  settings.head = {1, 0, executor::OutputKind::kSigmoid};
  settings.task = observers::Task::kBinary;
  at::Tensor logits = at::tensor({0.3, -1.2, 2.0}, at::kDouble).unsqueeze(1), yes = at::tensor({1, 0, 0}, at::kLong);
  at::Tensor p = logits.sigmoid();
  at::Tensor expected = at::cat({-p[0].log(), -(1 - p[1]).log(), -(1 - p[2]).log()});
  EXPECT_TRUE(at::allclose(losses(settings, logits, yes), expected));
  settings.head.logits = 1;  // the sigmoid is all there is
  EXPECT_TRUE(at::allclose(losses(settings, p, yes), expected));
  settings.task = observers::Task::kClasses;
  at::Tensor two = at::tensor({0.2, 0.8, 0.5, 0.5}, at::kDouble).view({2, 2});
  EXPECT_TRUE(
      at::allclose(losses(settings, two, at::tensor({1, 0}, at::kLong)), -at::tensor({0.8, 0.5}, at::kDouble).log()));
  settings.task = observers::Task::kNumber;
  EXPECT_TRUE(at::allclose(losses(settings, logits, at::tensor({0.3, 0.8, 0.0}, at::kDouble)),
                           at::tensor({0.0, 4.0, 4.0}, at::kDouble)));
}

TEST(Candidates, LeaveTheOutputLayerOutUnlessItIsNamed) {
  Fixture fixture("mlp:12-9-7-4", 8, {12});
  auto names = [&](const std::vector<std::string>& asked) {
    std::vector<std::string> found;
    for (const model::Layer& layer : candidates(fixture.layers, fixture.subject.graph, fixture.settings.head, 4, asked))
      found.push_back(layer.name);
    return found;
  };
  std::string first = fixture.layers[0].name, second = fixture.layers[1].name, last = fixture.layers[2].name;
  EXPECT_EQ(names({}), (std::vector<std::string>{first, second}));
  EXPECT_EQ(names({last, first}), (std::vector<std::string>{first, last}));
  EXPECT_THROW(names({first + "x"}), InputError);
  model::Graph linear = zoo::make("mlp:12-4");
  executor::Head head = executor::find_head(linear, linear.outputs[0]);
  EXPECT_EQ(candidates(executor::find_layers(linear), linear, head, 4).size(), 1u);
}

}  // namespace
}  // namespace netmend::localise
