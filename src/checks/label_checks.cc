#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "checks/observed.h"
#include "checks/results.h"
#include "checks/rows.h"

namespace netmend::checks {
namespace {

using findings::Certainty;
using findings::Json;

constexpr double kFew = 0.0015;       ///< of the labels: so many are in doubt in sound data too
constexpr double kGoodEnough = 0.75;  ///< accuracy of a network whose doubts count
constexpr double kTrulyWrong = 0.8;   ///< of those in doubt, by what planted ones show

}  // namespace

void check_labels(Observed& seen, Results& out) {
  if (seen.test->top.empty()) return;
  out.skip("training labels", "predictions of a network that was not trained on them");
  const auto classes = int64_t(seen.settings.classes.size());
  std::vector<selection::LabelIssue>& issues = out.label_issues;
  issues = selection::label_issues(seen.test->top, classes);
  const double share = double(issues.size()) / double(std::max<size_t>(1, seen.test->top.size()));
  if (share < kFew || issues.size() < 3) {
    out.passed.push_back(
        {"test labels agree with confident predictions",
         fmt::format("{} of {} in doubt", issues.size(), with_commas(int64_t(seen.test->top.size())))});
    return;
  }
  std::map<std::pair<int32_t, int32_t>, int64_t> pairs;
  for (const selection::LabelIssue& issue : issues) ++pairs[{issue.given, issue.suggested}];
  auto most =
      std::max_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const double accuracy = seen.test->result.accuracy;
  auto finding = findings::make(
      "mislabelled", "test", seen.words({{"n", with_commas(int64_t(issues.size()))}, {"split", "test"}}),
      {kTrulyWrong * share, 0}, Certainty::kLikely,
      fmt::format("{} test labels look wrong, {} of them {} for {}", with_commas(int64_t(issues.size())), most->second,
                  seen.settings.classes[size_t(most->first.first)], seen.settings.classes[size_t(most->first.second)]),
      fmt::format(
          "The network confidently predicts another class for {} of {} labels ({:.1f} %); most often the label is {} "
          "and the prediction {} ({}). If all of these labels are wrong, accuracy is about {:.1f} % instead of "
          "{:.1f} %. Some will be hard inputs with correct labels.",
          with_commas(int64_t(issues.size())), with_commas(int64_t(seen.test->top.size())), 100 * share,
          seen.settings.classes[size_t(most->first.first)], seen.settings.classes[size_t(most->first.second)],
          most->second, 100 * std::min(1.0, accuracy + share), 100 * accuracy));
  for (size_t i = 0; i < std::min<size_t>(12, issues.size()); ++i) finding.inputs.push_back({"test", issues[i].sample});
  finding.value = share;
  if (accuracy < kGoodEnough) {  // a network that is often wrong is a poor judge of labels
    finding.certainty = Certainty::kPossible;
    finding.level = findings::Level::kNote;
  }
  for (const auto& [pair, count] : pairs) {
    const std::string &a = seen.settings.classes[size_t(pair.first)], &b = seen.settings.classes[size_t(pair.second)];
    Json& sum = finding.numbers["pairs"][a < b ? a + "-" + b : b + "-" + a];
    sum = (sum.is_null() ? 0 : sum.get<int64_t>()) + count;
    Json& given = finding.numbers["given"][a];
    given = (given.is_null() ? 0 : given.get<int64_t>()) + count;
  }
  out.add(std::move(finding));
}

}  // namespace netmend::checks
