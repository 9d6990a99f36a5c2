// Which unlabelled inputs to label first: by uncertainty of the predictions, by distance from what is known, by
// surprise, by mutants that they tell from the network, or by one unit that tests never drive high. No tensors:
// commands and other people's programs call it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "session/session.h"

namespace netmend::selection {

struct NextRequest {
  std::string method = "gini";      ///< gini, margin, entropy, max-p, mcp, coreset, surprise, mutation
  std::string on;                   ///< `unit=conv1/7`, instead of a method; "" for none
  std::vector<std::string> layers;  ///< of coreset and surprise; empty: the last one before the output
  int64_t count = 20;
};
/// Slips of the finger, before anything is opened; methods are written in any case. Throws InputError.
void check_request(NextRequest& request);

struct ChosenInput {
  int64_t sample = 0;
  std::string id, predicted, second;                    ///< "" where there is none
  std::optional<double> confidence, second_confidence;  ///< of predictions that are classes
  std::optional<double> score;                          ///< nothing where the method has none or it is not finite
  bool wrong = false;                                   ///< known only of pools with labels
};

struct NextReport {
  std::string pool;  ///< the spec
  int64_t inputs = 0;
  std::string words;       ///< how they were chosen
  std::string score_name;  ///< "" without scores
  std::vector<ChosenInput> chosen;
  bool classes = false;               ///< predictions are classes with probabilities
  std::string layer, unit;            ///< that the choice is by; may be empty
  std::string known_data;             ///< what coreset and surprise compare with
  int64_t known = 0;                  ///< inputs of it
  std::optional<double> tests_reach;  ///< the highest value of the unit on the tests
  std::optional<int64_t> above;       ///< inputs of the pool beyond that
  // Of pools with labels:
  bool labelled = false;
  int64_t wrong = 0, chosen_wrong = 0;
  std::optional<double> apfd;  ///< average percentage of faults detected; nothing when the method orders only a part
  double seconds = 0;
};

/// `pool` is a session whose tests are the inputs to choose from; `known` one of the same model with the data that
/// there is already. Throws InputError when a method does not fit, and Interrupted.
NextReport choose_next(session::Session& pool, session::Session& known, const NextRequest& request);

/// A row per chosen input.
void write_chosen(const std::string& path, const NextReport& report);

/// The spec of a pool as it may be typed: a folder alone is a folder of pictures.
std::string pool_spec(const std::string& text);

}  // namespace netmend::selection
