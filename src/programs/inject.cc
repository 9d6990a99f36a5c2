#include "programs/inject.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <mutex>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/progress.h"
#include "base/text.h"
#include "findings/phrases.h"
#include "programs/analysis.h"
#include "programs/program_run.h"
#include "stats/moments.h"
#include "trials/store.h"

namespace netmend::programs {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr int kVersion = 2;
constexpr double kFactor = 4, kGrace = 5;  ///< a mutant may take this many times a clean run, and these seconds more
constexpr double kTraced = 3;              ///< runs that the recorder of executed lines takes the time of, about
constexpr double kLong = 3600;             ///< seconds

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Json to_json(const RunOutcome& run) {
  Json json = {{"outcome", run.outcome}, {"seconds", run.seconds}, {"peak", run.peak}};
  json["processor"] = std::isfinite(run.processor) ? Json(run.processor) : Json(nullptr);
  json["metric"] = run.metric ? Json(*run.metric) : Json(nullptr);
  json["exception"] = run.exception, json["message"] = run.message, json["cause"] = run.cause;
  return json;
}

RunOutcome from_json(const std::string& key, const std::string& text) {
  const JsonDocument document = trials::trial_document(key, text);
  const JsonView row = document.top();
  RunOutcome run;
  run.outcome = row.at("outcome").text(), run.seconds = row.at("seconds").number(), run.peak = row.at("peak").whole(0);
  if (!row.at("processor").is_null()) run.processor = row.at("processor").number();
  if (!row.at("metric").is_null()) run.metric = row.at("metric").number();
  run.exception = row.at("exception").text(), run.message = row.at("message").text();
  run.cause = row.at("cause").text();
  return run;
}

class Injecting {
 public:
  explicit Injecting(const InjectRequest& request)
      : request_(request),
        sandbox_(request.unsafe),
        store_(request.folder + "/trials.db", "inject", kVersion),
        program_(sandbox_, request) {
    limits_.memory = request.memory;
    limits_.seconds = request.most_seconds > 0 ? request.most_seconds : 3600;
  }

  InjectResult run() {
    const auto start = Clock::now();
    look_at_program();
    run_clean();
    make_bugs(lines_of(trace()));
    run_bugs();
    run_slow_ones_again();
    ask_doctor_about_survivors();
    result_.seconds = since(start);
    return std::move(result_);
  }

 private:
  void look_at_program() {
    const JsonView about = program_.about().top();
    result_.program = request_.program, result_.python = request_.python, result_.seeded = program_.seeded();
    result_.version = about.at("version").text(), result_.marked = about.at("marked").truth();
    for (const std::string& phase : about.at("phase_lines").keys())
      result_.phase_lines[phase] = about.at("phase_lines").at(phase).whole(0);
    key_ = checksum(fmt::format("{}{}{}{}{}", read_file(program_.source()), join(request_.arguments, "\n"),
                                request_.python, request_.metric, request_.seed));
  }

  // ---- clean runs

  void run_clean() {
    const std::string first = fmt::format("{}|clean|0", key_);
    RunOutcome run;
    if (auto known = store_.find(first)) {
      run = from_json(first, *known);
    } else {
      sandbox::Outcome raw;
      fresh_ = true;
      run = program_.run({}, 0, limits_, &raw);
      require_sound(run, raw);
      store_.put(first, json_text(to_json(run)));
    }
    tell(fmt::format("a clean run takes {}",
                     run.seconds < 10 ? fmt::format("{:.1f} s", run.seconds) : duration_text(run.seconds)));
    if (fresh_ && request_.sample > 0)
      tell_time({request_.clean_runs, true, request_.sample, std::min(request_.sample, request_.doctor)}, run.seconds);
    result_.clean.resize(size_t(request_.clean_runs));
    result_.clean[0] = run;
    // The first once more, with the same seed, and each of the others with its own.
    RunOutcome first_again;
    auto outcome = [&](int64_t i) -> RunOutcome& { return i == 0 ? first_again : result_.clean[size_t(i)]; };
    auto key = [&](int64_t i) { return fmt::format("{}|clean|{}", key_, i == 0 ? "again" : std::to_string(i)); };
    in_order(
        request_.clean_runs, workers(), [](int) {},
        [&](int64_t i, int) {
          auto known = find(key(i));
          outcome(i) = known ? from_json(key(i), *known) : program_.run({}, i, limits_);
        },
        [&](int64_t i) { put(key(i), outcome(i)); });
    result_.repeats = first_again.metric == run.metric;
    double slowest = 0;
    for (const RunOutcome& one : result_.clean) {
      if (one.outcome == "hang") refuse_slow(printable(request_.program), limits_.seconds);
      if (one.outcome != "normal")
        throw InputError(fmt::format("of {} clean runs one ended as {}: the program does not run reliably",
                                     request_.clean_runs, one.outcome),
                         "The effect of a mutant could then not be distinguished from chance. Make it deterministic, "
                         "or raise --memory.");
      slowest = std::max(slowest, one.seconds);
    }
    result_.limit = limits_.seconds = request_.most_seconds > 0 ? request_.most_seconds : kFactor * slowest + kGrace;
  }

  void require_sound(const RunOutcome& run, const sandbox::Outcome& raw) const {
    if (run.outcome == "normal") return;
    if (run.outcome == "hang") refuse_slow(printable(request_.program), limits_.seconds);
    const std::string last =
        printable(std::string(trim(raw.errors.size() > 400 ? raw.errors.substr(raw.errors.size() - 400) : raw.errors)));
    if (run.outcome == "no-metric") refuse_metric(raw);
    throw InputError(
        fmt::format("{} does not run as it is: {}{}", printable(request_.program), run.outcome,
                    run.exception.empty() ? "" : " (" + run.exception + ": " + run.message + ")"),
        (last.empty() ? std::string("It runs in a sandbox") : "It said: " + last + "\n      It runs in a sandbox") +
            " without network, in a folder whose files can only be read: --writable DIR gives it one of its "
            "own, --env NAME passes a variable on, --memory allows more.");
  }
  [[noreturn]] void refuse_slow(const std::string& what, double seconds) const {
    const std::string given = printable(duration_text(seconds));
    throw InputError(
        fmt::format("{} was stopped after {} and had not ended", what, given),
        request_.most_seconds > 0
            ? "--time sets how long a run may take: a larger one lets it go on. Fewer epochs or less data make it "
              "faster."
            : "--time raises how long a run may take, as in --time 3h. Every mutant takes about as long: fewer epochs "
              "or less data make all of it faster.");
  }
  [[noreturn]] void refuse_metric(const sandbox::Outcome& raw) const {
    const MetricSource source = parse_metric(request_.metric);
    const std::string program = printable(request_.program);
    if (source.kind == MetricSource::kJson)
      throw InputError(
          fmt::format("{} writes no number {} to {}", program, printable(source.key), printable(source.file)),
          "The file's name is relative to the program's folder. A folder that it writes to needs --writable.");
    if (source.kind == MetricSource::kRecord)
      throw InputError(fmt::format("the record of {} has no metric {}", program, printable(source.key)),
                       "netmend watch -- python3 " + program +
                           " shows what is recorded; record:loss is there for every loop in PyTorch.");
    throw InputError(
        fmt::format("{} prints no line that matches --metric {}", program, printable(request_.metric)),
        raw.output.empty() ? "It prints nothing at all." : "Its last line is: " + printable(last_line(raw.output)));
  }
  static std::string last_line(const std::string& text) {
    const std::string_view body = trim(text);
    const size_t at = body.rfind('\n');
    return std::string(at == std::string_view::npos ? body : body.substr(at + 1)).substr(0, 200);
  }

  /// What is to be run, as far as it is known, and how long that takes.
  void tell_time(const Runs& runs, double clean_run) const {
    const double seconds = expected_seconds(runs, clean_run, workers());
    std::string what = fmt::format("about {} on {}", duration_text(seconds), findings::counted(workers(), "worker"));
    std::vector<std::string> parts;
    if (runs.clean > 0) parts.push_back(findings::counted(runs.clean, "clean run"));
    if (runs.trace) parts.push_back("one that records executed lines");
    parts.push_back(findings::counted(runs.mutants, "mutant"));
    if (runs.doctor > 0)
      parts.push_back(fmt::format("up to {} again for the doctor", findings::counted(runs.doctor, "survivor")));
    tell(fmt::format("{}: {}", join(parts, ", "), what));
    if (seconds > kLong)
      tell("--sample takes fewer mutants; the run can be stopped and goes on with --out " + printable(request_.folder));
  }

  // ---- which lines run

  Json trace() {
    // Its report names files by their paths.
    const std::string key = fmt::format("{}|lines|{}|{}", key_, program_.program(), join(request_.also, ","));
    if (auto known = store_.find(key)) return Json(trials::trial_document(key, *known).json());
    sandbox::Limits slow = limits_;
    slow.seconds = std::max(600.0, 100 * limits_.seconds);  // a trace makes Python code many times slower
    const sandbox::Outcome done = program_.trace(request_.also, slow);
    if (done.ending == sandbox::Ending::kTimeout) refuse_slow("the run that records executed lines", slow.seconds);
    Json executed = Json(json_or_null(done.report, {}));
    if (!executed.is_object() || !executed.contains("lines")) {
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

  /// The lines by file of a trace; what it counts goes into the result. The program ran beside whoever wrote it.
  Json lines_of(const Json& traced) {
    auto count = [&](const char* name) {
      const auto hit = traced.find(name);
      return hit != traced.end() && hit->is_number_unsigned() ? int64_t(hit->get<uint32_t>()) : 0;
    };
    result_.children = count("children"), result_.untraced = count("untraced");
    const auto lines = traced.find("lines");
    return lines != traced.end() && lines->is_object() ? *lines : Json::object();
  }

  bool could_read(const std::string& path) const {
    auto below = [&](const std::string& folder) {
      const std::string root = fs::weakly_canonical(folder).string();
      return path == root || path.starts_with(root.ends_with('/') ? root : root + "/");
    };
    return fs::path(path).lexically_normal() == path && fs::weakly_canonical(path) == path &&
           (below(program_.folder()) || below("/usr") ||
            std::any_of(program_.readable().begin(), program_.readable().end(), below));
  }

  void make_bugs(const Json& executed) {
    const auto start = Clock::now();
    Json files = Json::array();
    const std::string root = fs::weakly_canonical(program_.folder()).string() + "/";
    for (const auto& [path, lines] : executed.items()) {
      const std::string source = fs::weakly_canonical(program_.source()).string();
      const bool main = path == fs::weakly_canonical(program_.program()).string() || path == program_.program();
      // The program itself ran beside the recorder and may have written anything: files that it could not read stay so.
      if (!lines.is_object()) continue;
      if (!main && path != source && !could_read(path)) continue;
      if (sandbox_.unsafe() && !main && path != source) continue;
      std::string name = path.starts_with(root) ? path.substr(root.size()) : path;
      if (const size_t at = name.find("-packages/"); at != std::string::npos) name = name.substr(at + 10);
      if (main) name = fs::path(request_.program).filename().string();
      files.push_back({{"path", main ? program_.source() : path}, {"name", name}, {"lines", lines}});
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
    const JsonDocument made = program_.ask({"mutants"}, json_text(wanted));
    result_.possible = made.top().at("possible").whole(0), result_.skipped = made.top().at("skipped").texts();
    const JsonView list = made.top().at("mutants");
    for (size_t i = 0; i < list.size(); ++i) {
      const JsonView row = list.at(i);
      InjectedBug bug;
      bug.id = row.at("id").text(), bug.file = row.at("file").text(), bug.name = row.at("name").text();
      bug.op = row.at("operator").text(), bug.diff = row.at("diff").text(), bug.line = row.at("line").whole(1);
      bug.phases = row.at("phases").texts(), bug.in_condition = row.at("in_condition").truth();
      bug.written = row.at("written").text();
      if (bug.file == program_.source()) bug.file = program_.program();
      bug.twin = int64_t(hash64(bug.id) % uint64_t(request_.clean_runs));
      result_.bugs.push_back(std::move(bug));
    }
    if (result_.bugs.empty())
      throw InputError(fmt::format("no operator applies to any of the {} executed lines of {}", result_.lines,
                                   printable(request_.program)),
                       "--operators chooses, --also PACKAGE mutates a library too.");
    result_.generating = since(start);
    if (fresh_ && int64_t(result_.bugs.size()) == request_.sample) return;  // as it was told at the start
    Runs left;
    for (const InjectedBug& bug : result_.bugs) left.mutants += !store_.find(key_of(bug));
    left.doctor = std::min(left.mutants, request_.doctor);
    if (left.mutants > 0) tell_time(left, result_.clean[0].seconds);
  }

  // ---- the bugs

  /// With the change itself: what an operator writes at a place may be another in a later version.
  std::string key_of(const InjectedBug& bug) const {
    const std::string key = fmt::format("{}|{}|{:x}", key_, bug.id, hash64(bug.diff));
    return program_.seeded() ? fmt::format("{}|{}", key, bug.twin) : key;
  }
  static Version version_of(const InjectedBug& bug) { return {bug.file, bug.written, bug.in_condition}; }

  void run_bugs() {
    Progress progress("mutants", int64_t(result_.bugs.size()), request_.quiet);
    in_order(
        int64_t(result_.bugs.size()), workers(), [](int) {},
        [&](int64_t i, int) {
          InjectedBug& bug = result_.bugs[size_t(i)];
          if (auto known = find(key_of(bug))) return void(bug.run = from_json(bug.id, *known));
          bug.run = program_.run(version_of(bug), bug.twin, limits_);
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
      bug.run = program_.run(version_of(bug), bug.twin, limits_);
      put(key_of(bug), bug.run);
    }
    limits_.seconds = result_.limit;
  }

  // ---- the doctor

  DoctorSaid doctor_of(const std::string& key, const Version& version, int64_t number) {
    if (auto known = find(key)) {
      const JsonDocument document = trials::trial_document(key, *known);
      return {document.top().at("recorded").truth(), document.top().at("kinds").texts()};
    }
    stop_if_interrupted();
    const std::string record = program_.record(version, number, limits_);
    const DoctorSaid said = ask_doctor(record);
    std::error_code error;
    fs::remove(record, error);
    const std::lock_guard<std::mutex> guard(storing_);
    store_.put(key, json_text(Json{{"recorded", said.recorded}, {"kinds", said.kinds}}));
    return said;
  }

  void ask_doctor_about_survivors() {
    if (request_.doctor == 0) return;
    std::vector<size_t> asked;
    std::vector<std::string> texts = {program_.source()};
    for (const Survivor& one : analyse(result_).survivors) {
      if (int64_t(asked.size()) == request_.doctor) break;
      asked.push_back(one.bug);
      const InjectedBug& bug = result_.bugs[one.bug];
      if (bug.file == program_.program()) texts.push_back(bug.written);
    }
    if (asked.empty()) return;
    auto in_texts = kinds_in_texts(texts, request_.python);
    limits_.seconds = 2 * result_.limit;  // the recorder takes a little
    result_.clean_doctor =
        beyond({}, doctor_of(fmt::format("{}|clean|doctor", key_), {}, 0), in_texts[program_.source()]);
    Progress progress("survivors under the recorder", int64_t(asked.size()), request_.quiet);
    in_order(
        int64_t(asked.size()), workers(), [](int) {},
        [&](int64_t i, int) {
          InjectedBug& bug = result_.bugs[asked[size_t(i)]];
          bug.doctor = doctor_of(key_of(bug) + "|doctor", version_of(bug), bug.twin);
        },
        [&](int64_t) { progress.advance(1); });
    for (size_t i : asked) {
      InjectedBug& bug = result_.bugs[i];
      bug.doctor = beyond(result_.clean_doctor, *bug.doctor, in_texts[bug.written]);
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
  ProgramRun program_;
  sandbox::Limits limits_;
  bool fresh_ = false;  ///< no earlier call has done any of it
  std::string key_;
  InjectResult result_;
};

}  // namespace

double expected_seconds(const Runs& runs, double clean_run, int workers) {
  auto rounds = [&](int64_t count) { return double((count + workers - 1) / workers); };
  // The first clean run is over, and runs once more to see whether it repeats; the doctor looks at a clean run too.
  return clean_run *
         (rounds(runs.clean) + runs.trace * kTraced + rounds(runs.mutants) + rounds(runs.doctor) + (runs.doctor > 0));
}

InjectResult inject(const InjectRequest& request) {
  parse_metric(request.metric);
  if (request.clean_runs < 2)
    fail("--clean-runs {}: at least two show how much the metric varies by itself", request.clean_runs);
  return Injecting(request).run();
}

}  // namespace netmend::programs
