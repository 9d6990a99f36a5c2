// What the edits of a file would do to a session's model on its tests, all together and unit by unit.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "edits/edit_file.h"
#include "observers/figures.h"
#include "repair/mend.h"
#include "repair/repair_run.h"
#include "session/session.h"
#include "session/split.h"
#include "whatif/whatif.h"

namespace netmend::repair {
namespace {

using Json = nlohmann::ordered_json;
using NamedEdits = std::vector<std::pair<std::string, std::vector<edits::Edit>>>;

constexpr size_t kMostAlone = 200;

/// The edits of one unit (or parameter) together, so that each can be tried by itself.
NamedEdits by_unit(const std::vector<edits::Edit>& all) {
  NamedEdits list;
  for (const edits::Edit& edit : all) {
    const std::string& name = edit.unit.empty() ? edit.parameter : edit.unit;
    auto hit = std::find_if(list.begin(), list.end(), [&](const auto& one) { return one.first == name; });
    if (hit == list.end()) hit = list.insert(list.end(), {name, {}});
    hit->second.push_back(edit);
  }
  return list;
}

HoldoutFigures figures_of(const Evaluation& evaluation) {
  HoldoutFigures out{int64_t(evaluation.rows.size()), evaluation.result.accuracy, evaluation.result.loss, "", {}};
  if (!evaluation.result.metrics.empty())
    out.metric = evaluation.result.metrics[0].name, out.value = evaluation.result.metrics[0].estimate;
  return out;
}

}  // namespace

WhatIfResult what_if(session::Session& session, const std::string& edit_file) {
  const edits::EditFile file = edits::read_edits(edit_file);
  session::Split& test = session.test();
  edits::require_fit(test.subject.graph, file);
  const observers::PredictionSettings& task = session.task();
  if (task.task == observers::Task::kNone)
    throw InputError(
        fmt::format("{} has no labels, so it is unknown whether predictions get better", test.data->info().spec),
        "Give data with labels.");
  session.sample(test, 2);
  Problem problem{test.subject, task, session.layers()};
  problem.seed = session.request().seed, problem.jobs = session.request().jobs;
  for (int64_t i = 0; i < test.used(); ++i) problem.parts.holdout.push_back(i);
  Outcome outcome = judge_edits(problem, {"edits", edit_file, file.edits, {}, {}});
  session.record(test, "edits", test.used());
  WhatIfResult result{session.model_name(),
                      test.data->info().spec,
                      task.metric,
                      int64_t(file.edits.size()),
                      test.used(),
                      figures_of(outcome.before),
                      figures_of(outcome.after),
                      outcome.flips.fixed,
                      outcome.flips.broken,
                      outcome.p,
                      0,
                      {}};
  const NamedEdits names = by_unit(file.edits);
  if (names.size() < 2 || names.size() > kMostAlone) return result;
  std::vector<whatif::Question> questions(1);
  for (const auto& [name, own] : names) questions.push_back({own});
  whatif::WhatIf trial(test.subject, task, session.layers(), {.jobs = problem.jobs});
  try {
    std::vector<whatif::Tally> tallies = whatif::tally(trial, task, questions);
    result.loss = tallies[0].mean_loss();
    for (size_t i = 1; i < tallies.size(); ++i)
      result.alone.push_back(
          {names[i - 1].first, tallies[i].accuracy(), tallies[i].mean_loss(), tallies[i].right - tallies[0].right});
  } catch (const InputError&) {
    // Edits of a list that build on each other cannot be tried alone.
  }
  return result;
}

Json to_json(const WhatIfResult& result) {
  Json json = {{"model", result.model},
               {"data", result.data},
               {"edits", result.edits},
               {"inputs", result.inputs},
               {"before", observers::estimate_json(result.before.value)},
               {"after", observers::estimate_json(result.after.value)},
               {"metric", result.metric},
               {"fixed", result.fixes},
               {"broken", result.regressions},
               {"net", result.fixes - result.regressions},
               {"p", result.p},
               {"alone", Json::array()}};
  for (const WhatIfResult::Alone& one : result.alone)
    json["alone"].push_back(
        {{"unit", one.unit}, {"accuracy", one.accuracy}, {"loss", one.loss}, {"right", one.more_correct}});
  return json;
}

}  // namespace netmend::repair
