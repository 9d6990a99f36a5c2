#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "executor/executor.h"
#include "healing/heal.h"
#include "healing/network_edits.h"
#include "healing/program_training.h"
#include "healing/solutions.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "training/data_for_test.h"
#include "training/network_for_test.h"
#include "zoo/zoo.h"

namespace netmend::healing {
namespace {

using training::TestFolder;

Knobs knobs() {
  Knobs all;
  all["rate"] = {60.0, usual_choices("rate", 60.0), true};
  all["init"] = {"", usual_choices("init", ""), false};
  all["epochs"] = {4, usual_choices("epochs", 4), true};
  return all;
}

/// A training that is written down, not run: it works where the rate is small.
class Written : public Training {
 public:
  const Knobs& knobs() const override { return knobs_; }
  std::string cost_unit() const override { return "runs"; }
  double run(const Settings& settings, const std::string& folder) override {
    make_folders(folder);
    write(folder, settings.at("rate"));
    return 1;
  }
  static void write(const std::string& folder, double rate) {
    make_folders(folder);
    std::ofstream out(folder + "/record.jsonl");
    out << R"({"netmend":"training-record","version":1,"time":1})"
        << "\n"
        << R"({"e":"framework","name":"netmend"})"
        << "\n"
        << R"({"e":"optimizer","optimizer":0,"type":"SGD","lr":)" << rate << "}\n";
    for (int epoch = 1; epoch <= 10; ++epoch) {
      const bool works = rate < 1;
      const double loss = works ? 1.0 / epoch : 1.0 * epoch * epoch;
      out << R"({"e":"epoch","epoch":)" << epoch << R"(,"step":)" << epoch * 10 << R"(,"metrics":{"loss":)" << loss
          << R"(,"val_loss":)" << loss << R"(,"val_accuracy":)" << (works ? 0.9 : 0.3) << "}}\n";
    }
    out << R"({"e":"end"})"
        << "\n";
  }

 private:
  Knobs knobs_ = healing::knobs();
};

TEST(Heal, TriesWhatAnswersTheProblemAndKeepsWhatHelps) {
  TestFolder folder;
  Written training;
  Written::write("before", 60);
  HealRequest request;
  request.folder = "heal";
  const Healing healing = heal(training, records::read_record("before"), request);
  EXPECT_TRUE(healing.healed);
  EXPECT_EQ(healing.before.diagnosis.findings.at(0).kind, "learning-rate-high");
  EXPECT_LT(healing.result().settings.at("rate").get<double>(), 1.0);
  EXPECT_EQ(healing.cost, double(healing.tries.size()));
  EXPECT_TRUE(healing.left.empty());
  EXPECT_EQ(healing_json(healing, "runs")["tries"].size(), healing.tries.size());
}

TEST(Heal, StaysWithinItsTriesAndAsks) {
  TestFolder folder;
  Written training;
  Written::write("before", 60);
  HealRequest request;
  request.folder = "heal", request.tries = 1;
  EXPECT_EQ(heal(training, records::read_record("before"), request).tries.size(), 1u);
  int64_t asked = 0;
  request.tries = 5, request.ask = [&](const auto&, const auto&, const auto&) { return ++asked, false; };
  const Healing healing = heal(training, records::read_record("before"), request);
  EXPECT_TRUE(healing.tries.empty());
  EXPECT_GT(asked, 3);
  EXPECT_FALSE(healing.healed);
}

TEST(Heal, LeavesASoundTrainingAlone) {
  TestFolder folder;
  Written training;
  Written::write("before", 0.01);
  HealRequest request;
  request.folder = "heal";
  const Healing healing = heal(training, records::read_record("before"), request);
  EXPECT_TRUE(healing.tries.empty());
}

TEST(Heal, RandomSearchSpendsWhatItIsGiven) {
  TestFolder folder;
  Written training;
  Written::write("before", 60);
  HealRequest request;
  request.folder = "heal", request.tries = 1000, request.cost = 4;
  const Healing healing = random_search(training, records::read_record("before"), request);
  EXPECT_EQ(healing.tries.size(), 4u);
}

TEST(Solutions, AskOnlyForWhatATrainingHas) {
  const Knobs all = knobs();
  const Settings now = current_settings(all);
  for (const Solution* one : solutions_for("dead-relu"))
    if (const auto changed = apply(*one, now, all)) {
      EXPECT_EQ(changed->size(), now.size());
    }
  const std::vector<const Solution*> high = solutions_for("learning-rate-high");
  ASSERT_FALSE(high.empty());
  EXPECT_EQ(apply(*high[0], now, all)->at("rate"), 6.0);
  EXPECT_FALSE(apply(*solutions_for("batch-size")[0], now, all));  // it has no batch size
}

TEST(Program, ShowsItsSettingsUnderTheirUsualNames) {
  TestFolder folder;
  std::ofstream("record.jsonl") << R"({"netmend":"training-record","version":1,"time":1})"
                                << "\n"
                                << R"({"e":"settings","values":{"lr":0.1,"optimizer":"sgd","deep":[1],"none":null},)"
                                << R"("choices":{"optimizer":["sgd","adam"]}})"
                                << "\n";
  const Knobs found = exposed_settings(records::read_record("record.jsonl"));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found.at("rate").current, 0.1);
  EXPECT_EQ(found.at("optimiser").choices.size(), 2u);
  Settings changed = current_settings(found);
  changed["rate"] = 0.01;
  EXPECT_EQ(settings_command({"python", "a b.py"}, current_settings(found), changed),
            "NETMEND_SETTINGS='{\"rate\":0.01}' python 'a b.py'");
}

at::Tensor run(const model::Graph& graph, const at::Tensor& x) {
  return executor::Executor(graph).run(std::vector<at::Tensor>{x})[0];
}

TEST(NetworkEdits, AreWrittenAndReadBack) {
  TestFolder folder;
  const auto data = training::random_classes(64, {6}, 3);
  const at::Tensor x = at::randn({4, 6});
  for (const char* name : {"activations", "norm", "inputs"}) {
    model::Graph graph = zoo::make("mlp:6-8-5-3");
    if (std::string(name) == "activations") set_activations(graph, graph.outputs[0], "tanh");
    if (std::string(name) == "norm") add_batch_norm(graph, graph.outputs[0]);
    if (std::string(name) == "inputs") standardize_inputs(graph, *data);
    onnx::write_model(graph, "changed.onnx");
    const at::Tensor before = run(graph, x), after = run(onnx::read_model("changed.onnx"), x);
    EXPECT_TRUE(at::allclose(before, after, 1e-6, 1e-6)) << name;
  }
}

TEST(NetworkEdits, ScaleInputsToMeanZero) {
  const auto data = training::random_classes(500, {6}, 3);
  std::vector<int64_t> all(500);
  for (size_t i = 0; i < all.size(); ++i) all[i] = int64_t(i);
  const at::Tensor x = data->read(all).inputs[0];
  model::Graph plain = zoo::make("mlp:6-8-3"), scaled = plain;
  standardize_inputs(scaled, *data);
  const at::Tensor standard = (x - x.mean(0)) / x.std(0, false);
  EXPECT_TRUE(at::allclose(run(scaled, x), run(plain, standard), 1e-4, 1e-4));
}

TEST(NetworkEdits, RefuseWhatTheyCannotDo) {
  model::Graph graph = zoo::make("mlp:6-3");
  EXPECT_THROW(set_activations(graph, graph.outputs[0], "relu"), InputError);  // no hidden layer
  EXPECT_THROW(set_activations(graph, graph.outputs[0], "swish"), InputError);
  const auto data = training::random_classes(10, {6}, 3);
  EXPECT_THROW(scale_outputs(graph, graph.outputs[0], *data), InputError);  // classes
}

}  // namespace
}  // namespace netmend::healing
