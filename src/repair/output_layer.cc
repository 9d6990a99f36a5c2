#include "repair/output_layer.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "edits/places.h"
#include "whatif/judge.h"

namespace netmend::repair {

using edits::Role;

Logits logits_of(const Problem& problem, const std::vector<int64_t>& samples) {
  Logits out;
  std::vector<at::Tensor> values, labels;
  constexpr size_t kAtOnce = 2048;
  for (size_t first = 0; first < samples.size(); first += kAtOnce) {
    std::vector<int64_t> some(samples.begin() + int64_t(first),
                              samples.begin() + int64_t(std::min(samples.size(), first + kAtOnce)));
    dataset::Batch batch = problem.subject.data->read(some);
    at::Tensor found = stream::run_few(problem.subject, {whatif::answers_of(problem.settings)}, batch, problem.jobs)[0];
    values.push_back(observers::as_columns(found).to(at::kDouble));
    labels.push_back(batch.labels);
  }
  out.values = at::cat(values, 0), out.labels = at::cat(labels, 0);
  return out;
}

namespace {

const model::Layer* output_layer(const Problem& problem) {
  const model::ValueId answers = whatif::answers_of(problem.settings);
  for (const model::Layer& layer : problem.layers)
    if ((layer.pre == answers || layer.post == answers) && layer.units == problem.settings.outputs) return &layer;
  return nullptr;
}

}  // namespace

Rescaled rescale(const Problem& problem, double scale, const std::vector<double>& shift) {
  const model::Layer* layer = output_layer(problem);
  if (!layer) return {{}, "no layer with weights produces the outputs"};
  if (layer->post == whatif::answers_of(problem.settings) && layer->post != layer->pre)
    return {{}, fmt::format("an activation function ({}) follows the last layer", layer->activation)};
  const edits::Parts parts = edits::find_parts(problem.subject.graph, *layer);
  bool has_bias = false;
  Rescaled out;
  for (const edits::Part& part : parts.list) {
    if (!part.refusal.empty()) return {{}, part.refusal};
    if (part.role == Role::kNorm) return {{}, "a normalisation layer follows the last weights"};
    if (part.role == Role::kBias) has_bias = true;
    if (part.role == Role::kWeight && scale == 1) continue;
    for (int64_t unit = 0; unit < layer->units; ++unit) {
      std::vector<int64_t> positions = part.positions(problem.subject.graph, unit);
      at::Tensor flat = problem.subject.graph.constant(part.parameter).contiguous().view(-1);
      std::vector<double> values = edits::numbers(flat.index_select(0, at::tensor(positions, at::kLong)));
      const double add =
          part.role == Role::kBias && !shift.empty() ? shift[size_t(unit)] / double(positions.size()) : 0;
      for (double& value : values) value = scale * value + add;
      for (edits::Edit& edit :
           edits::cut(problem.subject.graph, part.parameter, positions, values, model::unit_name(*layer, unit)))
        out.edits.push_back(std::move(edit));
    }
  }
  if (!has_bias && !shift.empty()) return {{}, parts.no_bias.empty() ? "the last layer has no bias" : parts.no_bias};
  return out;
}

}  // namespace netmend::repair
