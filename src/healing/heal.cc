#include "healing/heal.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/random.h"
#include "base/text.h"
#include "findings/phrases.h"
#include "healing/solutions.h"
#include "records/record.h"

namespace netmend::healing {
namespace {

using findings::Finding;
using findings::Level;

constexpr double kEqualAccuracy = 0.005, kEqualLoss = 0.01;

std::vector<const Finding*> problems_of(const diagnosis::Diagnosis& diagnosis) {
  std::vector<const Finding*> found;
  for (const Finding& one : diagnosis.findings)
    if (one.level > Level::kNote) found.push_back(&one);
  return found;
}

bool has(const diagnosis::Diagnosis& diagnosis, const std::string& kind) {
  for (const Finding* one : problems_of(diagnosis))
    if (one->kind == kind) return true;
  return false;
}

HeldOut held_out_of(const diagnosis::Run& run) {
  HeldOut end;
  end.loss_name = run.loss;
  if (!run.val_accuracies.empty()) end.accuracy = run.val_accuracies.back();
  if (!run.val_losses.empty()) end.loss = run.val_losses.back();
  const bool failed = !run.record->last("failed").empty() || !run.record->of("nonfinite").empty() || !run.finite();
  if (failed) end.accuracy = std::isfinite(end.accuracy) ? 0 : NAN, end.loss = INFINITY;
  return end;
}

class Search {
 public:
  Search(Training& training, const records::Record& record, const HealRequest& request)
      : training_(training), request_(request) {
    Attempt& before = healing_.before;
    before.settings = current_settings(training.knobs());
    judge(before, record);
    tried_.insert(json_text(settings_json(before.settings)));
  }

  Healing by_solutions() {
    while (may_try()) {
      const auto [solution, problem, settings] = next();
      if (!solution) break;
      if (!tried_.insert(json_text(settings_json(settings))).second) continue;
      const std::string changes = changes_text(current().settings, settings);
      if (request_.ask && !request_.ask(problem, changes, std::string(solution->source))) continue;
      Attempt attempt{.settings = settings, .problem = problem, .source = std::string(solution->source)};
      attempt.changes = changes;
      run(attempt);
      attempt.gone = attempt.failure.empty() && !has(attempt.diagnosis, problem);
      attempt.better = attempt.held_out.better_than(current().held_out);
      // What swaps a problem for another is gone on from as well, where held-out data says so.
      attempt.kept = attempt.failure.empty() && attempt.better;
      healing_.tries.push_back(std::move(attempt));
      if (healing_.tries.back().kept) healing_.best = int(healing_.tries.size()) - 1;
      if (request_.told) request_.told(healing_.tries.back());
    }
    return finish();
  }

  Healing at_random() {
    Random random(request_.seed, 0x5ea2c);
    int64_t misses = 0;
    while (may_try() && misses < 1000) {
      Settings settings;
      for (const auto& [name, knob] : training_.knobs())
        settings[name] = knob.choices[random.below(knob.choices.size())];
      if (!tried_.insert(json_text(settings_json(settings))).second) {
        ++misses;
        continue;
      }
      Attempt attempt{.settings = settings, .source = "random"};
      attempt.changes = changes_text(healing_.before.settings, settings);
      run(attempt);
      attempt.gone = attempt.failure.empty() &&
                     std::none_of(first_.begin(), first_.end(),
                                  [&](const std::string& kind) { return has(attempt.diagnosis, kind); });
      attempt.better = attempt.held_out.better_than(current().held_out);
      attempt.kept = attempt.failure.empty() && attempt.better;
      healing_.tries.push_back(std::move(attempt));
      if (healing_.tries.back().kept) healing_.best = int(healing_.tries.size()) - 1;
      if (request_.told) request_.told(healing_.tries.back());
    }
    return finish();
  }

 private:
  const Attempt& current() const { return healing_.result(); }

  bool may_try() const { return int64_t(healing_.tries.size()) < request_.tries && healing_.cost < request_.cost; }

  void judge(Attempt& attempt, const records::Record& record) {
    attempt.diagnosis = diagnosis::diagnose(record, request_.thresholds, {}, attempt.folder);
    attempt.held_out = held_out_of(diagnosis::digest(record));
    if (!first_.empty() || &attempt != &healing_.before) return;
    for (const Finding* one : problems_of(attempt.diagnosis)) first_.push_back(one->kind);
  }

  void run(Attempt& attempt) {
    attempt.folder = fmt::format("{}/try-{:02}", request_.folder, healing_.tries.size() + 1);
    const auto start = std::chrono::steady_clock::now();
    try {
      attempt.cost = training_.run(attempt.settings, attempt.folder);
      judge(attempt, records::read_record(attempt.folder));
    } catch (const InputError& error) {
      attempt.failure = error.what();
    }
    attempt.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    healing_.cost += attempt.cost;
  }

  struct Next {
    const Solution* solution = nullptr;
    std::string problem;
    Settings settings;
  };

  /// The first change that was not tried yet, for the most likely problem that is left.
  Next next() {
    const std::vector<const Finding*> problems = problems_of(current().diagnosis);
    for (const Finding* problem : problems)
      if (Next found = first_untried(problem->kind, problem->kind); found.solution) return found;
    if (!problems.empty()) return first_untried("*", problems.front()->kind);
    // What was put right may want more steps than what was wrong.
    const bool helps = healing_.best >= 0 && healing_.best + 1 == int(healing_.tries.size());
    for (const Finding& one : current().diagnosis.findings)
      if (helps && one.kind == "still-learning") return first_untried(one.kind, one.kind);
    return {};
  }

  Next first_untried(const std::string& kind, const std::string& problem) {
    for (const Solution* solution : solutions_for(kind))
      if (auto changed = apply(*solution, current().settings, training_.knobs());
          changed && !tried_.count(json_text(settings_json(*changed))))
        return {solution, problem, *changed};
    return {};
  }

  Healing finish() {
    const Attempt& end = current();
    for (const Finding* one : problems_of(end.diagnosis)) healing_.left.push_back(one->id());
    healing_.healed = healing_.best >= 0 && std::none_of(first_.begin(), first_.end(), [&](const std::string& kind) {
                        return has(end.diagnosis, kind);
                      });
    return std::move(healing_);
  }

  Training& training_;
  const HealRequest& request_;
  Healing healing_;
  std::vector<std::string> first_;  ///< kinds above a note at the start
  std::set<std::string> tried_;
};

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json held_out_json(const HeldOut& end) { return {{"accuracy", number(end.accuracy)}, {"loss", number(end.loss)}}; }

Json findings_json(const diagnosis::Diagnosis& diagnosis) {
  Json ids = Json::array();
  for (const Finding* one : problems_of(diagnosis)) ids.push_back(one->id());
  return ids;
}

}  // namespace

bool HeldOut::better_than(const HeldOut& other) const {
  const bool both = std::isfinite(accuracy) && std::isfinite(other.accuracy);
  if (both && std::abs(accuracy - other.accuracy) > kEqualAccuracy) return accuracy > other.accuracy;
  if (std::isfinite(accuracy) && std::isnan(other.accuracy) && std::isnan(other.loss)) return true;
  if (loss_name != other.loss_name && !other.loss_name.empty() && both) return accuracy > other.accuracy;
  return std::isfinite(loss) && !(loss >= other.loss * (1 - (other.loss > 0 ? kEqualLoss : -kEqualLoss)));
}

Healing heal(Training& training, const records::Record& record, const HealRequest& request) {
  return Search(training, record, request).by_solutions();
}

Healing random_search(Training& training, const records::Record& record, const HealRequest& request) {
  return Search(training, record, request).at_random();
}

std::string held_out_text(const Json& end) {
  if (end["accuracy"].is_number()) return findings::percent(end["accuracy"].get<double>());
  return end["loss"].is_number() ? "loss " + findings::plain(end["loss"].get<double>()) : "–";
}

std::string ids_text(const Json& ids) {
  std::vector<std::string> words;
  for (const Json& id : ids) words.push_back(printable(id.get<std::string>()));
  return words.empty() ? "none" : join(words, ", ");
}

std::vector<std::vector<std::string>> try_rows(const Json& healing) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& one : healing["tries"])
    rows.push_back({printable(one["problem"].get<std::string>()), printable(one["changes"].get<std::string>()),
                    one["source"].get<std::string>(),
                    one.contains("failure") ? "failed: " + printable(one["failure"].get<std::string>())
                                            : (one["gone"] == true ? "gone" : "stays"),
                    held_out_text(one["held_out"]), findings::plain(one["cost"].get<double>()),
                    one["kept"] == true ? "kept" : ""});
  return rows;
}

Json healing_json(const Healing& healing, const std::string& cost_unit) {
  Json tries = Json::array();
  for (const Attempt& one : healing.tries) {
    tries.push_back({{"problem", one.problem},
                     {"source", one.source},
                     {"changes", one.changes},
                     {"settings", settings_json(one.settings)},
                     {"gone", one.gone},
                     {"better", one.better},
                     {"kept", one.kept},
                     {"held_out", held_out_json(one.held_out)},
                     {"findings", findings_json(one.diagnosis)},
                     {"cost", one.cost},
                     {"seconds", one.seconds},
                     {"run", one.folder}});
    if (!one.failure.empty()) tries.back()["failure"] = one.failure;
  }
  const Attempt& end = healing.result();
  return {
      {"healed", healing.healed},
      {"before",
       {{"findings", findings_json(healing.before.diagnosis)}, {"held_out", held_out_json(healing.before.held_out)}}},
      {"after",
       {{"findings", healing.left},
        {"held_out", held_out_json(end.held_out)},
        {"settings", settings_json(end.settings)},
        {"changes", changes_text(healing.before.settings, end.settings)}}},
      {"tries", tries},
      {"cost", healing.cost},
      {"cost_unit", cost_unit}};
}

}  // namespace netmend::healing
