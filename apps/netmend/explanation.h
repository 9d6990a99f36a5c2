// What `netmend explain` has found, and how it is shown.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/run_folder.h"
#include "netmend/relevance_picture.h"
#include "netmend/shared.h"
#include "netmend/target.h"
#include "observers/importance.h"
#include "observers/input_relevance.h"

namespace netmend::app {

/// One input explained.
struct InputMap {
  int64_t sample = 0;
  std::string id, answer, label;  ///< label "" when there is none
  double start = 0, absorbed = 0;
  std::string kind, file;             ///< image, tokens, columns or values; the picture in the run folder
  std::vector<NamedRelevance> parts;  ///< of tokens and columns
};

struct Explanation {
  std::vector<model::Layer> layers;
  std::vector<std::string> classes;  ///< of the groups that sums are kept by; empty for one
  std::unique_ptr<observers::Importance> importance;
  std::unique_ptr<stream::State> state;  ///< of the importance
  observers::PredictionResult result;
  std::vector<InputMap> maps;
  double seconds = 0;
  bool interrupted = false;

  const observers::ImportanceState& sums() const { return dynamic_cast<const observers::ImportanceState&>(*state); }
  int64_t inputs() const { return sums().inputs.sum().item<int64_t>(); }
  int64_t inputs(int64_t group) const { return group < 0 ? inputs() : sums().inputs[group].item<int64_t>(); }
  double starts() const { return sums().starts.sum().item<double>(); }
  /// Mean relevance of the layer's units over the inputs that counted.
  std::vector<double> scores(size_t layer, int64_t group = -1) const {
    at::Tensor sum = observers::importance_of(sums(), layer, group).contiguous();
    std::vector<double> mean(sum.data_ptr<double>(), sum.data_ptr<double>() + sum.numel());
    for (double& value : mean) value /= double(std::max<int64_t>(1, inputs(group)));
    return mean;
  }
};

/// Relevance of single inputs; pictures go into the run folder.
std::vector<InputMap> map_inputs(const Judged& judged, const dataset::Dataset& data, const RunFolder& folder,
                                 const std::vector<int64_t>& samples, const observers::InputExplainer& explainer);

Json explanation_json(const ExplainOptions& options, const Explanation& found);
/// Every unit, with its mean relevance over all answers and by class.
void write_importance(const std::string& path, const Explanation& found);
void print_explanation(const ExplainOptions& options, const Judged& judged, const NamedTarget& target,
                       const Explanation& found, const std::string& folder);

}  // namespace netmend::app
