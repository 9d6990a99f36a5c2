// What several commands do: opening the model and the data that flags and netmend.toml name, making sure that they
// belong together, planning how much of the data is used.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "checkup/preflight.h"
#include "dataset/dataset.h"
#include "executor/layers.h"
#include "model/graph.h"
#include "netmend/commands.h"
#include "netmend/config.h"
#include "observers/predictions.h"
#include "stream/pass.h"

namespace netmend::app {

using Json = nlohmann::ordered_json;

/// One JSON document on stdout.
void print_json(const Json& json);
/// A line for people on stderr, unless --quiet.
void say(const Common& common, const std::string& line);

/// The value that `--output NAME` names, or the graph's first output. Throws InputError with the nearest name.
model::ValueId choose_output(const model::Graph& graph, const std::string& name);
/// The axes of an image input, NCHW or NHWC; "" when it is none.
std::string image_layout(const model::Value& input);
/// Opens a data set for a model. Preprocessing is what the spec says; where it says nothing, what netmend.toml says,
/// then what the model carries in its metadata. What did not come from the spec is told.
std::shared_ptr<const dataset::Dataset> open_data(const Common& common, const dataset::Spec& spec,
                                                  const model::Graph& model, const Config& config);
/// Only the first `limit` inputs; all of them for 0.
std::shared_ptr<const dataset::Dataset> first_inputs(std::shared_ptr<const dataset::Dataset> data, int64_t limit);
/// --test, else the test part of --data, else what netmend.toml names.
dataset::Spec test_spec(const std::string& data, const std::string& test, const Config& config);

/// --train, else the training part of --data, else what netmend.toml names; nothing when none does.
std::optional<dataset::Spec> train_spec(const CaseOptions& options, const std::string& train, const Config& config);
/// Columns of a table mean the same in tests as in training: both are encoded by the training file.
void encode_alike(CaseOptions& options, const std::string& train);

/// Model and data, ready to be judged.
struct Judged {
  stream::Subject subject;
  observers::PredictionSettings settings;
};
Judged make_judged(const Common& common, const std::string& model, model::Graph graph,
                   std::shared_ptr<const dataset::Dataset> data, const std::string& output,
                   const observers::Wishes& wishes);

/// A question about a model, as the flags and netmend.toml put it together.
struct Case {
  Config config;
  dataset::Spec spec;                            ///< of the test data
  std::shared_ptr<const dataset::Dataset> data;  ///< all of it, or --limit
  Judged judged;
};
Case open_case(const Common& common, const CaseOptions& options);

/// Whether model and data belong together; tells what was looked at unless the output is JSON.
checkup::Preflight examine(const Common& common, const CaseOptions& options, const Case& about);

/// Replaces the data by an even sample of it where a pass over all would take longer than --budget; says what is done
/// when it takes long enough to matter. The speed is measured on 256 inputs.
struct Plan {
  std::shared_ptr<const dataset::Dataset> data;
  int64_t whole = 0;   ///< inputs there are
  double seconds = 0;  ///< expected
};
/// `times`: how many plain passes the work on each input costs.
Plan plan_pass(const Common& common, const CaseOptions& options, const Case& about, double times = 1);

/// A command that can be pasted: with the model, and with the data where a flag named it.
std::string next_command(const std::string& command, const std::string& model, const CaseOptions& options);
/// The same without `netmend COMMAND`, quoted for a shell; empty where netmend.toml names everything.
std::string case_words(const Common& common, const CaseOptions& options);

stream::PassOptions pass_options(const Common& common);

}  // namespace netmend::app
