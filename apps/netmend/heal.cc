// netmend heal: what was tried to put a training right, and what came of it.
#include <chrono>
#include <iostream>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/json.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "findings/phrases.h"
#include "healing/heal_run.h"
#include "netmend/diagnose.h"

namespace netmend::app {
namespace {

using healing::held_out_text;
using healing::ids_text;

void print_healing(const Json& json) {
  print("  before   {}; held-out {}\n", ids_text(json["before"]["findings"]),
        held_out_text(json["before"]["held_out"]));
  if (json["tries"].empty())
    print("  Nothing above a note was found that a change of settings could fix: nothing was tried.\n");
  else
    print_table(Table{.head = {"for", "change", "from", "problem", "held-out", "cost", ""},
                      .align = "lllllrl",
                      .rows = healing::try_rows(json)});
  print("\n  after    {}; held-out {}\n", ids_text(json["after"]["findings"]),
        held_out_text(json["after"]["held_out"]));
  if (const std::string changes = json["after"]["changes"]; !changes.empty())
    print("  change   {}\n", printable(changes));
  print("  cost     {} {}\n", findings::plain(json["cost"].get<double>()), json["cost_unit"].get<std::string>());
  if (json.contains("random"))
    print("  random   {} tries at equal cost: {}; held-out {}\n", json["random"]["tries"].size(),
          json["random"]["healed"] == true ? "healed" : "not healed",
          held_out_text(json["random"]["after"]["held_out"]));
}

bool confirm(const std::string& problem, const std::string& changes, const std::string& source) {
  tell(fmt::format("{}: try {} ({})? [y/N]", printable(problem), printable(changes), source));
  std::string answer;
  return std::getline(std::cin, answer) && (answer == "y" || answer == "yes");
}

}  // namespace

int heal_run(const Common& common, const HealOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  healing::HealRunRequest request{.run = find_run(options.run)};
  request.heal.thresholds = read_thresholds(options.thresholds);
  request.heal.tries = options.tries, request.heal.seed = common.seed, request.jobs = common.jobs;
  request.random = options.random, request.in_place = options.in_place, request.seconds = options.seconds;
  request.product = options.product, request.python = options.python, request.program = options.program;
  if (options.ask) request.heal.ask = confirm;
  RunFolder folder(common.out, "heal", common.arguments);
  request.heal.folder = folder.path();
  request.heal.told = [&](const healing::Attempt& one) {
    say(common, fmt::format("{}: {} {}", printable(one.changes),
                            one.gone ? "the problem is gone" : "the problem remains", one.kept ? "(kept)" : ""));
  };
  const Json json = healing::heal_run(request);
  write_file(folder.file("heal.json"), json_text(json, 1));
  const int status = json["healed"] == true || json["way"] == "proposal" ? 0 : 1;
  folder.finish(common.seed, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), status);
  if (common.json) return print_json(json), status;
  print("{}\n", printable(request.run));
  if (json["way"] == "proposal") {
    for (const Json& edit : json["edits"])
      print("  line {:<4} {} ({})\n", edit["line"].get<int64_t>(), printable(edit["what"].get<std::string>()),
            edit["kind"].get<std::string>());
    if (json.contains("patch")) {
      for (const std::string& line : split(json["diff"].get<std::string>(), '\n')) print("    {}\n", printable(line));
      print("  nothing was changed; to apply: {}\n",
            Shell::of("patch {} {}", json["program"].get<std::string>(), json["patch"].get<std::string>()).text());
    }
    if (!json["left"].empty()) print("  no simple edit addresses {}\n", ids_text(json["left"]));
    return status;
  }
  print_healing(json);
  if (json["healed"] == true && json.contains("command"))
    print("  run      {}\n", printable(json["command"].get<std::string>()));
  if (json["healed"] == true && json["product"].is_string()) print("  model    {}\n", printable(options.product));
  print("  {}\n", json["healed"] == true ? "Healed: the problems that were found are gone, and held-out data is "
                                           "predicted better."
                                         : "Not healed.");
  return status;
}

}  // namespace netmend::app
