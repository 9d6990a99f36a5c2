// netmend gate: pass or fail against the limits in netmend.toml. One line a criterion; gate.md for a merge request,
// gate.xml for a pipeline, gate.json for programs.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/shell.h"
#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "findings/finding.h"
#include "netmend/gate_limits.h"
#include "netmend/paired.h"
#include "netmend/show.h"
#include "netmend/target.h"
#include "observers/part_predictions.h"

namespace netmend::app {
namespace {

using observers::FlipCount;
using observers::PartPredictions;
using observers::PartState;
using observers::PredictionResult;
using stats::Estimate;

/// Errors about what a criterion names, said of its line instead of a flag.
template <typename Do>
auto at_line(const Criterion& criterion, const Do& act) {
  try {
    return act();
  } catch (const InputError& error) {
    std::string what = error.what();
    if (what.starts_with("--on ")) what = what.substr(what.find(": ") + 2);
    throw InputError(criterion.line + ": " + what, error.hint());
  }
}

NamedTarget target_of(const Criterion& criterion, const Case& about) {
  const std::string text = (criterion.kind == Criterion::kMetric ? "slice=" : "class=") + criterion.of;
  return at_line(criterion, [&] { return parse_target(text, about.judged.settings, *about.judged.subject.data); });
}

/// All that criteria look at.
struct Seen {
  PredictionResult whole;
  std::vector<PredictionResult> parts;  ///< one a criterion about a group, in their order
  std::optional<Compared> compared;
  double seconds = 0;
  bool interrupted = false;
};

bool is_about_group(const Criterion& criterion) {
  return criterion.kind == Criterion::kMetric && !criterion.of.empty();
}

Seen look(const Common& common, Case& about, const std::vector<Criterion>& criteria, const Reference* reference,
          bool by_id) {
  std::vector<std::unique_ptr<PartPredictions>> parts;
  std::vector<const stream::Observer*> also;
  for (const Criterion& criterion : criteria)
    if (is_about_group(criterion)) {
      parts.push_back(
          std::make_unique<PartPredictions>(about.judged.settings, target_of(criterion, about).target.may_fail));
      also.push_back(parts.back().get());
    }
  Seen seen;
  stream::PassResult alone;
  if (reference) {
    seen.compared.emplace(run_both(common, about, *reference, by_id, also));
    seen.whole = seen.compared->after;
  } else {
    observers::Predictions watch(about.judged.settings, false);
    std::vector<const stream::Observer*> all{&watch};
    all.insert(all.end(), also.begin(), also.end());
    alone = stream::run_pass(about.judged.subject, all, pass_options(common));
    seen.whole =
        observers::finish(watch, dynamic_cast<const observers::PredictionState&>(*alone.collected[0].fold(watch)));
  }
  const stream::PassResult& pass = reference ? seen.compared->pass : alone;
  for (size_t i = 0; i < parts.size(); ++i) {
    auto state = pass.collected[pass.collected.size() - parts.size() + i].fold(*parts[i]);
    seen.parts.push_back(observers::finish(parts[i]->whole(), dynamic_cast<const PartState&>(*state).judged));
  }
  seen.seconds = pass.seconds;
  seen.interrupted = pass.interrupted;
  return seen;
}

Estimate metric_of(const Criterion& criterion, const PredictionResult& result) {
  std::vector<std::string> there;
  for (const observers::Metric& metric : result.metrics) {
    if (metric.name == criterion.metric) return metric.estimate;
    there.push_back(metric.name);
  }
  throw InputError(fmt::format("{}: {} cannot be taken of this model's answers", criterion.line, criterion.metric),
                   "There are " + join(there, ", ") + ".");
}

/// The difference of figures that were estimated apart.
Estimate difference(const Estimate& a, const Estimate& b) {
  double value = a.value - b.value;
  return {value, value - std::hypot(a.value - a.low, b.high - b.value),
          value + std::hypot(a.high - a.value, b.value - b.low)};
}

Estimate in_points(const Estimate& change) { return {-100 * change.value, -100 * change.high, -100 * change.low}; }

const Estimate& find_metric(const PredictionResult& result, const std::string& name) {
  for (const observers::Metric& metric : result.metrics)
    if (metric.name == name) return metric.estimate;
  throw std::logic_error("the metric that counts is always taken");
}

/// `metric` is the one that the user's goal names.
Ruling judge_overall(Criterion criterion, const std::string& metric, const Reference& reference,
                     const Compared& compared, bool strict) {
  criterion.metric = metric;
  const FlipCount& whole = compared.flips.whole();
  if (metric == "accuracy") return decide(criterion, in_points(whole.change()), whole.samples, strict);
  if (metric == "mae") return decide(criterion, compared.flips.error_change(), whole.samples, strict, "of mae");
  if (reference.baseline && reference.baseline->metric != metric)
    fail("{}: {} was judged by {}, this model is judged by {}", criterion.line, reference.name,
         reference.baseline->metric, metric);
  Estimate before = reference.baseline ? reference.baseline->value : find_metric(compared.before, metric);
  Estimate rise = difference(find_metric(compared.after, metric), before);
  return decide(criterion, observers::is_error(metric) ? rise : in_points(rise), whole.samples, strict, "of " + metric);
}

Ruling judge_classes(const Criterion& criterion, const Case& about, const Compared& compared, bool strict) {
  const auto& classes = compared.flips.per_class();
  if (classes.empty())
    throw InputError(criterion.line + ": the model's answers are not one class an input", "Leave class_drop out.");
  // With --strict the class whose interval reaches farthest decides.
  size_t worst = 0;
  auto drop = [&](size_t c) -> double {
    if (classes[c].samples == 0) return -INFINITY;
    Estimate points = in_points(classes[c].change());
    return strict ? points.high : points.value;
  };
  for (size_t c = 1; c < classes.size(); ++c)
    if (drop(c) > drop(worst)) worst = c;
  return decide(criterion, in_points(classes[worst].change()), classes[worst].samples, strict,
                fmt::format("worst class {}: {} fixed, {} broken", about.judged.settings.classes[worst],
                            classes[worst].fixed, classes[worst].broken));
}

Ruling judge_class(const Criterion& criterion, const Case& about, const PredictionResult& result, bool strict) {
  auto label = size_t(target_of(criterion, about).target.label);
  const observers::ClassResult& found = result.per_class[label];
  const bool recall = criterion.kind == Criterion::kRecall;
  int64_t inputs = recall ? found.samples : found.predicted;
  if (inputs == 0)
    throw InputError(fmt::format("{}: no input {} {}", criterion.line, recall ? "has the class" : "is called",
                                 printable(found.name)),
                     "The limit cannot be judged on this data; leave it out or give other data.");
  return decide(criterion, stats::rate(found.correct, inputs), inputs, strict);
}

/// Judged apart, on all of the data: a sample might not hold them.
Ruling judge_must_pass(const Common& common, const Criterion& criterion, const Case& about) {
  auto names = at_line(criterion, [&] { return read_names(criterion.limit); });
  std::vector<int64_t> members;
  std::unordered_set<std::string> missing = names;
  for (int64_t sample = 0; sample < about.data->size(); ++sample) {
    std::string id = about.data->id(sample);
    if (names.count(id)) members.push_back(sample), missing.erase(id);
  }
  if (!missing.empty())
    throw InputError(fmt::format("{}: {} of {} inputs that {} names are not in {}, for example `{}`", criterion.line,
                                 missing.size(), names.size(), criterion.limit, about.data->info().spec,
                                 printable(*std::min_element(missing.begin(), missing.end()))),
                     "The table samples.csv of netmend eval has the names in its column id.");
  Ruling ruling{criterion, {}, int64_t(members.size())};
  stream::Subject subject = about.judged.subject;
  subject.data = dataset::subset(about.data, members);
  observers::Predictions watch(about.judged.settings, true);
  stream::PassOptions how = pass_options(common);
  how.quiet = true;
  stream::PassResult pass = stream::run_pass(subject, {&watch}, how);
  auto state = pass.collected[0].fold(watch);
  std::vector<std::string> wrong;
  for (const auto& row : dynamic_cast<const observers::PredictionState&>(*state).rows)
    if (row.right != observers::SampleRow::kRight) wrong.push_back(subject.data->id(row.sample));
  ruling.figure.value = ruling.figure.low = ruling.figure.high = double(wrong.size());
  ruling.pass = wrong.empty();
  if (!wrong.empty()) {
    size_t count = wrong.size();
    wrong.resize(std::min<size_t>(count, 5));
    ruling.about = "wrong: " + join(wrong, ", ") + (count > 5 ? " …" : "");
  }
  return ruling;
}

std::vector<Ruling> judge_all(const Common& common, const GateOptions& options, const Case& about,
                              const std::vector<Criterion>& criteria, const std::string& metric,
                              const Reference* reference, const Seen& seen) {
  std::vector<Ruling> rulings;
  size_t part = 0;
  for (const Criterion& criterion : criteria) {
    const PredictionResult& result = is_about_group(criterion) ? seen.parts[part++] : seen.whole;
    switch (criterion.kind) {
      case Criterion::kMetric: {
        Estimate figure = metric_of(criterion, result);
        if (!std::isfinite(figure.value))
          throw InputError(criterion.line + ": there is nothing to take it from in this data",
                           "The limit cannot be judged; leave it out or give other data.");
        rulings.push_back(decide(criterion, figure, result.samples, options.strict));
        break;
      }
      case Criterion::kRecall:
      case Criterion::kPrecision:
        rulings.push_back(judge_class(criterion, about, result, options.strict));
        break;
      case Criterion::kOverallDrop:
        rulings.push_back(judge_overall(criterion, metric, *reference, *seen.compared, options.strict));
        break;
      case Criterion::kClassDrop:
        rulings.push_back(judge_classes(criterion, about, *seen.compared, options.strict));
        break;
      case Criterion::kMustPass:
        rulings.push_back(judge_must_pass(common, criterion, about));
        break;
    }
  }
  return rulings;
}

Json ruling_json(const Ruling& ruling) {
  Json json = {{"criterion", ruling.criterion.name},
               {"limit", ruling.criterion.limit},
               {"verdict", ruling.pass ? "pass" : "fail"},
               {"unclear", ruling.unclear}};
  json.update(estimate_json(ruling.figure));
  json["inputs"] = ruling.inputs;
  json["more_inputs"] = ruling.unclear && ruling.more > 0 ? Json(ruling.more) : Json(nullptr);
  json["about"] = ruling.about;
  return json;
}

void print_rulings(const std::vector<Ruling>& rulings) {
  size_t name = 9, value = 5;
  for (const Ruling& ruling : rulings) {
    name = std::max(name, printable(ruling.criterion.name).size());
    value = std::max(value, figure_words(ruling).size());
  }
  for (const Ruling& ruling : rulings) {
    std::string notes;
    for (const std::string& note : {ruling.about, doubt_words(ruling)})
      if (!note.empty()) notes += "   " + printable(note);
    std::string limit =
        ruling.criterion.kind == Criterion::kMustPass ? ruling.criterion.limit : "limit " + ruling.criterion.limit;
    fmt::print("  {}  {:<{}}  {:<{}}  {}{}\n", ruling.pass ? "pass" : "FAIL", printable(ruling.criterion.name), name,
               figure_words(ruling), value, printable(limit), notes);
  }
}

/// Where to look first when it fails.
std::string next_of(const std::vector<Ruling>& rulings, const Case& about, const GateOptions& options) {
  for (const Ruling& ruling : rulings) {
    if (ruling.pass) continue;
    const Criterion& criterion = ruling.criterion;
    std::string command = next_command("failures", about.judged.subject.model_name, options);
    if (criterion.kind == Criterion::kRecall) command += " --on " + shell_word("class=" + criterion.of);
    if (is_about_group(criterion)) command += " --on " + shell_word("slice=" + criterion.of);
    if (criterion.kind == Criterion::kMustPass) command += " --on " + shell_word("inputs=" + criterion.limit);
    if (criterion.kind == Criterion::kOverallDrop || criterion.kind == Criterion::kClassDrop)
      command = next_command("compare " + options.against, about.judged.subject.model_name, options);
    return command;
  }
  return "";
}

}  // namespace

int gate(const Common& common, const GateOptions& options) {
  read_gate(read_config(common.config, options.model));  // a slip of the finger shows before the work
  Case about = open_case(common, options);
  std::vector<Criterion> criteria = read_gate(about.config);
  const std::string metric = about.judged.settings.metric;
  if (about.judged.settings.task == observers::Task::kNone)
    throw InputError(fmt::format("{} has no labels: nothing can be judged", about.data->info().spec),
                     "Give data with labels.");
  for (const Criterion& criterion : criteria) {
    if (options.against.empty() &&
        (criterion.kind == Criterion::kOverallDrop || criterion.kind == Criterion::kClassDrop))
      throw InputError(criterion.line + " compares with an earlier model, and none is given",
                       "Add --against REFERENCE: a model, a run folder of netmend eval, or a baseline.json.");
    // The area is taken where it is asked for; the order of metrics does not matter here.
    const bool one_area = about.judged.settings.task == observers::Task::kClasses;
    if (criterion.metric == "auc" && one_area) about.judged.settings.metric = "auc";
    if (criterion.kind == Criterion::kRecall || criterion.kind == Criterion::kPrecision) target_of(criterion, about);
  }
  checkup::Preflight preflight = examine(common, options, about);
  if (!common.json) print_preflight(preflight, about.judged.settings.metric);
  if (preflight.blocker && !options.anyway) {
    if (common.json)
      print_json({{"pass", false},
                  {"criteria", Json::array()},
                  {"preflight", preflight_json(preflight)},
                  {"findings", Json::array({blocker_json(*preflight.blocker, "netmend gate")})}});
    return 1;
  }
  std::optional<Reference> reference;
  if (!options.against.empty()) reference.emplace(open_reference(common, options, about, options.against));
  if (!reference) about.judged.subject.data = plan_pass(common, options, about).data;
  RunFolder folder(common.out, "gate", common.arguments);
  Seen seen = look(common, about, criteria, reference ? &*reference : nullptr, options.common_only);
  if (seen.interrupted) throw Interrupted();  // half a gate says nothing
  std::vector<Ruling> rulings =
      judge_all(common, options, about, criteria, metric, reference ? &*reference : nullptr, seen);
  auto failed = std::count_if(rulings.begin(), rulings.end(), [](const Ruling& ruling) { return !ruling.pass; });
  std::string title =
      fmt::format("{} on {}, {} inputs{}", about.judged.subject.model_name, about.data->info().spec,
                  with_commas(seen.whole.samples), options.against.empty() ? "" : ", against " + options.against);
  Json json = {{"pass", failed == 0},
               {"strict", options.strict},
               {"criteria", Json::array()},
               {"model", about.judged.subject.model_name},
               {"data", about.data->info().spec},
               {"reference", options.against},
               {"inputs", seen.whole.samples},
               {"preflight", preflight_json(preflight)},
               {"run", folder.path()},
               {"seconds", seen.seconds}};
  for (const Ruling& ruling : rulings) json["criteria"].push_back(ruling_json(ruling));
  write_file(folder.file("gate.json"), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  write_file(folder.file("gate.md"), gate_markdown(rulings, title));
  write_file(folder.file("gate.xml"), gate_junit(rulings, seen.seconds));
  folder.note_file(about.judged.subject.model_name);
  for (const std::string& file : about.data->info().files) folder.note_file(file);
  folder.note("data", about.data->info().spec);
  folder.finish(common.seed, seen.seconds, failed > 0);
  if (common.json) {
    print_json(json);
    return failed > 0;
  }
  fmt::print("{}\n", title);
  print_rulings(rulings);
  fmt::print("\n  {}{}\n",
             failed == 0 ? "passed" : fmt::format("not passed: {} of {} criteria fail", failed, rulings.size()),
             options.strict ? ", by the worse end of each interval" : "");
  if (failed > 0) fmt::print("  next      {}\n", next_of(rulings, about, options));
  fmt::print("  {0}/gate.md   {0}/gate.xml   {0}/gate.json\n", folder.path());
  return failed > 0;
}

}  // namespace netmend::app
