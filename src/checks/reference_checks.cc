// What got worse than in a reference: another model, an earlier run, or a baseline.
#include <cmath>

#include "base/text.h"
#include "checks/observed.h"
#include "checks/results.h"
#include "checks/rows.h"
#include "compare/paired.h"
#include "findings/phrases.h"
#include "observers/figures.h"

namespace netmend::checks {
namespace {

using findings::Certainty;
using observers::FlipCount;
using observers::points_text;
using Json = nlohmann::ordered_json;

/// `1 regression, 1,204 fixes`
std::string flips_text(const FlipCount& count) {
  return fmt::format("{}, {}", findings::counted(count.broken, "regression"),
                     findings::counted(count.fixed, "fix", "fixes"));
}

std::vector<findings::Shown> regressions(const compare::Comparison& compared, double label) {
  std::vector<findings::Shown> shown;
  for (const compare::Flip& flip : compared.list)
    if (flip.change == observers::Change::kBroken && (label < 0 || flip.label == label) && shown.size() < 12)
      shown.push_back({"test", flip.sample});
  return shown;
}

Json row_of(const std::string& name, const FlipCount& count) {
  return {{"name", name},
          {"fixed", count.fixed},
          {"broken", count.broken},
          {"change", observers::estimate_json(count.change())}};
}

Json comparison_json(const Observed& seen, const std::string& reference, const compare::Comparison& compared) {
  const FlipCount& whole = compared.flips.whole();
  const auto& per_class = compared.flips.per_class();
  const auto& classes = seen.settings.classes;
  Json json = {{"reference", reference},
               {"fixed", whole.fixed},
               {"broken", whole.broken},
               {"change", observers::estimate_json(whole.change())},
               {"verdict", verdict_words(observers::judge_change(whole.change(), 0.005))},
               {"per_class", Json::array()},
               {"groups", Json::array()},
               {"flips", Json::array()}};
  for (size_t c = 0; c < per_class.size() && c < classes.size(); ++c)
    if (per_class[c].samples > 0) json["per_class"].push_back(row_of(classes[c], per_class[c]));
  for (const auto& group : compared.flips.groups())
    json["groups"].push_back(row_of(group.column + "=" + group.value, group.count));
  for (const compare::Flip& flip : compared.list)
    json["flips"].push_back({{"sample", flip.sample},
                             {"fixed", flip.change == observers::Change::kFixed},
                             {"confidence_before", observers::number_json(flip.confidence_before)}});
  return json;
}

std::string with_sign(double value) { return (value > 0 ? "+" : "") + findings::plain(value); }

/// Of numbers the mean error tells, not how many of them moved a little.
void check_numbers(Observed& seen, Results& out) {
  const compare::Comparison& compared = *seen.comparison;
  const stats::Estimate change = compared.flips.error_change();
  const std::string& path = seen.reference->name;
  const std::string text = fmt::format("mean absolute error changes by {} ({} to {})", with_sign(change.value),
                                       with_sign(change.low), with_sign(change.high));
  if (!(change.low > 0)) return out.pass("no worse than " + path, text);
  double now = 0;
  for (const observers::Before& prediction : compared.newer.predictions)
    now += std::isfinite(prediction.error) ? prediction.error / double(compared.newer.predictions.size()) : 0;
  const double before = std::max(now - change.value, 1e-12);
  auto finding = findings::make(
      "regressed", "", seen.words({{"reference", path}}), {std::min(1.0, change.value / before), 0},
      Certainty::kConfirmed, text,
      fmt::format("Against {}: {} on {}.", path, text, findings::counted(compared.flips.whole().samples, "input")));
  finding.inputs = regressions(compared, -1);
  out.add(std::move(finding));
}

}  // namespace

void check_reference(Observed& seen, Results& out) {
  const compare::Comparison& compared = *seen.comparison;
  if (seen.settings.task == observers::Task::kNumber && seen.settings.tolerance < 0) return check_numbers(seen, out);
  const FlipCount& whole = compared.flips.whole();
  const stats::Estimate change = whole.change();
  const std::string& path = seen.reference->name;
  const findings::Words words = seen.words({{"reference", path}});
  if (change.high < 0) {
    auto finding = findings::make("regressed", "", words, {-change.value, 0}, Certainty::kConfirmed, flips_text(whole),
                                  fmt::format("Against {}: {} on {}; accuracy changes by {}.", path, flips_text(whole),
                                              findings::counted(whole.samples, "input"), points_text(change)));
    finding.inputs = regressions(compared, -1);
    out.add(std::move(finding));
  } else {
    out.pass("no worse than " + path, fmt::format("{}, {}", flips_text(whole), points_text(change)));
  }
  const auto& per_class = compared.flips.per_class();
  const auto& classes = seen.settings.classes;
  for (size_t c = 0; c < per_class.size() && c < classes.size(); ++c) {
    const FlipCount& count = per_class[c];
    const stats::Estimate own = count.samples > 0 ? count.change() : stats::Estimate{};
    // Of many classes some lose by chance.
    const double chance = stats::sign_test(count.fixed, count.broken) * double(per_class.size());
    if (count.samples == 0 || own.high >= 0 || chance > 0.05 || -own.value < 0.01) continue;
    findings::Words more = words;
    more["class"] = classes[c];
    auto finding =
        findings::make("regressed-class", classes[c], more,
                       {-own.value * double(count.samples) / double(std::max<int64_t>(1, whole.samples)), -own.value},
                       Certainty::kConfirmed, flips_text(count),
                       fmt::format("Recall falls from {} to {} on {}, {}: {}. Over all classes accuracy changes by {}.",
                                   findings::percent(double(count.right_before) / double(count.samples)),
                                   findings::percent(double(count.right_after) / double(count.samples)),
                                   findings::counted(count.samples, "input"), points_text(own), flips_text(count),
                                   points_text(change)));
    finding.inputs = regressions(compared, double(c));
    out.add(std::move(finding));
  }
  out.comparison = comparison_json(seen, path, compared);
}

}  // namespace netmend::checks
