// One function per command, one file each. Options are filled by flags*.cc, the only files that know the command-line
// library.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace netmend::app {

/// Flags with one meaning everywhere.
struct Common {
  bool json = false, quiet = false, wide = false;
  uint64_t seed = 42;
  int jobs = 0;
  std::string device = "cpu", precision = "float32", memory, out, config;
  std::string store;                   ///< of a study: the database that keeps its trials
  double lease = 60;                   ///< of a study: seconds after which a silent worker's trials are given to others
  std::vector<std::string> arguments;  ///< the whole command line, for the run's record
};

struct InfoOptions {
  std::string model, output;
  std::vector<std::string> shapes;
  bool nodes = false, cost = false;
};
int info(const Common& common, const InfoOptions& options);

struct DataOptions {
  std::string spec, sheet;
  int64_t limit = 0;
  int count = 50;
  bool duplicates = false;       ///< look for inputs that occur more than once
  std::string against, product;  ///< other data that may hold them too; where the list of what to drop goes
};
int data(const Common& common, const DataOptions& options);

/// What every command that judges a model on data takes.
struct CaseOptions {
  std::string model, data, test, train, output, metric, budget;
  int64_t limit = 0;
  bool all = false, anyway = false;
};

struct EvalOptions : CaseOptions {
  std::string shard, product;
  bool units = false, float64 = false;
};
int eval(const Common& common, const EvalOptions& options);

struct CheckOptions : CaseOptions {
  std::string reference, fail_on = "blocker";
  std::vector<std::string> only, skip, programs;
  bool no_images = false, list = false, latency = false;
};
int check(const Common& common, const CheckOptions& options);

struct CompareOptions : CaseOptions {
  std::string reference;  ///< model, run folder or baseline.json
  std::string product;    ///< baseline.json to write
  double margin = -1;     ///< in points; below 0: what netmend.toml says, else 0.5
  bool common_only = false;
};
int compare(const Common& common, const CompareOptions& options);

struct GateOptions : CaseOptions {
  std::string against;  ///< model, run folder or baseline.json
  bool strict = false, common_only = false;
};
int gate(const Common& common, const GateOptions& options);

struct FailuresOptions : CaseOptions {
  std::string on, sort = "loss", group, product;
  int64_t top = 20;
};
int failures(const Common& common, const FailuresOptions& options);

struct NextOptions : CaseOptions {
  std::string pool, method = "gini", on, product;
  std::vector<std::string> layers;
  int64_t count = 20;
};
int next(const Common& common, const NextOptions& options);

struct WhyOptions {
  std::string about, run;
  bool list = false;
};
int why(const Common& common, const WhyOptions& options);

struct AcceptOptions {
  std::string what, reason, until, level, file, run;
  bool list = false, prune = false;
};
int accept(const Common& common, const AcceptOptions& options);

struct SlicesOptions : CaseOptions {
  std::string groups, threshold;
  int64_t top = 8, least = 50;
};
int slices(const Common& common, const SlicesOptions& options);
/// `data --duplicates`.
int data_duplicates(const Common& common, const DataOptions& options);

struct LocateOptions : CaseOptions {
  std::string measure = "auto", on, tap = "post";
  std::vector<std::string> layers;  ///< empty: all but the output layer
  int64_t top = 10, resamples = 100;
  double threshold = 0;
};
int locate(const Common& common, const LocateOptions& options);

struct MutateOptions : CaseOptions {
  std::string operators = "all", kill = "class", product;
  std::vector<std::string> layers, originals;
  int64_t sample = 500;
};
int mutate(const Common& common, const MutateOptions& options);

struct StressOptions : CaseOptions {
  std::string method, product, eps, step_size, range, on, as_published, from = "right", criteria, profile, queue;
  std::vector<std::string> units, layers;
  int64_t steps = 0, tries = 1;
  double confidence = 0;
  bool round = false;
};
int stress(const Common& common, const StressOptions& options);

struct CoverageOptions : CaseOptions {
  std::string criteria = "all", important = "6,8,10,12", on, tap, unit, profile, published, product, shard;
  std::vector<std::string> layers;  ///< empty: all but the output layer
  std::vector<std::string> parts;   ///< files of shards to put together
  bool zero_cluster = false;
};
int coverage(const Common& common, const CoverageOptions& options);

struct ExplainOptions : CaseOptions {
  std::string method = "lrp", rule, bias = "keep", on, predictions = "right", tap = "post", format = "csv";
  std::vector<std::string> layers;  ///< empty: all but the output layer
  std::vector<std::string> inputs;  ///< those whose maps are drawn; empty: a few
  int64_t top = 10, steps = 50;
  bool float64 = false;
};
int explain(const Common& common, const ExplainOptions& options);

struct InitOptions {
  std::string model, data, train, test, output;
  bool update = false, force = false, print = false;
};
int init(const Common& common, const InitOptions& options);

struct MatchOptions {
  std::string model, reference, data;
  double tolerance = 1e-3;
  bool layers = false;
};
int match(const Common& common, const MatchOptions& options);

struct ApplyOptions {
  std::string model, edits, product;
  bool revert = false;
};
int apply(const Common& common, const ApplyOptions& options);

struct RepairOptions : CaseOptions {
  std::string method = "auto", product, plan, on;
  std::vector<std::string> units;
  bool force = false, review = false, yes = false;
  // Of sbfl-mutation.
  std::string measure = "tarantula", mutation = "set-weights", stop = "accuracy";
  double value = NAN, loss_offset = 0.005, accuracy_offset = 0.01;
  bool keep_offsets = false, train_between = false, refresh = false, as_published = false;
  int64_t at_a_time = 1;
};
int repair_model(const Common& common, const RepairOptions& options);

struct WhatIfOptions : CaseOptions {
  std::string edits;
};
int whatif_edits(const Common& common, const WhatIfOptions& options);

struct DiffOptions {
  std::string before, after, product;
  int count = 12;
};
int diff(const Common& common, const DiffOptions& options);

struct WeightsOptions {
  std::string model, product;
};
int weights(const Common& common, const WeightsOptions& options);

struct WatchOptions {
  std::vector<std::string> command, stop_when;
  std::string thresholds, fail_on = "never";
  bool probe = false;
};
int watch(const Common& common, const WatchOptions& options);

struct DiagnoseOptions {
  std::string run, against, thresholds, page, fail_on = "blocker";
  std::vector<std::string> rules;
  bool list = false, live = false;
};
int diagnose_run(const Common& common, const DiagnoseOptions& options);

struct HealOptions {
  std::string run, thresholds, product, python = "python3";
  std::vector<std::string> program;
  int64_t tries = 12;
  double seconds = 600;
  bool ask = false, random = false, in_place = false;
};
int heal_run(const Common& common, const HealOptions& options);

struct LintOptions {
  std::vector<std::string> files;
  std::string python = "python3", fail_on = "serious", sarif;
};
int lint(const Common& common, const LintOptions& options);

struct InjectOptions {
  std::string program, python = "python3", metric, time;
  std::vector<std::string> arguments, operators, also, environment, writable;
  int64_t per_file = 50, sample = 100, clean_runs = 10, doctor = 50;
  bool unsafe = false;
};
int inject(const Common& common, const InjectOptions& options);

struct OpenOptions {
  std::string run;
};
int open_report(const Common& common, const OpenOptions& options);

struct TrainOptions {
  std::string model, data, train, test, product, optimiser = "adam", loss, init, schedule = "constant", checkpoint,
                                                 output;
  double rate = 0.001, momentum = 0.9, decay = 0, clip = 0, validation = 0.1;
  int64_t epochs = 5, batch = 32, limit = 0;
  bool resume = false, keep_weights = false, heal = false;
};
int train(const Common& common, const TrainOptions& options);

struct DemoOptions {
  int64_t epochs = 3;
};
int demo(const Common& common, const DemoOptions& options);

struct NewOptions {
  std::string name, product, init = "glorot";
};
int lab_new(const Common& common, const NewOptions& options);

struct RunOptions {
  std::string model, folder;
  std::vector<std::string> inputs, outputs, carry;
  std::string sequences;
  bool float64 = false;
};
int lab_run(const Common& common, const RunOptions& options);

struct BenchmarkOptions : CaseOptions {
  double seconds = 1;
  size_t top = 15;
};
int lab_benchmark(const Common& common, const BenchmarkOptions& options);

struct ConformanceOptions {
  std::string folder, filter;
  bool each = false;
};
int lab_conformance(const Common& common, const ConformanceOptions& options);

struct PlantOptions : CaseOptions {
  std::string kind, product, truth, layer;
  int64_t count = 1;
  double strength = 1, at_least = 0;
};
int lab_plant(const Common& common, const PlantOptions& options);

struct MergeOptions {
  std::vector<std::string> states;
};
int lab_merge(const Common& common, const MergeOptions& options);

}  // namespace netmend::app
