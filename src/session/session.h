// A model, its data splits, the task and the configuration, opened once. Every command, study and program starts here.
// It owns the budget, the sampling of splits, the names of units, the record of what was read how often, and the words
// of the next command.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/budget.h"
#include "base/escape.h"
#include "base/run_folder.h"
#include "observers/task.h"
#include "session/config.h"
#include "session/request.h"

namespace netmend::dataset {
class Dataset;
struct Spec;
}  // namespace netmend::dataset
namespace netmend::model {
struct Graph;
struct Layer;
}  // namespace netmend::model
namespace netmend::stream {
class Pass;
struct PassOptions;
}  // namespace netmend::stream

namespace netmend::session {

struct Split;

/// A split, or some of its inputs, went through the network.
struct Traversal {
  std::string split, reason;
  int64_t inputs = 0;
  bool whole = false;  ///< all inputs that are used: counts as a pass
  double seconds = 0;
};

/// A unit by its place: `conv1/7` is unit 7 of the layer conv1.
struct UnitPlace {
  size_t layer = 0;  ///< in Session::layers()
  int64_t unit = 0;
};

class Session {
 public:
  /// Reads netmend.toml and the model; data is opened when it is first asked for. Throws InputError.
  explicit Session(Request request);
  /// From parts in memory; `train` may be null. Names appear in messages and commands.
  Session(Request request, const std::string& model_name, model::Graph graph,
          std::shared_ptr<const dataset::Dataset> test, std::shared_ptr<const dataset::Dataset> train = nullptr);
  ~Session();
  Session(Session&&) noexcept;

  const Request& request() const;
  const Config& config() const;
  /// The file's path, or the name it was given.
  const std::string& model_name() const;
  const model::Graph& graph() const;
  /// The judged output: --output, model.output, else the first.
  const executor::Head& head() const;

  /// Whether flags or netmend.toml name data to judge the model on.
  bool has_data() const;
  /// Throws InputError when there is none, or when model and data do not fit.
  Split& test();
  /// The training data; null when none is named, or when it is the test data.
  Split* train();
  /// The model on other data, prepared in the same way.
  Split open(const std::string& name, const dataset::Spec& spec);
  /// Inferred from labels, outputs and what the user says.
  const observers::PredictionSettings& task();
  observers::PredictionSettings task_of(const Split& split) const;
  /// All layers with weights, found on real inputs, in the order they run.
  const std::vector<model::Layer>& layers();
  /// `conv1/7`. Throws InputError with the nearest name.
  UnitPlace unit(const std::string& name);

  Budget& budget();
  /// Cuts a split down to the inputs that a share of the budget allows where the work per input is `times` a forward
  /// pass; evenly spread. --all and --limit take everything. Tells what is left out.
  void sample(Split& split, double times = 1, double share = 0.4);

  stream::PassOptions pass_options() const;
  /// Runs the pass and records the traversal of the split.
  void run(stream::Pass& pass, const Split& split, const std::string& reason);
  void run(stream::Pass& pass, const Split& split, const std::string& reason, const stream::PassOptions& options);
  /// Records work that no pass of this session did; `whole` where it went over all inputs and counts as a pass.
  void record(const Split& split, const std::string& reason, int64_t inputs, double seconds = 0, bool whole = false);
  const std::vector<Traversal>& traversals() const;

  void note(const std::string& line) const;

  /// Model and data as they are typed behind a command, quoted for a shell; empty where netmend.toml names everything.
  Shell words(bool with_model = true) const;
  /// `netmend VERB MODEL --data …` and more words, each quoted for a shell: a command that can be pasted.
  Shell command(const std::string& verb, const std::vector<std::string>& more = {}) const;
  /// The command that was typed, with what is added to it; where none was typed, `command`.
  Shell again(const std::string& verb, const std::vector<std::string>& more = {}) const;

  /// The run folder; made when it is first asked for.
  RunFolder& folder(const std::string& command);
  /// Writes run.json: inputs by checksum, specs, seed, traversals. Call once, at the end.
  void finish(double seconds, int exit_status);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The value that a name means, or the graph's first output for "". Throws InputError with the nearest name.
model::ValueId choose_output(const model::Graph& graph, const std::string& name);

/// Opens data for a model: preprocessing as the spec says; where it is silent as netmend.toml says, then as the model's
/// metadata say. What did not come from the spec is told.
std::shared_ptr<const dataset::Dataset> open_data(const dataset::Spec& spec, const model::Graph& model,
                                                  const Config& config,
                                                  const std::function<void(const std::string&)>& note = {});

}  // namespace netmend::session
