// How good is the check-up? Few findings on sound models (quiet), the same for another order or seed or some more data
// (stable), the right ones on planted faults (loud).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/dataset.h"
#include "findings/finding.h"
#include "model/graph.h"
#include "trials/store.h"

namespace netmend::studies {

using trials::Store;

/// A sound network with its data.
struct CheckedModel {
  std::string name;  ///< `lenet5@mnist`
  std::string file;  ///< for messages
  model::Graph graph;
  std::shared_ptr<const dataset::Dataset> test, train;  ///< train may be null
};

/// A fault that can be planted, and what a check-up should then say.
struct PlantedKind {
  /// Findings that name the fault and its place: `suspicious-unit:conv1/7`, `over-confident` (it has no place),
  /// `drift:*` (any column). Nothing where the fault does not apply to the model.
  using Named = std::optional<std::vector<std::string>>;
  std::string_view name, group;  ///< `wrong-labels`, `labels`
  Named (*plant)(CheckedModel& model, uint64_t seed);
};
/// What a fault costs, as a share: of the accuracy, or of the agreement between confidence and accuracy where that is
/// larger. Measured on a sample.
double cost_of(const CheckedModel& sound, const CheckedModel& faulty);
/// Whether a finding names the kind and the place of a fault.
bool names_fault(const std::vector<std::string>& wanted, const findings::Finding& finding);
std::span<const PlantedKind> planted_kinds();

struct QualityOptions {
  std::string budget = "quick";  ///< of each check-up
  uint64_t seed = 42;
  int jobs = 0;
  std::vector<std::string> kinds;  ///< of faults; empty for all
};

/// Runs what the store does not hold yet. Throws Interrupted on Ctrl-C.
void run_quiet(Store& store, const CheckedModel& model, const QualityOptions& options,
               const std::function<void(const std::string&)>& progress);
void run_stable(Store& store, const CheckedModel& model, const QualityOptions& options,
                const std::function<void(const std::string&)>& progress);
void run_loud(Store& store, const CheckedModel& model, const QualityOptions& options,
              const std::function<void(const std::string&)>& progress);

struct QualityRow {
  std::string part, model, fault, expected;  ///< part: quiet, stable, loud; fault: what was changed
  std::vector<std::string> top;              ///< findings, the first ones, with their level
  bool good = false;
  bool alone = false;  ///< loud: it comes first, and nothing as serious stands beside it that the sound network has not
  double cost = 0;     ///< loud: what the fault costs
  double accuracy = 0, seconds = 0;
};
std::vector<QualityRow> read_quality(const Store& store);
/// The three tables as markdown.
std::string quality_text(const std::vector<QualityRow>& rows);

constexpr int kQualityVersion = 4;

}  // namespace netmend::studies
