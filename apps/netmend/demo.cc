// netmend demo: the whole way on data that netmend draws itself, each step with the command a user would type.
#include <ATen/ATen.h>

#include <chrono>

#include "base/file.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "dataset/contact_sheet.h"
#include "netmend/show.h"
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
  Judged judged = make_judged(common, model, onnx::read_model(model), std::move(data), "", {});
  observers::Predictions observer(judged.settings, false);
  stream::PassResult pass = stream::run_pass(judged.subject, {&observer}, pass_options(common));
  auto state = pass.collected[0].fold(observer);
  return {judged.settings, observers::finish(observer, dynamic_cast<const observers::PredictionState&>(*state)),
          pass.seconds};
}

/// The steps, and what they leave in the run folder.
class Demo {
 public:
  Demo(const Common& common, const DemoOptions& options)
      : common_(common), folder_(common.out, "demo", common.arguments) {
    how_.epochs = options.epochs, how_.seed = common.seed, how_.jobs = common.jobs;
  }

  int run() {
    auto start = std::chrono::steady_clock::now();
    if (!common_.json)
      fmt::print("This demo needs no file: netmend draws its own digits, and everything lands in {}\n", folder_.path());
    look_at_data();
    make_network();
    bool complete = train_network();
    auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
    if (complete || !trainer_->history().empty()) {
      write_trained(*trainer_, how_, train_->info(), trained_);
      judge_network(seconds);
    } else {
      say(common_, "stopped before the first epoch was complete");
    }
    folder_.finish(common_.seed, seconds(), complete ? 0 : 130);
    return complete ? 0 : 130;
  }

 private:
  void look_at_data() {
    std::string counts = fmt::format("{} drawn digits to learn from, {} to be tested on", with_commas(train_->size()),
                                     with_commas(test_->size()));
    tell(common_, 1, fmt::format("Look at the data: {}.", counts), "netmend data glyphs:test --sheet " + sheet_);
    dataset::write_contact_sheet(*test_, dataset::sheet_samples(*test_, 8), 8, sheet_);
    if (!common_.json) fmt::print("   {} shows eight of each digit.\n", sheet_);
  }

  void make_network() {
    graph_ = zoo::make(kArchitecture, {.seed = common_.seed});
    onnx::write_model(graph_, fresh_);
    tell(common_, 2,
         fmt::format("Make a network: {}, {} parameters, random weights.", kArchitecture,
                     with_commas(zoo::parameter_count(graph_))),
         fmt::format("netmend lab new {} -o {}", kArchitecture, fresh_));
  }

  /// False when Ctrl-C came first.
  bool train_network() {
    tell(common_, 3, fmt::format("Train it: {} times through the data, the test digits as judge.", how_.epochs),
         fmt::format("netmend train {} --data glyphs --epochs {} -o {}", fresh_, how_.epochs, trained_));
    trainer_.emplace(training::Task{fresh_, graph_, graph_.outputs[0], train_, test_, how_});
    if (!common_.json) print_epoch_head();
    TrainingEnd end = run_training(common_, *trainer_, train_->size(), "", [&](const training::Epoch& epoch) {
      if (!common_.json) print_epoch(epoch);
    });
    return !end.interrupted;
  }

  void judge_network(const std::function<double()>& seconds) {
    tell(common_, 4, "Judge it: accuracy, per class, and what it confuses.",
         fmt::format("netmend eval {} --data glyphs:test", trained_));
    Judgement judgement = evaluate(common_, trained_, test_);
    Json all = {{"model", trained_},
                {"parameters", trainer_->parameters()},
                {"epochs", epochs_json(trainer_->history())},
                {"eval", result_json(judgement.settings, judgement.result, judgement.seconds)},
                {"sheet", sheet_},
                {"seconds", seconds()},
                {"run", folder_.path()}};
    write_file(folder_.file("demo.json"), all.dump(2) + "\n");
    if (common_.json) return print_json(all);
    print_result(judgement.settings, judgement.result, judgement.seconds);
    fmt::print("\nThat took {:.0f} s. The same with your own: netmend eval your.onnx --data images:your-photos\n",
               seconds());
    fmt::print("  model {}\n  digits {}\n  numbers {}\n", trained_, sheet_, folder_.file("demo.json"));
  }

  const Common& common_;
  RunFolder folder_;
  training::Options how_;
  const std::string fresh_ = folder_.file("fresh.onnx"), trained_ = folder_.file("trained.onnx"),
                    sheet_ = folder_.file("digits.png");
  std::shared_ptr<const dataset::Dataset> train_ = dataset::open("glyphs:train"), test_ = dataset::open("glyphs:test");
  model::Graph graph_;
  std::optional<training::Trainer> trainer_;
};

}  // namespace

int demo(const Common& common, const DemoOptions& options) { return Demo(common, options).run(); }

}  // namespace netmend::app
