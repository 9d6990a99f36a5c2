// Measures that look at weights: gradients of the loss, what would be, and Arachne's front.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"
#include "edits/operations.h"
#include "edits/places.h"
#include "faults/plant.h"
#include "localise/arachne.h"
#include "localise/blame.h"
#include "localise/candidates.h"
#include "localise/weight_gradient.h"
#include "stream/layers.h"
#include "training/trainer.h"
#include "zoo/zoo.h"

namespace netmend::localise {
namespace {

struct Fixture {
  stream::Subject subject;
  observers::PredictionSettings settings;
  std::vector<model::Layer> layers;
  std::vector<int64_t> failing, passing;
};

Fixture make(model::Graph graph, int64_t inputs) {
  std::shared_ptr<const dataset::Dataset> whole = dataset::open("glyphs:test");
  std::shared_ptr<const dataset::Dataset> data = dataset::subset(whole, stream::spread(whole->size(), inputs));
  executor::Head head = executor::find_head(graph, graph.outputs[0]);
  stream::Subject subject("network", graph, data, {head.output, head.logits});
  dataset::Batch few = data->read(stream::spread(data->size(), 8));
  auto settings =
      observers::infer_task(graph, head, data->info(), few, stream::run_few(subject, {head.output}, few)[0]);
  Fixture out{std::move(subject), std::move(settings), {}, {}, {}};
  out.layers = stream::find_layers(out.subject);
  observers::Predictions predictions(out.settings, true);
  stream::PassOptions how;
  how.quiet = true;
  auto state = stream::run_pass(out.subject, {&predictions}, how).collected[0].fold(predictions);
  for (const auto& row : dynamic_cast<observers::PredictionState&>(*state).rows)
    (row.right == 1 ? out.passing : out.failing).push_back(row.sample);
  return out;
}

model::Graph trained() {
  static const model::Graph made = [] {
    std::shared_ptr<const dataset::Dataset> whole = dataset::open("glyphs:train");
    model::Graph graph = zoo::make("mlp:784-24-16-10", {.seed = 1});
    training::Task task{"sound", graph, graph.outputs[0], dataset::subset(whole, stream::spread(whole->size(), 4000)),
                        nullptr, {}};
    task.options.epochs = 4, task.options.rate = 0.003;
    training::Trainer trainer(std::move(task));
    while (!trainer.done()) trainer.run_epoch();
    return trainer.result();
  }();
  return made;
}

double loss_sum(const Fixture& at, const std::vector<edits::Edit>& edits) {
  stream::Subject subject = at.subject;
  edits::apply(subject.batching.graph, edits);
  observers::Predictions predictions(at.settings, false);
  stream::PassOptions how;
  how.quiet = true;
  auto state = stream::run_pass(subject, {&predictions}, how).collected[0].fold(predictions);
  return dynamic_cast<observers::PredictionState&>(*state).loss;
}

TEST(WeightGradient, IsTheSlopeOfTheLoss) {
  for (const char* network : {"mlp:784-12-10", "mlp:784-8-6-10"}) {
    Fixture at = make(zoo::make(network, {.seed = 5}), 70);
    std::vector<model::ValueId> constants;
    for (const model::Layer& layer : at.layers) constants.push_back(layer.weight), constants.push_back(layer.bias);
    std::vector<int64_t> all(70);
    std::iota(all.begin(), all.end(), 0);
    auto one = weight_gradients(at.subject, at.settings, constants, all, 1),
         many = weight_gradients(at.subject, at.settings, constants, all, 3);
    Random random(2);
    for (model::ValueId id : constants) {
      EXPECT_TRUE(at::equal(one[id], many[id]));
      for (int trial = 0; trial < 4; ++trial) {
        int64_t position = int64_t(random.below(uint64_t(one[id].numel())));
        double value = at.subject.graph.constant(id).contiguous().view(-1)[position].item<double>(), step = 1e-3,
               sides[2];
        for (int side : {0, 1}) {
          double moved = value + (side ? step : -step);
          sides[side] = loss_sum(at, edits::cut(at.subject.graph, id, {&position, 1}, {&moved, 1}, ""));
        }
        double gradient = one[id].contiguous().view(-1)[position].item<double>();
        EXPECT_NEAR(gradient, (sides[1] - sides[0]) / (2 * step), 0.02 * std::abs(gradient) + 0.1) << network;
      }
    }
  }
}

Blame blame_by(const Fixture& at, const char* measure, int64_t tried = 64) {
  BlameOptions how;
  how.choices = {find_measure(measure)};
  how.resamples = 20;
  how.pass.quiet = true;
  how.ablation.tried = tried;
  return blame(at.subject, at.settings, candidates(at.layers, at.subject.graph, at.settings.head, at.settings.outputs),
               how);
}

TEST(Counterfactual, FindsAPlantedUnit) {
  for (const char* kind : {"random-weights", "saturated", "zeroed"}) {
    int64_t counted = 0, first = 0;
    const auto fine = int64_t(make(trained(), 1200).failing.size());
    for (uint64_t seed = 1; seed <= 60 && counted < 3; ++seed) {
      model::Graph graph = trained();
      faults::Fault fault =
          faults::plant(graph, executor::find_layers(graph), faults::find_kind(kind), {.layer = "fc2", .seed = seed});
      edits::apply(graph, fault.edits);
      Fixture at = make(graph, 1200);
      if (int64_t(at.failing.size()) < fine + 24) continue;  // cost nothing: nothing to find
      ++counted;
      Blame found = blame_by(at, "auto");
      for (size_t i = 0; i < 5; ++i) first += found.unit(found.located[0].ranking.units[i].place) == fault.units[0];
    }
    EXPECT_GE(counted, 1) << kind;
    EXPECT_GE(first, counted - 1) << kind;
  }
}

TEST(Counterfactual, SavesWhatItSays) {
  Fixture at = make(trained(), 400);
  std::vector<model::Layer> layers = candidates(at.layers, at.subject.graph, at.settings.head, at.settings.outputs);
  Ablation found = ablate(at.subject, at.settings, layers, at.failing, at.passing, {.inputs = 400, .tried = 0});
  ASSERT_EQ(found.saved.size(), 40u);
  const double base = loss_sum(at, {}) / 400;
  EXPECT_NEAR(found.loss, base, 1e-5);
  // A silent unit of a rectified layer is one without weights and bias.
  for (int64_t unit = 0; unit < 6; ++unit) {
    auto edits =
        edits::operate(at.subject.graph, layers[1], unit, {edits::Target::kWeights, edits::Change::kSet, 0}, 1);
    for (auto& edit :
         edits::operate(at.subject.graph, layers[1], unit, {edits::Target::kBias, edits::Change::kSet, 0}, 1))
      edits.push_back(edit);
    EXPECT_NEAR(found.by[size_t(24 + unit)][0], base - loss_sum(at, edits) / 400, 1e-5);
  }
  for (size_t p = 0; p < 40; ++p) EXPECT_TRUE(std::isfinite(found.saved[p]));
  Draws draws = draw(found.evidence, 0, 1);
  at::Tensor scores = total_scores(draws);
  for (size_t p = 0; p < 40; ++p) EXPECT_NEAR(scores[0][int64_t(p)].item<double>(), found.saved[p], 1e-9);
  Ablation few = ablate(at.subject, at.settings, layers, at.failing, at.passing, {.inputs = 400, .tried = 5});
  EXPECT_EQ(std::count(few.tried.begin(), few.tried.end(), true), 5);
}

TEST(Pareto, IsWhatNothingBeats) {
  Random random(4);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> a, b;
    for (int i = 0; i < 40; ++i) a.push_back(double(random.below(8))), b.push_back(double(random.below(8)));
    std::vector<size_t> front = pareto_front(a, b), twin;
    for (size_t i = 0; i < 40; ++i) {
      bool beaten = false;
      for (size_t j = 0; j < 40; ++j) beaten = beaten || (a[j] >= a[i] && b[j] >= b[i] && (a[j] > a[i] || b[j] > b[i]));
      if (!beaten) twin.push_back(i);
    }
    std::sort(front.begin(), front.end());
    EXPECT_EQ(front, twin);
  }
}

/// As published the factors are averaged over inputs before they are multiplied.
TEST(Arachne, AsPublishedMultipliesMeans) {
  Fixture at = make(zoo::make("mlp:784-6-10", {.seed = 8}), 60);
  ArachneOptions published;
  published.as_published = true;
  for (int64_t sample : at.passing) published.passing_classes.push_back(sample % 10);
  std::vector<BlamedWeight> front =
      arachne(at.subject, at.settings, at.layers, at.failing, at.failing, 2, nullptr, published);
  const at::Tensor w = at.subject.graph.constant(at.layers[0].weight).to(at::kDouble),
                   next = at.subject.graph.constant(at.layers[1].weight).to(at::kDouble);
  int64_t checked = 0;
  for (const BlamedWeight& one : front) {
    if (one.layer != 0) continue;
    const int64_t out = one.position / 784, in = one.position % 784;
    double share = 0, behind = 0;
    for (int64_t sample : at.failing) {
      const dataset::Batch batch = at.subject.data->read({&sample, 1});
      at::Tensor x = at.subject.feed.inputs(batch)[0].flatten().abs().to(at::kDouble);
      at::Tensor pre = stream::run_few(at.subject, {at.layers[0].pre}, batch)[0][0].to(at::kDouble);
      at::Tensor slope = ((pre > 0).to(at::kDouble) * next.sum(0)).abs();
      const double whole = (x * w[out].abs()).sum().item<double>(), all = slope.sum().item<double>();
      if (whole > 0) share += (x[in] * w[out][in].abs()).item<double>() / whole;
      if (all > 0) behind += slope[out].item<double>() / all;
    }
    const auto n = double(at.failing.size());
    const double impact = share / n * behind / n;
    EXPECT_NEAR(one.impact, impact / (1 + impact), 1e-4 * impact + 1e-9);  // the same inputs on both sides
    ++checked;
  }
  EXPECT_GT(checked, 0);
}

TEST(Arachne, EqualsItsFormulasOnADenseNetwork) {
  Fixture at = make(zoo::make("mlp:784-6-10", {.seed = 8}), 60);
  ASSERT_FALSE(at.failing.empty() || at.passing.empty());
  std::vector<BlamedWeight> front = arachne(at.subject, at.settings, at.layers, at.failing, at.passing, 2);
  ASSERT_FALSE(front.empty());
  // Forward impact of the last layer by hand, input by input.
  auto impact = [&](const std::vector<int64_t>& samples, int64_t out, int64_t in) {
    double front_sum = 0;
    for (int64_t sample : samples) {
      at::Tensor hidden =
          stream::run_few(at.subject, {at.layers[0].post}, at.subject.data->read({&sample, 1}))[0][0].abs().to(
              at::kDouble);
      at::Tensor row = at.subject.graph.constant(at.layers[1].weight)[out].abs().to(at::kDouble);
      double whole = (hidden * row).sum().item<double>();
      if (whole > 0) front_sum += (hidden[in] * row[in]).item<double>() / whole;
    }
    return front_sum / double(samples.size()) / 10;  // every output moves their sum alike: a tenth each
  };
  int checked = 0;
  for (const BlamedWeight& one : front) {
    EXPECT_GE(one.impact, 0);
    EXPECT_GE(one.gradient, 0);
    if (one.layer != 1 || checked++ > 3) continue;
    int64_t out = one.position / 6, in = one.position % 6;
    EXPECT_NEAR(one.impact, impact(at.failing, out, in) / (1 + impact(at.passing, out, in)), 1e-5);
  }
}

}  // namespace
}  // namespace netmend::localise
