#include "slices/survey.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/text.h"
#include "census/census.h"
#include "observers/predictions.h"
#include "observers/sample_table.h"
#include "session/split.h"
#include "slices/failing.h"

namespace netmend::slices {

using observers::SampleRow;

void choose_groups(const std::string& wanted, std::vector<Column>& columns) {
  if (wanted.empty()) return;
  std::vector<std::string> names;
  for (Column& column : columns) column.aside = false, names.push_back(column.name);
  for (const std::string& part : split(wanted, ',')) {
    const std::string name(trim(part));
    auto hit = std::find_if(columns.begin(), columns.end(), [&](const Column& column) { return column.name == name; });
    if (hit == columns.end())
      throw InputError(fmt::format("the data has no column `{}`{}", name, did_you_mean(name, names)),
                       names.empty() ? "Give columns with groups= in the data spec, or meta=FILE.csv."
                                     : "The columns are " + join(names, ", ").substr(0, 300) + ".");
    if (!hit->is_words())
      throw InputError(fmt::format("column {} holds numbers, but groups need categories", name),
                       "Rules over numeric columns are searched anyway; see the weak slices below the groups.");
    hit->aside = true;
  }
}

Survey survey(session::Session& session, const SurveyRequest& request) {
  const observers::PredictionSettings& task = session.task();
  session::Split& tests = session.test();
  if (task.task == observers::Task::kNone)
    throw InputError(fmt::format("{} has no labels: no prediction is right or wrong", tests.data->info().spec),
                     "Give data with labels.");
  session.sample(tests);
  const dataset::Dataset& data = *tests.subject.data;
  const observers::Predictions predictions(task, true);
  const census::Census census(data);
  stream::Pass pass(tests.subject);
  auto judged = pass.watch(predictions);
  auto counted = pass.watch(census);
  session.run(pass, tests, "slices");

  Survey found;
  found.data = data.info().spec, found.of = tests.inputs();
  found.result = observers::finish(predictions, pass.state(judged));
  found.rows = std::move(pass.state(judged).rows);
  found.seconds = pass.seconds(), found.interrupted = pass.interrupted();
  found.errors = !task.has_right_and_wrong();
  const census::CensusState& taken = pass.state(counted);
  std::vector<int64_t> inputs(found.rows.size());
  std::iota(inputs.begin(), inputs.end(), 0);
  found.columns = columns_of(data, taken, inputs);
  choose_groups(request.groups, found.columns);
  found.failing = failing_of(task, found.rows);
  found.unit = error_unit(task, found.rows);
  const std::vector<uint8_t> half = halves(taken.hashes, session.request().seed);
  std::vector<double> expected;
  if (task.by_class()) {
    std::vector<float> confidence;
    std::vector<double> labels;
    for (const SampleRow& row : found.rows) confidence.push_back(row.confidence), labels.push_back(row.label);
    expected = expected_errors(confidence, labels, found.failing, half);
  }
  Search how;
  how.most = size_t(request.most), how.least = request.least;
  found.weak = find_weak(found.columns, found.failing, half, expected, how);
  found.groups = compare_groups(found.columns, found.rows, found.failing, task, {.least = request.least});
  return found;
}

stats::Estimate Survey::figure(const stats::Estimate& mean) const {
  if (errors) return {mean.value * unit, mean.low * unit, mean.high * unit};
  return {1 - mean.value, 1 - mean.high, 1 - mean.low};
}

void write_tables(const RunFolder& folder, const Survey& survey) {
  write_csv(folder.file("slices.csv"),
            "slice,rule,inputs,judged_on,here,rest,behind,behind_low,behind_high,gain,explained_by_confidence,p",
            [&](CsvWriter& out) {
              for (const Slice& slice : survey.weak.slices)
                out.row(slice.name, slice.words, slice.inputs, slice.judged_on, Digits{survey.figure(slice.here).value},
                        Digits{survey.figure(slice.rest).value}, Digits{slice.behind.value}, Digits{slice.behind.low},
                        Digits{slice.behind.high}, Digits{slice.gain}, Digits{slice.explained_by_confidence},
                        Digits{slice.p});
            });
  write_csv(
      folder.file("groups.csv"),
      "group,inputs,too_small,figure,low,high,selected,true_positive_rate,false_positive_rate", [&](CsvWriter& out) {
        auto known = [](const std::optional<Rate>& rate) { return Digits{rate ? rate->here.value : NAN, 6, true}; };
        for (const Group& group : survey.groups) {
          const stats::Estimate figure = survey.figure(group.failing.here);
          out.row(group.name(), group.inputs, int(group.too_small), Digits{figure.value}, Digits{figure.low},
                  Digits{figure.high}, known(group.selected), known(group.true_positive), known(group.false_positive));
        }
      });
}

}  // namespace netmend::slices
