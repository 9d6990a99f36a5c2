// Studies: `netmend lab study NAME`.
#pragma once

#include "netmend/commands.h"
#include "studies/study_runs.h"

namespace netmend::app {

/// One of a study's tables instead of all; 0: all.
struct TableChoice {
  int64_t number = 0;
  bool latex = false;
};

/// A job array that works on a study.
struct SlurmOptions {
  std::string study;
  std::vector<std::string> words;  ///< flags of the study
  std::string store, out, product;
  std::vector<std::string> sbatch;
  int64_t workers = 0;
  bool submit = false;
};
int lab_slurm(const Common& common, const SlurmOptions& options);

int study_planted(const Common& common, const TableChoice& table, const studies::PlantedRequest& request);
int study_deepimportance(const Common& common, const TableChoice& table, const studies::DeepImportanceRequest& request);
int study_label_errors(const Common& common, const TableChoice& table, const studies::LabelErrorsRequest& request);
int study_deepfault(const Common& common, const TableChoice& table, const studies::DeepFaultRequest& request);
int study_sbfl(const Common& common, const TableChoice& table, const studies::SbflRequest& request);
int study_injected(const Common& common, const TableChoice& table, const studies::InjectedRequest& request);
int study_scores(const Common& common, const TableChoice& table, const studies::ScoresRequest& request);
int study_broken_trainings(const Common& common, const TableChoice& table,
                           const studies::BrokenTrainingsRequest& request);
int study_training_mutants(const Common& common, const TableChoice& table,
                           const studies::TrainingMutantsRequest& request);
int study_quality(const Common& common, const TableChoice& table, const studies::QualityRequest& request);

}  // namespace netmend::app
