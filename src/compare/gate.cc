#include "compare/gate.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/escape.h"
#include "base/pool.h"
#include "base/text.h"
#include "compare/paired.h"
#include "findings/accepted.h"
#include "findings/phrases.h"
#include "session/input_names.h"
#include "session/latency.h"
#include "session/target.h"

namespace netmend::compare {
namespace {

using observers::FlipCount;
using observers::PartPredictions;
using observers::PredictionResult;
using observers::PredictionSettings;
using observers::SampleRow;
using stats::Estimate;

/// Errors about what a criterion names, said of its line instead of a flag.
template <typename Do>
auto at_line(const Criterion& criterion, const Do& act) {
  try {
    return act();
  } catch (const InputError& error) {
    std::string what = error.what();
    if (what.starts_with("--on ")) what = what.substr(what.find(": ") + 2);
    throw InputError(criterion.line + ": " + what, error.hint());
  }
}

bool is_about_group(const Criterion& criterion) {
  return criterion.kind == Criterion::kMetric && !criterion.of.empty();
}
bool is_about_class(const Criterion& criterion) {
  return criterion.kind == Criterion::kRecall || criterion.kind == Criterion::kPrecision;
}
bool is_drop(const Criterion& criterion) {
  return criterion.kind == Criterion::kOverallDrop || criterion.kind == Criterion::kClassDrop;
}

observers::Target target_of(const Criterion& criterion, session::Session& session) {
  const std::string text = (is_about_group(criterion) ? "slice=" : "class=") + criterion.of;
  return at_line(criterion,
                 [&] { return session::parse_target(text, session.task(), *session.test().subject.data).target; });
}

/// The area under the curve is taken of several classes only where it is the metric; the order of metrics does not
/// matter to a gate.
PredictionSettings task_for(session::Session& session, const std::vector<Criterion>& criteria) {
  PredictionSettings task = session.task();
  for (const Criterion& criterion : criteria)
    if (criterion.metric == "auc" && task.task == observers::Task::kClasses) task.metric = "auc";
  return task;
}

/// All that criteria look at.
struct Observed {
  PredictionResult whole;
  std::vector<PredictionResult> groups;  ///< one per criterion about a group, in their order
  std::vector<SampleRow> accepted;       ///< wrong, and accepted as known
  std::optional<Reference> reference;
  std::optional<Comparison> comparison;
  double seconds = 0;
};

Observed observe(session::Session& session, const std::vector<Criterion>& criteria, const GateRequest& request) {
  session::Split& tests = session.test();
  Observed seen;
  if (request.against.empty())
    session.sample(tests);
  else
    seen.reference.emplace(open_reference(session, request.against));
  const PredictionSettings task = task_for(session, criteria);
  std::vector<std::unique_ptr<PartPredictions>> parts;
  std::vector<const PartPredictions*> watching;
  for (const Criterion& criterion : criteria)
    if (is_about_group(criterion)) {
      parts.push_back(std::make_unique<PartPredictions>(task, target_of(criterion, session).may_fail));
      watching.push_back(parts.back().get());
    }
  const std::unordered_set<std::string> known = session::accepted_inputs(session.config());
  auto keep_accepted = [&](const std::vector<SampleRow>& rows) {
    for (const SampleRow& row : rows)
      if (!known.empty() && row.right == SampleRow::kWrong && known.count(tests.subject.data->id(row.sample)))
        seen.accepted.push_back(row);
  };
  bool interrupted = false;
  if (seen.reference) {
    seen.comparison.emplace(run_both(session, *seen.reference, request.by_id, watching, &task));
    seen.whole = seen.comparison->after;
    seen.groups = seen.comparison->groups;
    keep_accepted(seen.comparison->rows);
    seen.seconds = seen.comparison->seconds, interrupted = seen.comparison->interrupted;
  } else {
    observers::Predictions predictions(task, true);
    stream::Pass pass(tests.subject);
    auto judged = pass.watch(predictions);
    std::vector<stream::Watched<PartPredictions>> handles;
    for (const PartPredictions* part : watching) handles.push_back(pass.watch(*part));
    pass.each_chunk<observers::Predictions>(judged, [&](observers::PredictionState& chunk) {
      keep_accepted(chunk.rows);
      chunk.rows.clear();
    });
    session.run(pass, tests, "gate");
    seen.whole = observers::finish(predictions, pass.state(judged));
    for (size_t i = 0; i < handles.size(); ++i)
      seen.groups.push_back(observers::finish(watching[i]->whole(), pass.state(handles[i]).judged));
    seen.seconds = pass.seconds(), interrupted = pass.interrupted();
  }
  if (interrupted) throw Interrupted();
  return seen;
}

Estimate metric_of(const Criterion& criterion, const PredictionResult& result) {
  std::vector<std::string> there;
  for (const observers::Metric& metric : result.metrics) {
    if (metric.name == criterion.metric) {
      if (std::isfinite(metric.estimate.value)) return metric.estimate;
      throw InputError(criterion.line + ": it is not defined on this data",
                       "The limit cannot be judged; leave it out or give other data.");
    }
    there.push_back(metric.name);
  }
  throw InputError(
      fmt::format("{}: {} cannot be computed from this model's predictions", criterion.line, criterion.metric),
      "Choose from " + join(there, ", ") + ".");
}

/// The difference of figures that were estimated apart.
Estimate difference(const Estimate& a, const Estimate& b) {
  const double value = a.value - b.value;
  return {value, value - std::hypot(a.value - a.low, b.high - b.value),
          value + std::hypot(a.high - a.value, b.value - b.low)};
}

/// A rise as a drop, in points.
Estimate drop_in_points(const Estimate& rise) { return {-100 * rise.value, -100 * rise.high, -100 * rise.low}; }

const Estimate& find_metric(const PredictionResult& result, const std::string& name) {
  for (const observers::Metric& metric : result.metrics)
    if (metric.name == name) return metric.estimate;
  throw std::logic_error("the metric that counts is always taken");
}

/// `metric` is the one that the user's goal names.
Ruling judge_overall_drop(Criterion criterion, const std::string& metric, const Observed& seen, bool strict) {
  criterion.metric = metric;
  const Reference& reference = *seen.reference;
  const Comparison& comparison = *seen.comparison;
  const FlipCount& whole = comparison.flips.whole();
  if (metric == "accuracy") return decide(criterion, drop_in_points(whole.change()), whole.samples, strict);
  if (metric == "mae") return decide(criterion, comparison.flips.error_change(), whole.samples, strict, "of mae");
  if (reference.baseline && reference.baseline->metric != metric)
    fail("{}: {} was judged by {}, but this model is judged by {}", criterion.line, reference.name,
         reference.baseline->metric, metric);
  const Estimate before = reference.baseline ? reference.baseline->value : find_metric(comparison.before, metric);
  const Estimate rise = difference(find_metric(comparison.after, metric), before);
  return decide(criterion, observers::is_error(metric) ? rise : drop_in_points(rise), whole.samples, strict,
                "of " + metric);
}

Ruling judge_class_drop(const Criterion& criterion, const PredictionSettings& task, const Observed& seen, bool strict) {
  const std::vector<FlipCount>& classes = seen.comparison->flips.per_class();
  if (classes.empty())
    throw InputError(criterion.line + ": the predictions are not one class per input", "Leave class_drop out.");
  // With --strict the class whose interval reaches farthest decides.
  auto drop = [&](size_t c) -> double {
    if (classes[c].samples == 0) return -INFINITY;
    const Estimate points = drop_in_points(classes[c].change());
    return strict ? points.high : points.value;
  };
  size_t worst = 0;
  for (size_t c = 1; c < classes.size(); ++c)
    if (drop(c) > drop(worst)) worst = c;
  return decide(criterion, drop_in_points(classes[worst].change()), classes[worst].samples, strict,
                fmt::format("worst class {}: {}, {}", task.classes[worst],
                            findings::counted(classes[worst].fixed, "fix", "fixes"),
                            findings::counted(classes[worst].broken, "regression")));
}

Ruling judge_class(const Criterion& criterion, session::Session& session, const PredictionResult& result, bool strict) {
  const auto label = size_t(target_of(criterion, session).label);
  const observers::ClassResult& found = result.per_class[label];
  const bool recall = criterion.kind == Criterion::kRecall;
  const int64_t inputs = recall ? found.samples : found.predicted;
  if (inputs == 0)
    throw InputError(fmt::format("{}: no input {} {}", criterion.line, recall ? "is of class" : "is predicted as",
                                 printable(found.name)),
                     "The limit cannot be judged on this data; leave it out or give other data.");
  return decide(criterion, stats::rate(found.correct, inputs), inputs, strict);
}

/// Judged apart, on all of the data: a sample might not hold them.
Ruling judge_must_pass(const Criterion& criterion, session::Session& session) {
  const auto names = at_line(criterion, [&] { return session::read_names(criterion.limit); });
  const session::Split& tests = session.test();
  std::vector<int64_t> members;
  std::unordered_set<std::string> missing = names;
  for (int64_t sample = 0; sample < tests.inputs(); ++sample) {
    const std::string id = tests.data->id(sample);
    if (names.count(id)) members.push_back(sample), missing.erase(id);
  }
  if (!missing.empty())
    throw InputError(fmt::format("{}: {} names inputs that are not in {} ({} of {}), for example `{}`", criterion.line,
                                 criterion.limit, tests.data->info().spec, missing.size(), names.size(),
                                 printable(*std::min_element(missing.begin(), missing.end()))),
                     "The table samples.csv of netmend eval has the names in its column id.");
  session::Split some = tests;
  some.subject.data = dataset::subset(tests.data, members);
  const observers::Predictions predictions(session.task(), true);
  stream::PassOptions quiet = session.pass_options();
  quiet.quiet = true;
  stream::Pass pass(some.subject);
  auto judged = pass.watch(predictions);
  pass.run(quiet);
  if (pass.interrupted()) throw Interrupted();
  session.record(some, criterion.name, pass.samples(), pass.seconds());
  const std::unordered_set<std::string> known = session::accepted_inputs(session.config());
  Ruling ruling{criterion, {}, int64_t(members.size())};
  std::vector<std::string> wrong;
  for (const SampleRow& row : pass.state(judged).rows) {
    if (row.right == SampleRow::kRight) continue;
    const std::string id = some.subject.data->id(row.sample);
    if (row.right != SampleRow::kWrong)
      throw InputError(fmt::format("{}: {} in {} cannot be judged: it has no label, or predictions of numbers have no "
                                   "goal.tolerance",
                                   criterion.line, printable(id), criterion.limit),
                       "Give it a label in the data, take it out of the list, or set goal.tolerance.");
    known.count(id) ? void(++ruling.accepted) : wrong.push_back(id);
  }
  ruling.figure.value = ruling.figure.low = ruling.figure.high = double(wrong.size());
  ruling.pass = wrong.empty();
  if (!wrong.empty()) {
    const size_t count = wrong.size();
    wrong.resize(std::min<size_t>(count, 5));
    ruling.about = "wrong: " + join(wrong, ", ") + (count > 5 ? " …" : "");
  }
  return ruling;
}

/// Timed on this machine and kept in run.json; the one criterion that another machine may judge otherwise.
Ruling judge_latency(const Criterion& criterion, session::Session& session, bool strict) {
  const session::Latency latency = session::measure_latency(session);
  session.folder("gate").add("latency", latency.figures);
  Ruling ruling =
      decide(criterion, latency.median, latency.inputs, strict, "median, one input at a time, on this machine");
  ruling.more = 0;  // more inputs do not make a machine quieter
  return ruling;
}

/// Of the wrong inputs that a criterion counts, those that are accepted as known.
int64_t count_accepted(const Criterion& criterion, session::Session& session, const std::vector<SampleRow>& accepted) {
  if (accepted.empty()) return 0;
  const bool part = is_about_group(criterion) || is_about_class(criterion);
  const observers::Target target = part ? target_of(criterion, session) : observers::Target{};
  return std::count_if(accepted.begin(), accepted.end(), [&](const SampleRow& row) {
    if (criterion.kind == Criterion::kPrecision) return row.predicted == double(target.label);
    return (target.label < 0 || row.label == double(target.label)) && (!target.may_fail || target.may_fail(row.sample));
  });
}

Shell next_command(session::Session& session, const GateReport& report, const GateRequest& request) {
  for (const Ruling& ruling : report.rulings) {
    if (ruling.pass) continue;
    const Criterion& criterion = ruling.criterion;
    if (is_drop(criterion)) return session.command("compare", {request.against});
    if (criterion.kind == Criterion::kRecall) return session.command("failures", {"--on", "class=" + criterion.of});
    if (is_about_group(criterion)) return session.command("failures", {"--on", "slice=" + criterion.of});
    if (criterion.kind == Criterion::kMustPass)
      return session.command("failures", {"--on", "inputs=" + criterion.limit});
    if (criterion.kind == Criterion::kLatency) return session.command("check", {"--latency"});
    return session.command("failures");
  }
  return {};
}

GateReport report_of(session::Session& session, const GateRequest& request, int64_t inputs) {
  GateReport report;
  report.data = session.test().data->info().spec;
  report.strict = request.strict;
  report.inputs = inputs;
  report.title = fmt::format("{} on {}, {}{}", session.model_name(), report.data, findings::counted(inputs, "input"),
                             request.against.empty() ? "" : ", against " + request.against);
  return report;
}

}  // namespace

int64_t GateReport::failed() const {
  return std::count_if(rulings.begin(), rulings.end(), [](const Ruling& ruling) { return !ruling.pass; });
}
bool GateReport::pass() const { return !blocker && failed() == 0; }

std::vector<Criterion> gate_criteria(session::Session& session, const GateRequest& request) {
  std::vector<Criterion> criteria = read_gate(session.config());
  if (session.task().task == observers::Task::kNone)
    throw InputError(fmt::format("{} has no labels: nothing can be judged", session.test().data->info().spec),
                     "Give data with labels.");
  for (const Criterion& criterion : criteria) {
    if (request.against.empty() && is_drop(criterion))
      throw InputError(criterion.line + " compares with an earlier model, and none is given",
                       "Add --against REFERENCE: a model, a run folder of netmend eval, or a baseline.json.");
    if (is_about_class(criterion)) target_of(criterion, session);
  }
  return criteria;
}

bool stops_gate(session::Session& session, const preflight::Blocker& blocker) {
  const findings::SplitFindings split = findings::split_accepted({preflight::finding_of(blocker, session, "gate")},
                                                                 session.config().accepted, findings::today());
  if (split.accepted.empty()) return true;
  session.note(fmt::format("{} is accepted as known in {}", blocker.id(), session.config().decides));
  return false;
}

GateReport blocked_gate(session::Session& session, const GateRequest& request, const preflight::Blocker& blocker) {
  GateReport report = report_of(session, request, 0);
  report.title = fmt::format("{} on {}", session.model_name(), report.data);
  report.blocker = blocker;
  report.next = preflight::finding_of(blocker, session, "gate").next.at(0);
  return report;
}

GateReport run_gate(session::Session& session, const std::vector<Criterion>& criteria, const GateRequest& request) {
  const Observed seen = observe(session, criteria, request);
  GateReport report = report_of(session, request, seen.whole.samples);
  report.accepted = int64_t(seen.accepted.size());
  report.seconds = seen.seconds;
  size_t group = 0;
  for (const Criterion& criterion : criteria) {
    const PredictionResult& result = is_about_group(criterion) ? seen.groups[group++] : seen.whole;
    Ruling ruling;
    switch (criterion.kind) {
      case Criterion::kMetric:
        ruling = decide(criterion, metric_of(criterion, result), result.samples, request.strict);
        break;
      case Criterion::kRecall:
      case Criterion::kPrecision:
        ruling = judge_class(criterion, session, result, request.strict);
        break;
      case Criterion::kOverallDrop:
        ruling = judge_overall_drop(criterion, session.task().metric, seen, request.strict);
        break;
      case Criterion::kClassDrop:
        ruling = judge_class_drop(criterion, session.task(), seen, request.strict);
        break;
      case Criterion::kMustPass:
        ruling = judge_must_pass(criterion, session);
        break;
      case Criterion::kLatency:
        ruling = judge_latency(criterion, session, request.strict);
        break;
    }
    const bool counts_inputs = criterion.kind != Criterion::kMustPass && criterion.kind != Criterion::kLatency;
    if (counts_inputs) ruling.accepted = count_accepted(criterion, session, seen.accepted);
    report.rulings.push_back(std::move(ruling));
  }
  report.next = next_command(session, report, request);
  return report;
}

}  // namespace netmend::compare
