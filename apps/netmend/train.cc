// netmend train: epochs with a table, a checkpoint after each, the trained model at the end.
#include "netmend/train.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "diagnosis/diagnose.h"
#include "netmend/diagnose.h"
#include "netmend/shared.h"
#include "netmend/terminal.h"
#include "training/train_run.h"

namespace netmend::app {
namespace {

using training::Epoch;

std::string percent(double share) { return std::isfinite(share) ? fmt::format("{:.2f} %", 100 * share) : "–"; }
std::string decimal(double value) { return std::isfinite(value) ? fmt::format("{:.4f}", value) : "–"; }

training::TrainRequest request_of(const Common& common, const TrainOptions& options) {
  training::TrainRequest request;
  request.model = options.model, request.data = options.data, request.train = options.train;
  request.test = options.test, request.output = options.output, request.config = common.config;
  request.optimiser = options.optimiser, request.schedule = options.schedule, request.loss = options.loss;
  request.init = options.init, request.checkpoint = options.checkpoint, request.resume = options.resume;
  request.rate = options.rate, request.momentum = options.momentum, request.decay = options.decay;
  request.clip = options.clip;
  request.validation = options.validation, request.epochs = options.epochs, request.batch = options.batch;
  request.limit = options.limit, request.seed = common.seed, request.jobs = common.jobs;
  request.quiet = common.quiet, request.device = common.device, request.precision = common.precision;
  // What holds for both splits is told of each of them: once is enough.
  request.note = [&common, told = std::make_shared<std::set<std::string>>()](const std::string& line) {
    if (told->insert(line).second) say(common, printable(line));
  };
  return request;
}

void check_flags(const Common& common, const TrainOptions& options) {
  if (!options.init.empty() && options.keep_weights)
    fail("--init draws fresh weights, --keep-weights keeps those of the file: give one of them");
  if (options.heal && common.json)
    throw InputError("--heal and --json do not go together", "netmend train --json, then netmend heal --json.");
}

void print_start(const TrainOptions& options, const training::TrainRun& run) {
  print("{}  {}   {} of {}   {}, learning rate {:g}, batch size {}\n", printable(options.model),
        counted(run.parameters(), "parameter"), counted(run.inputs(), "input"), printable(run.data()),
        options.optimiser, options.rate, options.batch);
  print_epoch_head();
  for (const Epoch& epoch : run.history()) print_epoch(epoch);
}

int heal_after(Common common, const std::string& run, const TrainOptions& options) {
  common.out.clear();
  return heal_run(common, {.run = run, .product = options.product});
}

}  // namespace

void print_epoch_head() { print("  epoch    loss  accuracy  val loss  val accuracy       s\n"); }

void print_epoch(const Epoch& e) {
  print("  {:>5}  {:>6}  {:>9}  {:>8}  {:>12}  {:>6.1f}\n", e.number, decimal(e.loss), percent(e.accuracy),
        decimal(e.val_loss), percent(e.val_accuracy), e.seconds + e.val_seconds);
  std::fflush(stdout);
}

int train(const Common& common, const TrainOptions& options) {
  check_flags(common, options);
  const auto start = std::chrono::steady_clock::now();
  training::TrainRun run(request_of(common, options));
  RunFolder folder(common.out, "train", common.arguments);
  folder.note_file(options.model);
  for (const std::string& file : run.files()) folder.note_file(file);
  folder.note("data", run.data());
  if (!run.validation().empty()) folder.note("validation", run.validation());
  folder.note("product", options.product);
  folder.add("training", training::request_json(request_of(common, options)));
  run.record_to(folder.file("record.jsonl"), common.arguments);
  if (!common.json) print_start(options, run);
  training::TrainingEnd end;
  auto seconds_so_far = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  try {
    end = run.run([&](const Epoch& epoch) {
      if (!common.json) print_epoch(epoch);
      training::write_history(folder.file("history.csv"), run.history());
    });
  } catch (const InputError& error) {  // the run stays, for netmend diagnose and netmend heal
    folder.finish(common.seed, seconds_so_far(), 2);
    if (!options.heal) throw;
    say(common, error.what());
    return heal_after(common, folder.path(), options);
  }

  const bool written = !end.interrupted || !run.history().empty();
  if (!run.history().empty()) training::write_history(folder.file("history.csv"), run.history());
  const std::string product = end.interrupted ? partial_name(options.product) : options.product;
  if (written) run.write(product);
  const double seconds = seconds_so_far();
  const double speed = end.seconds > 0 ? double(end.epochs * run.inputs()) / end.seconds : 0;
  folder.finish(common.seed, seconds, end.interrupted ? 130 : 0);
  if (common.json)
    print_json({{"model", written ? Json(product) : Json(nullptr)},
                {"parameters", run.parameters()},
                {"samples", run.inputs()},
                {"epochs", training::epochs_json(run.history())},
                {"samples_per_second", speed},
                {"seconds", seconds},
                {"interrupted", end.interrupted},
                {"run", folder.path()}});
  else if (written)
    print("\n  {}   {} inputs/s   history: {}/history.csv\n", printable(product), with_commas(int64_t(speed)),
          folder.path());
  if (end.interrupted)
    say(common, written ? fmt::format("stopped: {} holds the weights after epoch {}", product, run.history().size())
                        : "stopped before the first epoch was complete: no model was written");
  if (end.epochs == 0 && !end.interrupted && !run.history().empty())
    say(common,
        fmt::format("nothing was left to train: {} holds all {} epochs", options.checkpoint, run.history().size()));
  if (end.interrupted || end.epochs == 0) return end.interrupted ? 130 : 0;
  const records::Record record = records::read_record(folder.path());
  const diagnosis::Diagnosis found = diagnosis::diagnose(record, {}, {}, folder.path());
  write_training_page(folder.path(), record, found, common.arguments);
  int64_t problems = 0;
  for (const findings::Finding& one : found.findings)
    if (one.level > findings::Level::kNote && ++problems)
      say(common, fmt::format("  {:<8} {}  {}", level_name(one.level), printable(one.id()), printable(one.brief)));
  return options.heal && problems > 0 ? heal_after(common, folder.path(), options) : 0;
}

}  // namespace netmend::app
