#include "session/target.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "dataset/dataset.h"
#include "session/input_names.h"

namespace netmend::session {
namespace {

using observers::PredictionSettings;

const std::vector<std::string> kKinds = {"class", "confusion", "slice", "inputs"};

/// The number of a class that is named by its name or number; -1 when there is none.
int64_t class_of(const PredictionSettings& settings, const std::string& name) {
  for (size_t c = 0; c < settings.classes.size(); ++c)
    if (settings.classes[c] == name) return int64_t(c);
  int64_t number = -1;
  return parse_int(name, number) && number >= 0 && number < int64_t(settings.classes.size()) ? number : -1;
}

int64_t require_class(const PredictionSettings& settings, const std::string& name) {
  int64_t found = class_of(settings, name);
  if (found >= 0) return found;
  std::vector<std::string> first(
      settings.classes.begin(),
      settings.classes.begin() + std::ptrdiff_t(std::min<size_t>(20, settings.classes.size())));
  throw InputError(
      fmt::format("there is no class `{}`{}", printable(name), did_you_mean(name, settings.classes)),
      fmt::format("The classes are {}{}.", join(first, ", "), first.size() < settings.classes.size() ? " …" : ""));
}

void aim_at_confusion(NamedTarget& target, const PredictionSettings& settings, const std::string& pair) {
  // Names may hold a colon themselves: the first place where both sides are classes.
  for (size_t colon = pair.find(':'); colon != std::string::npos; colon = pair.find(':', colon + 1)) {
    const int64_t label = class_of(settings, pair.substr(0, colon)),
                  predicted = class_of(settings, pair.substr(colon + 1));
    if (label < 0 || predicted < 0) continue;
    if (label == predicted)
      throw InputError(
          fmt::format("--on {}: an input that is predicted as its own class is not a confusion", target.text),
          "confusion=cat:dog is about cats that are predicted as dogs.");
    target.target.label = label, target.target.predicted = predicted;
    target.words = settings.classes[size_t(label)] + " predicted as " + settings.classes[size_t(predicted)];
    return;
  }
  size_t colon = pair.find(':');
  if (colon == std::string::npos)
    throw InputError(fmt::format("--on {}: a confusion needs two classes", target.text),
                     "confusion=cat:dog is about cats that are predicted as dogs.");
  require_class(settings, pair.substr(0, colon));
  require_class(settings, pair.substr(colon + 1));
}

std::function<bool(int64_t)> member_test(std::vector<bool> members) {
  return [members = std::move(members)](int64_t sample) { return members[size_t(sample)]; };
}

void aim_at_slice(NamedTarget& target, const dataset::Dataset& data, const std::string& slice) {
  const auto& columns = data.info().groups;
  if (columns.empty())
    throw InputError(fmt::format("--on {}: {} has no group columns to slice by", target.text, data.info().spec),
                     "Name them with data.groups in netmend.toml, or with groups=COLUMN in the data spec of a table.");
  size_t equals = slice.find('=');
  std::string name = slice.substr(0, equals), value = equals == std::string::npos ? "" : slice.substr(equals + 1);
  auto place = std::find(columns.begin(), columns.end(), name);
  if (place == columns.end() || equals == std::string::npos)
    throw InputError(fmt::format("--on {}: expected slice=COLUMN=VALUE{}", target.text,
                                 place == columns.end() ? did_you_mean(name, columns) : ""),
                     "The columns are " + join(columns, ", ") + ".");
  auto column = size_t(place - columns.begin());
  std::vector<bool> members(size_t(data.size()), false);
  std::set<std::string> there;
  bool any = false;
  for (int64_t sample = 0; sample < data.size(); ++sample) {
    std::string own = data.groups(sample).at(column);
    any = any || own == value;
    members[size_t(sample)] = own == value;
    if (there.size() < 1000) there.insert(own);
  }
  std::vector<std::string> values(there.begin(), there.end());
  if (!any) {
    std::string tip = did_you_mean(value, values);
    values.resize(std::min<size_t>(values.size(), 12));
    throw InputError(fmt::format("--on {}: no input has {} = {}{}", target.text, name, value, tip),
                     fmt::format("Its values are {}{}.", join(values, ", "), there.size() > values.size() ? " …" : ""));
  }
  target.target.may_fail = target.target.may_pass = member_test(std::move(members));
}

void aim_at_inputs(NamedTarget& target, const dataset::Dataset& data, const std::string& path) {
  std::unordered_set<std::string> names = read_names(path);
  std::vector<bool> members(size_t(data.size()), false);
  int64_t found = 0;
  for (int64_t sample = 0; sample < data.size(); ++sample) {
    members[size_t(sample)] = names.count(data.id(sample)) > 0;
    found += members[size_t(sample)];
  }
  if (found == 0)
    throw InputError(fmt::format("{} names no input of {}: the file has names such as `{}`, the data has names such as "
                                 "`{}`",
                                 path, data.info().spec, printable(*names.begin()), printable(data.id(0))),
                     "The table samples.csv of netmend eval has the names in its column id.");
  target.words = fmt::format("{} input{} of {}", with_commas(found), found == 1 ? "" : "s", path);
  target.target.may_fail = member_test(std::move(members));
}

}  // namespace

NamedTarget parse_target(const std::string& text, const PredictionSettings& settings, const dataset::Dataset& data) {
  NamedTarget target;
  target.text = text;
  if (text.empty()) return target;
  size_t equals = text.find('=');
  std::string kind = text.substr(0, equals), rest = equals == std::string::npos ? "" : text.substr(equals + 1);
  target.words = rest;
  if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end() || rest.empty())
    throw InputError(fmt::format("--on {}: not understood{}", printable(text), did_you_mean(kind, kKinds)),
                     "Give class=cat, confusion=cat:dog, slice=COLUMN=VALUE or inputs=FILE.");
  if ((kind == "class" || kind == "confusion") && !settings.by_class())
    throw InputError(
        fmt::format("--on {}: the task is {}, not one class per input", text, observers::task_name(settings.task)),
        "slice=COLUMN=VALUE and inputs=FILE work for any model.");
  if (kind == "class") {
    target.target.label = require_class(settings, rest);
    target.words = settings.classes[size_t(target.target.label)];
  }
  if (kind == "confusion") aim_at_confusion(target, settings, rest);
  if (kind == "slice") aim_at_slice(target, data, rest);
  if (kind == "inputs") aim_at_inputs(target, data, rest);
  return target;
}

namespace {

/// `8 (12), 3 (4)`: what a class is predicted as.
std::string predicted_as(const PredictionSettings& settings, const observers::PredictionResult& result, size_t label) {
  std::vector<std::pair<int64_t, size_t>> others;
  for (size_t c = 0; c < settings.classes.size(); ++c)
    if (c != label && result.confusion[label][c] > 0) others.emplace_back(-result.confusion[label][c], c);
  std::sort(others.begin(), others.end());
  std::vector<std::string> words;
  for (size_t i = 0; i < std::min<size_t>(5, others.size()); ++i)
    words.push_back(fmt::format("{} ({})", settings.classes[others[i].second], -others[i].first));
  return join(words, ", ");
}

}  // namespace

void require_both_sides(const NamedTarget& target, const PredictionSettings& settings,
                        const observers::PredictionResult& result, int64_t failing, int64_t passing) {
  if (failing > 0 && passing > 0) return;
  const std::string about = target.text.empty() ? "" : fmt::format("--on {}: ", target.text);
  const int64_t label = target.target.label;
  if (label >= 0 && result.per_class[size_t(label)].samples == 0)
    throw InputError(
        fmt::format("{}{} has no input of class {}", about, settings.data, settings.classes[size_t(label)]),
        "netmend data lists the classes and how many inputs they have.");
  if (failing == 0 && target.target.predicted >= 0) {
    std::string others = predicted_as(settings, result, size_t(label));
    throw InputError(
        fmt::format("{}no {} is predicted as {}", about, settings.classes[size_t(label)],
                    settings.classes[size_t(target.target.predicted)]),
        others.empty() ? "Every prediction for this class is correct." : "It is wrongly predicted as " + others + ".");
  }
  if (failing == 0)
    throw InputError(
        fmt::format("{}no prediction is wrong (inputs: {}), so there is nothing to locate", about,
                    with_commas(target.text.empty() ? result.samples : passing)),
        target.text.empty() ? "Give data that the model gets wrong." : "Leave --on out to see all failures.");
  const std::string who =
      failing == 1 ? "the only prediction is wrong" : fmt::format("all {} predictions are wrong", with_commas(failing));
  throw InputError(fmt::format("{}{}, so there are no correct ones to compare with", about, who),
                   "netmend check shows whether model and data belong together.");
}

}  // namespace netmend::session
