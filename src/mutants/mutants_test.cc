#include "mutants/mutants.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "base/random.h"
#include "edits/graph_for_test.h"
#include "edits/unit_numbers.h"
#include "mutants/judged.h"
#include "mutants/structure.h"
#include "stream/layers.h"
#include "zoo/builder.h"
#include "zoo/zoo.h"

namespace netmend::mutants {
namespace {

struct Fixture {
  stream::Subject subject;
  observers::PredictionSettings settings;
  std::vector<model::Layer> layers;
};

Fixture make(model::Graph graph, const std::string& data, int64_t inputs) {
  std::shared_ptr<const dataset::Dataset> whole = dataset::open(data);
  std::shared_ptr<const dataset::Dataset> source = dataset::subset(whole, stream::spread(whole->size(), inputs));
  executor::Head head = executor::find_head(graph, graph.outputs[0]);
  stream::Subject subject("network", graph, source, {head.output, head.logits});
  dataset::Batch few = source->read(stream::spread(source->size(), 8));
  at::Tensor output = stream::run_few(subject, {head.output}, few)[0];
  auto settings = observers::infer_task(graph, head, source->info(), few, output);
  Fixture out{std::move(subject), std::move(settings), {}};
  out.layers = stream::find_layers(out.subject);
  return out;
}

/// The slow twin: the mutated network from the start.
std::vector<observers::SampleRow> evaluate(const Fixture& at, const Mutant* mutant) {
  model::Graph graph = mutant && mutant->graph ? *mutant->graph : at.subject.graph;
  if (mutant && !mutant->graph) edits::apply(graph, mutant->edits);
  stream::Subject subject("mutant", graph, at.subject.data, {at.settings.head.output, at.settings.head.logits});
  observers::Predictions predictions(at.settings, true);
  stream::PassOptions options;
  options.quiet = true;
  auto done = stream::run_pass(subject, {&predictions}, options);
  auto state = done.collected[0].fold(predictions);
  return dynamic_cast<observers::PredictionState&>(*state).rows;
}

void expect_equal(const Fixture& at, const Generated& made, Kill kill) {
  const Judged judged = judge(at.subject, at.settings, at.layers, made.list, kill, 0);
  const auto original = evaluate(at, nullptr);
  for (size_t m = 0; m < made.list.size(); ++m) {
    SCOPED_TRACE(made.list[m].id);
    const auto twin = evaluate(at, &made.list[m]);
    int64_t changed = 0, right = 0, differing = 0;
    for (size_t i = 0; i < twin.size(); ++i) {
      const bool moved = twin[i].predicted != original[i].predicted;
      changed += moved, right += twin[i].right == 1;
      const bool kills = kill == Kill::kStrict ? moved : original[i].right == 1 && twin[i].right != 1;
      differing += kills != judged.table.get(m, int64_t(i));
    }
    EXPECT_EQ(differing, 0);
    EXPECT_EQ(judged.changed[m], changed);
    EXPECT_NEAR(judged.accuracy[m], double(right) / double(twin.size()), 1e-9);
  }
}

Generation usual(int64_t sample, const std::string& operators = "all") {
  Generation how;
  how.operators = find_operators(operators), how.sample = sample;
  return how;
}

/// A network whose layers can be removed and doubled, with fresh weights.
model::Graph same_shapes() {
  zoo::Builder b("same-shapes", zoo::Scheme::kGlorot, 3);
  auto x = b.flatten(b.input("input", {1, 28, 28}));
  x = b.relu(b.dense("fc1", x, 784, 24));
  x = b.relu(b.dense("fc2", x, 24, 24));
  x = b.relu(b.dense("fc3", x, 24, 24));
  return b.finish(b.dense("fc4", x, 24, 10), "output", 10);
}

TEST(Mutants, EqualAFullEvaluationOfEachMutant) {
  for (const char* network : {"lenet5", "dnn1"}) {
    SCOPED_TRACE(network);
    const Fixture at = make(zoo::make(network), "glyphs:test", 130);
    const Generated made = generate(at.subject, at.layers, at.settings, usual(45));
    EXPECT_EQ(made.list.size(), 45u);
    expect_equal(at, made, Kill::kClass);
  }
}

TEST(Mutants, LayersAreRemovedAndDoubledWhereShapesAllowIt) {
  const Fixture at = make(same_shapes(), "glyphs:test", 130);
  const Generated made = generate(at.subject, at.layers, at.settings, usual(0, "lr,ldup,la,afr"));
  std::set<std::string> ids;
  for (const Mutant& one : made.list) ids.insert(one.id);
  for (const char* id : {"lr:fc2", "lr:fc3", "ldup:fc2", "afr:fc1:Tanh", "afr:fc1:Identity", "la:fc3:Sigmoid"})
    EXPECT_TRUE(ids.count(id)) << id;
  EXPECT_FALSE(ids.count("lr:fc1"));
  EXPECT_FALSE(ids.count("afr:fc4:Tanh"));  // the output layer has no activation function
  expect_equal(at, made, Kill::kStrict);
}

/// Rows of a picture one after the other, through a recurrent layer of 6 units.
model::Graph recurrent_network(const std::string& op) {
  edits::GraphForTest g;
  at::manual_seed(4);
  const int64_t rows = gates_of(op) * 6;
  const auto x = g.input("input", {-1, 1, 28, 28});
  const auto cut = g.node("Reshape", {x, g.constant("shape", at::tensor(std::vector<int64_t>{-1, 28, 28}, at::kLong))});
  const auto first = g.node("Transpose", {cut}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
  const auto w = g.constant("w", at::randn({1, rows, 28})), r = g.constant("r", at::randn({1, rows, 6})),
             b = g.constant("b", at::randn({1, 2 * rows}));
  g.node(op, {first, w, r, b}, {{"hidden_size", int64_t(6)}});
  const auto last = g.graph.add_value("last");
  g.graph.nodes.back().outputs.push_back(last);
  const auto flat = g.node("Squeeze", {last, g.constant("axis", at::tensor(std::vector<int64_t>{0}, at::kLong))});
  return g.finish(g.node("Gemm", {flat, g.constant("fc", at::randn({6, 10})), g.constant("fcb", at::zeros({10}))}));
}

TEST(Mutants, RecurrentLayersAreDisturbedAtOneStep) {
  for (const char* op : {"LSTM", "GRU", "RNN"}) {
    SCOPED_TRACE(op);
    const Fixture at = make(recurrent_network(op), "glyphs:test", 70);
    const Generated made = generate(at.subject, at.layers, at.settings, usual(18, "wgf,wpr,sc,sr,sgf,spr,gc,ggf,gpr"));
    std::set<std::string_view> kinds;
    for (const Mutant& one : made.list) kinds.insert(one.op->name);
    for (const auto& [name, why] : made.without) ADD_FAILURE() << name << ": " << why;
    EXPECT_EQ(kinds.size(), 9u);
    expect_equal(at, made, Kill::kStrict);
  }
}

TEST(Mutants, AClearedStateForgetsTheStepsBefore) {
  const Fixture at = make(recurrent_network("GRU"), "glyphs:test", 10);
  const Generated made = generate(at.subject, at.layers, at.settings, usual(3, "sc"));
  ASSERT_EQ(made.list.size(), 3u);
  at::Tensor one = at::randn({2, 1, 28, 28}), other = one.clone();
  for (const Mutant& mutant : made.list) {
    const int64_t step = std::stoll(mutant.id.substr(mutant.id.rfind("step") + 4));
    other.narrow(2, 0, step).normal_();
    auto run = [](const model::Graph& graph, const at::Tensor& x) { return executor::Executor(graph).run({&x, 1})[0]; };
    EXPECT_TRUE(at::allclose(run(*mutant.graph, one), run(*mutant.graph, other))) << mutant.id;
    EXPECT_FALSE(at::allclose(run(at.subject.graph, one), run(at.subject.graph, other)));
  }
}

TEST(Mutants, TheSameSeedGivesTheSameList) {
  const Fixture at = make(zoo::make("lenet1"), "glyphs:test", 20);
  Generation how = usual(60);
  auto ids = [&] {
    std::vector<std::string> list;
    for (const Mutant& one : generate(at.subject, at.layers, at.settings, how).list) list.push_back(one.id);
    return list;
  };
  const auto first = ids();
  EXPECT_EQ(first, ids());
  EXPECT_EQ(std::set<std::string>(first.begin(), first.end()).size(), first.size());
  how.seed = 7;
  EXPECT_NE(first, ids());
}

TEST(Mutants, EveryOperatorChangesWhatItSays) {
  const Fixture at = make(zoo::make("dnn1"), "glyphs:test", 20);
  const model::Graph& graph = at.subject.graph;
  auto one = [&](const std::string& op) {
    return generate(at.subject, at.layers, at.settings, usual(1, op)).list.at(0);
  };
  for (const edits::Edit& edit : one("nai").edits)
    for (size_t i = 0; i < edit.before.size(); ++i) {
      if (edit.before[i] != edit.after[i]) {
        EXPECT_EQ(edit.after[i], -edit.before[i]);
      }
    }
  auto sorted = [](std::vector<double> list) { return std::sort(list.begin(), list.end()), list; };
  for (const edits::Edit& edit : one("ws").edits) EXPECT_EQ(sorted(edit.before), sorted(edit.after));
  int64_t moved = 0;
  for (const edits::Edit& edit : one("cw").edits)
    for (size_t i = 0; i < edit.before.size(); ++i) moved += edit.before[i] != edit.after[i];
  EXPECT_EQ(moved, 1);
  model::Graph blocked = graph;
  edits::apply(blocked, one("neb").edits);
}

TEST(Mutants, InhibitorsOfStrengthZeroChangeNothingAndStrongerOnesMore) {
  const Fixture at = make(zoo::make("dnn1"), "glyphs:test", 20);
  EXPECT_TRUE(inhibited_edits(at.subject.graph, at.layers[0], Inhibitor::kWeights, 0.5, 0, 1).empty());
  EXPECT_TRUE(inhibited_edits(at.subject.graph, at.layers[0], Inhibitor::kNeurons, 0.5, 0, 1).empty());
  for (const edits::Edit& edit : inhibited_edits(at.subject.graph, at.layers[0], Inhibitor::kNeurons, 1, 1, 1))
    for (double x : edit.after) EXPECT_EQ(x, 0);
}

KillTable small() {
  // Three mutants, five inputs of two classes.
  KillTable table(Kill::kClass, 3, {0, 0, 1, 1, 0}, 2);
  table.set(0, 0), table.set(0, 1), table.set(0, 2), table.set(1, 2), table.set(1, 3);
  return table;
}

TEST(Kills, ScoresByHand) {
  const KillTable table = small();
  const Killed all = killed(table);
  EXPECT_EQ(all.goals, (std::vector<int32_t>{2, 1, 0}));
  EXPECT_EQ(all.inputs, (std::vector<int64_t>{3, 2, 0}));
  EXPECT_EQ(all.by_class, (std::vector<int64_t>{1, 2}));
  EXPECT_DOUBLE_EQ(score(table, all, {0, 1, 2}).value, 0.5);
  EXPECT_EQ(killed(table, {3}).goals, (std::vector<int32_t>{0, 1, 0}));
  ASSERT_EQ(lone_killers(table).size(), 1u);  // mutant 0 in class 1 is killed by input 2 alone
  EXPECT_EQ(lone_killers(table)[0].input, 2);
  EXPECT_EQ(lone_killers(table)[0].alone, 1);
  EXPECT_EQ(few_tests(table), (std::vector<int64_t>{2, 0}));
  EXPECT_EQ(fewest_tests(table), 2);
}

TEST(Kills, ATestThatLaterOnesMakeNeedlessIsLeftOut) {
  // Test 0 kills most, but 1 and 2 are both needed and kill all that it kills.
  KillTable table(Kill::kStrict, 6, {0, 0, 0}, 1);
  for (size_t m : {0, 1, 2, 3}) table.set(m, 0);
  for (size_t m : {0, 1, 4}) table.set(m, 1);
  for (size_t m : {2, 3, 5}) table.set(m, 2);
  EXPECT_EQ(few_tests(table), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(fewest_tests(table), 2);
}

/// The smallest set, by trying all.
int64_t smallest_of_all(const KillTable& table) {
  const std::vector<int32_t> wanted = killed(table).goals;
  int64_t best = table.inputs();
  for (uint32_t mask = 1; mask < (1u << table.inputs()); ++mask) {
    if (std::popcount(mask) >= best) continue;
    std::vector<int64_t> set;
    for (int64_t i = 0; i < table.inputs(); ++i)
      if (mask >> i & 1) set.push_back(i);
    if (killed(table, set).goals == wanted) best = std::popcount(mask);
  }
  return best;
}

TEST(Kills, FewTestsMeetEveryGoalAndTheBoundHolds) {
  Random random(5);
  int64_t proven = 0;
  for (int round = 0; round < 40; ++round) {
    const bool small = round >= 20;
    const int64_t inputs = small ? 9 : 60;
    const size_t mutants = small ? 8 : 70 + random.below(40);
    std::vector<int32_t> classes;
    for (int64_t i = 0; i < inputs; ++i) classes.push_back(int32_t(random.below(small ? 2 : 4)));
    KillTable table(round % 2 ? Kill::kClass : Kill::kStrict, mutants, classes, 4);
    for (size_t m = 0; m < mutants; ++m)
      for (int64_t i = 0; i < inputs; ++i)
        if (random.below(small ? 3 : 20) == 0) table.set(m, i);
    const std::vector<int64_t> few = few_tests(table);
    EXPECT_EQ(killed(table, few).goals, killed(table).goals);
    EXPECT_LE(fewest_tests(table), int64_t(few.size()));
    EXPECT_LT(int64_t(few.size()), inputs);
    if (!small) continue;
    const int64_t best = smallest_of_all(table);
    EXPECT_LE(fewest_tests(table), best);
    EXPECT_GE(int64_t(few.size()), best);
    proven += fewest_tests(table) == int64_t(few.size());
  }
  EXPECT_GT(proven, 0);
}

/// Two layers that read the same weights.
model::Graph tied_network() {
  edits::GraphForTest g;
  at::manual_seed(6);
  const auto flat = g.node("Flatten", {g.input("input", {-1, 1, 28, 28})});
  const auto first = g.node("Relu", {g.node("Gemm", {flat, g.constant("w1", at::randn({784, 16}) / 28)})});
  const auto shared = g.constant("shared", at::randn({16, 16}) / 4);
  const auto second = g.node("Relu", {g.node("MatMul", {first, shared})});
  const auto third = g.node("Relu", {g.node("MatMul", {second, shared})});
  return g.finish(g.node("Gemm", {third, g.constant("w4", at::randn({16, 10}))}));
}

TEST(Mutants, SharedWeightsChangeInAllOfTheirLayers) {
  const Fixture at = make(tied_network(), "glyphs:test", 60);
  const Generated made = generate(at.subject, at.layers, at.settings, usual(0, "deepmutation,munn"));
  ASSERT_FALSE(made.list.empty());
  expect_equal(at, made, Kill::kStrict);
}

TEST(Mutants, OneLayerWithoutHiddenUnits) {
  edits::GraphForTest g;
  at::manual_seed(7);
  const auto flat = g.node("Flatten", {g.input("input", {-1, 1, 28, 28})});
  const Fixture at = make(
      g.finish(g.node("Gemm", {flat, g.constant("w", at::randn({784, 10}) / 28), g.constant("b", at::zeros({10}))})),
      "glyphs:test", 60);
  const Generated made = generate(at.subject, at.layers, at.settings, usual(200));
  std::set<std::string_view> kinds;
  for (const Mutant& one : made.list) kinds.insert(one.op->name);
  for (const char* op : {"gf", "ws", "nai", "ns", "din", "dhn", "cb", "cw"}) EXPECT_TRUE(kinds.count(op)) << op;
  bool said = false;  // nothing reads the units of the last layer
  for (const auto& [op, why] : made.without) said = said || (op == "neb" && !why.empty());
  EXPECT_TRUE(said);
  expect_equal(at, made, Kill::kClass);
}

TEST(Mutants, QuantisedWeightsArePassedOverWithAReason) {
  edits::GraphForTest g;
  at::manual_seed(8);
  const auto flat = g.node("Flatten", {g.input("input", {-1, 1, 28, 28})});
  auto quantised = [&](const std::string& name, std::vector<int64_t> shape) {
    return g.node("DequantizeLinear", {g.constant(name, at::randint(-90, 90, shape, at::kChar)),
                                       g.constant(name + "/scale", at::tensor(0.01f)),
                                       g.constant(name + "/zero", at::zeros({}, at::kChar))});
  };
  const auto hidden = g.node("Relu", {g.node("MatMul", {flat, quantised("w1", {784, 12})})});
  const Fixture at = make(g.finish(g.node("MatMul", {hidden, quantised("w2", {12, 10})})), "glyphs:test", 60);
  const Generated made = generate(at.subject, at.layers, at.settings, usual(100, "all"));
  for (const Mutant& one : made.list) EXPECT_TRUE(one.graph || !one.edits.empty()) << one.id;
  expect_equal(at, made, Kill::kStrict);
  for (const auto& [op, why] : made.without) EXPECT_FALSE(why.empty()) << op;
}

TEST(Mutants, EqualOutputsAreToldFromEqualPredictions) {
  const Fixture at = make(zoo::make("dnn1"), "glyphs:test", 60);
  auto scaled = [&](double factor) {  // the last layer's weights and biases: predictions stay, outputs do not
    Mutant mutant;
    const int64_t last = int64_t(at.layers.size()) - 1;
    mutant.id = "scaled", mutant.layer = int(last);
    for (int64_t unit = 0; unit < at.layers[size_t(last)].units; ++unit)
      for (edits::Role role : {edits::Role::kWeight, edits::Role::kBias})
        for (edits::Edit& edit : edits::change_unit(at.subject.graph, at.layers[size_t(last)], unit, role,
                                                    [&](double x) { return x * factor; }))
          mutant.edits.push_back(std::move(edit));
    return mutant;
  };
  EXPECT_TRUE(same_outputs(at.subject, at.settings, scaled(1)));
  EXPECT_FALSE(same_outputs(at.subject, at.settings, scaled(1.01)));
}

TEST(Operators, AreFoundByEachOfTheirSources) {
  auto names = [](const std::string& list) {
    std::set<std::string_view> found;
    for (const Operator* op : find_operators(list)) found.insert(op->name);
    return found;
  };
  for (const char* source : {"deepmutation", "deepmutation++"})
    for (const char* op : {"gf", "ws", "neb", "nai", "ns", "lr", "la", "afr"})
      EXPECT_TRUE(names(source).count(op)) << source << " " << op;
  EXPECT_FALSE(names("deepmutation").count("sc"));
  EXPECT_EQ(names("munn"), (std::set<std::string_view>{"afr", "din", "dhn", "cb", "cw"}));
}

}  // namespace
}  // namespace netmend::mutants
