#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "base/error.h"
#include "diagnosis/diagnose.h"
#include "diagnosis/features.h"
#include "diagnosis/forest.h"
#include "diagnosis/training_page.h"
#include "findings/kinds.h"

namespace netmend::diagnosis {
namespace {

using findings::Level;
using records::Line;
using records::Record;

Record record_of(std::initializer_list<nlohmann::json> lines) {
  Record record;
  record.header = Line(nlohmann::json{{"netmend", "training-record"}});
  for (const nlohmann::json& line : lines) record.lines[line["e"].get<std::string>()].emplace_back(line);
  return record;
}

void add_losses(Record& record, const std::vector<double>& losses) {
  for (double loss : losses) {
    record.series[0].steps.push_back(int64_t(record.series[0].steps.size()) + 1);
    record.series[0].losses.push_back(loss);
  }
}

std::vector<std::string> kinds_above_note(const Diagnosis& diagnosis) {
  std::vector<std::string> names;
  for (const findings::Finding& finding : diagnosis.findings)
    if (finding.level > Level::kNote) names.push_back(finding.kind);
  return names;
}

Diagnosis diagnosed(const Record& record) { return diagnose(record, Thresholds(), {}, "run"); }

nlohmann::json keras_fit(const std::string& loss, const std::vector<std::string>& metrics = {}, bool logits = false) {
  return {{"e", "fit"},   {"epochs", 5},        {"batch", 32},           {"rows", 1000},
          {"loss", loss}, {"metrics", metrics}, {"from_logits", logits}, {"validation", true}};
}
nlohmann::json keras_data(const nlohmann::json& targets) { return {{"e", "data"}, {"targets", targets}}; }
nlohmann::json keras_graph(const std::string& last) {
  return {{"e", "graph"}, {"last", last}, {"weighted", 2}, {"pair_count", 0}};
}
nlohmann::json keras_model(int units) {
  return {{"e", "model"},
          {"trainable", 10},
          {"parameters", 10},
          {"layers",
           {{{"name", "a"}, {"role", "linear"}, {"units", 8}}, {{"name", "b"}, {"role", "linear"}, {"units", units}}}}};
}
const nlohmann::json kBinary = {{"min", 0},   {"max", 1},     {"whole", true},
                                {"width", 1}, {"classes", 2}, {"counts", {{"0", 500}, {"1", 500}}}};
const nlohmann::json kThree = {{"min", 0},   {"max", 2},     {"whole", true},
                               {"width", 1}, {"classes", 3}, {"counts", {{"0", 300}, {"1", 300}, {"2", 400}}}};
const nlohmann::json kNumbers = {{"min", -3},      {"max", 9},   {"mean", 2},       {"std", 3},
                                 {"whole", false}, {"width", 1}, {"distinct", 1000}};

struct Case {
  const char *last, *loss;
  bool logits;
  int units;
  nlohmann::json targets;
  const char* first;  ///< "" for nothing above a note
};

TEST(Outputs, PairsOfActivationLossAndTargets) {
  const Case cases[] = {
      {"softmax", "binary_crossentropy", false, 1, kBinary, "output-activation"},
      {"sigmoid", "binary_crossentropy", false, 1, kBinary, ""},
      {"linear", "binary_crossentropy", false, 1, kBinary, "output-activation"},
      {"linear", "BinaryCrossentropy", true, 1, kBinary, ""},
      {"sigmoid", "BinaryCrossentropy", true, 1, kBinary, "output-activation"},
      {"softmax", "sparse_categorical_crossentropy", false, 3, kThree, ""},
      {"relu", "sparse_categorical_crossentropy", false, 3, kThree, "output-activation"},
      {"softmax", "sparse_categorical_crossentropy", true, 3, kThree, "output-activation"},
      {"linear", "sparse_categorical_crossentropy", true, 3, kThree, ""},
      {"softmax", "sparse_categorical_crossentropy", false, 2, kThree, "wrong-output-size"},
      {"sigmoid", "binary_crossentropy", false, 1, kThree, "wrong-output-size"},
      {"softmax", "categorical_crossentropy", false, 3, kThree, "label-encoding"},
      {"linear", "mse", false, 1, kNumbers, ""},
      {"sigmoid", "mse", false, 1, kNumbers, "output-activation"},
      {"relu", "mae", false, 1, kNumbers, "output-activation"},
      {"linear", "mse", false, 2, kNumbers, "wrong-output-size"},
      {"sigmoid", "mse", false, 1, kBinary, "wrong-loss"},
  };
  for (const Case& one : cases) {
    const Record record = record_of({keras_fit(one.loss, {}, one.logits),
                                     keras_data(one.targets),
                                     keras_graph(one.last),
                                     keras_model(one.units),
                                     {{"e", "end"}}});
    const std::vector<std::string> kinds = kinds_above_note(diagnosed(record));
    EXPECT_EQ(kinds.empty() ? "" : kinds[0], one.first) << one.last << " " << one.loss << " " << one.units;
  }
}

TEST(Exact, FactsOfTheRecorderBecomeFindings) {
  const Record cleared =
      record_of({{{"e", "summary"}, {"optimizer", 0}, {"steps", 100}, {"violations", {{"Z1", 0}}}}, {{"e", "end"}}});
  EXPECT_TRUE(kinds_above_note(diagnosed(cleared)).empty());
  const Record missing = record_of(
      {{{"e", "fact"}, {"check", "Z1"}, {"holds", false}, {"step", 2}, {"optimizer", 0}, {"source", "train.py:9"}},
       {{"e", "summary"}, {"optimizer", 0}, {"steps", 100}, {"violations", {{"Z1", 99}}}},
       {{"e", "end"}}});
  const Diagnosis found = diagnosed(missing);
  ASSERT_EQ(kinds_above_note(found), std::vector<std::string>{"gradients-accumulate"});
  EXPECT_EQ(found.findings[0].numbers["source"], "train.py:9");
  const Record once = record_of({{{"e", "fact"}, {"check", "Z1"}, {"holds", false}, {"step", 2}, {"optimizer", 0}},
                                 {{"e", "summary"}, {"optimizer", 0}, {"steps", 100}, {"violations", {{"Z1", 1}}}},
                                 {{"e", "end"}}});
  EXPECT_TRUE(kinds_above_note(diagnosed(once)).empty()) << "one step of a hundred is a matter of a resumed run";
}

TEST(Exact, ACauseThatIsCertainSilencesGuesses) {
  Record record = record_of({{{"e", "optimizer"}, {"type", "SGD"}, {"lr", 100.0}}, {{"e", "end"}}});
  add_losses(record, {1, 5, 20, 100, 300, 1000, 3000, 10000});
  EXPECT_EQ(kinds_above_note(diagnosed(record)), std::vector<std::string>{"learning-rate-high"});
  record.lines["fact"].emplace_back(nlohmann::json{{"e", "fact"}, {"check", "B1"}, {"holds", false}, {"value", 1.0}});
  EXPECT_EQ(kinds_above_note(diagnosed(record)), std::vector<std::string>{"samples-mixed"});
}

TEST(Curves, OverFittingAndLearningOn) {
  Record record =
      record_of({{{"e", "fit"}, {"epochs", 10}, {"rows", 1000}, {"batch", 32}, {"validation", true}}, {{"e", "end"}}});
  for (int i = 0; i < 10; ++i)
    record.epochs.push_back(
        {.epoch = i + 1, .metrics = {{"loss", 1.0 / (i + 1)}, {"val_loss", i < 3 ? 1.0 - 0.1 * i : 0.7 + 0.15 * i}}});
  EXPECT_EQ(kinds_above_note(diagnosed(record)), std::vector<std::string>{"over-fitting-run"});
  for (records::Epoch& epoch : record.epochs)
    epoch.metrics = {{"loss", 2.0 - 0.12 * double(epoch.epoch)}, {"val_loss", 2.1 - 0.12 * double(epoch.epoch)}};
  EXPECT_EQ(kinds_above_note(diagnosed(record)), std::vector<std::string>{"still-learning"});
}

TEST(Records, WithNothingInThemSayWhatIsUnknown) {
  Record record = record_of({});
  record.cut = true;
  const Diagnosis found = diagnosed(record);
  EXPECT_TRUE(kinds_above_note(found).empty());
  EXPECT_GE(found.troubles.size(), 2u);
  Record nan = record_of({{{"e", "end"}}});
  add_losses(nan, std::vector<double>(50, NAN));
  EXPECT_FALSE(kinds_above_note(diagnosed(nan)).empty());
  Record one = record_of({{{"e", "end"}}});
  add_losses(one, {0.5});
  EXPECT_TRUE(kinds_above_note(diagnosed(one)).empty());
  Record many = record_of({{{"e", "end"}}});
  std::vector<double> falling(1'000'000);
  for (size_t i = 0; i < falling.size(); ++i) falling[i] = 0.1 + 2 / (1 + double(i) / 1000);
  add_losses(many, falling);
  EXPECT_TRUE(kinds_above_note(diagnosed(many)).empty());
}

TEST(Rules, AreRowsWithKindsAndThresholdsThatExist) {
  const Thresholds thresholds;
  std::set<std::string> names, used;
  for (const Rule& rule : rules()) {
    EXPECT_TRUE(names.insert(std::string(rule.set) + "/" + std::string(rule.name)).second) << rule.name;
    EXPECT_NO_THROW(findings::find_kind(std::string(rule.kind))) << rule.name;
    for (std::string_view text : {rule.symptom, rule.quantity, rule.threshold, rule.paper})
      EXPECT_FALSE(text.empty()) << rule.name;
  }
  EXPECT_GE(rule_sets().size(), 9u);
  Thresholds changed;
  EXPECT_THROW(changed.set("imbalanse", 1), InputError);
  changed.set("imbalance", 3);
  EXPECT_EQ(changed["imbalance"], 3);
  EXPECT_THROW(diagnose(record_of({}), thresholds, {"nobody"}, "r"), InputError);
}

TEST(Rules, OfEverySetRunOnEveryRecord) {
  Record record =
      record_of({keras_fit("mse"), keras_data(kNumbers), keras_graph("linear"), keras_model(1), {{"e", "end"}}});
  add_losses(record, {3, 2, 1, INFINITY, NAN, 1});
  records::Step step;
  step.layers.emplace_back("a", records::LayerStep{});
  record.steps.push_back(step);
  for (const std::string& set : rule_sets()) EXPECT_NO_THROW(diagnose(record, Thresholds(), {set}, "r")) << set;
}

TEST(Run, LayersComeInTheOrderOfTheNetwork) {
  Record record = record_of({{{"e", "model"},
                              {"model", 0},
                              {"layers", {{{"name", "0"}}, {{"name", "2"}}, {{"name", "10"}}, {{"name", "12"}}}}}});
  records::Step step;
  for (const char* name : {"0.weight", "10.weight", "12.weight", "2.weight", "other"})
    step.layers.emplace_back(name, records::LayerStep());
  record.steps.push_back(step);
  std::vector<std::string> names;
  for (const Track& track : digest(record).tracks) names.push_back(track.name);
  EXPECT_EQ(names, (std::vector<std::string>{"0.weight", "2.weight", "10.weight", "12.weight", "other"}));
}

TEST(Features, AreTheSameNamesForEveryRecordAndFinite) {
  Record empty = record_of({}), full = record_of({keras_fit("mse")});
  add_losses(full, {1, INFINITY, NAN, 0.5});
  const auto a = features_of(digest(empty)), b = features_of(digest(full));
  ASSERT_EQ(a.size(), b.size());
  std::set<std::string> names;
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].first, b[i].first);
    EXPECT_TRUE(names.insert(a[i].first).second) << a[i].first;
    EXPECT_TRUE(std::isfinite(a[i].second) && std::isfinite(b[i].second)) << a[i].first;
  }
}

nlohmann::json small_forest() {
  return {{"format", "netmend.forest/1"},
          {"classes", {"none", "learning-rate-high"}},
          {"features", {"finite"}},
          {"trees", {{{0, 0.5, 1, 2}, {-1, 1, 1.0}, {-1, 0, 0.75, 1, 0.25}}}}};
}

TEST(Forest, VotesAsItsTreesSay) {
  const JsonDocument document(small_forest().dump(), "forest");
  const Forest forest(document.top());
  EXPECT_EQ(forest.vote({{"finite", 0.0}})[0], (std::pair<std::string, double>("learning-rate-high", 1.0)));
  EXPECT_EQ(forest.vote({{"other", 3.0}, {"finite", 1.0}})[0], (std::pair<std::string, double>("none", 0.75)));
  EXPECT_THROW(forest.vote({{"other", 0.0}}), InputError);
}

TEST(Forest, RefusesWhatIsDamaged) {
  auto refused = [](const std::function<void(nlohmann::json&)>& damage) {
    nlohmann::json json = small_forest();
    damage(json);
    const JsonDocument document(json.dump(), "forest");
    EXPECT_THROW(Forest{document.top()}, InputError) << json.dump();
  };
  refused([](auto& j) { j["format"] = "other"; });
  refused([](auto& j) { j["trees"][0][0][2] = 0; });     // a way that never ends
  refused([](auto& j) { j["trees"][0][0][3] = 3; });     // a node that is not there
  refused([](auto& j) { j["trees"][0][0][0] = 1; });     // a feature that is not there
  refused([](auto& j) { j["trees"][0][1][1] = 2; });     // a class that is not there
  refused([](auto& j) { j["trees"][0][2] = {-1, 0}; });  // a share that is missing
  refused([](auto& j) { j["trees"] = nlohmann::json::array(); });
}

TEST(Diagnosis, TheSecondOpinionChangesNoFinding) {
  Record record = record_of({keras_fit("binary_crossentropy"), keras_graph("softmax")});
  add_losses(record, std::vector<double>(30, 0.7));
  const Diagnosis found = diagnosed(record);
  const auto json = diagnosis_json(found, "run");
  EXPECT_EQ(json["features"].size(), found.features.size());
  for (const auto& one : json["second_opinion"]) EXPECT_EQ(one["outvoted"], found.is_confirmed());
}

TEST(Page, PlotsAreThoseOfThePage) {
  const std::set<std::string> figures = {"training-loss",    "training-accuracy",    "training-gradients",
                                         "training-updates", "training-activations", "training-still"};
  for (const Rule& rule : rules())
    if (const std::string plot = plot_of(std::string(rule.kind)); !plot.empty()) {
      EXPECT_TRUE(figures.count(plot)) << plot;
    }
}

}  // namespace
}  // namespace netmend::diagnosis
