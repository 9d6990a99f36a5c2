// netmend slices: where a model is weak, as groups and as rules of at most two terms, and what other thresholds would
// do.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "census/census.h"
#include "netmend/show.h"
#include "observers/sample_table.h"
#include "slices/failing.h"
#include "slices/groups.h"
#include "slices/rules.h"
#include "stream/pass.h"

namespace netmend::app {
namespace {

using netmend::slices::Column;
using netmend::slices::Group;
using netmend::slices::Rate;
using netmend::slices::Slice;
using observers::SampleRow;

struct Seen {
  std::vector<SampleRow> rows;
  observers::PredictionResult result;
  std::vector<Column> columns;
  std::vector<double> failing;
  std::vector<Group> groups;
  netmend::slices::Weakness weak;
  double unit = 1;  ///< that turns failing of numbers back into errors
  double seconds = 0;
  bool interrupted = false;
};

/// `--groups a,b`: these columns are compared, wherever they come from, and no others.
void choose_groups(const std::string& wanted, std::vector<Column>& columns) {
  if (wanted.empty()) return;
  for (Column& column : columns) column.aside = false;
  for (const std::string& name : split(wanted, ',')) {
    std::vector<std::string> names;
    auto hit = std::find_if(columns.begin(), columns.end(), [&](Column& column) {
      names.push_back(column.name);
      return column.name == std::string(trim(name));
    });
    if (hit == columns.end())
      throw InputError(fmt::format("the data has no column `{}`{}", name, did_you_mean(name, names)),
                       names.empty() ? "Give columns with groups= in the data spec, or meta=FILE.csv."
                                     : "columns: " + join(names, ", ").substr(0, 300));
    if (!hit->is_words())
      throw InputError(fmt::format("{} is a number, groups are made of words", name),
                       "Rules over numbers are found without asking; see the weak slices below the groups.");
    hit->aside = true;
  }
}

Seen look(const Common& common, const SlicesOptions& options, Judged& judged) {
  observers::Predictions observer(judged.settings, true);
  census::Census census(*judged.subject.data);
  stream::PassResult pass = stream::run_pass(judged.subject, {&observer, &census}, pass_options(common));
  auto answers = pass.collected[0].fold(observer), counted = pass.collected[1].fold(census);
  Seen seen;
  auto& state = dynamic_cast<observers::PredictionState&>(*answers);
  const auto& taken = dynamic_cast<const census::CensusState&>(*counted);
  seen.result = observers::finish(observer, state);
  seen.rows = std::move(state.rows);
  seen.seconds = pass.seconds;
  seen.interrupted = pass.interrupted;
  std::vector<int64_t> inputs(seen.rows.size());
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = int64_t(i);
  seen.columns = netmend::slices::columns_of(*judged.subject.data, taken, inputs);
  choose_groups(options.groups, seen.columns);
  seen.failing = netmend::slices::failing_of(judged.settings, seen.rows);
  seen.unit = netmend::slices::error_unit(judged.settings, seen.rows);
  std::vector<uint8_t> half = netmend::slices::halves(taken.hashes, common.seed);
  std::vector<float> sureness;
  std::vector<double> classes;
  for (const SampleRow& row : seen.rows) sureness.push_back(row.confidence), classes.push_back(row.label);
  std::vector<double> expected;
  if (judged.settings.by_class()) expected = netmend::slices::expected_errors(sureness, classes, seen.failing, half);
  netmend::slices::Search how;
  how.most = size_t(options.top), how.least = options.least;
  seen.weak = netmend::slices::find_weak(seen.columns, seen.failing, half, expected, how);
  seen.groups =
      netmend::slices::compare_groups(seen.columns, seen.rows, seen.failing, judged.settings, {.least = options.least});
  return seen;
}

/// Shares of right answers for people; errors of numbers in their own units.
stats::Estimate shown(const stats::Estimate& failing, double unit, bool number) {
  if (number) return {failing.value * unit, failing.low * unit, failing.high * unit};
  return {1 - failing.value, 1 - failing.high, 1 - failing.low};
}

std::string metric_name(const observers::PredictionSettings& settings) {
  return settings.task == observers::Task::kNumber && settings.tolerance < 0 ? "mae" : "accuracy";
}

Json rate_json(const Rate& rate) {
  return {{"here", estimate_json(rate.here)},
          {"rest", estimate_json(rate.rest)},
          {"apart", estimate_json(rate.apart)},
          {"count", rate.count},
          {"p", rate.p}};
}

Json groups_json(const std::vector<Group>& groups) {
  Json list = Json::array();
  for (const Group& group : groups) {
    Json row = {{"group", group.name()},
                {"inputs", group.inputs},
                {"too_small", group.too_small},
                {"failing", rate_json(group.failing)}};
    if (group.selected) {
      row["selected"] = rate_json(*group.selected);
      row["true_positive_rate"] = rate_json(*group.found);
      row["false_positive_rate"] = rate_json(*group.wrongly_called);
    }
    list.push_back(std::move(row));
  }
  return list;
}

Json slices_json(const Seen& seen, const observers::PredictionSettings& settings) {
  const bool number = metric_name(settings) == "mae";
  Json list = Json::array();
  for (const Slice& slice : seen.weak.slices)
    list.push_back({{"slice", slice.name},
                    {"rule", slice.words},
                    {"inputs", slice.inputs},
                    {"judged_on", slice.judged_on},
                    {"here", estimate_json(shown(slice.here, seen.unit, number))},
                    {"rest", estimate_json(shown(slice.rest, seen.unit, number))},
                    {"behind", estimate_json(slice.behind)},
                    {"gain", slice.gain},
                    {"explained_by_confidence", slice.explained_by_confidence},
                    {"p", slice.p}});
  return list;
}

std::string rate_text(const stats::Estimate& rate) {
  if (std::isnan(rate.value)) return fmt::format("{:>20}", "–");
  return fmt::format("{:>6.1f} % ({:>4.1f}–{:>5.1f})", 100 * rate.value, 100 * rate.low, 100 * rate.high);
}

void print_groups_table(const Seen& seen, const observers::PredictionSettings& settings) {
  const bool number = metric_name(settings) == "mae";
  size_t width = 5, small = 0;
  for (const Group& group : seen.groups) width = std::max(width, std::min<size_t>(44, group.name().size()));
  const bool two = !seen.groups.empty() && seen.groups[0].selected.has_value();
  fmt::print("\n  {:<{}}  {:>7}   {:>20}", "group", width, "inputs", metric_name(settings));
  if (two) fmt::print("   {:>20}   {:>20}   {:>20}", "called positive", "found (true pos.)", "wrongly (false pos.)");
  fmt::print("\n");
  size_t printed = 0;
  for (const Group& group : seen.groups) {
    if (group.too_small) {
      ++small;
      continue;
    }
    if (++printed > 40) continue;
    stats::Estimate figure = shown(group.failing.here, seen.unit, number);
    fmt::print(
        "  {:<{}}  {:>7}   {}", printable(group.name()), width, with_commas(group.inputs),
        number ? fmt::format("{:>8.4g} ({:.4g}–{:.4g})", figure.value, figure.low, figure.high) : rate_text(figure));
    if (two)
      for (const Rate* rate : {&*group.selected, &*group.found, &*group.wrongly_called})
        fmt::print("  {}{}", rate->p < 0.05 ? "*" : " ", rate_text(rate->here));
    fmt::print("\n");
  }
  if (printed > 40) fmt::print("  … and {} more groups (--json has all)\n", printed - 40);
  if (two) fmt::print("  * differs from everybody else, corrected for the number of groups (p < 0.05)\n");
  if (small > 0) fmt::print("  {} too small to judge (--least)\n", counted(int64_t(small), "group"));
}

void print_slices(const Seen& seen, const observers::PredictionSettings& settings) {
  const bool number = metric_name(settings) == "mae";
  if (seen.weak.slices.empty()) {
    fmt::print(
        "\n  no weak slice: {} rules over {} columns and properties were compared, none holds on the other half\n",
        with_commas(seen.weak.rules), seen.columns.size());
    return;
  }
  size_t width = 10;
  for (const Slice& slice : seen.weak.slices) width = std::max(width, std::min<size_t>(48, slice.words.size()));
  fmt::print("\n  {:<{}}  {:>7}   {:>20}   {:>9}   {:>20}   {}\n", "weak slice", width, "inputs", metric_name(settings),
             "elsewhere", number ? "behind" : "points behind", "worth up to");
  for (const Slice& slice : seen.weak.slices) {
    stats::Estimate here = shown(slice.here, seen.unit, number), rest = shown(slice.rest, seen.unit, number);
    if (number)
      fmt::print("  {:<{}}  {:>7}   {:>8.4g} ({:.4g}–{:.4g})   {:>9.4g}   {:>20.4g}   {:.4g}\n", printable(slice.words),
                 width, with_commas(slice.inputs), here.value, here.low, here.high, rest.value,
                 slice.behind.value * seen.unit, slice.gain * seen.unit);
    else
      fmt::print("  {:<{}}  {:>7}   {}   {:>7.1f} %   {:>6.1f} ({:>4.1f}–{:>5.1f})   {:.2f} points{}\n",
                 printable(slice.words), width, with_commas(slice.inputs), rate_text(here), 100 * rest.value,
                 100 * slice.behind.value, 100 * slice.behind.low, 100 * slice.behind.high, 100 * slice.gain,
                 slice.explained_by_confidence > 0.7 ? "   (explained_by_confidence: less sure there, or hard classes)" : "");
  }
  fmt::print("  found on one half of the inputs, figures are of the other half\n");
}

/// What other thresholds of the positive class would do, overall and for each group of one column.
Json sweep(const Seen& seen, const observers::PredictionSettings& settings, bool print) {
  if (!settings.by_class() || settings.classes.size() != 2)
    throw InputError("--threshold sweep is for two classes",
                     "Leave it out, or set model.kind = \"binary\" in netmend.toml.");
  std::vector<std::pair<std::string, std::vector<size_t>>> sets{{"all", {}}};
  for (size_t i = 0; i < seen.rows.size(); ++i) sets[0].second.push_back(i);
  for (const Column& column : seen.columns) {
    if (!column.aside || !column.is_words()) continue;
    for (size_t code = 0; code < column.words.size() && sets.size() < 9; ++code) {
      std::vector<size_t> rows;
      for (size_t i = 0; i < seen.rows.size(); ++i)
        if (column.codes[i] == int32_t(code)) rows.push_back(i);
      if (rows.size() >= 50) sets.emplace_back(column.name + "=" + column.words[code], std::move(rows));
    }
  }
  if (print) {
    fmt::print("\n  threshold of {}{:<8}", printable(settings.classes[size_t(settings.positive)]), "");
    for (const auto& [name, rows] : sets) fmt::print("  {:>24}", printable(name).substr(0, 24));
    fmt::print("\n  {:<12} {:<12}", "", "accuracy");
    for (size_t i = 0; i < sets.size(); ++i) fmt::print("  {:>24}", "called / found / wrongly");
    fmt::print("\n");
  }
  Json list = Json::array();
  for (int step = 1; step < 20; ++step) {
    const double threshold = step / 20.0;
    Json row = {{"threshold", threshold}, {"groups", Json::array()}};
    std::vector<std::string> cells;
    for (const auto& [name, rows] : sets) {
      int64_t right = 0, called = 0, positives = 0, found = 0, wrongly = 0, judged = 0;
      for (size_t i : rows) {
        if (std::isnan(seen.failing[i])) continue;
        const bool truth = seen.rows[i].label == double(settings.positive),
                   yes = std::isfinite(seen.rows[i].predicted) &&
                         netmend::slices::positive_score(settings, seen.rows[i]) > threshold;
        ++judged, right += truth == yes, called += yes, positives += truth, found += truth && yes,
            wrongly += !truth && yes;
      }
      const stats::Estimate shares[] = {stats::rate(right, judged), stats::rate(called, judged),
                                        stats::rate(found, positives), stats::rate(wrongly, judged - positives)};
      row["groups"].push_back({{"group", name},
                               {"accuracy", estimate_json(shares[0])},
                               {"selected", estimate_json(shares[1])},
                               {"true_positive_rate", estimate_json(shares[2])},
                               {"false_positive_rate", estimate_json(shares[3])}});
      cells.push_back(fmt::format("{:>6.1f} / {:>6.1f} / {:>6.1f}", 100 * shares[1].value, 100 * shares[2].value,
                                  100 * shares[3].value));
      if (name == "all")
        row["accuracy"] = shares[0].value,
        cells.insert(cells.begin(), fmt::format("{:>6.2f} %", 100 * shares[0].value));
    }
    if (print) {
      fmt::print("  {:<12.2f} {:<12}", threshold, cells[0]);
      for (size_t i = 1; i < cells.size(); ++i) fmt::print("  {:>24}", cells[i]);
      fmt::print("{}\n", std::abs(threshold - settings.threshold) < 1e-9 ? "   now" : "");
    }
    list.push_back(std::move(row));
  }
  return list;
}

void write_tables(const RunFolder& folder, const Seen& seen, const observers::PredictionSettings& settings) {
  const bool number = metric_name(settings) == "mae";
  write_file(folder.file("slices.csv"), [&](std::ostream& out) {
    out << "slice,rule,inputs,judged_on,here,rest,behind,behind_low,behind_high,gain,explained_by_confidence,p\n";
    for (const Slice& slice : seen.weak.slices)
      out << fmt::format("{},{},{},{},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g}\n",
                         observers::csv_field(slice.name), observers::csv_field(slice.words), slice.inputs,
                         slice.judged_on, shown(slice.here, seen.unit, number).value,
                         shown(slice.rest, seen.unit, number).value, slice.behind.value, slice.behind.low,
                         slice.behind.high, slice.gain, slice.explained_by_confidence, slice.p);
  });
  write_file(folder.file("groups.csv"), [&](std::ostream& out) {
    out << "group,inputs,too_small,figure,low,high,selected,true_positive_rate,false_positive_rate\n";
    auto text = [](const std::optional<Rate>& rate) {
      return rate && !std::isnan(rate->here.value) ? fmt::format("{:.6g}", rate->here.value) : "";
    };
    for (const Group& group : seen.groups) {
      stats::Estimate figure = shown(group.failing.here, seen.unit, number);
      out << fmt::format("{},{},{},{:.6g},{:.6g},{:.6g},{},{},{}\n", observers::csv_field(group.name()), group.inputs,
                         int(group.too_small), figure.value, figure.low, figure.high, text(group.selected),
                         text(group.found), text(group.wrongly_called));
    }
  });
}

}  // namespace

int slices(const Common& common, const SlicesOptions& options) {
  Case about = open_case(common, options);
  Judged& judged = about.judged;
  if (judged.settings.task == observers::Task::kNone)
    throw InputError(fmt::format("{} has no labels: nothing is right or wrong", about.data->info().spec),
                     "Slices need labels.");
  checkup::Preflight preflight = examine(common, options, about);
  if (!common.json) print_preflight(preflight, judged.settings.metric);
  if (preflight.blocker && !options.anyway) {
    if (common.json)
      print_json({{"preflight", preflight_json(preflight)},
                  {"findings", Json::array({blocker_json(
                                   *preflight.blocker, next_command("slices", judged.subject.model_name, options))})}});
    return 1;
  }
  Plan plan = plan_pass(common, options, about);
  judged.subject.data = plan.data;
  Seen seen = look(common, options, judged);
  RunFolder folder(common.out, "slices", common.arguments);
  write_tables(folder, seen, judged.settings);
  folder.note_file(judged.subject.model_name);
  folder.note("data", plan.data->info().spec);
  if (!common.json) {
    fmt::print("{}  on {}, {} inputs\n", judged.subject.model_name, plan.data->info().spec,
               with_commas(seen.result.samples));
    if (!seen.result.metrics.empty())
      fmt::print("  {} {}\n", seen.result.metrics[0].name,
                 figure_text(seen.result.metrics[0].name, seen.result.metrics[0].estimate));
    if (seen.groups.empty())
      fmt::print("\n  no groups: groups= in the data spec or data.groups in netmend.toml keep columns aside\n");
    else
      print_groups_table(seen, judged.settings);
    print_slices(seen, judged.settings);
  }
  Json swept = options.threshold.empty() ? Json(nullptr) : sweep(seen, judged.settings, !common.json);
  std::string next = next_command("locate", judged.subject.model_name, options);
  Json json = {{"model", judged.subject.model_name},
               {"data", plan.data->info().spec},
               {"inputs", seen.result.samples},
               {"of", plan.whole},
               {"metric", metric_name(judged.settings)},
               {"groups", groups_json(seen.groups)},
               {"slices", slices_json(seen, judged.settings)},
               {"rules_compared", seen.weak.rules},
               {"rules_tried", seen.weak.tested},
               {"thresholds", swept},
               {"preflight", preflight_json(preflight)},
               {"next", Json::array({next})},
               {"seconds", seen.seconds},
               {"run", folder.path()}};
  write_file(folder.file("slices.json"), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  folder.finish(common.seed, seen.seconds, seen.interrupted ? 130 : 0);
  if (common.json)
    print_json(json);
  else
    fmt::print("\n  next  {}\n  tables: {}/slices.csv, groups.csv\n", next, folder.path());
  if (seen.interrupted)
    say(common, fmt::format("stopped: this is the result of the first {} inputs", with_commas(seen.result.samples)));
  return seen.interrupted ? 130 : 0;
}

}  // namespace netmend::app
