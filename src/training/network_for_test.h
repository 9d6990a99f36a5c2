// A small network that reads drawn digits, trained once per test program, with sessions and folders to try things in.
#pragma once

#include <cstdlib>
#include <filesystem>

#include "dataset/dataset.h"
#include "onnx/writer.h"
#include "session/session.h"
#include "stream/pass.h"
#include "training/trainer.h"
#include "zoo/zoo.h"

namespace netmend::training {

struct Digits {
  model::Graph graph;
  std::shared_ptr<const dataset::Dataset> train, test;
};

inline const Digits& digits() {
  static const Digits made = [] {
    std::shared_ptr<const dataset::Dataset> train = dataset::open("glyphs:train"), test = dataset::open("glyphs:test");
    train = dataset::subset(train, stream::spread(train->size(), 3000));
    model::Graph graph = zoo::make("mlp:784-24-16-10", {.seed = 1});
    Task task{"digits", graph, graph.outputs[0], train, nullptr, {}};
    task.options.epochs = 4, task.options.rate = 0.003;
    Trainer trainer(std::move(task));
    while (!trainer.done()) trainer.run_epoch();
    return Digits{trainer.result(), train, dataset::subset(test, stream::spread(test->size(), 1500))};
  }();
  return made;
}

/// A folder of its own that the test works in; the sound network lies there as digits.onnx.
struct TestFolder {
  std::filesystem::path before = std::filesystem::current_path(), path;
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "netmend-XXXXXX").string();
    path = mkdtemp(name.data());
    std::filesystem::current_path(path);
    onnx::write_model(digits().graph, "digits.onnx");
  }
  ~TestFolder() {
    std::filesystem::current_path(before);
    std::filesystem::remove_all(path);
  }
};

/// A session in memory; `graph` stands for the file digits.onnx.
inline session::Session digits_session(const model::Graph& graph, session::Request request = {}, bool train = false) {
  request.quiet = true;
  if (request.out.empty()) request.out = "run";
  return session::Session(std::move(request), "digits.onnx", graph, digits().test, train ? digits().train : nullptr);
}

}  // namespace netmend::training
