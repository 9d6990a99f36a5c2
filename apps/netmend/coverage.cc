// netmend coverage: what the tests never try, and which of them add to what is covered.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "adequacy/choice.h"
#include "adequacy/coverage_run.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "evidence/json.h"
#include "findings/phrases.h"
#include "netmend/show.h"

namespace netmend::app {
namespace {

constexpr size_t kLabel = 13;  ///< columns before an item's text

void print_item(const std::string& label, const std::string& text) {
  print("  {:<11}", label);
  print_wrapped(text, kLabel, kLabel);
}

std::string percent(double value) {
  if (value > 0 && value < 0.0005) return "< 0.1 %";
  return fmt::format("{:.1f} %", 100 * value);
}

std::string amount(const Json& value) {
  return value.is_number_integer() ? with_commas(value.get<int64_t>()) : fmt::format("{:.2g}", value.get<double>());
}

/// `"a"` of a list of names, printable.
std::string names(const Json& list, size_t most) {
  std::vector<std::string> found;
  for (size_t i = 0; i < std::min(most, list.size()); ++i) found.push_back(printable(list[i].get<std::string>()));
  return join(found, ", ");
}

std::string text(const Json& json, const char* key) { return printable(json[key].get<std::string>()); }

void print_figures(const Json& found) {
  Table table{{"criterion", "what should be covered", "covered", ""}, "llrr", 2};
  for (const Json& figure : found["criteria"]) {
    const auto name = figure["name"].get<std::string>();
    std::string asks(adequacy::criterion_row(name).asks);
    if (name == "IDC")
      asks =
          fmt::format("combinations of the {} most important units of {}",
                      figure["parameters"].empty() ? "" : amount(figure["parameters"].front()), text(found, "layer"));
    std::string covered = figure["covered"].is_null() ? "" : amount(figure["covered"]);
    const bool share = !figure["total"].is_null();
    if (share) covered += " of " + amount(figure["total"]);
    const std::string value = figure["value"].is_null() ? ""
                              : share                   ? percent(figure["value"])
                              : name == "NLC"           ? fmt::format("{:.4g}", figure["value"].get<double>())
                                                        : "";
    table.rows.push_back({name, asks, covered, value});
  }
  print("\n");
  print_table(table);
}

/// Regions that training reaches and no test does, most training inputs first.
std::vector<Json> untried_regions(const Json& found) {
  std::vector<Json> untried(found["regions_untried"].begin(), found["regions_untried"].end());
  std::stable_sort(untried.begin(), untried.end(),
                   [](const Json& a, const Json& b) { return a["training"] > b["training"]; });
  return untried;
}

/// How much of what training covers the tests cover too, in a sentence.
std::string verdict(const Json& found) {
  if (found["important"].empty()) return "";
  const Json& all = found["important"][0]["combinations"];
  const size_t untried = found["regions_untried"].size();
  const double training = all["training"], both = all["both"], share = training > 0 ? both / training : 1;
  const char* how = share >= 1     ? "all"
                    : share >= 0.9 ? "nearly all"
                    : share > 0.5  ? "most"
                    : share > 0    ? "at most half"
                                   : "none";
  return fmt::format(
      "Of the combinations of important units that training data reaches, the tests reach {}{}.", how,
      untried == 0 ? "" : fmt::format("; for single units, they miss {}", counted(int64_t(untried), "value region")));
}

void print_untried(const Json& found) {
  const std::vector<Json> untried = untried_regions(found);
  if (found["regions"].get<int64_t>() > 0 && untried.empty())
    print_item("regions", fmt::format("tests reach all {} value regions of the {} most important units of {}",
                                      found["regions"].get<int64_t>(), found["important"].back()["units"].size(),
                                      text(found, "layer")));
  for (size_t i = 0; i < std::min<size_t>(3, untried.size()); ++i)
    print_item(i == 0 ? "regions" : "",
               fmt::format("{} from {} to {}: no test, {} (such as {})", text(untried[i], "unit"),
                           untried[i]["low"].is_null() ? "−∞" : findings::plain(untried[i]["low"].get<double>()),
                           untried[i]["high"].is_null() ? "∞" : findings::plain(untried[i]["high"].get<double>()),
                           counted(untried[i]["training"], "training input"), names(untried[i]["training_inputs"], 3)));
  if (untried.size() > 3) print_item("", fmt::format("and {} more", counted(int64_t(untried.size()) - 3, "region")));
  if (found["important"].empty()) return;
  const Json &first = found["important"][0], &all = first["combinations"];
  const int64_t tests = all["tests"], both = all["both"];
  print_item("combined", fmt::format("training reaches {} of {} units, tests reach {} of them{}",
                                     counted(all["training"], "combination"), first["units"].size(), with_commas(both),
                                     tests > both ? fmt::format(", and {} others", with_commas(tests - both)) : ""));
  for (size_t i = 0; i < std::min<size_t>(2, first["untried"].size()); ++i)
    print_item("", fmt::format("untested: {}, such as {}", counted(first["untried"][i]["training"], "training input"),
                               names(first["untried"][i]["training_inputs"], 3)));
}

void print_low_units(const Json& found) {
  if (found["train"].is_null() || !found["on"].is_null()) return;
  const std::string units = counted(found["units"], "unit");
  if (found["units_low"].is_null())
    return print_item("highs", "too few tests to judge whether units reach values as high as in training");
  const int64_t low = found["units_low"];
  if (low == 0) return print_item("highs", fmt::format("all {} reach values about as high as in training", units));
  print_item("highs", fmt::format("{} of {} never {} values as high as in training", low, units,
                                  low == 1 ? "reaches" : "reach"));
  for (size_t i = 0; i < std::min<size_t>(2, found["low_units"].size()); ++i) {
    const Json& one = found["low_units"][i];
    print_item("",
               fmt::format("{}{}: tests up to {}, {}{} above that (such as {})", text(one, "unit"),
                           one.contains("position") ? " at " + json_text(one["position"]) : "",
                           one["high_in_tests"].is_null() ? "–" : findings::plain(one["high_in_tests"].get<double>()),
                           one["at_least"].get<bool>() ? "at least " : "",
                           counted(one["training_inputs_above"], "training input"), names(one["training_inputs"], 3)));
  }
}

void print_inputs(const Json& found) {
  const Json& subset = found["subset"];
  if (!subset.is_null() && subset["inputs"].get<int64_t>() > 0) {
    Json most = Json::array();
    for (const Json& one : subset["add_most"]) most.push_back(one["input"]);
    print_item("tests", (most.size() == 1 ? "the one that adds" : "those that add") + std::string(" most coverage: ") +
                            names(most, 5));
  }
  const Json& kinds = found["surprise"];
  auto chosen = std::find_if(kinds.begin(), kinds.end(), [](const Json& kind) { return kind["name"] == "DSA"; });
  if (chosen == kinds.end()) chosen = kinds.begin();
  if (chosen == kinds.end()) return;
  std::vector<std::string> ids;
  for (const Json& one : (*chosen)["most"])
    if (ids.size() < 5 && one["score"] != 0)
      ids.push_back(fmt::format("{} ({})", text(one, "input"), findings::plain(one["score"].get<double>())));
  if (!ids.empty())
    print_item("surprise",
               fmt::format("least like the training data by {}: {}", text(*chosen, "name"), join(ids, ", ")));
}

void print_coverage(const CoverageOptions& options, const Json& found) {
  const std::string against =
      found["train"].is_null()
          ? ""
          : fmt::format("   training {} ({})", with_commas(found["train_inputs"]), text(found, "train"));
  print_wrapped(
      fmt::format("{} · {}   tests {} ({}){}", counted(int64_t(found["layers"].size()), "layer"),
                  counted(found["units"], "unit"), with_commas(found["inputs"]), text(found, "data"), against),
      2);
  if (!options.published.empty()) print("  figures as {} publishes them\n", lower(options.published));
  if (std::string sentence = verdict(found); !sentence.empty()) {
    print("\n");
    print_wrapped(sentence, 2);
  }
  print_figures(found);
  print("\n");
  print_untried(found);
  print_low_units(found);
  print_inputs(found);
  for (const Json& note : found["notes"]) print_item("note", printable(note.get<std::string>()));
  std::map<std::string, std::vector<std::string>> skipped;
  for (const Json& one : found["skipped"]) skipped[one["why"]].push_back(one["what"]);
  for (const auto& [why, what] : skipped) print_item("skipped", printable(why) + ": " + join(what, ", "));
  print("\n");
  print_item("files",
             fmt::format("{}/: units.csv{}{}", found["run"].get<std::string>(),
                         found["subset"].is_null() ? "" : ", subset.txt (tests, by the coverage that they add)",
                         found["surprise"].empty() ? "" : ", surprise.csv"));
  for (const Json& next : found["next"]) print("  next       {}\n", printable(next.get<std::string>()));
}

int coverage_shard(const Common& common, const CoverageOptions& options, const adequacy::CoverageRequest& request) {
  check_shard(options.product);
  if (!options.parts.empty())
    throw InputError("--shard makes a part and --merge puts parts together", "Give one of them.");
  session::Session session(request_of(common, options));
  const session::Shard done = adequacy::cover_shard(session, request, options.shard, options.product);
  tell_shard(common, done, options.shard, options.product, "netmend coverage --merge");
  return 0;
}

}  // namespace

int coverage(const Common& common, const CoverageOptions& options) {
  const adequacy::CoverageRequest request{options.criteria, options.important, options.on,  options.unit,
                                          options.profile,  options.published, options.tap, options.zero_cluster,
                                          options.layers,   options.parts};
  adequacy::check_request(request);  // a slip of the finger shows before the work
  if (!options.shard.empty()) return coverage_shard(common, options, request);
  session::Session session(request_of(common, options));
  Examined examined = examine(common, options, session, "coverage");
  if (examined.stop) return *examined.stop;
  adequacy::CoverageRun run(session, request);
  RunFolder& folder = session.folder("coverage");
  if (!options.product.empty()) run.write_subset(run.interrupted() ? partial_name(options.product) : options.product);
  run.write_tables(folder.path());
  Json json = run.document();
  json["preflight"] = evidence::preflight_json(examined.preflight);
  const int status = run.interrupted() ? 130 : 0;
  mark_partial(json, status);
  write_file(folder.file("coverage.json"), evidence::dump(json, 2));
  session.finish(run.seconds(), status);
  common.json ? print_json(json) : print_coverage(options, json);
  if (status) say(common, fmt::format("stopped: this covers only the first {} tests", with_commas(run.inputs())));
  return status;
}

}  // namespace netmend::app
