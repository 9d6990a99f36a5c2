// Which units of each layer predictions come from, and which parts of single inputs: relevance of a session's model,
// with pictures and tables in the run folder. No tensors: commands and other programs call it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace netmend::session {
class Session;
}

namespace netmend::evidence {

struct ExplainRequest {
  std::string method = "lrp";         ///< lrp, gradient, integrated
  std::string rule = "z";             ///< of lrp
  std::string bias = "keep";          ///< of lrp: keep or spread
  std::string on;                     ///< only these failures; "" for none in particular
  std::string predictions = "right";  ///< which are explained: right, wrong, all
  std::vector<std::string> layers;    ///< empty: all but the output layer
  std::vector<std::string> inputs;    ///< those whose maps are drawn, by name or number; empty: a few
  int64_t top = 10, steps = 50;
  bool before_activation = false, float64 = false;
  bool arrays = false;  ///< also relevance.npz: of units by class, and of all inputs or those that are named
};
/// What can be said without a model. Throws InputError.
void check_request(const ExplainRequest& request);

/// One element of an input that can be named: a word or a column.
struct NamedRelevance {
  std::string name;
  double relevance = 0;
};

/// One input explained.
struct InputMap {
  int64_t sample = 0;
  std::string id, predicted, label;  ///< label "" when there is none
  double start = 0, absorbed = 0;
  std::string kind, file;             ///< image, tokens, columns or values; the picture in the run folder
  std::vector<NamedRelevance> parts;  ///< of tokens and columns
};

struct ExplainedUnit {
  std::string name;
  double score = 0, share = 0;  ///< mean relevance, and as a share of the mean logit
  std::string strongest;        ///< the predicted class that it is most relevant for; "" for none
  double strongest_score = 0;
};
struct ExplainedLayer {
  std::string name;
  int64_t units = 0;
  double kept = 0;  ///< share of the logit that passes through the layer
  std::vector<ExplainedUnit> top;
};

struct Explanation {
  std::string model, data, target;  ///< `target`: the failures in words; "" for none in particular
  std::string arrays;               ///< the file of arrays; "" for none
  std::string how;                  ///< the method in words
  int64_t inputs = 0, explained = 0, not_finite = 0;
  double start = 0, absorbed = 0;  ///< mean logit; share of it that stays with biases and other constants
  std::vector<std::string> classes;
  std::vector<ExplainedLayer> layers;
  std::vector<InputMap> maps;
  nlohmann::ordered_json document;  ///< explain.json
  double seconds = 0;
  bool interrupted = false;
};

/// Writes importance.csv and pictures into the session's run folder. Throws InputError; Interrupted when Ctrl-C came
/// before anything was found.
Explanation explain(session::Session& session, const ExplainRequest& request);

}  // namespace netmend::evidence
