// netmend explain: which units of each layer answers come from, and which parts of single inputs.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "localise/candidates.h"
#include "netmend/relevance_picture.h"
#include "netmend/show.h"
#include "netmend/target.h"
#include "observers/importance.h"
#include "observers/input_relevance.h"
#include "observers/sample_table.h"
#include "stream/layers.h"

namespace netmend::app {
namespace {

using observers::Importance;
using observers::ImportanceState;
using observers::InputRelevance;
using observers::PredictionSettings;
using observers::SampleRow;

constexpr int64_t kMapsUnasked = 4;

/// One input explained.
struct Map {
  int64_t sample = 0;
  std::string id, answer, label;  ///< label "" when there is none
  double start = 0, absorbed = 0;
  std::string kind, file;             ///< image, tokens, columns or values; the picture in the run folder
  std::vector<NamedRelevance> parts;  ///< of tokens and columns
};

struct Findings {
  std::vector<model::Layer> layers;
  std::vector<std::string> classes;  ///< of the groups that sums are kept by; empty for one
  std::unique_ptr<Importance> importance;
  std::unique_ptr<stream::State> state;  ///< of the importance
  observers::PredictionResult result;
  std::vector<Map> maps;
  double seconds = 0;
  bool interrupted = false;

  const ImportanceState& sums() const { return dynamic_cast<const ImportanceState&>(*state); }
  int64_t inputs() const { return sums().inputs.sum().item<int64_t>(); }
  int64_t inputs(int64_t group) const { return group < 0 ? inputs() : sums().inputs[group].item<int64_t>(); }
  double starts() const { return sums().starts.sum().item<double>(); }
  /// Mean relevance of the layer's units over the inputs that counted.
  std::vector<double> scores(size_t layer, int64_t group = -1) const {
    at::Tensor mean = observers::importance_of(sums(), layer, group) / double(std::max<int64_t>(1, inputs(group)));
    return {mean.contiguous().data_ptr<double>(), mean.contiguous().data_ptr<double>() + mean.numel()};
  }
};

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

/// Share of a whole; not a number where there is nothing to share.
double share_of(double part, double whole) { return whole != 0 ? part / whole : NAN; }

explain::Options method_of(const ExplainOptions& options) {
  explain::Options how;
  how.method = explain::parse_method(options.method);
  how.rules = explain::parse_rules(options.rule);
  how.steps = int(options.steps);
  how.precision = options.float64 ? at::kDouble : at::kFloat;
  if (how.method != explain::Method::kRelevance && !options.rule.empty() && options.rule != "z")
    throw InputError(fmt::format("--rule {} belongs to --method lrp", printable(options.rule)),
                     "Leave out one of the two.");
  return how;
}

/// Whose relevance is added up; empty for the usual.
std::function<bool(const SampleRow&)> whose(const ExplainOptions& options, const observers::Target& target) {
  if (!options.on.empty())
    return [target](const SampleRow& row) { return target.side(row) == observers::Side::kFailing; };
  if (options.answers == "all") return [](const SampleRow&) { return true; };
  if (options.answers == "wrong") return [](const SampleRow& row) { return row.right == SampleRow::kWrong; };
  return {};
}

std::string answer_text(const PredictionSettings& settings, int64_t answered, const at::Tensor& logits) {
  if (settings.by_class() && answered >= 0 && answered < int64_t(settings.classes.size()))
    return settings.classes[size_t(answered)];
  if (answered < 0) return "not a number";
  double value = logits[std::min(answered, logits.size(0) - 1)].item<double>();
  return logits.size(0) == 1 ? fmt::format("{:.4g}", value) : fmt::format("output {}", answered);
}

std::string label_text(const PredictionSettings& settings, const dataset::Batch& batch, int64_t row) {
  if (!batch.labels.defined() || batch.labels.dim() != 1) return "";
  if (settings.task == observers::Task::kNumber) return fmt::format("{:.4g}", batch.labels[row].item<double>());
  if (batch.labels.is_floating_point()) return "";
  auto label = batch.labels[row].item<int64_t>();
  return label >= 0 && label < int64_t(settings.classes.size()) ? settings.classes[size_t(label)] : "";
}

/// Positions of the inputs named; by name first, then by number.
std::vector<int64_t> chosen_inputs(const ExplainOptions& options, const dataset::Dataset& data) {
  if (options.inputs.empty()) return stream::spread(data.size(), kMapsUnasked, 0.5);
  std::vector<int64_t> chosen(options.inputs.size(), -1);
  size_t open = chosen.size();
  for (int64_t sample = 0; sample < data.size() && open > 0; ++sample) {
    std::string id = data.id(sample);
    for (size_t i = 0; i < chosen.size(); ++i)
      if (chosen[i] < 0 && options.inputs[i] == id) chosen[i] = sample, --open;
  }
  for (size_t i = 0; i < chosen.size(); ++i) {
    int64_t position = -1;
    if (chosen[i] < 0 && parse_int(options.inputs[i], position) && position >= 0 && position < data.size())
      chosen[i] = position;
    if (chosen[i] < 0)
      throw InputError(
          fmt::format("{} has no input `{}`", data.info().spec, printable(options.inputs[i])),
          fmt::format("It has {} inputs; the first is called `{}`.", with_commas(data.size()), printable(data.id(0))));
  }
  return chosen;
}

/// A name that may stand in a file's name.
std::string as_file_name(std::string text) {
  for (char& letter : text)
    if (!std::isalnum(static_cast<unsigned char>(letter)) && letter != '-' && letter != '_') letter = '_';
  return text.size() > 60 ? text.substr(text.size() - 60) : text;
}

class Mapping {
 public:
  Mapping(const Judged& judged, const dataset::Dataset& data, const RunFolder& folder)
      : judged_(judged), data_(data), folder_(folder) {}

  std::vector<Map> run(const std::vector<int64_t>& samples, const explain::Options& how) {
    observers::InputExplainer explainer(judged_.subject, judged_.settings, how);
    dataset::Batch batch = data_.read(samples);
    InputRelevance found = explainer.run(batch);
    std::vector<Map> maps;
    for (size_t i = 0; i < samples.size(); ++i) maps.push_back(one(batch, found, int64_t(i)));
    return maps;
  }

 private:
  Map one(const dataset::Batch& batch, const InputRelevance& found, int64_t row) const {
    Map map;
    map.sample = batch.samples[size_t(row)];
    map.id = data_.id(map.sample);
    map.answer = answer_text(judged_.settings, found.classes[row].item<int64_t>(), found.logits[row]);
    map.label = label_text(judged_.settings, batch, row);
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

  void draw(Map& map, const dataset::Feature& feature, const dataset::Display& display,
            const at::Tensor& relevance) const {
    std::string caption = fmt::format("{} as {}  {:.3g}", map.id, map.answer, map.start);
    if (!map.label.empty() && map.label != map.answer) caption += "  is " + map.label;
    dataset::Image picture = relevance_picture(display, relevance_plane(feature, relevance), caption);
    map.kind = "image";
    map.file = "map-" + as_file_name(map.id) + ".png";
    dataset::write_png(folder_.file(map.file), picture.height, picture.width, picture.channels, picture.pixels);
  }

  static void add(Map& map, const std::string& kind, std::vector<NamedRelevance> parts) {
    if (map.kind.empty()) map.kind = kind;
    map.parts.insert(map.parts.end(), std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end()));
  }

  const Judged& judged_;
  const dataset::Dataset& data_;
  const RunFolder& folder_;
};

Findings find(const Common& common, const ExplainOptions& options, const Judged& judged, const NamedTarget& target,
              std::vector<model::Layer> layers) {
  Findings found;
  found.layers = std::move(layers);
  observers::Predictions predictions(judged.settings, false);
  observers::ImportanceSettings settings{method_of(options), whose(options, target.target), options.tap == "pre"};
  found.importance = std::make_unique<Importance>(judged.subject, judged.settings, found.layers, settings);
  if (found.importance->groups() > 1) found.classes = judged.settings.classes;
  stream::PassResult done =
      stream::run_pass(judged.subject, {&predictions, found.importance.get()}, pass_options(common));
  auto answers = done.collected[0].fold(predictions);
  found.result = observers::finish(predictions, dynamic_cast<const observers::PredictionState&>(*answers));
  found.state = done.collected[1].fold(*found.importance);
  found.seconds = done.seconds;
  found.interrupted = done.interrupted;
  return found;
}

void require_some(const ExplainOptions& options, const Findings& found) {
  if (found.inputs() > 0) return;
  if (found.sums().not_finite > 0)
    throw InputError(
        fmt::format("relevance is not a finite number on any of {}", counted(found.sums().not_finite, "input")),
        "Try --float64 or --rule epsilon.");
  throw InputError(fmt::format("none of {} {}", counted(found.result.samples, "input"),
                               !options.on.empty()          ? "fails in the way that --on asks for"
                               : options.answers == "wrong" ? "is answered wrong"
                                                            : "is answered right"),
                   "--answers all explains every answer.");
}

Json units_json(const Findings& found, size_t layer, const ExplainOptions& options) {
  std::vector<double> total = found.scores(layer);
  std::vector<std::vector<double>> by_class;
  for (size_t c = 0; c < found.classes.size(); ++c) by_class.push_back(found.scores(layer, int64_t(c)));
  Json units = Json::array();
  const double start = found.starts() / double(found.inputs());
  for (int64_t unit : observers::most_important(found.sums(), layer, options.top)) {
    Json row = {{"unit", model::unit_name(found.layers[layer], unit)},
                {"score", number(total[size_t(unit)])},
                {"share", number(share_of(total[size_t(unit)], start))}};
    if (!by_class.empty()) row["per_class"] = Json::array();
    for (size_t c = 0; c < by_class.size(); ++c)
      if (found.inputs(int64_t(c)) > 0)
        row["per_class"].push_back({{"class", found.classes[c]}, {"score", number(by_class[c][size_t(unit)])}});
    units.push_back(std::move(row));
  }
  return units;
}

Json classes_json(const Findings& found, size_t layer, const ExplainOptions& options) {
  Json classes = Json::array();
  for (size_t c = 0; c < found.classes.size(); ++c) {
    const auto group = int64_t(c);
    if (found.inputs(group) == 0) continue;
    std::vector<double> scores = found.scores(layer, group);
    Json units = Json::array();
    for (int64_t unit : observers::most_important(found.sums(), layer, options.top, group))
      units.push_back({{"unit", model::unit_name(found.layers[layer], unit)}, {"score", number(scores[size_t(unit)])}});
    classes.push_back({{"class", found.classes[c]}, {"inputs", found.inputs(group)}, {"units", std::move(units)}});
  }
  return classes;
}

Json map_json(const Map& map) {
  Json json = {{"input", map.id},
               {"sample", map.sample},
               {"answer", map.answer},
               {"label", map.label.empty() ? Json(nullptr) : Json(map.label)},
               {"start", number(map.start)},
               {"absorbed", number(map.absorbed)},
               {"kind", map.kind},
               {"file", map.file.empty() ? Json(nullptr) : Json(map.file)}};
  if (map.kind == "image") return json;
  json["parts"] = Json::array();
  for (const NamedRelevance& part : map.parts)
    json["parts"].push_back({{"name", part.name}, {"relevance", number(part.relevance)}});
  return json;
}

Json explain_json(const ExplainOptions& options, const Findings& found) {
  Json json = {
      {"method", options.method},
      {"rule", options.method == "lrp" ? Json(explain::rules_text(explain::parse_rules(options.rule))) : Json()},
      {"on", options.on.empty() ? Json(nullptr) : Json(options.on)},
      {"answers", options.on.empty() ? options.answers : "wrong"},
      {"tap", options.tap},
      {"inputs", found.result.samples},
      {"explained", found.inputs()},
      {"not_finite", found.sums().not_finite},
      {"start", number(found.starts() / double(found.inputs()))},
      {"absorbed", number(share_of(found.sums().absorbed, found.starts()))},
      {"layers", Json::array()},
      {"maps", Json::array()}};
  for (size_t l = 0; l < found.layers.size(); ++l) {
    double kept = observers::importance_of(found.sums(), l).sum().item<double>();
    json["layers"].push_back({{"name", found.layers[l].name},
                              {"count", found.layers[l].units},
                              {"kept", number(share_of(kept, found.starts()))},
                              {"units", units_json(found, l, options)},
                              {"classes", classes_json(found, l, options)}});
  }
  for (const Map& map : found.maps) json["maps"].push_back(map_json(map));
  json["seconds"] = found.seconds;
  return json;
}

void write_table(const std::string& path, const Findings& found) {
  write_file(path, [&](std::ostream& out) {
    out << "layer,unit,rank,score";
    for (const std::string& name : found.classes) out << "," << observers::csv_field(name);
    out << "\n";
    for (size_t l = 0; l < found.layers.size(); ++l) {
      std::vector<double> total = found.scores(l);
      std::vector<std::vector<double>> by_class;
      for (size_t c = 0; c < found.classes.size(); ++c) by_class.push_back(found.scores(l, int64_t(c)));
      int64_t rank = 0;
      for (int64_t unit : observers::most_important(found.sums(), l, found.layers[l].units)) {
        out << fmt::format("{},{},{},{:.9g}", observers::csv_field(found.layers[l].name),
                           observers::csv_field(model::unit_name(found.layers[l], unit)), ++rank, total[size_t(unit)]);
        for (const auto& scores : by_class) out << fmt::format(",{:.9g}", scores[size_t(unit)]);
        out << "\n";
      }
    }
  });
}

/// The class that a unit speaks for most.
std::string strongest_class(const Findings& found, size_t layer, int64_t unit) {
  double most = -INFINITY;
  std::string name;
  for (size_t c = 0; c < found.classes.size(); ++c) {
    if (found.inputs(int64_t(c)) == 0) continue;
    double score = found.sums().sums[layer][int64_t(c)][unit].item<double>() / double(found.inputs(int64_t(c)));
    if (score > most) most = score, name = fmt::format("{} ({:.3g})", found.classes[c], score);
  }
  return name;
}

void print_layer(const Findings& found, size_t layer, int64_t top) {
  std::vector<double> scores = found.scores(layer);
  const double start = found.starts() / double(found.inputs());
  double kept = observers::importance_of(found.sums(), layer).sum().item<double>();
  size_t width = 6;
  std::vector<int64_t> first = observers::most_important(found.sums(), layer, top);
  for (int64_t unit : first) width = std::max(width, model::unit_name(found.layers[layer], unit).size());
  width = std::min<size_t>(width, 40);
  fmt::print(
      "\n        {:<{}}   relevance   of the logit   most for{:>10}{} units, {:.0f} % of the logit passes here\n",
      printable(found.layers[layer].name), width, "", found.layers[layer].units, 100 * share_of(kept, found.starts()));
  for (size_t i = 0; i < first.size(); ++i)
    fmt::print("  {:>4}  {:<{}}   {:>9.4g}      {:>6.1f} %     {}\n", i + 1,
               printable(model::unit_name(found.layers[layer], first[i])), width, scores[size_t(first[i])],
               100 * share_of(scores[size_t(first[i])], start), printable(strongest_class(found, layer, first[i])));
}

/// Words or columns of an input in a line: what speaks for the answer, then what speaks against it.
void print_map(const Map& map, const std::string& folder) {
  fmt::print("  {:<12}  {}{}  {:.4g}", printable(map.id), printable(map.answer),
             map.label.empty() || map.label == map.answer ? "" : fmt::format(" (is {})", printable(map.label)),
             map.start);
  if (!map.file.empty()) fmt::print("   {}/{}", folder, map.file);
  fmt::print("\n");
  if (map.parts.empty()) return;
  constexpr size_t most = 24;
  std::vector<std::string> words;
  for (size_t i = 0; i < std::min(map.parts.size(), most); ++i)
    words.push_back(fmt::format("{} {:+.3g}", printable(map.parts[i].name), map.parts[i].relevance));
  fmt::print("                {}{}\n", join(words, map.kind == "tokens" ? "  " : ", "),
             map.parts.size() > most ? fmt::format("  … {} more", map.parts.size() - most) : "");
}

void print_found(const ExplainOptions& options, const Judged& judged, const NamedTarget& target, const Findings& found,
                 const std::string& folder) {
  fmt::print("{}  on {}{}\n", judged.subject.model_name, judged.subject.data->info().spec,
             target.text.empty() ? "" : ", " + target.words);
  std::string how = options.method == "lrp"
                        ? fmt::format("relevance by rule {}", explain::rules_text(explain::parse_rules(options.rule)))
                    : options.method == "gradient" ? std::string("gradient × activation")
                                                   : fmt::format("integrated gradients in {} steps", options.steps);
  fmt::print("  {}   {} of {} explained{}   mean logit {:.4g}   {:.2f} s\n", how, with_commas(found.inputs()),
             counted(found.result.samples, "input"), options.on.empty() ? " (" + options.answers + " answers)" : "",
             found.starts() / double(found.inputs()), found.seconds);
  fmt::print("  {:.1f} % of it stays with biases and other constants above the layers shown\n",
             100 * share_of(found.sums().absorbed, found.starts()));
  if (found.sums().not_finite > 0)
    fmt::print("  {} left out: numbers that are not finite\n", counted(found.sums().not_finite, "input"));
  constexpr size_t most = 12;
  for (size_t l = 0; l < std::min(found.layers.size(), most); ++l)
    print_layer(found, l, found.layers.size() > 4 ? std::min<int64_t>(options.top, 5) : options.top);
  if (found.layers.size() > most)
    fmt::print("\n        … and {} more layers (--json has all)\n", found.layers.size() - most);
  if (!found.maps.empty()) fmt::print("\n  single inputs: what was answered, its logit\n");
  for (const Map& map : found.maps) print_map(map, folder);
}

int refuse(const Common& common, const checkup::Preflight& preflight, const std::string& model) {
  if (common.json)
    print_json({{"preflight", preflight_json(preflight)},
                {"findings", Json::array({blocker_json(*preflight.blocker, "netmend explain " + model)})}});
  return 1;
}

}  // namespace

int explain(const Common& common, const ExplainOptions& options) {
  explain::Options how = method_of(options);  // a slip of the finger shows before the work
  Case about = open_case(common, options);
  Judged& judged = about.judged;
  std::vector<model::Layer> layers =
      localise::candidates(stream::find_layers(judged.subject), judged.subject.graph, judged.settings.head,
                           judged.settings.outputs, options.layers);
  NamedTarget target = parse_target(options.on, judged.settings, *about.data);
  const std::vector<int64_t> mapped = chosen_inputs(options, *about.data);
  checkup::Preflight preflight = examine(common, options, about);
  if (!common.json) print_preflight(preflight, judged.settings.metric);
  if (preflight.blocker && !options.anyway) return refuse(common, preflight, judged.subject.model_name);
  Plan plan = plan_pass(common, options, about, how.method == explain::Method::kIntegrated ? 3 * options.steps : 5);
  judged.subject.data = plan.data;
  if (plan.data != about.data) target = parse_target(options.on, judged.settings, *plan.data);

  Findings found = find(common, options, judged, target, std::move(layers));
  if (found.interrupted && found.inputs() == 0) return say(common, "stopped before anything was found"), 130;
  require_some(options, found);
  RunFolder folder(common.out, "explain", common.arguments);
  found.maps = Mapping(judged, *about.data, folder).run(mapped, how);
  write_table(folder.file("importance.csv"), found);
  folder.note_file(judged.subject.model_name);
  for (const std::string& file : plan.data->info().files) folder.note_file(file);
  folder.note("data", plan.data->info().spec);
  Json json = explain_json(options, found);
  json["of"] = plan.whole;
  json["model"] = judged.subject.model_name;
  json["data"] = plan.data->info().spec;
  json["preflight"] = preflight_json(preflight);
  json["run"] = folder.path();
  write_file(folder.file("explain.json"), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  folder.finish(common.seed, found.seconds, found.interrupted ? 130 : 0);
  if (common.json) {
    print_json(json);
  } else {
    print_found(options, judged, target, found, folder.path());
    fmt::print("\n  every unit, by class: {}/importance.csv\n", folder.path());
  }
  if (found.interrupted)
    say(common, fmt::format("stopped: this is the result of the first {} inputs", with_commas(found.result.samples)));
  return found.interrupted ? 130 : 0;
}

}  // namespace netmend::app
