// Bugs injected into a training program: mutants of the lines that it executes, each run in a sandbox, and what each
// did to the metric that the program prints. After Jia et al., "How Do Injected Bugs Affect Deep Learning?" (SANER
// 2022). No tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "programs/doctor.h"
#include "programs/outcome.h"

namespace netmend::programs {

struct InjectRequest {
  std::string program;                 ///< .py or .ipynb
  std::vector<std::string> arguments;  ///< of the program; {seed} in them differs from clean run to clean run
  std::string python = "python3";
  std::string metric;                              ///< as parse_metric reads it
  std::vector<std::string> operators;              ///< empty: all
  std::vector<std::string> also;                   ///< packages whose executed lines are mutated too
  std::vector<std::string> environment, writable;  ///< names that are passed on; folders that are the program's own
  int64_t per_file = 50, sample = 100;             ///< 0 for all
  int64_t clean_runs = 10;
  int64_t doctor = 50;  ///< survivors, the most dangerous first, that are run again under the recorder
  uint64_t seed = 42;
  int jobs = 0;
  double most_seconds = 0;  ///< of any run; 0: an hour for a clean one, and for mutants by what clean runs take
  int64_t memory = int64_t(4) << 30;
  bool unsafe = false, quiet = false;
  std::string folder;                            ///< of the run: trials.db in it is what a later call goes on from
  std::function<void(const std::string&)> note;  ///< told what the user should know; may be empty
};

/// A bug: where, what, and what came of it.
struct InjectedBug {
  std::string id;  ///< file, line, column, operator, index
  std::string file, name, op, diff;
  int64_t line = 0;
  std::vector<std::string> phases;  ///< those in which the line runs
  bool in_condition = false;
  std::string written;  ///< the changed file
  RunOutcome run;
  bool again = false;                ///< it ran too long at first and was run once more, alone
  int64_t twin = 0;                  ///< the clean run with the same seed
  std::optional<DoctorSaid> doctor;  ///< of survivors that the doctor looked at: what it does not say of a clean run
};

struct InjectResult {
  std::string program, python, version;
  int64_t possible = 0;                ///< mutants of executed lines
  int64_t files = 0, lines = 0;        ///< that are executed
  int64_t children = 0, untraced = 0;  ///< processes that the program starts; those of Python whose lines nobody saw
  std::map<std::string, int64_t> phase_lines;  ///< of the program itself
  bool marked = false;                         ///< phases come from marks
  std::vector<RunOutcome> clean;
  bool seeded = false;      ///< each clean run has a seed of its own
  bool repeats = false;     ///< the first clean run, run once more, gave the same metric
  DoctorSaid clean_doctor;  ///< what the doctor says of the program as it is
  std::vector<InjectedBug> bugs;
  std::vector<std::string> skipped;  ///< files that cannot be mutated, and why
  double limit = 0;                  ///< seconds that a mutant may take
  double seconds = 0, generating = 0;
  int64_t found = 0;  ///< trials that an earlier call had done
};

/// Runs that are still to be made.
struct Runs {
  int64_t clean = 0;
  bool trace = false;
  int64_t mutants = 0, doctor = 0;
};
/// Seconds of wall-clock time when a clean run takes `clean_run` and workers share what can be shared.
double expected_seconds(const Runs& runs, double clean_run, int workers);

/// Throws InputError: the program fails when clean, prints no metric, cannot be parsed, a sandbox cannot be made;
/// Interrupted on Ctrl-C, after which the same call goes on.
InjectResult inject(const InjectRequest& request);

}  // namespace netmend::programs
