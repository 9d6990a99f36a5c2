// Surgical repair: the weights of a few located units, everything else as it was, and the fewest units that do the job.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"
#include "findings/phrases.h"
#include "localise/blame.h"
#include "localise/candidates.h"
#include "repair/methods.h"
#include "repair/unit_fit.h"

namespace netmend::repair {
namespace {

using localise::UnitPlace;

/// The most suspicious units, by ablation and gradient on the search part.
std::vector<UnitPlace> suspects(const Problem& problem, int64_t count, Budget& budget) {
  std::vector<model::Layer> layers =
      localise::candidates(problem.layers, problem.subject.graph, problem.settings.head, problem.settings.outputs);
  std::erase_if(layers, [](const model::Layer& layer) { return layer.merged != model::Merged::kNo; });
  if (layers.empty()) return {};
  const stream::Subject part = edited(problem, {}, &problem.parts.search);
  localise::BlameOptions how;
  how.choices = {localise::find_measure("auto")};
  how.top = count, how.resamples = 0, how.seed = problem.seed;
  how.pass.jobs = problem.jobs, how.pass.quiet = true;
  how.target = problem.target;
  Budget share = budget.part(0.5);
  how.ablation.budget = &share;
  // Lists of inputs speak of the whole data.
  auto renumber = [&](const std::function<bool(int64_t)>& may) -> std::function<bool(int64_t)> {
    if (!may) return {};
    return [&problem, may](int64_t sample) { return may(problem.parts.search[size_t(sample)]); };
  };
  how.target.may_fail = renumber(problem.target.may_fail), how.target.may_pass = renumber(problem.target.may_pass);
  localise::Blame blame = localise::blame(part, problem.settings, layers, how);
  budget.spend(share);
  if (blame.interrupted) throw Interrupted{};
  std::vector<UnitPlace> found;
  if (blame.located.empty()) return found;
  for (const localise::RankedUnit& unit : blame.located[0].ranking.units) {
    if (int64_t(found.size()) == count) break;
    const UnitPlace& place = blame.places[unit.place];
    for (size_t l = 0; l < problem.layers.size(); ++l)
      if (problem.layers[l].node == layers[place.layer].node) found.push_back({l, place.unit});
  }
  return found;
}

std::vector<std::string> names_of(const Problem& problem, const std::vector<UnitPlace>& units) {
  std::vector<std::string> names;
  for (const UnitPlace& place : units) names.push_back(model::unit_name(problem.layers[place.layer], place.unit));
  return names;
}

/// `unit conv2/5 re-initialised and retrained (151 weights)`
std::string what_was_done(const Candidate& found, bool anew) {
  constexpr size_t kNamed = 2;
  const std::vector<std::string>& units = found.units;
  std::string names = units.size() == 1 ? "unit " + units[0] : fmt::format("{} units (", units.size());
  if (units.size() > 1) {
    for (size_t i = 0; i < std::min(kNamed, units.size()); ++i) names += (i ? ", " : "") + units[i];
    names += units.size() > kNamed ? ", …)" : ")";
  }
  return fmt::format("{} {} ({})", names, anew ? "re-initialised and retrained" : "fitted",
                     findings::counted(changed_values(found.edits), "weight"));
}

/// Fits from where the units stand and from nothing, an epoch each, and goes on with the better start.
Candidate fit(const Problem& problem, const std::vector<UnitPlace>& units, Budget& budget) {
  UnitFit fitting(problem, units);
  double loss[2];
  for (int anew : {0, 1}) {
    fitting.run({.budget = &budget, .most_epochs = 1, .anew = anew == 1});
    loss[anew] = fitting.loss();
  }
  const bool anew = std::isfinite(loss[1]) && loss[1] < loss[0];
  Candidate out{"surgical", "", fitting.run({.budget = &budget, .anew = anew}), names_of(problem, units), {}};
  out.words = what_was_done(out, anew);
  out.selection = evaluate(problem, out.edits, problem.parts.selection).figure;
  budget.spend(problem.work(problem.parts.selection.size()));
  return out;
}

}  // namespace

Found surgical(const Problem& problem, Budget& budget) {
  if (std::string why = why_unfittable(problem); !why.empty()) return {{}, why};
  std::vector<UnitPlace> units = problem.units.empty() ? suspects(problem, 8, budget) : problem.units;
  if (units.empty()) return {{}, "no layer has units that could be blamed"};
  Found found;
  std::vector<size_t> sizes = {units.size()};
  if (problem.units.empty()) sizes = {1, 2, 4, 8};
  // The first suspect is often the right one: it gets most of the budget.
  for (size_t i = 0; i < sizes.size() && (found.candidates.empty() || budget.left() > 0); ++i) {
    const size_t count = std::min(sizes[i], units.size());
    if (i > 0 && count == std::min(sizes[i - 1], units.size())) break;
    const double share = i + 1 == sizes.size() ? 1 : 0.5;
    Budget part = budget.part(share);
    found.candidates.push_back(fit(problem, {units.begin(), units.begin() + int64_t(count)}, part));
    budget.spend(part);
  }
  // The fewest units whose score is within one standard error of the best.
  const Candidate& best =
      *std::max_element(found.candidates.begin(), found.candidates.end(),
                        [](const auto& a, const auto& b) { return a.selection.score < b.selection.score; });
  const double enough = best.selection.score - score_error(problem, best.selection);
  auto fewest = std::find_if(found.candidates.begin(), found.candidates.end(),
                             [&](const Candidate& one) { return one.selection.score >= enough; });
  std::rotate(found.candidates.begin(), fewest, fewest + 1);
  return found;
}

}  // namespace netmend::repair
