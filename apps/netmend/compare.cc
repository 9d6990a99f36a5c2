// netmend compare: two sets of answers to the same inputs; what got fixed, what got broken.
#include <ATen/ATen.h>

#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "netmend/paired.h"
#include "netmend/show.h"
#include "observers/sample_table.h"

namespace netmend::app {
namespace {

using observers::Change;
using observers::FlipCount;
using observers::Flips;
using observers::Verdict;

/// Points that the newer one may be worse: --margin, else the gate's overall_drop, else half a point.
double margin_of(const CompareOptions& options, const Config& config) {
  if (options.margin >= 0) return options.margin / 100;
  for (const auto& [criterion, limit] : config.gate) {
    double points = 0;
    std::string_view text = trim(limit);
    if (criterion != "overall_drop") continue;
    if (!text.starts_with("<=") || !parse_double(trim(text.substr(2)), points) || points < 0)
      fail("{}: gate.overall_drop should be a limit such as \"<= 0.5\"", config.path);
    return points / 100;
  }
  return 0.005;
}

std::string points_text(const stats::Estimate& change) {
  return fmt::format("{:+.2f} points ({:+.2f} to {:+.2f})", 100 * change.value, 100 * change.low, 100 * change.high);
}

Json count_json(const FlipCount& count) {
  return {{"samples", count.samples},
          {"before", count.right_before},
          {"after", count.right_after},
          {"fixed", count.fixed},
          {"broken", count.broken},
          {"net", count.net()},
          {"change", estimate_json(count.change())},
          {"p", stats::sign_test(count.fixed, count.broken)}};
}

Json compare_json(const Case& about, const Compared& done, double margin) {
  const FlipCount& whole = done.flips.whole();
  const bool number = about.judged.settings.task == observers::Task::kNumber;
  Json json = {{"inputs", whole.samples},
               {"fixed", whole.fixed},
               {"broken", whole.broken},
               {"net", whole.net()},
               {"change", estimate_json(number ? done.flips.error_change() : whole.change())},
               {"p", stats::sign_test(whole.fixed, whole.broken)},
               {"margin", margin},
               {"verdict", number ? "" : observers::verdict_words(observers::judge_change(whole.change(), margin))},
               {"metric", about.judged.settings.metric},
               {"missing", done.missing}};
  auto metrics = [](const observers::PredictionResult& result) {
    Json all = Json::object();
    for (const observers::Metric& metric : result.metrics) all[metric.name] = estimate_json(metric.estimate);
    return all;
  };
  json["before"] = metrics(done.before);
  json["after"] = metrics(done.after);
  json["per_class"] = Json::array();
  for (size_t c = 0; c < done.flips.per_class().size(); ++c) {
    json["per_class"].push_back(count_json(done.flips.per_class()[c]));
    json["per_class"].back()["class"] = about.judged.settings.classes[c];
  }
  json["groups"] = Json::array();
  for (const Flips::Group& group : done.flips.groups()) {
    json["groups"].push_back(count_json(group.count));
    json["groups"].back()["column"] = group.column;
    json["groups"].back()["value"] = group.value;
  }
  json["fingerprint"] = done.newer.fingerprint;
  json["seconds"] = done.pass.seconds;
  return json;
}

void print_counts(const std::string& title, const std::vector<std::pair<std::string, FlipCount>>& rows) {
  if (rows.empty()) return;
  size_t width = title.size();
  for (const auto& [name, count] : rows) width = std::max(width, name.size());
  width = std::min<size_t>(width, 32);
  fmt::print("\n  {:<{}}  inputs   before    after   fixed  broken  change\n", title, width);
  size_t shown = 0;
  for (const auto& [name, count] : rows) {
    if (count.samples == 0 || ++shown > 20) continue;
    stats::Estimate change = count.change();
    const char* mark = change.high < 0 ? "  worse" : change.low > 0 ? "  better" : "";
    fmt::print("  {:<{}}  {:>6}  {:>5.1f} %  {:>5.1f} %  {:>6}  {:>6}  {:+.2f} ({:+.2f} to {:+.2f}){}\n",
               printable(name), width, count.samples, 100.0 * double(count.right_before) / double(count.samples),
               100.0 * double(count.right_after) / double(count.samples), count.fixed, count.broken, 100 * change.value,
               100 * change.low, 100 * change.high, mark);
  }
  if (shown > 20) fmt::print("  … and {} more (--json has all)\n", shown - 20);
}

void print_compare(const CompareOptions& options, const Case& about, const Compared& done, const Baseline* baseline,
                   double margin) {
  const FlipCount& whole = done.flips.whole();
  const std::string& metric = about.judged.settings.metric;
  fmt::print("{} → {}  on {}, {} inputs\n", options.reference, about.judged.subject.model_name, about.data->info().spec,
             with_commas(whole.samples));
  std::string then = baseline                      ? figure_text(metric, baseline->value)
                     : done.before.metrics.empty() ? "–"
                                                   : figure_text(metric, done.before.metrics[0].estimate);
  fmt::print("  {} {} → {}\n", metric, then,
             done.after.metrics.empty() ? "–" : figure_text(metric, done.after.metrics[0].estimate));
  if (about.judged.settings.task == observers::Task::kNumber && about.judged.settings.tolerance < 0) {
    stats::Estimate change = done.flips.error_change();
    fmt::print("  {} closer, {} farther; mean error {:+.4g} ({:+.4g} to {:+.4g})\n", whole.fixed, whole.broken,
               change.value, change.low, change.high);
  } else {
    fmt::print("  {} fixed, {} broken, net {:+}: {}, p = {:.2g}\n", whole.fixed, whole.broken, whole.net(),
               points_text(whole.change()), stats::sign_test(whole.fixed, whole.broken));
    Verdict verdict = observers::judge_change(whole.change(), margin);
    fmt::print("  {} by the margin of {:.2g} points\n",
               verdict == Verdict::kBetter     ? "better, and so not worse"
               : verdict == Verdict::kNotWorse ? "not worse"
               : verdict == Verdict::kWorse    ? "worse"
                                               : "unclear: more inputs are needed to tell",
               100 * margin);
  }
  std::vector<std::string> worse;
  for (size_t c = 0; c < done.flips.per_class().size(); ++c)
    if (stats::Estimate change = done.flips.per_class()[c].change(); change.high < 0)
      worse.push_back(fmt::format("{} ({:+.1f})", about.judged.settings.classes[c], 100 * change.value));
  if (!worse.empty()) fmt::print("  clearly worse on {}\n", join(worse, ", "));
  std::vector<std::pair<std::string, FlipCount>> rows;
  for (size_t c = 0; c < done.flips.per_class().size(); ++c)
    rows.emplace_back(about.judged.settings.classes[c], done.flips.per_class()[c]);
  if (rows.size() > 20)
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.second.net() < b.second.net(); });
  print_counts("class", rows);
  rows.clear();
  for (const Flips::Group& group : done.flips.groups())
    rows.emplace_back(group.column + "=" + (group.value.empty() ? "(missing)" : group.value), group.count);
  print_counts("group", rows);
  if (done.missing > 0)
    fmt::print("\n  {} inputs that {} does not know were left out\n", with_commas(done.missing), options.reference);
}

void write_flips(const std::string& path, const Case& about, const Compared& done) {
  const auto& settings = about.judged.settings;
  const dataset::Dataset& data = *about.judged.subject.data;
  auto name = [&](double answer) {
    if (std::isnan(answer)) return std::string();
    if (settings.by_class()) return settings.classes[size_t(answer)];
    return fmt::format("{:.9g}", answer);
  };
  write_file(path, [&](std::ostream& out) {
    out << "sample,id,change,label,before,after,confidence\n";
    for (const Flipped& row : done.list)
      out << fmt::format("{},{},{},{},{},{},{:.6g}\n", row.sample, observers::csv_field(data.id(row.sample)),
                         row.change == Change::kFixed ? "fixed" : "broken", observers::csv_field(name(row.label)),
                         observers::csv_field(name(row.before)), observers::csv_field(name(row.after)), row.confidence);
  });
}

}  // namespace

int compare(const Common& common, const CompareOptions& options) {
  Case about = open_case(common, options);
  if (about.judged.settings.task == observers::Task::kNone)
    throw InputError(fmt::format("{} has no labels: nothing can be fixed or broken", about.data->info().spec),
                     "Give data with labels, or compare outputs with netmend lab run.");
  if (!options.product.empty()) require_writable(options.product);
  checkup::Preflight preflight = examine(common, options, about);
  if (!common.json) print_preflight(preflight, about.judged.settings.metric);
  if (preflight.blocker && !options.anyway) {
    if (common.json)
      print_json({{"preflight", preflight_json(preflight)},
                  {"findings", Json::array({blocker_json(*preflight.blocker, "netmend compare")})}});
    return 1;
  }
  Reference reference = open_reference(common, options, about, options.reference);
  RunFolder folder(common.out, "compare", common.arguments);
  Compared done = run_both(common, about, reference, options.common_only);
  const double margin = margin_of(options, about.config);
  write_flips(folder.file("flips.csv"), about, done);
  if (!options.product.empty()) write_baseline(options.product, done.newer, about.judged.settings);
  Json json = compare_json(about, done, margin);
  json["reference"] = options.reference;
  json["model"] = about.judged.subject.model_name;
  json["preflight"] = preflight_json(preflight);
  json["run"] = folder.path();
  write_file(folder.file("compare.json"), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  for (const std::string& file : {options.reference, about.judged.subject.model_name}) folder.note_file(file);
  for (const std::string& file : about.data->info().files) folder.note_file(file);
  folder.note("data", about.data->info().spec);
  folder.finish(common.seed, done.pass.seconds, done.pass.interrupted ? 130 : 0);
  if (common.json)
    print_json(json);
  else {
    print_compare(options, about, done, reference.baseline ? &*reference.baseline : nullptr, margin);
    fmt::print("\n  every input that changed: {}/flips.csv{}\n", folder.path(),
               options.product.empty() ? "" : "   baseline: " + options.product);
  }
  if (done.pass.interrupted)
    say(common, fmt::format("stopped: this is the result of the first {} inputs", with_commas(done.pass.samples)));
  return done.pass.interrupted ? 130 : 0;
}

}  // namespace netmend::app
