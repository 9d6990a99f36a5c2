#include "healing/heal_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/child.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/json.h"
#include "base/python_package.h"
#include "base/text.h"
#include "diagnosis/lint.h"
#include "healing/own_training.h"
#include "healing/program_training.h"
#include "records/record.h"

namespace netmend::healing {
namespace {

namespace fs = std::filesystem;

void require_folder(const std::string& folder, const char* what) {
  std::error_code error;
  if (!fs::equivalent(folder, fs::current_path(), error))
    throw InputError(fmt::format("{} ran in {}", what, printable(folder)),
                     "Its files are named from there: change to that folder and run netmend heal again.");
}

/// Attempts read these only later, and each would fail by itself.
void require_other(const std::string& product, const std::vector<std::string>& inputs) {
  std::error_code error;
  for (const std::string& input : inputs)
    if (!product.empty() && fs::equivalent(product, input, error))
      fail("-o {}: the training reads this file", printable(product));
}

/// The folder may be a stranger's.
void require_consent(const std::vector<std::string>& command, const HealRunRequest& request) {
  if (request.program == command) return;
  Shell again = Shell::of("netmend heal {} --", request.run), recorded;
  for (const std::string& word : command) again += Shell::of(" {}", word), recorded += Shell::of(" {}", word);
  if (request.program.empty())
    throw InputError(fmt::format("{} says that it was made by:{}", printable(request.run), recorded.text()),
                     "netmend runs no program because a file names it. If it is yours, name it too: " + again.text());
  throw InputError(fmt::format("{} was made by another program:{}", printable(request.run), recorded.text()),
                   "If it is yours, name that one: " + again.text());
}

Json with_random(Training& training, const records::Record& record, const HealRunRequest& request) {
  const Healing healing = heal(training, record, request.heal);
  Json json = healing_json(healing, training.cost_unit());
  if (request.random && healing.cost > 0) {
    HealRequest again = request.heal;
    again.tries = 1000, again.cost = healing.cost, again.folder += "/random", again.ask = {};
    json["random"] = healing_json(random_search(training, record, again), training.cost_unit());
  }
  return json;
}

std::string model_of(const Json& json) {
  std::string found;
  for (const Json& one : json["tries"])
    if (one["kept"] == true) found = one["run"].get<std::string>() + "/model.onnx";
  return found;
}

Json heal_own(const JsonView& facts, const records::Record& record, const HealRunRequest& request) {
  require_folder(facts.at("training").at("folder").text(), "the training");
  training::TrainRequest again = training::request_from(facts.at("training"));
  again.jobs = request.jobs;
  const bool numbers =
      diagnosis::digest(record).loss == "mean_squared_error" && record.last("loss").numbers("counts").empty();
  require_other(request.product, {again.model, again.data});
  const auto training = own_training(std::move(again), numbers);
  Json json = with_random(*training, record, request);
  json["way"] = "trainer", json["product"] = nullptr;
  if (const std::string model = model_of(json); json["healed"] == true && !request.product.empty() && !model.empty()) {
    write_file(request.product, read_file(model, int64_t(4) << 30, FileRole::kOwn));
    json["product"] = request.product;
  }
  return json;
}

/// The Python file among the words of a command; "" where there is none.
std::string program_of(const std::vector<std::string>& command, const std::string& folder) {
  for (const std::string& word : command)
    if (std::error_code error; word.ends_with(".py")) {
      const fs::path whole = fs::path(word).is_absolute() ? fs::path(word) : fs::path(folder) / word;
      if (fs::is_regular_file(whole, error)) return whole.string();
    }
  return "";
}

Json propose(const std::string& program, const diagnosis::Diagnosis& found, const HealRunRequest& request) {
  const std::string findings = request.heal.folder + "/findings.json";
  make_folders(request.heal.folder);
  write_file(findings, json_text(diagnosis::diagnosis_json(found, request.run), 1));
  std::string output;
  const int status = run_child({request.python, python_package_folder() + "/netmend/proposal.py", program, findings},
                               {{"PYTHONDONTWRITEBYTECODE", "1"}}, &output);
  if (status != 0)
    throw InputError(
        fmt::format("{} ended with status {} while it read {}", request.python, status, program),
        "Python 3.9 or newer is needed, and memory for the program's syntax tree: --python names another.");
  const JsonDocument document(output, "netmend/proposal.py");
  const JsonView top = document.top();
  if (top.has("error"))
    throw InputError(top.at("error").text(),
                     "Programs of up to 1 MB and 50,000 lines are read, if this Python can parse them.");
  Json json = {{"way", "proposal"}, {"healed", false}, {"program", program}, {"diff", top.at("diff").text()}};
  json["edits"] = Json(top.at("edits").json()), json["left"] = Json(top.at("left").json());
  if (!top.at("diff").text().empty()) {
    json["patch"] = request.heal.folder + "/heal.diff";
    write_file(request.heal.folder + "/heal.diff", top.at("diff").text());
  }
  return json;
}

Json heal_program(const JsonView& facts, const records::Record& record, const HealRunRequest& request) {
  const std::vector<std::string> command = facts.at("program").texts();
  const std::string folder = facts.has("folder") ? facts.at("folder").text() : fs::current_path().string();
  const Knobs knobs = exposed_settings(record);
  if (!knobs.empty()) {
    require_consent(command, request);
    require_folder(folder, "the program");
    const auto training = program_training({command, folder, request.seconds, request.in_place}, knobs);
    Json json = with_random(*training, record, request);
    Settings after;
    for (const auto& [name, value] : json["after"]["settings"].items()) after[name] = value;
    json["way"] = "program", json["command"] = settings_command(command, current_settings(knobs), after);
    return json;
  }
  const std::string program = program_of(command, folder);
  if (program.empty())
    throw InputError(
        fmt::format("{} shows no settings that could be changed, and no Python file to propose edits of", request.run),
        "docs/training.md: settings() of netmend.watch exposes them.");
  diagnosis::Diagnosis found = diagnosis::diagnose(record, request.heal.thresholds, {}, request.run);
  diagnosis::add_from_text(found, {program}, request.python);
  return propose(program, found, request);
}

}  // namespace

Json heal_run(const HealRunRequest& request) {
  const records::Record record = records::read_record(request.run);
  std::error_code error;
  const std::string facts = request.run + "/run.json";
  if (!fs::is_directory(request.run, error) || !fs::exists(facts, error))
    throw InputError(fmt::format("{} does not say how it was made: it is not a run folder", request.run),
                     "netmend heal takes the folder of netmend train or netmend watch.");
  const JsonDocument document = read_json(facts);
  const JsonView top = document.top();
  Json json;
  if (top.has("training"))
    json = heal_own(top, record, request);
  else if (top.has("program"))
    json = heal_program(top, record, request);
  else
    top.refuse("it is the run of another command; give a run of netmend train or netmend watch");
  json["run"] = request.run;
  return json;
}

}  // namespace netmend::healing
