#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "checkup/trial_checks.h"
#include "executor/runtime.h"

namespace netmend::checkup {
namespace {

using findings::Sureness;

constexpr size_t kTold = 3;             ///< units with a finding of their own
constexpr double kManyUnits = 0.1;      ///< of all: then tests and training differ in kind
constexpr double kOftenReached = 0.02;  ///< of training inputs: worth a finding of its own

}  // namespace

std::optional<adequacy::Assessment> check_tests(const Context& context, const stream::PassOptions& pass, Found& found) {
  if (!context.space) return {};
  adequacy::AssessOptions how;
  how.criteria = adequacy::parse_criteria(context.train ? "NC,KMNC:100,NBC,SNAC,TKNC" : "NC,TKNC");
  how.pass = pass;
  how.pass.quiet = true;
  how.most_bytes = double(executor::memory_budget()) / 4;
  how.no_training = "training data: --train SPEC";
  observers::Profile* learned = context.train ? context.train->units.get() : nullptr;
  adequacy::Assessment tests = adequacy::assess(context.subject, context.settings, context.space, learned, how);
  if (tests.core && tests.inputs > 0) {
    const int64_t spare = tests.inputs - int64_t(tests.core->kept.size());
    if (spare * 2 > tests.inputs)
      found.add(findings::make("redundant-tests", "", words_of(context, {{"n", with_commas(spare)}}), {},
                               Sureness::kSure,
                               fmt::format("{} of {} reach as much", with_commas(int64_t(tests.core->kept.size())),
                                           with_commas(tests.inputs)),
                               fmt::format("{} of {} tests reach every region that all of them reach ({}).",
                                           with_commas(int64_t(tests.core->kept.size())), with_commas(tests.inputs),
                                           join(tests.core->criteria, ", "))));
  }
  if (!learned) {
    found.skipped.push_back({"what training reaches and tests do not", "training data: --train SPEC"});
    return tests;
  }
  if (!tests.highs_judged) {
    found.skipped.push_back({"units that tests never drive as high", "more tests"});
    return tests;
  }
  const auto low = int64_t(tests.low_units.size()), units = context.space->units();
  if (low == 0)
    found.passed.push_back({"tests reach what training reaches", fmt::format("all {} units", with_commas(units))});
  if (double(low) > kManyUnits * double(units))
    found.add(findings::make(
        "untested-units", "", words_of(context, {{"n", with_commas(low)}, {"of", with_commas(units)}}), {},
        Sureness::kLikely, fmt::format("{} of {} units", low, units),
        fmt::format("For {} of {} units more training inputs than chance explains go higher than any test.", low,
                    units)));
  std::vector<observers::LowUnit> most = tests.low_units;
  std::stable_sort(most.begin(), most.end(), [](const auto& a, const auto& b) { return a.higher > b.higher; });
  size_t told = 0;
  for (const observers::LowUnit& unit : most) {
    const double share = double(unit.higher) / double(context.train->data->size());
    if (told++ >= kTold || share < kOftenReached) break;
    const std::string name = context.space->name(unit.unit);
    auto finding =
        findings::make("untested-region", name, words_of(context, {{"unit", name}}), {}, Sureness::kLikely,
                       fmt::format("{}{} training inputs above every test", unit.higher,
                                   unit.higher == observers::Peaks::kKept ? " or more" : ""),
                       fmt::format("Training drives {} up to {:.3g}, tests to {:.3g}; {}{} training inputs go higher "
                                   "than any test. Some are shown.",
                                   name, unit.training, unit.tests, unit.higher,
                                   unit.higher == observers::Peaks::kKept ? " or more" : ""));
    for (size_t i = 0; i < std::min<size_t>(12, unit.samples.size()); ++i)
      finding.inputs.push_back({"train", unit.samples[i]});
    finding.value = share;
    found.add(std::move(finding));
  }
  return tests;
}

}  // namespace netmend::checkup
