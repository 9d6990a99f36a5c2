#include "selection/failures.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/text.h"
#include "observers/sample_table.h"
#include "observers/top_predictions.h"
#include "selection/label_issues.h"
#include "session/input_names.h"
#include "session/split.h"
#include "session/target.h"

namespace netmend::selection {
namespace {

using observers::PredictionSettings;
using observers::SampleRow;

const std::vector<std::string> kOrders = {"loss", "confidence", "margin"};
constexpr size_t kWorst = 3;  ///< inputs named per group

const dataset::Dataset& data_of(session::Session& session) { return *session.test().subject.data; }

void check_task(session::Session& session, const FailuresRequest& request) {
  const PredictionSettings& task = session.task();
  const dataset::Info& data = session.test().data->info();
  if (task.task == observers::Task::kNone)
    throw InputError(fmt::format("{} has no labels, so no prediction is correct or wrong", data.spec),
                     "netmend next shows which inputs to label first.");
  if (!task.has_right_and_wrong())
    throw InputError(fmt::format("the predictions for {} are numbers, which are neither right nor wrong", data.spec),
                     "Set goal.tolerance in netmend.toml, the largest error that still counts as correct.");
  if (!task.by_class() && (request.labels() || request.sort == "margin"))
    throw InputError(fmt::format("{} needs predictions of one class per input; the task is {}",
                                 request.labels() ? "--on labels" : "--sort margin", observers::task_name(task.task)),
                     request.labels() ? "" : "Sort by loss or confidence.");
  std::vector<std::string> names = data.groups;
  if (task.by_class()) names.insert(names.end(), {"pair", "class"});
  if (request.group.empty() || std::find(names.begin(), names.end(), request.group) != names.end()) return;
  throw InputError(
      fmt::format("--group {}: there is no such group{}", printable(request.group), did_you_mean(request.group, names)),
      names.empty() ? "data.groups in netmend.toml names columns to group by."
                    : "Choose from " + join(names, ", ") + ".");
}

std::string prediction_name(const PredictionSettings& task, double prediction) {
  if (std::isnan(prediction)) return "";
  if (task.by_class()) return task.classes[size_t(prediction)];
  return fmt::format("{:.6g}", prediction);
}

std::string class_name(const PredictionSettings& task, int32_t number) {
  return number < 0 ? "" : task.classes[size_t(number)];
}

std::string text_of(const dataset::Dataset& data, int64_t sample) {
  const dataset::Display shown = data.display(sample);
  return shown.kind == dataset::Display::kText ? shown.text : "";
}

std::vector<FailureGroup> group_failures(session::Session& session, const std::vector<Failure>& failures,
                                         const std::string& by) {
  const PredictionSettings& task = session.task();
  const dataset::Dataset& data = data_of(session);
  const std::vector<std::string>& columns = data.info().groups;
  const auto column = size_t(std::find(columns.begin(), columns.end(), by) - columns.begin());
  std::map<std::string, size_t> places;
  std::vector<FailureGroup> groups;
  for (const Failure& failure : failures) {
    const std::string label = prediction_name(task, failure.row.label),
                      predicted = prediction_name(task, failure.row.predicted);
    std::string name, on;
    if (column < columns.size()) {
      name = by + "=" + data.groups(failure.row.sample).at(column), on = "slice=" + name;
    } else if (by == "pair") {
      name = label + " predicted as " + (predicted.empty() ? "NaN" : predicted);
      on = predicted.empty() ? "class=" + label : "confusion=" + label + ":" + predicted;
    } else {
      name = label, on = "class=" + label;
    }
    auto [place, fresh] = places.emplace(name, groups.size());
    if (fresh) groups.push_back({name, on});
    FailureGroup& group = groups[place->second];
    ++group.count;
    if (group.worst.size() < kWorst) group.worst.push_back(data.id(failure.row.sample));
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const FailureGroup& a, const FailureGroup& b) { return a.count > b.count; });
  return groups;
}

bool is_training_data(session::Session& session) {
  const dataset::Spec& spec = session.test().spec;
  const std::string& train = session.config().train;
  return spec.rest == "train" ||
         (!train.empty() && dataset::spec_text(dataset::parse_spec(train)) == dataset::spec_text(spec));
}

void write_failures(std::ostream& stream, session::Session& session, const std::vector<Failure>& failures) {
  const bool classes = session.task().by_class();
  const dataset::Dataset& data = data_of(session);
  const bool texts = !failures.empty() && !text_of(data, failures[0].row.sample).empty();
  std::vector<std::string> more = data.info().groups;
  if (texts) more.emplace_back("text");
  auto number = [](double value) { return Digits{value, 6, true}; };
  CsvWriter out(stream,
                classes ? OwnWords("sample,id,label,predicted,confidence,loss,second,second_confidence,margin")
                        : OwnWords("sample,id,label,predicted,confidence,loss"),
                more);
  for (const Failure& failure : failures) {
    const FailureRow row = describe(session, failure);
    out << failure.row.sample << row.id << row.label << row.predicted << number(failure.row.confidence)
        << number(failure.row.loss);
    if (classes) out << row.second << number(failure.second_probability) << number(failure.margin);
    for (const std::string& value : row.groups) out << value;
    if (texts) out << row.text;
    out.end();
  }
}

void write_doubtful(std::ostream& stream, session::Session& session, const std::vector<DoubtfulLabel>& labels) {
  const dataset::Dataset& data = data_of(session);
  CsvWriter out(stream, "sample,id,label,suggested,confidence,margin", data.info().groups);
  for (const DoubtfulLabel& one : labels) {
    out << one.sample << data.id(one.sample) << one.label << one.suggested << Digits{one.confidence}
        << Digits{one.margin};
    for (const std::string& value : data.groups(one.sample)) out << value;
    out.end();
  }
}

}  // namespace

void check_request(const FailuresRequest& request) {
  if (std::find(kOrders.begin(), kOrders.end(), request.sort) == kOrders.end())
    throw InputError(fmt::format("--sort {}: there is no such order{}", printable(request.sort),
                                 did_you_mean(request.sort, kOrders)),
                     "Choose from loss, confidence and margin; the largest comes first.");
}

void sort_failures(std::vector<Failure>& failures, const std::string& by) {
  auto key = [&](const Failure& failure) {
    const double value = by == "loss" ? failure.row.loss : by == "confidence" ? failure.row.confidence : failure.margin;
    return std::isnan(failure.row.predicted) || std::isnan(value) ? INFINITY : value;
  };
  std::stable_sort(failures.begin(), failures.end(),
                   [&](const Failure& a, const Failure& b) { return key(a) > key(b); });
}

FailuresReport find_failures(session::Session& session, const FailuresRequest& request) {
  check_request(request);
  check_task(session, request);
  const PredictionSettings& task = session.task();
  session::Split& tests = session.test();
  session.sample(tests);
  const dataset::Dataset& data = *tests.subject.data;
  const session::NamedTarget target = session::parse_target(request.labels() ? "" : request.on, task, data);
  FailuresReport report;
  report.data = data.info().spec, report.of = tests.inputs(), report.words = target.words;

  // A chunk of predictions waits for the top predictions of the same chunk.
  const observers::Predictions predictions(task, true);
  const observers::TopPredictions top(task);
  std::vector<observers::TopRow> all;  // for labels
  std::vector<SampleRow> rows;
  auto take = [&](const std::vector<observers::TopRow>* tops) {
    for (size_t i = 0; i < rows.size(); ++i) {
      report.wrong += rows[i].right == SampleRow::kWrong;
      if (request.labels() || target.target.side(rows[i]) != observers::Side::kFailing) continue;
      Failure failure{rows[i]};
      if (tops) {
        const observers::TopRow& own = (*tops)[i];
        failure.second = own.classes[1], failure.second_probability = own.probabilities[1];
        failure.margin = own.margin();
      }
      report.failures.push_back(failure);
    }
    rows.clear();
  };
  stream::Pass pass(tests.subject);
  auto judged = pass.watch(predictions);
  pass.each_chunk<observers::Predictions>(judged, [&](observers::PredictionState& chunk) {
    rows = std::move(chunk.rows);
    chunk.rows.clear();
    if (!task.by_class()) take(nullptr);
  });
  if (task.by_class()) {
    auto likely = pass.watch(top);
    pass.each_chunk<observers::TopPredictions>(likely, [&](observers::TopState& chunk) {
      take(&chunk.rows);
      if (request.labels()) all.insert(all.end(), chunk.rows.begin(), chunk.rows.end());
      chunk.rows.clear();
    });
  }
  session.run(pass, tests, "failures");
  report.inputs = pass.samples(), report.seconds = pass.seconds(), report.interrupted = pass.interrupted();

  if (request.labels()) {
    for (const LabelIssue& issue : label_issues(all, int64_t(task.classes.size())))
      report.doubtful.push_back({issue.sample, class_name(task, issue.given), class_name(task, issue.suggested),
                                 issue.confidence, issue.margin});
    report.training_data = is_training_data(session);
    return report;
  }
  sort_failures(report.failures, request.sort);
  if (!request.group.empty()) report.groups = group_failures(session, report.failures, request.group);
  if (const auto known = session::accepted_inputs(session.config()); !known.empty())
    report.accepted = std::count_if(report.failures.begin(), report.failures.end(), [&](const Failure& failure) {
      return known.count(data.id(failure.row.sample)) > 0;
    });
  return report;
}

FailureRow describe(session::Session& session, const Failure& failure) {
  const PredictionSettings& task = session.task();
  const dataset::Dataset& data = data_of(session);
  return {data.id(failure.row.sample),
          prediction_name(task, failure.row.label),
          prediction_name(task, failure.row.predicted),
          class_name(task, failure.second),
          text_of(data, failure.row.sample),
          data.groups(failure.row.sample)};
}

std::string input_name(session::Session& session, int64_t sample) { return data_of(session).id(sample); }

const std::vector<std::string>& group_columns(session::Session& session) { return data_of(session).info().groups; }

void write_table(const std::string& path, session::Session& session, const FailuresReport& report, bool labels) {
  write_file(path, [&](std::ostream& out) {
    labels ? write_doubtful(out, session, report.doubtful) : write_failures(out, session, report.failures);
  });
}

}  // namespace netmend::selection
