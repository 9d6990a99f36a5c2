#include "healing/own_training.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "dataset/dataset.h"
#include "healing/network_edits.h"
#include "records/record.h"
#include "session/session.h"

namespace netmend::healing {
namespace {

class OwnTraining : public Training {
 public:
  OwnTraining(training::TrainRequest request, bool numbers) : request_(std::move(request)) {
    request_.checkpoint.clear(), request_.resume = false, request_.quiet = true, request_.note = {};
    const training::TrainRequest& r = request_;
    auto knob = [&](const char* name, const Json& current, bool open = false) {
      knobs_[name] = {current, usual_choices(name, current), open};
    };
    knob("optimiser", r.optimiser), knob("schedule", r.schedule), knob("rate", r.rate, true);
    knob("momentum", r.momentum, true), knob("decay", r.decay, true), knob("clip", r.clip, true);
    knob("batch", r.batch, true), knob("epochs", r.epochs, true);
    knob("batch_norm", false), knob("scale_inputs", false);
    if (numbers) knob("scale_targets", false);
    // As the file has them, unless somebody says otherwise.
    knob("init", r.init), knob("activation", "");
    knobs_["loss"] = {r.loss, r.loss.empty() ? std::vector<Json>{""} : std::vector<Json>{r.loss, ""}, false};
  }

  const Knobs& knobs() const override { return knobs_; }
  std::string cost_unit() const override { return "inputs trained on"; }

  double run(const Settings& settings, const std::string& folder) override {
    training::TrainRequest request = request_;
    request.optimiser = settings.at("optimiser"), request.schedule = settings.at("schedule");
    request.rate = settings.at("rate"), request.momentum = settings.at("momentum");
    request.decay = settings.at("decay"), request.clip = settings.at("clip");
    request.batch = settings.at("batch"), request.epochs = settings.at("epochs");
    request.init = settings.at("init"), request.loss = settings.at("loss");
    const std::string activation = settings.at("activation"), output = request.output;
    const bool norm = settings.at("batch_norm"), inputs = settings.at("scale_inputs"),
               targets = settings.count("scale_targets") && settings.at("scale_targets") == true;
    request.change = [=](model::Graph& graph, const dataset::Dataset& train) {
      const model::ValueId judged = session::choose_output(graph, output);
      if (!activation.empty()) set_activations(graph, judged, activation);
      if (norm) add_batch_norm(graph, judged);
      if (inputs) standardize_inputs(graph, train);
      if (targets) scale_outputs(graph, judged, train);
    };
    make_folders(folder);
    training::TrainRun run(request);
    run.record_to(folder + "/record.jsonl", {"netmend", "heal"});
    double cost = 0;
    try {
      const training::TrainingEnd end = run.run({});
      if (end.interrupted) throw Interrupted{};
      cost = double(end.epochs) * double(run.inputs());
      run.write(folder + "/model.onnx");
    } catch (const InputError&) {  // the loss is no longer finite: its record says so
      if (records::read_record(folder).of("failed").empty()) throw;
      cost = double(run.inputs());
    }
    return cost;
  }

 private:
  training::TrainRequest request_;
  Knobs knobs_;
};

}  // namespace

std::unique_ptr<Training> own_training(training::TrainRequest request, bool numbers) {
  return std::make_unique<OwnTraining>(std::move(request), numbers);
}

}  // namespace netmend::healing
