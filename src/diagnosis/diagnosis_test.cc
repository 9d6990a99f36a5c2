#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/text.h"
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
  // Steps in which nothing can be seen do not speak for the program; steps whose gradients were cleared do.
  for (const auto& [cleared_steps, kinds] : std::vector<std::pair<int, size_t>>{{0, 1}, {10, 1}, {168, 0}}) {
    const Record some = record_of(
        {{{"e", "fact"}, {"check", "Z1"}, {"holds", false}, {"step", 2}, {"optimizer", 0}},
         {{"e", "summary"}, {"optimizer", 0}, {"steps", 240}, {"cleared", cleared_steps}, {"violations", {{"Z1", 32}}}},
         {{"e", "end"}}});
    EXPECT_EQ(kinds_above_note(diagnosed(some)).size(), kinds) << cleared_steps;
  }
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

std::vector<std::string> kinds_of(const Diagnosis& diagnosis) {
  std::vector<std::string> names;
  for (const findings::Finding& finding : diagnosis.findings) names.push_back(finding.kind);
  return names;
}

/// `epochs` whose loss is `factor` times that of the one before, 40 steps each.
Record curve(int epochs, double factor, const char* optimizer, double rate, bool cut = false) {
  Record record = record_of({{{"e", "fit"}, {"epochs", epochs}, {"validation", true}},
                             {{"e", "optimizer"}, {"type", optimizer}, {"lr", rate}},
                             {{"e", "end"}}});
  record.cut = cut;
  double loss = 1;
  for (int i = 1; i <= epochs; ++i, loss *= factor) {
    record.epochs.push_back({.epoch = i, .step = 40 * i, .metrics = {{"loss", loss}}});
    add_losses(record, std::vector<double>(40, loss));
  }
  return record;
}

TEST(Curves, ThatStillFallAskForMoreStepsOrLargerOnes) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(kinds_of(diagnosed(curve(15, 0.97, "SGD", 0.01)))[0], "still-learning");
  EXPECT_EQ(kinds_of(diagnosed(curve(15, 0.97, "Adam", 1e-4)))[0], "still-learning") << "600 steps in 15 epochs";
  EXPECT_EQ(kinds_of(diagnosed(curve(15, 0.97, "Adam", 1e-4)))[1], "learning-rate-low");
  EXPECT_EQ(kinds_of(diagnosed(curve(23, 0.98, "Adam", 1e-4)))[0], "learning-rate-low") << "after many steps";
  EXPECT_EQ(kinds_of(diagnosed(curve(15, 0.97, "SGD", 0.01, true))), Names()) << "what is cut has not ended too early";
  EXPECT_EQ(kinds_of(diagnosed(curve(12, 0.996, "SGD", 0.01)))[0], "learning-rate-low") << "falls always, by 4 %";
  EXPECT_EQ(kinds_above_note(diagnosed(curve(12, 0.996, "SGD", 0.1))), Names{"not-learning"}) << "that is not low";
  const Diagnosis few = diagnosed(curve(1, 1, "SGD", 0.01));
  EXPECT_EQ(kinds_above_note(few), Names{"still-learning"});
  EXPECT_EQ(few.findings[0].evidence, "Training had 40 steps in 1 epoch.");
}

TEST(Outputs, LabelsThatDoNotExcludeEachOtherNeedNoSoftmax) {
  const nlohmann::json rows = {{"min", 0}, {"max", 1}, {"whole", true}, {"width", 3}, {"one_hot", false}};
  const auto found = [&](const char* last, const char* loss, const std::vector<std::string>& metrics) {
    return kinds_above_note(diagnosed(
        record_of({keras_model(3), keras_graph(last), keras_data(rows), keras_fit(loss, metrics), {{"e", "end"}}})));
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(found("softmax", "mse", {"accuracy"}), (Names{"output-activation", "wrong-loss"}));
  EXPECT_EQ(found("sigmoid", "binary_crossentropy", {"accuracy"}), Names());
  EXPECT_EQ(found("sigmoid", "mse", {}), Names()) << "pixels that are 0 or 1 in an autoencoder";
}

TEST(Outputs, APercentageErrorNeedsTargetsThatAreNot0) {
  for (const auto& [targets, kinds] : std::vector<std::pair<nlohmann::json, size_t>>{
           {{{"min", 0.0}, {"max", 3.0}, {"whole", false}, {"width", 1}}, 1},
           {{{"min", 1.0}, {"max", 3.0}, {"whole", false}, {"width", 1}}, 0}}) {
    const Record record =
        record_of({keras_model(1), keras_graph("linear"), keras_data(targets), keras_fit("mape"), {{"e", "end"}}});
    EXPECT_EQ(kinds_above_note(diagnosed(record)).size(), kinds) << targets;
  }
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
  for (const Rule& rule : rules())
    for (const std::string& name : split(rule.threshold, ','))
      if (rule.threshold != "exact") used.insert(std::string(trim(name)));
  for (const auto& [name, value] : thresholds.all()) EXPECT_TRUE(used.count(name)) << name << " belongs to no rule";
  for (const std::string& name : used) EXPECT_TRUE(thresholds.all().count(name)) << name << " has no value";
  EXPECT_GE(rule_sets().size(), 9u);
  Thresholds changed;
  EXPECT_THROW(changed.set("imbalanse", 1), InputError);
  changed.set("imbalance", 3);
  EXPECT_EQ(changed["imbalance"], 3);
  EXPECT_THROW(diagnose(record_of({}), thresholds, {"nobody"}, "r"), InputError);
}

std::vector<std::string> kinds_of(const Record& record, const std::vector<std::string>& sets = {}) {
  std::vector<std::string> names;
  for (const findings::Finding& finding : diagnose(record, Thresholds(), sets, "r").findings)
    names.push_back(finding.kind);
  return names;
}

TEST(Exact, ASchedule) {
  auto kinds = [](nlohmann::json line) {
    line.update({{"e", "schedule"}, {"optimizer", 0}});
    return kinds_of(record_of({line, {{"e", "end"}}}));
  };
  const std::vector<std::string> told = {"schedule-not-followed"}, none;
  EXPECT_EQ(kinds({{"type", "StepLR"}, {"steps", 0}, {"optimizer_steps", 50}, {"all_steps", 50}}), told);
  EXPECT_EQ(kinds({{"type", "StepLR"}, {"steps", 0}, {"optimizer_steps", 50}, {"all_steps", 50}, {"part", true}}),
            none);
  EXPECT_EQ(kinds({{"type", "StepLR"}, {"steps", 5}, {"optimizer_steps", 0}, {"all_steps", 50}}), told);
  EXPECT_EQ(kinds({{"type", "StepLR"}, {"steps", 5}, {"optimizer_steps", 50}, {"all_steps", 50}}), none);
  EXPECT_EQ(kinds({{"type", "StepLR"}, {"steps", 90}, {"optimizer_steps", 90}, {"all_steps", 90}, {"low_at", 20}}),
            told);
  EXPECT_EQ(kinds({{"type", "LinearLR"}, {"steps", 90}, {"optimizer_steps", 90}, {"all_steps", 90}, {"low_at", 20}}),
            none);
  EXPECT_EQ(kinds({{"type", "OneCycleLR"},
                   {"steps", 5},
                   {"optimizer_steps", 90},
                   {"all_steps", 90},
                   {"planned", 90},
                   {"by", "total_steps"}}),
            told);
  Record cut =
      record_of({{{"e", "schedule"}, {"type", "StepLR"}, {"steps", 0}, {"optimizer_steps", 50}, {"all_steps", 50}}});
  cut.cut = true;
  EXPECT_TRUE(kinds_above_note(diagnosed(cut)).empty()) << "a run that was killed had perhaps no time to step it";
}

TEST(Exact, EvaluationThatIsUnusualOnPurposeIsANote) {
  auto of = [](nlohmann::json modes) {
    modes["e"] = "modes";
    return diagnosed(record_of({modes, {{"e", "end"}}}));
  };
  EXPECT_EQ(kinds_above_note(of({{"eval_calls", 20}, {"no_grad_training", 20}})),
            std::vector<std::string>{"evaluated-in-train-mode"});
  const Diagnosis sampled = of({{"eval_calls", 20}, {"no_grad_training", 20}, {"repeated", 19}});
  EXPECT_TRUE(kinds_above_note(sampled).empty());
  EXPECT_NE(sampled.findings[0].brief.find("Monte Carlo"), std::string::npos);
  const Diagnosis kept = of({{"eval_calls", 0}, {"eval_with_grad", 12}});
  ASSERT_EQ(kept.findings.size(), 1u);
  EXPECT_EQ(kept.findings[0].kind, "evaluated-with-gradients");
  EXPECT_EQ(kept.findings[0].level, Level::kNote);
}

TEST(Exact, AFrozenLayerThatWasNeverTrained) {
  auto of = [](bool zero_bias, bool same) {
    Record record = record_of(
        {keras_fit("mse"),
         {{"e", "model"},
          {"trainable", 5},
          {"parameters", 10},
          {"layers",
           {{{"name", "a"}, {"role", "linear"}, {"fan_in", 4}, {"trainable", false}, {"zero_bias", zero_bias}}}}},
         {{"e", "end"}}});
    for (int i = 0; i < 3; ++i) {
      records::Step step;
      step.step = i * 10;
      step.layers.emplace_back("a/kernel", records::LayerStep{.frozen = true, .unchanged = same});
      record.steps.push_back(step);
    }
    return kinds_of(record);
  };
  EXPECT_EQ(of(true, true), std::vector<std::string>{"untrained-parameters"});
  EXPECT_TRUE(of(false, true).empty()) << "a layer that was trained before";
  EXPECT_EQ(of(false, false), std::vector<std::string>{"changed-outside-step"}) << "frozen after compile";
}

TEST(Curves, TheFirstLossIsComparedWithLnC) {
  auto of = [](double first) {
    Record record = record_of(
        {{{"e", "loss"}, {"type", "cross_entropy"}, {"first_loss", first}, {"shape", {32, 10}}, {"reduction", "mean"}},
         {{"e", "end"}}});
    add_losses(record, {first, 9, 8, 8, 8, 8});
    return diagnosed(record);
  };
  const Diagnosis high = of(9.2);
  EXPECT_EQ(kinds_above_note(high), std::vector<std::string>{"bad-initialization"});
  EXPECT_NE(high.findings[0].evidence.find("2.303"), std::string::npos) << high.findings[0].evidence;
  for (const findings::Finding& finding : of(2.4).findings) EXPECT_NE(finding.kind, "bad-initialization");
}

TEST(Curves, OfOptimisersThatPlayAgainstEachOtherAreNotes) {
  const nlohmann::json first = {{"e", "summary"}, {"optimizer", 0}, {"steps", 50}},
                       second = {{"e", "summary"}, {"optimizer", 1}, {"steps", 50}};
  for (bool both : {false, true}) {
    Record record = both ? record_of({first, second, {{"e", "end"}}}) : record_of({first, {{"e", "end"}}});
    record.lines["optimizer"].emplace_back(nlohmann::json{{"type", "SGD"}, {"lr", 100.0}});
    add_losses(record, {1, 5, 20, 100, 300, 1000, 3000, 10000});
    EXPECT_EQ(kinds_above_note(diagnosed(record)).empty(), both);
  }
}

TEST(Probe, WhatItTriedBecomesFindings) {
  const Record wrong =
      record_of({{{"e", "probe"}, {"probe", "gradient"}, {"worst", 0.9}, {"parameters", 4}, {"names", {"0.weight"}}},
                 {{"e", "end"}}});
  EXPECT_EQ(kinds_above_note(diagnosed(wrong)), std::vector<std::string>{"wrong-gradient"});
  EXPECT_EQ(kinds_of(wrong, {"deepchecker"}), std::vector<std::string>{"wrong-gradient"});
  auto batch = [](double error, double blind) {
    return record_of({{{"e", "probe"},
                       {"probe", "one-batch"},
                       {"rows", 16},
                       {"iterations", 1000},
                       {"error", error},
                       {"last_loss", 0.5},
                       {"blind_p", blind}},
                      {{"e", "end"}}});
  };
  EXPECT_TRUE(kinds_above_note(diagnosed(batch(0, 1e-9))).empty());
  EXPECT_EQ(kinds_above_note(diagnosed(batch(0.4, 1e-9))), std::vector<std::string>{"not-learning"});
  EXPECT_EQ(diagnosed(batch(0, 0.6)).findings[0].brief, "inputs play no role");
}

TEST(Exact, NotANumberInTheBackwardPass) {
  const nlohmann::json line = {{"e", "nonfinite"},    {"what", "backward"},   {"step", 9},
                               {"operation", "sqrt"}, {"checkpoint", "w.pt"}, {"checkpoint_step", 5}};
  Record record = record_of({line, {{"e", "end"}}});
  add_losses(record, {1, 0.9, NAN, NAN});
  const Diagnosis found = diagnosed(record);
  EXPECT_EQ(kinds_above_note(found), std::vector<std::string>{"non-finite-training"})
      << "the cause is known: no guess beside it";
  EXPECT_NE(found.findings[0].evidence.find("sqrt"), std::string::npos);
  EXPECT_NE(found.findings[0].evidence.find("w.pt, saved after step 5"), std::string::npos);
  Record went_on = record_of({line, {{"e", "end"}}});
  add_losses(went_on, std::vector<double>(30, 0.5));
  went_on.series[0].losses[0] = 2;
  EXPECT_TRUE(kinds_above_note(diagnosed(went_on)).empty()) << "the program left such a step out";
}

TEST(Rules, OfThePapersThatHaveThresholds) {
  Record record =
      record_of({{{"e", "model"},
                  {"layers",
                   {{{"name", "a"}, {"role", "linear"}, {"fan_in", 100}, {"units", 100}, {"weight_std", 2.0}},
                    {{"name", "b"}, {"role", "linear"}, {"fan_in", 100}, {"units", 100}, {"weight_std", 0.1}}}}},
                 {{"e", "optimizer"}, {"type", "SGD"}, {"lr", 1.0}},
                 {{"e", "end"}}});
  for (int i = 0; i < 20; ++i) {
    record.epochs.push_back(
        {.epoch = i,
         .metrics = {{"loss", i % 2 ? 2000.0 : 3000.0}, {"accuracy", 0.1 * (i / 2 % 2)}, {"val_loss", 1.0 + i}}});
    records::Step step;
    step.step = i;
    step.layers.emplace_back("a.weight",
                             records::LayerStep{.gradient = 50, .weight = 1, .update = 0, .saturated = 0.9, .size = 4});
    record.steps.push_back(step);
  }
  record.header = Line();  // as a CSV: the epochs are the curve
  auto fires = [&](const char* set, const char* name) {
    const Diagnosis found = diagnose(record, Thresholds(), {set}, "r");
    return std::any_of(found.fired.begin(), found.fired.end(),
                       [&](const Fired& one) { return one.rule->name == name && one.alarms > 0; });
  };
  const std::pair<const char*, const char*> expected[] = {
      {"autotrainer", "nan-loss"},    {"deepdiagnosis", "rate"},  {"deepdiagnosis", "unchanged"},
      {"deepchecker", "fluctuation"}, {"deepchecker", "metric"},  {"deepchecker", "start-weights"},
      {"sagemaker", "start-weights"}, {"sagemaker", "saturated"}, {"sagemaker", "unchanged"},
      {"sagemaker", "overtraining"}};
  for (const auto& [set, name] : expected) EXPECT_TRUE(fires(set, name)) << set << "/" << name;
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
