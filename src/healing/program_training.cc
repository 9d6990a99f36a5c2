#include "healing/program_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/child.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/json.h"
#include "base/pool.h"
#include "diagnosis/recorder.h"

namespace netmend::healing {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostBytes = int64_t(256) << 20, kMostFiles = 20'000;

bool left_out(const fs::path& path) {
  const std::string name = path.filename().string();
  return name == ".git" || name == "__pycache__" || name == "netmend-runs" || name == ".venv" || name == "node_modules";
}

/// Files and folders; links are copied as links.
void copy_folder(const fs::path& from, const fs::path& to, const fs::path& never) {
  int64_t bytes = 0, files = 0;
  std::error_code error;
  fs::create_directories(to);
  for (fs::recursive_directory_iterator entry(from, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    if (left_out(path) || path == never) {
      entry.disable_recursion_pending();
      continue;
    }
    const fs::path target = to / path.lexically_relative(from);
    if (entry->is_symlink()) {
      fs::copy_symlink(path, target, error);
    } else if (entry->is_directory()) {
      fs::create_directories(target);
    } else if (entry->is_regular_file()) {
      bytes += int64_t(entry->file_size()), ++files;
      if (bytes > kMostBytes || files > kMostFiles)
        throw InputError(fmt::format("{} is too large to be copied for each attempt", from.string()),
                         "--in-place runs the program where it is; what it writes there is replaced.");
      fs::copy_file(path, target, fs::copy_options::overwrite_existing, error);
    }
    if (error) fail("{} cannot be copied: {}", path.string(), error.message());
  }
  if (error) fail("{} cannot be read: {}", from.string(), error.message());
}

class ProgramTraining : public Training {
 public:
  ProgramTraining(ProgramRequest request, Knobs knobs) : request_(std::move(request)), knobs_(std::move(knobs)) {
    std::error_code error;
    if (!fs::is_directory(request_.folder, error))
      throw InputError(fmt::format("the folder {} that the program ran in is gone", request_.folder),
                       "Watch the program again: netmend watch -- python train.py");
  }

  const Knobs& knobs() const override { return knobs_; }
  std::string cost_unit() const override { return "s"; }

  double run(const Settings& settings, const std::string& folder) override {
    make_folders(folder);
    const std::string whole = fs::absolute(folder).string(),
                      work = request_.in_place ? request_.folder : whole + "/work";
    if (!request_.in_place) copy_folder(request_.folder, work, fs::absolute(folder).parent_path());
    auto environment = diagnosis::recorder_environment(whole, {});
    environment["NETMEND_SETTINGS"] = json_text(settings_json(settings));
    environment["NETMEND_OUTPUT"] = request_.in_place ? "/dev/null" : whole + "/output.txt";
    std::vector<std::string> words = {"sh", "-c", "cd \"$0\" && exec timeout -k 5 \"$@\" > \"$NETMEND_OUTPUT\" 2>&1",
                                      work, fmt::format("{:g}", request_.seconds)};
    words.insert(words.end(), request_.command.begin(), request_.command.end());
    const auto start = std::chrono::steady_clock::now();
    const int status = run_child(words, environment);
    if (interrupted()) throw Interrupted{};
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    for (const auto& [name, value] : environment)
      if (name.starts_with("NETMEND_")) unsetenv(name.c_str());
    std::error_code error;
    if (!request_.in_place) fs::remove_all(work, error);
    if (!fs::exists(folder + "/record.jsonl", error))
      fail("the program ended with status {} before anything was recorded", status);
    return seconds;
  }

 private:
  ProgramRequest request_;
  Knobs knobs_;
};

}  // namespace

Knobs exposed_settings(const records::Record& record) {
  Knobs knobs;
  const records::Line line = record.last("settings");
  const records::Line values = line.part("values"), choices = line.part("choices");
  if (values.empty()) return knobs;
  for (const auto& [name, value] : values.json().items()) {
    if (!value.is_primitive() || value.is_null()) continue;
    Knob knob;
    knob.current = Json(value);
    if (choices.has(name.c_str()) && choices.json()[name].is_array()) {
      for (const auto& one : choices.json()[name])
        if (one.is_primitive() && knob.choices.size() < 1000) knob.choices.push_back(Json(one));
      if (std::find(knob.choices.begin(), knob.choices.end(), knob.current) == knob.choices.end())
        knob.choices.insert(knob.choices.begin(), knob.current);
    } else {
      knob.choices = usual_choices(usual_name(name), knob.current);
      knob.open = value.is_number();
    }
    knobs[usual_name(name)] = std::move(knob);
  }
  return knobs;
}

std::unique_ptr<Training> program_training(ProgramRequest request, Knobs knobs) {
  return std::make_unique<ProgramTraining>(std::move(request), std::move(knobs));
}

std::string settings_command(const std::vector<std::string>& command, const Settings& from, const Settings& to) {
  Settings changed;
  for (const auto& [name, value] : to)
    if (const auto old = from.find(name); old == from.end() || old->second != value) changed[name] = value;
  Shell line = Shell::of("NETMEND_SETTINGS={}", json_text(settings_json(changed)));
  for (const std::string& word : command) line += Shell::of(" {}", word);
  return line.text();
}

}  // namespace netmend::healing
