// The command line: which flags there are and what they fill, a file for each group of commands. Only these files know
// the command-line library.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "netmend/commands.h"
#include "netmend/lab_study.h"

namespace netmend::app {

struct Options {
  InfoOptions info;
  DataOptions data;
  EvalOptions eval;
  CheckOptions check;
  CompareOptions compare;
  InitOptions init;
  MatchOptions match;
  ApplyOptions apply;
  DiffOptions diff;
  WeightsOptions weights;
  OpenOptions open;
  InjectOptions inject;
  LocateOptions locate;
  SlicesOptions slices;
  StressOptions stress;
  MutateOptions mutate;
  CoverageOptions coverage;
  ExplainOptions explain;
  TrainOptions train;
  DemoOptions demo;
  NewOptions fresh;
  RunOptions run;
  BenchmarkOptions benchmark;
  ConformanceOptions conformance;
  MergeOptions merge;
  PlantOptions plant;
  RepairOptions repair;
  TableChoice study_table;
  SlurmOptions slurm;
  studies::PlantedRequest planted;
  studies::DeepImportanceRequest deepimportance;
  studies::LabelErrorsRequest label_errors;
  studies::DeepFaultRequest deepfault;
  studies::SbflRequest sbfl;
  studies::QualityRequest quality;
  studies::InjectedRequest injected;
  studies::ScoresRequest scores;
  studies::TrainingMutantsRequest training_mutants;
  studies::BrokenTrainingsRequest broken_trainings;
  WhatIfOptions whatif;
  GateOptions gate;
  FailuresOptions failures;
  NextOptions next;
  WhyOptions why;
  AcceptOptions accept;
  WatchOptions watch;
  DiagnoseOptions diagnose;
  LintOptions lint;
  HealOptions heal;
};

/// What the flags of the command that was typed ask for.
using Action = std::function<int()>;

/// Filled by every command.
extern Common common;

CLI::App* command(CLI::App& parent, const std::string& name, const std::string& about, const std::string& examples);
/// A file that the command writes. It is claimed before any work begins: see base/file.h. `ending`: that of its format,
/// as in
/// ".csv", which refuses names that end as another format does; "" for files that have none.
CLI::Option* add_product(CLI::App* app, const std::string& flag, std::string& path, const std::string& ending,
                         const std::string& about);
bool is_product(const CLI::Option& option);
/// For numbers that must be above 0: what the library says instead is a range of 309 digits.
CLI::Validator above_zero();
void with_config(CLI::App* app);
void with_run_folder(CLI::App* app);
void with_case(CLI::App* app, CaseOptions& o);

void add_everyday(CLI::App& app, Options& o, Action& action);  ///< init check compare gate
void add_files(CLI::App& app, Options& o, Action& action);     ///< why accept open watch diagnose lint inject
void add_look(CLI::App& app, Options& o, Action& action);      ///< info data eval failures slices …
void add_mend(CLI::App& app, Options& o, Action& action);      ///< repair apply whatif diff weights
void add_train(CLI::App& app, Options& o, Action& action);     ///< train heal demo
void add_lab(CLI::App& app, Options& o, Action& action);
void add_describe(CLI::App& lab, Action& action);  ///< lab commands

/// A set of commands, and what must be done between reading the flags and the work; may be null.
struct Program {
  void (*add)(CLI::App& app, Options& options, Action& action);
  void (*prepare)();
  void (*finish)() = nullptr;  ///< after a command that did not fail
  /// Whether the command may go through with fewer inputs at once, which are then in the environment.
  bool (*begin_again)(const std::exception& error) = nullptr;
};
/// Returns the exit status.
int run_program(int argc, char** argv, const Program& program);

}  // namespace netmend::app
