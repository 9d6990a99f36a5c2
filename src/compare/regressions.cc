#include "compare/regressions.h"

#include <cmath>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/text.h"
#include "compare/gate_limits.h"
#include "compare/paired.h"
#include "observers/sample_table.h"
#include "session/repair_record.h"

namespace netmend::compare {
namespace {

void write_flips(const std::string& path, session::Session& session, const Comparison& done) {
  const observers::PredictionSettings& task = session.task();
  const dataset::Dataset& data = *session.test().subject.data;
  auto name = [&](double prediction) {
    if (std::isnan(prediction)) return std::string();
    if (task.by_class()) return task.classes[size_t(prediction)];
    return fmt::format("{:.9g}", prediction);
  };
  write_csv(path, "sample,id,change,label,before,after,confidence", [&](CsvWriter& out) {
    for (const Flip& row : done.list)
      out.row(row.sample, data.id(row.sample), row.change == observers::Change::kFixed ? "fixed" : "broken",
              name(row.label), name(row.before), name(row.after), Digits{row.confidence});
  });
}

/// A search that saw other inputs than those that are compared makes no figure too optimistic.
std::string overlap_of(session::Session& session, const Comparison& done) {
  std::shared_ptr<const dataset::Dataset> data = session.test().subject.data;
  if (done.missing > 0) data = dataset::subset(data, done.compared);
  return session::seen_in_search(session.graph(), *data);
}

}  // namespace

double margin_of(double asked, const session::Config& config) {
  if (asked >= 0) return asked;
  for (const auto& [name, limit] : config.gate) {
    if (name != "overall_drop") continue;
    session::Config alone = config;
    alone.gate = {{name, limit}};
    const Limit bound = read_gate(alone).at(0).bound;
    if ((bound.sign != Limit::kAtMost && bound.sign != Limit::kBelow) || bound.number < 0)
      fail("{}: gate.overall_drop should be a limit such as \"<= 0.5\"", config.decides);
    return bound.number / 100;
  }
  return 0.005;
}

Regressions find_regressions(session::Session& session, const CompareRequest& request) {
  const observers::PredictionSettings& task = session.task();
  if (task.task == observers::Task::kNone)
    throw InputError(
        fmt::format("{} has no labels, so no prediction is correct or wrong", session.test().data->info().spec),
        "Give data with labels, or compare outputs with netmend lab run.");
  if (!request.baseline.empty()) claim_product(request.baseline, "-o");
  Regressions found;
  // Of an error overall_drop is in its own units, which say nothing of a share of inputs.
  found.margin = observers::is_error(task.metric) && request.margin < 0 ? margin_of(request.margin, {})
                                                                        : margin_of(request.margin, session.config());
  const Reference reference = open_reference(session, request.reference);
  Comparison done = run_both(session, reference, request.by_id);
  RunFolder& folder = session.folder("compare");
  folder.note_file(request.reference);
  write_flips(folder.file("flips.csv"), session, done);
  // Half of the inputs are no baseline, and must not take the place of one.
  if (!request.baseline.empty() && !done.interrupted) write_baseline(request.baseline, done.newer, task);

  found.data = session.test().data->info().spec;
  found.whole = done.flips.whole();
  for (size_t c = 0; c < done.flips.per_class().size(); ++c)
    found.classes.push_back({"", task.classes[c], done.flips.per_class()[c]});
  for (const observers::Flips::Group& group : done.flips.groups())
    found.groups.push_back({group.column, group.value, group.count});
  found.before = done.before.metrics, found.after = done.after.metrics;
  if (reference.baseline)
    found.figure_before = reference.baseline->value;
  else if (!done.before.metrics.empty())
    found.figure_before = done.before.metrics[0].estimate;
  found.error_change = done.flips.error_change();
  found.verdict = observers::judge_change(found.whole.change(), found.margin);
  found.has_right_and_wrong = task.has_right_and_wrong();
  found.missing = done.missing, found.overlap = overlap_of(session, done);
  found.fingerprint = done.newer.fingerprint;
  found.seconds = done.seconds, found.interrupted = done.interrupted;
  return found;
}

}  // namespace netmend::compare
