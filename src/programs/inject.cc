#include "programs/inject.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <mutex>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/progress.h"
#include "base/python_package.h"
#include "base/text.h"
#include "stats/moments.h"
#include "trials/store.h"

namespace netmend::programs {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int kVersion = 1;
constexpr double kFactor = 4, kGrace = 5;  ///< a mutant may take this many times a clean run, and these seconds more

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Json to_json(const RunOutcome& run) {
  Json json = {{"outcome", run.outcome}, {"seconds", run.seconds}, {"peak", run.peak}};
  json["metric"] = run.metric ? Json(*run.metric) : Json(nullptr);
  json["exception"] = run.exception, json["message"] = run.message, json["cause"] = run.cause;
  return json;
}

RunOutcome from_json(const std::string& key, const std::string& text) {
  const JsonDocument document = trials::trial_document(key, text);
  const JsonView row = document.top();
  RunOutcome run;
  run.outcome = row.at("outcome").text(), run.seconds = row.at("seconds").number(), run.peak = row.at("peak").whole(0);
  if (!row.at("metric").is_null()) run.metric = row.at("metric").number();
  run.exception = row.at("exception").text(), run.message = row.at("message").text();
  run.cause = row.at("cause").text();
  return run;
}

class Injecting {
 public:
  explicit Injecting(const InjectRequest& request)
      : request_(request), sandbox_(request.unsafe), store_(request.folder + "/trials.db", "inject", kVersion) {
    limits_.memory = request.memory;
    limits_.seconds = request.most_seconds > 0 ? request.most_seconds : 3600;
  }

  InjectResult run() {
    const auto start = Clock::now();
    look_at_program();
    run_clean();
    const Json executed = trace();
    make_bugs(executed);
    run_bugs();
    run_slow_ones_again();
    result_.seconds = since(start);
    return std::move(result_);
  }

 private:
  std::string script() const { return python_package_folder() + "/netmend/_injection.py"; }

  /// Our own script beside the program, outside the sandbox: it parses and writes, and runs nothing of others.
  JsonDocument ask(const std::vector<std::string>& words, const std::string& input = "") {
    sandbox::Command command;
    command.words = {request_.python, script()};
    command.words.insert(command.words.end(), words.begin(), words.end());
    const std::string in = sandbox_.folder() + "/request.json";
    if (!input.empty()) {
      write_file(in, input);
      // The script reads standard input; a shell hands it over.
      command.words = {"/bin/sh", "-c", "exec \"$@\" < \"$0\"", in, request_.python, script()};
      command.words.insert(command.words.end(), words.begin(), words.end());
    }
    const std::string text = output_of(command.words);
    JsonDocument document(text, script(), {}, "Is --python a Python from 3.9 on?");
    if (document.top().has("error")) throw InputError(document.top().at("error").text());
    return document;
  }

  /// Standard output of a command that we trust.
  static std::string output_of(const std::vector<std::string>& words) {
    std::string line;
    for (const std::string& word : words) line += shell_quoted(word) + " ";
    std::FILE* pipe = popen(line.c_str(), "r");
    if (!pipe) fail("{} cannot be started", words[0]);
    std::string text;
    char buffer[1 << 16];
    for (size_t got = 0; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, got);
    const int status = pclose(pipe);
    if (text.empty())
      throw InputError(fmt::format("{} could not be run (exit status {})", printable(words[0]), status >> 8),
                       "--python names a Python from 3.9 on.");
    return text;
  }
  static std::string shell_quoted(const std::string& word) {
    std::string out = "'";
    for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
  }

  void look_at_program() {
    result_.program = request_.program, result_.python = request_.python;
    const std::string path = fs::absolute(request_.program).lexically_normal().string();
    if (!fs::is_regular_file(path)) fail("there is no program {}", printable(request_.program));
    const JsonDocument about = ask({"inspect", path, sandbox_.folder()});
    const JsonView top = about.top();
    folder_ = fs::path(path).parent_path().string();
    source_ = top.at("program").text(), program_ = path;
    if (source_ != path) program_ = path + ".py";  // a notebook's cells stand beside it
    result_.version = top.at("version").text(), result_.marked = top.at("marked").truth();
    for (const std::string& phase : top.at("phase_lines").keys())
      result_.phase_lines[phase] = top.at("phase_lines").at(phase).whole(0);
    reads_ = top.at("reads").texts();
    reads_.push_back(python_package_folder() + "/netmend");
    key_ = checksum(read_file(source_) + join(request_.arguments, "\n") + request_.python + request_.metric);
    if (sandbox_.unsafe()) return;
    std::string python = request_.python;
    if (python.find('/') != std::string::npos) sandbox_.require_readable(fs::absolute(python).string());
    chmod_readable(source_);
  }
  void chmod_readable(const std::string& path) const {
    if (path.starts_with(sandbox_.folder())) fs::permissions(path, fs::perms(0644));
  }

  sandbox::Command command(const std::string& changed_path, const std::string& by) const {
    sandbox::Command out;
    out.folder = folder_, out.readable = reads_, out.writable = request_.writable;
    std::string program = program_;
    if (sandbox_.unsafe()) {
      program = by.empty() ? source_ : by;
      out.environment["PYTHONPATH"] = folder_;
    } else {
      if (source_ != program_ && changed_path != program_) out.replaced.push_back({program_, source_});
      if (!by.empty()) out.replaced.push_back({changed_path, by});
    }
    out.words = {request_.python, program};
    out.words.insert(out.words.end(), request_.arguments.begin(), request_.arguments.end());
    out.environment["PYTHONDONTWRITEBYTECODE"] = "1", out.environment["PYTHONHASHSEED"] = "0";
    for (const std::string& name : request_.environment)
      if (const char* value = std::getenv(name.c_str())) out.environment[name] = value;
    return out;
  }

  sandbox::Outcome run_in_sandbox(const sandbox::Command& what) {
    sandbox::Outcome done = sandbox_.run(what, limits_);
    if (done.ending == sandbox::Ending::kInterrupted) throw Interrupted{};
    return done;
  }

  // ---- clean runs

  void run_clean() {
    const std::string first = fmt::format("{}|clean|0", key_);
    RunOutcome run;
    if (auto known = store_.find(first)) {
      run = from_json(first, *known);
    } else {
      const sandbox::Outcome raw = run_in_sandbox(command("", ""));
      run = classify(raw, request_.metric, false);
      require_sound(run, raw);
      store_.put(first, json_text(to_json(run)));
    }
    tell(fmt::format("a clean run takes {}", duration_text(run.seconds)));
    if (run.seconds * double(request_.sample) > 3600)
      tell(
          fmt::format("{} mutants would take about {} on {} workers; --sample takes fewer, and the run can be stopped "
                      "and goes on with --out {}",
                      request_.sample, duration_text(run.seconds * double(request_.sample) / workers()), workers(),
                      request_.folder));
    result_.clean.resize(size_t(request_.clean_runs));
    result_.clean[0] = run;
    in_order(
        request_.clean_runs - 1, workers(), [](int) {},
        [&](int64_t i, int) {
          RunOutcome& own = result_.clean[size_t(i) + 1];
          const std::string key = fmt::format("{}|clean|{}", key_, i + 1);
          if (auto known = find(key)) return void(own = from_json(key, *known));
          own = classify(run_in_sandbox(command("", "")), request_.metric, false);
        },
        [&](int64_t i) { put(fmt::format("{}|clean|{}", key_, i + 1), result_.clean[size_t(i) + 1]); });
    double slowest = 0;
    for (const RunOutcome& one : result_.clean) {
      if (one.outcome != "normal")
        throw InputError(fmt::format("of {} clean runs one ended as {}: the program does not run reliably",
                                     request_.clean_runs, one.outcome),
                         "Mutants cannot be told from chance then; make it deterministic, or raise --memory.");
      slowest = std::max(slowest, one.seconds);
    }
    result_.limit = limits_.seconds = request_.most_seconds > 0 ? request_.most_seconds : kFactor * slowest + kGrace;
  }

  void require_sound(const RunOutcome& run, const sandbox::Outcome& raw) const {
    if (run.outcome == "normal") return;
    const std::string last =
        printable(std::string(trim(raw.errors.size() > 400 ? raw.errors.substr(raw.errors.size() - 400) : raw.errors)));
    if (run.outcome == "no-metric")
      throw InputError(
          fmt::format("{} prints no line that --metric {} fits", printable(request_.program),
                      printable(request_.metric)),
          raw.output.empty() ? "It prints nothing at all." : "Its last line is: " + printable(last_line(raw.output)));
    throw InputError(
        fmt::format("{} does not run as it is: {}{}", printable(request_.program), run.outcome,
                    run.exception.empty() ? "" : " (" + run.exception + ": " + run.message + ")"),
        (last.empty() ? std::string("It runs in a sandbox") : "It said: " + last + "\n      It runs in a sandbox") +
            " without network, in a folder whose files can only be read: --writable DIR gives it one of its "
            "own, --env NAME passes a variable on, --memory allows more.");
  }
  static std::string last_line(const std::string& text) {
    const std::string_view body = trim(text);
    const size_t at = body.rfind('\n');
    return std::string(at == std::string_view::npos ? body : body.substr(at + 1)).substr(0, 200);
  }

  // ---- which lines run

  Json trace() {
    // Its report names files by their paths.
    const std::string key = fmt::format("{}|trace|{}|{}", key_, program_, join(request_.also, ","));
    if (auto known = store_.find(key)) return Json(trials::trial_document(key, *known).json());
    sandbox::Command what = command("", "");
    const std::string program = what.words[1];
    what.words = {request_.python, script(), "trace", json_text(Json{{"also", request_.also}}), "--", program};
    what.words.insert(what.words.end(), request_.arguments.begin(), request_.arguments.end());
    what.report = true;
    sandbox::Limits slow = limits_;
    slow.seconds = std::max(600.0, 100 * limits_.seconds);  // a trace makes Python code many times slower
    std::swap(slow, limits_);
    const sandbox::Outcome done = run_in_sandbox(what);
    std::swap(slow, limits_);
    Json executed = Json(json_or_null(done.report, {}));
    if (!executed.is_object()) {
      const nlohmann::json said = json_or_null(done.output);
      if (said.is_object() && said.contains("error") && said["error"].is_string())
        throw InputError(said["error"].get<std::string>());
      const std::string last = printable(last_line(done.errors));
      throw InputError("the run that records executed lines failed: " +
                       (last.empty() ? "it printed nothing about why" : last));
    }
    store_.put(key, json_text(executed));
    return executed;
  }

  bool could_read(const std::string& path) const {
    auto below = [&](const std::string& folder) {
      const std::string root = fs::weakly_canonical(folder).string();
      return path == root || path.starts_with(root.ends_with('/') ? root : root + "/");
    };
    return fs::path(path).lexically_normal() == path && fs::weakly_canonical(path) == path &&
           (below(folder_) || below("/usr") || std::any_of(reads_.begin(), reads_.end(), below));
  }

  void make_bugs(const Json& executed) {
    const auto start = Clock::now();
    Json files = Json::array();
    const std::string root = fs::weakly_canonical(folder_).string() + "/";
    for (const auto& [path, lines] : executed.items()) {
      const bool main = path == fs::weakly_canonical(program_).string() || path == program_;
      // The program itself ran beside the recorder and may have written anything: files that it could not read stay so.
      if (!lines.is_object()) continue;
      if (!main && path != fs::weakly_canonical(source_).string() && !could_read(path)) continue;
      if (sandbox_.unsafe() && !main && path != fs::weakly_canonical(source_).string()) continue;
      std::string name = path.starts_with(root) ? path.substr(root.size()) : path;
      if (const size_t at = name.find("-packages/"); at != std::string::npos) name = name.substr(at + 10);
      if (main) name = fs::path(request_.program).filename().string();
      files.push_back({{"path", main ? source_ : path}, {"name", name}, {"lines", lines}});
      result_.lines += int64_t(lines.size());
    }
    result_.files = int64_t(files.size());
    if (sandbox_.unsafe() && (!request_.also.empty() || executed.size() > files.size()))
      tell("without a sandbox only the program's own file is mutated: other files cannot be replaced for one run");
    const std::string out = sandbox_.folder() + "/mutants";
    make_folders(out);
    const Json wanted = {{"files", files},
                         {"operators", request_.operators},
                         {"per_file", request_.per_file},
                         {"sample", request_.sample},
                         {"seed", request_.seed},
                         {"out", out}};
    const JsonDocument made = ask({"mutants"}, json_text(wanted));
    result_.possible = made.top().at("possible").whole(0), result_.skipped = made.top().at("skipped").texts();
    const JsonView list = made.top().at("mutants");
    for (size_t i = 0; i < list.size(); ++i) {
      const JsonView row = list.at(i);
      InjectedBug bug;
      bug.id = row.at("id").text(), bug.file = row.at("file").text(), bug.name = row.at("name").text();
      bug.op = row.at("operator").text(), bug.diff = row.at("diff").text(), bug.line = row.at("line").whole(1);
      bug.phases = row.at("phases").texts(), bug.in_condition = row.at("in_condition").truth();
      bug.written = row.at("written").text();
      if (bug.file == source_) bug.file = program_;
      result_.bugs.push_back(std::move(bug));
    }
    if (result_.bugs.empty())
      throw InputError(fmt::format("no operator finds a place in the {} executed lines of {}", result_.lines,
                                   printable(request_.program)),
                       "--operators chooses, --also PACKAGE mutates a library too.");
    result_.generating = since(start);
  }

  // ---- the bugs

  std::string key_of(const InjectedBug& bug) const { return fmt::format("{}|{}", key_, bug.id); }

  void run_bugs() {
    Progress progress("mutants", int64_t(result_.bugs.size()), request_.quiet);
    in_order(
        int64_t(result_.bugs.size()), workers(), [](int) {},
        [&](int64_t i, int) {
          InjectedBug& bug = result_.bugs[size_t(i)];
          if (auto known = find(key_of(bug))) return void(bug.run = from_json(bug.id, *known));
          bug.run = classify(run_in_sandbox(command(bug.file, bug.written)), request_.metric, bug.in_condition);
          bug.again = bug.run.outcome == "hang";
        },
        [&](int64_t i) {
          InjectedBug& bug = result_.bugs[size_t(i)];
          if (!bug.again) put(key_of(bug), bug.run);
          progress.advance(1);
        });
  }

  /// What ran too long while others ran is run once more, alone and with twice the time.
  void run_slow_ones_again() {
    for (InjectedBug& bug : result_.bugs) {
      if (!bug.again) continue;
      stop_if_interrupted();
      limits_.seconds = 2 * result_.limit;
      bug.run = classify(run_in_sandbox(command(bug.file, bug.written)), request_.metric, bug.in_condition);
      put(key_of(bug), bug.run);
    }
    limits_.seconds = result_.limit;
  }

  std::optional<std::string> find(const std::string& key) {
    const std::lock_guard<std::mutex> guard(storing_);
    auto known = store_.find(key);
    result_.found += known.has_value();
    return known;
  }
  void put(const std::string& key, const RunOutcome& run) {
    const std::lock_guard<std::mutex> guard(storing_);
    store_.put(key, json_text(to_json(run)));
  }
  int workers() const { return request_.jobs > 0 ? request_.jobs : cores(); }
  void tell(const std::string& line) const {
    if (request_.note) request_.note(line);
  }

  const InjectRequest& request_;
  sandbox::Sandbox sandbox_;
  trials::Store store_;
  std::mutex storing_;
  sandbox::Limits limits_;
  std::string folder_, source_, program_, key_;  ///< `source_`: what is parsed; `program_`: what is run
  std::vector<std::string> reads_;
  InjectResult result_;
};

}  // namespace

InjectResult inject(const InjectRequest& request) {
  require_expression(request.metric);
  if (request.clean_runs < 2)
    fail("--clean-runs {}: at least two show how much the metric varies by itself", request.clean_runs);
  return Injecting(request).run();
}

}  // namespace netmend::programs
