#include "netmend/check_compare.h"

#include <cmath>

#include "base/text.h"
#include "netmend/paired.h"
#include "netmend/show.h"

namespace netmend::app {
namespace {

using findings::Effect;
using findings::Sureness;
using observers::FlipCount;

std::string points(const stats::Estimate& change) {
  return fmt::format("{:+.1f} points ({:+.1f} to {:+.1f})", 100 * change.value, 100 * change.low, 100 * change.high);
}

std::vector<findings::Shown> broken_inputs(const Compared& compared, double label) {
  std::vector<findings::Shown> shown;
  for (const Flipped& flip : compared.list)
    if (flip.change == observers::Change::kBroken && (label < 0 || flip.label == label) && shown.size() < 12)
      shown.push_back({"test", flip.sample});
  return shown;
}

Json row_of(const std::string& name, const FlipCount& count) {
  return {{"name", name}, {"fixed", count.fixed}, {"broken", count.broken}, {"change", estimate_json(count.change())}};
}

}  // namespace

Json compare_with(const Common& common, const CaseOptions& options, Case& about, const std::string& path, CheckView& view) {
  Reference reference = open_reference(common, options, about, path);
  Compared compared = run_both(common, about, reference, false);
  const FlipCount& whole = compared.flips.whole();
  const stats::Estimate change = whole.change();
  const findings::Words words{{"case", view.words}, {"reference", path}};
  if (change.high < 0) {
    auto finding = findings::make("regressed", "", words, {-change.value, 0}, Sureness::kSure,
                                  fmt::format("{} broken, {} fixed", whole.broken, whole.fixed),
                                  fmt::format("Against {}: {} broken, {} fixed of {} inputs, {}.", path, whole.broken, whole.fixed,
                                              with_commas(whole.samples), points(change)));
    finding.inputs = broken_inputs(compared, -1);
    view.findings.push_back(std::move(finding));
  } else {
    view.passed.push_back({"no worse than " + path, fmt::format("{} broken, {} fixed, {}", whole.broken, whole.fixed, points(change))});
  }
  const auto& per_class = compared.flips.per_class();
  const auto& classes = about.judged.settings.classes;
  for (size_t c = 0; c < per_class.size() && c < classes.size(); ++c) {
    const FlipCount& count = per_class[c];
    const stats::Estimate own = count.samples > 0 ? count.change() : stats::Estimate{};
    // Of many classes some lose by chance.
    const double chance = stats::sign_test(count.fixed, count.broken) * double(per_class.size());
    if (count.samples == 0 || own.high >= 0 || chance > 0.05 || -own.value < 0.01) continue;
    findings::Words more = words;
    more["class"] = classes[c];
    auto finding = findings::make("regressed-class", classes[c], more, {-own.value * double(count.samples) / double(std::max<int64_t>(1, whole.samples)), -own.value},
                                  Sureness::kSure, fmt::format("{} broken, {} fixed", count.broken, count.fixed),
                                  fmt::format("{:.1f} → {:.1f} % of {} inputs, {}: {} broken, {} fixed. Overall {}.",
                                              100.0 * double(count.right_before) / double(count.samples),
                                              100.0 * double(count.right_after) / double(count.samples), with_commas(count.samples), points(own),
                                              count.broken, count.fixed, points(change)));
    finding.inputs = broken_inputs(compared, double(c));
    view.findings.push_back(std::move(finding));
  }
  Json json = {{"reference", reference.name}, {"fixed", whole.fixed}, {"broken", whole.broken}, {"change", estimate_json(change)},
               {"verdict", verdict_words(observers::judge_change(change, 0.005))}, {"per_class", Json::array()}, {"groups", Json::array()}, {"flips", Json::array()}};
  for (size_t c = 0; c < per_class.size() && c < classes.size(); ++c)
    if (per_class[c].samples > 0) json["per_class"].push_back(row_of(classes[c], per_class[c]));
  for (const auto& group : compared.flips.groups()) json["groups"].push_back(row_of(group.column + "=" + group.value, group.count));
  for (const Flipped& flip : compared.list)
    json["flips"].push_back({{"sample", flip.sample}, {"fixed", flip.change == observers::Change::kFixed}});
  return json;
}

}  // namespace netmend::app
