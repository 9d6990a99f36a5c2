// netmend whatif: what edits would do, without writing a model.
#include "whatif/whatif.h"

#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "edits/edit_file.h"
#include "netmend/show.h"
#include "repair/mend.h"
#include "stream/layers.h"

namespace netmend::app {
namespace {

/// The edits of one unit (or parameter) together, so that each can be tried by itself.
std::vector<std::pair<std::string, std::vector<edits::Edit>>> by_unit(const std::vector<edits::Edit>& all) {
  std::vector<std::pair<std::string, std::vector<edits::Edit>>> list;
  for (const edits::Edit& edit : all) {
    const std::string& name = edit.unit.empty() ? edit.parameter : edit.unit;
    auto hit = std::find_if(list.begin(), list.end(), [&](const auto& one) { return one.first == name; });
    if (hit == list.end()) hit = list.insert(list.end(), {name, {}});
    hit->second.push_back(edit);
  }
  return list;
}

}  // namespace

int whatif_edits(const Common& common, const WhatIfOptions& options) {
  edits::EditFile file = edits::read_edits(options.edits);
  Case about = open_case(common, options);
  Judged& judged = about.judged;
  edits::require_fit(judged.subject.graph, file);
  if (judged.settings.task == observers::Task::kNone)
    throw InputError(fmt::format("{} has no labels: no answer can be called better", about.data->info().spec),
                     "Give data with labels.");
  const std::vector<model::Layer> layers = stream::find_layers(judged.subject);
  repair::Problem problem{judged.subject, judged.settings, layers};
  problem.seed = common.seed, problem.jobs = common.jobs;
  for (int64_t i = 0; i < about.data->size(); ++i) problem.parts.holdout.push_back(i);
  const auto start = repair::Clock::now();
  repair::Outcome outcome = repair::judge_edits(problem, {"edits", options.edits, file.edits});
  auto names = by_unit(file.edits);
  // Single edits of a list that build on each other cannot be tried alone.
  std::vector<whatif::Question> questions(1);
  constexpr size_t kMostAlone = 200;
  for (const auto& [name, own] : names)
    if (names.size() > 1 && names.size() <= kMostAlone) questions.push_back({own});
  std::vector<whatif::Tally> alone;
  whatif::WhatIf trying(judged.subject, judged.settings, layers, {.jobs = common.jobs});
  if (questions.size() > 1) alone = whatif::tally(trying, judged.settings, questions);
  Json json = {{"model", judged.subject.model_name},
               {"data", about.data->info().spec},
               {"edits", file.edits.size()},
               {"inputs", about.data->size()},
               {"before", estimate_json(outcome.before.result.metrics.at(0).estimate)},
               {"after", estimate_json(outcome.after.result.metrics.at(0).estimate)},
               {"metric", judged.settings.metric},
               {"fixed", outcome.flips.fixed},
               {"broken", outcome.flips.broken},
               {"net", outcome.flips.net()},
               {"p", outcome.p}};
  json["alone"] = Json::array();
  for (size_t i = 1; i < alone.size(); ++i)
    json["alone"].push_back({{"unit", names[i - 1].first},
                             {"accuracy", alone[i].accuracy()},
                             {"loss", alone[i].mean_loss()},
                             {"right", alone[i].right - alone[0].right}});
  json["seconds"] = std::chrono::duration<double>(repair::Clock::now() - start).count();
  if (common.json) return print_json(json), 0;
  const std::string& metric = judged.settings.metric;
  fmt::print("{} with {}  on {}\n  {} {} → {}   {} fixed, {} broken, p = {:.2g}\n", judged.subject.model_name,
             options.edits, about.data->info().spec, metric,
             figure_text(metric, outcome.before.result.metrics[0].estimate),
             figure_text(metric, outcome.after.result.metrics[0].estimate), outcome.flips.fixed, outcome.flips.broken,
             outcome.p);
  for (size_t i = 1; i < alone.size() && i <= 20; ++i)
    fmt::print("  {:<24} alone   {:+d} right   loss {:.4g} → {:.4g}\n", printable(names[i - 1].first),
               alone[i].right - alone[0].right, alone[0].mean_loss(), alone[i].mean_loss());
  fmt::print("  next      netmend apply {} {} -o changed.onnx\n", judged.subject.model_name, options.edits);
  return 0;
}

}  // namespace netmend::app
