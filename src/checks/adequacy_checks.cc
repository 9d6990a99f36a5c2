// What training data drives higher than any test does.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "checks/observed.h"
#include "checks/results.h"
#include "checks/rows.h"
#include "findings/phrases.h"

namespace netmend::checks {
namespace {

using findings::Certainty;

constexpr size_t kTold = 3;             ///< units with a finding of their own
constexpr double kManyUnits = 0.1;      ///< of all: then tests and training differ in kind
constexpr double kOftenReached = 0.02;  ///< of training inputs: worth a finding of its own

}  // namespace

void check_untested(Observed& seen, Results& out) {
  if (!seen.adequacy) return;
  const adequacy::Assessment& tests = *seen.adequacy;
  if (!tests.highs_judged)
    return out.skip("units that tests never activate as strongly as training data does", "more tests");
  const auto low = int64_t(tests.low_units.size()), units = seen.space->units();
  if (low == 0)
    out.pass("tests reach what training reaches",
             units == 1 ? "the only unit" : fmt::format("all {} units", with_commas(units)));
  if (double(low) > kManyUnits * double(units))
    out.add(findings::make("untested-units", "", seen.words({{"n", with_commas(low)}, {"of", with_commas(units)}}), {},
                           Certainty::kLikely, fmt::format("{} of {} units", with_commas(low), with_commas(units)),
                           fmt::format("For {} of {}, more training inputs than chance explains have a higher "
                                       "activation than any test.",
                                       with_commas(low), findings::counted(units, "unit"))));
  std::vector<observers::LowUnit> most = tests.low_units;
  std::stable_sort(most.begin(), most.end(), [](const auto& a, const auto& b) { return a.higher > b.higher; });
  size_t told = 0;
  for (const observers::LowUnit& unit : most) {
    const double share = double(unit.higher) / double(seen.train->data->size());
    // Of large training data not all are kept that go higher.
    const bool often = share >= kOftenReached || unit.higher == observers::Peaks::kKept;
    if (told++ >= kTold || !often) break;
    const std::string name = seen.space->name(unit.unit),
                      least = unit.higher == observers::Peaks::kKept ? "at least " : "";
    auto finding = findings::make(
        "untested-region", name, seen.words({{"unit", name}}), {}, Certainty::kLikely,
        fmt::format("{}{} {} this unit higher than any test does", least,
                    findings::counted(unit.higher, "training input"), unit.higher == 1 ? "drives" : "drive"),
        fmt::format("The activation of {} reaches {} on training data, {} on tests; {}{} {} it higher than any test "
                    "does.",
                    name, findings::plain(unit.training), findings::plain(unit.tests), least,
                    findings::counted(unit.higher, "training input"), unit.higher == 1 ? "drives" : "drive"));
    for (size_t i = 0; i < std::min<size_t>(12, unit.samples.size()); ++i)
      finding.inputs.push_back({"train", unit.samples[i]});
    finding.value = share;
    out.add(std::move(finding));
  }
}

}  // namespace netmend::checks
