// netmend explain: which units of each layer predictions come from, and which parts of single inputs.
#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "evidence/explanation.h"
#include "evidence/json.h"
#include "netmend/show.h"
#include "session/model_info.h"

namespace netmend::app {
namespace {

using evidence::Explanation;

/// What is explained: a class's logit, or a number that the network predicts.
std::string whole_of(const Explanation& found) { return found.classes.empty() ? "output" : "logit"; }

void print_layer(const evidence::ExplainedLayer& layer, size_t top, const Explanation& found) {
  const size_t shown = std::min(top, layer.top.size());
  const std::string whole = whole_of(found);
  print("\n  {}   {}, {:.0f} % of the {} passes here\n", printable(layer.name), counted(layer.units, "unit"),
        100 * layer.kept, whole);
  Table table{{"", "unit", "relevance", "of the " + whole, found.classes.empty() ? "" : "most for"}, "rlrrl", 2, 4};
  for (size_t i = 0; i < shown; ++i) {
    const evidence::ExplainedUnit& unit = layer.top[i];
    table.rows.push_back(
        {std::to_string(i + 1), unit.name, fmt::format("{:.4g}", unit.score), fmt::format("{:.1f} %", 100 * unit.share),
         unit.strongest.empty() ? "" : fmt::format("{} ({:.3g})", unit.strongest, unit.strongest_score)});
  }
  print_table(table);
}

/// Words or columns of an input in a line: positive relevance for the prediction first, then negative.
void print_map(const evidence::InputMap& map, const std::string& folder) {
  print("  {:<12}  {}{}  {:.4g}", printable(map.id), printable(map.predicted),
        map.label.empty() || map.label == map.predicted ? "" : fmt::format(" (label {})", printable(map.label)),
        map.start);
  if (!map.file.empty()) print("   {}/{}", folder, map.file);
  print("\n");
  if (map.parts.empty()) return;
  constexpr size_t kShown = 24;
  std::vector<std::string> words;
  size_t more = 0;  // what has no relevance at all, such as a category that the row is not of, is not worth a word
  for (const evidence::NamedRelevance& part : map.parts) {
    if (part.relevance == 0) continue;
    if (words.size() < kShown)
      words.push_back(fmt::format("{} {:+.3g}", part.name, part.relevance));
    else
      ++more;
  }
  if (more > 0) words.push_back(fmt::format("… and {} more", more));
  print_parts(words, 16);
}

void print_explanation(const ExplainOptions& options, const Explanation& found, const std::string& folder) {
  print("{}  on {}{}\n", printable(found.model), printable(found.data),
        found.target.empty() ? "" : ", " + printable(found.target));
  const std::string whole = whole_of(found);
  const bool classes = !found.classes.empty();
  print_wrapped(fmt::format("{}: how much of the {} comes from a unit or a part of the input", found.how,
                            classes ? "predicted class's logit" : "output"),
                2);
  print_parts({fmt::format("{} of {} explained{}", with_commas(found.explained), counted(found.inputs, "input"),
                           options.on.empty() && classes ? " (" + options.predictions + " predictions)" : ""),
               fmt::format("mean {} {:.4g}", whole, found.start), fmt::format("{:.2f} s", found.seconds)},
              2);
  print_wrapped(fmt::format("{:.1f} % of the {} comes from biases and other constants above the layers shown",
                            100 * found.absorbed, whole),
                2);
  if (found.not_finite > 0) print("  {} left out: NaN or Inf\n", counted(found.not_finite, "input"));
  constexpr size_t kShown = 12;
  const auto top = size_t(found.layers.size() > 4 ? std::min<int64_t>(options.top, 5) : options.top);
  for (size_t l = 0; l < std::min(found.layers.size(), kShown); ++l) print_layer(found.layers[l], top, found);
  if (found.layers.size() > kShown)
    print("\n        … and {} more layers (--json has all)\n", found.layers.size() - kShown);
  if (!found.maps.empty()) print("\n  single inputs: {}\n", classes ? "predicted class and its logit" : "output");
  for (const evidence::InputMap& map : found.maps) print_map(map, folder);
}

/// What the field uses: on images epsilon for dense layers, positive contributions for convolutions, flat for the first
/// layer; elsewhere flat would spread relevance over all words or columns alike.
std::string usual_rule(const session::Session& session) {
  const session::ModelInfo info = session::describe_model(session.model_name(), "", {});
  const bool convolutions = info.operators.count("Conv") > 0;
  const bool image = std::any_of(info.inputs.begin(), info.inputs.end(),
                                 [](const session::DeclaredValue& input) { return !input.layout.empty(); });
  return !convolutions ? "epsilon" : image ? "composite" : "dense=epsilon,conv=gamma,first=epsilon";
}

}  // namespace

int explain(const Common& common, const ExplainOptions& options) {
  evidence::ExplainRequest request{options.method,      options.rule,         options.bias,    options.on,
                                   options.predictions, options.layers,       options.inputs,  options.top,
                                   options.steps,       options.tap == "pre", options.float64, options.format == "npz"};
  evidence::check_request(request);  // a slip of the finger shows before the work
  session::Session session(request_of(common, options));
  Examined examined = examine(common, options, session, "explain");
  if (examined.stop) return *examined.stop;
  if (request.method == "lrp" && request.rule.empty()) request.rule = usual_rule(session);
  Explanation found = evidence::explain(session, request);
  RunFolder& folder = session.folder("explain");
  found.document["preflight"] = evidence::preflight_json(examined.preflight);
  found.document["run"] = folder.path();
  const int status = found.interrupted ? 130 : 0;
  mark_partial(found.document, status);
  write_file(folder.file("explain.json"), evidence::dump(found.document, 2));
  session.finish(found.seconds, status);
  if (common.json) {
    print_json(found.document);
  } else {
    print_explanation(options, found, folder.path());
    print("\n  every unit, by class: {}/importance.csv\n", folder.path());
    if (!found.arrays.empty()) print("  relevance as arrays: {}\n", found.arrays);
  }
  if (status) say(common, fmt::format("stopped: this covers only the first {}", counted(found.inputs, "input")));
  return status;
}

}  // namespace netmend::app
