#include "diagnosis/diagnose.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/text.h"
#include "diagnosis/features.h"
#include "diagnosis/forest.h"
#include "diagnosis/training_page.h"
#include "findings/kinds.h"
#include "findings/phrases.h"

namespace netmend::diagnosis {
namespace {

using findings::Certainty;
using findings::Finding;
using findings::Level;

/// One alarm per kind: the strongest, which names the rules that agree.
std::vector<Alarm> by_kind(std::vector<Alarm> alarms) {
  std::stable_sort(alarms.begin(), alarms.end(), [](const Alarm& a, const Alarm& b) {
    return a.level != b.level ? a.level > b.level : a.likelihood > b.likelihood;
  });
  std::vector<Alarm> kept;
  for (Alarm& alarm : alarms) {
    const auto same = std::find_if(kept.begin(), kept.end(), [&](const Alarm& one) { return one.kind == alarm.kind; });
    if (same != kept.end()) {
      same->numbers["rules"].push_back(alarm.rule);
      continue;
    }
    alarm.numbers["rules"] = findings::Json::array({alarm.rule});
    kept.push_back(std::move(alarm));
  }
  return kept;
}

bool is_guess(const Alarm& alarm) { return alarm.certainty != Certainty::kConfirmed; }

/// What is known for certain explains what is only likely: guesses become notes beside a confirmed serious finding.
/// Among guesses alone only the most likely one is told above a note: several different causes rarely act at once, and
/// a reader follows one advice at a time.
void step_back(std::vector<Alarm>& alarms) {
  const bool known = std::any_of(alarms.begin(), alarms.end(), [](const Alarm& one) {
    return !is_guess(one) && one.level >= Level::kSerious &&
           (one.kind != "non-finite-training" || one.likelihood > 0.92);
  });
  const Alarm* best = nullptr;
  for (const Alarm& alarm : alarms)
    if (is_guess(alarm) && alarm.level > Level::kNote && (!best || alarm.likelihood > best->likelihood)) best = &alarm;
  for (Alarm& alarm : alarms)
    if (is_guess(alarm) && (known || &alarm != best) && alarm.level > Level::kNote) alarm.level = Level::kNote;
  // Where a guess says why a value became NaN, it comes before the NaN.
  const bool reason = known || (best && best->level >= Level::kMinor);
  for (Alarm& alarm : alarms)
    if (alarm.kind == "non-finite-training" && reason && alarm.likelihood <= 0.6)
      alarm.level = std::min(alarm.level, Level::kMinor);
}

/// Where two optimisers play against each other, as in a GAN, no loss is meant to fall: what follows from curves alone
/// is a note there.
void several_optimizers(const Run& run, std::vector<Alarm>& alarms) {
  int64_t stepping = 0;
  for (const records::Line& summary : run.record->of("summary")) stepping += summary.whole("steps") > 0;
  if (stepping < 2 || run.keras || !run.finite()) return;
  static const std::vector<std::string> curves = {"not-learning",      "still-learning",     "unstable-training",
                                                  "learning-rate-low", "learning-rate-high", "over-fitting-run"};
  for (Alarm& alarm : alarms)
    if (is_guess(alarm) && std::find(curves.begin(), curves.end(), alarm.kind) != curves.end())
      alarm.level = Level::kNote;
}

Finding finding_of(const Alarm& alarm, const std::string& run) {
  Finding finding = findings::make(alarm.kind, alarm.where,
                                   {{"case", Shell()}, {"what", alarm.what}, {"run", run}, {"program", "train.py"}}, {},
                                   alarm.certainty, alarm.brief.empty() ? alarm.evidence : alarm.brief, alarm.evidence);
  finding.level = alarm.level;
  finding.value = alarm.likelihood;
  finding.numbers = alarm.numbers;
  if (!finding.numbers.contains("category")) finding.numbers["category"] = category_of(alarm.kind);
  finding.numbers["likelihood"] = alarm.likelihood;
  if (const std::string plot = plot_of(alarm.kind); !plot.empty()) finding.numbers["plot"] = plot;
  if (!alarm.source.empty()) {
    finding.numbers["source"] = alarm.source;
    finding.evidence += " Line: " + alarm.source + ".";
  }
  finding.next.push_back(Shell::of("netmend why {}", alarm.kind));
  return finding;
}

findings::Json summary_of(const Run& run) {
  auto number = [](double value) { return std::isfinite(value) ? findings::Json(value) : findings::Json(nullptr); };
  return {{"steps", run.steps},
          {"epochs", run.record->epochs.size()},
          {"optimizer", run.optimizer},
          {"learning_rate", number(run.rate)},
          {"loss", run.loss},
          {"task", task_name(run.task)},
          {"first_loss", number(run.first_loss())},
          {"uniform_loss", number(run.uniform_loss())},
          {"last_loss", number(run.last_loss())},
          {"best_loss", number(run.best_loss())},
          {"parameters", run.parameters},
          {"stopped", run.record->last("stopped").text("why")},
          {"complete", !run.record->cut}};
}

std::vector<std::string> troubles_of(const records::Record& record, const Run& run) {
  std::vector<std::string> said = record.troubles;
  if (record.cut) said.emplace_back("the record has no end: the program was killed, or is still running");
  if (const std::string error = record.last("failed").text("error"); !error.empty())
    said.push_back("the program failed: " + error);
  if (run.steps == 0 && record.epochs.empty()) said.emplace_back("no training was seen");
  if (record.of("optimizer").size() > 1)
    said.push_back(
        fmt::format("there are {} optimisers; curves and rules refer to the first", record.of("optimizer").size()));
  for (const records::Line& fact : record.of("fact"))
    if (fact.text("check") == "C1" && !fact.flag("holds", true))
      said.push_back(fmt::format("the file of weights saved at {} does not hold the weights that were in memory",
                                 fact.text("source")));
  if (run.steps > 0 && run.steps < 3)
    said.push_back(run.steps == 1 ? "there is only 1 step: rules about trends do not apply"
                                  : "there are only 2 steps: rules about trends do not apply");
  return said;
}

}  // namespace

std::string category_of(const std::string& kind) {
  static const std::map<std::string, std::string> table = {{"output-activation", "wrong-output-activation"},
                                                           {"wrong-loss", "wrong-loss"},
                                                           {"wrong-output-size", "wrong-output-size"},
                                                           {"label-encoding", "labels-wrongly-encoded"},
                                                           {"metric-mismatch", "wrong-metric"},
                                                           {"non-finite-training", "numerical"},
                                                           {"missing-nonlinearity", "missing-hidden-activation"},
                                                           {"dead-relu", "bad-hidden-activation"},
                                                           {"saturated-training", "bad-hidden-activation"},
                                                           {"vanishing-gradient", "bad-hidden-activation"},
                                                           {"exploding-gradient", "bad-initialization"},
                                                           {"bad-initialization", "bad-initialization"},
                                                           {"inputs-not-scaled", "inputs-not-scaled"},
                                                           {"targets-not-scaled", "targets-not-scaled"},
                                                           {"learning-rate-high", "learning-rate-too-high"},
                                                           {"learning-rate-low", "learning-rate-too-low"},
                                                           {"still-learning", "too-few-epochs"},
                                                           {"over-fitting-run", "too-large-network/overfitting"},
                                                           {"not-learning", "too-small-network"},
                                                           {"unstable-training", "learning-rate-too-high"},
                                                           {"batch-size", "batch-size"},
                                                           {"unbalanced-training", "wrong-data"},
                                                           {"little-data", "too-little-data"},
                                                           {"not-shuffled", "no-shuffle/order"},
                                                           {"validation-overlap", "evaluation-mistake"},
                                                           {"evaluated-in-train-mode", "evaluation-mistake"},
                                                           {"trained-in-eval-mode", "evaluation-mistake"},
                                                           {"evaluation-missing", "evaluation-mistake"},
                                                           {"untrained-parameters", "frozen-or-not-trainable"},
                                                           {"lost-updates", "frozen-or-not-trainable"},
                                                           {"samples-mixed", "wrong-layer-order"}};
  const auto found = table.find(kind);
  return found == table.end() ? "other:" + kind : found->second;
}

findings::Json diagnosis_json(const Diagnosis& diagnosis, const std::string& run) {
  using findings::Json;
  Json json = {{"run", run},
               {"summary", diagnosis.summary},
               {"findings", Json::array()},
               {"rules", Json::array()},
               {"unknown", diagnosis.troubles},
               {"features", Json::object()},
               {"second_opinion", Json::array()}};
  for (const auto& [name, value] : diagnosis.features) json["features"][name] = value;
  for (const auto& [kind, share] : diagnosis.second_opinion)
    if (share >= 0.05)
      json["second_opinion"].push_back({{"kind", kind}, {"share", share}, {"outvoted", diagnosis.is_confirmed()}});
  for (const Finding& finding : diagnosis.findings) json["findings"].push_back(findings::to_json(finding));
  for (const Fired& one : diagnosis.fired)
    json["rules"].push_back({{"rule", fmt::format("{}/{}", one.rule->set, one.rule->name)},
                             {"fired", one.alarms > 0},
                             {"kind", one.rule->kind},
                             {"paper", one.rule->paper}});
  return json;
}

bool Diagnosis::is_confirmed() const {
  return std::any_of(findings.begin(), findings.end(), [](const Finding& one) {
    return one.level > Level::kNote && one.certainty == Certainty::kConfirmed;
  });
}

bool Diagnosis::reaches(Level level) const {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& one) { return one.level >= level; });
}

findings::Json comparison_json(const std::string& before_run, const Diagnosis& before, const std::string& after_run,
                               const Diagnosis& after, int64_t differs) {
  return {{"before", {{"run", before_run}, {"summary", before.summary}}},
          {"after", {{"run", after_run}, {"summary", after.summary}}},
          {"first_difference", differs},
          {"gone", only_in(before, after)},
          {"new", only_in(after, before)}};
}

std::vector<std::vector<std::string>> comparison_rows(const Diagnosis& before, const Diagnosis& after) {
  auto text = [](const findings::Json& one) {
    return one.is_number_float() ? findings::plain(one.get<double>())
           : one.is_string()     ? one.get<std::string>()
                                 : json_text(one);
  };
  std::vector<std::vector<std::string>> rows;
  for (const auto& [key, value] : before.summary.items())
    rows.push_back({key, printable(text(value)), printable(text(after.summary[key]))});
  return rows;
}

std::vector<std::vector<std::string>> rule_rows(const Thresholds& thresholds) {
  std::vector<std::vector<std::string>> rows;
  for (const Rule& rule : rules()) {
    std::vector<std::string> limits;
    for (const std::string& name : split(rule.threshold, ','))
      limits.push_back(rule.threshold == "exact"
                           ? "exact"
                           : fmt::format("{} = {}", trim(name), findings::plain(thresholds[std::string(trim(name))])));
    rows.push_back({fmt::format("{}/{}", rule.set, rule.name), std::string(rule.symptom), std::string(rule.kind),
                    join(limits, ", ")});
  }
  return rows;
}

findings::Json rules_json(const Thresholds& thresholds) {
  findings::Json rows = findings::Json::array(), values = findings::Json::object();
  for (const Rule& rule : rules())
    rows.push_back({{"set", rule.set},
                    {"name", rule.name},
                    {"symptom", rule.symptom},
                    {"quantity", rule.quantity},
                    {"threshold", rule.threshold},
                    {"kind", rule.kind},
                    {"paper", rule.paper}});
  for (const auto& [name, value] : thresholds.all()) values[name] = value;
  return {{"rules", rows}, {"thresholds", values}};
}

std::vector<std::string> only_in(const Diagnosis& a, const Diagnosis& b) {
  std::vector<std::string> ids;
  for (const Finding& one : a.findings)
    if (one.level > Level::kNote && std::none_of(b.findings.begin(), b.findings.end(), [&](const Finding& f) {
          return f.kind == one.kind && f.level > Level::kNote;
        }))
      ids.push_back(one.id());
  return ids;
}

Diagnosis diagnose(const records::Record& record, const Thresholds& thresholds, const std::vector<std::string>& sets,
                   const std::string& run_name) {
  const Run run = digest(record);
  const std::vector<std::string> wanted = sets.empty() ? std::vector<std::string>{"exact", "netmend"} : sets;
  const std::vector<std::string> known = rule_sets();
  for (const std::string& set : wanted)
    if (std::find(known.begin(), known.end(), set) == known.end())
      throw InputError(fmt::format("there is no set of rules `{}`{}", set, did_you_mean(set, known)),
                       "Sets are " + join(known, ", ") + ".");
  Diagnosis result;
  std::vector<Alarm> alarms;
  for (const Rule& rule : rules()) {
    if (std::find(wanted.begin(), wanted.end(), rule.set) == wanted.end()) continue;
    const size_t before = alarms.size();
    rule.look({run, thresholds, alarms});
    for (size_t i = before; i < alarms.size(); ++i) alarms[i].rule = fmt::format("{}/{}", rule.set, rule.name);
    result.fired.push_back({&rule, int64_t(alarms.size() - before)});
  }
  alarms = by_kind(std::move(alarms));
  if (sets.empty()) several_optimizers(run, alarms), step_back(alarms);
  std::stable_sort(alarms.begin(), alarms.end(), [](const Alarm& a, const Alarm& b) {
    return a.level != b.level ? a.level > b.level : a.likelihood > b.likelihood;
  });
  for (const Alarm& alarm : alarms) result.findings.push_back(finding_of(alarm, run_name));
  result.troubles = troubles_of(record, run);
  result.summary = summary_of(run);
  result.features = features_of(run);
  if (const Forest* forest = shipped_forest(); forest && run.losses.size() >= 3) try {
      result.second_opinion = forest->vote(result.features);
    } catch (const InputError& error) {  // made for another netmend: only the opinion is missing
      result.troubles.emplace_back(std::string("no second opinion: ") + error.what());
    }
  return result;
}

}  // namespace netmend::diagnosis
