#include "preflight/setup_search.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "preflight/examination.h"
#include "preflight/planted_for_test.h"
#include "session/config.h"
#include "session/toml.h"

namespace netmend::preflight {
namespace {

constexpr int64_t kPlanted = 1400, kSide = 8;

std::vector<std::string> five_names() { return {"ant", "bee", "cat", "dog", "elk"}; }

/// Coloured pictures of 0 … 1 whose channels, rows and columns differ, so that no exchange goes unseen.
at::Tensor pictures() {
  at::manual_seed(11);
  at::Tensor x = at::rand({kPlanted, 3, kSide, kSide});
  x = x * at::tensor({1.0, 0.6, 0.3}, at::kFloat).view({1, 3, 1, 1}) * at::linspace(0.2, 1, kSide).view({1, 1, 1, -1});
  x[0][0][0][0] = 0, x[0][0][0][1] = 1;
  for (int64_t i = 0; i < kPlanted; ++i)
    x[i][0][0][2] = 0, x[i][0][0][3] = 1;  // every part of the data shows the range
  return x;
}

/// For a network that is right on `right`, on data that holds `given` instead.
Searched found_for(const at::Tensor& right, const at::Tensor& given) {
  const dataset::Feature feature = dataset::picture_feature(kSide, 3);
  const model::Graph graph = centred_network("mlp:192-5", feature, right);
  const Planted planted(graph, feature, given, Planted::predicted(graph, feature, right), five_names());
  return search_setups(planted.trial());
}

TEST(SetupSearch, WhatIsRightIsNotBlocked) {
  const at::Tensor x = pictures();
  const Searched found = found_for(x, x);
  EXPECT_FALSE(found.blocker.has_value()) << found.blocker->evidence;
  EXPECT_FALSE(found.tried.empty());
}

TEST(SetupSearch, FindsTheScaleThatWasPlanted) {
  const at::Tensor x = pictures();
  const at::Tensor mean = at::tensor({0.485, 0.456, 0.406}, at::kFloat).view({1, 3, 1, 1}),
                   std = at::tensor({0.229, 0.224, 0.225}, at::kFloat).view({1, 3, 1, 1});
  const std::vector<std::tuple<std::string, at::Tensor, at::Tensor>> cases = {
      {"scaled to 0…1", x, x * 255},
      {"not scaled, 0…255", x * 255, x},
      {"scaled to −1…1", x * 2 - 1, x * 255},
      {"scaled to 0…1, ImageNet mean and std", (x - mean) / std, x},
      {"bright and dark inverted", 1 - x, x}};
  for (const auto& [words, right, given] : cases) {
    const Searched found = found_for(right, given);
    ASSERT_TRUE(found.blocker.has_value()) << words;
    EXPECT_EQ(found.blocker->id(), "preprocessing:scale") << words;
    EXPECT_NE(found.blocker->evidence.find("With the set-up \"" + words + "\":"), std::string::npos)
        << found.blocker->evidence;
    EXPECT_DOUBLE_EQ(found.tried.at(0).accuracy.value, 1) << words;
    EXPECT_NO_THROW(session::parse_config(found.blocker->line, "netmend.toml")) << found.blocker->line;
  }
}

TEST(SetupSearch, TheLineSaysHowToPrepareInputs) {
  const at::Tensor x = pictures();
  const Searched found = found_for(x * 2 - 1, x * 255);
  ASSERT_TRUE(found.blocker.has_value());
  const dataset::Preprocess made =
      dataset::parse_preprocess(session::parse_config(found.blocker->line, "netmend.toml").input);
  // The same arithmetic as the line would have done to the bytes.
  EXPECT_NEAR((255 * made.scale.value() - made.mean.at(0)) / made.std.at(0), 1, 1e-4);
  EXPECT_NEAR((0 * made.scale.value() - made.mean.at(0)) / made.std.at(0), -1, 1e-4);
}

TEST(SetupSearch, FindsColoursAxesAndOrientation) {
  const at::Tensor x = pictures();
  const at::Tensor laid_out = x.permute({0, 2, 3, 1}).contiguous().view_as(x);
  const std::vector<std::tuple<std::string, std::string, at::Tensor>> cases = {
      {"preprocessing:color", "red and blue swapped", x.flip({1})},
      {"preprocessing:orientation", "rows and columns swapped", x.transpose(2, 3).contiguous()},
      {"preprocessing:layout", "values read as channels last", laid_out}};
  for (const auto& [id, words, given] : cases) {
    const Searched found = found_for(x, given);
    ASSERT_TRUE(found.blocker.has_value()) << words;
    EXPECT_EQ(found.blocker->id(), id);
    EXPECT_NE(found.blocker->evidence.find(words), std::string::npos) << found.blocker->evidence;
    EXPECT_NO_THROW(session::parse_config(found.blocker->line, "netmend.toml")) << found.blocker->line;
  }
}

/// Rows of numbers may be pictures whose channels have constants of their own, in either order.
TEST(SetupSearch, FindsConstantsOfColoursInRows) {
  const at::Tensor x = pictures();
  const at::Tensor mean = at::tensor({0.485, 0.456, 0.406}, at::kFloat).view({1, 3, 1, 1}),
                   std = at::tensor({0.229, 0.224, 0.225}, at::kFloat).view({1, 3, 1, 1});
  dataset::Feature rows = dataset::picture_feature(kSide, 3);
  rows.shape = {3 * kSide * kSide}, rows.image = false;
  for (bool last : {false, true}) {
    auto as_rows = [&](const at::Tensor& some) {
      return (last ? some.permute({0, 2, 3, 1}) : some).contiguous().flatten(1);
    };
    const at::Tensor right = as_rows((x - mean) / std);
    const model::Graph graph = centred_network("mlp:192-5", rows, right);
    const Planted planted(graph, rows, as_rows(x * 255), Planted::predicted(graph, rows, right), five_names());
    const Searched found = search_setups(planted.trial());
    ASSERT_TRUE(found.blocker.has_value());
    EXPECT_EQ(found.blocker->id(), "preprocessing:scale");
    const auto options = session::parse_config(found.blocker->line, "x").input;
    EXPECT_EQ(options.at("shape"), last ? "8x8x3" : "3x8x8");
    EXPECT_EQ(options.at("mean"), "0.485:0.456:0.406");
  }
}

/// What was prepared wrongly is wrong for all inputs; where one camera is fine, the others differ.
TEST(SetupSearch, AGroupThatIsPredictedWellClearsTheSetup) {
  const at::Tensor x = pictures();
  const dataset::Feature feature = dataset::picture_feature(kSide, 3);
  const model::Graph graph = centred_network("mlp:192-5", feature, x);
  at::Tensor given = x.clone();
  std::vector<std::vector<std::string>> cameras;
  for (int64_t i = 0; i < kPlanted; ++i) {
    cameras.push_back({i % 3 ? "new" : "old"});
    if (i % 3) given[i] *= 255;
  }
  const Planted planted(graph, feature, given, Planted::predicted(graph, feature, x), five_names());
  EXPECT_TRUE(search_setups(planted.trial()).blocker.has_value());
  planted.data->set_groups({"camera"}, cameras);
  const Searched found = search_setups(planted.trial());
  EXPECT_FALSE(found.blocker.has_value()) << found.blocker->evidence;
  EXPECT_NE(found.instead.find("but not for camera=old (100.0 %)"), std::string::npos) << found.instead;
}

/// Neither shows without the other.
TEST(SetupSearch, FindsAxesAndScaleThatAreBothWrong) {
  const at::Tensor x = pictures();
  const Searched found = found_for(x * 2 - 1, x.permute({0, 2, 3, 1}).contiguous().view_as(x) * 255);
  ASSERT_TRUE(found.blocker.has_value());
  EXPECT_EQ(found.blocker->id(), "preprocessing:layout");
  EXPECT_NE(found.blocker->evidence.find("scaled to −1…1, values read as channels last"), std::string::npos)
      << found.blocker->evidence;
  const auto options = session::parse_config(found.blocker->line, "x").input;
  EXPECT_EQ(options.at("shape"), "8x8x3");
  EXPECT_EQ(options.at("layout"), "NCHW");
}

/// Whoever has not said how inputs are prepared gets the best way, also where it is a little better; who has said it is
/// only contradicted in a clear case.
TEST(SetupSearch, ALittleBetterIsNamedOnlyWhereNothingWasSaid) {
  const at::Tensor x = pictures();
  const dataset::Feature feature = dataset::picture_feature(kSide, 3);
  // Weights that sum to 0 do not see brightness: what is left of the scale is how much the biases weigh.
  model::Graph graph = zoo::make("mlp:192-5", {.seed = 3});
  const model::Node& layer = graph.nodes.back();
  const at::Tensor weight = graph.constant(layer.inputs.at(1));
  graph.replace(layer.inputs.at(1), weight - weight.mean(weight.size(0) == 192 ? 0 : 1, true));
  graph.replace(layer.inputs.at(2), at::zeros({5}));
  graph.replace(layer.inputs.at(2), -0.3 * Planted::outputs(graph, feature, x).mean(0));
  at::Tensor labels = Planted::predicted(graph, feature, x * 2 - 1);
  at::manual_seed(13);
  labels = at::where(at::rand({kPlanted}) < 0.3, (labels + 1) % 5, labels);  // mistakes that nothing explains
  const Planted planted(graph, feature, x, labels, five_names());
  const Searched said = search_setups(planted.trial());
  EXPECT_FALSE(said.blocker.has_value()) << said.blocker->evidence;
  const Searched found = search_setups(planted.trial(), {.free = true});
  ASSERT_TRUE(found.blocker.has_value());
  EXPECT_NE(found.blocker->evidence.find("scaled to −1…1"), std::string::npos) << found.blocker->evidence;
}

/// Constants that are not in the menu: the best of the usual ones is no answer, and is not named as one.
TEST(SetupSearch, ConstantsThatNobodyUsesAreADoubt) {
  const at::Tensor x = pictures();
  const dataset::Feature feature = dataset::picture_feature(kSide, 3);
  const at::Tensor right = (x - 0.15) / 0.12;
  const model::Graph graph = centred_network("mlp:192-5", feature, right);
  const Planted planted(graph, feature, x, Planted::predicted(graph, feature, right), five_names());
  const Searched found = search_setups(planted.trial(), {.free = true});
  EXPECT_FALSE(found.blocker.has_value()) << found.blocker->evidence;
  EXPECT_NE(found.doubt.find("the constants of the first are probably not those of training"), std::string::npos)
      << found.doubt;
  // Who has said how inputs are prepared is not asked again.
  EXPECT_EQ(search_setups(planted.trial()).doubt, "");
}

/// Weights that sum to 0 do not see brightness: what is left of the scale is how much the biases weigh.
model::Graph blind_to_brightness(const dataset::Feature& feature, const at::Tensor& x, double bias) {
  model::Graph graph = zoo::make("mlp:192-5", {.seed = 3});
  const model::Node& layer = graph.nodes.back();
  const at::Tensor weight = graph.constant(layer.inputs.at(1));
  graph.replace(layer.inputs.at(1), weight - weight.mean(weight.size(0) == 192 ? 0 : 1, true));
  graph.replace(layer.inputs.at(2), at::zeros({5}));
  if (bias != 0) graph.replace(layer.inputs.at(2), bias * Planted::outputs(graph, feature, x).mean(0));
  return graph;
}

/// Two set-ups that differ for few inputs: where there are few inputs, nobody can tell which it was.
TEST(SetupSearch, WhatFewInputsDoNotTellApartIsADoubt) {
  const dataset::Feature feature = dataset::picture_feature(kSide, 3);
  const at::Tensor x = pictures();
  const model::Graph graph = blind_to_brightness(feature, x, -0.3);
  at::Tensor labels = Planted::predicted(graph, feature, x * 2 - 1);
  at::manual_seed(13);
  labels = at::where(at::rand({kPlanted}) < 0.15, (labels + 1) % 5, labels);
  for (const int64_t count : {int64_t(80), kPlanted}) {
    const Planted planted(graph, feature, x.narrow(0, 0, count), labels.narrow(0, 0, count), five_names());
    const Searched found = search_setups(planted.trial(), {.free = true});
    EXPECT_EQ(found.blocker.has_value(), count == kPlanted) << found.doubt;
    EXPECT_EQ(found.doubt.find("80 inputs are too few to distinguish these set-ups: ") == 0, count == 80)
        << found.doubt;
    EXPECT_EQ(found.rivals.size() >= 1, count == 80);
    for (const std::string& line : found.rivals) EXPECT_NO_THROW(session::parse_config(line, "netmend.toml")) << line;
  }
}

TEST(SetupSearch, WhatMakesNoDifferenceIsNoDoubt) {
  const dataset::Feature feature = dataset::picture_feature(kSide, 3);
  const at::Tensor x = pictures();
  const model::Graph graph = blind_to_brightness(feature, x, 0);
  const Searched found = search_setups(
      Planted(graph, feature, x, Planted::predicted(graph, feature, x), five_names()).trial(), {.free = true});
  EXPECT_EQ(found.doubt, "");
}

TEST(SetupSearch, FurtherInputsAreNewOnes) {
  const dataset::Feature feature = dataset::picture_feature(kSide, 3);
  const at::Tensor x = pictures();
  const model::Graph graph = centred_network("mlp:192-5", feature, x);
  const Planted planted(graph, feature, x, Planted::predicted(graph, feature, x), five_names());
  const Trial trial = planted.trial();
  const dataset::Batch fresh = trial.read_fresh(1);
  std::set<int64_t> seen(trial.first.samples.begin(), trial.first.samples.end());
  seen.insert(fresh.samples.begin(), fresh.samples.end());
  const size_t before = seen.size();
  int64_t skip = 0;
  for (dataset::Batch more = trial.read_further(skip, 100); more.count() > 0; more = trial.read_further(skip, 100)) {
    seen.insert(more.samples.begin(), more.samples.end());
    skip += more.count();
  }
  EXPECT_EQ(int64_t(seen.size()), kPlanted);
  EXPECT_EQ(int64_t(seen.size() - before), skip);
}

TEST(SetupSearch, WorseThanTheNearestMeanIsADoubt) {
  const dataset::Feature feature = dataset::picture_feature(kSide, 3);
  at::manual_seed(17);
  const at::Tensor labels = at::randint(0, 5, {kPlanted}, at::kLong), means = at::rand({5, 3, kSide, kSide});
  at::Tensor x = (means.index_select(0, labels) + 0.2 * at::rand({kPlanted, 3, kSide, kSide})).clamp(0, 1);
  x.select(1, 0).select(1, 0).select(1, 2).zero_(), x.select(1, 0).select(1, 0).select(1, 3).fill_(1);
  model::Graph graph = zoo::make("mlp:192-5", {.seed = 3});  // that has learned nothing
  graph.replace(graph.nodes.back().inputs.at(1), at::zeros_like(graph.constant(graph.nodes.back().inputs.at(1))));
  const Planted planted(graph, feature, x, labels, five_names());
  const Searched found = search_setups(planted.trial(), {.free = true});
  EXPECT_FALSE(found.blocker.has_value()) << found.blocker->evidence;
  EXPECT_NE(found.doubt.find("a nearest-centroid classifier reaches 100.0 %"), std::string::npos) << found.doubt;
}

TEST(SetupSearch, WhatIsRightIsNotDoubted) {
  const at::Tensor x = pictures();
  const dataset::Feature feature = dataset::picture_feature(kSide, 3);
  const model::Graph graph = centred_network("mlp:192-5", feature, x * 2 - 1);
  at::Tensor labels = Planted::predicted(graph, feature, x * 2 - 1);
  at::manual_seed(13);
  labels = at::where(at::rand({kPlanted}) < 0.3, (labels + 1) % 5, labels);  // mistakes that nothing explains
  const Searched found = search_setups(Planted(graph, feature, x, labels, five_names()).trial(), {.free = true});
  EXPECT_EQ(found.doubt, "");
  ASSERT_TRUE(found.blocker.has_value());
  EXPECT_NE(found.blocker->evidence.find("scaled to −1…1"), std::string::npos) << found.blocker->evidence;
}

/// The biases of the last layer are off, not the inputs.
TEST(SetupSearch, DamagedBiasesAreNoPreprocessing) {
  const at::Tensor x = pictures();
  const dataset::Feature feature = dataset::picture_feature(kSide, 3);
  const model::Graph sound = centred_network("mlp:192-5", feature, x);
  for (int64_t unit = 0; unit < 5; ++unit) {
    model::Graph damaged = sound;
    const model::ValueId bias = damaged.nodes.back().inputs.at(2);
    at::Tensor values = damaged.constant(bias).clone();
    values[unit] += 1.0;
    damaged.replace(bias, values);
    const Planted planted(damaged, feature, x, Planted::predicted(sound, feature, x), five_names());
    for (bool free : {false, true}) {
      const Searched found = search_setups(planted.trial(), {.free = free});
      EXPECT_FALSE(found.blocker.has_value()) << unit << " " << found.blocker->evidence;
    }
  }
}

/// Where the scale alone shows already: the colours of these pictures matter less than their brightness.
TEST(SetupSearch, FindsTwoThingsAtOnce) {
  at::manual_seed(13);
  at::Tensor x = 0.8 * at::rand({kPlanted, 1, kSide, kSide}) + 0.2 * at::rand({kPlanted, 3, kSide, kSide});
  for (int64_t i = 0; i < kPlanted; ++i) x[i][0][0][2] = 0, x[i][0][0][3] = 1, x[i][2][0][2] = 0, x[i][2][0][3] = 1;
  const Searched found = found_for(x * 2 - 1, x.flip({1}) * 255);
  ASSERT_TRUE(found.blocker.has_value());
  EXPECT_EQ(found.blocker->id(), "preprocessing:color");
  EXPECT_NE(found.blocker->evidence.find("scaled to −1…1, red and blue swapped"), std::string::npos)
      << found.blocker->evidence;
  const auto options = session::parse_config(found.blocker->line, "x").input;
  EXPECT_EQ(options.at("color"), "BGR");
  EXPECT_TRUE(options.count("scale"));
}

at::Tensor renumbered_labels(const at::Tensor& labels, const std::vector<int64_t>& order) {
  at::Tensor out = labels.clone();
  for (size_t c = 0; c < order.size(); ++c) out.masked_fill_(labels == int64_t(c), order[c]);
  return out;
}

/// Inputs of which each class is predicted about as often as any other.
at::Tensor table_rows() {
  at::manual_seed(12);
  return at::randn({kPlanted, 6});
}

TEST(SetupSearch, FindsClassesThatWereNumberedDifferently) {
  const model::Graph graph = zoo::make("mlp:6-5", {.seed = 3});
  const auto feature = dataset::table_feature({"a", "b", "c", "d", "e", "f"});
  const at::Tensor x = table_rows(), labels = Planted::predicted(graph, feature, x);
  // Label c of the data means output order[c]: so output order[c] is the label's name.
  const std::vector<int64_t> order{2, 0, 1, 4, 3};
  at::Tensor given = at::empty_like(labels);
  for (size_t c = 0; c < order.size(); ++c) given.masked_fill_(labels == order[c], int64_t(c));
  const std::vector<std::string> names{"plain", "say \"hi\"", "back\\slash", "a, b", "ü: ×"};
  const Planted planted(graph, feature, x, given, names);
  const Searched found = search_setups(planted.trial());
  ASSERT_TRUE(found.blocker.has_value());
  EXPECT_EQ(found.blocker->id(), "class-order:labels");
  std::vector<std::string> by_output(names.size());
  for (size_t c = 0; c < names.size(); ++c) by_output[size_t(order[c])] = names[c];
  EXPECT_EQ(session::parse_config(found.blocker->line, "netmend.toml").classes, by_output) << found.blocker->line;
}

TEST(SetupSearch, FindsLabelsThatBeginAtOne) {
  const model::Graph graph = zoo::make("mlp:6-5", {.seed = 3});
  const auto feature = dataset::table_feature({"a", "b", "c", "d", "e", "f"});
  const at::Tensor x = table_rows(), labels = Planted::predicted(graph, feature, x);
  const Planted planted(graph, feature, x, renumbered_labels(labels, {1, 2, 3, 4, 0}), five_names());
  const Searched found = search_setups(planted.trial());
  ASSERT_TRUE(found.blocker.has_value());
  EXPECT_EQ(found.blocker->id(), "class-order:labels");
  EXPECT_NE(found.blocker->evidence.find("labels one lower"), std::string::npos) << found.blocker->evidence;
}

TEST(SetupSearch, FindsTheOutputThatCounts) {
  const auto feature = dataset::table_feature({"a", "b", "c", "d", "e", "f"});
  model::Graph graph = centred_network("mlp:6-5-5", feature, table_rows());
  const model::ValueId hidden = graph.nodes.at(0).outputs.at(0);
  graph.values[size_t(graph.outputs.at(0))].name = "the \"right\" one";
  graph.outputs = {hidden, graph.outputs.at(0)};
  const at::Tensor x = table_rows();
  const Planted planted(graph, feature, x, Planted::predicted(graph, feature, x), five_names(), hidden);
  const Searched found = search_setups(planted.trial());
  ASSERT_TRUE(found.blocker.has_value());
  EXPECT_EQ(found.blocker->kind, "wrong-output");
  EXPECT_EQ(session::parse_config(found.blocker->line, "netmend.toml").output, "the \"right\" one");
}

TEST(SetupSearch, RandomLabelsAreExplainedByNothing) {
  const model::Graph graph = centred_network("mlp:192-12-5", dataset::picture_feature(kSide, 3), pictures());
  at::manual_seed(5);
  const Planted planted(graph, dataset::picture_feature(kSide, 3), pictures(), at::randint(5, {kPlanted}, at::kLong),
                        five_names());
  const Searched found = search_setups(planted.trial());
  EXPECT_FALSE(found.blocker.has_value()) << found.blocker->evidence;
}

TEST(SetupSearch, OneClassAndFewInputsAreExplainedByNothing) {
  const model::Graph graph = centred_network("mlp:192-12-5", dataset::picture_feature(kSide, 3), pictures());
  for (const int64_t count : {1, 2, 3, 16}) {
    const Planted planted(graph, dataset::picture_feature(kSide, 3), pictures().narrow(0, 0, count) * 255,
                          at::zeros({count}, at::kLong), five_names());
    const Searched found = search_setups(planted.trial());
    EXPECT_FALSE(found.blocker.has_value()) << count << ": " << found.blocker->evidence;
  }
}

TEST(SetupSearch, InputsThatAreNoNumbersStopNothing) {
  at::Tensor x = pictures();
  x[5].fill_(NAN), x[6].fill_(INFINITY);
  const Planted planted(centred_network("mlp:192-12-5", dataset::picture_feature(kSide, 3), pictures()),
                        dataset::picture_feature(kSide, 3), x, at::randint(5, {kPlanted}, at::kLong), five_names());
  EXPECT_FALSE(search_setups(planted.trial()).blocker.has_value());
  EXPECT_FALSE(examine(*planted.subject, planted.settings, {}, {1, {}}).blocker.has_value());
}

TEST(Examine, SaysWhatWasExpectedAndFound) {
  const at::Tensor x = pictures();
  const model::Graph graph = centred_network("mlp:192-12-5", dataset::picture_feature(kSide, 3), pictures());
  at::Tensor labels = Planted::predicted(graph, dataset::picture_feature(kSide, 3), x);
  at::manual_seed(9);
  labels = at::where(at::rand({kPlanted}) < 0.25, (labels + at::randint(1, 5, {kPlanted}, at::kLong)) % 5, labels);
  const Planted planted(graph, dataset::picture_feature(kSide, 3), x, labels, five_names());
  const double accuracy = (Planted::predicted(graph, dataset::picture_feature(kSide, 3), x) == labels)
                              .to(at::kDouble)
                              .mean()
                              .item<double>();
  const Preflight met = examine(*planted.subject, planted.settings, {accuracy, ""}, {1, {}});
  EXPECT_FALSE(met.blocker.has_value());
  const Preflight missed = examine(*planted.subject, planted.settings, {accuracy + 0.02, ""}, {1, {}});
  ASSERT_TRUE(missed.blocker.has_value());
  EXPECT_EQ(missed.blocker->id(), "expectation:accuracy");
  // Other data on which it holds is named instead.
  const at::Tensor own = Planted::predicted(graph, dataset::picture_feature(kSide, 3), x);
  const OtherData train{"data = { test = \"x:train\" }", "x:train", [&] {
                          return std::make_shared<dataset::MemoryDataset>(dataset::picture_feature(kSide, 3), x, own,
                                                                          five_names());
                        }};
  const Preflight split = examine(*planted.subject, planted.settings, {1.0, ""}, {1, {train}});
  ASSERT_TRUE(split.blocker.has_value());
  EXPECT_EQ(split.blocker->id(), "wrong-split:test");
  EXPECT_EQ(split.blocker->line, train.line);
}

TEST(Examine, OutputsThatAreNotWhatTheFileSaysBlock) {
  const at::Tensor x = pictures();
  const Planted planted(centred_network("mlp:192-12-5", dataset::picture_feature(kSide, 3), pictures()),
                        dataset::picture_feature(kSide, 3), x, at::randint(5, {kPlanted}, at::kLong), five_names());
  EXPECT_FALSE(examine(*planted.subject, planted.settings, {-1, "logits"}, {1, {}}).blocker.has_value());
  const Preflight wrong = examine(*planted.subject, planted.settings, {-1, "probabilities"}, {1, {}});
  ASSERT_TRUE(wrong.blocker.has_value());
  EXPECT_EQ(wrong.blocker->kind, "output-kind");
  EXPECT_EQ(session::parse_config(wrong.blocker->line, "x").overrides.output_kind, "logits");
}

}  // namespace
}  // namespace netmend::preflight
