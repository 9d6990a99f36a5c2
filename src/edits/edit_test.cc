#include "edits/edit.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "base/random.h"
#include "edits/difference.h"
#include "edits/edit_file.h"
#include "edits/graph_for_test.h"
#include "edits/operations.h"
#include "executor/layers.h"
#include "zoo/zoo.h"

namespace netmend::edits {
namespace {

using model::Element;
using model::Graph;
using model::Layer;
using model::ValueId;

std::string reason(const std::function<void()>& body) {
  try {
    body();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

void expect_words(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << text << "\n  should say: " << words;
}

/// A handful of operations on random units, each made for what the ones before it left.
std::vector<Edit> random_edits(Graph& graph, uint64_t seed, int count) {
  Random random(seed);
  std::vector<Layer> layers = executor::find_layers(graph);
  std::vector<Edit> all;
  for (int i = 0; i < count; ++i) {
    const Layer& layer = layers[random.below(layers.size())];
    Operation operation{Target::kWeights, Change(random.below(6)), random.uniform(0, 2)};
    for (Edit& edit : operate(graph, layer, int64_t(random.below(uint64_t(layer.units))), operation, random.bits())) {
      edits::apply(graph, std::span(&edit, 1));
      all.push_back(std::move(edit));
    }
  }
  return all;
}

TEST(Edits, ComposeAndRevert) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    Graph start = zoo::make(seed % 2 ? "cnn1" : "mlp:6-4-3", {.seed = seed});
    Graph stepwise = start;
    std::vector<Edit> edits = random_edits(stepwise, seed, 12);
    Graph at_once = start, compacted = start;
    edits::apply(at_once, edits);
    EXPECT_TRUE(same_constants(stepwise, at_once));
    std::vector<Edit> fewer = compact(edits);
    EXPECT_LE(fewer.size(), edits.size());
    edits::apply(compacted, fewer);
    EXPECT_TRUE(same_constants(stepwise, compacted));
    revert(at_once, edits);
    revert(compacted, fewer);
    EXPECT_TRUE(same_constants(start, at_once));
    EXPECT_TRUE(same_constants(start, compacted));
  }
}

TEST(Edits, CompactDropsWhatEndsWhereItBegan) {
  std::vector<Edit> there = {{"w", "fc1/0", 0, 2, {1, 2}, {3, 4}}, {"w", "fc1/0", 0, 2, {3, 4}, {1, 2}}};
  EXPECT_TRUE(compact(there).empty());
  std::vector<Edit> crossing = {{"w", "", 0, 0, {1, 2}, {3, 4}}, {"w", "", 1, 0, {3, 5}, {3, 6}}};
  EXPECT_EQ(compact(crossing), crossing);
}

Graph two_by_three(Element stored = Element::kFloat) {
  GraphForTest g;
  ValueId x = g.input("x", {1, 2});
  ValueId w = g.constant("weight", at::tensor({1, 2, 3, 4, 5, 6}, at::kFloat).reshape({2, 3}), stored);
  ValueId s = g.constant("gradient", at::scalar_tensor(0.5f));
  return g.finish(g.node("PRelu", {g.node("MatMul", {x, w}), s}));
}

TEST(Edits, AllOrNothing) {
  Graph graph = two_by_three(), start = graph;
  std::vector<Edit> edits = {{"weight", "m/0", 1, 0, {1, 4}, {0, 0}}, {"weight", "m/1", 1, 1, {2, 7}, {0, 0}}};
  expect_words(reason([&] { edits::apply(graph, edits); }),
               "weight, slice 1 of axis 1 (unit m/1): value 1 is 5 in this model, the edit expects 7");
  EXPECT_TRUE(same_constants(graph, start));
}

TEST(Edits, WrongPlacesAreRefused) {
  auto said = [](Edit edit) {
    Graph graph = two_by_three();
    return reason([&] { edits::apply(graph, std::span(&edit, 1)); });
  };
  expect_words(said({"wieght", "", 0, 0, {1}, {1}}), "no parameter wieght (did you mean weight?)");
  expect_words(said({"weight", "", 2, 0, {1}, {1}}), "the parameter is 2×3, so there is no such slice");
  expect_words(said({"weight", "", 0, 2, {1}, {1}}), "no such slice");
  expect_words(said({"weight", "", -1, 0, {1}, {1}}), "no such slice");
  expect_words(said({"weight", "", 0, 0, {1, 2}, {1, 2}}), "2 values before and 2 after, the slice has 3");
  expect_words(said({"weight", "", 0, 0, {1, 2, 3}, {1, 2, 1e39}}), "too large for float32");
  expect_words(said({"gradient", "", 0, 1, {0.5}, {1}}), "no such slice");
}

TEST(Edits, AreRoundedToTheStoredType) {
  Graph graph = two_by_three(Element::kFloat16);
  Edit edit{"weight", "", 0, 0, {1, 2, 3}, {0.1, 0.2, 0.3}};
  edits::apply(graph, std::span(&edit, 1));
  EXPECT_EQ(numbers(graph.constants.begin()->second.value).size() > 0, true);
  at::Tensor weight = graph.constant(find_parameter(graph, "weight"));
  EXPECT_TRUE(at::equal(weight[0], at::tensor({0.1f, 0.2f, 0.3f}).to(at::kHalf).to(at::kFloat)));
  revert(graph, std::span(&edit, 1));
  EXPECT_TRUE(same_constants(graph, two_by_three(Element::kFloat16)));
}

TEST(Edits, ScalarsAndIntegers) {
  Graph graph = two_by_three();
  Edit edit{"gradient", "", 0, 0, {0.5}, {0.25}};
  edits::apply(graph, std::span(&edit, 1));
  EXPECT_EQ(graph.constant(find_parameter(graph, "gradient")).item<float>(), 0.25f);

  GraphForTest g;
  ValueId x = g.input("x", {1, 2});
  g.constant("q", at::tensor({1, -2, 3}, at::kChar));
  Graph integers = g.finish(x);
  Edit fine{"q", "", 0, 1, {-2}, {-128}}, big{"q", "", 0, 1, {-128}, {128}}, part{"q", "", 0, 1, {-128}, {0.5}};
  edits::apply(integers, std::span(&fine, 1));
  expect_words(reason([&] { edits::apply(integers, std::span(&big, 1)); }), "128 cannot be stored as int8");
  expect_words(reason([&] { edits::apply(integers, std::span(&part, 1)); }), "0.5 cannot be stored as int8");
}

// ---- the file ----

TEST(EditFile, ReadsBackToTheSameBits) {
  Random random(1);
  Edit edit{"weight \"quoted\"\n", "conv1/7", 1, 3, {}, {}};
  auto add = [&](double value) { edit.before.push_back(value), edit.after.push_back(-value); };
  for (int i = 0; i < 20000; ++i) {
    uint32_t bits = uint32_t(random.bits());
    float value;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isfinite(value)) add(value);
  }
  for (double value : {0.0, -0.0, 1e-45, 3.4028234663852886e38, 1.0, 16777217.0, 1073741824.0}) add(value);
  EditFile read = parse_edits(to_text({"model.onnx", "0123", {}, {edit}}), "file");
  ASSERT_EQ(read.edits.size(), 1u);
  EXPECT_EQ(read.edits[0].parameter, edit.parameter);
  EXPECT_EQ(read.checksum, "0123");
  ASSERT_EQ(read.edits[0].after.size(), edit.after.size());
  for (size_t i = 0; i < edit.after.size(); ++i) {
    float written = float(edit.after[i]), found = float(read.edits[0].after[i]);
    ASSERT_EQ(std::memcmp(&written, &found, sizeof written), 0) << written;
  }
}

TEST(EditFile, KeepsDoublesAndBrokenNumbersFromBefore) {
  Edit edit{"w", "", 0, 0, {0.1, 1.0 / 3, NAN, INFINITY, -INFINITY}, {1e-300, 123456789012.0, 0, 0, 0}};
  EditFile read = parse_edits(to_text({"", "", {}, {edit}}), "file");
  EXPECT_EQ(read.edits[0].after, edit.after);
  EXPECT_TRUE(std::equal(edit.before.begin(), edit.before.end(), read.edits[0].before.begin(), same_number));
  std::swap(edit.before, edit.after);
  expect_words(reason([&] { to_text({"", "", {}, {edit}}); }), "weights must be finite");
}

TEST(EditFile, RepairsBrokenWeightsAndTakesItBack) {
  Graph graph = two_by_three();
  ValueId id = find_parameter(graph, "weight");
  at::Tensor broken = graph.constant(id).clone();
  broken[0][1] = NAN;
  graph.replace(id, broken);
  Graph repaired = two_by_three();
  EditFile file = describe(graph, edits_between(graph, repaired, executor::find_layers(graph)), "m", "c");
  EditFile read = parse_edits(to_text(file), "file");
  require_fit(graph, read);
  edits::apply(graph, read.edits);
  EXPECT_TRUE(same_constants(graph, repaired));
  revert(graph, read.edits);
  EXPECT_TRUE(std::isnan(graph.constant(id)[0][1].item<float>()));
}

TEST(EditFile, EmptyListNeedsNothingElse) {
  EXPECT_TRUE(parse_edits(R"({"edits": []})", "file").edits.empty());
  EXPECT_TRUE(parse_edits(to_text({}), "file").edits.empty());
}

TEST(EditFile, HostileTextIsRefused) {
  auto said = [](const std::string& text) { return reason([&] { parse_edits(text, "f.json"); }); };
  auto with = [&](const std::string& body) { return said(R"({"edits": [{)" + body + "}]}"); };
  std::string place = R"("parameter": "w", "axis": 0, "index": 0, )";
  expect_words(said(""), "f.json, line 1, column 1: this is not JSON");
  expect_words(said("{\"edits\": [1e999]}"), "this is not JSON");
  expect_words(said("{\"edits\": [NaN]}"), "this is not JSON");
  expect_words(said(std::string(100000, '[')), "f.json: it is nested more than 16 deep");
  expect_words(said("[]"), "the document is a list, expected an object");
  expect_words(said("{}"), "f.json: `edits` is missing");
  expect_words(said(R"({"edits": 3})"), "f.json: `edits` is 3, expected a list");
  expect_words(said(R"({"edits": [3]})"), "f.json: `edits[0]` is 3, expected an object");
  expect_words(said(R"({"format": "netmend-baseline", "edits": []})"), "a file of netmend-baseline, not of edits");
  expect_words(said(R"({"version": 2, "edits": []})"), "version 2, but this netmend reads version 1");
  expect_words(said(R"({"version": "1", "edits": []})"), "`version` is the string '1', expected a whole number");
  expect_words(said(R"({"model": [], "edits": []})"), "`model` is a list, expected an object");
  expect_words(said(R"({"parameters": {"w": {"shape": [2, -1]}}, "edits": []})"), "do not fit the shape");
  expect_words(said(R"({"parameters": {"w": {"shape": [9000000000, 9000000000]}}, "edits": []})"), "do not fit");
  expect_words(said(R"({"parameters": {"w": {"shape": [3], "before": [1]}}, "edits": []})"),
               "has 1 values, which do not fit the shape 3");
  expect_words(with(""), "f.json: `edits[0].parameter` is missing");
  expect_words(with(R"("parameter": 1)"), "`edits[0].parameter` is 1, expected a string");
  expect_words(with(R"("parameter": "w", "axis": 0.5)"), "`edits[0].axis` is 0.5, expected a whole number");
  expect_words(with(R"("parameter": "w", "axis": 18446744073709551615)"), "expected a whole number");
  expect_words(with(R"("parameter": "w", "axis": 0, "index": -1, "before": [], "after": [])"),
               "`edits[0].index` is -1, expected 0 or more");
  expect_words(with(place + R"("before": [1], "after": ["nan"])"),
               "`edits[0].after[0]` is the string 'nan', expected a number");
  expect_words(with(place + R"("before": ["x"], "after": [1])"),
               "`edits[0].before[0]` is the string 'x', expected a number");
  expect_words(with(place + R"("before": [1], "after": [[1]])"), "`edits[0].after[0]` is a list, expected a number");
  expect_words(with(place + R"("before": [1, 2], "after": [1])"), "2 values before and 1 after");
}

TEST(EditFile, DescriptionsMustFitTheModel) {
  Graph graph = two_by_three();
  EditFile file = parse_edits(R"({"parameters": {"weight": {"shape": [3, 2]}}, "edits": []})", "f");
  expect_words(reason([&] { require_fit(graph, file); }), "parameter weight is 2×3 in this model and 3×2 in the edits");
  EditFile other = parse_edits(R"({"parameters": {"weigh": {"shape": [2, 3]}}, "edits": []})", "f");
  expect_words(reason([&] { require_fit(graph, other); }), "did you mean weight?");
}

/// Bytes of a file exchanged, doubled and dropped: it is read, or refused as the user's mistake.
TEST(EditFile, BrokenTextIsAnInputError) {
  Graph start = zoo::make("mlp:6-4-3", {}), edited = start;
  std::string text = to_text(describe(start, random_edits(edited, 3, 2), "m.onnx", "0123456789abcdef"));
  const std::string pieces = "0123456789-.e[]{}\":, nulltrue\\\xff";
  Random random(5);
  int read = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string broken = text;
    for (uint64_t i = 0; i <= random.below(3); ++i) {
      size_t at = random.below(broken.size());
      if (random.below(3) == 0)
        broken.erase(at, 1 + random.below(20));
      else if (random.below(2) == 0)
        broken.insert(at, broken.substr(random.below(broken.size()), random.below(40)));
      else
        broken[at] = pieces[random.below(pieces.size())];
    }
    try {
      EditFile file = parse_edits(broken, "f");
      Graph graph = start;
      require_fit(graph, file);
      edits::apply(graph, file.edits);
      ++read;
    } catch (const InputError&) {
    }
  }
  EXPECT_GT(read, 0);
  EXPECT_LT(read, 2900);
}

TEST(EditFile, TooMuchIsRefused) {
  Edit edit{"w", "", 0, 0, std::vector<double>(30'000'000), std::vector<double>(30'000'000)};
  expect_words(reason([&] { to_text({"", "", {}, {edit}}); }), "60,000,000 numbers");
}

// ---- the difference ----

TEST(Difference, FindsWhatOperationsDid) {
  Graph a = zoo::make("lenet5", {}), b = a;
  std::vector<Layer> layers = executor::find_layers(a);
  edits::apply(b, operate(b, layers[1], 3, {Target::kWeights, Change::kSet, 0}, 0));
  edits::apply(b, operate(b, layers[2], 5, {Target::kBias, Change::kSet, 0.5}, 0));
  Difference found = compare(a, b, layers);
  EXPECT_EQ(found.changed.size(), 2u);
  ASSERT_EQ(found.units.size(), 2u);
  EXPECT_EQ(found.units[0].name, "conv2/3");
  EXPECT_NEAR(found.units[0].amount.relative(), 1, 1e-6);
  EXPECT_EQ(found.units[0].amount.changed, 6 * 25);
  EXPECT_EQ(found.units[0].amount.values, 6 * 25 + 1);
  EXPECT_EQ(found.units[1].name, layers[2].name + "/5");
  EXPECT_EQ(found.units[1].amount.changed, 1);
  EXPECT_EQ(found.units[1].amount.largest, 0.5);
  EXPECT_EQ(found.total.changed, 6 * 25 + 1);
  ASSERT_EQ(found.layers.size(), 2u);
  EXPECT_EQ(found.layers[0].units_changed, 1);
}

TEST(Difference, EditsLeadFromOneModelToTheOther) {
  for (std::string name : {"cnn1", "resnet20", "textcnn", "mlp:6-4-3"}) {
    Graph a = zoo::make(name, {.seed = 1, .vocabulary = 60}), b = zoo::make(name, {.seed = 2, .vocabulary = 60});
    std::vector<Layer> layers = executor::find_layers(a);
    std::vector<Edit> edits = edits_between(a, b, layers);
    Graph other = a;
    edits::apply(other, edits);
    EXPECT_TRUE(same_constants(other, b)) << name;
    revert(other, edits);
    EXPECT_TRUE(same_constants(other, a)) << name;
    EXPECT_TRUE(compare(a, a, layers).changed.empty());
    EXPECT_TRUE(edits_between(a, a, layers).empty());
  }
}

TEST(Difference, WhatReadsAUnitIsOneSlice) {
  Graph a = zoo::make("mlp:6-40-30", {}), b = a;
  std::vector<Layer> layers = executor::find_layers(a);
  std::vector<Edit> made = operate(a, layers[0], 7, {Target::kOutgoing, Change::kScale, 0.5}, 0);
  edits::apply(b, made);
  std::vector<Edit> found = edits_between(a, b, layers);
  ASSERT_EQ(found.size(), 1u);
  found[0].unit = made[0].unit;  // it belongs to no unit of the layer that reads
  EXPECT_EQ(found, made);
}

TEST(Difference, NamesMayDifferAndStructureMayNot) {
  Graph a = zoo::make("mlp:6-4-3", {.seed = 1}), b = zoo::make("mlp:6-4-3", {.seed = 2});
  for (model::Value& value : b.values) value.name = "other_" + value.name;
  Graph moved = a;
  edits::apply(moved, edits_between(a, b, executor::find_layers(a)));
  EXPECT_TRUE(same_constants(moved, b));
  auto said = [&](const Graph& other) { return reason([&] { matching_constants(a, other); }); };
  expect_words(said(zoo::make("mlp:6-4-4-3", {})), "operators and");
  expect_words(said(zoo::make("mlp:6-5-3", {})), "is 4×6 and 5×6");
  Graph attribute = a;
  attribute.nodes.back().attributes["alpha"] = 2.0f;
  expect_words(said(attribute), "attribute alpha of Gemm");
  Graph operation = a;
  operation.nodes[1].op = "Tanh";
  expect_words(said(operation), "operator 1 is Relu");
}

}  // namespace
}  // namespace netmend::edits
