#include "training/train_run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/progress.h"
#include "base/random.h"
#include "dataset/spec.h"
#include "executor/runtime.h"
#include "observers/figures.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "session/session.h"
#include "stream/pass.h"
#include "training/reinitialise.h"
#include "training/trainer.h"
#include "zoo/zoo.h"

namespace netmend::training {
namespace {

using Json = nlohmann::ordered_json;
using DataPtr = std::shared_ptr<const dataset::Dataset>;

Options options_of(const TrainRequest& request) {
  Options out;
  out.method = parse_method(request.optimiser);
  out.rate = request.rate, out.momentum = request.momentum, out.decay = request.decay, out.clip = request.clip;
  out.schedule = parse_schedule(request.schedule);
  if (!request.loss.empty()) out.loss = parse_loss(request.loss);
  out.epochs = request.epochs, out.batch = request.batch;
  out.seed = request.seed, out.jobs = request.jobs, out.device = request.device;
  return out;
}

struct TrainingData {
  DataPtr train, validation;
};

/// A share of the inputs, drawn by the seed, is kept aside to validate on.
TrainingData split_off(const DataPtr& whole, double share, uint64_t seed) {
  if (!(share >= 0 && share < 1)) fail("--validation {}: expected a fraction, 0 or more and below 1", share);
  std::vector<int64_t> all(size_t(whole->size()));
  std::iota(all.begin(), all.end(), 0);
  Random(seed, 0x5eed).shuffle(all);
  const auto aside = std::llround(share * double(all.size()));
  if (aside == 0 || aside >= int64_t(all.size())) return {whole, nullptr};
  std::vector<int64_t> validation(all.begin(), all.begin() + aside), rest(all.begin() + aside, all.end());
  std::sort(validation.begin(), validation.end());
  std::sort(rest.begin(), rest.end());
  return {dataset::subset(whole, std::move(rest)), dataset::subset(whole, std::move(validation))};
}

TrainingData open_training_data(const TrainRequest& request, const model::Graph& graph) {
  const session::Config config = session::read_config(request.config, request.model);
  dataset::Splits splits;
  if (!request.data.empty()) splits = dataset::parse_splits(request.data);
  if (!splits.train) splits.train.swap(splits.test);  // a source without splits is what to learn from
  if (!request.train.empty()) splits.train = dataset::parse_spec(request.train);
  if (!request.test.empty()) splits.test = dataset::parse_spec(request.test);
  if (!splits.train && !config.train.empty()) splits.train = dataset::parse_spec(config.train);
  if (!splits.test && request.train.empty() && request.data.empty() && !config.test.empty())
    splits.test = dataset::parse_spec(config.test);
  if (!splits.train)
    throw InputError("no training data is given", "Add --data NAME, for example --data mnist, or --train SPEC.");
  DataPtr train = session::open_data(*splits.train, graph, config, request.note);
  if (request.limit > 0 && request.limit < train->size())
    train = dataset::subset(train, stream::spread(request.limit, request.limit));
  if (!splits.test) return split_off(train, request.validation, request.seed);
  // A table to validate on is encoded like the one that is trained on.
  if (splits.test->head == "csv" && splits.train->head == "csv")
    splits.test->options.try_emplace("train", splits.train->rest);
  return {train, session::open_data(*splits.test, graph, config, request.note)};
}

/// What the file says about itself from now on: how its inputs are made, its classes, how it was trained.
void describe(model::Graph& graph, const dataset::Info& data, const Trainer& trainer, const Options& options) {
  for (const auto& [key, value] : dataset::options_of(data.preprocess)) graph.metadata["netmend.input." + key] = value;
  if (data.labels == dataset::LabelKind::kClass && !data.classes.empty())
    graph.metadata["names"] = json_text(Json(data.classes));
  const Json facts = {{"optimiser", method_name(options.method)},
                      {"rate", options.rate},
                      {"schedule", schedule_text(options.schedule)},
                      {"decay", options.decay},
                      {"loss", loss_name(trainer.loss().kind)},
                      {"batch", options.batch},
                      {"epochs", trainer.history().size()},
                      {"seed", options.seed},
                      {"data", data.spec}};
  graph.metadata["netmend.training"] = json_text(facts);
}

}  // namespace

struct TrainRun::Impl {
  TrainRequest request;
  Options options;
  TrainingData data;
  std::unique_ptr<Trainer> trainer;
  std::string validation;
  std::optional<Lock> lock;  ///< on the checkpoint

  /// `--device auto`, once network, data and epochs are known.
  void choose_device(const model::Graph& graph, model::ValueId output);

  explicit Impl(TrainRequest asked) : request(std::move(asked)), options(options_of(request)) {
    if (request.resume && request.checkpoint.empty())
      throw InputError("--resume needs a checkpoint", "Add --checkpoint FILE.");
    if (!request.checkpoint.empty()) lock.emplace(request.checkpoint + ".lock", request.checkpoint);
    auto note = [&](const std::string& line) {
      if (request.note) request.note(line);
    };
    model::Graph graph = onnx::read_model(request.model);
    data = open_training_data(request, graph);
    if (data.validation) validation = data.validation->info().spec;
    if (!request.init.empty()) reinitialise(graph, request.init, request.seed);
    if (request.change) request.change(graph, *data.train);
    const model::ValueId output = session::choose_output(graph, request.output);
    if (options.device == "auto") choose_device(graph, output);
    trainer =
        std::make_unique<Trainer>(Task{request.model, std::move(graph), output, data.train, data.validation, options});
    for (const std::string& line : trainer->notes()) note("input: " + line);
    if (const std::string idle = trainer->idle_workers(); !idle.empty()) note(idle);
    if (request.resume && std::filesystem::exists(request.checkpoint)) {
      trainer->load(request.checkpoint);
      note(fmt::format("continuing after epoch {}, from {}", trainer->history().size(), request.checkpoint));
    }
  }
};

void TrainRun::Impl::choose_device(const model::Graph& graph, model::ValueId output) {
  constexpr double kForwardAndBack = 3;
  const stream::Subject subject(request.model, graph, data.train, {output});
  const double inputs = double(data.train->size());
  const int workers = options.jobs > 0 ? std::min(options.jobs, cores()) : cores();
  const executor::DeviceEstimate estimate =
      executor::estimate_devices(kForwardAndBack * subject.cost * inputs * double(options.epochs), 0, workers);
  options.device = estimate.gpu() ? "cuda" : "cpu";
  if (request.note) request.note(estimate.text());
  if (estimate.gpu()) executor::use_device(options.device, request.precision);
}

TrainRun::TrainRun(TrainRequest request) : impl_(std::make_unique<Impl>(std::move(request))) {}
TrainRun::~TrainRun() = default;

int64_t TrainRun::parameters() const { return impl_->trainer->parameters(); }
int64_t TrainRun::inputs() const { return impl_->data.train->size(); }
const std::string& TrainRun::data() const { return impl_->data.train->info().spec; }
const std::string& TrainRun::validation() const { return impl_->validation; }
const std::vector<std::string>& TrainRun::files() const { return impl_->data.train->info().files; }
const std::vector<Epoch>& TrainRun::history() const { return impl_->trainer->history(); }

void TrainRun::record_to(const std::string& path, const std::vector<std::string>& program) {
  impl_->trainer->record_to(path, program);
}

TrainingEnd TrainRun::run(const std::function<void(const Epoch&)>& on_epoch) {
  TrainingEnd end;
  Trainer& trainer = *impl_->trainer;
  try {
    while (!trainer.done()) {
      Progress progress("inputs", inputs(), impl_->request.quiet);
      const Epoch& epoch = trainer.run_epoch([&](int64_t count, double loss) {
        progress.advance(count, fmt::format("epoch {} loss {:.4f}", trainer.history().size() + 1, loss));
      });
      if (!impl_->request.checkpoint.empty()) trainer.save(impl_->request.checkpoint);
      ++end.epochs, end.seconds += epoch.seconds;
      if (on_epoch) on_epoch(epoch);
    }
  } catch (const Interrupted&) {
    end.interrupted = true;
  }
  return end;
}

void TrainRun::write(const std::string& path) const {
  model::Graph graph = impl_->trainer->result();
  describe(graph, impl_->data.train->info(), *impl_->trainer, impl_->options);
  onnx::write_model(graph, path);
}

Json request_json(const TrainRequest& r) {
  auto whole = [](const std::string& path) {
    return path.empty() ? path : std::filesystem::absolute(path).lexically_normal().string();
  };
  return {{"folder", std::filesystem::current_path().string()},
          {"model", whole(r.model)},
          {"data", r.data},
          {"train", r.train},
          {"test", r.test},
          {"output", r.output},
          {"config", whole(r.config)},
          {"optimiser", r.optimiser},
          {"schedule", r.schedule},
          {"loss", r.loss},
          {"init", r.init},
          {"rate", r.rate},
          {"momentum", r.momentum},
          {"decay", r.decay},
          {"clip", r.clip},
          {"validation", r.validation},
          {"epochs", r.epochs},
          {"batch", r.batch},
          {"limit", r.limit},
          {"seed", r.seed},
          {"device", r.device}};
}

TrainRequest request_from(const JsonView& json) {
  TrainRequest r;
  r.model = json.at("model").text(), r.data = json.at("data").text(), r.train = json.at("train").text();
  r.test = json.at("test").text(), r.output = json.at("output").text(), r.config = json.at("config").text();
  r.optimiser = json.at("optimiser").text(), r.schedule = json.at("schedule").text(), r.loss = json.at("loss").text();
  r.init = json.at("init").text(), r.device = json.at("device").text();
  r.rate = json.at("rate").number(), r.momentum = json.at("momentum").number(), r.decay = json.at("decay").number();
  r.clip = json.at("clip").number(), r.validation = json.at("validation").number();
  r.epochs = json.at("epochs").whole(0, 1'000'000), r.batch = json.at("batch").whole(1, 65536);
  r.limit = json.at("limit").whole(0), r.seed = uint64_t(json.at("seed").whole(0));
  return r;
}

Json epochs_json(const std::vector<Epoch>& history) {
  using observers::number_json;
  Json epochs = Json::array();
  for (const Epoch& e : history)
    epochs.push_back({{"epoch", e.number},
                      {"loss", number_json(e.loss)},
                      {"accuracy", number_json(e.accuracy)},
                      {"val_loss", number_json(e.val_loss)},
                      {"val_accuracy", number_json(e.val_accuracy)},
                      {"rate", e.rate},
                      {"seconds", e.seconds}});
  return epochs;
}

void write_history(const std::string& path, const std::vector<Epoch>& history) {
  write_file(path, [&](std::ostream& out) {
    out << "epoch,loss,accuracy,val_loss,val_accuracy,rate,seconds\n";
    for (const Epoch& e : history)
      out << fmt::format("{},{:.9g},{:.9g},{:.9g},{:.9g},{:.9g},{:.3f}\n", e.number, e.loss, e.accuracy, e.val_loss,
                         e.val_accuracy, e.rate, e.seconds);
  });
}

int64_t write_new_model(const std::string& name, const std::string& scheme, uint64_t seed, const std::string& path) {
  model::Graph graph = zoo::make(name, {.scheme = scheme, .seed = seed});
  onnx::write_model(graph, path);
  return zoo::parameter_count(graph);
}

}  // namespace netmend::training
