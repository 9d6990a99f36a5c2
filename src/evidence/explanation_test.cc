#include "evidence/explanation.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "dataset/memory_dataset.h"
#include "evidence/relevance_picture.h"
#include "training/network_for_test.h"

namespace netmend::evidence {
namespace {

using training::digits;
using training::digits_session;
using training::TestFolder;

TEST(ExplainRequests, AreCheckedBeforeTheWork) {
  ExplainRequest request;
  EXPECT_NO_THROW(check_request(request));
  request.method = "shap";
  EXPECT_THROW(check_request(request), InputError);
  request = {}, request.rule = "zz";
  EXPECT_THROW(check_request(request), InputError);
  request.method = "gradient", request.rule = "epsilon";
  EXPECT_THROW(check_request(request), InputError);
}

TEST(Explain, RelevanceOfALayerAddsUpToTheLogit) {
  TestFolder folder;
  session::Session session = digits_session(digits().graph);
  ExplainRequest request;
  request.top = 1000;
  const Explanation found = explain(session, request);
  ASSERT_EQ(found.layers.size(), 2u);
  EXPECT_GT(found.explained, 1000);
  EXPECT_EQ(found.inputs, 1500);
  for (const ExplainedLayer& layer : found.layers) {
    double sum = 0;
    for (size_t i = 0; i < layer.top.size(); ++i) {
      sum += layer.top[i].score;
      if (i > 0) {
        EXPECT_GE(layer.top[i - 1].score, layer.top[i].score);
      }
    }
    EXPECT_EQ(int64_t(layer.top.size()), layer.units);
    EXPECT_NEAR(sum / found.start, layer.kept, 1e-4);
  }
  // What passes the first layer and what stays above it is everything.
  EXPECT_NEAR(found.layers[0].kept + found.absorbed, 1, 1e-3);
  EXPECT_EQ(found.classes.size(), 10u);
  EXPECT_EQ(found.document["layers"][0]["units"][0]["unit"], found.layers[0].top[0].name);
}

TEST(Explain, WritesTablesAndMapsOfTheInputsNamed) {
  TestFolder folder;
  session::Session session = digits_session(digits().graph);
  ExplainRequest request;
  const std::string name = digits().test->id(7);
  request.inputs = {name};
  const Explanation found = explain(session, request);
  ASSERT_EQ(found.maps.size(), 1u);
  EXPECT_EQ(found.maps[0].id, name);
  EXPECT_EQ(found.maps[0].kind, "image");
  EXPECT_TRUE(std::filesystem::exists("run/" + found.maps[0].file));
  std::ifstream table("run/importance.csv");
  int64_t rows = -1;
  for (std::string line; std::getline(table, line);) ++rows;
  EXPECT_EQ(rows, 40);
  request.inputs = {"no-such-input"};
  EXPECT_THROW(explain(session, request), InputError);
}

TEST(Explain, RightAndWrongPredictionsMakeUpAll) {
  TestFolder folder;
  int64_t explained[3];
  int i = 0;
  for (const char* which : {"right", "wrong", "all"}) {
    session::Session session = digits_session(digits().graph);
    ExplainRequest request;
    request.predictions = which;
    explained[i++] = explain(session, request).explained;
  }
  EXPECT_EQ(explained[0] + explained[1], explained[2]);
  EXPECT_EQ(explained[2], 1500);
  EXPECT_GT(explained[1], 0);
}

TEST(Explain, ColumnsOfATableAreNamed) {
  TestFolder folder;
  at::manual_seed(3);
  at::Tensor x = at::randn({200, 3});
  at::Tensor labels = (x.select(1, 0) > 0).to(at::kLong);
  auto data = std::make_shared<dataset::MemoryDataset>(dataset::table_feature({"age", "height", "weight"}), x, labels,
                                                       std::vector<std::string>{"no", "yes"});
  session::Request how;
  how.quiet = true, how.out = "run";
  session::Session session(how, "digits.onnx", zoo::make("mlp:3-8-2", {.seed = 5}), data);
  ExplainRequest request;
  request.predictions = "all", request.method = "gradient", request.inputs = {"0", "5"};
  const Explanation found = explain(session, request);
  ASSERT_EQ(found.maps.size(), 2u);
  EXPECT_EQ(found.maps[1].sample, 5);
  EXPECT_EQ(found.maps[0].kind, "columns");
  ASSERT_EQ(found.maps[0].parts.size(), 3u);
  for (size_t i = 1; i < 3; ++i)
    EXPECT_GE(std::abs(found.maps[0].parts[i - 1].relevance), std::abs(found.maps[0].parts[i].relevance));
  EXPECT_EQ(found.how, "gradient × activation");
  EXPECT_TRUE(found.maps[0].label == "no" || found.maps[0].label == "yes");
}

TEST(Explain, FailuresOfOneKindAlone) {
  TestFolder folder;
  session::Session session = digits_session(digits().graph);
  ExplainRequest request;
  request.on = "class=3";
  const Explanation found = explain(session, request);
  EXPECT_GT(found.explained, 0);
  EXPECT_LT(found.explained, 150);
  EXPECT_EQ(found.document["predictions"], "wrong");
  request.on = "class=none";
  EXPECT_THROW(explain(session, request), InputError);
}

TEST(RelevancePicture, ThreePanelsRedForPositiveBlueForNegative) {
  dataset::Display input;
  input.kind = dataset::Display::kImage, input.height = input.width = 4, input.channels = 1;
  input.pixels.assign(16, 128);
  at::Tensor relevance = at::zeros({4, 4});
  relevance[0][0] = 2, relevance[3][3] = -2;
  const dataset::Image image = relevance_picture(input, relevance, "a");
  EXPECT_EQ(image.channels, 3);
  ASSERT_EQ(int64_t(image.pixels.size()), image.height * image.width * 3);
  int64_t red = 0, blue = 0;
  for (size_t i = 0; i + 2 < image.pixels.size(); i += 3) {
    red += image.pixels[i] > image.pixels[i + 2] + 60;
    blue += image.pixels[i + 2] > image.pixels[i] + 60;
  }
  EXPECT_GT(red, 0);
  EXPECT_GT(blue, 0);
  // NaN leaves its pixel white and does not spoil the scale.
  relevance[1][1] = NAN;
  EXPECT_EQ(relevance_picture(input, relevance, "a").pixels, image.pixels);
}

TEST(NamedRelevance, ColumnsByWeightAndTokensWithoutPadding) {
  dataset::Feature table;
  table.name = "x", table.columns = {"age", "income"};
  const auto columns = column_relevance(table, at::tensor({0.1, -0.5, 0.2}));
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_EQ(columns[0].name, "income");
  EXPECT_EQ(columns[1].name, "x[2]");
  dataset::Feature tokens;
  tokens.pad = 0;
  dataset::Display text;
  text.kind = dataset::Display::kText, text.text = "good film";
  const auto words =
      token_relevance(tokens, text, at::tensor({5, 9, 0, 0}, at::kLong), {}, at::tensor({0.7, 0.1, 0., 0.}));
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[0].name, "good");
  text.text = "three words here";
  EXPECT_EQ(token_relevance(tokens, text, at::tensor({5, 9, 0, 0}, at::kLong), {}, at::zeros({4}))[1].name, "#9");
}

}  // namespace
}  // namespace netmend::evidence
