#include "preflight/trial.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "preflight/examination.h"
#include "preflight/planted_for_test.h"
#include "preflight/running_statistics.h"
#include "session/config.h"
#include "zoo/builder.h"

namespace netmend::preflight {
namespace {

using observers::SampleRow;

observers::PredictionSettings judged_by(observers::Task task, size_t classes = 4) {
  observers::PredictionSettings settings;
  settings.task = task;
  for (size_t c = 0; c < classes; ++c) settings.classes.push_back(std::to_string(c));
  return settings;
}

/// So many of `count` rows are wrong, the first ones.
Rows rows_with_wrong(int64_t wrong, int64_t count, float loss = 0.1f) {
  Rows rows{size_t(count)};
  for (int64_t i = 0; i < count; ++i) {
    rows[size_t(i)].right = i < wrong ? SampleRow::kWrong : SampleRow::kRight;
    rows[size_t(i)].label = double(i % 4), rows[size_t(i)].loss = loss;
  }
  return rows;
}

TEST(TrialInputs, FirstAndFreshInputsAreDifferentOnesAndAllOverTheData) {
  const model::Graph graph = zoo::make("mlp:1-2", {.seed = 1});
  for (const int64_t size : {2, 3, 5, 64, 1000, 1023, 1024, 1025, 1537, 5000}) {
    const Planted planted(graph, dataset::table_feature({"a"}), at::randn({size, 1}), at::zeros({size}, at::kLong),
                          {"a", "b"});
    const Trial trial = planted.trial();
    const std::vector<int64_t> first = trial.first.samples, fresh = trial.read_fresh(1e9).samples;
    std::set<int64_t> all(first.begin(), first.end());
    EXPECT_EQ(all.size(), first.size()) << size;
    all.insert(fresh.begin(), fresh.end());
    EXPECT_EQ(all.size(), first.size() + fresh.size()) << size;
    EXPECT_EQ(int64_t(first.size()), std::min<int64_t>(Trial::kInputs, size / 2));
    EXPECT_GE(*all.begin(), 0);
    EXPECT_LT(*all.rbegin(), size);
    EXPECT_LE(*all.begin(), size / 8 + 1);
    EXPECT_GE(*all.rbegin(), size - size / 2 - 1);
    if (size >= 1000) {  // mixed: the first look must not be the first stretch of sorted data
      int64_t beyond = 0;
      for (size_t i = 0; i < 128; ++i) beyond += first[i] >= size / 2;
      EXPECT_NEAR(double(beyond), 64, 30) << size;
    }
  }
}

TEST(TrialInputs, ChanceIsTheShareOfTheLargestClass) {
  const model::Graph graph = zoo::make("mlp:1-3", {.seed = 1});
  const at::Tensor labels = (at::arange(400) % 4 == 0).to(at::kLong);
  const Planted planted(graph, dataset::table_feature({"a"}), at::randn({400, 1}), labels, {"a", "b", "c"});
  const Trial trial = planted.trial();
  int64_t most = 0;
  for (const SampleRow& row : trial.asis) most += row.label == 0;
  EXPECT_DOUBLE_EQ(trial.chance(), double(most) / double(trial.asis.size()));
  EXPECT_EQ(trial.input_name(), "input");
}

TEST(TrialFigures, AreThoseOfALoop) {
  const auto classes = judged_by(observers::Task::kClasses), number = judged_by(observers::Task::kNumber, 0);
  const Rows rows = rows_with_wrong(3, 12, 4);
  EXPECT_DOUBLE_EQ(mean_error(classes, rows), 0.25);
  EXPECT_DOUBLE_EQ(figure(classes, rows).value, 0.75);
  EXPECT_DOUBLE_EQ(mean_loss(rows), 4);
  EXPECT_DOUBLE_EQ(mean_error(number, rows), 2);  // the loss of a number is its squared error
  EXPECT_DOUBLE_EQ(figure(number, rows).value, 2);
  EXPECT_DOUBLE_EQ(uniform_loss(classes), std::log(4));
  EXPECT_EQ(figure_text(classes, figure(classes, rows)), "75.0 %");
  EXPECT_EQ(figure_text(number, figure(number, rows)), "error 2");
  EXPECT_TRUE(std::isnan(mean_error(classes, {})));
  EXPECT_TRUE(std::isnan(mean_loss({})));
  Rows broken = rows;
  broken[0].loss = NAN;
  EXPECT_EQ(mean_loss(broken), INFINITY);  // no set-up wins by predictions that are no numbers
  EXPECT_EQ(mean_error(number, broken), INFINITY);
}

TEST(TrialRules, AFifthOfTheMistakesAndThreePointsOrTwelvePoints) {
  const auto settings = judged_by(observers::Task::kClasses);
  auto improves = [&](int64_t before, int64_t after, int64_t count = 500) {
    return improves_accuracy(settings, rows_with_wrong(before, count), rows_with_wrong(after, count));
  };
  EXPECT_TRUE(improves(100, 80));
  EXPECT_FALSE(improves(100, 81));  // less than a fifth
  EXPECT_TRUE(improves(40, 25));
  EXPECT_TRUE(improves(40, 26));   // a third
  EXPECT_FALSE(improves(40, 28));  // less than a third, and less than three points
  EXPECT_TRUE(improves(450, 390));
  EXPECT_FALSE(improves(450, 391));  // no fifth, and less than twelve points
  EXPECT_FALSE(improves(5, 0, 10));  // by chance
  EXPECT_TRUE(improves(12, 0, 20));
  EXPECT_FALSE(improves(80, 100));
  EXPECT_FALSE(improves(0, 0));
  // As many get worse as get better: not by chance only where the difference is large.
  Rows before = rows_with_wrong(60, 500), after = rows_with_wrong(0, 500);
  for (size_t i = 100; i < 140; ++i) after[i].right = SampleRow::kWrong;
  EXPECT_FALSE(improves_accuracy(settings, before, after));
}

TEST(TrialRules, TheTemperatureThatFitsIsFound) {
  const auto settings = judged_by(observers::Task::kClasses);
  at::manual_seed(2);
  const int64_t count = 4000;
  const auto classes = int64_t(settings.classes.size());
  const at::Tensor logits = at::randn({count, classes}, at::kDouble) * 2;
  dataset::Batch batch;
  batch.samples.resize(size_t(count));
  batch.labels = at::multinomial(at::softmax(logits, 1), 1, true).squeeze(1);
  auto judged = settings;
  judged.head.logits = judged.head.output = 0;
  const Fitted plain = fit_temperature(judged, logits, batch, 8), sharp = fit_temperature(judged, logits * 4, batch, 8);
  EXPECT_NEAR(plain.temperature, 1, 0.2);
  EXPECT_NEAR(sharp.temperature, 4, 0.8);
  EXPECT_NEAR(plain.mean(), sharp.mean(), 1e-2);
  EXPECT_DOUBLE_EQ(fit_temperature(judged, logits * 4, batch, 1).temperature, 1);
  // A bias that was added to the outputs is found again, up to what is common to all classes.
  at::Tensor off = at::zeros({classes}, at::kDouble);
  off[1] = 3;
  at::Tensor found = fit_biases(judged, logits + off, batch);
  found = found - found[0];
  EXPECT_NEAR(found[1].item<double>(), -3, 0.25);
  EXPECT_TRUE(at::allclose(with_biases(judged, logits, off), logits + off));
  EXPECT_TRUE(fit_temperature(judged_by(observers::Task::kNumber, 0), logits, batch, 8).losses.empty());
}

TEST(TrialRules, LogarithmsOfProbabilitiesAreRecognised) {
  at::manual_seed(2);
  const at::Tensor logits = at::randn({50, 4}) * 3;
  EXPECT_TRUE(looks_like_log_probabilities(at::log_softmax(logits, 1)));
  EXPECT_FALSE(looks_like_log_probabilities(logits));
  EXPECT_FALSE(looks_like_log_probabilities(-logits.abs()));
  EXPECT_FALSE(looks_like_log_probabilities(at::softmax(logits, 1)));
  EXPECT_FALSE(looks_like_log_probabilities(at::zeros({5, 1})));
}

TEST(InputLine, ReadsBackWhateverTheInputIsCalled) {
  EXPECT_EQ(input_line("x", {}), "");
  EXPECT_EQ(input_line("x", {{"scale", "1/255"}}), "input.x = { scale = \"1/255\" }");
  const std::map<std::string, std::string> options = {
      {"color", "BGR"}, {"mean", "0.5:0.25:0.125"}, {"scale", "1/255"}, {"std", "2"}};
  for (const std::string name : {"x", "input_1", "input.1", "serving default:0", "ü", "a\"b", "a\\b", "a\nb"}) {
    const auto read = session::parse_config(input_line(name, options) + "\n", "netmend.toml").input;
    EXPECT_EQ(dataset::parse_preprocess(read), dataset::parse_preprocess(options)) << input_line(name, options);
  }
}

/// A batch normalisation that has seen `right`, then a dense layer.
model::Graph normalising_network(const at::Tensor& right) {
  zoo::Builder builder("normalising", zoo::parse_scheme("glorot"), 1);
  model::ValueId x = builder.batch_norm("bn", builder.input("image", {3, 8, 8}), 3);
  model::Graph graph = builder.finish(builder.dense("fc", builder.flatten(x), 192, 4), "logits", 4);
  const model::Node& norm = graph.nodes.at(0);
  graph.replace(norm.inputs.at(3), right.mean({0, 2, 3}));
  graph.replace(norm.inputs.at(4), right.var({0, 2, 3}, false));
  return graph;
}

TEST(RunningStatisticsOf, TheFirstBatchNormOnTheWayToTheOutputIsFound) {
  const model::Graph plain = zoo::make("mlp:4-3-2", {.seed = 1});
  EXPECT_FALSE(find_running_statistics(plain, plain.outputs[0]).has_value());
  at::manual_seed(4);
  const at::Tensor right = at::rand({100, 3, 8, 8});
  const model::Graph graph = normalising_network(right);
  const auto found = find_running_statistics(graph, graph.outputs[0]);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->input, graph.inputs[0]);
  EXPECT_LT(statistics_distance(*found, right), 0.01);
  EXPECT_FALSE(find_running_statistics(graph, graph.inputs[0]).has_value());  // not on the way
}

/// Without labels only the statistics can tell that inputs are not scaled as in training.
TEST(RunningStatisticsOf, NameTheScaleOfDataWithoutLabels) {
  at::manual_seed(4);
  at::Tensor right = at::rand({400, 3, 8, 8});
  right.select(1, 0).select(1, 0).select(1, 0).fill_(0), right.select(1, 0).select(1, 0).select(1, 1).fill_(1);
  const model::Graph graph = normalising_network(right);
  auto looked_at = [&](const at::Tensor& given) {
    const Planted planted(graph, dataset::picture_feature(8, 3), given, at::Tensor(), {});
    EXPECT_EQ(planted.settings.task, observers::Task::kNone);
    return examine(*planted.subject, planted.settings, {}, {1, {}});
  };
  EXPECT_FALSE(looked_at(right).blocker.has_value());
  const Preflight found = looked_at(right * 255);
  ASSERT_TRUE(found.blocker.has_value());
  EXPECT_EQ(found.blocker->id(), "preprocessing:scale");
  EXPECT_EQ(session::parse_config(found.blocker->line, "x").input.at("scale"), "1/255") << found.blocker->line;
}

TEST(RunningStatisticsOf, DistanceIsInStandardDeviationsOfTheMedianChannel) {
  const RunningStatistics kept{0, at::zeros({3}), at::full({3}, 4.0)};
  at::manual_seed(3);
  const at::Tensor noise = at::randn({2000, 3}) * 2;
  const at::Tensor shift = at::tensor({0.0, 6.0, 100.0}, at::kDouble);
  EXPECT_NEAR(statistics_distance(kept, noise + shift), 3, 0.2);          // the middle one is 6 / 2 away
  EXPECT_NEAR(statistics_distance(kept, noise * 20), std::log(20), 0.2);  // the spread, by its logarithm
  EXPECT_NEAR(statistics_distance(kept, noise / 20), std::log(20), 0.2);  // too narrow is as far as too wide
  EXPECT_EQ(statistics_distance(kept, at::zeros({10, 5})), 0);            // another number of channels says nothing
  EXPECT_TRUE(std::isfinite(statistics_distance(kept, at::zeros({10, 3}))));
  const RunningStatistics still{0, at::zeros({3}), at::zeros({3})};
  EXPECT_TRUE(std::isfinite(statistics_distance(still, noise)));
}

}  // namespace
}  // namespace netmend::preflight
