#include "repair/repair_run.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/text.h"
#include "edits/edit_file.h"
#include "edits/operations.h"
#include "localise/measures.h"
#include "observers/figures.h"
#include "observers/sample_table.h"
#include "onnx/writer.h"
#include "repair/mend.h"
#include "repair/sbfl_mutation.h"
#include "session/repair_record.h"
#include "session/session.h"
#include "session/split.h"
#include "session/target.h"

namespace netmend::repair {
namespace {

using Json = nlohmann::ordered_json;
using observers::SampleRow;

HoldoutFigures figures_of(const Evaluation& evaluation) {
  HoldoutFigures out;
  out.inputs = int64_t(evaluation.rows.size());
  out.accuracy = evaluation.result.accuracy, out.loss = evaluation.result.loss;
  if (!evaluation.result.metrics.empty())
    out.metric = evaluation.result.metrics[0].name, out.value = evaluation.result.metrics[0].estimate;
  return out;
}

/// A number for class and outcome, so that every split of the data gets its share of both.
std::vector<int64_t> strata_of(const observers::PredictionSettings& task, const std::vector<SampleRow>& rows) {
  std::vector<int64_t> strata;
  for (const SampleRow& row : rows) strata.push_back((task.by_class() ? int64_t(row.label) : 0) * 3 + row.right);
  return strata;
}

std::vector<SampleRow> predictions_of(session::Session& session, session::Split& test) {
  observers::Predictions predictions(session.task(), true);
  stream::Pass pass(test.subject);
  auto handle = pass.watch(predictions);
  session.run(pass, test, "predictions of the model as it is");
  if (pass.interrupted()) throw Interrupted{};
  return std::move(pass.state(handle).rows);
}

}  // namespace

void check_request(const RepairRequest& request) {
  if (request.method != "auto") find_method(request.method);
  if (request.method == "sbfl-mutation") {
    localise::find_measure(request.sbfl.measure);
    edits::find_operation(request.sbfl.mutation);
    parse_when(request.sbfl.stop);
    if (!(request.sbfl.loss_offset >= 0) || !(request.sbfl.accuracy_offset >= 0))
      throw InputError("--loss-offset and --accuracy-offset must not be below 0", "Give 0 or more.");
  }
  if (!request.units.empty() && request.method != "auto" && request.method != "surgical")
    throw InputError(fmt::format("--unit cannot be combined with --method {}", request.method),
                     "--method surgical changes the units that are named; the other methods choose for themselves.");
}

struct RepairRun::Impl {
  session::Session& session;
  RepairRequest request;
  Problem problem;
  RepairSplits splits;
  Outcome outcome;
  RepairResult result;

  Impl(session::Session& s, RepairRequest asked)
      : session(s), request(std::move(asked)), problem{s.test().subject, s.task(), s.layers()} {
    check_request(request);
    session::Split& test = session.test();
    const observers::PredictionSettings& task = session.task();
    if (task.task == observers::Task::kNone)
      throw InputError(
          fmt::format("{} has no labels, so it is unknown which predictions are wrong", test.data->info().spec),
          "Give data with labels.");
    for (const std::string& name : request.units) problem.units.push_back(session.unit(name));
    session.sample(test, 1, 0.25);
    session::NamedTarget target = session::parse_target(request.on, task, *test.subject.data);
    problem.rows = predictions_of(session, test);
    problem.target = target.target, problem.targeted = !request.on.empty();
    problem.seed = session.request().seed, problem.jobs = session.request().jobs;
    problem.quiet = session.request().quiet;
    problem.sbfl = request.sbfl;
    std::vector<uint64_t> hashes;
    for (int64_t i = 0; i < test.used(); ++i) hashes.push_back(session::content_hash(*test.subject.data, i));
    problem.parts = split(strata_of(task, problem.rows), {}, problem.seed, hashes);
    splits.data = test.data->info().spec;
    splits.target = target.text.empty() ? "" : target.words;
    splits.search = int64_t(problem.parts.search.size()), splits.selection = int64_t(problem.parts.selection.size());
    splits.holdout = int64_t(problem.parts.holdout.size());
    splits.unused = int64_t(problem.rows.size()) - splits.search - splits.selection - splits.holdout;
    splits.outcomes = task.has_right_and_wrong();
    if (splits.outcomes) count_outcomes(target);
    if (splits.search == 0 || splits.selection == 0 || splits.holdout == 0)
      throw InputError(
          fmt::format("too few inputs ({}) for a search, a selection and a hold-out set", problem.rows.size()),
          "Give more data.");
  }

  void count_outcomes(const session::NamedTarget& target) {
    std::vector<int64_t> all(problem.rows.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = int64_t(i);
    splits.failing = int64_t(problem.on(observers::Side::kFailing, all).size());
    splits.passing = int64_t(problem.on(observers::Side::kPassing, all).size());
    if (splits.failing == 0)
      throw InputError(target.text.empty() ? "every prediction is correct: there is nothing to repair"
                                           : fmt::format("--on {}: no wrong prediction matches", target.text),
                       target.text.empty() ? "Give harder data; netmend stress can make some."
                                           : "netmend eval shows which classes are confused.");
    if (splits.passing == 0) session.note("warning: no prediction is correct, so regressions cannot be measured");
    const observers::PredictionSettings& task = problem.settings;
    if (!task.by_class()) return;
    std::vector<int64_t> have(task.classes.size());
    for (const SampleRow& row : problem.rows) ++have[size_t(row.label)];
    std::vector<std::string> absent;
    for (size_t c = 0; c < have.size(); ++c)
      if (have[c] == 0) absent.push_back(task.classes[c]);
    if (!absent.empty())
      session.note(fmt::format("warning: no input is of class {}, so the effect of a repair there cannot be measured",
                               join(absent, ", ")));
  }

  /// What the methods of `auto` may take before they end of their own accord: epochs over the search split.
  double most_work() const {
    constexpr double kGradient = 3, kFits = 4, kEpochs = 18, kRetrained = 50;
    const auto search = double(problem.parts.search.size()), selection = double(problem.parts.selection.size());
    return problem.subject.cost *
           (kGradient * search * kFits * kEpochs + kRetrained * (kGradient * search + selection));
  }

  /// What will take long says so before it begins. The speed is that of the pass that predicted the inputs.
  void announce(const std::function<void(const std::string&)>& progress) const {
    constexpr double kLong = 20;
    const Budget& budget = session.budget();
    if (session.traversals().empty() || !budget.limited() || budget.timed()) return;
    const session::Traversal& pass = session.traversals().back();
    if (!(pass.seconds > 0) || pass.inputs == 0) return;
    const double work = request.method == "auto" ? std::min(budget.left(), most_work()) : budget.left();
    const double seconds = work * pass.seconds / (double(pass.inputs) * problem.subject.cost);
    if (seconds <= kLong) return;
    const std::string shorter = budget.name() == "quick" ? "" : "--budget quick";
    const std::string timed = seconds > 90 ? "--budget 60s" : "";
    progress(fmt::format(
        "the search takes about {} at most, often much less (budget {}){}",
        seconds < 120 ? fmt::format("{:.0f} s", seconds) : fmt::format("{:.0f} min", seconds / 60), budget.name(),
        shorter.empty() && timed.empty()
            ? ""
            : fmt::format("; {}{}{} is shorter", shorter, shorter.empty() || timed.empty() ? "" : " or ", timed)));
  }

  const Candidate& best() const {
    check(outcome.chosen >= 0, "there is no repair to write");
    return *outcome.tried[size_t(outcome.chosen)].best;
  }

  void summarise() {
    result.verdict = verdict_name(outcome.verdict), result.reason = outcome.reason;
    result.repaired = outcome.verdict == Verdict::kRepaired, result.chosen = outcome.chosen;
    for (const Tried& one : outcome.tried) {
      MethodResult row;
      row.method = one.method, row.why_not = one.best ? "" : one.why_not, row.seconds = one.seconds;
      if (one.best) {
        row.words = one.best->words, row.units = one.best->units, row.edits = int64_t(one.best->edits.size());
        row.selection_metric = one.best->selection.metric, row.weights = one.weights;
        row.after = figures_of(one.holdout), row.fixes = one.fixed, row.regressions = one.broken;
      }
      result.methods.push_back(std::move(row));
    }
    result.before = figures_of(outcome.before), result.after = figures_of(outcome.after);
    result.fixes = outcome.flips.fixed, result.regressions = outcome.flips.broken;
    result.p = outcome.p, result.change = outcome.change;
    result.cheap = outcome.cheap_does_as_well ? outcome.cheap : "";
    result.smaller = outcome.smaller, result.larger = outcome.larger;
    for (size_t c = 0; c < outcome.per_class.size(); ++c) {
      const observers::FlipCount& count = outcome.per_class[c];
      result.per_class.push_back({problem.settings.classes[c], count.samples, count.right_before, count.right_after,
                                  count.fixed, count.broken});
    }
    result.work = outcome.work, result.interrupted = outcome.interrupted;
  }
};

RepairRun::RepairRun(session::Session& session, RepairRequest request)
    : impl_(std::make_unique<Impl>(session, std::move(request))) {}
RepairRun::~RepairRun() = default;

const RepairSplits& RepairRun::splits() const { return impl_->splits; }

const RepairResult& RepairRun::search(const std::function<void(const std::string&)>& progress) {
  Impl& own = *impl_;
  own.problem.budget = own.session.budget();
  if (progress) own.announce(progress);
  own.outcome = mend(own.problem, own.request.method, progress, OnInterrupt::kJudge);
  own.session.budget().spend(own.outcome.work);
  own.session.record(own.session.test(), "search and hold-out set", own.splits.search + own.splits.holdout);
  own.summarise();
  return own.result;
}

std::vector<PlannedChange> RepairRun::plan() const {
  std::map<std::string, PlannedChange> by_place;
  for (const edits::Edit& edit : impl_->best().edits)
    for (size_t i = 0; i < edit.after.size(); ++i) {
      if (edit.after[i] == edit.before[i]) continue;
      const std::string& where = edit.unit.empty() ? edit.parameter : edit.unit;
      PlannedChange& change = by_place[where];
      change.where = where, ++change.values;
      change.largest = std::max(change.largest, std::abs(edit.after[i] - edit.before[i]));
    }
  std::vector<PlannedChange> list;
  for (auto& [where, change] : by_place) list.push_back(std::move(change));
  return list;
}

void RepairRun::write_plan(const std::string& path) const {
  const std::string& model = impl_->session.model_name();
  edits::write_edits(edits::describe(impl_->problem.subject.graph, impl_->best().edits, model, file_checksum(model)),
                     path);
}

void RepairRun::write_model(const std::string& path) const {
  const Problem& problem = impl_->problem;
  const Candidate& best = impl_->best();
  model::Graph fixed = problem.subject.graph;
  edits::apply(fixed, best.edits);
  session::RepairRecord record;
  record.parent = file_checksum(impl_->session.model_name()), record.method = best.method;
  record.data = problem.subject.data->info().spec;
  record.edits = int64_t(best.edits.size()), record.units = best.units, record.seed = problem.seed;
  for (const auto* part : {&problem.parts.search, &problem.parts.selection})
    for (int64_t sample : *part) record.inputs.push_back(session::content_hash(*problem.subject.data, sample));
  record.write_to(fixed);
  onnx::write_model(fixed, path);
}

void RepairRun::write_flips(const std::string& path) const {
  write_csv(path, "id,change,label,before,after", [&](CsvWriter& out) {
    for (const Flipped& one : impl_->outcome.list)
      out.row(impl_->problem.subject.data->id(one.sample), one.fixed ? "fixed" : "broken", Digits{one.label},
              Digits{one.before}, Digits{one.after});
  });
}

void RepairRun::write_holdout(const std::string& folder) const {
  const Impl& own = *impl_;
  const HoldoutFigures& before = own.result.before;
  make_folders(folder);
  Json eval = {{"model", own.session.model_name()}, {"fingerprint", ""}, {"metric", before.metric}};
  if (!before.metric.empty()) eval["metrics"][before.metric] = observers::estimate_json(before.value);
  write_file(folder + "/eval.json", json_text(eval, 2));
  write_file(folder + "/run.json", json_text(Json({{"command", "repair"}}), 2));
  write_csv(folder + "/samples.csv", "id,correct,loss", [&](CsvWriter& out) {
    for (const SampleRow& row : own.outcome.before.rows)
      out.row(own.problem.subject.data->id(row.sample),
              row.right == SampleRow::kRight   ? "1"
              : row.right == SampleRow::kWrong ? "0"
                                               : "",
              Digits{row.loss, 9});
  });
}

namespace {

Json figures_json(const HoldoutFigures& figures) {
  Json json = {{"inputs", figures.inputs},
               {"accuracy", observers::number_json(figures.accuracy)},
               {"loss", observers::number_json(figures.loss)}};
  if (!figures.metric.empty()) {
    json["metric"] = figures.metric;
    json.update(observers::estimate_json(figures.value));
  }
  return json;
}

Json method_json(const MethodResult& one) {
  Json json = {{"method", one.method}, {"seconds", one.seconds}};
  if (!one.why_not.empty()) {
    json["why_not"] = one.why_not;
    return json;
  }
  json["what"] = one.words, json["units"] = one.units, json["edits"] = one.edits, json["weights"] = one.weights;
  json["selection"] = observers::number_json(one.selection_metric);
  json["after"] = figures_json(one.after);
  json["fixed"] = one.fixes, json["broken"] = one.regressions;
  return json;
}

}  // namespace

Json to_json(const RepairSplits& splits, const RepairResult& result) {
  const MethodResult* chosen = result.chosen < 0 ? nullptr : &result.methods[size_t(result.chosen)];
  Json json = {{"verdict", result.verdict},
               {"reason", result.reason},
               {"method", chosen ? Json(chosen->method) : Json(nullptr)},
               {"inputs",
                {{"search", splits.search},
                 {"selection", splits.selection},
                 {"holdout", splits.holdout},
                 {"unused", splits.unused}}},
               {"before", figures_json(result.before)},
               {"after", figures_json(result.after)},
               {"fixed", result.fixes},
               {"broken", result.regressions},
               {"net", result.fixes - result.regressions},
               {"p", result.p},
               {"change", observers::estimate_json(result.change)},
               {"cheap_does_as_well", result.cheap.empty() ? Json(nullptr) : Json(result.cheap)},
               {"smaller", result.smaller.empty() ? Json(nullptr) : Json(result.smaller)},
               {"larger", result.larger.empty() ? Json(nullptr) : Json(result.larger)},
               {"per_class", Json::array()},
               {"tried", Json::array()}};
  for (const ClassFlips& one : result.per_class)
    json["per_class"].push_back({{"class", one.name},
                                 {"inputs", one.inputs},
                                 {"right_before", one.right_before},
                                 {"right_after", one.right_after},
                                 {"fixed", one.fixes},
                                 {"broken", one.regressions}});
  for (const MethodResult& one : result.methods) json["tried"].push_back(method_json(one));
  if (chosen) json["units"] = chosen->units;
  json["data"] = splits.data;
  json["work"] = result.work;
  json["interrupted"] = result.interrupted;
  return json;
}

}  // namespace netmend::repair
