// netmend explain: which units of each layer predictions come from, and which parts of single inputs.
#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "evidence/explanation.h"
#include "evidence/json.h"
#include "netmend/show.h"

namespace netmend::app {
namespace {

using evidence::Explanation;

void print_layer(const evidence::ExplainedLayer& layer, size_t top, bool classes) {
  size_t width = 6;
  const size_t shown = std::min(top, layer.top.size());
  for (size_t i = 0; i < shown; ++i) width = std::max(width, layer.top[i].name.size());
  width = std::min<size_t>(width, 40);
  fmt::print("\n  {}   {}, {:.0f} % of the logit passes here\n", printable(layer.name), counted(layer.units, "unit"),
             100 * layer.kept);
  fmt::print("        {:<{}}   relevance   of the logit   {}\n", "unit", width, classes ? "most for" : "");
  for (size_t i = 0; i < shown; ++i) {
    const evidence::ExplainedUnit& unit = layer.top[i];
    fmt::print(
        "  {:>4}  {:<{}}   {:>9.4g}      {:>6.1f} %     {}\n", i + 1, printable(unit.name), width, unit.score,
        100 * unit.share,
        unit.strongest.empty() ? "" : fmt::format("{} ({:.3g})", printable(unit.strongest), unit.strongest_score));
  }
}

/// Words or columns of an input in a line: positive relevance for the prediction first, then negative.
void print_map(const evidence::InputMap& map, const std::string& folder) {
  fmt::print("  {:<12}  {}{}  {:.4g}", printable(map.id), printable(map.predicted),
             map.label.empty() || map.label == map.predicted ? "" : fmt::format(" (is {})", printable(map.label)),
             map.start);
  if (!map.file.empty()) fmt::print("   {}/{}", folder, map.file);
  fmt::print("\n");
  if (map.parts.empty()) return;
  constexpr size_t kShown = 24;
  std::vector<std::string> words;
  for (size_t i = 0; i < std::min(map.parts.size(), kShown); ++i)
    words.push_back(fmt::format("{} {:+.3g}", printable(map.parts[i].name), map.parts[i].relevance));
  fmt::print("                {}{}\n", join(words, map.kind == "tokens" ? "  " : ", "),
             map.parts.size() > kShown ? fmt::format("  … {} more", map.parts.size() - kShown) : "");
}

void print_explanation(const ExplainOptions& options, const Explanation& found, const std::string& folder) {
  fmt::print("{}  on {}{}\n", printable(found.model), printable(found.data),
             found.target.empty() ? "" : ", " + printable(found.target));
  fmt::print("  {}   {} of {} explained{}   mean logit {:.4g}   {:.2f} s\n", found.how, with_commas(found.explained),
             counted(found.inputs, "input"), options.on.empty() ? " (" + options.predictions + " predictions)" : "",
             found.start, found.seconds);
  fmt::print("  {:.1f} % of it stays with biases and other constants above the layers shown\n", 100 * found.absorbed);
  if (found.not_finite > 0) fmt::print("  {} left out: NaN or Inf\n", counted(found.not_finite, "input"));
  constexpr size_t kShown = 12;
  const auto top = size_t(found.layers.size() > 4 ? std::min<int64_t>(options.top, 5) : options.top);
  for (size_t l = 0; l < std::min(found.layers.size(), kShown); ++l)
    print_layer(found.layers[l], top, !found.classes.empty());
  if (found.layers.size() > kShown)
    fmt::print("\n        … and {} more layers (--json has all)\n", found.layers.size() - kShown);
  if (!found.maps.empty()) fmt::print("\n  single inputs: what was predicted, its logit\n");
  for (const evidence::InputMap& map : found.maps) print_map(map, folder);
}

}  // namespace

int explain(const Common& common, const ExplainOptions& options) {
  const evidence::ExplainRequest request{options.method,       options.rule,   options.on,  options.predictions,
                                         options.layers,       options.inputs, options.top, options.steps,
                                         options.tap == "pre", options.float64};
  evidence::check_request(request);  // a slip of the finger shows before the work
  session::Session session(request_of(common, options));
  Examined examined = examine(common, options, session, "explain");
  if (examined.stop) return *examined.stop;
  Explanation found = evidence::explain(session, request);
  RunFolder& folder = session.folder("explain");
  found.document["preflight"] = evidence::preflight_json(examined.preflight);
  found.document["run"] = folder.path();
  write_file(folder.file("explain.json"), evidence::dump(found.document, 2));
  const int status = found.interrupted ? 130 : 0;
  session.finish(found.seconds, status);
  if (common.json) {
    print_json(found.document);
  } else {
    print_explanation(options, found, folder.path());
    fmt::print("\n  every unit, by class: {}/importance.csv\n", folder.path());
  }
  if (status) say(common, fmt::format("stopped: this is of the first {} inputs", with_commas(found.inputs)));
  return status;
}

}  // namespace netmend::app
