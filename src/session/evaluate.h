// The evaluation of a model on its tests: metric, loss, per class, by group, one row per input; whole, or in shards
// that are put together again. No tensors: commands, bindings and other people's programs call it.
#pragma once

#include <string>
#include <vector>

#include "observers/groups.h"
#include "observers/result.h"
#include "session/session.h"

namespace netmend::session {

struct EvaluateOptions {
  bool units = false;    ///< also a profile of every unit
  bool float64 = false;  ///< compute in float64
};

struct Evaluation {
  std::string data;  ///< the spec
  observers::PredictionResult result;
  std::vector<observers::GroupResult> groups;
  std::string fingerprint;  ///< of the data
  int64_t of = 0;           ///< inputs that there are; result.samples were used
  double seconds = 0;
  bool interrupted = false;  ///< only the first result.samples inputs are in it
};
/// One pass over the tests, or over the sample of them that the budget allows. Writes samples.csv, samples.npz and with
/// `units` units.csv into the run folder.
Evaluation evaluate(Session& session, const EvaluateOptions& options);

struct Shard {
  int64_t samples = 0;
  double seconds = 0;
};
/// Part `i/n` of the tests, kept as a file of states. Throws InputError when `shard` is not i/n or the pass was
/// stopped.
Shard evaluate_shard(Session& session, const std::string& shard, const std::string& path, bool float64);

struct MergedShards {
  observers::PredictionSettings task;
  observers::PredictionResult result;  ///< that of one pass, bit for bit
  std::string model;
  double seconds = 0;
};
/// Throws InputError: parts of different models or data, a part missing or given twice, a damaged file.
MergedShards merge_shards(const std::vector<std::string>& paths);

}  // namespace netmend::session
