#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "checks/label_judge.h"
#include "checks/observed.h"
#include "checks/results.h"
#include "checks/rows.h"
#include "checks/simple_models.h"
#include "findings/phrases.h"

namespace netmend::checks {
namespace {

using findings::Certainty;
using findings::Json;

constexpr double kFew = 0.0015;        ///< of the labels: so many are in doubt in sound data too
constexpr double kGoodEnough = 0.75;   ///< accuracy of a network whose doubts count
constexpr double kTrulyWrong = 0.8;    ///< of those in doubt, by what planted ones show
constexpr double kOfFailures = 0.15;   ///< of the failures: fewer are found too where classes overlap
constexpr double kAboveLinear = 0.02;  ///< accuracy above a linear model's
constexpr double kEasy = 0.9;          ///< accuracy of a linear model from which on nothing more can be asked

/// A repair or a layer says that the network itself is damaged.
bool damaged(const findings::Finding& finding) {
  static constexpr std::string_view kinds[] = {"suspicious-unit", "damaged-layer", "non-finite-weights",
                                               "constant-layer"};
  const bool silenced =
      (finding.kind == "dead-units" || finding.kind == "duplicate-units") && finding.numbers.contains("fixed");
  return (silenced || std::find(std::begin(kinds), std::end(kinds), finding.kind) != std::end(kinds)) &&
         finding.level >= findings::Level::kMinor && finding.certainty >= Certainty::kLikely;
}

void make_note(findings::Finding& finding, const std::string& why) {
  finding.certainty = Certainty::kPossible, finding.level = findings::Level::kNote;
  finding.evidence += why;
}

}  // namespace

std::string poor_judge(Observed& seen) {
  const double accuracy = seen.test->result.accuracy;
  if (accuracy < kGoodEnough) return "The network is often wrong, so it is a poor judge of labels.";
  const std::optional<stats::Estimate> linear = linear_baseline(seen);
  if (!linear || accuracy >= linear->value + kAboveLinear || (linear->value >= kEasy && accuracy >= linear->low))
    return "";
  return fmt::format(
      "A linear model reaches {} on the same data, and a network that is not clearly better is a poor judge of labels.",
      findings::percent(linear->value));
}

std::string poor_judge(session::Session& session, double accuracy) {
  auto split = [](const session::Split& of) {
    ObservedSplit out;
    out.name = of.name, out.data = of.subject.data, out.whole = of.inputs();
    return out;
  };
  Observed seen{.session = session, .settings = session.task()};
  seen.test = split(session.test());
  seen.test->result.accuracy = accuracy;
  if (const session::Split* train = session.train()) seen.train = split(*train);
  return poor_judge(seen);
}

void check_labels(Observed& seen, Results& out) {
  if (seen.test->top.empty()) return;
  if (seen.session.train())
    out.skip("wrong labels in the training data", "predictions of a network that was not trained on these inputs");
  const auto classes = int64_t(seen.settings.classes.size());
  std::vector<selection::LabelIssue>& issues = out.label_issues;
  issues = selection::label_issues(seen.test->top, classes);
  const double share = double(issues.size()) / double(std::max<size_t>(1, seen.test->top.size()));
  if (share < kFew || issues.size() < 3) {
    out.passed.push_back({"test labels agree with confident predictions",
                          fmt::format("{} of {} in doubt", with_commas(int64_t(issues.size())),
                                      with_commas(int64_t(seen.test->top.size())))});
    return;
  }
  std::map<std::pair<int32_t, int32_t>, int64_t> pairs;
  for (const selection::LabelIssue& issue : issues) ++pairs[{issue.given, issue.suggested}];
  auto most =
      std::max_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const double accuracy = seen.test->result.accuracy;
  const bool tie =
      std::count_if(pairs.begin(), pairs.end(), [&](const auto& one) { return one.second == most->second; }) > 1;
  const std::string given = seen.settings.classes[size_t(most->first.first)],
                    suggested = seen.settings.classes[size_t(most->first.second)];
  auto finding = findings::make(
      "mislabelled", "test", seen.words({{"n", with_commas(int64_t(issues.size()))}, {"split", "test"}}),
      {kTrulyWrong * share, 0}, Certainty::kLikely,
      fmt::format("{}; {}{} labelled {} {} predicted as {}{}", findings::counted(int64_t(issues.size()), "label"),
                  tie ? "for example, " : "", findings::counted(most->second, "input"), given,
                  most->second == 1 ? "is" : "are", suggested, tie ? "" : ", the most frequent pair"),
      fmt::format(
          "For {} of {} inputs ({}) the network confidently predicts a class other than the label; {} the label is {} "
          "and the prediction {} ({}). If all of these labels are wrong, accuracy is about {} instead of {}. Some of "
          "them may be hard inputs with correct labels.",
          with_commas(int64_t(issues.size())), with_commas(int64_t(seen.test->top.size())), findings::percent(share),
          tie ? "for example," : "most often", given, suggested, with_commas(most->second),
          findings::percent(std::min(1.0, accuracy + share)), findings::percent(accuracy)));
  for (size_t i = 0; i < std::min<size_t>(12, issues.size()); ++i) finding.inputs.push_back({"test", issues[i].sample});
  finding.value = share;
  if (const std::string why = poor_judge(seen); !why.empty()) make_note(finding, " " + why);
  const double failures = (1 - accuracy) * double(seen.test->top.size());
  if (finding.level > findings::Level::kMinor && double(issues.size()) < kOfFailures * failures) {
    finding.level = findings::Level::kMinor;
    finding.evidence += fmt::format(" They are {} of the failures; so few are also found where classes overlap.",
                                    findings::percent(double(issues.size()) / failures));
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

namespace {

/// Where many labels are wrong, figures of classes and slices are made of these labels as well: what they say is looked
/// at again when labels are corrected. A camera that fails is no matter of labels.
void weigh_by_wrong_labels(Results& out) {
  static constexpr std::string_view kFigures[] = {"weak-slice", "weak-class", "confused-classes", "failure-cluster"};
  const bool wrong = std::any_of(out.findings.begin(), out.findings.end(), [](const findings::Finding& one) {
    return one.kind == "mislabelled" && one.level >= findings::Level::kSerious;
  });
  for (findings::Finding& finding : out.findings) {
    const bool figure = std::find(std::begin(kFigures), std::end(kFigures), finding.kind) != std::end(kFigures);
    const bool aside = std::any_of(out.groups.begin(), out.groups.end(), [&](const Results::GroupRows& group) {
      return group.finding == finding.id() && finding.kind == "weak-slice";
    });
    if (!wrong || !figure || aside || finding.level < findings::Level::kSerious) continue;
    finding.level = findings::Level::kMinor;
    finding.evidence += " Wrong labels may be behind some of these failures: correct them first.";
  }
}

}  // namespace

void weigh_labels(Results& out) {
  const bool shifted = std::any_of(out.findings.begin(), out.findings.end(), [](const findings::Finding& one) {
    return (one.kind == "range-shift" || one.kind == "drift") && one.level >= findings::Level::kSerious;
  });
  for (findings::Finding& finding : out.findings)
    if (shifted && finding.kind == "mislabelled" && finding.level > findings::Level::kNote)
      make_note(finding, " The tests differ from the training data, so the network is a poor judge of their labels.");
  if (!std::any_of(out.findings.begin(), out.findings.end(), damaged)) return weigh_by_wrong_labels(out);
  for (findings::Finding& finding : out.findings) {
    // What a damaged network's confidence is worth follows from the damage.
    if (finding.kind == "over-confident") finding.level = std::min(finding.level, findings::Level::kMinor);
    if (finding.kind == "mislabelled" && finding.level > findings::Level::kNote)
      make_note(finding, " The network itself is damaged, so it is a poor judge of labels.");
    // So may its accuracy, unless the damage is in the same layer.
    auto here = [&](const findings::Finding& other) {
      return damaged(other) && other.where.substr(0, other.where.find('/')) == finding.where;
    };
    if (finding.kind == "dead-units" && finding.level > findings::Level::kNote &&
        std::none_of(out.findings.begin(), out.findings.end(), here)) {
      finding.level = findings::Level::kNote;
      finding.evidence += " Damage elsewhere may explain the accuracy: repair it first to see what these units cost.";
    }
  }
}

}  // namespace netmend::checks
