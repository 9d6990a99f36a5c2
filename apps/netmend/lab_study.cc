// netmend lab study: questions that take many trials, with a store that survives being stopped.
#include "netmend/lab_study.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/error.h"
#include "base/text.h"
#include "netmend/shared.h"
#include "netmend/terminal.h"
#include "studies/tables.h"

namespace netmend::app {
namespace {

enum class Workers { kOne, kMany };

studies::StudyContext context_of(const Common& common, const std::string& name, Workers workers = Workers::kOne) {
  if (!common.store.empty() && workers == Workers::kOne)
    throw InputError(fmt::format("--store: {} is worked on by one process, in a folder", name),
                     "Studies that many workers share: sbfl-repair, deepimportance, planted-faults, training-mutants.");
  return {common.out.empty() ? "netmend-study-" + name : common.out,
          common.seed,
          common.jobs,
          common.device,
          [&common](const std::string& line) { say(common, printable(line)); },
          common.store,
          common.lease};
}

/// The JSON document without the tables for people, or the tables alone, or the one that was asked for.
int print_tables(const Common& common, const TableChoice& choice, Json json) {
  const std::string text = json["text"];
  json.erase("text");
  if (choice.number > 0) {
    const std::string table = studies::table_of(text, choice.number);
    print("{}", choice.latex ? studies::latex_of(table) : table);
  } else if (common.json) {
    print_json(json);
  } else {
    print("{}", text);
  }
  return 0;
}

}  // namespace

int study_planted(const Common& common, const TableChoice& table, const studies::PlantedRequest& request) {
  return print_tables(common, table,
                      studies::run_planted_study(context_of(common, "planted-faults", Workers::kMany), request));
}

int study_quality(const Common& common, const TableChoice& table, const studies::QualityRequest& request) {
  return print_tables(common, table, studies::run_quality_study(context_of(common, "check-quality"), request));
}

int study_injected(const Common& common, const TableChoice& table, const studies::InjectedRequest& request) {
  studies::InjectedRequest own = request;
  if (const char* data = std::getenv("NETMEND_DATA"); own.data.empty() && data)
    own.data = std::string(data) + "/rt-polarity";
  return print_tables(common, table, studies::run_injected_study(context_of(common, "injected-bugs"), own));
}

int study_scores(const Common& common, const TableChoice& table, const studies::ScoresRequest& request) {
  return print_tables(common, table, studies::run_scores_study(context_of(common, "mutation-scores"), request));
}

int study_broken_trainings(const Common& common, const TableChoice& table,
                           const studies::BrokenTrainingsRequest& request) {
  return print_tables(common, table,
                      studies::run_broken_trainings_study(context_of(common, "broken-trainings"), request));
}

int study_training_mutants(const Common& common, const TableChoice& table,
                           const studies::TrainingMutantsRequest& request) {
  return print_tables(
      common, table,
      studies::run_training_mutants_study(context_of(common, "training-mutants", Workers::kMany), request));
}

int study_deepimportance(const Common& common, const TableChoice& table,
                         const studies::DeepImportanceRequest& request) {
  const studies::StudyContext context = context_of(common, "deepimportance", Workers::kMany);
  print_tables(common, table, studies::run_deepimportance_study(context, request));
  if (!common.json && table.number == 0)
    print(
        "\n  tables    {}/deepimportance.md and .json; run again with more --runs or --models, and only the "
        "missing trials run\n",
        context.folder);
  return 0;
}

int study_label_errors(const Common& common, const TableChoice& table, const studies::LabelErrorsRequest& request) {
  studies::LabelErrorsRequest own = request;
  if (const char* data = std::getenv("NETMEND_DATA"); own.data.empty() && data)
    own.data = std::string(data) + "/label-errors";
  return print_tables(common, table, studies::run_label_errors_study(context_of(common, "label-errors"), own));
}

int study_deepfault(const Common& common, const TableChoice& table, const studies::DeepFaultRequest& request) {
  return print_tables(common, table, studies::run_deepfault_study(context_of(common, "deepfault"), request));
}

int study_sbfl(const Common& common, const TableChoice& table, const studies::SbflRequest& request) {
  return print_tables(common, table,
                      studies::run_sbfl_study(context_of(common, "sbfl-repair", Workers::kMany), request));
}

}  // namespace netmend::app
