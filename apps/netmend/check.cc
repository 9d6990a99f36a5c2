// netmend check: everything that fits a model and its data, as findings.
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "findings/kinds.h"
#include "netmend/check_compare.h"
#include "netmend/check_report.h"
#include "netmend/searched.h"
#include "netmend/show.h"
#include "onnx/reader.h"

namespace netmend::app {
namespace {

using findings::Finding;
using findings::Level;

std::string identity(const std::string& name, const model::Graph& graph) {
  int64_t units = 0, weights = 0;
  std::vector<model::Layer> layers = executor::find_layers(graph);
  for (const model::Layer& layer : layers) units += layer.units;
  for (model::ValueId id : executor::find_parameters(graph)) weights += graph.constant(id).numel();
  return fmt::format("{}  {} layers · {} units · {} weights", printable(name), layers.size(), with_commas(units),
                     with_commas(weights));
}

double seconds_of(const std::string& budget) {
  if (budget.empty() || budget == "normal") return 60;
  if (budget == "quick") return 10;
  if (budget == "deep") return 600;
  return parse_budget(budget);
}

int exit_status(const std::vector<Finding>& found, const std::string& fail_on) {
  if (fail_on == "never") return 0;
  const Level bar = findings::parse_level(fail_on);
  return std::any_of(found.begin(), found.end(), [&](const Finding& one) { return one.level >= bar; }) ? 1 : 0;
}

/// The blocker of the preflight as a finding like any other.
Finding blocker_finding(const checkup::Blocker& blocker, const findings::Words& words) {
  const size_t colon = blocker.id.find(':');
  Finding finding =
      findings::make(blocker.id.substr(0, colon), colon == std::string::npos ? "" : blocker.id.substr(colon + 1), words,
                     {0.5, 0}, findings::Sureness::kSure, blocker.brief, blocker.evidence);
  finding.title = blocker.title;
  if (finding.brief.empty()) finding.brief = blocker.evidence.substr(0, 48);
  if (!blocker.line.empty()) finding.numbers["toml"] = blocker.line;
  return finding;
}

class Check {
 public:
  Check(const Common& common, const CheckOptions& options) : common_(common), options_(options) {
    encode_alike(options_, options_.train);
    seconds_of(options_.budget);  // a slip of the finger shows before the work
  }

  int run() {
    Config config = read_config(common_.config, options_.model);
    view_.words = case_words(common_, options_);
    if (options_.data.empty() && options_.test.empty() && config.test.empty() &&
        !(options_.model + config.model).empty())
      return alone(options_.model.empty() ? config.model : options_.model);
    Case about = open_case(common_, options_);
    open_training(about);
    if (!common_.json) introduce(about);
    checkup::Preflight preflight = examine(common_, options_, about);
    if (!common_.json) print_preflight(preflight, about.judged.settings.metric);
    RunFolder folder(common_.out, "check", common_.arguments);
    Json json;
    if (preflight.blocker) {
      view_.findings.push_back(blocker_finding(*preflight.blocker, words(about)));
      if (std::string data = mended_spec(preflight.blocker->line); !data.empty())
        view_.findings.back().next[0] =
            fmt::format("netmend check {} --data {}", findings::shell_word(options_.model), findings::shell_word(data));
    }
    if (std::string seen = searched_warning(about.judged.subject.graph, *about.data); !seen.empty())
      view_.findings.push_back(findings::make("seen-in-search", "", words(about), {}, findings::Sureness::kSure,
                                              "the figure flatters", seen));
    const bool blocked = preflight.blocker && !options_.anyway;
    std::string numbers, tests;
    json["metric"] = nullptr;
    double seconds = 0;
    std::optional<checkup::Checkup> checkup;
    if (blocked) {
      view_.skipped.push_back({"everything about the model", "the blocker settled, or --anyway"});
      Planned planned = plan(about);
      take(checkup::check_data_alone(planned.test, planned.train, about.judged.settings, planned.how));
    } else {
      auto start = std::chrono::steady_clock::now();
      checkup = examine_all(about);
      seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      const auto& result = checkup->context->test.result;
      if (!options_.reference.empty() && !interrupted_)
        compared_ = compare_with(common_, options_, about, options_.reference, view_);
      numbers = numbers_line(about.judged.settings, result);
      tests = tests_line(*checkup);
      json["result"] = result_json(about.judged.settings, result, seconds);
      if (!result.metrics.empty()) {
        json["metric"] = estimate_json(result.metrics[0].estimate);
        json["metric"]["name"] = result.metrics[0].name;
      }
      for (const auto& [what, took] : checkup->times) json["times"].push_back({{"what", what}, {"seconds", took}});
    }
    accept_known(about.config);
    view_.verdict = checkup::verdict(view_.findings, about.judged.settings.task != observers::Task::kNone);
    const int status = interrupted_ ? 130 : exit_status(view_.findings, options_.fail_on);
    ReportParts parts{common_,
                      view_,
                      &preflight,
                      checkup ? &*checkup : nullptr,
                      &about.judged.subject.graph,
                      about.judged.subject.model_name,
                      {},
                      !options_.no_images,
                      seconds};
    parts.data.push_back({"test", about.data->info().spec, about.data->size(), about.judged.subject.data->size()});
    if (train_)
      parts.data.push_back(
          {"train", train_->data->info().spec, train_->data->size(), train_->judged.subject.data->size()});
    parts.compare = compared_;
    view_.report = write_report(folder, parts);
    finish(folder, std::move(json), &preflight);
    folder.note_file(about.judged.subject.model_name);
    for (const std::string& file : about.data->info().files) folder.note_file(file);
    folder.note("data", about.data->info().spec);
    if (train_) folder.note("train", train_->data->info().spec);
    folder.finish(common_.seed, seconds, status);
    if (!common_.json) {
      print_view(view_, numbers, tests);
      if (interrupted_) say(common_, "stopped: this is what was finished");
    }
    return status;
  }

 private:
  /// Graph and weights: seconds, and no data.
  int alone(const std::string& model) {
    model::Graph graph = onnx::read_model(model);
    executor::Executor runs(graph);  // names all operators that it could not
    executor::Head head = executor::find_head(graph, choose_output(graph, options_.output));
    if (!common_.json) fmt::print("{}\n", identity(model, graph));
    RunFolder folder(common_.out, "check", common_.arguments);
    auto found = checkup::check_model(graph, head, {{"case", view_.words}, {"model", model}});
    view_.findings = std::move(found.findings), view_.passed = std::move(found.passed),
    view_.skipped = std::move(found.skipped);
    accept_known(read_config(common_.config, model));
    view_.skipped.push_back({"everything that needs data", "--data SPEC, or data.test in netmend.toml"});
    view_.verdict = checkup::verdict(view_.findings, true);
    const int status = exit_status(view_.findings, options_.fail_on);
    view_.report = write_report(folder, {common_, view_, nullptr, nullptr, &graph, model, {}, false, 0});
    finish(folder, {{"metric", nullptr}}, nullptr);
    folder.note_file(model);
    folder.finish(common_.seed, 0, status);
    if (!common_.json) {
      print_view(view_, "", "");
      fmt::print("  data      netmend init {} --data SPEC\n", findings::shell_word(model));
    }
    return status;
  }

  /// What someone has accepted is counted apart.
  void accept_known(const Config& config) {
    view_.known =
        findings::split_accepted(findings::rank(std::move(view_.findings)), config.accepted, findings::today());
    view_.findings = view_.known.open;
  }

  /// What was typed wins over netmend.toml: then the line that would mend it goes into what was typed. "" where nothing
  /// was typed, or the line is about something else.
  std::string mended_spec(const std::string& line) const {
    if (options_.data.empty() || options_.model.empty() || !line.starts_with("input.") ||
        line.find('\n') != std::string::npos)
      return "";
    dataset::Spec spec = dataset::parse_spec(options_.data);
    for (const auto& [key, value] : parse_config(line, "netmend.toml").input) spec.options[key] = value;
    return dataset::spec_text(spec);
  }

  void open_training(const Case& about) {
    auto spec = train_spec(options_, options_.train, about.config);
    if (!spec) return;
    if (dataset::spec_text(*spec) == dataset::spec_text(about.spec)) {
      view_.skipped.push_back({"what training data shows", "training data other than the tests"});
      return;
    }
    Common silent = common_;
    silent.quiet = true;  // what the model is fed with was told already
    auto data = open_data(silent, *spec, about.judged.subject.graph, about.config);
    Judged judged = make_judged(silent, about.judged.subject.model_name, about.judged.subject.graph, data,
                                options_.output.empty() ? about.config.output : options_.output, about.config.wishes);
    train_.emplace(Case{about.config, *spec, data, std::move(judged)});
  }

  void introduce(const Case& about) const {
    fmt::print("{}   test {}", identity(about.judged.subject.model_name, about.judged.subject.graph),
               with_commas(about.data->size()));
    if (train_) fmt::print("   train {}", with_commas(train_->data->size()));
    fmt::print("  ({}:{})\n", printable(about.spec.head), printable(about.spec.rest));
  }

  findings::Words words(const Case& about) const {
    return {
        {"case", view_.words}, {"model", about.judged.subject.model_name}, {"data", dataset::spec_text(about.spec)}};
  }

  /// Both splits as they will be run, and how.
  struct Planned {
    checkup::Given test, train;
    checkup::CheckupOptions how;
  };
  Planned plan(Case& about) {
    Planned planned;
    const int64_t whole = about.data->size();
    about.judged.subject.data = plan_pass(common_, options_, about, 2).data;
    planned.test = {&about.judged.subject, whole};
    if (train_) {
      CaseOptions all = options_;
      all.limit = 0;  // --limit is about tests
      const int64_t size = train_->data->size();
      train_->judged.subject.data = plan_pass(common_, all, *train_, 2).data;
      planned.train = {&train_->judged.subject, size};
    }
    checkup::CheckupOptions& how = planned.how;
    how.seconds = seconds_of(options_.budget), how.seed = common_.seed, how.pass = pass_options(common_);
    how.words = view_.words, how.model_words = about.judged.subject.model_name;
    how.data_words = dataset::spec_text(about.spec);
    how.train_words = train_ ? dataset::spec_text(train_->spec) : "";
    return planned;
  }

  void take(const checkup::Found& found) {
    view_.findings.insert(view_.findings.end(), found.findings.begin(), found.findings.end());
    view_.passed.insert(view_.passed.end(), found.passed.begin(), found.passed.end());
    view_.skipped.insert(view_.skipped.end(), found.skipped.begin(), found.skipped.end());
  }

  checkup::Checkup examine_all(Case& about) {
    Planned planned = plan(about);
    checkup::Checkup checkup = checkup::check_up(planned.test, planned.train, about.judged.settings, planned.how);
    take(checkup.found);
    interrupted_ = checkup.interrupted;
    return checkup;
  }

  static std::string tests_line(const checkup::Checkup& checkup) {
    if (!checkup.tests) return "";
    std::vector<std::string> parts;
    const auto& tests = *checkup.tests;
    if (tests.highs_judged && !tests.low_units.empty())
      parts.push_back(fmt::format("{} of {} units are never driven as high as in training", tests.low_units.size(),
                                  with_commas(checkup.context->space->units())));
    if (tests.core)
      parts.push_back(
          fmt::format("{} inputs add nothing new", with_commas(tests.inputs - int64_t(tests.core->kept.size()))));
    return join(parts, "; ");
  }

  void finish(const RunFolder& folder, Json more, const checkup::Preflight* preflight) {
    Json json = {{"verdict", view_.verdict}};
    json["metric"] = more["metric"];
    json["findings"] = findings_json(view_.findings);
    json["accepted"] = findings_json(view_.known.accepted);
    json["passed"] = Json::array();
    for (const checkup::Passed& one : view_.passed)
      json["passed"].push_back({{"what", one.what}, {"value", one.value}});
    json["skipped"] = skipped_json(view_.skipped);
    if (preflight) json["preflight"] = preflight_json(*preflight);
    for (const char* key : {"result", "times"})
      if (more.contains(key)) json[key] = more[key];
    json["run"] = folder.path();
    json["report"] = view_.report;
    write_file(folder.file("findings.json"), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
    if (common_.json) print_json(json);
  }

  const Common& common_;
  CheckOptions options_;
  CheckView view_;
  std::optional<Case> train_;
  Json compared_;  ///< for the report; null without a reference
  bool interrupted_ = false;
};

}  // namespace

int check(const Common& common, const CheckOptions& options) { return Check(common, options).run(); }

}  // namespace netmend::app
