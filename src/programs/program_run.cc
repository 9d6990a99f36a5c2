#include "programs/program_run.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/python_package.h"
#include "base/text.h"

namespace netmend::programs {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSeed = "{seed}";
constexpr const char* kRecordFolder = "/tmp/netmend-record";
/// A shell waits for the program, tells how much processor time it took, and hands over a file that it left. The
/// program itself does not get the descriptor.
constexpr const char* kShell =
    "unset NETMEND_REPORT_FD; \"$@\" 3>&-; status=$?; times >&3; head -c 60000000 -- \"$0\" >&3 2>/dev/null; exit "
    "$status";

std::string script() { return python_package_folder() + "/netmend/_injection.py"; }

std::string shell_quoted(const std::string& word) {
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// Standard output of a command that we trust, which starts `python`.
std::string output_of(const std::vector<std::string>& words, const std::string& python) {
  std::string line;
  for (const std::string& word : words) line += shell_quoted(word) + " ";
  std::FILE* pipe = popen(line.c_str(), "r");
  if (!pipe) fail("{} cannot be started", words[0]);
  std::string text;
  char buffer[1 << 16];
  for (size_t got = 0; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, got);
  const int status = pclose(pipe);
  if (text.empty())
    throw InputError(fmt::format("{} could not be run (exit status {})", printable(python), status >> 8),
                     "--python names a Python from 3.9 on.");
  return text;
}

/// `1m2.50s` of what the shell's `times` prints.
double minutes_and_seconds(const std::string& word) {
  int minutes = 0;
  double seconds = 0;
  return std::sscanf(word.c_str(), "%dm%lfs", &minutes, &seconds) == 2 ? 60 * minutes + seconds : NAN;
}

/// What the shell reports: its own times, those of the program, and behind that a file.
struct Report {
  double processor = NAN;
  std::string file;
  explicit Report(const std::string& text) {
    const size_t first = text.find('\n');
    const size_t second = first == std::string::npos ? first : text.find('\n', first + 1);
    if (second == std::string::npos) return;
    const std::vector<std::string> parts = split(text.substr(first + 1, second - first - 1), ' ');
    if (parts.size() == 2) processor = minutes_and_seconds(parts[0]) + minutes_and_seconds(parts[1]);
    file = text.substr(second + 1);
  }
};

std::string replaced(std::string text, const std::string& word, const std::string& by) {
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += by.size())
    text.replace(at, word.size(), by);
  return text;
}

}  // namespace

ProgramRun::ProgramRun(sandbox::Sandbox& sandbox, const InjectRequest& request)
    : sandbox_(sandbox), request_(request), metric_(parse_metric(request.metric)), about_(inspect()) {
  for (const std::string& argument : request.arguments) seeded_ |= argument.find(kSeed) != std::string::npos;
  reads_ = about_.top().at("reads").texts();
  reads_.push_back(python_package_folder() + "/netmend");
  if (sandbox_.unsafe()) return;
  if (request.python.find('/') != std::string::npos) sandbox_.require_readable(fs::absolute(request.python).string());
  if (source_.starts_with(sandbox_.folder())) fs::permissions(source_, fs::perms(0644));
}

JsonDocument ProgramRun::inspect() {
  const std::string path = fs::absolute(request_.program).lexically_normal().string();
  if (!fs::is_regular_file(path)) fail("there is no program {}", printable(request_.program));
  JsonDocument about = ask({"inspect", path, sandbox_.folder(), join(request_.operators, ",")});
  folder_ = fs::path(path).parent_path().string();
  source_ = about.top().at("program").text(), program_ = path;
  if (source_ != path) program_ = path + ".py";  // a notebook's cells stand beside it
  return about;
}

JsonDocument ProgramRun::ask(const std::vector<std::string>& words, const std::string& input) const {
  std::vector<std::string> all = {request_.python, script()};
  if (!input.empty()) {
    const std::string in = sandbox_.folder() + "/request.json";
    write_file(in, input);
    // The script reads standard input; a shell hands it over.
    all = {"/bin/sh", "-c", "exec \"$@\" < \"$0\"", in, request_.python, script()};
  }
  all.insert(all.end(), words.begin(), words.end());
  JsonDocument document(output_of(all, request_.python), script(), {}, "Is --python a Python from 3.9 on?");
  if (document.top().has("error")) throw InputError(document.top().at("error").text());
  return document;
}

sandbox::Command ProgramRun::command(const Version& version, int64_t number) const {
  sandbox::Command out;
  out.folder = folder_, out.readable = reads_, out.writable = request_.writable;
  std::string program = program_;
  if (sandbox_.unsafe()) {
    program = version.by.empty() ? source_ : version.by;
    out.environment["PYTHONPATH"] = folder_;
  } else {
    if (source_ != program_ && version.path != program_) out.replaced.push_back({program_, source_});
    if (!version.by.empty()) out.replaced.push_back({version.path, version.by});
  }
  out.words = {request_.python, program};
  const std::string seed = std::to_string(request_.seed + uint64_t(number));
  for (const std::string& argument : request_.arguments) out.words.push_back(replaced(argument, kSeed, seed));
  out.environment["PYTHONDONTWRITEBYTECODE"] = "1", out.environment["PYTHONHASHSEED"] = "0";
  for (const std::string& name : request_.environment)
    if (const char* value = std::getenv(name.c_str())) out.environment[name] = value;
  return out;
}

sandbox::Outcome ProgramRun::start(const sandbox::Command& what, const sandbox::Limits& limits) const {
  sandbox::Outcome done = sandbox_.run(what, limits);
  if (done.ending == sandbox::Ending::kInterrupted) throw Interrupted{};
  return done;
}

RunOutcome ProgramRun::run(const Version& version, int64_t number, const sandbox::Limits& limits,
                           sandbox::Outcome* raw) const {
  sandbox::Command what = command(version, number);
  const auto before = fs::file_time_type::clock::now();
  std::string left = "/dev/null";
  if (metric_.kind == MetricSource::kRecord) left = watch(what);
  if (metric_.kind == MetricSource::kJson) {
    left = (fs::path(folder_) / metric_.file).lexically_normal().string();
    what.left_out.push_back(left);
  }
  what.words.insert(what.words.begin(), {"/bin/sh", "-c", kShell, left});
  what.report = true;
  sandbox::Outcome done = start(what, limits);
  const Report report(done.report);
  // Without bubblewrap nobody but the shell tells of a signal.
  if (sandbox_.unsafe() && done.ending == sandbox::Ending::kExited && done.status > 128)
    done.ending = sandbox::Ending::kSignal, done.status -= 128;
  std::optional<double> metric;
  std::error_code error;
  if (metric_.kind == MetricSource::kLine) {
    metric = find_metric(done.output, metric_.expression);
  } else if (metric_.kind == MetricSource::kRecord) {
    const std::string file = kept(report.file);
    if (!file.empty()) metric = record_metric(file, metric_.key);
    fs::remove(file, error);
  } else if (!sandbox_.unsafe() || fs::last_write_time(left, error) >= before) {  // not the file of an earlier run
    metric = json_metric(report.file, metric_.key);
  }
  RunOutcome out = classify(done, metric, version.in_condition);
  out.processor = report.processor;
  if (raw) *raw = std::move(done);
  return out;
}

std::string ProgramRun::watch(sandbox::Command& what) const {
  const std::string package = python_package_folder();
  std::string& path = what.environment["PYTHONPATH"];
  path = package + "/netmend/watch/site:" + (path.empty() ? "" : path + ":") + package;
  const std::string folder = sandbox_.unsafe() ? fresh_name() : kRecordFolder;
  what.environment["NETMEND_WATCH"] = folder;
  return folder + "/record.jsonl";
}

std::string ProgramRun::fresh_name() const {
  static std::atomic<int64_t> count{0};
  return fmt::format("{}/record{}", sandbox_.folder(), ++count);
}

std::string ProgramRun::kept(const std::string& text) const {
  if (text.empty()) return "";
  const std::string file = fresh_name() + ".jsonl";
  write_file(file, text);
  return file;
}

std::string ProgramRun::record(const Version& version, int64_t number, const sandbox::Limits& limits) const {
  sandbox::Command what = command(version, number);
  what.words.insert(what.words.begin(), {"/bin/sh", "-c", kShell, watch(what)});
  what.report = true;
  return kept(Report(start(what, limits).report).file);
}

sandbox::Outcome ProgramRun::trace(const std::vector<std::string>& also, const sandbox::Limits& limits) const {
  sandbox::Command what = command({}, 0);
  const std::vector<std::string> typed(what.words.begin() + 1, what.words.end());
  // Its files vanish with the sandbox, or with the folder that the watchdog knows.
  const nlohmann::json plan = {{"also", also}, {"scratch", sandbox_.unsafe() ? sandbox_.folder() : "/tmp"}};
  what.words = {request_.python, script(), "trace", json_text(plan), "--"};
  what.words.insert(what.words.end(), typed.begin(), typed.end());
  what.report = true;
  return start(what, limits);
}

}  // namespace netmend::programs
