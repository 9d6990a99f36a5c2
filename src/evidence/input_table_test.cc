// The report's table of inputs: which are in it, what is shown of them, and its map against a plain decomposition.
#include "evidence/input_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "dataset/image_file.h"
#include "evidence/json.h"
#include "evidence/points_for_test.h"

namespace netmend::evidence {
namespace {

using Json = nlohmann::ordered_json;
using observers::SampleRow;

TEST(InputTables, GiveAnInputOneRowAndRefuseWhatIsNotThere) {
  PointCase points(30);
  InputTable table = points.table();
  EXPECT_EQ(table.find("test", 7), -1);
  const int64_t row = table.row("test", 7);
  EXPECT_EQ(table.row("test", 7), row);
  EXPECT_EQ(table.find("test", 7), row);
  EXPECT_NE(table.row("test", 8), row);
  for (int64_t sample : {int64_t(-1), int64_t(30), INT64_MAX}) EXPECT_EQ(table.row("test", sample), -1);
  EXPECT_EQ(table.row("train", 3), -1) << "there is no training data";
}

TEST(InputTables, TellTestsFromTrainingInputsOfTheSameNumber) {
  PointCase points(30), other(20);
  points.train = other.data;
  InputTable table = points.table();
  const int64_t test = table.row("test", 3), training = table.row("train", 3);
  EXPECT_NE(test, training);
  EXPECT_EQ(table.row("train", 25), -1);
  const Json json = table.to_json();
  EXPECT_EQ(json["split"], (Json{0, 1}));
  EXPECT_EQ(json["left_out"], 29) << "of the tests";
}

TEST(InputTables, TakeFailuresFirstTheLargestLossBeforeTheOthers) {
  PointCase points(200);
  points.options.most_inputs = 60;
  InputTable table = points.table();
  table.add_tests();
  table.show_failures();
  const Json json = table.to_json();
  int64_t failures = 0;
  for (int64_t i = 0; i < 200; ++i) failures += points.fails(i);
  ASSERT_GT(failures, 20);
  ASSERT_LT(failures, 60);
  ASSERT_LE(json["sample"].size(), 60u);
  ASSERT_GT(int64_t(json["sample"].size()), failures);
  EXPECT_EQ(json["left_out"], 200 - json["sample"].size());
  std::set<int64_t> once;
  for (size_t row = 0; row < json["sample"].size(); ++row) {
    const auto sample = json["sample"][row].get<int64_t>();
    EXPECT_TRUE(once.insert(sample).second);
    EXPECT_EQ(points.fails(sample), int64_t(row) < failures) << row;
    if (row > 0 && int64_t(row) < failures) {
      EXPECT_GE(points.rows()[size_t(json["sample"][row - 1])].loss, points.rows()[size_t(sample)].loss);
    }
  }
  EXPECT_EQ(table.shown(), failures);
}

TEST(InputTables, LeaveFailuresOutOnlyWhereTheyAloneAreTooMany) {
  PointCase points(200);
  points.options.most_inputs = 10;
  InputTable table = points.table();
  const int64_t asked = table.row("test", 199);  // a finding speaks of it
  table.add_tests();
  const Json json = table.to_json();
  EXPECT_EQ(json["sample"].size(), 10u);
  EXPECT_EQ(json["sample"][size_t(asked)], 199);
  EXPECT_EQ(json["left_out"], 190);
}

TEST(InputTables, ShowEachRowOnceAndNoMoreThanAsked) {
  PointCase points(30);
  points.options.most_rows = 3;
  InputTable table = points.table();
  table.show(-1);
  EXPECT_EQ(table.shown(), 0);
  for (int64_t sample : {4, 4, 5, 6, 7}) table.show(table.row("test", sample));
  EXPECT_EQ(table.shown(), 3);
}

TEST(InputTables, ColumnsSayWhatThePassSaw) {
  PointCase points(50);
  InputTable table = points.table();
  table.add_tests();
  const Json json = table.to_json();
  for (const char* key : {"split", "sample", "id", "label", "predicted", "confidence", "loss", "right", "second"})
    ASSERT_EQ(json[key].size(), 50u) << key;
  for (size_t row = 0; row < 50; ++row) {
    const auto sample = json["sample"][row].get<int64_t>();
    const float a = points.x[sample][0].item<float>(), b = points.x[sample][1].item<float>();
    EXPECT_EQ(json["id"][row], std::to_string(sample));
    EXPECT_EQ(json["label"][row], points.y[sample].item<int64_t>());
    EXPECT_EQ(json["predicted"][row], int64_t(b > a));
    EXPECT_EQ(json["second"][row], int64_t(b <= a));
    EXPECT_EQ(json["right"][row], int64_t((b > a) == (points.y[sample].item<int64_t>() == 1)));
    EXPECT_NEAR(json["confidence"][row].get<double>(), 1 / (1 + std::exp(-std::abs(a - b))), 1e-4);
  }
}

TEST(InputTables, PredictionsThatAreNoNumbersAreNull) {
  PointCase points(40);
  points.x[3].fill_(NAN);
  points.remake();
  InputTable table = points.table();
  const auto row = size_t(table.row("test", 3));
  const Json json = Json::parse(dump(table.to_json()));
  EXPECT_TRUE(json["confidence"][row].is_null()) << json["confidence"].dump();
  EXPECT_TRUE(json["second"][row].is_null());
}

TEST(InputTables, WithoutLabelsSayNeitherLabelNorRight) {
  PointCase points(40);
  points.y = at::Tensor(), points.classes.clear();
  points.remake();
  InputTable table = points.table();
  table.row("test", 3);
  const Json json = table.to_json();
  EXPECT_TRUE(json["label"][0].is_null() && json["right"][0].is_null() && json["loss"][0].is_null()) << json.dump();
  EXPECT_FALSE(json["predicted"][0].is_null());
}

TEST(InputTables, TextsAreCutAtAWholeCharacterAndBrokenOnesStillMakeADocument) {
  PointCase points(10);
  points.data->texts.assign(10, "short");
  for (int i = 0; i < 2400; ++i) points.data->texts[1] += "é";
  points.data->texts[2] = "<b>\"bold\"</b>\n\\";
  points.data->texts[3] = "\xff\xfe";
  InputTable table = points.table();
  std::vector<std::string> keys;
  for (int64_t sample = 0; sample < 4; ++sample) {
    keys.push_back(std::to_string(table.row("test", sample)));
    table.show(table.row("test", sample));
  }
  const Json json = Json::parse(dump(table.to_json()));
  EXPECT_EQ(json["texts"][keys[0]], "short");
  const auto cut = json["texts"][keys[1]].get<std::string>();
  EXPECT_LE(cut.size(), 4000 + 4u);
  EXPECT_EQ(cut.substr(cut.size() - 6), "é …") << "a whole letter before the dots";
  EXPECT_EQ(json["texts"][keys[2]], points.data->texts[2]);
  EXPECT_EQ(json["texts"][keys[3]], "\xEF\xBF\xBD\xEF\xBF\xBD") << "bytes that are no UTF-8 are replaced";
  EXPECT_FALSE(json["texts"].contains(std::to_string(table.row("test", 5)))) << "it was not shown";
}

dataset::Display picture_of(int64_t height, int64_t width, int64_t channels, uint64_t seed = 1) {
  dataset::Display display;
  display.kind = dataset::Display::kImage, display.height = height, display.width = width, display.channels = channels;
  Random random(seed);
  for (int64_t i = 0; i < height * width * channels; ++i) display.pixels.push_back(uint8_t(random.below(256)));
  return display;
}
dataset::Image shown_picture(const Json& json, int64_t row, int64_t channels) {
  const auto text = json["pictures"][std::to_string(row)].get<std::string>();
  const std::string head = "data:image/png;base64,";
  EXPECT_EQ(text.substr(0, head.size()), head);
  return dataset::decode_image(from_base64(text.substr(head.size())), channels, "picture");
}

TEST(InputTables, SmallPicturesAreEmbeddedAsTheyAre) {
  PointCase points(10);
  for (int64_t i = 0; i < 10; ++i) points.data->pictures.push_back(picture_of(5 + i, 7, i % 2 ? 3 : 1, uint64_t(i)));
  InputTable table = points.table();
  for (int64_t i = 0; i < 10; ++i) table.show(table.row("test", i));
  const Json json = table.to_json();
  for (int64_t i = 0; i < 10; ++i) {
    const dataset::Display& own = points.data->pictures[size_t(i)];
    const dataset::Image image = shown_picture(json, table.row("test", i), own.channels);
    EXPECT_EQ(image.height, own.height);
    EXPECT_EQ(image.pixels, own.pixels);
  }
}

TEST(InputTables, LargePicturesAreShrunkByMeansAndNarrowOnesKeepTheirNarrowSide) {
  PointCase points(3);
  points.data->pictures = {picture_of(200, 150, 1), picture_of(2, 400, 1), picture_of(300, 1, 3)};
  InputTable table = points.table();
  for (int64_t i = 0; i < 3; ++i) table.show(table.row("test", i));
  const Json json = table.to_json();
  const dataset::Image large = shown_picture(json, 0, 1);
  EXPECT_EQ(large.height, 66);  // blocks of three
  EXPECT_EQ(large.width, 50);
  int64_t sum = 0;
  for (int64_t y : {0, 1, 2})
    for (int64_t x : {3, 4, 5}) sum += points.data->pictures[0].pixels[size_t(y * 150 + x)];
  EXPECT_EQ(large.pixels[1], uint8_t(sum / 9));
  const dataset::Image wide = shown_picture(json, 1, 1), tall = shown_picture(json, 2, 3);
  EXPECT_GE(wide.height, 1);
  EXPECT_LE(wide.width, 96);
  EXPECT_EQ(tall.width, 1);
}

TEST(InputTables, PicturesEndWhereTheirBytesAreSpentAndAreLeftOutWhenNobodyWantsThem) {
  PointCase points(10);
  for (int64_t i = 0; i < 10; ++i) points.data->pictures.push_back(picture_of(40, 40, 1, uint64_t(i)));
  points.options.most_bytes = 6000;  // noise does not compress: each takes more than 2,000
  InputTable table = points.table();
  for (int64_t i = 0; i < 10; ++i) table.show(table.row("test", i));
  int64_t bytes = 0;
  const Json json = table.to_json();
  for (const auto& [row, text] : json["pictures"].items()) bytes += int64_t(text.get<std::string>().size());
  EXPECT_EQ(json["pictures"].size(), 2u);
  EXPECT_LE(bytes, 6000 + 2 * 22);
  points.options.pictures = false;
  EXPECT_TRUE(table.to_json()["pictures"].empty());
  EXPECT_FALSE(table.to_json().contains("heat"));
}

TEST(InputTables, GroupsAreListedOnceAndPointedTo) {
  PointCase points(12);
  std::vector<std::vector<std::string>> groups;
  for (int i = 0; i < 12; ++i) groups.push_back({i % 3 ? "F" : "M", i < 6 ? "old" : ""});
  points.data->set_groups({"sex", "age"}, groups);
  InputTable table = points.table();
  table.add_tests();
  const Json json = table.to_json();
  EXPECT_EQ(json["groups"]["sex"]["values"].size(), 2u);
  for (size_t row = 0; row < 12; ++row)
    for (size_t g : {0, 1}) {
      const Json& group = json["groups"][g ? "age" : "sex"];
      EXPECT_EQ(group["values"][group["of"][row].get<size_t>()], groups[json["sample"][row].get<size_t>()][g]);
    }
}

TEST(InputTables, SlicesAndClustersStandWithTheirTests) {
  PointCase points(10);
  InputTable table = points.table();
  points.checkup.results.clusters.assign(10, -1);
  points.checkup.results.clusters[4] = 2;
  table.add_slice(0, {1, 4}), table.add_slice(1, {4});
  for (int64_t i : {1, 4, 5}) table.row("test", i);
  const Json json = table.to_json();
  EXPECT_EQ(json["slices"], (Json{Json{0}, Json{0, 1}, Json::array()}));
  EXPECT_EQ(json["cluster"], (Json{nullptr, 2, nullptr}));
}

/// Hidden values of the inputs, by the network's definition: positive and negative parts of the two columns.
at::Tensor hidden_of(const PointCase& points, const std::vector<int64_t>& samples) {
  at::Tensor rows = points.x.index_select(0, at::tensor(samples, at::kLong)).to(at::kDouble);
  at::Tensor a = rows.select(1, 0), b = rows.select(1, 1);
  return at::stack({a.clamp_min(0), (-a).clamp_min(0), b.clamp_min(0), (-b).clamp_min(0)}, 1);
}

Json map_of(PointCase& points, bool backwards = false) {
  InputTable table = points.table();
  const int64_t size = points.x.size(0);
  for (int64_t i = 0; i < size; ++i) table.row("test", backwards ? size - 1 - i : i);
  Json json;
  table.add_map(json);
  return json;
}

TEST(InputMapsOfATable, AreThePrincipalComponentsOfTheLastHiddenLayer) {
  PointCase points(60);
  const Json map = map_of(points)["map"];
  std::vector<int64_t> samples(60);
  for (int64_t i = 0; i < 60; ++i) samples[size_t(i)] = i;
  at::Tensor all = hidden_of(points, samples);
  all = all - all.mean(0);
  const auto [u, s, vh] = at::linalg_svd(all, false);
  const at::Tensor scores = u * s, shares = s.square() / s.square().sum();
  ASSERT_EQ(map["x"].size(), 60u);
  for (int axis : {0, 1}) {
    EXPECT_NEAR(map["explained"][size_t(axis)].get<double>(), shares[axis].item<double>(), 1e-4);
    double sign = 0;
    for (int64_t i = 0; i < 60; ++i) {
      const double own = map[axis ? "y" : "x"][size_t(i)].get<double>(), twin = scores[i][axis].item<double>();
      if (sign == 0 && std::abs(twin) > 0.1) sign = own * twin > 0 ? 1 : -1;
      EXPECT_NEAR(own, sign * twin, 2e-4) << i;
    }
    // The sign is that of the axis whose largest component is positive.
    const at::Tensor direction = sign * vh[axis];
    EXPECT_GT(direction[direction.abs().argmax()].item<double>(), 0);
  }
}

TEST(InputMapsOfATable, DoNotDependOnTheOrderOfTheRows) {
  PointCase points(60);
  const Json one = map_of(points)["map"], other = map_of(points, true)["map"];
  for (size_t i = 0; i < 60; ++i)
    for (const char* axis : {"x", "y"})
      EXPECT_NEAR(one[axis][i].get<double>(), other[axis][59 - i].get<double>(), 1.1e-4);
}

TEST(InputMapsOfATable, OfEqualInputsAreOnePointAndOfFewAreNone) {
  PointCase points(20);
  points.x.fill_(1.5);
  points.remake();
  const Json map = map_of(points)["map"];
  for (const char* axis : {"x", "y"})
    for (const Json& value : map[axis]) EXPECT_EQ(value, 0);
  EXPECT_EQ(map["explained"], (Json{0.0, 0.0}));
  PointCase few(7);
  EXPECT_FALSE(map_of(few).contains("map"));
}

TEST(InputMapsOfATable, WithNanStayFinite) {
  PointCase points(30);
  points.x[4].fill_(NAN);
  points.remake();
  const Json map = map_of(points);
  for (const Json& value : map["map"]["x"]) EXPECT_TRUE(value.is_number());
}

TEST(InputTables, NearestRowsAreThoseOfASearchOfAllPairs) {
  PointCase points(50);
  InputTable table = points.table();
  std::vector<int64_t> samples(50);
  for (int64_t i = 0; i < 50; ++i) samples[size_t(i)] = i, table.row("test", i);
  for (int64_t i : {3, 11, 20}) table.show(i);
  Json json;
  table.add_map(json);
  at::Tensor all = hidden_of(points, samples);
  all = all / all.std(0);
  ASSERT_EQ(json["similar"]["rows"], (Json{3, 11, 20}));
  for (size_t q = 0; q < 3; ++q) {
    const auto own = json["similar"]["rows"][q].get<int64_t>();
    std::vector<std::pair<double, int64_t>> order;
    for (int64_t i = 0; i < 50; ++i)
      if (i != own) order.push_back({(all[i] - all[own]).norm().item<double>(), i});
    std::sort(order.begin(), order.end());
    ASSERT_EQ(json["similar"]["nearest"][q].size(), 8u);
    for (size_t n = 0; n < 8; ++n) EXPECT_EQ(json["similar"]["nearest"][q][n], order[n].second) << own << " " << n;
  }
}

TEST(InputTables, NeighboursOfAFailureAreSortedByWhetherTheyAreRight) {
  PointCase points(80, 0.4);
  points.data->texts.assign(80, "a text");
  InputTable table = points.table();
  table.add_tests();
  table.show_failures();
  const Json json = table.to_json();
  ASSERT_TRUE(json.contains("near"));
  for (const auto& [row, sides] : json["near"].items()) {
    EXPECT_TRUE(points.fails(json["sample"][size_t(std::stoi(row))]));
    for (const char* side : {"right", "wrong"}) {
      EXPECT_LE(sides[side].size(), 3u);
      for (const Json& other : sides[side]) {
        EXPECT_EQ(points.fails(json["sample"][other.get<size_t>()]), side == std::string("wrong"));
        EXPECT_NE(other, std::stoi(row));
        EXPECT_TRUE(json["texts"].contains(other.dump())) << "neighbours can be seen too";
      }
    }
  }
}

TEST(InputTables, RowsOfATableHaveTheirRawValuesUnderTheirColumns) {
  PointCase points(60);
  for (int64_t i = 0; i < 60; ++i) {
    dataset::Display row;
    row.kind = dataset::Display::kText, row.text = "not for people";
    row.values = {
        {"a", std::to_string(i)}, {"camera <b>", i == 7 ? "rare" : "usual"}, {"note", std::to_string(i) + "!"}};
    if (i == 8) row.values[0].second = "?";
    points.data->pictures.push_back(row);  // what is shown of it
  }
  InputTable table = points.table();
  for (int64_t sample : {7, 8}) table.show(table.row("test", sample));
  const Json json = table.to_json(), &shown = json["table"];
  EXPECT_TRUE(json["texts"].empty() && json["pictures"].empty());
  EXPECT_EQ(shown["values"][std::to_string(table.row("test", 7))], (Json{"7", "rare", "7!"}));
  EXPECT_EQ(shown["values"][std::to_string(table.row("test", 8))], (Json{"?", "usual", "8!"}));
  EXPECT_FALSE(shown["values"].contains(std::to_string(table.row("test", 9)))) << "it was not shown";
  const Json &number = shown["columns"][0], &word = shown["columns"][1], &free = shown["columns"][2];
  EXPECT_EQ(number["name"], "a");
  EXPECT_TRUE(number["input"].get<bool>() && !word["input"].get<bool>()) << "the network is given a and b";
  EXPECT_NEAR(std::stod(number["typical"].get<std::string>()), 29.5, 1.5) << "the median, and ? is no value";
  EXPECT_NEAR(number["numbers"]["low"].get<double>(), 3, 1.01);
  EXPECT_NEAR(number["numbers"]["high"].get<double>(), 56, 1.01);
  EXPECT_NEAR(number["numbers"]["sd"].get<double>(), 17.3, 0.4);
  EXPECT_EQ(word["name"], "camera <b>");
  EXPECT_EQ(word["typical"], "usual");
  EXPECT_EQ(word["common"], Json{"usual"}) << "one row of sixty is rare";
  EXPECT_TRUE(free["common"].empty()) << "where every value is its own, none is rare";
}

TEST(InputTables, WhatIsSpokenOfIsShownBeforeFailures) {
  PointCase points(200, 0.5);
  points.options.most_rows = 20;
  points.data->texts.assign(200, "a text");
  InputTable table = points.table();
  int64_t right = 0;
  while (points.fails(right)) ++right;
  table.add_tests();
  table.show(table.row("test", right));
  table.show_failures();
  const Json json = table.to_json();
  EXPECT_TRUE(json["texts"].contains(std::to_string(table.row("test", right))));
  EXPECT_EQ(table.shown(), 15) << "the rest of the room is for neighbours";
  EXPECT_LE(json["texts"].size(), 20u);
}

}  // namespace
}  // namespace netmend::evidence
