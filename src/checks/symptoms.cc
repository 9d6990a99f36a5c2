#include "checks/symptoms.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/text.h"
#include "checks/simple_models.h"
#include "findings/kinds.h"

namespace netmend::checks {
namespace {

using findings::Finding;
using observers::SampleRow;

constexpr double kMost = 0.6;   ///< of a symptom's failures
constexpr int64_t kFewest = 5;  ///< failures on the hold-out part, to say anything

/// Which predictions a symptom is about; nothing for findings that are no symptoms.
std::function<bool(const SampleRow&)> failures_of(const Observed& seen, const Results& results,
                                                  const Finding& finding) {
  const auto& classes = seen.settings.classes;
  auto number = [&](const std::string& name) {
    return double(std::find(classes.begin(), classes.end(), name) - classes.begin());
  };
  if (finding.kind == "confused-classes") {
    const double a = number(finding.numbers.at("a")), b = number(finding.numbers.at("b"));
    return [a, b](const SampleRow& row) {
      return (row.label == a && row.predicted == b) || (row.label == b && row.predicted == a);
    };
  }
  if (finding.kind == "mislabelled") {
    std::set<int64_t> samples;
    for (const auto& issue : results.label_issues) samples.insert(issue.sample);
    return [samples](const SampleRow& row) { return row.right == SampleRow::kWrong && samples.count(row.sample) > 0; };
  }
  if (finding.kind == "weak-class" || finding.kind == "never-predicted" || finding.kind == "regressed-class") {
    const double c = number(finding.where);
    return [c](const SampleRow& row) { return row.label == c && row.right == SampleRow::kWrong; };
  }
  if (finding.kind == "failure-cluster") {
    const size_t at = finding.where.find("-as-");
    const double a = number(finding.where.substr(0, at)), b = number(finding.where.substr(at + 4));
    return [a, b](const SampleRow& row) { return row.label == a && row.predicted == b; };
  }
  if (finding.kind == "weak-slice")
    for (const slices::Slice& slice : results.slices)
      if (slice.name == finding.where) {
        std::set<int64_t> samples;
        for (size_t row : slice.rows) samples.insert(seen.test->rows[row].sample);
        return
            [samples](const SampleRow& row) { return row.right == SampleRow::kWrong && samples.count(row.sample) > 0; };
      }
  return {};
}

/// Whether two classes are still confused mostly one way: only that is more than similarity.
bool still_one_sided(const Observed& seen, const Finding& pair, const std::vector<SampleRow>& rows) {
  const auto& classes = seen.settings.classes;
  auto number = [&](const char* side) {
    const std::string name = pair.numbers.at(side);
    return double(std::find(classes.begin(), classes.end(), name) - classes.begin());
  };
  const double a = number("a"), b = number("b");
  int64_t there = 0, back = 0;
  for (const SampleRow& row : rows)
    there += row.label == a && row.predicted == b, back += row.label == b && row.predicted == a;
  return std::max(there, back) >= 5 * std::max<int64_t>(1, std::min(there, back));
}

/// The tests with the predictions after the trial repair, where it was judged.
std::vector<SampleRow> rows_when_repaired(const Observed& seen, const repair::Outcome& outcome) {
  std::vector<SampleRow> rows = seen.test ? seen.test->rows : std::vector<SampleRow>{};
  for (SampleRow& row : rows) row.right = SampleRow::kNotJudged;
  for (const SampleRow& row : outcome.after.rows)
    if (row.sample >= 0 && size_t(row.sample) < rows.size()) rows[size_t(row.sample)] = row;
  return rows;
}

/// What is left of a symptom may be inputs that are hard for simple models too.
std::string as_hard_when_repaired(Observed& seen, const Finding& symptom, const Results& results,
                                  const std::vector<SampleRow>& repaired) {
  if (!simple_models(seen)) return "";
  const auto& classes = seen.settings.classes;
  auto number = [&](const std::string& name) {
    return size_t(std::find(classes.begin(), classes.end(), name) - classes.begin());
  };
  if (symptom.kind == "confused-classes")
    return as_confused_by_simple(seen, number(symptom.numbers.at("a")), number(symptom.numbers.at("b")), &repaired);
  if (symptom.kind == "weak-class") {
    const double c = double(number(symptom.where));
    return as_hard_for_simple(
        seen, [&](size_t i) { return int(seen.test->rows[i].label == c); }, &repaired);
  }
  const auto slice = std::find_if(results.slices.begin(), results.slices.end(),
                                  [&](const slices::Slice& one) { return one.name == symptom.where; });
  const bool aside = std::any_of(results.groups.begin(), results.groups.end(),
                                 [&](const auto& group) { return group.finding == symptom.id(); });
  if (symptom.kind != "weak-slice" || slice == results.slices.end() || aside) return "";
  std::vector<uint8_t> in(seen.test->rows.size());
  for (const size_t row : slice->rows) in[row] = 1;
  return as_hard_for_simple(
      seen, [&](size_t row) { return int(in[row]); }, &repaired);
}

/// A symptom that the repair did not do away with stands on its own, with what is left of it.
void what_remains(Finding& symptom, double share, const std::string& cause, int64_t before, int64_t after) {
  symptom.effect.gain *= share, symptom.effect.local *= share, symptom.value *= share;
  symptom.level = std::min(symptom.level, findings::level_of(findings::find_kind(symptom.kind).rule, symptom.effect));
  symptom.evidence += fmt::format(" Of {} such failures on held-out inputs, {} {} after the trial repair of {}.",
                                  before, after, after == 1 ? "remains" : "remain", cause.substr(cause.find(':') + 1));
}

/// Failures of a symptom, and how many of them are of the group.
struct Inside {
  int64_t all = 0, of_group = 0;
  bool mostly() const { return all >= kFewest && double(of_group) >= kMost * double(all); }
};

/// What a trial repair fixes, and how much of it is of the group.
Inside fixed_inside(const Results& results, const std::vector<uint8_t>& in) {
  Inside inside;
  if (results.repair.repair)
    for (const repair::Flipped& flip : results.repair.repair->list)
      if (flip.fixed && size_t(flip.sample) < in.size()) ++inside.all, inside.of_group += in[size_t(flip.sample)];
  return inside;
}

}  // namespace

void explain_symptoms(Observed& seen, Results& results) {
  auto& found = results.findings;
  auto cause = std::find_if(found.begin(), found.end(), [](const Finding& one) {
    return one.kind == "suspicious-unit" || one.kind == "damaged-layer" ||
           ((one.kind == "dead-units" || one.kind == "duplicate-units" || one.kind == "shifted-biases") &&
            one.numbers.contains("fixed"));
  });
  if (cause == found.end() || !results.repair.repair) return;
  const repair::Outcome& outcome = *results.repair.repair;
  const std::vector<SampleRow> repaired = rows_when_repaired(seen, outcome);
  std::vector<std::string> gone, words;
  for (Finding& symptom : found) {
    auto is = failures_of(seen, results, symptom);
    if (!is) continue;
    // A camera of which nearly all is that the repair fixes is no symptom: the damage is one of its own.
    const auto group = std::find_if(results.groups.begin(), results.groups.end(),
                                    [&](const auto& one) { return one.finding == symptom.id(); });
    if (symptom.kind == "weak-slice" && group != results.groups.end() && fixed_inside(results, group->in).mostly())
      continue;
    const auto before = std::count_if(outcome.before.rows.begin(), outcome.before.rows.end(), is),
               after = std::count_if(outcome.after.rows.begin(), outcome.after.rows.end(), is);
    if (before < kFewest) continue;
    if (symptom.kind == "confused-classes" && !still_one_sided(seen, symptom, outcome.after.rows))
      symptom.level = std::min(symptom.level, findings::Level::kMinor);
    if (double(after) > (1 - kMost) * double(before)) {
      if (after < before) what_remains(symptom, double(after) / double(before), cause->id(), before, after);
      if (symptom.level >= findings::Level::kSerious)
        if (const std::string why = as_hard_when_repaired(seen, symptom, results, repaired); !why.empty())
          symptom.level = findings::Level::kMinor, symptom.evidence += why;
      continue;
    }
    gone.push_back(symptom.id());
    words.push_back(fmt::format("{} ({} → {})", symptom.id(), before, after));
    symptom.kind.clear();
  }
  cause->related.insert(cause->related.end(), gone.begin(), gone.end());
  if (!words.empty())
    cause->evidence +=
        fmt::format(" On held-out inputs, the trial repair removes most failures of: {}.", join(words, ", "));
  std::erase_if(found, [](const Finding& one) { return one.kind.empty(); });
}

namespace {

bool is_damage(const Finding& finding) { return finding.kind == "suspicious-unit" || finding.kind == "damaged-layer"; }

Inside failures_inside(const Observed& seen, const Results& results, const Finding& symptom,
                       const std::vector<uint8_t>& in) {
  Inside inside;
  const auto& rows = seen.test->rows;
  if (is_damage(symptom)) {
    inside = fixed_inside(results, in);
  } else if (const auto is = failures_of(seen, results, symptom)) {
    for (size_t i = 0; i < rows.size(); ++i)
      if (is(rows[i])) ++inside.all, inside.of_group += in[i];
  } else if (symptom.kind == "outlier-inputs" && symptom.where == "test") {
    for (const findings::Shown& shown : symptom.inputs)
      if (size_t(shown.sample) < in.size()) ++inside.all, inside.of_group += in[size_t(shown.sample)];
  }
  return inside;
}

/// Without the group, tests are predicted about as well as training data.
bool fits_without(const Observed& seen, const std::vector<uint8_t>& in) {
  if (!seen.train || seen.train->result.samples == 0) return false;
  int64_t right = 0, judged = 0;
  for (size_t i = 0; i < seen.test->rows.size(); ++i)
    if (!in[i] && seen.test->rows[i].right != SampleRow::kNotJudged)
      ++judged, right += seen.test->rows[i].right == SampleRow::kRight;
  if (judged == 0) return false;
  const double trained = seen.train->result.accuracy;
  return trained - double(right) / double(judged) < 0.5 * (trained - seen.test->result.accuracy);
}

}  // namespace

void explain_by_groups(const Observed& seen, Results& results) {
  auto& found = results.findings;
  for (const Results::GroupRows& group : results.groups) {
    auto cause =
        std::find_if(found.begin(), found.end(), [&](const Finding& one) { return one.id() == group.finding; });
    if (cause == found.end() || cause->level < findings::Level::kSerious || group.in.size() != seen.test->rows.size())
      continue;
    const auto size = std::count(group.in.begin(), group.in.end(), 1);
    // Most failures of any kind are in a group that holds most inputs.
    if (2 * size > int64_t(group.in.size())) continue;
    std::vector<std::string> words;
    const bool classes = cause->kind == "never-predicted" || cause->kind == "confused-classes";
    for (Finding& symptom : found) {
      if (&symptom == &*cause || symptom.kind.empty()) continue;
      // A camera is no matter of classes.
      if (classes && is_damage(symptom)) continue;
      if (classes && std::any_of(results.groups.begin(), results.groups.end(),
                                 [&](const auto& other) { return other.finding == symptom.id(); }))
        continue;
      const Inside inside = failures_inside(seen, results, symptom, group.in);
      const bool over_fit = symptom.kind == "over-fit" && fits_without(seen, group.in);
      if (!inside.mostly() && !over_fit) continue;
      words.push_back(over_fit ? symptom.id() + " (its gap more than halves without the group)"
                               : fmt::format("{} ({} of {})", symptom.id(), inside.of_group, inside.all));
      cause->related.push_back(symptom.id());
      symptom.kind.clear();
    }
    if (!words.empty())
      cause->evidence += fmt::format(" {} for most of: {}.", classes ? "These inputs account" : "This group accounts",
                                     join(words, ", "));
    std::erase_if(found, [](const Finding& one) { return one.kind.empty(); });
  }
}

}  // namespace netmend::checks
