#include "evidence/explanation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/pool.h"
#include "base/text.h"
#include "evidence/input_maps.h"
#include "localise/candidates.h"
#include "observers/figures.h"
#include "observers/importance.h"
#include "observers/sample_table.h"
#include "session/session.h"
#include "session/split.h"
#include "session/target.h"

namespace netmend::evidence {
namespace {

using Json = nlohmann::ordered_json;
using observers::number_json;
using observers::SampleRow;

constexpr int64_t kMapsUnasked = 4;

explain::Rules rules_of(const ExplainRequest& request) {
  explain::Rules rules = explain::parse_rules(request.rule);
  const bool spread = explain::parse_bias(request.bias);
  for (explain::Rule* rule : {&rules.dense, &rules.conv, &rules.first}) rule->spread_bias = spread;
  return rules;
}

explain::Options method_of(const ExplainRequest& request) {
  explain::Options how;
  how.method = explain::parse_method(request.method);
  how.rules = rules_of(request);
  how.steps = int(request.steps);
  how.precision = request.float64 ? at::kDouble : at::kFloat;
  if (how.method != explain::Method::kRelevance && request.bias != "keep")
    throw InputError("--bias belongs to --method lrp", "Leave out one of the two.");
  if (how.method != explain::Method::kRelevance && !request.rule.empty() && request.rule != "z")
    throw InputError(fmt::format("--rule {} belongs to --method lrp", printable(request.rule)),
                     "Leave out one of the two.");
  return how;
}

std::string method_text(const ExplainRequest& request) {
  if (request.method == "lrp")
    return fmt::format("relevance by rule {}{}", explain::rules_text(rules_of(request)),
                       request.bias == "spread" ? ", biases spread over their inputs" : "");
  if (request.method == "gradient") return "gradient × activation";
  return fmt::format("integrated gradients in {} steps", request.steps);
}

/// Whose relevance is added up; empty for the usual.
std::function<bool(const SampleRow&)> whose(const ExplainRequest& request, const observers::Target& target) {
  if (!request.on.empty())
    return [target](const SampleRow& row) { return target.side(row) == observers::Side::kFailing; };
  if (request.predictions == "all") return [](const SampleRow&) { return true; };
  if (request.predictions == "wrong") return [](const SampleRow& row) { return row.right == SampleRow::kWrong; };
  return {};
}

/// Positions of the inputs named; by name first, then by number.
std::vector<int64_t> chosen_inputs(const std::vector<std::string>& names, const dataset::Dataset& data) {
  if (names.empty()) return stream::spread(data.size(), kMapsUnasked, 0.5);
  std::vector<int64_t> chosen(names.size(), -1);
  size_t open = chosen.size();
  for (int64_t sample = 0; sample < data.size() && open > 0; ++sample) {
    const std::string id = data.id(sample);
    for (size_t i = 0; i < chosen.size(); ++i)
      if (chosen[i] < 0 && names[i] == id) chosen[i] = sample, --open;
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    int64_t position = -1;
    if (chosen[i] < 0 && parse_int(names[i], position) && position >= 0 && position < data.size()) chosen[i] = position;
    if (chosen[i] < 0)
      throw InputError(
          fmt::format("{} has no input `{}`", data.info().spec, printable(names[i])),
          fmt::format("It has {} inputs; the first is called `{}`.", with_commas(data.size()), printable(data.id(0))));
  }
  return chosen;
}

/// Sums of relevance that a pass left, read unit by unit.
struct Sums {
  const std::vector<model::Layer>& layers;
  const observers::ImportanceState& state;
  std::vector<std::string> classes;  ///< of the groups that sums are kept by; empty for one

  int64_t inputs() const { return state.inputs.sum().item<int64_t>(); }
  int64_t inputs(int64_t group) const { return group < 0 ? inputs() : state.inputs[group].item<int64_t>(); }
  double starts() const { return state.starts.sum().item<double>(); }
  double kept(size_t layer) const { return observers::importance_of(state, layer).sum().item<double>(); }
  /// Mean relevance of the layer's units over the inputs that counted.
  std::vector<double> scores(size_t layer, int64_t group = -1) const {
    at::Tensor sum = observers::importance_of(state, layer, group).contiguous();
    std::vector<double> mean(sum.data_ptr<double>(), sum.data_ptr<double>() + sum.numel());
    for (double& value : mean) value /= double(std::max<int64_t>(1, inputs(group)));
    return mean;
  }
};

/// Share of a whole; NaN where there is nothing to share.
double share_of(double part, double whole) { return whole != 0 ? part / whole : NAN; }

/// With hundreds of classes only those with most inputs are told apart here; importance.csv has all.
std::vector<int64_t> classes_told(const Sums& found) {
  constexpr size_t most = 50;
  std::vector<int64_t> told;
  for (size_t c = 0; c < found.classes.size(); ++c)
    if (found.inputs(int64_t(c)) > 0) told.push_back(int64_t(c));
  if (told.size() <= most) return told;
  std::stable_sort(told.begin(), told.end(), [&](int64_t a, int64_t b) { return found.inputs(a) > found.inputs(b); });
  told.resize(most);
  std::sort(told.begin(), told.end());
  return told;
}

Json units_json(const Sums& found, size_t layer, int64_t top) {
  std::vector<double> total = found.scores(layer);
  const std::vector<int64_t> classes = classes_told(found);
  std::vector<std::vector<double>> by_class;
  for (int64_t c : classes) by_class.push_back(found.scores(layer, c));
  Json units = Json::array();
  const double start = found.starts() / double(found.inputs());
  for (int64_t unit : observers::most_important(found.state, layer, top)) {
    Json row = {{"unit", model::unit_name(found.layers[layer], unit)},
                {"score", number_json(total[size_t(unit)])},
                {"share", number_json(share_of(total[size_t(unit)], start))}};
    if (!by_class.empty()) row["per_class"] = Json::array();
    for (size_t i = 0; i < classes.size(); ++i)
      row["per_class"].push_back(
          {{"class", found.classes[size_t(classes[i])]}, {"score", number_json(by_class[i][size_t(unit)])}});
    units.push_back(std::move(row));
  }
  return units;
}

Json classes_json(const Sums& found, size_t layer, int64_t top) {
  Json classes = Json::array();
  for (int64_t group : classes_told(found)) {
    std::vector<double> scores = found.scores(layer, group);
    Json units = Json::array();
    for (int64_t unit : observers::most_important(found.state, layer, top, group))
      units.push_back(
          {{"unit", model::unit_name(found.layers[layer], unit)}, {"score", number_json(scores[size_t(unit)])}});
    classes.push_back(
        {{"class", found.classes[size_t(group)]}, {"inputs", found.inputs(group)}, {"units", std::move(units)}});
  }
  return classes;
}

Json map_json(const InputMap& map) {
  Json json = {{"input", map.id},
               {"sample", map.sample},
               {"predicted", map.predicted},
               {"label", map.label.empty() ? Json(nullptr) : Json(map.label)},
               {"start", number_json(map.start)},
               {"absorbed", number_json(map.absorbed)},
               {"kind", map.kind},
               {"file", map.file.empty() ? Json(nullptr) : Json(map.file)}};
  if (map.kind == "image") return json;
  json["parts"] = Json::array();
  for (const NamedRelevance& part : map.parts)
    json["parts"].push_back({{"name", part.name}, {"relevance", number_json(part.relevance)}});
  return json;
}

void write_importance(const std::string& path, const Sums& found) {
  write_csv(
      path, "layer,unit,rank,score",
      [&](CsvWriter& out) {
        for (size_t l = 0; l < found.layers.size(); ++l) {
          std::vector<double> total = found.scores(l);
          std::vector<std::vector<double>> by_class;
          for (size_t c = 0; c < found.classes.size(); ++c) by_class.push_back(found.scores(l, int64_t(c)));
          int64_t rank = 0;
          for (int64_t unit : observers::most_important(found.state, l, found.layers[l].units)) {
            out << found.layers[l].name << model::unit_name(found.layers[l], unit) << ++rank
                << Digits{total[size_t(unit)], 9};
            for (const auto& scores : by_class) out << Digits{scores[size_t(unit)], 9};
            out.end();
          }
        }
      },
      found.classes);
}

ExplainedUnit explained(const Sums& found, size_t layer, int64_t unit, double score, double start) {
  ExplainedUnit out{model::unit_name(found.layers[layer], unit), score, share_of(score, start), "", 0};
  for (size_t c = 0; c < found.classes.size(); ++c) {
    if (found.inputs(int64_t(c)) == 0) continue;
    const double own = found.state.sums[layer][int64_t(c)][unit].item<double>() / double(found.inputs(int64_t(c)));
    if (own > out.strongest_score) out.strongest_score = own, out.strongest = found.classes[c];
  }
  return out;
}

ExplainedLayer explained(const Sums& found, size_t layer, int64_t top, double start) {
  ExplainedLayer out{
      found.layers[layer].name, found.layers[layer].units, share_of(found.kept(layer), found.starts()), {}};
  const std::vector<double> scores = found.scores(layer);
  for (int64_t unit : observers::most_important(found.state, layer, top))
    out.top.push_back(explained(found, layer, unit, scores[size_t(unit)], start));
  return out;
}

void require_some(const ExplainRequest& request, const Sums& found, int64_t samples) {
  if (found.inputs() > 0) return;
  if (found.state.not_finite > 0)
    throw InputError(fmt::format("relevance is NaN or Inf on each of {} inputs", with_commas(found.state.not_finite)),
                     "Try --float64 or --rule epsilon.");
  throw InputError(fmt::format("none of {} inputs {}", with_commas(samples),
                               !request.on.empty()              ? "is a failure that --on selects"
                               : request.predictions == "wrong" ? "is predicted incorrectly"
                                                                : "is predicted correctly"),
                   "--predictions all explains every prediction.");
}

Json document_of(const ExplainRequest& request, const Explanation& out, const Sums& found) {
  Json json = {{"method", request.method},
               {"rule", request.method == "lrp" ? Json(explain::rules_text(rules_of(request))) : Json()},
               {"bias", request.method == "lrp" ? Json(request.bias) : Json()},
               {"on", request.on.empty() ? Json(nullptr) : Json(request.on)},
               {"predictions", request.on.empty() ? request.predictions : "wrong"},
               {"tap", request.before_activation ? "pre" : "post"},
               {"inputs", out.inputs},
               {"explained", out.explained},
               {"not_finite", out.not_finite},
               {"start", number_json(out.start)},
               {"absorbed", number_json(out.absorbed)},
               {"layers", Json::array()},
               {"maps", Json::array()}};
  for (size_t l = 0; l < found.layers.size(); ++l)
    json["layers"].push_back({{"name", found.layers[l].name},
                              {"count", found.layers[l].units},
                              {"kept", number_json(share_of(found.kept(l), found.starts()))},
                              {"units", units_json(found, l, request.top)},
                              {"classes", classes_json(found, l, request.top)}});
  for (const InputMap& map : out.maps) json["maps"].push_back(map_json(map));
  json["seconds"] = out.seconds;
  json["model"] = out.model, json["data"] = out.data;
  return json;
}

constexpr double kMostArrays = 1e9;  ///< bytes of one file's relevance of inputs

/// `units_LAYER` (classes × units, sums over inputs), `explained` (inputs by class), and of single inputs `sample`,
/// `predicted`, `logit` and `inputs_FEATURE` in the layout of the data.
void write_arrays(const std::string& path, const Sums& found, const dataset::Dataset& data,
                  const std::vector<int64_t>& samples, const observers::InputExplainer* explainer) {
  double bytes = 0;
  for (const dataset::Feature& feature : data.info().features) {
    double each = 4;
    for (int64_t size : feature.shape) each *= double(std::max<int64_t>(1, size));
    bytes += each * double(samples.size());
  }
  if (explainer && bytes > kMostArrays)
    throw InputError(fmt::format("--format npz: relevance of {} inputs would take {}",
                                 with_commas(int64_t(samples.size())), bytes_text(bytes)),
                     "--limit or --input say which inputs are wanted.");
  auto content = [](const at::Tensor& tensor) {
    at::Tensor values = tensor.contiguous();
    std::string bytes_out = npy_header(values.scalar_type() == at::kLong    ? "<i8"
                                       : values.scalar_type() == at::kFloat ? "<f4"
                                                                            : "<f8",
                                       values.sizes().vec());
    return bytes_out.append(static_cast<const char*>(values.data_ptr()), values.nbytes());
  };
  std::map<std::string, std::vector<at::Tensor>> parts;
  constexpr size_t kAtOnce = 250;
  for (size_t first = 0; explainer && first < samples.size(); first += kAtOnce) {
    stop_if_interrupted();
    const size_t end = std::min(samples.size(), first + kAtOnce);
    const dataset::Batch batch = data.read(std::span(samples).subspan(first, end - first));
    const observers::InputRelevance one = explainer->run(batch);
    parts["sample"].push_back(at::tensor(batch.samples, at::kLong));
    parts["predicted"].push_back(one.classes), parts["logit"].push_back(one.start.to(at::kFloat));
    for (size_t f = 0; f < one.features.size(); ++f)
      if (one.features[f].defined())
        parts["inputs_" + data.info().features[f].name].push_back(one.features[f].to(at::kFloat));
  }
  write_file(path, [&](std::ostream& out) {
    ZipWriter zip(out);
    zip.add("explained.npy", content(found.state.inputs));
    for (size_t l = 0; l < found.layers.size(); ++l) {
      std::string name = "units_" + found.layers[l].name;
      std::replace(name.begin(), name.end(), '/', '.');  // folders of an archive are no part of a name
      zip.add(name + ".npy", content(found.state.sums[l]));
    }
    for (const auto& [name, list] : parts) zip.add(name + ".npy", content(at::cat(list, 0)));
    zip.finish();
  });
}

/// Layers may be explained where inputs cannot: what nobody asked for is then left out.
std::optional<observers::InputExplainer> input_explainer(session::Session& session, const ExplainRequest& request,
                                                         const explain::Options& how) {
  std::optional<observers::InputExplainer> explainer;
  try {
    explainer.emplace(session.test().subject, session.task(), how);
  } catch (const InputError& error) {
    if (!request.inputs.empty()) throw;
    session.note(fmt::format("no maps of single inputs: {}", error.what()));
  }
  return explainer;
}

}  // namespace

void check_request(const ExplainRequest& request) { method_of(request); }

Explanation explain(session::Session& session, const ExplainRequest& request) {
  explain::Options how = method_of(request);
  how.device = at::Device(session.request().device);
  session::Split& test = session.test();
  const observers::PredictionSettings& task = session.task();
  const std::vector<model::Layer> layers =
      localise::candidates(session.layers(), test.subject.graph, task.head, task.outputs, request.layers);
  session::parse_target(request.on, task, *test.data);  // a slip of the finger shows before the work
  const std::vector<int64_t> mapped = chosen_inputs(request.inputs, *test.data);
  session.sample(test, how.method == explain::Method::kIntegrated ? 3.0 * double(request.steps) : 5);
  session::NamedTarget target = session::parse_target(request.on, task, *test.subject.data);
  auto explainer = input_explainer(session, request, how);

  observers::Predictions predictions(task, false);
  observers::Importance importance(test.subject, task, layers,
                                   {how, whose(request, target.target), request.before_activation});
  stream::Pass pass(test.subject);
  auto predicted = pass.watch(predictions);
  auto summed = pass.watch(importance);
  session.run(pass, test, "relevance of units");
  Explanation out;
  out.inputs = observers::finish(predictions, pass.state(predicted)).samples;
  Sums found{layers, pass.state(summed), {}};
  if (importance.groups() > 1) found.classes = task.classes;
  if (pass.interrupted() && found.inputs() == 0) throw Interrupted{};
  require_some(request, found, out.inputs);
  out.model = session.model_name(), out.data = test.data->info().spec;
  out.target = target.text.empty() ? "" : target.words, out.how = method_text(request);
  out.explained = found.inputs(), out.not_finite = found.state.not_finite;
  out.start = found.starts() / double(found.inputs()), out.absorbed = share_of(found.state.absorbed, found.starts());
  out.classes = found.classes;
  for (size_t l = 0; l < layers.size(); ++l) out.layers.push_back(explained(found, l, request.top, out.start));
  out.seconds = pass.seconds(), out.interrupted = pass.interrupted();
  const RunFolder& folder = session.folder("explain");
  if (explainer) out.maps = map_inputs(task, *test.data, folder, mapped, *explainer);
  write_importance(folder.file("importance.csv"), found);
  if (request.arrays) {
    out.arrays = folder.file("relevance.npz");
    std::vector<int64_t> samples = mapped;
    const dataset::Dataset& whole = request.inputs.empty() ? *test.subject.data : *test.data;
    if (request.inputs.empty()) samples = stream::spread(whole.size(), whole.size());
    write_arrays(out.arrays, found, whole, samples, explainer ? &*explainer : nullptr);
  }
  out.document = document_of(request, out, found);
  out.document["of"] = test.inputs();
  return out;
}

}  // namespace netmend::evidence
