#include "checkup/data_look.h"

#include <cmath>

#include "base/text.h"
#include "checkup/data_checks.h"
#include "slices/failing.h"
#include "slices/rules.h"

namespace netmend::checkup {
namespace {

Side side_of(const Context& context, const Part& part, const census::CensusState& census) {
  Side side{&part, &census, {}};
  if (int64_t(part.rows.size()) == census.inputs() && context.settings.task != observers::Task::kNone)
    side.failing = slices::failing_of(context.settings, part.rows);
  return side;
}

}  // namespace

double Side::mean_failing() const {
  slices::Sums sums;
  for (double value : failing)
    if (!std::isnan(value)) sums.add(value);
  return sums.count > 0 ? sums.mean() : NAN;
}

std::vector<int64_t> Side::class_counts(size_t classes) const {
  std::vector<int64_t> counts(classes, 0);
  for (float label : census->labels)
    if (label >= 0 && label < float(classes)) ++counts[size_t(label)];
  return counts;
}

DataLook::DataLook(const Context& about, const census::CensusState& tests, const census::CensusState* trains,
                   Found& into)
    : context(about), found(into), test(side_of(about, about.test, tests)) {
  if (about.train && trains) train = side_of(about, *about.train, *trains);
  if (about.test.data->info().labels == dataset::LabelKind::kClass) classes = about.test.data->info().classes;
}

std::vector<const Side*> DataLook::sides() const {
  std::vector<const Side*> all{&test};
  if (train) all.push_back(&*train);
  return all;
}

findings::Words DataLook::words(const Side& side) const {
  auto typed = [](const std::string& words, const Side& of) { return words.empty() ? of.spec() : words; };
  const std::string tests = typed(context.data_words, test), trains = train ? typed(context.train_words, *train) : "";
  findings::Words words = words_of(context, {{"test", tests}, {"split", side.part->name}});
  words["train"] = trains;
  words["spec"] = &side == &test ? tests : trains;
  return words;
}

findings::Effect DataLook::cost(const Side& side, const std::function<bool(size_t)>& among) const {
  slices::Sums here, rest;
  for (size_t i = 0; i < side.failing.size(); ++i)
    if (!std::isnan(side.failing[i])) (among(i) ? here : rest).add(side.failing[i]);
  if (here.count < 1 || rest.count < 1 || here.mean() <= rest.mean()) return {};
  const double p = slices::larger_by_chance(here, rest);
  if (p > 0.01) return {};
  const double gap = here.mean() - rest.mean();
  return {gap * here.count / (here.count + rest.count), here.count >= 50 ? gap : 0};
}

std::string DataLook::share_text(const Side& side, int64_t count) const {
  return fmt::format("{} of {} {} inputs ({:.2g} %)", with_commas(count), with_commas(side.inputs()), side.part->name,
                     side.inputs() ? 100.0 * double(count) / double(side.inputs()) : 0.0);
}

std::vector<findings::Shown> some(const Side& side, const std::vector<int64_t>& inputs, size_t most) {
  std::vector<findings::Shown> shown;
  for (size_t i = 0; i < std::min(most, inputs.size()); ++i) shown.push_back({side.part->name, inputs[i]});
  return shown;
}

std::string points_text(double share) {
  return share < 0.0005 ? "nothing that could be measured" : fmt::format("{:.1f} points", 100 * share);
}

void check_data(const Context& context, const census::CensusState& test, const census::CensusState* train,
                Found& found) {
  DataLook look(context, test, train, found);
  check_classes(look);
  check_copies(look);
  check_values(look);
  check_drift(look);
  if (look.train) return;
  std::string what = "leaks, drift and class shares between training and test data";
  found.skipped.push_back({std::move(what), "training data: --train SPEC"});
}

void check_data(const Context& context, Found& found) {
  census::Census of_test(*context.test.data);
  auto test = census::take(*context.test.data, of_test, context.jobs);
  if (!context.train) return check_data(context, *test, nullptr, found);
  census::Census of_train(*context.train->data);
  auto train = census::take(*context.train->data, of_train, context.jobs);
  check_data(context, *test, train.get(), found);
}

}  // namespace netmend::checkup
