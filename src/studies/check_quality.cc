#include "studies/check_quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/text.h"
#include "checks/checkup.h"
#include "session/session.h"
#include "studies/altered.h"

namespace netmend::studies {

using trials::trial_document;
namespace {

using Json = nlohmann::ordered_json;
using findings::Finding;
using Heard = std::function<void(const std::string&)>;

constexpr size_t kTop = 3;
constexpr double kLeastCost = 0.02;

/// A check-up as the command does it: the preflight, and behind it everything else.
struct Checked {
  std::vector<Finding> findings;
  double accuracy = 0, seconds = 0;
};

Checked check_model(const CheckedModel& model, const QualityOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  session::Request request;
  request.model = model.file, request.budget = options.budget, request.seed = options.seed;
  request.jobs = options.jobs, request.quiet = true;
  session::Session session(std::move(request), model.file, model.graph, model.test, model.train);
  checks::Checkup found = checks::check_up(session, {});
  if (found.interrupted) throw Interrupted{};
  Checked out;
  out.findings = std::move(found.results.findings);
  if (found.seen && found.seen->test) out.accuracy = found.seen->test->result.accuracy;
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return out;
}

std::vector<std::string> top_of(const Checked& checked, size_t count) {
  std::vector<std::string> top;
  for (const Finding& finding : checked.findings)
    if (top.size() < count) top.push_back(level_name(finding.level) + " " + finding.id());
  return top;
}

bool is_serious(const Finding& finding) { return finding.level >= findings::Level::kSerious; }

/// Findings of some weight, for comparing two check-ups: notes are no findings that anybody ranks.
std::vector<std::string> ids_of(const Checked& checked) {
  std::vector<std::string> ids;
  for (const Finding& finding : checked.findings)
    if (ids.size() < kTop && finding.level > findings::Level::kNote) ids.push_back(finding.id());
  std::sort(ids.begin(), ids.end());
  return ids;
}

void keep(Store& store, const std::string& key, const QualityRow& row) {
  store.put(key, json_text(Json{{"part", row.part},
                                {"model", row.model},
                                {"fault", row.fault},
                                {"expected", row.expected},
                                {"top", row.top},
                                {"good", row.good},
                                {"alone", row.alone},
                                {"cost", row.cost},
                                {"accuracy", row.accuracy},
                                {"seconds", row.seconds}}));
}

std::string key_of(const char* part, const CheckedModel& model, const std::string& what,
                   const QualityOptions& options) {
  return fmt::format("{}|{}|{}|seed {}|{}", part, model.name, what, options.seed, options.budget);
}

std::shared_ptr<const dataset::Dataset> shuffled(const std::shared_ptr<const dataset::Dataset>& data, uint64_t seed) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < data->size(); ++i) order.push_back(i);
  Random(seed, 77).shuffle(order);
  return altered(data, {.samples = std::move(order)});
}

}  // namespace

void run_quiet(Store& store, const CheckedModel& model, const QualityOptions& options, const Heard& progress) {
  const std::string key = key_of("quiet", model, "", options);
  if (store.find(key)) return;
  progress(fmt::format("{} as it is", model.name));
  Checked checked = check_model(model, options);
  const auto serious = size_t(std::count_if(checked.findings.begin(), checked.findings.end(), is_serious));
  const bool good = serious == 0;
  keep(store, key,
       {"quiet", model.name, "", "nothing above minor", top_of(checked, checked.findings.size()), good, false, 0,
        checked.accuracy, checked.seconds});
}

void run_stable(Store& store, const CheckedModel& model, const QualityOptions& options, const Heard& progress) {
  // Nine tenths are the data; the rest comes on top.
  const int64_t part = model.test->size() * 10 / 11;
  CheckedModel base = model;
  std::vector<int64_t> first;
  for (int64_t i = 0; i < part; ++i) first.push_back(i);
  base.test = altered(shuffled(model.test, options.seed), {.samples = first});
  std::optional<std::vector<std::string>> before;
  auto look = [&](const char* what, const CheckedModel& changed, const QualityOptions& how) {
    const std::string key = key_of("stable", model, what, options);
    if (store.find(key)) return;
    if (!before)
      progress(fmt::format("{}: nine tenths of its tests", model.name)), before = ids_of(check_model(base, options));
    progress(fmt::format("{}: {}", model.name, what));
    Checked checked = check_model(changed, how);
    keep(store, key,
         {"stable", model.name, what, join(*before, ", "), top_of(checked, kTop), ids_of(checked) == *before, false, 0,
          checked.accuracy, checked.seconds});
  };
  CheckedModel changed = base;
  changed.test = shuffled(base.test, options.seed + 1);
  look("another order", changed, options);
  QualityOptions other = options;
  other.seed = options.seed + 1;
  look("another seed", base, other);
  changed.test = shuffled(model.test, options.seed);
  look("a tenth more data", changed, options);
}

namespace {

/// Depends on the name of the fault, so that all of them strike in different places.
uint64_t seed_of(const PlantedKind& kind, uint64_t seed) {
  return Random::hash(seed + std::stoull(checksum(kind.name), nullptr, 16)) % 1000;
}

}  // namespace

void run_loud(Store& store, const CheckedModel& model, const QualityOptions& options, const Heard& progress) {
  run_quiet(store, model, options, progress);
  const std::string as_it_is = key_of("quiet", model, "", options);
  const JsonDocument document = trial_document(as_it_is, *store.find(as_it_is));
  const std::vector<std::string> top = document.top().at("top").texts();
  const std::set<std::string> sound(top.begin(), top.end());
  for (const PlantedKind& kind : planted_kinds()) {
    if (!options.kinds.empty() &&
        std::find(options.kinds.begin(), options.kinds.end(), kind.name) == options.kinds.end())
      continue;
    const std::string key = key_of("loud", model, std::string(kind.name), options);
    if (store.find(key)) continue;
    CheckedModel faulty = model;
    const PlantedKind::Named wanted = kind.plant(faulty, seed_of(kind, options.seed));
    // What costs nobody anything is no fault. Leaks, repeats and missing classes are: they flatter.
    const double cost = wanted ? cost_of(model, faulty) : 0;
    if (!wanted || (cost < kLeastCost && kind.group != "splits")) {
      keep(store, key, {"none", model.name, std::string(kind.name), "", {}, false, false, cost, 0, 0});
      continue;
    }
    progress(fmt::format("{} with {}", model.name, kind.name));
    QualityRow row{"loud", model.name, std::string(kind.name), join(*wanted, " or "), {}, false, false, cost, 0, 0};
    try {
      Checked checked = check_model(faulty, options);
      row.top = top_of(checked, kTop), row.accuracy = checked.accuracy, row.seconds = checked.seconds;
      for (size_t i = 0; i < std::min(kTop, checked.findings.size()); ++i)
        row.good |= names_fault(*wanted, checked.findings[i]);
      row.alone = !checked.findings.empty() && names_fault(*wanted, checked.findings[0]) &&
                  std::none_of(checked.findings.begin() + 1, checked.findings.end(), [&](const Finding& one) {
                    return one.level >= checked.findings[0].level && !names_fault(*wanted, one) &&
                           !sound.count(level_name(one.level) + " " + one.id());
                  });
    } catch (const InputError& error) {
      row.top = {std::string("error ") + error.what()};
    }
    keep(store, key, row);
  }
}

bool names_fault(const std::vector<std::string>& wanted, const Finding& finding) {
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](const std::string& one) { return one == finding.id() || one == finding.kind + ":*"; });
}

std::vector<QualityRow> read_quality(const Store& store) {
  std::vector<QualityRow> rows;
  for (const auto& [key, text] : store.all()) {
    const JsonDocument document = trial_document(key, text);
    const JsonView row = document.top();
    rows.push_back({row.at("part").text(), row.at("model").text(), row.at("fault").text(), row.at("expected").text(),
                    row.at("top").texts(), row.at("good").truth(), row.at("alone").truth(), row.at("cost").number(),
                    row.at("accuracy").number(), row.at("seconds").number()});
  }
  return rows;
}

namespace {

std::string table(const std::vector<QualityRow>& rows, const std::string& part, const char* head) {
  std::string text = fmt::format("| {} | findings, the first ones | |\n|---|---|---|\n", head);
  int64_t good = 0, all = 0;
  for (const QualityRow& row : rows) {
    if (row.part != part) continue;
    ++all, good += row.good;
    const std::string what = row.fault.empty() ? row.model : row.model + ", " + row.fault;
    text += fmt::format(
        "| {} | {} | {} |\n", what,
        row.top.empty() ? "nothing" : join(std::span(row.top).first(std::min<size_t>(4, row.top.size())), "; "),
        row.good ? "✓" : "✗");
  }
  return all == 0 ? ""
                  : text + fmt::format("\n{} of {} ({:.0f} %).\n\n", good, all, 100.0 * double(good) / double(all));
}

}  // namespace

std::string quality_text(const std::vector<QualityRow>& rows) {
  std::string text = "### Quiet: sound models with sound data, nothing above minor\n\n" + table(rows, "quiet", "model");
  text += "### Stable: the same findings for another order, another seed, a tenth more data\n\n" +
          table(rows, "stable", "model and change");
  text += "### Loud: planted faults, the right kind and place among the first three\n\n";
  std::map<std::string, std::pair<int64_t, int64_t>> by_fault;
  int64_t good = 0, alone = 0, all = 0;
  for (const QualityRow& row : rows)
    if (row.part == "loud")
      by_fault[row.fault].first += row.good, ++by_fault[row.fault].second, good += row.good, alone += row.alone, ++all;
  text += "| fault | found |\n|---|---|\n";
  for (const PlantedKind& kind : planted_kinds())
    if (auto hit = by_fault.find(std::string(kind.name)); hit != by_fault.end())
      text += fmt::format("| {} ({}) | {} of {} |\n", kind.name, kind.group, hit->second.first, hit->second.second);
  if (all > 0)
    text += fmt::format(
        "\n{} of {} faults of {} kinds ({:.0f} %); {} ({:.0f} %) alone at the top: first, and beside nothing as "
        "serious "
        "that the sound network has not.\n\nNot found:\n\n",
        good, all, by_fault.size(), 100.0 * double(good) / double(all), alone, 100.0 * double(alone) / double(all));
  for (const QualityRow& row : rows)
    if (row.part == "loud" && !row.good)
      text += fmt::format("- {}, {} ({}): {}\n", row.model, row.fault, row.expected,
                          row.top.empty() ? "nothing" : join(row.top, "; "));
  return text;
}

}  // namespace netmend::studies
