#include "session/match.h"

#include "base/error.h"
#include "base/text.h"
#include "dataset/dataset.h"
#include "dataset/spec.h"
#include "model/graph.h"
#include "onnx/reader.h"
#include "session/session.h"
#include "stream/reference.h"

namespace netmend::session {
namespace {

stream::InputFit compare_data(const MatchRequest& request, const dataset::Spec& spec, const Config& config,
                              const model::Graph& graph, const stream::Reference& reference) {
  const auto data = open_data(spec, graph, config, request.note);
  return stream::compare_inputs(graph, request.model, reference, *data, request.options.tolerance);
}

/// The data that was named, or the test data of netmend.toml; without either there is nothing to compare. What the file
/// names may not be on this machine, which only matters when it was asked for.
std::optional<stream::InputFit> compare_inputs(const MatchRequest& request, const model::Graph& graph,
                                               const stream::Reference& reference) {
  const Config config = read_config(request.config, request.model);
  if (!request.data.empty())
    return compare_data(request, *dataset::parse_splits(request.data).test, config, graph, reference);
  if (config.test.empty() || reference.samples.empty()) return {};
  try {
    return compare_data(request, dataset::parse_spec(config.test), config, graph, reference);
  } catch (const InputError& error) {
    if (request.note)
      request.note(fmt::format("the inputs are not compared with the test data of {}: {}", config.path, error.what()));
    return {};
  }
}

}  // namespace

ReferenceMatch match_reference(const MatchRequest& request) {
  const model::Graph graph = onnx::read_model(request.model);
  const stream::Reference reference = stream::read_reference(request.reference);
  ReferenceMatch found;
  found.framework = reference.framework;
  found.match = stream::compare_with_reference(graph, reference, request.options);
  found.inputs = compare_inputs(request, graph, reference);
  if (found.inputs && !found.inputs->equal) {
    stream::Match& match = found.match;
    match.reason = match.matches ? found.inputs->explanation
                                 : fmt::format("{}; also, {}", found.inputs->explanation, match.reason);
    match.matches = false;
  }
  return found;
}

}  // namespace netmend::session
