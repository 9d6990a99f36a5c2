#include "census/repeats.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "census/near_duplicates.h"

namespace netmend::census {
namespace {

struct Counted {
  std::shared_ptr<const dataset::Dataset> data;
  std::unique_ptr<Census> observer;
  std::unique_ptr<CensusState> state;
};

Counted count(const std::string& spec, int64_t limit, int jobs) {
  Counted out;
  out.data = dataset::open(spec);
  if (limit > 0 && limit < out.data->size()) {
    std::vector<int64_t> first(static_cast<size_t>(limit));
    for (size_t i = 0; i < first.size(); ++i) first[i] = int64_t(i);
    out.data = dataset::subset(out.data, std::move(first));
  }
  out.observer = std::make_unique<Census>(*out.data);
  out.state = take(*out.data, *out.observer, jobs);
  return out;
}

std::string label_text(const Counted& set, int64_t sample) {
  const float label = set.state->labels[size_t(sample)];
  if (std::isnan(label)) return "";
  const std::vector<std::string>& names = set.data->info().classes;
  return label >= 0 && size_t(label) < names.size() ? names[size_t(label)] : fmt::format("{:.6g}", label);
}

std::vector<RepeatedInput> named(const Counted& set, const Counted& other, const std::vector<DuplicatePair>& pairs) {
  std::vector<RepeatedInput> list;
  for (const DuplicatePair& pair : pairs)
    list.push_back({pair.sample, pair.other, set.data->id(pair.sample), other.data->id(pair.other),
                    label_text(set, pair.sample), label_text(other, pair.other), pair.alike});
  return list;
}

/// Of each group of equal inputs all but the first.
std::vector<DuplicatePair> exact_within(const CensusState& state) {
  std::vector<DuplicatePair> pairs;
  for (const std::vector<int64_t>& group : equal_groups(state.hashes))
    for (size_t i = 1; i < group.size(); ++i) pairs.push_back({group[i], group[0], 1});
  std::sort(pairs.begin(), pairs.end(),
            [](const DuplicatePair& a, const DuplicatePair& b) { return a.sample < b.sample; });
  return pairs;
}

std::string near_rule(const Form& form) {
  if (form.sequences)
    return fmt::format("sequences whose edit distance is at most {:.0f} % of their length", 100 * kMostEdits);
  switch (form.content) {
    case Content::kTable:
      return "values equal to five digits";
    default:
      return fmt::format("values with a correlation of at least {}", kNearlySame);
  }
}

}  // namespace

Repeats find_repeats(const std::string& spec, const std::string& against, int64_t limit, int jobs) {
  const Counted set = count(spec, limit, jobs);
  const bool two = !against.empty();
  const Counted second = two ? count(against, 0, jobs) : Counted{};
  const Counted& other = two ? second : set;
  if (two && set.observer->form().content != other.observer->form().content)
    throw InputError(fmt::format("{} and {} hold different kinds of inputs", spec, against),
                     "Both must be images, both tables or both texts.");
  const NearSearch search = two ? near_duplicates(*set.state, *set.data, *other.state, *other.data, jobs)
                                : near_duplicates_within(*set.state, *set.data, jobs);
  Repeats found;
  found.spec = set.data->info().spec, found.inputs = set.data->size();
  if (two) found.against = other.data->info().spec;
  found.other_inputs = other.data->size();
  found.exact =
      named(set, other, two ? exact_duplicates(set.state->hashes, other.state->hashes) : exact_within(*set.state));
  found.near = named(set, other, search.pairs);
  found.near_rule = near_rule(set.observer->form());
  found.looked_at = search.looked_at, found.of = search.of, found.compared_with = search.with;
  if (!two && set.data->info().labels == dataset::LabelKind::kClass)
    for (const Conflict& conflict : conflicts(set.state->hashes, set.state->labels))
      found.conflicting += int64_t(conflict.samples.size());
  return found;
}

void write_repeats(const std::string& path, const Repeats& repeats) {
  write_csv(path, "sample,id,label,how,other_sample,other_id,other_label,correlation", [&](CsvWriter& out) {
    for (const auto* list : {&repeats.exact, &repeats.near})
      for (const RepeatedInput& one : *list)
        out.row(one.sample, one.id, one.label, list == &repeats.exact ? "duplicate" : "near-duplicate", one.other,
                one.other_id, one.other_label, Digits{one.correlation});
  });
}

}  // namespace netmend::census
