// netmend watch: runs a training program under the recorder and says what its record shows.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/child.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/json.h"
#include "base/python_package.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "diagnosis/lint.h"
#include "netmend/diagnose.h"

namespace netmend::app {
namespace {

namespace fs = std::filesystem;

/// The recorder is loaded by every Python that the program starts; the package itself comes last, so that it hides
/// nothing of the user's.
std::map<std::string, std::string> recorder_environment(const std::string& folder, const WatchOptions& options) {
  const std::string package = python_package_folder();
  std::string path = package + "/netmend/watch/site";
  if (const char* before = std::getenv("PYTHONPATH"); before && *before) path += std::string(":") + before;
  return {{"PYTHONPATH", path + ":" + package},
          {"NETMEND_WATCH", folder},
          {"NETMEND_WATCH_PARENT", std::to_string(getpid())},
          {"NETMEND_STOP_WHEN", join(options.stop_when, ",")}};
}

void check_stop_words(const WatchOptions& options) {
  for (const std::string& word : options.stop_when)
    if (word != "nan")
      throw InputError(fmt::format("there is no reason to stop `{}`", word),
                       "--stop-when nan ends a run whose loss is NaN or Inf.");
}

/// Where the program ended before it trained, its text is all there is.
void add_from_text(diagnosis::Diagnosis& found, const WatchOptions& options) {
  if (found.summary["steps"].get<int64_t>() > 0 || found.summary["epochs"].get<int64_t>() > 0) return;
  std::vector<std::string> programs;
  for (const std::string& word : options.command)
    if (std::error_code error; word.ends_with(".py") && fs::is_regular_file(word, error)) programs = {word};
  if (programs.empty()) return;
  try {
    for (diagnosis::LintFinding& one : diagnosis::lint_files(programs, LintOptions().python)) {
      const auto same = std::find_if(found.findings.begin(), found.findings.end(),
                                     [&](const findings::Finding& known) { return known.kind == one.finding.kind; });
      if (same != found.findings.end()) continue;
      one.finding.numbers["category"] = diagnosis::category_of(one.finding.kind);
      one.finding.numbers["rules"] = Json::array({"lint"});
      one.finding.evidence += " This is read from the text: the program ended before a step was seen.";
      found.findings.push_back(one.finding);
    }
  } catch (const InputError& error) {
    found.troubles.push_back(std::string("the program's text was not read: ") + error.what());
  }
  std::stable_sort(found.findings.begin(), found.findings.end(),
                   [](const findings::Finding& a, const findings::Finding& b) { return a.level > b.level; });
}

}  // namespace

int watch(const Common& common, const WatchOptions& options) {
  if (options.command.empty()) throw InputError("no program is given", "netmend watch -- python train.py");
  check_stop_words(options);
  if (options.fail_on != "never") findings::parse_level(options.fail_on);
  const diagnosis::Thresholds thresholds = read_thresholds(options.thresholds);
  std::error_code error;
  if (!common.out.empty() && fs::exists(common.out + "/record.jsonl", error))
    throw InputError(fmt::format("{} holds the record of another run", common.out), "Give another folder: --out RUN");
  RunFolder folder(common.out, "watch", common.arguments);
  const std::string path = folder.path();
  const auto start = std::chrono::steady_clock::now();
  int status = run_child(options.command, recorder_environment(fs::absolute(path).string(), options));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  folder.add("program", options.command);
  folder.add("program_status", status);
  if (!fs::exists(path + "/record.jsonl", error)) {
    folder.finish(common.seed, seconds, status);
    say(common,
        "netmend: nothing was recorded: the program started no Python, or one that ignores PYTHONPATH (-E, -I, -S)");
    return status;
  }
  const records::Record record = records::read_record(path);
  diagnosis::Diagnosis found = diagnosis::diagnose(record, thresholds, {}, path);
  add_from_text(found, options);
  const Json document = diagnosis_json(found, path);
  write_file(folder.file("findings.json"), json_text(document, 1));
  if (status == 0) status = status_of(found, options.fail_on);
  folder.finish(common.seed, seconds, status);
  if (common.json) return print_json(document), status;
  if (common.quiet) return status;
  print(stderr, "\nnetmend: what the training shows\n");
  print_diagnosis(stderr, found, record);
  print(stderr, "  record   {}\n", printable(path));
  return status;
}

}  // namespace netmend::app
