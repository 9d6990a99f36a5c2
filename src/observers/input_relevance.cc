#include "observers/input_relevance.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "model/guard.h"
#include "observers/importance.h"

namespace netmend::observers {
namespace {

using model::ValueId;

constexpr int64_t kExact = 1 << 24;  ///< whole numbers that float32 tells apart

/// Rows of a batch, the last one repeated up to `size`.
dataset::Batch rows_of(const dataset::Batch& batch, int64_t first, int64_t count, int64_t size) {
  std::vector<int64_t> rows(size_t(size), first + count - 1);
  std::iota(rows.begin(), rows.begin() + count, first);
  at::Tensor index = at::tensor(rows, at::kLong);
  dataset::Batch part;
  auto pick = [&](const at::Tensor& tensor) { return tensor.defined() ? tensor.index_select(0, index) : tensor; };
  for (const at::Tensor& input : batch.inputs) part.inputs.push_back(pick(input));
  for (const at::Tensor& mask : batch.masks) part.masks.push_back(pick(mask));
  part.samples = std::move(rows);
  return part;
}

}  // namespace

executor::Head explained_head(const PredictionSettings& settings) {
  executor::Head head = settings.head;  // a number is not a yes or no, whatever squeezes it
  if (settings.task == Task::kNumber && head.output_kind == executor::OutputKind::kSigmoid)
    head.output_kind = executor::OutputKind::kLogits;
  return head;
}

explain::Options explained_options(explain::Options options, const PredictionSettings& settings) {
  options.yes_or_no = options.yes_or_no || settings.task == Task::kBinary;
  return options;
}

InputExplainer::InputExplainer(const stream::Subject& subject, const PredictionSettings& settings,
                               explain::Options options)
    : subject_(subject) {
  const model::Graph& graph = subject.batching.graph;
  executor::Head head = explained_head(settings);
  std::vector<int> made_by = model::producers(graph);
  std::vector<bool> needed = executor::needed_nodes(graph, graph.inputs, {&head.logits, 1});
  std::vector<ValueId> sources;
  for (ValueId id : executor::find_starts(graph)) {
    int maker = made_by[size_t(id)];
    if (maker >= 0 && !needed[size_t(maker)]) continue;
    starts_.push_back(id);
    sources.push_back(maker >= 0 ? graph.nodes[size_t(maker)].inputs[1] : id);
  }
  if (starts_.empty())
    throw InputError(fmt::format("{} has no input that is a quantity or that an embedding reads", subject.model_name),
                     "Relevance of layers can be computed: --layer NAME.");
  explainer_.emplace(graph, head, starts_, explained_options(options, settings));
  sources_.emplace(graph, executor::Request{graph.inputs, sources, executor::Mode::kPlain});
  together_ =
      model::guarded([&] { return subject.model_name; }, [&] { return explained_together(subject, *explainer_); });
}

/// The data's elements are numbered and sent the way that inputs go; where the numbers arrive is where elements do.
/// Sent twice, numbered from another beginning, what is not an element shows: it stays the same.
std::vector<at::Tensor> InputExplainer::origins(const dataset::Batch& batch) const {
  auto numbered = [&](int64_t from) {
    dataset::Batch numbers = batch;
    for (at::Tensor& input : numbers.inputs) {
      input = at::arange(from, from + input.numel(), at::kLong).reshape(input.sizes()).to(input.scalar_type());
      from += input.numel();
    }
    return sources_->run(subject_.feed.inputs(numbers));
  };
  int64_t all = 0;
  for (const at::Tensor& input : batch.inputs) all += input.numel();
  std::vector<at::Tensor> none(starts_.size());
  if (2 * all >= kExact) fail("inputs of {} numbers are too large for maps", all);
  std::vector<at::Tensor> first = numbered(1), second = numbered(1 + all);
  for (size_t i = 0; i < first.size(); ++i) {
    at::Tensor origin = first[i].to(at::kLong), moved = second[i].to(at::kLong) - origin == all;
    none[i] = at::where(moved & (origin > 0) & (origin <= all), origin - 1, at::full({}, -1, at::kLong)).reshape({-1});
  }
  return none;
}

InputRelevance InputExplainer::run_part(const dataset::Batch& batch, const at::Tensor& classes, int64_t count) const {
  explain::Explained found = explainer_->run(subject_.feed.inputs(batch), classes);
  std::vector<at::Tensor> from = origins(batch);
  int64_t all = 0;
  for (const at::Tensor& input : batch.inputs) all += input.numel();
  at::Tensor sums = at::zeros({all + 1}, at::kDouble), reached = at::zeros({all + 1}, at::kBool);
  for (size_t i = 0; i < starts_.size(); ++i) {
    // An embedding gives each id several numbers, behind the axes of the ids.
    at::Tensor relevance = found.relevance[i].to(at::kCPU, at::kDouble).reshape({from[i].numel(), -1}).sum(1);
    at::Tensor place = at::where(from[i] < 0, at::full({}, all, at::kLong), from[i]);
    sums.index_add_(0, place, relevance);
    reached.index_fill_(0, place, true);
  }
  InputRelevance result;
  result.absorbed = found.start.to(at::kCPU, at::kDouble).narrow(0, 0, count).clone();
  int64_t at = 0;
  for (const at::Tensor& input : batch.inputs) {
    const bool any = reached.narrow(0, at, input.numel()).any().item<bool>();
    result.features.push_back(any ? sums.narrow(0, at, input.numel()).reshape(input.sizes()).narrow(0, 0, count).clone()
                                  : at::Tensor());
    if (any) result.absorbed -= result.features.back().reshape({count, -1}).sum(1);
    at += input.numel();
  }
  result.logits = found.logits.cpu().narrow(0, 0, count);
  result.classes = found.classes.cpu().narrow(0, 0, count);
  result.start = found.start.cpu().narrow(0, 0, count);
  return result;
}

InputRelevance InputExplainer::run(const dataset::Batch& batch, const at::Tensor& classes) const {
  at::NoGradGuard no_grad;
  int64_t size = together_, numbers = 0;
  for (const at::Tensor& input : batch.inputs) numbers += input.numel();
  if (subject_.batching.kind == executor::Batching::kAny)  // elements must be told apart, see origins
    size = std::clamp<int64_t>((kExact / 2 - 1) * batch.count() / std::max<int64_t>(1, numbers), 1, size);
  at::Tensor asked = classes.defined() ? classes : at::full({batch.count()}, explain::kLargest, at::kLong);
  std::vector<InputRelevance> parts;
  for (int64_t first = 0; first < batch.count(); first += size) {
    const int64_t own = std::min(size, batch.count() - first);
    at::Tensor left_out = at::full({size - own}, explain::kLeftOut, at::kLong);
    parts.push_back(model::guarded(
        [&] { return subject_.model_name; },
        [&] {
          return run_part(rows_of(batch, first, own, size), at::cat({asked.narrow(0, first, own), left_out}), own);
        }));
  }
  check(!parts.empty(), "a batch without inputs cannot be explained");
  InputRelevance whole;
  auto joined = [&](auto part) {
    std::vector<at::Tensor> list;
    for (const InputRelevance& one : parts) list.push_back(part(one));
    return list[0].defined() ? at::cat(list, 0) : list[0];
  };
  for (size_t f = 0; f < batch.inputs.size(); ++f)
    whole.features.push_back(joined([&](const InputRelevance& one) { return one.features[f]; }));
  whole.logits = joined([](const InputRelevance& one) { return one.logits; });
  whole.classes = joined([](const InputRelevance& one) { return one.classes; });
  whole.start = joined([](const InputRelevance& one) { return one.start; });
  whole.absorbed = joined([](const InputRelevance& one) { return one.absorbed; });
  return whole;
}

}  // namespace netmend::observers
