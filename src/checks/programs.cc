#include "checks/programs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/text.h"
#include "session/toml.h"
#include "session/toml_edit.h"

extern char** environ;

namespace netmend::checks {
namespace {

namespace fs = std::filesystem;
using findings::Finding;
using findings::Json;

constexpr int64_t kMostOutput = 16 << 20;
constexpr auto kMostTime = std::chrono::minutes(10);
constexpr size_t kMostFindings = 1000;
constexpr size_t kLongest = 4000;  ///< bytes of a text

std::string user_config() {
  if (const char* home = std::getenv("XDG_CONFIG_HOME"); home && *home)
    return std::string(home) + "/netmend/config.toml";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.config/netmend/config.toml";
  return "";
}

/// What a program printed; its messages go where ours go.
std::string output_of(const std::string& program, const std::string& argument) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("{}: a pipe could not be created", program);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  std::string first = program, second = argument;
  char* words[] = {first.data(), second.data(), nullptr};
  pid_t child = 0;
  const int failed = posix_spawnp(&child, program.c_str(), &actions, nullptr, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed) {
    close(ends[0]);
    throw InputError(fmt::format("the check {} cannot be started: {}", printable(program), std::strerror(failed)),
                     "It must be an executable file, or a name that is on the PATH.");
  }
  std::string text, why;
  const auto end = std::chrono::steady_clock::now() + kMostTime;
  char buffer[1 << 16];
  while (why.empty()) {
    pollfd waiting{ends[0], POLLIN, 0};
    const int ready = poll(&waiting, 1, 200);
    if (interrupted()) why = "it was stopped";
    if (std::chrono::steady_clock::now() > end) why = "it ran longer than ten minutes";
    if (ready <= 0) continue;
    const ssize_t got = read(ends[0], buffer, sizeof buffer);
    if (got <= 0) break;
    text.append(buffer, size_t(got));
    if (int64_t(text.size()) > kMostOutput) why = "it printed more than 16 MB";
  }
  close(ends[0]);
  // One that has closed its output may go on, and not for longer than others may.
  int status = 0;
  while (why.empty() && waitpid(child, &status, WNOHANG) == 0) {
    if (interrupted()) why = "it was stopped";
    if (std::chrono::steady_clock::now() > end) why = "it ran longer than ten minutes";
    if (why.empty()) poll(nullptr, 0, 5);
  }
  if (!why.empty()) kill(child, SIGKILL), waitpid(child, &status, 0);
  if (interrupted()) throw Interrupted{};
  if (why.empty() && !(WIFEXITED(status) && WEXITSTATUS(status) == 0))
    why = WIFEXITED(status) ? fmt::format("it ended with exit status {}", WEXITSTATUS(status)) : "it crashed";
  if (!why.empty()) fail("the check {} failed: {}", printable(program), why);
  return text;
}

std::string text_of(const Json& json, const char* key, const std::string& name, bool required) {
  if (!json.contains(key)) {
    if (required) fail("the check {}: a finding has no `{}`", name, key);
    return "";
  }
  if (!json[key].is_string()) fail("the check {}: `{}` of a finding should be a string", name, key);
  std::string text = json[key];
  if (text.size() <= kLongest) return text;
  size_t end = kLongest;
  while (end > 0 && (uint8_t(text[end]) & 0xC0) == 0x80) --end;  // at a whole character
  return text.substr(0, end);
}

/// One of the names that `parse` knows.
template <typename Value>
Value named(const std::string& text, const std::string& name, Value (*parse)(const std::string&)) {
  try {
    return parse(text);
  } catch (const InputError& error) {
    throw InputError(fmt::format("the check {}: {}", name, printable(error.what())), error.hint());
  }
}

}  // namespace

std::vector<Finding> parse_program_findings(const std::string& text, const std::string& name) {
  const Json json = json_or_null(text);
  if (!json.is_object() || !json.contains("findings") || !json["findings"].is_array())
    throw InputError(fmt::format("the check {} did not print findings", name),
                     "It should print one JSON document: {\"findings\": [{\"kind\": …, \"level\": …, \"title\": …}]}");
  if (json["findings"].size() > kMostFindings) fail("the check {} printed more than {} findings", name, kMostFindings);
  std::vector<Finding> found;
  for (const Json& one : json["findings"]) {
    if (!one.is_object()) fail("the check {}: a finding should be a JSON object", name);
    Finding finding;
    finding.kind = "user:" + name + "/" + text_of(one, "kind", name, true);
    finding.where = text_of(one, "where", name, false);
    finding.level = named(text_of(one, "level", name, true), name, findings::parse_level);
    if (finding.level == findings::Level::kBlocker)
      fail(
          "the check {}: the level of a finding may not be blocker; "
          "only netmend's own checks raise blockers",
          name);
    const std::string certainty = text_of(one, "certainty", name, false);
    finding.certainty =
        certainty.empty() ? findings::Certainty::kPossible : named(certainty, name, findings::parse_certainty);
    finding.title = text_of(one, "title", name, true);
    finding.evidence = text_of(one, "evidence", name, false);
    finding.brief = text_of(one, "brief", name, false);
    if (finding.brief.empty()) finding.brief = finding.evidence.empty() ? finding.title : finding.evidence;
    if (one.contains("gain") && one["gain"].is_number()) finding.effect.gain = one["gain"];
    if (one.contains("value") && one["value"].is_number()) finding.value = one["value"];
    if (one.contains("next") && one["next"].is_array())
      for (const Json& command : one["next"])
        if (command.is_string() && finding.next.size() < 5)
          if (auto read = ShellPlace::read(command.get<std::string>(), "")) finding.next.push_back(*std::move(read));
    found.push_back(std::move(finding));
  }
  return found;
}

std::vector<std::string> programs_to_run(const std::vector<std::string>& typed) {
  std::vector<std::string> programs = typed;
  const std::string path = user_config();
  std::error_code error;
  if (path.empty() || !fs::exists(path, error)) return programs;
  const toml::table file = session::parse_toml(session::read_toml(path), path);
  const toml::array* listed = file["checks"]["programs"].as_array();
  if (!listed && file["checks"]["programs"]) fail("{}: checks.programs should be a list of strings", path);
  if (listed)
    for (const toml::node& item : *listed) {
      if (!item.is_string()) fail("{}: checks.programs should be a list of strings", path);
      programs.push_back(item.as_string()->get());
    }
  return programs;
}

void run_programs(const std::vector<std::string>& programs, const std::string& run_folder, Checkup& checkup) {
  for (const std::string& program : programs) {
    const std::string name = fs::path(program).stem().string();
    join_findings(checkup, parse_program_findings(output_of(program, run_folder), name));
  }
}

}  // namespace netmend::checks
