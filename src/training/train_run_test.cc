#include "training/train_run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "onnx/reader.h"
#include "training/network_for_test.h"
#include "training/options.h"

namespace netmend::training {
namespace {

/// A folder with a fresh network.
struct Fresh : TestFolder {
  Fresh() { write_new_model("mlp:784-12-10", "he", 3, "fresh.onnx"); }
  TrainRequest request() const {
    TrainRequest request;
    request.model = "fresh.onnx", request.train = "glyphs:train", request.limit = 600;
    request.epochs = 2, request.rate = 0.003, request.quiet = true;
    return request;
  }
};

TEST(NewModels, HaveTheParametersThatTheirNameSays) {
  TestFolder folder;
  EXPECT_EQ(write_new_model("mlp:784-12-10", "glorot", 1, "a.onnx"), 784 * 12 + 12 + 12 * 10 + 10);
  write_new_model("mlp:784-12-10", "glorot", 1, "b.onnx"), write_new_model("mlp:784-12-10", "glorot", 2, "c.onnx");
  EXPECT_EQ(read_file("a.onnx"), read_file("b.onnx"));
  EXPECT_NE(read_file("a.onnx"), read_file("c.onnx"));
  EXPECT_THROW(write_new_model("lenet6", "glorot", 1, "d.onnx"), InputError);
  EXPECT_THROW(write_new_model("lenet5", "xavier", 1, "d.onnx"), InputError);
}

TEST(TrainRun, LearnsValidatesAndDescribesItsModel) {
  Fresh folder;
  TrainRun run(folder.request());
  EXPECT_EQ(run.inputs(), 540);  // a tenth is kept aside
  EXPECT_FALSE(run.validation().empty());
  std::vector<int64_t> told;
  const TrainingEnd end = run.run([&](const Epoch& epoch) { told.push_back(epoch.number); });
  EXPECT_EQ(told, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(end.epochs, 2);
  EXPECT_FALSE(end.interrupted);
  EXPECT_LT(run.history()[1].loss, run.history()[0].loss);
  EXPECT_GT(run.history()[1].val_accuracy, 0.1);
  run.write("trained.onnx");
  const model::Graph graph = onnx::read_model("trained.onnx");
  const auto facts = nlohmann::json::parse(graph.metadata.at("netmend.training"));
  EXPECT_EQ(facts["epochs"], 2);
  EXPECT_EQ(facts["optimiser"], "adam");
  EXPECT_EQ(nlohmann::json::parse(graph.metadata.at("names")).size(), 10u);
  EXPECT_EQ(epochs_json(run.history()).size(), 2u);
  write_history("history.csv", run.history());
  std::ifstream file("history.csv");
  int64_t lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  EXPECT_EQ(lines, 3);
}

TEST(TrainRun, GoesOnFromACheckpointToTheSameBytes) {
  Fresh folder;
  TrainRun whole(folder.request());
  whole.run({});
  whole.write("whole.onnx");
  TrainRequest request = folder.request();
  request.checkpoint = "c.ckpt", request.resume = true, request.epochs = 1;
  {
    TrainRun first(request);
    first.run({});
    EXPECT_THROW(TrainRun{request}, InputError);  // one process at a time goes on from a checkpoint
  }
  std::vector<std::string> told;
  request.epochs = 2, request.note = [&](const std::string& line) { told.push_back(line); };
  TrainRun second(request);
  EXPECT_EQ(second.history().size(), 1u);
  EXPECT_EQ(second.run({}).epochs, 1);
  second.write("parts.onnx");
  EXPECT_EQ(read_file("whole.onnx"), read_file("parts.onnx"));
  EXPECT_NE(std::find_if(told.begin(), told.end(),
                         [](const auto& line) { return line.find("epoch 1") != std::string::npos; }),
            told.end());
}

TEST(TrainRun, SaysWhatDoesNotGoTogether) {
  Fresh folder;
  TrainRequest request = folder.request();
  request.train = "";
  EXPECT_THROW(TrainRun{request}, InputError);
  request = folder.request(), request.optimiser = "adamm";
  EXPECT_THROW(TrainRun{request}, InputError);
  request = folder.request(), request.resume = true;
  EXPECT_THROW(TrainRun{request}, InputError);
  request = folder.request(), request.validation = 1.5;
  EXPECT_THROW(TrainRun{request}, InputError);
  request = folder.request(), request.model = "none.onnx";
  EXPECT_THROW(TrainRun{request}, InputError);
}

TEST(TrainRun, SaysWhenABatchIsTooSmallForAllWorkers) {
  Fresh folder;
  TrainRequest request = folder.request();
  std::vector<std::string> told;
  request.note = [&](const std::string& line) { told.push_back(line); };
  request.jobs = 4;
  TrainRun{request};
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(told.back(),
            "a batch of 32 makes 1 part for 4 workers: 3 of them wait for gradients; --batch 2048 makes 4 parts");
  const size_t lines = told.size();
  told.clear(), request.jobs = 1;
  TrainRun{request};
  EXPECT_EQ(told.size() + 1, lines);
}

TEST(TrainRun, FreshWeightsComeFromTheSeed) {
  Fresh folder;
  std::string bytes[3];
  for (int i : {0, 1, 2}) {
    TrainRequest request = folder.request();
    request.init = "glorot", request.epochs = 1, request.seed = i == 2 ? 8 : 7, request.jobs = i + 1;
    TrainRun run(request);
    run.run({});
    run.write("m.onnx");
    bytes[i] = read_file("m.onnx");
  }
  EXPECT_EQ(bytes[0], bytes[1]);
  EXPECT_NE(bytes[0], bytes[2]);
}

}  // namespace
}  // namespace netmend::training
