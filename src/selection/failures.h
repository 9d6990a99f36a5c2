// Wrong predictions as a table under the user's names: filtered, sorted, grouped; and labels that look wrong
// themselves. No tensors: commands and other people's programs call it.
#pragma once

#include <string>
#include <vector>

#include "observers/result.h"
#include "session/session.h"

namespace netmend::selection {

struct FailuresRequest {
  std::string on;             ///< a target as every command takes it, or `labels`; "" for all failures
  std::string sort = "loss";  ///< loss, confidence or margin; the largest first
  std::string group;          ///< pair, class, or a column kept aside; "" for none
  bool labels() const { return on == "labels"; }
};
/// Slips of the finger, before anything is opened. Throws InputError.
void check_request(const FailuresRequest& request);

/// A wrong prediction. Classes are numbers of PredictionSettings::classes; the second is the runner-up, -1 without one.
struct Failure {
  observers::SampleRow row;
  int32_t second = -1;
  float second_probability = 0, margin = 0;
};

struct FailureGroup {
  std::string name, on;  ///< `cat predicted as dog`, and the target that it is: `confusion=cat:dog`
  int64_t count = 0;
  std::vector<std::string> worst;  ///< names of some inputs, by the order of the failures
};

/// A label that the model confidently contradicts.
struct DoubtfulLabel {
  int64_t sample = 0;
  std::string label, suggested;
  double confidence = 0, margin = 0;
};

struct FailuresReport {
  std::string data;                     ///< the spec
  int64_t inputs = 0, of = 0;           ///< used, and there are
  int64_t wrong = 0;                    ///< predictions, whatever the target
  std::string words;                    ///< of the target
  std::vector<Failure> failures;        ///< of the target, sorted
  int64_t accepted = 0;                 ///< of these, accepted as known: counted apart, never hidden
  std::vector<FailureGroup> groups;     ///< the largest first
  std::vector<DoubtfulLabel> doubtful;  ///< with FailuresRequest::labels(): the most convincing first
  bool training_data = false;           ///< on which a network has learned the wrong labels too
  double seconds = 0;
  bool interrupted = false;
};
/// One pass over the tests, or over the sample of them that the budget allows. Throws InputError where nothing is right
/// or wrong, and for a target, order or group that the data does not have.
FailuresReport find_failures(session::Session& session, const FailuresRequest& request);

/// An input as its row in a table reads.
struct FailureRow {
  std::string id, label, predicted, second;  ///< `predicted` is "" for NaN
  std::string text;                          ///< a sentence or row of a table; "" for pictures
  std::vector<std::string> groups;           ///< values of the columns kept aside
};
FailureRow describe(session::Session& session, const Failure& failure);
/// The user's name for an input of the tests that were used.
std::string input_name(session::Session& session, int64_t sample);
/// Names of the columns kept aside.
const std::vector<std::string>& group_columns(session::Session& session);

/// All of them: failures, or doubtful labels where those were asked for.
void write_table(const std::string& path, session::Session& session, const FailuresReport& report, bool labels);

/// The worst first: predictions that are NaN, then the largest loss, confidence or margin.
void sort_failures(std::vector<Failure>& failures, const std::string& by);

}  // namespace netmend::selection
