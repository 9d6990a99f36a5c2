#include "checks/checkup.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/pool.h"
#include "base/text.h"
#include "checks/rows.h"
#include "checks/symptoms.h"
#include "executor/executor.h"
#include "findings/merge.h"

namespace netmend::checks {
namespace {

using findings::Finding;
using findings::Level;

/// Rows that the user chose, in the order of the table.
std::vector<const Check*> chosen(const CheckupRequest& request, const session::Config& config) {
  auto names = [](const std::vector<std::string>& typed, const std::vector<std::string>& written) {
    std::vector<std::string> all = typed.empty() ? written : typed;
    for (const std::string& name : all) find_check(name);
    return all;
  };
  const std::vector<std::string> only = names(request.only, config.checks_only),
                                 skip = names(request.skip, config.checks_skip);
  auto among = [](const std::vector<std::string>& list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  std::vector<const Check*> rows;
  for (const Check& row : checks())
    if ((only.empty() || among(only, row.name) || row.name == "preflight") && !among(skip, row.name))
      rows.push_back(&row);
  return rows;
}

class Examination {
 public:
  Examination(session::Session& session, const CheckupRequest& request)
      : session_(session), request_(request), rows_(chosen(request, session.config())) {}

  Checkup run() {
    if (session_.has_data())
      with_data();
    else
      model_alone();
    run_rows();
    out_.interrupted |= was_interrupted();
    finish();
    return std::move(out_);
  }

 private:
  template <typename Work>
  void step(const std::string& what, const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    try {
      work();
    } catch (const Interrupted&) {
      out_.interrupted = true;
    }
    out_.times.emplace_back(what, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }

  void model_alone() {
    executor::Executor runs(session_.graph());  // names all operators that it could not run
    out_.seen = std::make_unique<Observed>(observe_model(session_));
    out_.results.skip("everything that needs data", std::string(findings::need_table()[0].enable));
  }

  void with_data() {
    std::optional<compare::Reference> reference;
    if (!request_.reference.empty()) reference = compare::open_reference(session_, request_.reference);
    step("preflight", [&] { out_.preflight = preflight::examine(session_); });
    if (request_.on_preflight && out_.preflight) request_.on_preflight(*out_.preflight);
    out_.blocked = out_.preflight && out_.preflight->blocker && !request_.anyway;
    have_ = facts(reference.has_value());
    unsigned watch = 0;
    for (const Check* row : rows_)
      if (!(row->needs & ~(have_ | findings::kHidden))) watch |= row->watches;
    // Failures of groups of inputs are what the checks of data weigh their findings by.
    if (!out_.blocked && watch) watch |= kWatchPredictions;
    // The report shows what the tests cover, also where there is no training data to compare them with.
    if ((watch & kWatchUnits) && rows_.size() == checks().size()) watch |= kWatchCriteria;
    if (out_.blocked) watch &= kWatchCensus;
    step("passes over the data", [&] {
      out_.seen =
          std::make_unique<Observed>(observe(session_, &*out_.preflight, watch, out_.blocked ? nullptr : &reference));
    });
    out_.interrupted |= !out_.seen || out_.seen->interrupted;
    if (out_.seen && out_.seen->space) have_ |= findings::kHidden;
  }

  unsigned facts(bool reference) {
    const session::Split& test = session_.test();
    const observers::PredictionSettings& task = session_.task();
    unsigned have = findings::kData;
    auto add = [&](bool holds, unsigned bit) { have |= holds ? bit : 0; };
    add(test.data->info().labels != dataset::LabelKind::kNone, findings::kLabels);
    add(session_.train() != nullptr, findings::kTrain);
    add(!test.data->info().groups.empty(), findings::kGroups);
    add(reference, findings::kReference);
    add(task.by_class(), findings::kClasses);
    add(task.task == observers::Task::kNumber, findings::kNumbers);
    add(test.subject.batching.kind == executor::Batching::kAny, findings::kAnyBatch);
    add(!out_.blocked, findings::kPredictions);
    return have;
  }

  void run_rows() {
    for (const Check* row : rows_) {
      if (out_.interrupted || !out_.seen) return;
      if (const unsigned missing = row->needs & ~have_) {
        say_skipped(*row, missing);
        continue;
      }
      if (!row->unless.empty() && out_.results.has(row->unless)) continue;
      step(std::string(row->about), [&] { row->run(*out_.seen, out_.results); });
    }
  }

  /// What nobody can provide does not apply, and what a blocker stops is told once.
  void say_skipped(const Check& row, unsigned missing) {
    if (!(have_ & findings::kData)) return;
    if (missing & findings::kPredictions) {
      if (!std::exchange(blocker_told_, true))
        out_.results.skip("everything about the model's predictions", "the blocker resolved, or --anyway");
      return;
    }
    for (const findings::Need& need : findings::need_table())
      if ((missing & need.bit) && need.enable.empty()) return;
    for (const findings::Need& need : findings::need_table())
      if (missing & need.bit) return out_.results.skip(std::string(row.about), std::string(need.enable));
  }

  void finish() {
    weigh_labels(out_.results);
    if (out_.seen && out_.seen->test) {
      explain_symptoms(*out_.seen, out_.results);
      explain_by_groups(*out_.seen, out_.results);
    }
    std::vector<Finding> all = std::move(out_.results.findings);
    out_.results.findings.clear();
    join_findings(out_, std::move(all));
  }

  session::Session& session_;
  const CheckupRequest& request_;
  std::vector<const Check*> rows_;
  unsigned have_ = 0;  ///< findings::Needs that are met
  bool blocker_told_ = false;
  Checkup out_;
};

std::string lower_first(std::string text) {
  if (text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])))
    text[0] = char(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

std::string without_dot(std::string text) {
  if (!text.empty() && text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

void join_findings(Checkup& checkup, std::vector<Finding> more) {
  std::vector<Finding> all = std::move(checkup.results.findings);
  for (auto* list : {&checkup.known.accepted, &more})
    all.insert(all.end(), std::make_move_iterator(list->begin()), std::make_move_iterator(list->end()));
  const session::Config config = checkup.seen ? checkup.seen->session.config() : session::Config{};
  checkup.known = findings::split_accepted(findings::rank(findings::merge_related(std::move(all))), config.accepted,
                                           findings::today());
  checkup.results.findings = checkup.known.open;
  const bool judged = !checkup.seen || !checkup.seen->test || checkup.seen->settings.task != observers::Task::kNone;
  checkup.verdict = verdict(checkup.results.findings, judged);
  if (checkup.interrupted) stop(checkup);
}

void stop(Checkup& checkup) {
  checkup.interrupted = true;
  checkup.verdict = "Stopped before all checks were done: this is what had been found by then.";
}

Checkup check_up(session::Session& session, const CheckupRequest& request) {
  return Examination(session, request).run();
}

std::string verdict(const std::vector<Finding>& findings, bool judged) {
  auto count = [&](Level level) {
    return std::count_if(findings.begin(), findings.end(), [&](const Finding& one) { return one.level == level; });
  };
  const auto serious = count(Level::kSerious), minor = count(Level::kMinor);
  if (!findings.empty() && findings[0].level == Level::kBlocker) return findings[0].title;
  const bool repairable = std::any_of(findings.begin(), findings.end(), [](const Finding& one) {
    return one.level == Level::kSerious && (one.kind == "suspicious-unit" || one.kind == "damaged-layer" ||
                                            one.kind == "shifted-biases" || one.numbers.contains("fixed"));
  });
  const std::string ending = repairable ? "; a small repair looks worthwhile." : ".";
  if (serious == 1) return "One thing matters: " + lower_first(without_dot(findings[0].title)) + ending;
  if (serious > 1)
    return fmt::format("{} things matter; above all, {}{}", serious, lower_first(without_dot(findings[0].title)),
                       ending);
  const std::string start = judged ? "Nothing serious was found"
                                   : "Nothing serious was found, but there are no labels to judge predictions "
                                     "by";
  if (minor > 0)
    return fmt::format("{}; {} to look at when there is time.", start,
                       minor == 1 ? "one thing" : fmt::format("{} things", minor));
  return start + ".";
}

}  // namespace netmend::checks
