#include "checks/observed.h"

#include <ATen/ATen.h>

#include "adequacy/learn.h"
#include "base/error.h"
#include "base/memory_error.h"
#include "executor/layers.h"
#include "executor/runtime.h"
#include "localise/candidates.h"

namespace netmend::checks {
namespace {

using session::Split;

/// All hidden layers side by side; null when there are none.
observers::SpacePtr hidden_space(const stream::Subject& subject, const observers::PredictionSettings& settings,
                                 const std::vector<model::Layer>& layers) {
  try {
    std::vector<model::Layer> hidden = localise::candidates(layers, subject.graph, settings.head, settings.outputs);
    return hidden.empty() ? nullptr : observers::make_unit_space(subject, std::move(hidden), {});
  } catch (const MemoryError&) {
    throw;
  } catch (const InputError&) {  // weights that are NaN pass nothing on; the checks of weights name them
    return nullptr;
  }
}

adequacy::AssessOptions adequacy_options(const Observed& seen) {
  adequacy::AssessOptions how;
  how.criteria = adequacy::parse_criteria(seen.train ? "NC,KMNC:100,NBC,SNAC,TKNC" : "NC,TKNC");
  how.pass = seen.session.pass_options();
  how.most_bytes = double(executor::memory_budget()) / 4;
  how.no_training = "training data: --train SPEC";
  return how;
}

/// One pass over a split.
ObservedSplit observe_split(Observed& seen, Split& split, unsigned watch) {
  ObservedSplit out;
  out.name = split.name, out.data = split.subject.data, out.whole = split.inputs();
  const bool run = (watch & kWatchPredictions) != 0, classes = seen.settings.by_class();
  const bool against = run && split.name == "test" && seen.reference;
  std::optional<stream::Subject> older;
  std::vector<const stream::Subject*> subjects{&split.subject};
  if (against && seen.reference->split) {
    older.emplace(seen.reference->split->subject);
    older->data = split.subject.data;
    subjects.push_back(&*older);
  }
  stream::Pass pass(subjects);
  observers::Predictions older_predictions(against ? seen.reference->settings : seen.settings, true);
  std::optional<stream::Watched<observers::Predictions>> older_watched;
  if (older) older_watched = pass.watch(older_predictions, 1);
  observers::Predictions predictions(seen.settings, true);
  observers::TopPredictions top(seen.settings);
  std::optional<stream::Watched<observers::Predictions>> predicted;
  std::optional<stream::Watched<observers::TopPredictions>> topped;
  std::optional<stream::Watched<observers::Criteria>> profiled, covered;
  std::optional<stream::Watched<census::Census>> counted;
  if (run) predicted = pass.watch(predictions);
  if (run && classes) topped = pass.watch(top);
  if (run && seen.space && (watch & kWatchUnits)) {
    const size_t last = seen.space->layers().size() - 1;
    const int64_t size = split.used();
    const int64_t stride = adequacy::stride_for(*seen.space, last, size, double(executor::memory_budget()) / 8);
    out.units = std::make_unique<observers::Profile>(seen.settings, seen.space, last, size, stride);
    profiled = pass.watch(out.units->observer());
  }
  const adequacy::AssessOptions how = adequacy_options(seen);
  std::optional<adequacy::Assessor> assessor;
  if (run && seen.space && (watch & kWatchCriteria) && split.name == "test") {
    observers::Profile* learned = seen.train ? seen.train->units.get() : nullptr;
    assessor.emplace(split.subject, seen.settings, seen.space, learned, how);
    covered = pass.watch(assessor->observer());
  }
  if (watch & kWatchCensus) {
    out.census_observer = std::make_unique<census::Census>(*split.subject.data);
    counted = pass.watch(*out.census_observer);
  }
  seen.session.run(pass, split, "all checks");
  seen.interrupted |= pass.interrupted();
  if (predicted) {
    out.result = observers::finish(predictions, pass.state(*predicted));
    out.rows = std::move(pass.state(*predicted).rows);
  }
  if (against && !pass.interrupted())
    seen.comparison.emplace(compare::pair_rows(seen.session, *seen.reference, false,
                                               older_watched ? &pass.state(*older_watched).rows : nullptr, out.rows));
  if (seen.comparison && older_watched)
    seen.comparison->before = observers::finish(older_predictions, pass.state(*older_watched));
  if (topped) out.top = std::move(pass.state(*topped).rows);
  if (profiled) out.units->learned(pass.release(*profiled));
  if (covered && pass.samples() > 0)
    seen.adequacy.emplace(assessor->finish(pass.state(*covered), pass.seconds(), pass.interrupted()));
  if (counted) out.census = pass.release(*counted);
  return out;
}

}  // namespace

const stream::Subject& Observed::subject() const { return session.test().subject; }

findings::Words Observed::words(findings::Words more) const {
  more["case"] = session.words();
  more["model"] = session.model_name();
  if (session.has_data()) more["data"] = session.test().typed();
  if (session::Split* other = session.has_data() ? session.train() : nullptr) more["train"] = other->typed();
  return more;
}

Observed observe(session::Session& session, const preflight::Preflight* preflight, unsigned watch,
                 std::optional<compare::Reference>* reference) {
  Observed seen{.session = session, .preflight = preflight, .settings = session.task()};
  seen.layers = session.layers();
  seen.space = hidden_space(session.test().subject, seen.settings, seen.layers);
  if (reference && *reference) seen.reference = std::move(*reference);
  session.sample(session.test(), 2);
  // Training data first: the tests are compared with what it shows.
  if (Split* train = session.train()) {
    session.sample(*train, 2);
    seen.train = observe_split(seen, *train, watch);
  }
  if (!seen.interrupted) seen.test = observe_split(seen, session.test(), watch);
  return seen;
}

Observed observe_model(session::Session& session) {
  Observed seen{.session = session};
  seen.settings.head = session.head();
  seen.layers = executor::find_layers(session.graph());
  return seen;
}

}  // namespace netmend::checks
