// What several commands do: opening the model and the data that the flags name, printing for people or programs.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

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
/// Opens a data set for a model. Preprocessing is what the spec says; where it says nothing, what netmend.toml says,
/// then what the model carries in its metadata. What did not come from the spec is told. `limit` of 0 is everything.
std::shared_ptr<const dataset::Dataset> open_data(const Common& common, const dataset::Spec& spec,
                                                  const model::Graph& model, const Config& config, int64_t limit);
/// Only the first `limit` inputs; all of them for 0.
std::shared_ptr<const dataset::Dataset> first_inputs(std::shared_ptr<const dataset::Dataset> data, int64_t limit);
/// --test, else the test part of --data, else what netmend.toml names.
dataset::Spec test_spec(const std::string& data, const std::string& test, const Config& config);

/// Model and data, ready to be judged.
struct Judged {
  stream::Subject subject;
  observers::PredictionSettings settings;
};
Judged make_judged(const Common& common, const std::string& model, model::Graph graph,
                   std::shared_ptr<const dataset::Dataset> data, const std::string& output);

stream::PassOptions pass_options(const Common& common);

/// The evaluation for people and for programs; `eval` and `lab merge` print the same.
void print_result(const observers::PredictionSettings& settings, const observers::PredictionResult& result,
                  double seconds);
Json result_json(const observers::PredictionSettings& settings, const observers::PredictionResult& result,
                 double seconds);

}  // namespace netmend::app
