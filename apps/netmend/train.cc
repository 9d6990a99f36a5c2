// netmend train: epochs with a table, a checkpoint after each, the trained model at the end.
#include "netmend/train.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/progress.h"
#include "base/random.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "netmend/shared.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "training/reinitialise.h"

namespace netmend::app {
namespace {

using training::Epoch;
using DataPtr = std::shared_ptr<const dataset::Dataset>;

training::Options training_options(const Common& common, const TrainOptions& options) {
  training::Options out;
  out.method = training::parse_method(options.optimiser);
  out.rate = options.rate, out.momentum = options.momentum, out.decay = options.decay;
  out.schedule = training::parse_schedule(options.schedule);
  if (!options.loss.empty()) out.loss = training::parse_loss(options.loss);
  out.epochs = options.epochs, out.batch = options.batch;
  out.seed = common.seed, out.jobs = common.jobs;
  return out;
}

struct TrainingData {
  DataPtr train, validation;
};

/// A share of the inputs, drawn by the seed, is kept aside to judge by.
TrainingData split_off(const DataPtr& whole, double share, uint64_t seed) {
  if (!(share >= 0 && share < 1)) fail("--validation {} is no share (0 up to 1)", share);
  std::vector<int64_t> all(size_t(whole->size()));
  std::iota(all.begin(), all.end(), 0);
  Random(seed, 0x5eed).shuffle(all);
  size_t aside = size_t(std::llround(share * double(all.size())));
  if (aside == 0 || aside >= all.size()) return {whole, nullptr};
  std::vector<int64_t> validation(all.begin(), all.begin() + int64_t(aside)),
      rest(all.begin() + int64_t(aside), all.end());
  std::sort(validation.begin(), validation.end());
  std::sort(rest.begin(), rest.end());
  return {dataset::subset(whole, std::move(rest)), dataset::subset(whole, std::move(validation))};
}

TrainingData open_training_data(const Common& common, const TrainOptions& options, const model::Graph& graph) {
  Config config = read_config(common.config, options.model);
  dataset::Splits splits;
  if (!options.data.empty()) splits = dataset::parse_splits(options.data);
  if (!splits.train) splits.train.swap(splits.test);  // a source without splits is what to learn from
  if (!options.train.empty()) splits.train = dataset::parse_spec(options.train);
  if (!options.test.empty()) splits.test = dataset::parse_spec(options.test);
  if (!splits.train && !config.train.empty()) splits.train = dataset::parse_spec(config.train);
  if (!splits.test && options.train.empty() && options.data.empty() && !config.test.empty())
    splits.test = dataset::parse_spec(config.test);
  if (!splits.train)
    throw InputError("no training data is given", "Add --data NAME, for example --data mnist, or --train SPEC.");
  DataPtr train = first_inputs(open_data(common, *splits.train, graph, config), options.limit);
  if (!splits.test) return split_off(train, options.validation, common.seed);
  // A table to judge by is encoded like the one that is learned from.
  if (splits.test->head == "csv" && splits.train->head == "csv")
    splits.test->options.try_emplace("train", splits.train->rest);
  return {train, open_data(common, *splits.test, graph, config)};
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

std::string percent(double share) { return std::isfinite(share) ? fmt::format("{:.2f} %", 100 * share) : "–"; }
std::string fixed(double value) { return std::isfinite(value) ? fmt::format("{:.4f}", value) : "–"; }

void write_history(const std::string& path, const std::vector<Epoch>& history) {
  write_file(path, [&](std::ostream& out) {
    out << "epoch,loss,accuracy,val_loss,val_accuracy,rate,seconds\n";
    for (const Epoch& e : history)
      out << fmt::format("{},{:.9g},{:.9g},{:.9g},{:.9g},{:.9g},{:.3f}\n", e.number, e.loss, e.accuracy, e.val_loss,
                         e.val_accuracy, e.rate, e.seconds);
  });
}

/// What the file says about itself from now on: how its inputs are made, its classes, how it was trained.
void describe(model::Graph& graph, const dataset::Info& data, const training::Trainer& trainer,
              const training::Options& options) {
  for (const auto& [key, value] : dataset::options_of(data.preprocess)) graph.metadata["netmend.input." + key] = value;
  if (data.labels == dataset::LabelKind::kClass && !data.classes.empty())
    graph.metadata["names"] = Json(data.classes).dump();
  Json facts = {{"optimiser", training::method_name(options.method)},
                {"rate", options.rate},
                {"schedule", training::schedule_text(options.schedule)},
                {"decay", options.decay},
                {"loss", training::loss_name(trainer.loss().kind)},
                {"batch", options.batch},
                {"epochs", trainer.history().size()},
                {"seed", options.seed},
                {"data", data.spec}};
  graph.metadata["netmend.training"] = facts.dump();
}

void check_flags(const Common& common, const TrainOptions& options) {
  if (!options.init.empty() && options.keep_weights)
    fail("--init starts afresh, --keep-weights does not: give one of them");
  if (options.resume && options.checkpoint.empty())
    throw InputError("--resume needs a checkpoint", "Add --checkpoint FILE.");
  if (common.device != "cpu") throw Unsupported("training runs on the CPU only", "Leave --device out.");
}

void print_start(const TrainOptions& options, const training::Trainer& trainer, const TrainingData& data) {
  fmt::print("{}  {} parameters   {} inputs of {}   {} {:g}, batch {}\n", options.model,
             with_commas(trainer.parameters()), with_commas(data.train->size()), data.train->info().spec,
             options.optimiser, options.rate, options.batch);
  print_epoch_head();
  for (const Epoch& epoch : trainer.history()) print_epoch(epoch);
}

void note_inputs(RunFolder& folder, const TrainOptions& options, const TrainingData& data) {
  folder.note_file(options.model);
  for (const std::string& file : data.train->info().files) folder.note_file(file);
  folder.note("data", data.train->info().spec);
  if (data.validation) folder.note("validation", data.validation->info().spec);
  folder.note("product", options.product);
}

}  // namespace

void print_epoch_head() { fmt::print("  epoch    loss  accuracy  val loss  val accuracy       s\n"); }

void print_epoch(const Epoch& e) {
  fmt::print("  {:>5}  {:>6}  {:>9}  {:>8}  {:>12}  {:>6.1f}\n", e.number, fixed(e.loss), percent(e.accuracy),
             fixed(e.val_loss), percent(e.val_accuracy), e.seconds + e.val_seconds);
  std::fflush(stdout);
}

Json epochs_json(const std::vector<Epoch>& history) {
  Json epochs = Json::array();
  for (const Epoch& e : history)
    epochs.push_back({{"epoch", e.number},
                      {"loss", number(e.loss)},
                      {"accuracy", number(e.accuracy)},
                      {"val_loss", number(e.val_loss)},
                      {"val_accuracy", number(e.val_accuracy)},
                      {"rate", e.rate},
                      {"seconds", e.seconds}});
  return epochs;
}

TrainingEnd run_training(const Common& common, training::Trainer& trainer, int64_t inputs,
                         const std::string& checkpoint, const std::function<void(const Epoch&)>& on_epoch) {
  TrainingEnd end;
  try {
    while (!trainer.done()) {
      Progress progress("inputs", inputs, common.quiet);
      const Epoch& epoch = trainer.run_epoch([&](int64_t count, double loss) {
        progress.advance(count, fmt::format("epoch {} loss {:.4f}", trainer.history().size() + 1, loss));
      });
      if (!checkpoint.empty()) trainer.save(checkpoint);
      ++end.epochs, end.seconds += epoch.seconds;
      if (on_epoch) on_epoch(epoch);
    }
  } catch (const Interrupted&) {
    end.interrupted = true;
  }
  return end;
}

void write_trained(const training::Trainer& trainer, const training::Options& options, const dataset::Info& data,
                   const std::string& path) {
  model::Graph graph = trainer.result();
  describe(graph, data, trainer, options);
  onnx::write_model(graph, path);
}

int train(const Common& common, const TrainOptions& options) {
  check_flags(common, options);
  auto start = std::chrono::steady_clock::now();
  require_writable(options.product);
  model::Graph graph = onnx::read_model(options.model);
  training::Options how = training_options(common, options);
  TrainingData data = open_training_data(common, options, graph);
  if (!options.init.empty()) training::reinitialise(graph, options.init, common.seed);
  model::ValueId output = choose_output(graph, options.output);
  training::Trainer trainer({options.model, std::move(graph), output, data.train, data.validation, how});
  for (const std::string& note : trainer.notes()) say(common, "input: " + note);
  if (options.resume && std::filesystem::exists(options.checkpoint)) {
    trainer.load(options.checkpoint);
    say(common, fmt::format("going on after epoch {}, from {}", trainer.history().size(), options.checkpoint));
  }
  RunFolder folder(common.out, "train", common.arguments);
  note_inputs(folder, options, data);
  if (!common.json) print_start(options, trainer, data);
  TrainingEnd end = run_training(common, trainer, data.train->size(), options.checkpoint, [&](const Epoch& epoch) {
    if (!common.json) print_epoch(epoch);
    write_history(folder.file("history.csv"), trainer.history());
  });

  bool written = !end.interrupted || !trainer.history().empty();
  if (written) write_trained(trainer, how, data.train->info(), options.product);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  double speed = end.seconds > 0 ? double(end.epochs * data.train->size()) / end.seconds : 0;
  folder.finish(common.seed, seconds, end.interrupted ? 130 : 0);
  if (common.json)
    print_json({{"model", written ? Json(options.product) : Json(nullptr)},
                {"parameters", trainer.parameters()},
                {"samples", data.train->size()},
                {"epochs", epochs_json(trainer.history())},
                {"samples_per_second", speed},
                {"seconds", seconds},
                {"interrupted", end.interrupted},
                {"run", folder.path()}});
  else if (written)
    fmt::print("\n  {}   {} inputs/s   history: {}/history.csv\n", options.product, with_commas(int64_t(speed)),
               folder.path());
  if (end.interrupted)
    say(common,
        written ? fmt::format("stopped: {} holds the weights after epoch {}", options.product, trainer.history().size())
                : "stopped before the first epoch was complete: no model was written");
  return end.interrupted ? 130 : 0;
}

}  // namespace netmend::app
