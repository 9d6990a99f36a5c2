#include "evidence/input_maps.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>

#include "evidence/relevance_picture.h"

namespace netmend::evidence {
namespace {

using observers::InputRelevance;
using observers::PredictionSettings;

std::string prediction_text(const PredictionSettings& settings, int64_t predicted, const at::Tensor& logits) {
  if (settings.by_class() && predicted >= 0 && predicted < int64_t(settings.classes.size()))
    return settings.classes[size_t(predicted)];
  if (predicted < 0) return "NaN or Inf";
  double value = logits[std::min(predicted, logits.size(0) - 1)].item<double>();
  return logits.size(0) == 1 ? fmt::format("{:.4g}", value) : fmt::format("output {}", predicted);
}

std::string label_text(const PredictionSettings& settings, const dataset::Batch& batch, int64_t row) {
  if (!batch.labels.defined() || batch.labels.dim() != 1) return "";
  if (settings.task == observers::Task::kNumber) return fmt::format("{:.4g}", batch.labels[row].item<double>());
  if (batch.labels.is_floating_point()) return "";
  auto label = batch.labels[row].item<int64_t>();
  return label >= 0 && label < int64_t(settings.classes.size()) ? settings.classes[size_t(label)] : "";
}

/// A name that may stand in a file's name.
std::string as_file_name(std::string text) {
  for (char& letter : text)
    if (!std::isalnum(static_cast<unsigned char>(letter)) && letter != '-' && letter != '_') letter = '_';
  return text.size() > 60 ? text.substr(text.size() - 60) : text;
}

class Mapping {
 public:
  Mapping(const PredictionSettings& task, const dataset::Dataset& data, const RunFolder& folder)
      : task_(task), data_(data), folder_(folder) {}

  std::vector<InputMap> run(const std::vector<int64_t>& samples, const observers::InputExplainer& explainer) {
    dataset::Batch batch = data_.read(samples);
    InputRelevance found = explainer.run(batch);
    std::vector<InputMap> maps;
    for (size_t i = 0; i < samples.size(); ++i) maps.push_back(one(batch, found, int64_t(i)));
    return maps;
  }

 private:
  InputMap one(const dataset::Batch& batch, const InputRelevance& found, int64_t row) {
    InputMap map;
    map.sample = batch.samples[size_t(row)];
    map.id = data_.id(map.sample);
    map.predicted = prediction_text(task_, found.classes[row].item<int64_t>(), found.logits[row]);
    map.label = label_text(task_, batch, row);
    map.start = found.start[row].item<double>();
    map.absorbed = found.absorbed[row].item<double>();
    const dataset::Display display = data_.display(map.sample);
    for (size_t f = 0; f < found.features.size(); ++f) {
      if (!found.features[f].defined()) continue;
      const dataset::Feature& feature = data_.info().features[f];
      at::Tensor relevance = found.features[f][row];
      if (feature.image && display.kind == dataset::Display::kImage)
        draw(map, feature, display, relevance);
      else if (feature.type == at::kLong && relevance.dim() == 1)
        add(map, "tokens",
            token_relevance(feature, display, batch.inputs[f][row],
                            f < batch.masks.size() && batch.masks[f].defined() ? batch.masks[f][row] : at::Tensor(),
                            relevance));
      else
        add(map, feature.columns.empty() ? "values" : "columns", column_relevance(feature, relevance));
    }
    return map;
  }

  void draw(InputMap& map, const dataset::Feature& feature, const dataset::Display& display,
            const at::Tensor& relevance) {
    std::string caption = fmt::format("{} as {}  logit {:.3g}", map.id, map.predicted, map.start);
    if (!map.label.empty() && map.label != map.predicted) caption += "  is " + map.label;
    dataset::Image picture = relevance_picture(display, relevance_plane(feature, relevance), caption);
    map.kind = "image";
    std::string name = as_file_name(map.id);
    // `a/b` and `a_b` are two inputs.
    while (files_.try_emplace(name, map.sample).first->second != map.sample) name += fmt::format("-{}", map.sample);
    map.file = "map-" + name + ".png";
    dataset::write_png(folder_.file(map.file), picture.height, picture.width, picture.channels, picture.pixels);
  }

  static void add(InputMap& map, const std::string& kind, std::vector<NamedRelevance> parts) {
    if (map.kind.empty()) map.kind = kind;
    map.parts.insert(map.parts.end(), std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end()));
  }

  const PredictionSettings& task_;
  const dataset::Dataset& data_;
  const RunFolder& folder_;
  std::map<std::string, int64_t> files_;  ///< names of pictures, and whose they are
};

}  // namespace

std::vector<InputMap> map_inputs(const observers::PredictionSettings& task, const dataset::Dataset& data,
                                 const RunFolder& folder, const std::vector<int64_t>& samples,
                                 const observers::InputExplainer& explainer) {
  return Mapping(task, data, folder).run(samples, explainer);
}

}  // namespace netmend::evidence
