#include "findings/kinds.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "findings/kind_parts.h"

namespace netmend::findings {

std::span<const Kind> kinds() {
  static const std::vector<Kind> all = [] {
    std::vector<Kind> rows;
    for (std::span<const Kind> part : {model_kinds(), answer_kinds(), data_kinds(), test_kinds(), training_kinds()})
      rows.insert(rows.end(), part.begin(), part.end());
    return rows;
  }();
  return all;
}

const Kind& find_kind(const std::string& name_or_id) {
  const std::string name = name_or_id.substr(0, name_or_id.find(':'));
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) {
    if (kind.name == name) return kind;
    names.emplace_back(kind.name);
  }
  throw InputError("there is no kind of finding `" + name + "`" + did_you_mean(name, names),
                   "netmend why --list shows all of them.");
}

Level level_of(Rule rule, const Effect& effect) {
  switch (rule) {
    case Rule::kBlocker:
      return Level::kBlocker;
    case Rule::kNote:
      return Level::kNote;
    case Rule::kMinor:
      return Level::kMinor;
    case Rule::kEffect:
      break;
  }
  if (effect.gain >= 0.01 || effect.local >= 0.05) return Level::kSerious;
  if (effect.gain >= 0.002 || effect.local >= 0.02) return Level::kMinor;
  return Level::kNote;
}

namespace {

constexpr Need kNeeds[] = {
    {kData, "data", "data: --data SPEC, or data.test in netmend.toml"},
    {kLabels, "labels", "data with labels"},
    {kTrain, "training data", "training data: --train SPEC"},
    {kGroups, "groups", "groups= in the data spec, or data.groups in netmend.toml"},
    {kReference, "a reference", ""},
    {kClasses, "predictions that are classes", ""},
    {kNumbers, "predictions that are numbers", ""},
    {kHidden, "a hidden layer", ""},
    {kAnyBatch, "a model that takes any batch size", "a model that takes any number of inputs at once"},
    {kPredictions, "predictions", "the blocker resolved, or --anyway"},
    {kRecord, "the record of a training run", "netmend watch -- python train.py"},
};

}  // namespace

std::span<const Need> need_table() { return kNeeds; }

std::string needs_words(unsigned needs) {
  std::vector<std::string> words;
  for (const Need& need : kNeeds)
    if ((needs & need.bit) && need.bit != kPredictions) words.emplace_back(need.name);
  return words.empty() ? "the model alone" : join(words, ", ");
}

}  // namespace netmend::findings
