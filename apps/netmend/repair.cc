// netmend repair: search for a small change, confirm it on unseen data, write a new model.
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "edits/edit_file.h"
#include "netmend/searched.h"
#include "netmend/show.h"
#include "netmend/target.h"
#include "observers/sample_table.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "repair/mend.h"
#include "repair/sbfl_mutation.h"
#include "stream/layers.h"

namespace netmend::app {
namespace {

using observers::SampleRow;
using observers::Task;
using repair::Outcome;
using repair::Problem;
using repair::Tried;
using repair::Verdict;

void require_judged(const Case& about) {
  if (about.judged.settings.task == Task::kNone)
    throw InputError(fmt::format("{} has no labels: nothing tells which answers are wrong", about.data->info().spec),
                     "Give data with labels.");
}

/// `conv1/7,conv1/8`. Throws InputError with the nearest name.
std::vector<localise::UnitPlace> parse_units(const std::vector<std::string>& names,
                                             const std::vector<model::Layer>& layers) {
  std::vector<localise::UnitPlace> places;
  std::vector<std::string> known;
  for (const model::Layer& layer : layers) known.push_back(layer.name);
  for (const std::string& name : names) {
    size_t slash = name.rfind('/');
    std::string layer = slash == std::string::npos ? name : name.substr(0, slash);
    int64_t unit = -1;
    auto hit = std::find(known.begin(), known.end(), layer);
    if (hit == known.end())
      throw InputError(fmt::format("there is no layer {}{}", layer, did_you_mean(layer, known)),
                       "A unit is written as layer/number, for example conv1/7.");
    const model::Layer& at = layers[size_t(hit - known.begin())];
    if (slash == std::string::npos || !parse_int(name.substr(slash + 1), unit) || unit < 0 || unit >= at.units)
      throw InputError(fmt::format("there is no unit {}: {} has {} of them, counted from 0", name, at.name, at.units),
                       "A unit is written as layer/number, for example conv1/7.");
    places.push_back({size_t(hit - known.begin()), unit});
  }
  return places;
}

/// A number for class and outcome, so that every part of the data gets its share of both.
std::vector<int64_t> strata_of(const observers::PredictionSettings& settings, const std::vector<SampleRow>& rows) {
  std::vector<int64_t> strata;
  for (const SampleRow& row : rows) strata.push_back((settings.by_class() ? int64_t(row.label) : 0) * 3 + row.right);
  return strata;
}

std::vector<SampleRow> answers_now(const Common& common, const Judged& judged) {
  observers::Predictions predictions(judged.settings, true);
  auto done = stream::run_pass(judged.subject, {&predictions}, pass_options(common));
  if (done.interrupted) throw Interrupted{};
  auto state = done.collected[0].fold(predictions);
  return std::move(dynamic_cast<observers::PredictionState&>(*state).rows);
}

double budget_seconds(const std::string& text) {
  if (text.empty() || text == "normal") return 60;
  if (text == "quick") return 15;
  if (text == "deep") return 600;
  return parse_budget(text);
}

std::string metric_text(const observers::PredictionResult& result) {
  return result.metrics.empty() ? "–" : figure_text(result.metrics[0].name, result.metrics[0].estimate);
}

Json figure_json(const repair::Answers& answers) {
  Json json = {{"inputs", answers.rows.size()}, {"accuracy", answers.result.accuracy}, {"loss", answers.result.loss}};
  if (!answers.result.metrics.empty()) {
    const observers::Metric& metric = answers.result.metrics[0];
    json["metric"] = metric.name, json["value"] = metric.estimate.value;
    json["low"] = metric.estimate.low, json["high"] = metric.estimate.high;
  }
  return json;
}

Json tried_json(const Tried& one) {
  Json json = {{"method", one.method}, {"seconds", one.seconds}};
  if (!one.best) {
    json["why_not"] = one.why_not;
    return json;
  }
  json["what"] = one.best->words, json["units"] = one.best->units, json["edits"] = one.best->edits.size();
  json["selection"] = one.best->selection.metric;
  json["after"] = figure_json(one.holdout);
  json["fixed"] = one.fixed, json["broken"] = one.broken;
  return json;
}

Json outcome_json(const Problem& problem, const Outcome& outcome) {
  Json json = {
      {"verdict", verdict_name(outcome.verdict)},
      {"reason", outcome.reason},
      {"method", outcome.chosen < 0 ? Json(nullptr) : Json(outcome.tried[size_t(outcome.chosen)].method)},
      {"inputs",
       {{"search", problem.parts.search.size()},
        {"selection", problem.parts.selection.size()},
        {"holdout", problem.parts.holdout.size()}}},
      {"before", figure_json(outcome.before)},
      {"after", figure_json(outcome.after)},
      {"fixed", outcome.flips.fixed},
      {"broken", outcome.flips.broken},
      {"net", outcome.flips.net()},
      {"p", outcome.p},
      {"change", {{"value", outcome.change.value}, {"low", outcome.change.low}, {"high", outcome.change.high}}},
      {"cheap_does_as_well", outcome.cheap_does_as_well ? Json(outcome.cheap) : Json(nullptr)}};
  json["per_class"] = Json::array();
  for (size_t c = 0; c < outcome.per_class.size(); ++c) {
    const observers::FlipCount& count = outcome.per_class[c];
    json["per_class"].push_back({{"class", problem.settings.classes[c]},
                                 {"inputs", count.samples},
                                 {"right_before", count.right_before},
                                 {"right_after", count.right_after},
                                 {"fixed", count.fixed},
                                 {"broken", count.broken}});
  }
  json["tried"] = Json::array();
  for (const Tried& one : outcome.tried) json["tried"].push_back(tried_json(one));
  if (outcome.chosen >= 0) json["units"] = outcome.tried[size_t(outcome.chosen)].best->units;
  return json;
}

void print_outcome(const Problem& problem, const Outcome& outcome) {
  fmt::print("\n  on {} inputs that no search saw       {:<12}  fixed  broken\n",
             with_commas(int64_t(problem.parts.holdout.size())), problem.settings.metric);
  fmt::print("    {:<34}  {}\n", "as it was", metric_text(outcome.before.result));
  for (size_t i = 0; i < outcome.tried.size(); ++i) {
    const Tried& one = outcome.tried[i];
    if (!one.best)
      fmt::print("    {:<12} –  {}\n", one.method, one.why_not);
    else
      fmt::print("  {} {:<12} {:<21}  {}  {:>5}  {:>6}   {}\n", int(i) == outcome.chosen ? "▸" : " ", one.method, "",
                 metric_text(one.holdout.result), one.fixed, one.broken, one.best->words);
  }
  if (outcome.cheap_does_as_well) fmt::print("  {} alone does as well\n", outcome.cheap);
  std::vector<std::string> classes;
  for (size_t c = 0; c < outcome.per_class.size(); ++c)
    if (outcome.per_class[c].net() != 0 && classes.size() < 12)
      classes.push_back(fmt::format("{} {:+d}", printable(problem.settings.classes[c]), outcome.per_class[c].net()));
  if (!classes.empty()) fmt::print("  net by class   {}\n", join(classes, "   "));
  const bool numbers = problem.settings.task == Task::kNumber && problem.settings.tolerance < 0;
  if (outcome.chosen >= 0 && !numbers)
    fmt::print("\n  {}: {} fixed, {} broken, {:+.1f} points ({:+.1f} to {:+.1f}), p = {:.2g}: {}\n",
               verdict_name(outcome.verdict), outcome.flips.fixed, outcome.flips.broken, 100 * outcome.change.value,
               100 * outcome.change.low, 100 * outcome.change.high, outcome.p, outcome.reason);
  else
    fmt::print("\n  {}: {}\n", verdict_name(outcome.verdict), outcome.reason);
}

void write_flips(const std::string& path, const Problem& problem, const Outcome& outcome) {
  write_file(path, [&](std::ostream& out) {
    out << "id,change,label,before,after\n";
    for (const repair::Flipped& one : outcome.list)
      out << observers::csv_field(problem.subject.data->id(one.sample)) << (one.fixed ? ",fixed," : ",broken,")
          << fmt::format("{:g},{:g},{:g}\n", one.label, one.before, one.after);
  });
}

/// People want to stay in the loop: the plan, and a question.
bool approved(const Common& common, const Outcome& outcome, const RepairOptions& options) {
  const repair::Candidate& best = *outcome.tried[size_t(outcome.chosen)].best;
  std::map<std::string, int64_t> numbers;
  std::map<std::string, double> moved;
  for (const edits::Edit& edit : best.edits)
    for (size_t i = 0; i < edit.after.size(); ++i) {
      if (edit.after[i] == edit.before[i]) continue;
      const std::string who = edit.unit.empty() ? edit.parameter : edit.unit;
      ++numbers[who], moved[who] = std::max(moved[who], std::abs(edit.after[i] - edit.before[i]));
    }
  fmt::print(stderr, "\n  the plan: {}\n", best.words);
  size_t shown = 0;
  for (const auto& [who, count] : numbers) {
    if (++shown > 20) break;
    fmt::print(stderr, "    {:<24} {} numbers, by at most {:.4g}\n", printable(who), count, moved[who]);
  }
  if (numbers.size() > 20) fmt::print(stderr, "    … and {} more\n", numbers.size() - 20);
  if (options.yes) return true;
  fmt::print(stderr, "  write {}? [y/N] ", options.product);
  std::string line;
  std::getline(std::cin, line);
  return line == "y" || line == "Y" || line == "yes";
}

/// Writes model and plan where the verdict allows it. Says what was written.
bool write_products(const Common& common, const RepairOptions& options, const Case& about, const Problem& problem,
                    const Outcome& outcome) {
  const repair::Candidate& best = *outcome.tried[size_t(outcome.chosen)].best;
  const std::string parent = file_checksum(problem.subject.model_name);
  if (!options.plan.empty())
    edits::write_edits(edits::describe(problem.subject.graph, best.edits, problem.subject.model_name, parent),
                       options.plan);
  if (options.product.empty() || (outcome.verdict != Verdict::kRepaired && !options.force)) return false;
  if (options.review && !approved(common, outcome, options)) return false;
  model::Graph fixed = problem.subject.graph;
  edits::apply(fixed, best.edits);
  Searched searched;
  searched.parent = parent, searched.method = best.method, searched.data = about.data->info().spec;
  searched.edits = int64_t(best.edits.size()), searched.units = best.units;
  searched.seed = problem.seed;
  for (const auto* part : {&problem.parts.search, &problem.parts.selection})
    for (int64_t sample : *part) searched.inputs.push_back(content_hash(*problem.subject.data, sample));
  searched.write_to(fixed);
  onnx::write_model(fixed, options.product);
  return true;
}

/// What would only show after the search.
void check_options(const RepairOptions& options) {
  if (options.method != "auto") repair::find_method(options.method);
  if (options.method == "sbfl-mutation") {
    localise::find_measure(options.measure);
    edits::find_operation(options.mutation);
    repair::parse_when(options.stop);
    if (!(options.loss_offset >= 0) || !(options.accuracy_offset >= 0)) fail("offsets are numbers from 0");
  }
  if (!options.units.empty() && options.method != "auto" && options.method != "surgical")
    throw InputError(fmt::format("--unit does not go with --method {}", options.method),
                     "surgical changes the units that are named; others change what they choose.");
  for (const std::string& path : {options.product, options.plan}) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder))
      fail("{} cannot be written: there is no folder {}", path, folder.string());
  }
  if (options.review && !options.yes && !isatty(STDIN_FILENO))
    throw InputError("--review asks before writing, and nobody is there to answer",
                     "Add --yes, or leave --review out.");
  std::error_code none;
  if (!options.product.empty() && std::filesystem::equivalent(options.model, options.product, none))
    throw InputError(fmt::format("{} is the model itself", options.product),
                     "Give -o another name; the old model is what you compare with.");
}

}  // namespace

int repair_model(const Common& common, const RepairOptions& options) {
  check_options(options);
  Case about = open_case(common, options);
  Judged& judged = about.judged;
  require_judged(about);
  const std::vector<model::Layer> layers = stream::find_layers(judged.subject);
  const auto units = parse_units(options.units, layers);
  NamedTarget target = parse_target(options.on, judged.settings, *about.data);
  checkup::Preflight preflight = examine(common, options, about);
  if (!common.json) print_preflight(preflight, judged.settings.metric);
  if (preflight.blocker && !options.anyway) {
    if (common.json)
      print_json({{"preflight", preflight_json(preflight)},
                  {"findings",
                   Json::array({blocker_json(*preflight.blocker, "netmend repair " + judged.subject.model_name)})}});
    return 1;
  }
  const double seconds = budget_seconds(options.budget);
  const auto start = repair::Clock::now();
  Problem problem{judged.subject,
                  judged.settings,
                  layers,
                  answers_now(common, judged),
                  {},
                  target.target,
                  !options.on.empty(),
                  units,
                  common.seed,
                  common.jobs,
                  common.quiet,
                  start + std::chrono::milliseconds(int64_t(1000 * seconds))};
  problem.sbfl = {options.measure,     options.mutation,        options.stop,          std::nullopt,
                  options.loss_offset, options.accuracy_offset, !options.keep_offsets, options.train_between,
                  options.refresh,     options.as_published,    options.at_a_time};
  if (std::isfinite(options.value)) problem.sbfl.value = options.value;
  std::vector<uint64_t> hashes;
  for (int64_t i = 0; i < about.data->size(); ++i) hashes.push_back(content_hash(*about.data, i));
  problem.parts = repair::split(strata_of(judged.settings, problem.rows), {}, common.seed, hashes);
  const bool rights = judged.settings.task != Task::kNumber || judged.settings.tolerance >= 0;
  if (rights) {
    std::vector<int64_t> all(problem.rows.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = int64_t(i);
    const auto failing = int64_t(problem.on(observers::Side::kFailing, all).size()),
               passing = int64_t(problem.on(observers::Side::kPassing, all).size());
    if (failing == 0)
      throw InputError(target.text.empty() ? "every answer is right: there is nothing to repair"
                                           : fmt::format("no input fails as {} says", target.text),
                       target.text.empty() ? "Give harder data, or netmend stress makes some."
                                           : "netmend eval shows which confusions there are.");
    std::vector<std::string> absent;
    std::vector<int64_t> have(judged.settings.classes.size());
    if (judged.settings.by_class()) {
      for (const SampleRow& row : problem.rows) ++have[size_t(row.label)];
      for (size_t c = 0; c < have.size(); ++c)
        if (have[c] == 0) absent.push_back(judged.settings.classes[c]);
    }
    if (!absent.empty())
      say(common,
          fmt::format("warning: no input is of class {}: what a repair does to it is not seen", join(absent, ", ")));
    if (passing == 0) say(common, "warning: no input is answered right: nothing can be seen to break");
    if (!common.json)
      fmt::print(
          "{}  on {}{}\n  {} failing and {} right inputs: {} to search, {} to select, {} held out; {} for at most "
          "{:.0f} s\n",
          judged.subject.model_name, about.data->info().spec, target.text.empty() ? "" : ", " + target.words,
          with_commas(failing), with_commas(passing), with_commas(int64_t(problem.parts.search.size())),
          with_commas(int64_t(problem.parts.selection.size())), with_commas(int64_t(problem.parts.holdout.size())),
          options.method, seconds);
  }
  if (problem.parts.search.empty() || problem.parts.selection.empty() || problem.parts.holdout.empty())
    throw InputError(fmt::format("{} inputs are too few to search, select and confirm on", problem.rows.size()),
                     "Give more data.");
  Outcome outcome = repair::mend(problem, options.method, [&](const std::string& line) { say(common, line); });
  RunFolder folder(common.out, "repair", common.arguments);
  write_flips(folder.file("flips.csv"), problem, outcome);
  folder.note_file(judged.subject.model_name);
  for (const std::string& file : about.data->info().files) folder.note_file(file);
  if (!common.json) print_outcome(problem, outcome);
  const bool written = outcome.chosen >= 0 && write_products(common, options, about, problem, outcome);
  Json json = outcome_json(problem, outcome);
  json["model"] = judged.subject.model_name, json["data"] = about.data->info().spec;
  json["written"] = written ? Json(options.product) : Json(nullptr);
  json["plan"] = options.plan.empty() || outcome.chosen < 0 ? Json(nullptr) : Json(options.plan);
  json["seconds"] = std::chrono::duration<double>(repair::Clock::now() - start).count();
  json["next"] = Json::array();
  if (written)
    json["next"].push_back(next_command("compare", judged.subject.model_name + " " + options.product, options));
  json["interrupted"] = outcome.interrupted;
  json["run"] = folder.path();
  write_file(folder.file("repair.json"), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  folder.finish(common.seed, json["seconds"], 0);
  if (common.json) {
    print_json(json);
  } else {
    if (written)
      fmt::print("  {} written; the search saw {} of the inputs, judge it on others\n", printable(options.product),
                 with_commas(int64_t(problem.parts.search.size() + problem.parts.selection.size())));
    else if (!options.product.empty())
      fmt::print("  {} not written{}\n", printable(options.product),
                 outcome.verdict == Verdict::kRepaired ? "" : " (--force writes it anyway)");
    else if (outcome.verdict == Verdict::kRepaired)
      fmt::print("  nothing is written: -o FILE writes the model, --plan FILE the edits\n");
    fmt::print("  flips     {}\n", folder.file("flips.csv"));
    for (const auto& next : json["next"]) fmt::print("  next      {}\n", next.get<std::string>());
  }
  return written || outcome.verdict == Verdict::kRepaired ? 0 : 1;
}

}  // namespace netmend::app
