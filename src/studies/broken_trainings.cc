// broken-trainings: python/netmend/study.py, started with this program and the package that belongs to it. Programs of
// other people run here, in the sandbox; the script says which, and counts.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/child.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/python_package.h"
#include "base/text.h"
#include "diagnosis/diagnose.h"
#include "diagnosis/lint.h"
#include "diagnosis/recorder.h"
#include "records/record.h"
#include "sandbox/sandbox.h"
#include "studies/study_runs.h"
#include "studies/tables.h"

namespace netmend::studies {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRecord = "/tmp/netmend-record/record.jsonl";
/// A shell outlives a program that takes too long, and hands over the record as it stands then.
constexpr const char* kShell =
    "unset NETMEND_REPORT_FD; \"$@\" 3>&-; status=$?; head -c 60000000 -- \"$0\" >&3 2>/dev/null; exit $status";

/// A program of somebody else, as study.py names it.
struct Stranger {
  std::string folder, program, replaced_by, out;
  std::vector<std::string> reads;
  double seconds = 60;
};

std::vector<std::string> words_of(const StudyContext& context, const BrokenTrainingsRequest& request) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  std::vector<std::string> words = {request.python,
                                    "-m",
                                    "netmend.study",
                                    request.part,
                                    "--json",
                                    "--netmend",
                                    (self.parent_path() / "netmend").string(),
                                    "--out",
                                    context.folder,
                                    "--jobs",
                                    std::to_string(context.jobs > 0 ? context.jobs : cores())};
  if (!request.keras_python.empty()) words.insert(words.end(), {"--keras-python", request.keras_python});
  words.insert(words.end(), request.more.begin(), request.more.end());
  return words;
}

std::string output_of_script(const std::vector<std::string>& words) {
  std::string output;
  const char* before = std::getenv("PYTHONPATH");
  const std::string path = python_package_folder() + (before && *before ? std::string(":") + before : "");
  const int status = run_child(words, {{"PYTHONPATH", path}}, &output);
  if (interrupted()) throw Interrupted{};
  if (status != 0)
    throw InputError(
        fmt::format("the study ended with status {}", status),
        "It needs a Python with NumPy, and PyTorch or Keras for what is planted in them: --python names it.");
  return output;
}

std::vector<Stranger> strangers_of(std::vector<std::string> words) {
  words.emplace_back("--list");
  const JsonDocument document(output_of_script(words), "netmend/study.py");
  const JsonView rows = document.top().at("runs");
  std::vector<Stranger> list;
  for (size_t i = 0; i < rows.size(); ++i) {
    const JsonView row = rows.at(i);
    list.push_back({row.at("folder").text(), row.at("program").text(), row.at("replaced").text(), row.at("out").text(),
                    document.top().at("reads").texts(), row.at("seconds").number()});
  }
  return list;
}

sandbox::Command command_for(const Stranger& one, const std::string& python) {
  sandbox::Command command;
  command.folder = one.folder;
  command.readable = one.reads;
  command.readable.push_back(python_package_folder() + "/netmend");
  const std::string program = (fs::path(one.folder) / one.program).string();
  if (!one.replaced_by.empty()) command.replaced.push_back({program, one.replaced_by});
  command.words = {"/bin/sh", "-c",       kShell, kRecord, "timeout", "-s", "KILL", fmt::format("{}", one.seconds),
                   python,    one.program};
  command.environment = diagnosis::recorder_environment(fs::path(kRecord).parent_path().string(), {});
  command.environment["NETMEND_WATCH_PARENT"] = "";  // it has numbers of its own for processes
  for (const auto& [name, value] : {std::pair{"TF_NUM_INTRAOP_THREADS", "1"},
                                    {"TF_NUM_INTEROP_THREADS", "1"},
                                    {"TF_CPP_MIN_LOG_LEVEL", "3"},
                                    {"CUDA_VISIBLE_DEVICES", "-1"},
                                    {"MPLBACKEND", "Agg"},
                                    {"PYTHONDONTWRITEBYTECODE", "1"}})
    command.environment[name] = value;
  command.report = true;
  return command;
}

std::string ending_name(const sandbox::Outcome& done) {
  switch (done.ending) {
    case sandbox::Ending::kExited:
      return done.status == 0 ? "ended" : "failed";
    case sandbox::Ending::kSignal:
      return done.status == 9 ? "cut" : "signal";
    case sandbox::Ending::kTimeout:
      return "cut";
    case sandbox::Ending::kMemory:
      return "memory";
    case sandbox::Ending::kOutput:
      return "output";
    case sandbox::Ending::kInterrupted:
      throw Interrupted{};
  }
  return "";
}

/// Runs a program that has not run yet, and leaves what was recorded, how it ended and the end of what it printed.
void run_stranger(sandbox::Sandbox& box, const Stranger& one, const std::string& python) {
  if (fs::exists(one.out + "/outcome.json")) return;
  make_folders(one.out);
  const sandbox::Limits limits{.seconds = one.seconds + 30, .memory = int64_t(12) << 30, .output = int64_t(256) << 20};
  const sandbox::Outcome done = box.run(command_for(one, python), limits);
  const std::string how = ending_name(done);
  if (!done.report.empty()) write_file(one.out + "/record.jsonl", done.report);
  const std::string said = done.errors.size() > 2000 ? done.errors.substr(done.errors.size() - 2000) : done.errors;
  write_file(one.out + "/outcome.json", json_text(nlohmann::ordered_json{{"ending", how},
                                                                         {"status", done.status},
                                                                         {"seconds", done.seconds},
                                                                         {"memory", done.peak},
                                                                         {"errors", said}},
                                                  1));
}

/// The findings as `netmend watch` would tell them, which reads the text where nothing was trained.
void diagnose_stranger(const Stranger& one) {
  const std::string program = one.replaced_by.empty() ? (fs::path(one.folder) / one.program).string() : one.replaced_by;
  records::Record record;
  try {
    if (fs::exists(one.out + "/record.jsonl")) record = records::read_record(one.out);
  } catch (const InputError& error) {  // the program damaged its record
    record.troubles.push_back(error.what());
  }
  diagnosis::Diagnosis found = diagnosis::diagnose(record, {}, {}, one.out);
  diagnosis::add_from_text(found, {program}, "python3");
  write_file(one.out + "/findings.json", json_text(diagnosis::diagnosis_json(found, one.out), 1));
}

void run_strangers(const StudyContext& context, const BrokenTrainingsRequest& request,
                   const std::vector<std::string>& words) {
  const std::vector<Stranger> all = strangers_of(words);
  sandbox::Sandbox box;
  if (request.python.find('/') != std::string::npos) box.require_readable(fs::absolute(request.python).string());
  in_order(
      int64_t(all.size()), context.jobs > 0 ? context.jobs : cores(), [](int) {},
      [&](int64_t i, int) { run_stranger(box, all[size_t(i)], request.python); },
      [&](int64_t i) {
        if (context.progress) context.progress(fmt::format("{} of {} programs have run", i + 1, all.size()));
      });
  for (const Stranger& one : all) diagnose_stranger(one);
}

}  // namespace

nlohmann::ordered_json run_broken_trainings_study(const StudyContext& context, const BrokenTrainingsRequest& request) {
  const std::vector<std::string> parts = {"planted", "heal", "real", "forest"};
  if (std::find(parts.begin(), parts.end(), request.part) == parts.end())
    throw InputError(fmt::format("there is no part {}{}", request.part, did_you_mean(request.part, parts)),
                     "Parts are " + join(parts, ", ") + ".");
  make_folders(context.folder);
  const std::vector<std::string> words = words_of(context, request);
  if (context.progress) context.progress(join(words, " "));
  if (request.part == "real") run_strangers(context, request, words);
  const std::string output = output_of_script(words);
  if (request.part == "forest") return {{"study", "forest"}, {"text", output}};
  const JsonDocument document(output, "netmend/study.py");
  nlohmann::ordered_json json(document.json());
  write_numbers(request.part, json, context.folder + "/trials.csv");
  return json;
}

}  // namespace netmend::studies
