#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <map>

#include "base/error.h"
#include "inputs/case_for_test.h"
#include "inputs/gradient_sign.h"
#include "inputs/noise.h"
#include "inputs/saliency_pair.h"
#include "stream/layers.h"
#include "training/trainer.h"

namespace netmend::inputs {
namespace {

/// The network as plainly as can be: raw bytes in 0 … 255 to logits.
at::Tensor twin_logits(const TestCase& test, const at::Tensor& units) {
  const dataset::Preprocess& p = test.data->info().preprocess;
  at::Tensor mean = at::tensor(p.mean, at::kFloat).reshape({1, -1, 1, 1}),
             deviation = at::tensor(p.std, at::kFloat).reshape({1, -1, 1, 1});
  executor::Request request;
  request.mode = executor::Mode::kPlain;
  return executor::Executor(test.subject.graph, request).run(std::vector<at::Tensor>{(units - mean) / deviation})[0];
}

at::Tensor twin_gradient(const TestCase& test, const at::Tensor& units, const at::Tensor& predictions) {
  at::AutoGradMode grad(true);
  at::Tensor leaf = units.detach().requires_grad_();
  at::Tensor loss = -at::log_softmax(twin_logits(test, leaf), 1).gather(1, predictions.unsqueeze(1)).sum();
  return torch::autograd::grad({loss}, {leaf})[0];
}

/// Signs of gradients that are nearly 0 may differ by rounding: such values do not count.
double share_equal(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).abs() < 1e-5).to(at::kDouble).mean().item<double>();
}

TEST(GradientSign, EqualsADirectTwin) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    auto test = random_case(seed, seed % 2 ? 3 : 1);
    Originals all = test->originals();
    Settings settings;
    settings.eps = 0.07, settings.steps = 6;
    at::Tensor x = all.units, low = (x - 0.07).clamp(0, 1), high = (x + 0.07).clamp(0, 1);
    auto step = [&](const at::Tensor& at, double size) {
      return at::minimum(at::maximum(at + size * twin_gradient(*test, at, all.predictions).sign(), low), high);
    };
    EXPECT_GT(share_equal(fgsm(*test->network, all, settings).units, step(x, 0.07)), 0.999);
    at::Tensor walked = x;
    for (int i = 0; i < 6; ++i) walked = step(walked, 0.07 / 5);
    EXPECT_GT(share_equal(bim(*test->network, all, settings).units, walked), 0.995);
    settings.as_published = "cleverhans";  // the same without the range
    EXPECT_GT(share_equal(fgsm(*test->network, all, settings).units,
                          x + 0.07 * twin_gradient(*test, x, all.predictions).sign()),
              0.999);
    walked = x;
    for (int i = 0; i < 6; ++i)
      walked = x + (walked + 0.07 / 5 * twin_gradient(*test, walked, all.predictions).sign() - x).clamp(-0.07, 0.07);
    EXPECT_GT(share_equal(bim(*test->network, all, settings).units, walked), 0.99);
    settings.as_published = "";
    walked = at::minimum(at::maximum(x + 0.07 * draw_uniform(all, settings, "pgd"), low), high);
    for (int i = 0; i < 6; ++i) walked = step(walked, 4 * 0.07 / 6);
    EXPECT_GT(share_equal(pgd(*test->network, all, settings).units, walked), 0.99);
  }
}

TEST(GradientSign, DoesNotVanishWhereTheNetworkIsSure) {
  at::Tensor scores = at::tensor({200.f, 0.f, -3.f}).unsqueeze(0), answer = at::zeros({1}, at::kLong);
  at::Tensor weights = away_from(scores, answer);
  EXPECT_FLOAT_EQ(weights[0][0].item<float>(), -1);
  EXPECT_NEAR(weights.sum().item<double>(), 0, 1e-6);
  EXPECT_GT(weights[0][1].item<float>(), 0.9);
}

TEST(GradientSign, LayoutDoesNotMatter) {
  auto first = random_case(3, 3, false), last = random_case(3, 3, true);
  Settings settings;
  settings.eps = 0.1;
  at::Tensor a = fgsm(*first->network, first->originals(), settings).units;
  at::Tensor b = fgsm(*last->network, last->originals(), settings).units.permute({0, 3, 1, 2});
  EXPECT_GT(share_equal(a, b), 0.999);
}

/// Networks that take one input at a time, or a fixed number of them, are attacked alike.
TEST(Network, BatchesDoNotMatter) {
  auto test = random_case(19, 3, false, 13);
  Originals all = test->originals();
  Settings settings;
  settings.eps = 0.1, settings.steps = 12, settings.step_size = 0.1;
  auto make = [&] {
    return std::vector<at::Tensor>{fgsm(*test->network, all, settings).units, jsma(*test->network, all, settings).units,
                                   carlini_wagner(*test->network, all, settings).units,
                                   test->network->scores(all, all.units)};
  };
  std::vector<at::Tensor> together = make();
  for (auto [kind, size] : {std::pair(executor::Batching::kOne, 0), std::pair(executor::Batching::kFixed, 5)}) {
    test->subject.batching.kind = kind, test->subject.batching.size = size;
    std::vector<at::Tensor> apart = make();
    EXPECT_GT(share_equal(together[0], apart[0]), 0.999);
    EXPECT_GT(share_equal(together[1], apart[1]), 0.99);
    EXPECT_LT((together[2] - apart[2]).abs().mean().item<double>(), 1e-2);
    EXPECT_TRUE(at::allclose(together[3], apart[3], 1e-3, 1e-4));
  }
}

/// One sigmoid, several probabilities, a threshold of its own: predictions are those that predictions report.
TEST(Network, AnswersAsPredictionsDo) {
  at::Tensor raw = random_bytes({40, 1, 8, 8}, 8), labels = at::arange(40, at::kLong).remainder(2);
  dataset::Preprocess preprocess;
  preprocess.scale = 1.0 / 255, preprocess.mean = {0.5};
  for (int64_t outputs : {1, 2})
    for (double threshold : {0.5, 0.4}) {
      zoo::Builder b("yes or no", zoo::Scheme::kHe, 6);
      model::ValueId x = b.dense("fc", b.flatten(b.input("x", {1, 8, 8})), 64, outputs);
      x = outputs == 1 ? b.plain("Sigmoid", {x}) : b.plain("Softmax", {x}, {{"axis", int64_t(1)}});
      TestCase test(b.finish(x, "y", outputs), picture_data(raw, labels, 2, preprocess));
      test.settings.threshold = threshold;
      observers::Predictions predictions(test.settings, true);
      stream::PassOptions how;
      how.quiet = true;
      auto state = stream::run_pass(test.subject, {&predictions}, how).collected[0].fold(predictions);
      Originals all = test.originals();
      at::Tensor classes = test.network->predictions(all, all.units);
      for (const observers::SampleRow& row : dynamic_cast<observers::PredictionState&>(*state).rows)
        EXPECT_EQ(classes[row.sample].item<int64_t>(), int64_t(row.predicted)) << outputs << " " << threshold;
      EXPECT_EQ(test.network->classes(), 2);
      all.predictions = classes;
      Settings settings;
      settings.eps = 0.2;
      at::Tensor after = test.network->predictions(all, fgsm(*test.network, all, settings).units);
      EXPECT_GT((after != classes).sum().item<int64_t>(), 20);
    }
}

TEST(Network, SaysWhereNoSlopeArrives) {
  auto test = random_case(3, 1);
  EXPECT_TRUE(test->network->has_gradients(test->originals()));
  zoo::Builder b("rounding", zoo::Scheme::kHe, 5);
  model::ValueId x = b.plain("Round", {b.flatten(b.input("x", {1, 8, 8}))});
  TestCase rounding(b.finish(b.dense("fc", x, 64, 4), "y", 4), test->data);
  EXPECT_FALSE(rounding.network->has_gradients(rounding.originals()));
}

/// All pairs, one by one.
double brute_force(const std::vector<float>& alpha, const std::vector<float>& beta, const std::vector<uint8_t>& free) {
  double best = 0;
  for (size_t p = 0; p < alpha.size(); ++p)
    for (size_t q = p + 1; q < alpha.size(); ++q) {
      const double a = double(alpha[p]) + alpha[q], b = double(beta[p]) + beta[q];
      if (free[p] && free[q] && a > 0 && b < 0) best = std::max(best, -a * b);
    }
  return best;
}

TEST(SaliencyPair, IsTheBestOfAllPairs) {
  Random random(5);
  int none = 0;
  for (int round = 0; round < 600; ++round) {
    const size_t size = 2 + random.below(60);
    std::vector<float> alpha, beta;
    std::vector<uint8_t> free;
    for (size_t i = 0; i < size; ++i) {
      double a = random.normal(), b = random.normal();
      if (round % 4 == 1) b = a + 0.05 * b;  // good in one, bad in the other: long fronts
      if (round % 4 == 2) a = double(random.below(3)) - 1, b = double(random.below(3)) - 1;  // ties
      if (round % 4 == 3) a -= 1.5;                                                          // often no pair at all
      alpha.push_back(float(a)), beta.push_back(float(b)), free.push_back(random.below(8) > 0);
    }
    if (round % 5 == 0) alpha[0] = NAN, free[0] = 1;
    if (round % 5 == 0) free[0] = 0;
    auto [p, q] = best_pair(alpha, beta, free);
    const double expected = brute_force(alpha, beta, free);
    if (p < 0) {
      EXPECT_EQ(expected, 0);
      ++none;
      continue;
    }
    ASSERT_NE(p, q);
    EXPECT_TRUE(free[size_t(p)] && free[size_t(q)]);
    EXPECT_DOUBLE_EQ(-(double(alpha[size_t(p)]) + alpha[size_t(q)]) * (double(beta[size_t(p)]) + beta[size_t(q)]),
                     expected);
  }
  EXPECT_GT(none, 10);
}

TEST(Jsma, EqualsATwinThatTriesAllPairs) {
  auto test = random_case(7, 1, false, 8);
  Originals all = test->originals();
  at::Tensor made = jsma(*test->network, all, {}).units;
  const int64_t size = 64, rounds = int64_t(0.145 * 64 / 2);
  for (int64_t row = 0; row < 8; ++row) {
    at::Tensor x = all.units.narrow(0, row, 1).clone();
    at::Tensor scores = twin_logits(*test, x)[0];
    scores[all.predictions[row].item<int64_t>()] = -INFINITY;
    const int64_t target = scores.argmax(0).item<int64_t>();
    for (int64_t round = 0; round < rounds; ++round) {
      at::AutoGradMode grad(true);
      at::Tensor leaf = x.detach().requires_grad_(), z = twin_logits(*test, leaf)[0];
      if (z.argmax(0).item<int64_t>() == target) break;
      at::Tensor a = torch::autograd::grad({z[target]}, {leaf}, {}, true)[0].flatten();
      at::Tensor b = torch::autograd::grad({z.sum() - z[target]}, {leaf})[0].flatten();
      double best = 0;
      int64_t p = -1, q = -1;
      at::Tensor flat = x.flatten();
      for (int64_t i = 0; i < size; ++i)
        for (int64_t j = i + 1; j < size; ++j) {
          if (flat[i].item<float>() >= 1 || flat[j].item<float>() >= 1) continue;
          const double ab = a[i].item<double>() + a[j].item<double>(), bb = b[i].item<double>() + b[j].item<double>();
          if (ab > 0 && bb < 0 && -ab * bb > best) best = -ab * bb, p = i, q = j;
        }
      if (p < 0) break;
      flat[p] = 1, flat[q] = 1;
    }
    EXPECT_LT((made[row] - x[0]).abs().max().item<double>(), 1e-5) << row;
  }
}

/// Sixteen pixels whose class a linear rule decides, learned by a small network.
std::unique_ptr<TestCase> trained_case() {
  Random random(11);
  const int64_t count = 1200;
  at::Tensor raw = random_bytes({count, 1, 4, 4}, 21), rule = at::empty({16, 3}, at::kFloat);
  for (int64_t i = 0; i < rule.numel(); ++i) rule.data_ptr<float>()[i] = float(random.normal());
  at::Tensor labels = (raw.flatten(1) / 255 - 0.5).mm(rule).argmax(1);
  dataset::Preprocess preprocess;
  preprocess.scale = 1.0 / 255, preprocess.mean = {0.5}, preprocess.std = {0.25};
  zoo::Builder b("trained", zoo::Scheme::kHe, 2);
  model::ValueId x = b.relu(b.dense("fc1", b.flatten(b.input("x", {1, 4, 4})), 16, 16));
  model::Graph graph = b.finish(b.dense("fc2", x, 16, 3), "y", 3);
  training::Options options;
  options.epochs = 8;
  training::Trainer trainer(
      {"trained", graph, graph.outputs[0], picture_data(raw, labels, 3, preprocess), nullptr, options});
  while (!trainer.done()) trainer.run_epoch();
  at::Tensor some = raw.narrow(0, 0, 48);
  return std::make_unique<TestCase>(trainer.result(), picture_data(some, labels.narrow(0, 0, 48), 3, preprocess));
}

/// CleverHans: all pairs by the gradients of probabilities, towards another class, until at most one value is left.
TEST(Jsma, AsCleverhansEqualsATwinThatTriesAllPairs) {
  auto test = random_case(7, 1, false, 8);
  Originals all = test->originals();
  Settings settings;
  settings.as_published = "cleverhans";
  at::Tensor made = jsma(*test->network, all, settings).units;
  const int64_t size = 64;
  for (int64_t row = 0; row < 8; ++row) {
    at::Tensor x = all.units.narrow(0, row, 1).clone();
    const int64_t classes = test->network->classes(), predicted = all.predictions[row].item<int64_t>();
    Random random = random_for(settings.seed, "jsma", all.batch.samples[size_t(row)], 0);
    const int64_t target = (predicted + 1 + int64_t(random.below(uint64_t(classes - 1)))) % classes;
    std::vector<bool> used(size_t(size), false);
    for (int64_t i = 0; i < size; ++i) used[size_t(i)] = x.flatten()[i].item<float>() >= 1;
    for (int64_t round = 0; round < size / 2; ++round) {
      at::AutoGradMode grad(true);
      at::Tensor leaf = x.detach().requires_grad_(), p = twin_logits(*test, leaf).softmax(1)[0];
      if (p.argmax(0).item<int64_t>() == target || std::count(used.begin(), used.end(), false) < 2) break;
      at::Tensor a = torch::autograd::grad({p[target]}, {leaf})[0].flatten();
      double best = 0;
      int64_t first = 0, second = 0;  // where no pair helps
      for (int64_t i = 0; i < size; ++i)
        for (int64_t j = i + 1; j < size; ++j) {
          if (used[size_t(i)] || used[size_t(j)]) continue;
          const double gain = a[i].item<double>() + a[j].item<double>();
          if (gain > 0 && gain * gain > best) best = gain * gain, first = i, second = j;
        }
      at::Tensor flat = x.flatten();
      flat[first] = 1, flat[second] = 1, used[size_t(first)] = used[size_t(second)] = true;
    }
    EXPECT_LT((made[row] - x[0]).abs().max().item<double>(), 1e-5) << row;
    EXPECT_EQ(made[row].sizes(), all.units[row].sizes());
  }
}

TEST(CarliniWagner, ComesNearerThanPgd) {
  auto test = trained_case();
  CampaignOptions how;
  how.quiet = true;
  Settings settings;
  settings.eps = 0.5, settings.steps = 200, settings.step_size = 0.05;
  CampaignResult near = run_campaign(*test->network, test->subject, test->chosen, find_method("cw"), settings, how);
  settings.step_size = -1, settings.steps = 40;
  CampaignResult far = run_campaign(*test->network, test->subject, test->chosen, find_method("pgd"), settings, how);
  int64_t both = 0, nearer = 0, fooled = 0;
  for (size_t i = 0; i < near.attempts.size(); ++i) {
    fooled += near.attempts[i].success();
    if (!near.attempts[i].success() || !far.attempts[i].success()) continue;
    ++both;
    nearer += near.attempts[i].distance.l2 < far.attempts[i].distance.l2;
  }
  EXPECT_EQ(fooled, int64_t(near.attempts.size()));
  EXPECT_GT(both, 30);
  EXPECT_EQ(nearer, both);
  settings.as_published = "cleverhans", settings.steps = 1000;
  CampaignResult theirs = run_campaign(*test->network, test->subject, test->chosen, find_method("cw"), settings, how);
  int64_t also = 0;
  for (const Attempt& attempt : theirs.attempts) {
    also += attempt.success();
    EXPECT_GE(attempt.distance.l2, 0);
  }
  EXPECT_GT(also, int64_t(theirs.attempts.size()) / 2);
}

/// The shortest way to another class of a linear network is known.
TEST(CarliniWagner, FindsTheNearestPointOfALinearNetwork) {
  zoo::Builder b("linear", zoo::Scheme::kHe, 4);
  model::Graph graph = b.finish(b.dense("fc", b.flatten(b.input("x", {1, 4, 4})), 16, 2), "y", 2);
  // Values in the middle of the range: the way does not meet its end.
  at::Tensor raw = random_bytes({16, 1, 4, 4}, 5) * 0.2 + 100;
  dataset::Preprocess preprocess;
  preprocess.scale = 1.0 / 255;
  TestCase test(graph, picture_data(raw.round(), at::zeros({16}, at::kLong), 2, preprocess));
  Settings settings;
  settings.steps = 400, settings.step_size = 0.02;
  CampaignOptions how;
  how.quiet = true;
  CampaignResult found = run_campaign(*test.network, test.subject, test.chosen, find_method("cw"), settings, how);
  Originals all = test.originals();
  auto gradient = test.network->gradient(all, all.units, [](const at::Tensor& scores, const at::Tensor&) {
    at::Tensor w = at::zeros_like(scores);
    w.select(1, 0).fill_(1), w.select(1, 1).fill_(-1);
    return std::vector<at::Tensor>{w};
  });
  for (int64_t i = 0; i < 16; ++i) {
    const double margin = std::abs((gradient.scores[i][0] - gradient.scores[i][1]).item<double>());
    const double shortest = margin / gradient.gradients[0][i].norm().item<double>();
    ASSERT_TRUE(found.attempts[size_t(i)].success()) << i;
    EXPECT_GE(found.attempts[size_t(i)].distance.l2, shortest * 0.999);
    EXPECT_LE(found.attempts[size_t(i)].distance.l2, shortest * 1.1 + 0.01) << i;
  }
}

UnitPlace unit_of(const std::vector<model::Layer>& layers, const std::string& name, int64_t unit) {
  for (const model::Layer& layer : layers)
    if (layer.name == name) return {layer, unit};
  throw std::logic_error(name);
}

TEST(DeepFault, DrivesItsUnits) {
  auto plain = random_case(9);
  std::vector<model::Layer> layers = stream::find_layers(plain->subject);
  std::vector<UnitPlace> units{unit_of(layers, "conv1", 2), unit_of(layers, "fc1", 3)};
  TestCase test(plain->subject.graph, plain->data, units);
  Originals all = test.originals();
  Settings settings;
  settings.eps = 0.1;
  at::Tensor made = deepfault(*test.network, all, settings).units;
  EXPECT_LE((made - all.units).abs().max().item<double>(), 0.1 + 1e-6);
  auto value = [&](const at::Tensor& units_now) {
    dataset::Batch batch = test.network->changed_batch(all, units_now);
    auto taps = stream::run_few(test.subject, {units[0].layer.post, units[1].layer.post}, batch);
    return (model::unit_values(units[0].layer, taps[0]).select(1, 2) +
            model::unit_values(units[1].layer, taps[1]).select(1, 3))
        .mean()
        .item<double>();
  };
  EXPECT_GT(value(made), value(all.units));
  settings.as_published = "deepfault";
  at::Tensor published = deepfault(*test.network, all, settings).units;
  EXPECT_TRUE(at::equal(published.narrow(1, 1, 2), all.units.narrow(1, 1, 2)));
}

/// Every row of the table on every layout: in range, in its budget, the same for any number of workers.
TEST(Methods, StayInRangeAndDoNotDependOnWorkers) {
  for (bool last : {false, true}) {
    auto plain = random_case(13, 3, last, 80);
    TestCase test(plain->subject.graph, plain->data, {unit_of(stream::find_layers(plain->subject), "fc1", 1)});
    int ran = 0;
    for (const Method& method : methods()) {
      Settings asked;
      asked.steps = 4;
      asked.relevance = [](const Originals& originals) { return originals.units; };
      Settings settings = settle(method, test.changed, asked);
      if (!unsuited(method, *test.network, settings).empty()) continue;
      ++ran;
      CampaignOptions one, many;
      one.jobs = 1, many.jobs = 3, one.quiet = many.quiet = true;
      CampaignResult a = run_campaign(*test.network, test.subject, test.chosen, method, settings, one);
      CampaignResult b = run_campaign(*test.network, test.subject, test.chosen, method, settings, many);
      EXPECT_TRUE(at::equal(a.raw, b.raw)) << method.name;
      ASSERT_EQ(a.attempts.size(), 80u);
      EXPECT_GE(a.raw.min().item<double>(), 0) << method.name;
      EXPECT_LE(a.raw.max().item<double>(), 255) << method.name;
      const std::string name(method.name);
      double most_l0 = 0, most_linf = 0, unmade = 0;
      for (const Attempt& attempt : a.attempts) {
        most_l0 = std::max(most_l0, attempt.distance.l0), most_linf = std::max(most_linf, attempt.distance.linf);
        unmade += attempt.made ? 0 : attempt.distance.l0;
      }
      EXPECT_EQ(unmade, 0) << name;
      const std::map<std::string, double> values{
          {"jsma", 0.145 * 192 + 1}, {"random-noise", 3}, {"relevant-noise", 3}, {"pixels", 27}, {"salt-pepper", 2}};
      EXPECT_LE(most_l0, values.count(name) ? values.at(name) : 192) << name;
      EXPECT_LE(most_linf,
                name == "fgsm" || name == "bim" || name == "pgd" || name == "deepfault" ? settings.eps + 1e-5 : 1)
          << name;
      one.round = true;
      CampaignResult rounded = run_campaign(*test.network, test.subject, test.chosen, method, settings, one);
      EXPECT_TRUE(at::equal(rounded.raw, rounded.raw.round())) << method.name;
    }
    EXPECT_EQ(ran, 21);
  }
}

TEST(Methods, WrongWordsAreAnswered) {
  EXPECT_EQ(find_method("carlini_wagner").name, "cw");
  EXPECT_EQ(find_method("CW").name, "cw");
  for (const char* bad : {"fgms", "", "nothing"}) EXPECT_THROW(find_method(bad), InputError) << bad;
  try {
    find_method("fgms");
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean fgsm"), std::string::npos);
  }
  EXPECT_DOUBLE_EQ(parse_share("--eps", "8/255"), 8.0 / 255);
  EXPECT_DOUBLE_EQ(parse_share("--eps", "0.1"), 0.1);
  for (const char* bad : {"-0.1", "0", "8/0", "1/-3", "x", "", "nan", "inf"})
    EXPECT_THROW(parse_share("--eps", bad), InputError) << bad;
}

}  // namespace
}  // namespace netmend::inputs
