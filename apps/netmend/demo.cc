// netmend demo: the whole way on data that netmend draws itself, each step with the command a user would type.
#include <ATen/ATen.h>

#include <chrono>

#include "base/file.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "dataset/contact_sheet.h"
#include "netmend/train.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "zoo/zoo.h"

namespace netmend::app {
namespace {

constexpr const char* kArchitecture = "lenet5";

/// A step of the demo: what happens, and how to do it by hand.
void tell(const Common& common, int number, const std::string& what, const std::string& command) {
  if (!common.json) fmt::print("\n{}. {}\n   $ {}\n\n", number, what, command);
  std::fflush(stdout);
}

struct Judgement {
  observers::PredictionSettings settings;
  observers::PredictionResult result;
  double seconds = 0;
};

Judgement evaluate(const Common& common, const std::string& model, std::shared_ptr<const dataset::Dataset> data) {
  Judged judged = make_judged(common, model, onnx::read_model(model), std::move(data), "");
  observers::Predictions observer(judged.settings, false);
  stream::PassResult pass = stream::run_pass(judged.subject, {&observer}, pass_options(common));
  auto state = pass.collected[0].fold(observer);
  return {judged.settings, observers::finish(observer, dynamic_cast<const observers::PredictionState&>(*state)),
          pass.seconds};
}

void draw_sheet(const dataset::Dataset& data, const std::string& path) {
  dataset::write_contact_sheet(data, dataset::sheet_samples(data, 8), 8, path);
}

}  // namespace

int demo(const Common& common, const DemoOptions& options) {
  auto start = std::chrono::steady_clock::now();
  RunFolder folder(common.out, "demo", common.arguments);
  const std::string fresh = folder.file("fresh.onnx"), trained = folder.file("trained.onnx"),
                    sheet = folder.file("digits.png");
  if (!common.json)
    fmt::print("This demo needs no file: netmend draws its own digits, and everything lands in {}\n", folder.path());

  std::shared_ptr<const dataset::Dataset> train = dataset::open("glyphs:train"), test = dataset::open("glyphs:test");
  tell(common, 1,
       fmt::format("Look at the data: {} drawn digits to learn from, {} to be tested on.", with_commas(train->size()),
                   with_commas(test->size())),
       fmt::format("netmend data glyphs:test --sheet {}", sheet));
  draw_sheet(*test, sheet);
  if (!common.json) fmt::print("   {} shows eight of each digit.\n", sheet);

  model::Graph graph = zoo::make(kArchitecture, {.seed = common.seed});
  onnx::write_model(graph, fresh);
  tell(common, 2,
       fmt::format("Make a network: {}, {} parameters, random weights.", kArchitecture,
                   with_commas(zoo::parameter_count(graph))),
       fmt::format("netmend lab new {} -o {}", kArchitecture, fresh));

  training::Options how;
  how.epochs = options.epochs, how.seed = common.seed, how.jobs = common.jobs;
  tell(common, 3, fmt::format("Train it: {} times through the data, the test digits as judge.", how.epochs),
       fmt::format("netmend train {} --data glyphs --epochs {} -o {}", fresh, how.epochs, trained));
  training::Trainer trainer({fresh, graph, graph.outputs[0], train, test, how});
  if (!common.json) print_epoch_head();
  TrainingEnd end = run_training(common, trainer, train->size(), "", [&](const training::Epoch& epoch) {
    if (!common.json) print_epoch(epoch);
  });
  if (end.interrupted && trainer.history().empty()) {
    say(common, "stopped before the first epoch was complete");
    folder.finish(common.seed, 0, 130);
    return 130;
  }
  write_trained(trainer, how, train->info(), trained);

  tell(common, 4, "Judge it: accuracy, per class, and what it confuses.",
       fmt::format("netmend eval {} --data glyphs:test", trained));
  Judgement judgement = evaluate(common, trained, test);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Json json = result_json(judgement.settings, judgement.result, judgement.seconds);
  Json all = {{"model", trained},
              {"parameters", trainer.parameters()},
              {"epochs", epochs_json(trainer.history())},
              {"eval", json},
              {"sheet", sheet},
              {"seconds", seconds},
              {"run", folder.path()}};
  write_file(folder.file("demo.json"), all.dump(2) + "\n");
  folder.finish(common.seed, seconds, end.interrupted ? 130 : 0);
  if (common.json) {
    print_json(all);
  } else {
    print_result(judgement.settings, judgement.result, judgement.seconds);
    fmt::print("\nThat took {:.0f} s. The same with your own: netmend eval your.onnx --data images:your-photos\n",
               seconds);
    fmt::print("  model {}\n  digits {}\n  numbers {}\n", trained, sheet, folder.file("demo.json"));
  }
  return end.interrupted ? 130 : 0;
}

}  // namespace netmend::app
