// netmend watch: runs a training program under the recorder and says what its record shows.
#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/child.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "diagnosis/lint.h"
#include "diagnosis/recorder.h"
#include "netmend/diagnose.h"

namespace netmend::app {
namespace {

namespace fs = std::filesystem;

void check_stop_words(const WatchOptions& options) {
  const std::vector<std::string> known = {"nan", "diverged", "dead", "constant"};
  for (const std::string& word : options.stop_when)
    if (std::find(known.begin(), known.end(), word) == known.end())
      throw InputError(fmt::format("--stop-when {}: there is no such condition{}", word, did_you_mean(word, known)),
                       "Conditions are " + join(known, ", ") + ".");
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
  bool stopped = false;
  int status = run_child(options.command,
                         diagnosis::recorder_environment(fs::absolute(path).string(), options.stop_when, options.probe),
                         nullptr, &stopped);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  folder.add("program", options.command);
  folder.add("folder", fs::current_path().string());
  folder.add("program_status", status);
  // A signal that was sent to us and ended the program; one that it handled leaves it a status of its own.
  if (stopped && status > 128) status = 130;
  if (!fs::exists(path + "/record.jsonl", error)) {
    folder.finish(common.seed, seconds, status);
    say(common,
        "netmend: nothing was recorded: the program started no Python, or one that ignores PYTHONPATH (-E, -I, -S)");
    return status;
  }
  const records::Record record = records::read_record(path);
  diagnosis::Diagnosis found = diagnosis::diagnose(record, thresholds, {}, path);
  diagnosis::add_from_text(found, options.command, LintOptions().python);
  const Json document = diagnosis::diagnosis_json(found, path);
  write_file(folder.file("findings.json"), json_text(document, 1));
  write_training_page(path, record, found, options.command);
  if (status == 0) status = status_of(found, options.fail_on);
  if (const std::string why = record.last("stopped").text("why"); !why.empty() && status == 0) {
    say(common, fmt::format("netmend: the program caught the exception that was to end it, and went on: {}", why));
    status = 1;
  }
  folder.finish(common.seed, seconds, status);
  if (common.json) return print_json(document), status;
  if (common.quiet) return status;
  print(stderr, "\nnetmend: what the training shows\n");
  print_diagnosis(stderr, found, record);
  print(stderr, "  report   {}/report.html\n", printable(path));
  return status;
}

}  // namespace netmend::app
