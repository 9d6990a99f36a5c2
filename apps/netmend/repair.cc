// netmend repair: search for a small change, confirm it on a hold-out set, write a new model.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/text.h"
#include "evidence/json.h"
#include "findings/phrases.h"
#include "netmend/show.h"
#include "observers/figures.h"
#include "repair/repair_run.h"

namespace netmend::app {
namespace {

using repair::HoldoutFigures;
using repair::MethodResult;
using repair::RepairResult;
using repair::RepairRun;

repair::RepairRequest request_of(const RepairOptions& options) {
  repair::RepairRequest request;
  request.method = options.method, request.on = options.on, request.units = options.units;
  request.sbfl = {options.measure,     options.mutation,        options.stop,          std::nullopt,
                  options.loss_offset, options.accuracy_offset, !options.keep_offsets, options.train_between,
                  options.refresh,     options.as_published,    options.at_a_time};
  if (std::isfinite(options.value)) request.sbfl.value = options.value;
  return request;
}

/// What would only show after the search.
void check_products(const RepairOptions& options) {
  for (const std::string& path : {options.product, options.plan}) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (!folder.empty() && !std::filesystem::is_directory(folder))
      fail("{} cannot be written: there is no folder {}", path, folder.string());
  }
  if (options.review && !options.yes && !isatty(STDIN_FILENO))
    throw InputError("--review asks before writing, but standard input is not a terminal",
                     "Add --yes, or leave --review out.");
  std::error_code none;
  if (!options.product.empty() && std::filesystem::equivalent(options.model, options.product, none))
    throw InputError(fmt::format("{} is the model itself", options.product),
                     "Give -o another name; the old model is needed for comparison.");
}

std::string metric_text(const HoldoutFigures& figures) {
  return figures.metric.empty() ? "–" : observers::figure_text(figures.metric, figures.value);
}

void print_start(session::Session& session, const RepairOptions& options, const repair::RepairSplits& splits) {
  if (!splits.outcomes) return;
  print("{}  on {}{}\n", printable(session.model_name()), printable(splits.data),
        splits.target.empty() ? "" : ", " + printable(splits.target));
  const std::string rest = splits.unused == 0 ? "" : fmt::format(", {} in none of them", with_commas(splits.unused));
  print_wrapped(fmt::format("{} failing and {} correct inputs: {} to search, {} to select, {} in the hold-out set{}; "
                            "method {}, budget {}",
                            with_commas(splits.failing), with_commas(splits.passing), with_commas(splits.search),
                            with_commas(splits.selection), with_commas(splits.holdout), rest, options.method,
                            session.budget().name()),
                2);
}

void print_outcome(const RepairOptions& options, const repair::RepairSplits& splits, const RepairResult& result) {
  Table table{{"", "method", result.before.metric, "fixes", "regressions", "weights", "what was done"}, "llrrrrl", 2};
  table.rows.push_back({" ", "as it was", metric_text(result.before)});
  for (size_t i = 0; i < result.methods.size(); ++i)
    if (const MethodResult& one = result.methods[i]; one.why_not.empty())
      table.rows.push_back({int(i) == result.chosen ? "▸" : " ", one.method, metric_text(one.after),
                            with_commas(one.fixes), with_commas(one.regressions), with_commas(one.weights), one.words});
  print("\n");
  print_table(table);
  for (const MethodResult& one : result.methods)
    if (!one.why_not.empty()) print_wrapped(fmt::format("{}: nothing found: {}", one.method, one.why_not), 2);
  print_wrapped(fmt::format("hold-out set: {} that no search saw; a fix: a wrong prediction that becomes correct; a "
                            "regression: the opposite",
                            counted(splits.holdout, "input")),
                2);
  if (options.method == "auto" && options.units.empty() && result.chosen >= 0)
    print_wrapped(
        "chosen: of the methods that are not significantly worse than the best one on the selection split, "
        "and no worse on the hold-out set, the one that changes the fewest weights",
        2);
  for (const std::string& why : {result.smaller, result.larger})
    if (!why.empty()) print_wrapped(why, 2);
  if (!result.cheap.empty()) print_wrapped(fmt::format("{} alone does as well", result.cheap), 2);
  std::vector<std::string> classes;
  for (const repair::ClassFlips& one : result.per_class)
    if (one.fixes != one.regressions && classes.size() < 12)
      classes.push_back(fmt::format("{} {:+d}", printable(one.name), one.fixes - one.regressions));
  if (!classes.empty()) {
    classes.insert(classes.begin(), "fixes minus regressions by class");
    print_parts(classes, 2);
  }
  print("\n");
  if (result.chosen >= 0 && splits.outcomes)
    print_wrapped(fmt::format("{}: {}, {}, {}, {}: {}", result.verdict, findings::counted(result.fixes, "fix", "fixes"),
                              findings::counted(result.regressions, "regression"),
                              observers::points_text(result.change), findings::p_text(result.p), result.reason),
                  2);
  else
    print_wrapped(fmt::format("{}: {}", result.verdict, result.reason), 2);
}

/// People want to stay in the loop: the plan, and a question.
bool approved(const RepairRun& run, const RepairResult& result, const RepairOptions& options) {
  constexpr size_t kShown = 20;
  const std::vector<repair::PlannedChange> plan = run.plan();
  tell("\n  the plan: " + result.methods[size_t(result.chosen)].words);
  for (size_t i = 0; i < std::min(kShown, plan.size()); ++i)
    tell(fmt::format("    {:<24} {}, by at most {:.4g}", printable(plan[i].where), counted(plan[i].values, "value"),
                     plan[i].largest));
  if (plan.size() > kShown) tell(fmt::format("    … and {} more", plan.size() - kShown));
  if (options.yes) return true;
  std::fputs(fmt::format("  write {}? [y/N] ", printable(options.product)).c_str(), stderr);
  std::string line;
  std::getline(std::cin, line);
  return line == "y" || line == "Y" || line == "yes";
}

/// Writes model and plan where the verdict allows it; true when there is a new model.
bool write_products(const RepairRun& run, const RepairResult& result, const RepairOptions& options) {
  if (result.chosen < 0) return false;
  if (!options.plan.empty()) run.write_plan(options.plan);
  if (options.product.empty() || (!result.repaired && !options.force)) return false;
  if (options.review && !approved(run, result, options)) return false;
  run.write_model(options.product);
  return true;
}

void print_end(const RepairOptions& options, const repair::RepairSplits& splits, const RepairResult& result,
               bool written) {
  if (written)
    print_wrapped(fmt::format("{} written; the search saw {} of these inputs, so judge it on others, as the next "
                              "command "
                              "does",
                              options.product, with_commas(splits.search + splits.selection)),
                  2);
  else if (!options.product.empty())
    print("  {} not written{}\n", printable(options.product),
          result.repaired || result.chosen < 0 ? "" : " (--force writes it anyway)");
  else if (result.repaired)
    print("  nothing is written: -o FILE writes the model, --plan FILE the edits\n");
}

/// Old against new on what the search did not see: the tests where it saw training data, else its hold-out set.
Shell compare_command(const session::Session& session, const std::string& product, const std::string& holdout) {
  std::string data = session.request().data;
  const size_t name = data.substr(0, data.find(',')).rfind(":train");
  if (name != std::string::npos) {
    data.replace(name, 6, ":test");
    return Shell::of("netmend compare {} {} --data {}", session.model_name(), product, data);
  }
  Shell command = Shell::of("netmend compare {} {}", holdout, product);
  if (const Shell words = session.words(false); !words.empty()) command += Shell::of(" {}", words);
  return command + Shell::of(" --common");
}

}  // namespace

int repair_model(const Common& common, const RepairOptions& asked) {
  RepairOptions options = asked;
  const repair::RepairRequest request = request_of(options);
  repair::check_request(request);
  check_products(options);
  const auto start = std::chrono::steady_clock::now();
  session::Session session(request_of(common, options));
  Examined examined = examine(common, options, session, "repair");
  if (examined.stop) return *examined.stop;
  RepairRun run(session, request);
  if (!common.json) print_start(session, options, run.splits());
  const RepairResult& result = run.search([&](const std::string& line) { say(common, line); });
  RunFolder& folder = session.folder("repair");
  run.write_flips(folder.file("flips.csv"));
  if (!common.json) print_outcome(options, run.splits(), result);
  if (result.interrupted)
    for (std::string* product : {&options.product, &options.plan})
      if (!product->empty()) *product = partial_name(*product);
  const bool written = write_products(run, result, options);
  const int status = result.interrupted ? 130 : written || result.repaired ? 0 : 1;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Json json = repair::to_json(run.splits(), result);
  json["model"] = session.model_name();
  json["budget"] = session.budget().name();
  json["written"] = written ? Json(options.product) : Json(nullptr);
  json["plan"] = options.plan.empty() || result.chosen < 0 ? Json(nullptr) : Json(options.plan);
  json["seconds"] = seconds;
  json["next"] = Json::array();
  if (written) {
    run.write_holdout(folder.file("holdout"));
    json["next"].push_back(compare_command(session, options.product, folder.file("holdout")));
  }
  json["run"] = folder.path();
  mark_partial(json, status);
  write_file(folder.file("repair.json"), evidence::dump(json, 2));
  session.finish(seconds, status);
  if (common.json) return print_json(json), status;
  print_end(options, run.splits(), result, written);
  print("  flips     {}\n", folder.file("flips.csv"));
  for (const auto& next : json["next"]) print("  next      {}\n", printable(next.get<std::string>()));
  if (status == 1) print("  exit      1: no repair was confirmed\n");
  if (result.interrupted) say(common, "stopped: not all repair methods were tried");
  return status;
}

}  // namespace netmend::app
