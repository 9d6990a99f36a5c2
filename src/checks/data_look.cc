#include "checks/data_look.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "findings/phrases.h"
#include "slices/failing.h"
#include "slices/rules.h"

namespace netmend::checks {
namespace {

Side side_of(const Observed& seen, const ObservedSplit& part, const census::CensusState& census) {
  Side side{&part, &census, {}};
  if (int64_t(part.rows.size()) == census.inputs() && seen.settings.task != observers::Task::kNone)
    side.failing = slices::failing_of(seen.settings, part.rows);
  return side;
}

}  // namespace

double Side::mean_failing() const {
  stats::Moments sums;
  for (double value : failing)
    if (!std::isnan(value)) sums.add(value);
  return sums.mean();
}

std::vector<int64_t> Side::class_counts(size_t classes) const {
  std::vector<int64_t> counts(classes, 0);
  for (float label : census->labels)
    if (label >= 0 && label < float(classes)) ++counts[size_t(label)];
  return counts;
}

DataLook::DataLook(const Observed& about, Results& into)
    : seen(about), found(into), test(side_of(about, *about.test, *about.test->census)) {
  if (about.train && about.train->census) train = side_of(about, *about.train, *about.train->census);
  if (about.test->data->info().labels == dataset::LabelKind::kClass) classes = about.test->data->info().classes;
}

std::vector<const Side*> DataLook::sides() const {
  std::vector<const Side*> all{&test};
  if (train) all.push_back(&*train);
  return all;
}

findings::Words DataLook::words(const Side& side) const {
  findings::Words words = seen.words({{"split", side.words()}});
  auto typed = [&](const char* name, const Side& of) { return words[name].text.empty() ? of.spec() : words[name]; };
  words["test"] = typed("data", test);
  words["train"] = train ? typed("train", *train) : "";
  words["spec"] = &side == &test ? words["test"] : words["train"];
  return words;
}

findings::Effect DataLook::cost(const Side& side, const std::function<bool(size_t)>& among) const {
  stats::Moments here, rest;
  for (size_t i = 0; i < side.failing.size(); ++i)
    if (!std::isnan(side.failing[i])) (among(i) ? here : rest).add(side.failing[i]);
  if (here.count() < 1 || rest.count() < 1 || here.mean() <= rest.mean()) return {};
  const double p = slices::larger_by_chance(here, rest);
  if (p > 0.01) return {};
  const double gap = here.mean() - rest.mean();
  return {gap * double(here.count()) / double(here.count() + rest.count()), here.count() >= 50 ? gap : 0};
}

std::string DataLook::cost_text(const Side& side, const findings::Effect& effect) const {
  const bool judged =
      std::any_of(side.failing.begin(), side.failing.end(), [](double failing) { return !std::isnan(failing); });
  if (!judged)
    return fmt::format("what this costs is unknown, since predictions for {} data were not judged", side.words());
  return effect.gain < 0.0005 ? "this has no measurable cost" : "this costs " + amount_text(effect.gain);
}

std::string DataLook::share_text(const Side& side, int64_t count) const {
  if (side.inputs() == 0) return fmt::format("no {} inputs", side.words());
  return fmt::format("{} of {} ({})", with_commas(count), findings::counted(side.inputs(), side.words() + " input"),
                     findings::percent(double(count) / double(side.inputs())));
}

bool DataLook::of_numbers() const {
  return seen.settings.task == observers::Task::kNumber && seen.settings.tolerance < 0;
}

std::string DataLook::amount_text(double share) const {
  return of_numbers() ? findings::plain(share) + " standard deviations of the labels" : points_text(share);
}

std::vector<findings::Shown> some(const Side& side, const std::vector<int64_t>& inputs, size_t most) {
  std::vector<findings::Shown> shown;
  for (size_t i = 0; i < std::min(most, inputs.size()); ++i) shown.push_back({side.part->name, inputs[i]});
  return shown;
}

std::string points_text(double share) { return share < 0.0005 ? "nothing measurable" : findings::points(share); }

}  // namespace netmend::checks
