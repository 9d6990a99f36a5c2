// netmend lab study: questions that take many trials, with a store that survives being stopped.
#include "netmend/lab_study.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/text.h"
#include "netmend/shared.h"
#include "netmend/terminal.h"

namespace netmend::app {
namespace {

studies::StudyContext context_of(const Common& common, const std::string& name) {
  return {common.out.empty() ? "netmend-study-" + name : common.out, common.seed, common.jobs,
          [&common](const std::string& line) { say(common, printable(line)); }};
}

/// A heading for each group of rows, and a line for each row.
template <typename Head, typename Line>
void print_groups(const Json& rows, const Head& head, const Line& line) {
  std::string last;
  for (const Json& row : rows) {
    if (row["group"] != last) head(last = row["group"]);
    line(row);
  }
}

void print_planted(const Json& json) {
  print("{} faults that cost at least two points of accuracy\n", json["faults"].get<int64_t>());
  print_groups(
      json["measures"],
      [](const std::string& group) {
        print("\n  {:<28} faults  planted unit first   in first 5   in first 10   median rank\n", printable(group));
      },
      [](const Json& row) {
        print("    {:<26} {:>6}  {:>12.0f} %       {:>6.0f} %     {:>7.0f} %    {:>8}\n",
              row["measure"].get<std::string>(), row["faults"].get<int64_t>(), 100 * row["top1"].get<double>(),
              100 * row["top5"].get<double>(), 100 * row["top10"].get<double>(), row["median_rank"].get<int64_t>());
      });
  print_groups(
      json["repairs"],
      [](const std::string& group) {
        print("\n  {:<28} faults  lost accuracy regained   fixes  regressions   seconds\n", printable(group));
      },
      [](const Json& row) {
        print("    {:<26} {:>6}  {:>15.0f} %      {:>8.0f}  {:>11.0f}  {:>8.1f}\n", row["method"].get<std::string>(),
              row["faults"].get<int64_t>(), 100 * row["won_back"].get<double>(), row["fixed"].get<double>(),
              row["broken"].get<double>(), row["seconds"].get<double>());
      });
}

/// The JSON document without the tables for people, or the tables alone.
int print_tables(const Common& common, Json json) {
  const std::string text = json["text"];
  json.erase("text");
  if (common.json)
    print_json(json);
  else
    print("{}", text);
  return 0;
}

}  // namespace

int study_planted(const Common& common, const studies::PlantedRequest& request) {
  const studies::StudyContext context = context_of(common, "planted-faults");
  const Json json = studies::run_planted_study(context, request);
  if (common.json) return print_json(json), 0;
  print_planted(json);
  print("\n  trials    {}/trials.db: run again with more --runs or --models, and only the missing trials run\n",
        context.folder);
  return 0;
}

int study_quality(const Common& common, const studies::QualityRequest& request) {
  return print_tables(common, studies::run_quality_study(context_of(common, "check-quality"), request));
}

int study_injected(const Common& common, const studies::InjectedRequest& request) {
  studies::InjectedRequest own = request;
  if (const char* data = std::getenv("NETMEND_DATA"); own.data.empty() && data)
    own.data = std::string(data) + "/rt-polarity";
  return print_tables(common, studies::run_injected_study(context_of(common, "injected-bugs"), own));
}

int study_scores(const Common& common, const studies::ScoresRequest& request) {
  return print_tables(common, studies::run_scores_study(context_of(common, "mutation-scores"), request));
}

int study_broken_trainings(const Common& common, const studies::BrokenTrainingsRequest& request) {
  return print_tables(common, studies::run_broken_trainings_study(context_of(common, "broken-trainings"), request));
}

int study_training_mutants(const Common& common, const studies::TrainingMutantsRequest& request) {
  return print_tables(common, studies::run_training_mutants_study(context_of(common, "training-mutants"), request));
}

int study_deepimportance(const Common& common, const studies::DeepImportanceRequest& request) {
  const studies::StudyContext context = context_of(common, "deepimportance");
  print_tables(common, studies::run_deepimportance_study(context, request));
  if (!common.json)
    print(
        "\n  tables    {}/deepimportance.md and .json; run again with more --runs or --models, and only the "
        "missing trials run\n",
        context.folder);
  return 0;
}

int study_sbfl(const Common& common, const studies::SbflRequest& request) {
  const studies::StudyContext context = context_of(common, "sbfl-repair");
  const Json json = studies::run_sbfl_study(context, request);
  if (common.json) return print_json(json), 0;
  for (const Json& one : json["answers"])
    print("{}\n  thesis    {}\n  here      {}\n            {}\n\n", one["question"].get<std::string>(),
          one["thesis"].get<std::string>(), one["verdict"].get<std::string>(), one["here"].get<std::string>());
  print("  box plots {}/rq*.svg; run again to continue where it stopped\n", context.folder);
  return 0;
}

}  // namespace netmend::app
