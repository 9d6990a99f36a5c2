#include "compare/paired.h"

#include <ATen/ATen.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "onnx/reader.h"
#include "session/fingerprint.h"

namespace netmend::compare {
namespace {

using observers::Before;
using observers::Change;
using observers::SampleRow;

constexpr size_t kMostListed = 1000000;

bool is_model(const std::string& path) {
  std::error_code error;
  return !std::filesystem::is_directory(path, error) && !path.ends_with(".json");
}

bool has_own_ids(const dataset::Dataset& data) {
  for (int64_t sample : stream::spread(data.size(), 16))
    if (data.id(sample) != std::to_string(sample)) return true;
  return false;
}

void require_same_data(const Baseline& baseline, const std::string& fingerprint) {
  if (baseline.fingerprint.empty() || baseline.fingerprint == fingerprint) return;
  throw InputError(fmt::format("{} was made on different data (its fingerprint is {}; that of this data is {})",
                               baseline.source, baseline.fingerprint, fingerprint),
                   "Compare on the same data, or with --common on the inputs that both name.");
}

}  // namespace

Reference open_reference(session::Session& session, const std::string& path) {
  Reference reference;
  reference.name = path;
  if (!is_model(path)) {
    reference.baseline = read_baseline(path);
    return reference;
  }
  const session::Split& tests = session.test();
  model::Graph graph = onnx::read_model(path);
  const std::string& output = session.request().output.empty() ? session.config().output : session.request().output;
  executor::Head head = executor::find_head(graph, session::choose_output(graph, output));
  stream::Subject subject(path, std::move(graph), tests.data, {head.output, head.logits}, tests.subject.device);
  dataset::Batch batch = tests.data->read(stream::spread(tests.data->size(), 64));
  at::Tensor outputs = stream::run_few(subject, {head.output}, batch, session.request().jobs)[0];
  observers::TaskOverrides overrides = session.config().overrides;
  if (!session.request().metric.empty()) overrides.metric = session.request().metric;
  reference.settings = observers::infer_task(subject.graph, head, tests.data->info(), batch, outputs, overrides);
  const observers::PredictionSettings& newer = session.task();
  if (reference.settings.outputs != newer.outputs || reference.settings.task != newer.task)
    fail("{} has {} outputs and the task {}, {} has {} and the task {}: their predictions cannot be compared", path,
         reference.settings.outputs, observers::task_name(reference.settings.task), session.model_name(), newer.outputs,
         observers::task_name(newer.task));
  reference.split.emplace(session::Split{"test", tests.spec, tests.data, std::move(subject)});
  return reference;
}

Comparison pair_rows(session::Session& session, const Reference& reference, bool by_id,
                     const std::vector<SampleRow>* older, const std::vector<SampleRow>& newer) {
  const observers::PredictionSettings& settings = session.task();
  const dataset::Dataset& data = *session.test().subject.data;
  Comparison done{observers::Flips(settings, data)};
  std::optional<EarlierPredictions> earlier;
  if (reference.baseline) earlier.emplace(*reference.baseline, data, by_id);
  const bool ids = has_own_ids(data);
  session::Fingerprint fingerprint;
  fingerprint.add(newer);
  for (size_t i = 0; i < newer.size(); ++i) {
    done.newer.predictions.push_back(observers::before_of(settings, newer[i]));
    if (ids) done.newer.ids.push_back(id_hash(data.id(newer[i].sample)));
    const Before* kept = older ? nullptr : earlier->find(newer[i].sample);
    if (!older && !kept) {
      ++done.missing;
      continue;
    }
    const Before then = older ? observers::before_of(settings, (*older)[i]) : *kept;
    const Change change = done.flips.add(then, newer[i]);
    if (change != Change::kNone && done.list.size() < kMostListed)
      done.list.push_back({newer[i].sample, change, newer[i].label, older ? (*older)[i].predicted : NAN,
                           newer[i].predicted, newer[i].confidence, older ? (*older)[i].confidence : NAN});
  }
  if (done.missing > 0)
    for (const SampleRow& row : newer)
      if (earlier->find(row.sample)) done.compared.push_back(row.sample);
  done.newer.model = session.model_name();
  done.newer.metric = settings.metric;
  done.newer.fingerprint = fingerprint.finish(data);
  if (reference.baseline && !by_id) require_same_data(*reference.baseline, done.newer.fingerprint);
  if (done.flips.whole().samples == 0)
    throw InputError(fmt::format("{} and {} have no input in common", reference.name, data.info().spec),
                     "Inputs are matched by their names (data.id).");
  return done;
}

Comparison run_both(session::Session& session, const Reference& reference, bool by_id,
                    const std::vector<const observers::PartPredictions*>& groups,
                    const observers::PredictionSettings* task) {
  session::Split& tests = session.test();
  observers::Predictions watch_new(task ? *task : session.task(), true);
  std::optional<observers::Predictions> watch_old;
  std::optional<stream::Subject> other;
  std::vector<const stream::Subject*> subjects{&tests.subject};
  if (reference.split) {
    other.emplace(reference.split->subject);
    other->data = tests.subject.data;
    subjects.push_back(&*other);
    watch_old.emplace(reference.settings, true);
  }
  stream::Pass pass(subjects);
  auto newer = pass.watch(watch_new);
  std::optional<stream::Watched<observers::Predictions>> older;
  if (watch_old) older = pass.watch(*watch_old, 1);
  std::vector<stream::Watched<observers::PartPredictions>> parts;
  for (const observers::PartPredictions* group : groups) parts.push_back(pass.watch(*group));
  session.run(pass, tests, reference.split ? "both models" : "comparison with " + reference.name);
  Comparison done =
      pair_rows(session, reference, by_id, older ? &pass.state(*older).rows : nullptr, pass.state(newer).rows);
  done.after = observers::finish(watch_new, pass.state(newer));
  if (older) done.before = observers::finish(*watch_old, pass.state(*older));
  if (!done.after.metrics.empty()) done.newer.value = done.after.metrics[0].estimate;
  for (size_t i = 0; i < parts.size(); ++i)
    done.groups.push_back(observers::finish(groups[i]->whole(), pass.state(parts[i]).judged));
  done.rows = std::move(pass.state(newer).rows);
  done.seconds = pass.seconds();
  done.interrupted = pass.interrupted();
  return done;
}

}  // namespace netmend::compare
