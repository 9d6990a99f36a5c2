// netmend lab conformance: the ONNX project's backend tests. The cases run in a child process, so that one that crashes
// is counted and the rest go on.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>

#include "base/json.h"
#include "base/text.h"
#include "evidence/json.h"
#include "netmend/shared.h"
#include "netmend/terminal.h"
#include "studies/conformance.h"

namespace netmend::app {
namespace fs = std::filesystem;

namespace {

const char* const kWorkerVariable = "NETMEND_CONFORMANCE_FROM";

std::string dump_case(const studies::ConformanceCase& one) {
  return evidence::dump({{"name", one.name}, {"status", one.status}, {"reason", one.reason}});
}

int work(const std::vector<std::string>& cases, size_t from) {
  for (size_t i = from; i < cases.size(); ++i)
    std::cout << dump_case(studies::run_conformance_case(cases[i])) << std::flush;
  return 0;
}

/// Starts this program again for the cases from `from` on; appends what it says. Returns how many answered.
void run_worker(const Common& common, size_t from, Json& results) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]), close(ends[1]);
    setenv(kWorkerVariable, std::to_string(from).c_str(), 1);
    std::vector<char*> arguments;
    for (const std::string& argument : common.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    execv("/proc/self/exe", arguments.data());
    _exit(127);
  }
  close(ends[1]);
  std::FILE* lines = fdopen(ends[0], "r");
  char* line = nullptr;
  size_t room = 0;
  while (getline(&line, &room, lines) > 0) {
    Json answer = json_or_null(line);
    if (answer.is_object()) results.push_back(answer);
  }
  free(line);
  fclose(lines);
  int status = 0;
  waitpid(child, &status, 0);
}

}  // namespace

int lab_conformance(const Common& common, const ConformanceOptions& options) {
  const std::vector<std::string> cases = studies::find_conformance_cases(options.folder, options.filter);
  if (const char* from = std::getenv(kWorkerVariable)) return work(cases, size_t(std::atoll(from)));
  Json results = Json::array();
  while (results.size() < cases.size()) {
    run_worker(common, results.size(), results);
    if (results.size() < cases.size())
      results.push_back({{"name", fs::path(cases[results.size()]).filename().string()},
                         {"status", "crashed"},
                         {"reason", "the process died"}});
  }
  std::map<std::string, int64_t> counts;
  for (const auto& result : results) {
    std::string status = result["status"];
    ++counts[status];
    bool shown = options.each || status == "failed" || status == "crashed";
    if (!common.json && shown)
      print("{:<12} {}  {}\n", status, result["name"].get<std::string>(), result["reason"].get<std::string>());
  }
  if (common.json)
    print_json({{"passed", counts["passed"]},
                {"failed", counts["failed"]},
                {"unsupported", counts["unsupported"]},
                {"crashed", counts["crashed"]},
                {"cases", results}});
  else
    print("{} cases: {} passed, {} failed, {} unsupported, {} crashed\n", cases.size(), counts["passed"],
          counts["failed"], counts["unsupported"], counts["crashed"]);
  return counts["failed"] + counts["crashed"] > 0 ? 1 : 0;
}

}  // namespace netmend::app
