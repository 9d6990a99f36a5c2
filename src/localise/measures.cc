#include "localise/measures.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace netmend::localise {
namespace {

/// Shares of failing and of passing inputs on which the unit is active.
double failing(const Counts& c) { return c.af / (c.af + c.nf); }
double passing(const Counts& c) { return c.as / (c.as + c.ns); }

using C = const Counts&;
using X = const Context&;

// DeepCover's Tarantula has n_s instead of a_s, a printed Ochiai all four counts above the line: both are slips.
constexpr Measure kMeasures[] = {
    {"ochiai", [](C c, X) { return c.af / std::sqrt((c.af + c.nf) * (c.af + c.as)); }, "af / √((af + nf)(af + as))",
     "Ochiai 1957; Abreu et al. 2006"},
    {"tarantula", [](C c, X) { return failing(c) / (failing(c) + passing(c)); }, "(af/F) / (af/F + as/S)",
     "Jones and Harrold 2005"},
    {"dstar", [](C c, X x) { return std::pow(c.af, x.star) / (c.as + c.nf); },
     "af^star / (as + nf), star 3 unless dstarN says otherwise", "Wong et al. 2014"},
    {"jaccard", [](C c, X) { return c.af / (c.af + c.nf + c.as); }, "af / (af + nf + as)", "Chen et al. 2002"},
    {"barinel", [](C c, X) { return 1 - c.as / (c.as + c.af); }, "1 − as / (as + af)", "Abreu et al. 2009"},
    {"op2", [](C c, X) { return c.af - c.as / (c.as + c.ns + 1); }, "af − as / (S + 1)", "Naish et al. 2011"},
    {"zoltar", [](C c, X) { return c.af / (c.af + c.nf + c.as + 10000 * c.nf * c.as / c.af); },
     "af / (af + nf + as + 10000 nf as / af)", "Janssen et al. 2009"},
    {"wong2", [](C c, X) { return c.af - c.as; }, "af − as", "Wong et al. 2007"},
    {"gradient", nullptr, "mean of activation × gradient of the loss, failing − passing inputs",
     "first-order effect of the unit on the loss", Measure::kGradient},
    {"ablation", nullptr, "loss saved by the best of four ablations: zero, mean, sign-flip, refit",
     "Morcos et al. 2018, plus sign-flip and refit", Measure::kAblation},
    {"auto", nullptr,
     "ablation and gradient, each as a share of its highest score, added; units without weights come first",
     "calibrated on planted faults", Measure::kAblation},
    {"muse", nullptr, "mean over a unit's mutants of f2p/F − α p2f/P, α the ratio of both over all mutants",
     "Moon et al. 2014; deepmufl 2023", Measure::kMutation},
    {"muse-published", nullptr,
     "as deepmufl's program has it: mean of |f2p/F − α p2f/P|, α of each layer the product of both shares that any "
     "mutant of it turns",
     "deepmufl 2023", Measure::kMutation},
    {"metallaxis", nullptr, "largest f / √((f + p) F) of a unit's mutants: failures that change, passes that break",
     "Papadakis and Le Traon 2015; deepmufl 2023", Measure::kMutation},
    {"random", [](C, X x) { return x.draw; }, "a number drawn at random", "the random baseline"},
};

}  // namespace

std::span<const Measure> measures() { return kMeasures; }

std::string Choice::name() const {
  bool plain = measure->name != "dstar" || star == 3;
  return plain ? std::string(measure->name) : fmt::format("{}{:g}", measure->name, star);
}

namespace {

/// The exponent of `dstar2`, `dstar:2.5`, `d*`, `d*2`; below 0 when it is something else.
double star_of(std::string_view name) {
  for (std::string_view head : {"dstar", "d*"}) {
    if (!name.starts_with(head)) continue;
    std::string_view rest = name.substr(head.size());
    if (rest.starts_with(":")) rest.remove_prefix(1);
    double star = 3;
    if (rest.empty() || (parse_double(rest, star) && star > 0 && star <= 100)) return star;
  }
  return -1;
}

}  // namespace

std::string measure_names() {
  std::vector<std::string> names;
  for (const Measure& measure : kMeasures) names.emplace_back(measure.name);
  return join(names, ", ");
}

Choice find_measure(const std::string& name) {
  std::string asked = lower(name);
  if (asked == "counterfactual") asked = "ablation";
  double star = star_of(asked);
  std::vector<std::string> names;
  for (const Measure& measure : kMeasures) {
    if (measure.name == asked || (star > 0 && measure.name == "dstar")) return {&measure, star > 0 ? star : 3};
    names.emplace_back(measure.name);
  }
  throw InputError(fmt::format("there is no measure `{}`{}", printable(name), did_you_mean(asked, names)),
                   fmt::format("Choose from {}, dstarN for another exponent, and all.", join(names, ", ")));
}

std::vector<Choice> choices_of(const std::string& name) {
  const bool all = lower(name) == "all";
  std::vector<Choice> choices{find_measure(all ? "auto" : name)};
  for (const Measure& measure : kMeasures) {
    if (measure.name == choices[0].measure->name) continue;
    if (all || (measure.of == Measure::kCounts && measure.name != "random")) choices.push_back({&measure});
  }
  return choices;
}

void finite_scores(std::span<double> scores) {
  double largest = 0;
  for (double& score : scores) {
    if (std::isnan(score)) score = 0;
    if (std::isfinite(score)) largest = std::max(largest, score);
  }
  for (double& score : scores)
    if (std::isinf(score)) score = score > 0 ? largest + 1 : 0;
}

}  // namespace netmend::localise
