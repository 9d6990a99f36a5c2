#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "checkup/answer_checks.h"

namespace netmend::checkup {
namespace {

using findings::Json;
using findings::Sureness;

constexpr double kFew = 0.0015;       ///< of the labels: so many are in doubt in sound data too
constexpr double kGoodEnough = 0.75;  ///< accuracy of a network whose doubts count
constexpr double kTrulyWrong = 0.8;   ///< of those in doubt, by what planted ones show

}  // namespace

std::vector<selection::LabelIssue> check_labels(const Context& context, Found& found) {
  if (!context.settings.by_class() || context.test.likely.empty()) return {};
  found.skipped.push_back({"training labels", "answers of a network that was not trained on them"});
  const auto classes = int64_t(context.settings.classes.size());
  std::vector<selection::LabelIssue> issues = selection::label_issues(context.test.likely, classes);
  const double share = double(issues.size()) / double(std::max<size_t>(1, context.test.likely.size()));
  if (share < kFew || issues.size() < 3) {
    found.passed.push_back(
        {"labels agree with what the network is sure of",
         fmt::format("{} of {} in doubt", issues.size(), with_commas(int64_t(context.test.likely.size())))});
    return issues;
  }
  std::map<std::pair<int32_t, int32_t>, int64_t> pairs;
  for (const selection::LabelIssue& issue : issues) ++pairs[{issue.given, issue.likely}];
  auto most =
      std::max_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const double accuracy = context.test.result.accuracy;
  auto finding = findings::make(
      "mislabelled", "test", words_of(context, {{"n", with_commas(int64_t(issues.size()))}, {"split", "test"}}),
      {kTrulyWrong * share, 0}, Sureness::kLikely,
      fmt::format("{} test labels look wrong, {} of them {} for {}", with_commas(int64_t(issues.size())), most->second,
                  context.settings.classes[size_t(most->first.first)],
                  context.settings.classes[size_t(most->first.second)]),
      fmt::format("The network is surely of another opinion on {} of {} labels ({:.1f} %); most often {} where it says "
                  "{} ({}). If all "
                  "of them are wrong, true accuracy is about {:.1f} % instead of {:.1f} %. Some will be hard inputs "
                  "with right labels.",
                  with_commas(int64_t(issues.size())), with_commas(int64_t(context.test.likely.size())), 100 * share,
                  context.settings.classes[size_t(most->first.first)],
                  context.settings.classes[size_t(most->first.second)], most->second,
                  100 * std::min(1.0, accuracy + share), 100 * accuracy));
  for (size_t i = 0; i < std::min<size_t>(12, issues.size()); ++i) finding.inputs.push_back({"test", issues[i].sample});
  finding.value = share;
  if (accuracy < kGoodEnough) {  // who is often wrong is a poor judge of others
    finding.sureness = Sureness::kHint;
    finding.level = findings::Level::kNote;
  }
  for (const auto& [pair, count] : pairs) {
    const std::string &a = context.settings.classes[size_t(pair.first)],
                      &b = context.settings.classes[size_t(pair.second)];
    Json& sum = finding.numbers["pairs"][a < b ? a + "-" + b : b + "-" + a];
    sum = (sum.is_null() ? 0 : sum.get<int64_t>()) + count;
    Json& given = finding.numbers["given"][a];
    given = (given.is_null() ? 0 : given.get<int64_t>()) + count;
  }
  found.add(std::move(finding));
  return issues;
}

}  // namespace netmend::checkup
