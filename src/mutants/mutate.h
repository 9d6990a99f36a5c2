// The mutation score of a session's tests: mutants of its model, which of them the tests kill, what they would miss. No
// tensors: commands and other programs call it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/escape.h"
#include "stats/intervals.h"

namespace netmend::session {
class Session;
}

namespace netmend::mutants {

struct MutateRequest {
  std::string operators = "all";       ///< names or sources, separated by commas
  std::string kill = "class";          ///< class, strict or statistical
  int64_t sample = 500;                ///< mutants; 0 for one per operator and place
  std::vector<std::string> layers;     ///< empty: all
  std::vector<std::string> originals;  ///< further trainings, for inhibitors and for statistical
};
/// Slips of the finger, before anything is opened. Throws InputError.
void check_request(const MutateRequest& request);

struct MutantResult {
  std::string id, op, source, layer, unit;  ///< layer "" for inputs, unit "" for whole layers
  bool killed = false;
  int64_t killed_classes = 0;  ///< of the class criterion
  int64_t killing_inputs = 0, changed = 0;
  double accuracy = 0;
  std::optional<bool> equivalent, killed_by_training;  ///< known where there is training data
  int64_t cluster = 0;  ///< mutants with equal predictions on the tests have one number, from 1; 0 for those alone
};
struct GroupScore {
  std::string name, words;
  int64_t mutants = 0, killed = 0;
  stats::Estimate score;
};
struct UniqueTest {
  int64_t sample = 0, alone = 0;  ///< `alone`: mutants, or mutants and classes, that no other test kills
  std::string id;
};
struct StrengthResult {
  std::string op, layer;
  double share = 0;
  bool killable = false, monotone = true;
  double weakest = 0;
  std::vector<std::vector<double>> tried;  ///< strength, share of comparisons killed, accuracy lost
};

struct MutateResult {
  std::string model, data, kill, training;  ///< training: spec; "" for none
  int64_t inputs = 0, of = 0, classes = 0;
  double accuracy = 0;
  bool own_labels = false;      ///< there were no labels: predictions of the original stand in for them
  stats::Estimate score;        ///< over mutants that are not equivalent
  int64_t training_inputs = 0;  ///< on which equivalent mutants predict as the original does
  int64_t killed = 0, judged = 0, equivalent = 0, redundant = 0, clusters = 0;
  std::vector<MutantResult> mutants;
  std::vector<GroupScore> operators, layers, by_class;
  std::vector<UniqueTest> unique;  ///< most first
  std::vector<int64_t> smallest;   ///< samples of few tests with the same score
  int64_t fewest = 0;              ///< no set of fewer tests has it
  std::vector<std::string> smallest_ids;
  std::vector<std::pair<std::string, std::string>> without;  ///< operators without mutants, and why
  std::vector<StrengthResult> strengths;
  int64_t originals = 1;
  std::vector<Shell> next;
  double seconds = 0, generating = 0;
};

/// Throws InputError, and Interrupted.
MutateResult mutate(session::Session& session, const MutateRequest& request);
nlohmann::ordered_json to_json(const MutateResult& result);
/// All mutants, a row each.
void write_mutants(const std::string& path, const MutateResult& result);
/// The few tests with the same score, a row each.
void write_smallest(const std::string& path, const MutateResult& result);

}  // namespace netmend::mutants
