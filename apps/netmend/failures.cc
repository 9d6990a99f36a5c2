// netmend failures: the table of wrong inputs under the user's names, to be filtered, sorted, grouped and exported;
// with
// --on labels the labels that look wrong themselves.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/shell.h"
#include "base/error.h"
#include "base/file.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "findings/finding.h"
#include "netmend/show.h"
#include "netmend/target.h"
#include "observers/top_predictions.h"
#include "observers/sample_table.h"
#include "selection/label_issues.h"

namespace netmend::app {
namespace {

using observers::TopPredictions;
using observers::TopRow;
using observers::TopState;
using observers::PredictionSettings;
using observers::PredictionState;
using observers::SampleRow;
using selection::LabelIssue;

struct Failure {
  SampleRow row;
  TopRow likely;  ///< where answers are classes
};

struct Found {
  std::vector<Failure> failures;  ///< of the target
  std::vector<TopRow> rows;    ///< of all inputs, for labels
  int64_t inputs = 0, wrong = 0;
  double seconds = 0;
  bool interrupted = false;
};

const std::vector<std::string> kSorts = {"loss", "confidence", "margin"};

void check_flags(const FailuresOptions& options) {
  if (std::find(kSorts.begin(), kSorts.end(), options.sort) == kSorts.end())
    throw InputError(
        fmt::format("--sort {}: not understood{}", printable(options.sort), did_you_mean(options.sort, kSorts)),
        "There are loss, confidence and margin; the largest comes first.");
  if (!options.product.empty()) require_writable(options.product);
}

void require_failures(const FailuresOptions& options, const Case& about) {
  const PredictionSettings& settings = about.judged.settings;
  const std::string& spec = about.data->info().spec;
  if (settings.task == observers::Task::kNone)
    throw InputError(fmt::format("{} has no labels: nothing is wrong or right", spec),
                     "netmend next shows which inputs to label first.");
  if (settings.task == observers::Task::kNumber && settings.tolerance < 0)
    throw InputError(fmt::format("the answers to {} are numbers, which are neither right nor wrong", spec),
                     "goal.tolerance in netmend.toml says how near is near enough.");
  if (!settings.by_class() && (options.on == "labels" || options.sort == "margin"))
    throw InputError(fmt::format("{} needs answers that are classes; the model gives {}",
                                 options.on == "labels" ? "--on labels" : "--sort margin",
                                 observers::task_name(settings.task)));
  const auto& columns = about.data->info().groups;
  if (options.group.empty() || std::find(columns.begin(), columns.end(), options.group) != columns.end()) return;
  if ((options.group == "pair" || options.group == "class") && settings.by_class()) return;
  std::vector<std::string> names = columns;
  if (settings.by_class()) names.insert(names.end(), {"pair", "class"});
  throw InputError(
      fmt::format("--group {}: not understood{}", printable(options.group), did_you_mean(options.group, names)),
      names.empty() ? "data.groups in netmend.toml names columns to group by."
                    : "There are " + join(names, ", ") + ".");
}

Found find_failures(const Common& common, const Case& about, const NamedTarget& target, bool labels) {
  const PredictionSettings& settings = about.judged.settings;
  observers::Predictions watch(settings, true);
  TopPredictions likely(settings);
  std::vector<const stream::Observer*> observers{&watch};
  if (settings.by_class()) observers.push_back(&likely);
  Found found;
  stream::PassOptions how = pass_options(common);
  how.on_chunk = [&](std::vector<std::unique_ptr<stream::State>>& chunk) {
    auto& rows = dynamic_cast<PredictionState&>(*chunk[0]).rows;
    auto* answers = settings.by_class() ? &dynamic_cast<TopState&>(*chunk[1]).rows : nullptr;
    for (size_t i = 0; i < rows.size(); ++i) {
      found.wrong += rows[i].right == SampleRow::kWrong;
      if (!labels && target.target.side(rows[i]) == observers::Side::kFailing)
        found.failures.push_back({rows[i], answers ? (*answers)[i] : TopRow{}});
    }
    if (labels) found.rows.insert(found.rows.end(), answers->begin(), answers->end());
    rows.clear();
    if (answers) answers->clear();
  };
  stream::PassResult pass = stream::run_pass(about.judged.subject, observers, how);
  found.inputs = pass.samples;
  found.seconds = pass.seconds;
  found.interrupted = pass.interrupted;
  return found;
}

/// Failures that netmend.toml calls known: counted apart, never hidden.
int64_t count_accepted(const Config& config, const std::vector<Failure>& failures, const dataset::Dataset& data) {
  std::unordered_set<std::string> known;
  for (const AcceptedInputs& accepted : config.accepted_inputs)
    if (accepted.until.empty() || accepted.until >= findings::today()) known.merge(read_names(accepted.file));
  if (known.empty()) return 0;
  return std::count_if(failures.begin(), failures.end(),
                       [&](const Failure& f) { return known.count(data.id(f.row.sample)) > 0; });
}

/// The worst first: no number at all, then the largest.
void sort_failures(std::vector<Failure>& failures, const std::string& by) {
  auto key = [&](const Failure& f) {
    double value = by == "loss" ? f.row.loss : by == "confidence" ? f.row.confidence : double(f.top.margin());
    return std::isnan(f.row.predicted) || std::isnan(value) ? INFINITY : value;
  };
  std::stable_sort(failures.begin(), failures.end(),
                   [&](const Failure& a, const Failure& b) { return key(a) > key(b); });
}

std::string name_of(const PredictionSettings& settings, double answer) {
  if (std::isnan(answer)) return "";
  if (settings.by_class()) return settings.classes[size_t(answer)];
  return fmt::format("{:.6g}", answer);
}

std::string class_at(const PredictionSettings& settings, int32_t c) { return c < 0 ? "" : settings.classes[size_t(c)]; }

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

/// What a person reads of an input: its sentence or row; "" for pictures.
std::string text_of(const dataset::Dataset& data, int64_t sample) {
  const dataset::Display shown = data.display(sample);
  return shown.kind == dataset::Display::kText ? shown.text : "";
}
/// Whether there is anything to read.
bool has_texts(const std::vector<Failure>& failures, const dataset::Dataset& data) {
  return !failures.empty() && !text_of(data, failures[0].row.sample).empty();
}

Json failure_json(const Failure& f, const PredictionSettings& settings, const dataset::Dataset& data) {
  Json json = {{"sample", f.row.sample},
               {"id", data.id(f.row.sample)},
               {"label", name_of(settings, f.row.label)},
               {"answer", name_of(settings, f.row.predicted)},
               {"confidence", number(f.row.confidence)},
               {"loss", number(f.row.loss)}};
  if (settings.by_class()) {
    json["second"] = class_at(settings, f.top.classes[1]);
    json["second_confidence"] = number(f.top.probabilities[1]);
    json["margin"] = number(f.top.margin());
  }
  if (std::string text = text_of(data, f.row.sample); !text.empty()) json["text"] = text;
  const auto& columns = data.info().groups;
  if (columns.empty()) return json;
  json["groups"] = Json::object();
  std::vector<std::string> values = data.groups(f.row.sample);
  for (size_t c = 0; c < columns.size(); ++c) json["groups"][columns[c]] = values.at(c);
  return json;
}

void write_failures(const std::string& path, const std::vector<Failure>& failures, const PredictionSettings& settings,
                    const dataset::Dataset& data) {
  using observers::csv_field;
  auto text = [](double value) { return std::isfinite(value) ? fmt::format("{:.6g}", value) : std::string(); };
  const bool texts = has_texts(failures, data);
  write_file(path, [&](std::ostream& out) {
    out << "sample,id,label,answer,confidence,loss" << (settings.by_class() ? ",second,second_confidence,margin" : "");
    for (const std::string& column : data.info().groups) out << "," << csv_field(column);
    out << (texts ? ",text\n" : "\n");
    for (const Failure& f : failures) {
      out << f.row.sample << "," << csv_field(data.id(f.row.sample)) << "," << csv_field(name_of(settings, f.row.label))
          << "," << csv_field(name_of(settings, f.row.predicted)) << "," << text(f.row.confidence) << ","
          << text(f.row.loss);
      if (settings.by_class())
        out << "," << csv_field(class_at(settings, f.top.classes[1])) << "," << text(f.top.probabilities[1]) << ","
            << text(f.top.margin());
      for (const std::string& value : data.groups(f.row.sample)) out << "," << csv_field(value);
      if (texts) out << "," << csv_field(text_of(data, f.row.sample));
      out << "\n";
    }
  });
}

/// The beginning of a text, as far as a line has room.
std::string beginning(const std::string& whole, size_t width) {
  std::string text = printable(whole);
  if (text.size() <= width) return text;
  size_t end = width;
  while (end > 0 && (uint8_t(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

/// Cut to a width that a line has room for.
std::string short_name(const std::string& name, size_t width) {
  std::string text = printable(name);
  if (text.size() <= width) return text;
  // The end of a path tells more than its beginning; not in the middle of a character.
  size_t at = text.size() - width + 3;
  while (at < text.size() && (uint8_t(text[at]) & 0xC0) == 0x80) ++at;
  return "…" + text.substr(at);
}

/// Columns as wide as they must be.
void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  auto columns = [](const std::string& text) {
    return size_t(std::count_if(text.begin(), text.end(), [](char c) { return (uint8_t(c) & 0xC0) != 0x80; }));
  };
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], columns(row[c]));
  }
  for (const auto& row : rows) {
    std::string line = " ";
    for (size_t c = 0; c < row.size(); ++c) line += " " + row[c] + std::string(widths[c] - columns(row[c]) + 1, ' ');
    line.resize(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }
}

std::string percent(double share) { return std::isfinite(share) ? fmt::format("{:.1f} %", 100 * share) : "–"; }

void print_failures(const std::vector<Failure>& failures, int64_t top, const PredictionSettings& settings,
                    const dataset::Dataset& data) {
  std::vector<std::vector<std::string>> table{{"id", "label", "answer", "sure"}};
  if (settings.by_class()) table[0].push_back("second");
  table[0].push_back("loss");
  for (const std::string& column : data.info().groups) table[0].push_back(short_name(column, 16));
  const bool texts = has_texts(failures, data);
  if (texts) table[0].push_back("text");
  for (size_t i = 0; i < std::min(failures.size(), size_t(top)); ++i) {
    const Failure& f = failures[i];
    std::string answer =
        std::isnan(f.row.predicted) ? "(no number)" : short_name(name_of(settings, f.row.predicted), 20);
    table.push_back({short_name(data.id(f.row.sample), 36), short_name(name_of(settings, f.row.label), 20), answer,
                     percent(f.row.confidence)});
    if (settings.by_class())
      table.back().push_back(f.top.classes[1] < 0 ? ""
                                                     : short_name(class_at(settings, f.top.classes[1]), 20) + " " +
                                                           percent(f.top.probabilities[1]));
    table.back().push_back(std::isfinite(f.row.loss) ? fmt::format("{:.3g}", f.row.loss) : "–");
    for (const std::string& value : data.groups(f.row.sample)) table.back().push_back(short_name(value, 16));
    if (texts) table.back().push_back(beginning(text_of(data, f.row.sample), 60));
  }
  print_table(table);
  if (failures.size() > size_t(top)) fmt::print("  … and {} more\n", with_commas(int64_t(failures.size()) - top));
}

struct Group {
  std::string name, aim;  ///< `aim`: what --on would take
  int64_t count = 0;
  std::vector<int64_t> first;  ///< some of them, worst first
};

std::vector<Group> group_failures(const std::vector<Failure>& failures, const std::string& by,
                                  const PredictionSettings& settings, const dataset::Dataset& data) {
  const auto& columns = data.info().groups;
  auto column = size_t(std::find(columns.begin(), columns.end(), by) - columns.begin());
  std::map<std::string, size_t> places;
  std::vector<Group> groups;
  for (const Failure& f : failures) {
    std::string label = name_of(settings, f.row.label), answer = name_of(settings, f.row.predicted), name, aim;
    if (column < columns.size()) {
      std::string value = data.groups(f.row.sample).at(column);
      name = by + "=" + value, aim = "slice=" + name;
    } else if (by == "pair") {
      name = label + " called " + (answer.empty() ? "nothing" : answer);
      aim = answer.empty() ? "class=" + label : "confusion=" + label + ":" + answer;
    } else {
      name = label, aim = "class=" + label;
    }
    auto [place, fresh] = places.emplace(name, groups.size());
    if (fresh) groups.push_back({name, aim});
    Group& group = groups[place->second];
    ++group.count;
    if (group.first.size() < 3) group.first.push_back(f.row.sample);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) { return a.count > b.count; });
  return groups;
}

void print_groups_of(const std::vector<Group>& groups, size_t all, int64_t top, const dataset::Dataset& data) {
  std::vector<std::vector<std::string>> table{{"failures", "share", "group", "worst"}};
  for (size_t i = 0; i < std::min(groups.size(), size_t(top)); ++i) {
    std::vector<std::string> ids;
    for (int64_t sample : groups[i].first) ids.push_back(short_name(data.id(sample), 24));
    table.push_back({with_commas(groups[i].count), percent(double(groups[i].count) / double(all)),
                     short_name(groups[i].name, 40), join(ids, "  ")});
  }
  print_table(table);
  if (groups.size() > size_t(top)) fmt::print("  … and {} more groups\n", groups.size() - size_t(top));
}

void write_relabel(const std::string& path, const std::vector<LabelIssue>& issues, const PredictionSettings& settings,
                   const dataset::Dataset& data) {
  using observers::csv_field;
  write_file(path, [&](std::ostream& out) {
    out << "sample,id,label,suggested,confidence,margin";
    for (const std::string& column : data.info().groups) out << "," << csv_field(column);
    out << "\n";
    for (const LabelIssue& issue : issues) {
      out << fmt::format("{},{},{},{},{:.6g},{:.6g}", issue.sample, csv_field(data.id(issue.sample)),
                         csv_field(class_at(settings, issue.given)), csv_field(class_at(settings, issue.top)),
                         issue.confidence, issue.margin);
      for (const std::string& value : data.groups(issue.sample)) out << "," << csv_field(value);
      out << "\n";
    }
  });
}

void print_issues(const std::vector<LabelIssue>& issues, int64_t top, const PredictionSettings& settings,
                  const dataset::Dataset& data) {
  std::vector<std::vector<std::string>> table{{"id", "label", "looks like", "sure", "label's share"}};
  for (size_t i = 0; i < std::min(issues.size(), size_t(top)); ++i)
    table.push_back({short_name(data.id(issues[i].sample), 36), short_name(class_at(settings, issues[i].given), 20),
                     short_name(class_at(settings, issues[i].top), 20), percent(issues[i].confidence),
                     fmt::format("{:.2g}", std::max(0.0, issues[i].margin + issues[i].confidence))});
  print_table(table);
  if (issues.size() > size_t(top)) fmt::print("  … and {} more\n", with_commas(int64_t(issues.size()) - top));
}

/// On its own training data a network has learned the wrong labels too.
bool looks_like_training(const Case& about) {
  if (about.spec.rest == "train") return true;
  return !about.config.train.empty() &&
         dataset::spec_text(dataset::parse_spec(about.config.train)) == dataset::spec_text(about.spec);
}

}  // namespace

int failures(const Common& common, const FailuresOptions& options) {
  check_flags(options);
  Case about = open_case(common, options);
  Judged& judged = about.judged;
  require_failures(options, about);
  const bool labels = options.on == "labels";
  NamedTarget target = parse_target(labels ? "" : options.on, judged.settings, *about.data);
  checkup::Preflight preflight = examine(common, options, about);
  if (!common.json) print_preflight(preflight, judged.settings.metric);
  if (preflight.blocker && !options.anyway) {
    if (common.json)
      print_json({{"preflight", preflight_json(preflight)},
                  {"findings", Json::array({blocker_json(*preflight.blocker, "netmend failures")})}});
    return 1;
  }
  Plan plan = plan_pass(common, options, about);
  judged.subject.data = plan.data;
  const dataset::Dataset& data = *plan.data;
  if (plan.data != about.data && !labels) target = parse_target(options.on, judged.settings, data);

  Found found = find_failures(common, about, target, labels);
  RunFolder folder(common.out, "failures", common.arguments);
  const std::string table = labels ? "relabel.csv" : "failures.csv";
  std::vector<LabelIssue> issues;
  std::vector<Group> groups;
  if (labels) issues = selection::label_issues(found.rows, int64_t(judged.settings.classes.size()));
  sort_failures(found.failures, options.sort);
  if (!options.group.empty() && !labels) groups = group_failures(found.failures, options.group, judged.settings, data);
  for (const std::string& path : {folder.file(table), options.product}) {
    if (path.empty()) continue;
    labels ? write_relabel(path, issues, judged.settings, data)
           : write_failures(path, found.failures, judged.settings, data);
  }
  const int64_t accepted = count_accepted(about.config, found.failures, data);
  Json json = {{"inputs", found.inputs}, {"of", plan.whole}, {"wrong", found.wrong}, {"on", options.on}};
  if (labels) {
    json["issues"] = issues.size();
    json["rows"] = Json::array();
    for (size_t i = 0; i < std::min(issues.size(), size_t(options.top)); ++i)
      json["rows"].push_back({{"sample", issues[i].sample},
                              {"id", data.id(issues[i].sample)},
                              {"label", class_at(judged.settings, issues[i].given)},
                              {"suggested", class_at(judged.settings, issues[i].top)},
                              {"confidence", issues[i].confidence},
                              {"margin", issues[i].margin}});
  } else {
    json["failures"] = found.failures.size();
    json["accepted"] = accepted;
    json["sort"] = options.sort;
    json["rows"] = Json::array();
    for (size_t i = 0; i < std::min(found.failures.size(), size_t(options.top)); ++i)
      json["rows"].push_back(failure_json(found.failures[i], judged.settings, data));
    if (!options.group.empty()) {
      json["groups"] = Json::array();
      for (const Group& group : groups) {
        json["groups"].push_back(
            {{"group", group.name}, {"on", group.aim}, {"failures", group.count}, {"worst", Json::array()}});
        for (int64_t sample : group.first) json["groups"].back()["worst"].push_back(data.id(sample));
      }
    }
  }
  json["model"] = judged.subject.model_name;
  json["data"] = data.info().spec;
  json["preflight"] = preflight_json(preflight);
  json["table"] = folder.file(table);
  json["run"] = folder.path();
  json["seconds"] = found.seconds;
  write_file(folder.file("failures.json"), json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  folder.note_file(judged.subject.model_name);
  for (const std::string& file : data.info().files) folder.note_file(file);
  folder.note("data", data.info().spec);
  folder.finish(common.seed, found.seconds, found.interrupted ? 130 : 0);
  if (common.json) {
    print_json(json);
    return found.interrupted ? 130 : 0;
  }
  fmt::print("{}  on {}, {} inputs, {} wrong\n", judged.subject.model_name, data.info().spec, with_commas(found.inputs),
             with_commas(found.wrong));
  if (labels) {
    fmt::print("  {} look{} wrong: the model is confidently of another opinion\n",
               counted(int64_t(issues.size()), "label"), issues.size() == 1 ? "s" : "");
    if (looks_like_training(about))
      fmt::print("  this is training data: the model has learned its mistakes too, and most stay hidden\n");
    if (!issues.empty()) {
      fmt::print("\n");
      print_issues(issues, options.top, judged.settings, data);
      fmt::print("\n  look before you delete: removing what the model dislikes flatters it\n");
    }
  } else if (found.failures.empty()) {
    fmt::print("  none{} is wrong\n", target.text.empty() ? "" : " of " + target.text);
  } else {
    if (accepted > 0) fmt::print("  {} of them are accepted as known (netmend accept --list)\n", with_commas(accepted));
    if (!target.text.empty())
      fmt::print("  {}: {} failures\n", target.words, with_commas(int64_t(found.failures.size())));
    fmt::print("\n");
    if (groups.empty())
      print_failures(found.failures, options.top, judged.settings, data);
    else {
      print_groups_of(groups, found.failures.size(), options.top, data);
      fmt::print("\n  next      {} --on {}\n", next_command("failures", judged.subject.model_name, options),
                 shell_word(groups[0].aim));
    }
  }
  fmt::print("\n  all of them: {}/{}{}\n", folder.path(), table,
             options.product.empty() ? "" : "   " + options.product);
  if (found.interrupted)
    say(common, fmt::format("stopped: this is the result of the first {} inputs", with_commas(found.inputs)));
  return found.interrupted ? 130 : 0;
}

}  // namespace netmend::app
