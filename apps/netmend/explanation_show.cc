// What explains the answers, for people and for programs.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/text.h"
#include "netmend/explanation.h"
#include "netmend/show.h"
#include "observers/sample_table.h"

namespace netmend::app {
namespace {

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

/// Share of a whole; not a number where there is nothing to share.
double share_of(double part, double whole) { return whole != 0 ? part / whole : NAN; }

/// With hundreds of classes only those with most inputs are told apart here; importance.csv has all.
std::vector<int64_t> classes_told(const Explanation& found) {
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

Json units_json(const Explanation& found, size_t layer, const ExplainOptions& options) {
  std::vector<double> total = found.scores(layer);
  const std::vector<int64_t> classes = classes_told(found);
  std::vector<std::vector<double>> by_class;
  for (int64_t c : classes) by_class.push_back(found.scores(layer, c));
  Json units = Json::array();
  const double start = found.starts() / double(found.inputs());
  for (int64_t unit : observers::most_important(found.sums(), layer, options.top)) {
    Json row = {{"unit", model::unit_name(found.layers[layer], unit)},
                {"score", number(total[size_t(unit)])},
                {"share", number(share_of(total[size_t(unit)], start))}};
    if (!by_class.empty()) row["per_class"] = Json::array();
    for (size_t i = 0; i < classes.size(); ++i)
      row["per_class"].push_back(
          {{"class", found.classes[size_t(classes[i])]}, {"score", number(by_class[i][size_t(unit)])}});
    units.push_back(std::move(row));
  }
  return units;
}

Json classes_json(const Explanation& found, size_t layer, const ExplainOptions& options) {
  Json classes = Json::array();
  for (int64_t group : classes_told(found)) {
    std::vector<double> scores = found.scores(layer, group);
    Json units = Json::array();
    for (int64_t unit : observers::most_important(found.sums(), layer, options.top, group))
      units.push_back({{"unit", model::unit_name(found.layers[layer], unit)}, {"score", number(scores[size_t(unit)])}});
    classes.push_back(
        {{"class", found.classes[size_t(group)]}, {"inputs", found.inputs(group)}, {"units", std::move(units)}});
  }
  return classes;
}

Json map_json(const InputMap& map) {
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

}  // namespace

Json explanation_json(const ExplainOptions& options, const Explanation& found) {
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
  for (const InputMap& map : found.maps) json["maps"].push_back(map_json(map));
  json["seconds"] = found.seconds;
  return json;
}

void write_importance(const std::string& path, const Explanation& found) {
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

namespace {

/// The class that a unit speaks for most.
std::string strongest_class(const Explanation& found, size_t layer, int64_t unit) {
  double most = 0;  // what speaks for none is told of none
  std::string name;
  for (size_t c = 0; c < found.classes.size(); ++c) {
    if (found.inputs(int64_t(c)) == 0) continue;
    double score = found.sums().sums[layer][int64_t(c)][unit].item<double>() / double(found.inputs(int64_t(c)));
    if (score > most) most = score, name = fmt::format("{} ({:.3g})", found.classes[c], score);
  }
  return name;
}

void print_layer(const Explanation& found, size_t layer, int64_t top) {
  std::vector<double> scores = found.scores(layer);
  const double start = found.starts() / double(found.inputs());
  double kept = observers::importance_of(found.sums(), layer).sum().item<double>();
  size_t width = 6;
  std::vector<int64_t> first = observers::most_important(found.sums(), layer, top);
  for (int64_t unit : first) width = std::max(width, model::unit_name(found.layers[layer], unit).size());
  width = std::min<size_t>(width, 40);
  fmt::print("\n  {}   {}, {:.0f} % of the logit passes here\n", printable(found.layers[layer].name),
             counted(found.layers[layer].units, "unit"), 100 * share_of(kept, found.starts()));
  fmt::print("        {:<{}}   relevance   of the logit   {}\n", "unit", width,
             found.classes.empty() ? "" : "most for");
  for (size_t i = 0; i < first.size(); ++i)
    fmt::print("  {:>4}  {:<{}}   {:>9.4g}      {:>6.1f} %     {}\n", i + 1,
               printable(model::unit_name(found.layers[layer], first[i])), width, scores[size_t(first[i])],
               100 * share_of(scores[size_t(first[i])], start), printable(strongest_class(found, layer, first[i])));
}

/// Words or columns of an input in a line: what speaks for the answer, then what speaks against it.
void print_map(const InputMap& map, const std::string& folder) {
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

}  // namespace

void print_explanation(const ExplainOptions& options, const Judged& judged, const NamedTarget& target,
                       const Explanation& found, const std::string& folder) {
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
  for (const InputMap& map : found.maps) print_map(map, folder);
}

}  // namespace netmend::app
