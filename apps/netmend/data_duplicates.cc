// netmend data --duplicates: inputs that occur more than once in a data set, or in it and in another.
#include <algorithm>
#include <chrono>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "census/near_duplicates.h"
#include "netmend/shared.h"
#include "netmend/show.h"
#include "observers/sample_table.h"

namespace netmend::app {
namespace {

using census::DuplicatePair;

struct Counted {
  std::shared_ptr<const dataset::Dataset> data;
  std::unique_ptr<census::Census> observer;
  std::unique_ptr<census::CensusState> state;
};

Counted count(const std::string& spec, int64_t limit, int jobs) {
  Counted out;
  out.data = first_inputs(dataset::open(spec), limit);
  out.observer = std::make_unique<census::Census>(*out.data);
  out.state = census::take(*out.data, *out.observer, jobs);
  return out;
}

/// What could go: every input but the first of its kind, or every input that the other data has too.
struct Repeats {
  std::vector<DuplicatePair> exact, near;
  census::NearSearch search;
  std::vector<census::Conflict> conflicts;
};

Repeats within(const Counted& set, int jobs) {
  Repeats found;
  for (const std::vector<int64_t>& group : census::equal_groups(set.state->hashes))
    for (size_t i = 1; i < group.size(); ++i) found.exact.push_back({group[i], group[0], 1});
  std::sort(found.exact.begin(), found.exact.end(), [](const DuplicatePair& a, const DuplicatePair& b) { return a.sample < b.sample; });
  found.search = census::near_duplicates_within(*set.state, *set.data, jobs);
  found.near = found.search.pairs;
  if (set.data->info().labels == dataset::LabelKind::kClass)
    found.conflicts = census::conflicts(set.state->hashes, set.state->labels);
  return found;
}

Repeats between(const Counted& set, const Counted& other, int jobs) {
  Repeats found;
  found.exact = census::exact_duplicates(set.state->hashes, other.state->hashes);
  found.search = census::near_duplicates(*set.state, *set.data, *other.state, *other.data, jobs);
  found.near = found.search.pairs;
  return found;
}

std::string label_text(const Counted& set, int64_t sample) {
  const float label = set.state->labels[size_t(sample)];
  if (std::isnan(label)) return "";
  const std::vector<std::string>& names = set.data->info().classes;
  return label >= 0 && size_t(label) < names.size() ? names[size_t(label)] : fmt::format("{:.6g}", label);
}

Json twins_json(const Counted& set, const Counted& other, const std::vector<DuplicatePair>& twins) {
  Json list = Json::array();
  for (const DuplicatePair& twin : twins) {
    if (list.size() >= 100) break;
    list.push_back({{"id", set.data->id(twin.sample)},
                    {"sample", twin.sample},
                    {"other_id", other.data->id(twin.other)},
                    {"other_sample", twin.other},
                    {"alike", twin.alike}});
  }
  return list;
}

void write_drop(const std::string& path, const Counted& set, const Counted& other, const Repeats& found) {
  write_file(path, [&](std::ostream& out) {
    out << "sample,id,label,how,other_sample,other_id,other_label,alike\n";
    for (const auto* twins : {&found.exact, &found.near})
      for (const DuplicatePair& twin : *twins)
        out << fmt::format("{},{},{},{},{},{},{},{:.6g}\n", twin.sample,
                           observers::csv_field(set.data->id(twin.sample)),
                           observers::csv_field(label_text(set, twin.sample)), twins == &found.exact ? "same" : "near",
                           twin.other, observers::csv_field(other.data->id(twin.other)),
                           observers::csv_field(label_text(other, twin.other)), twin.alike);
  });
}

std::string how_near(const census::Form& form) {
  switch (form.content) {
    case census::Content::kIds:
      return "the same words in another order";
    case census::Content::kTable:
      return "values equal to three digits";
    default:
      return fmt::format("values that correlate at least {}", census::kNearlySame);
  }
}

void print_some(const Counted& set, const Counted& other, const std::vector<DuplicatePair>& twins, const char* what) {
  for (size_t i = 0; i < std::min<size_t>(twins.size(), 5); ++i) {
    const DuplicatePair& twin = twins[i];
    std::string labels;
    if (std::string a = label_text(set, twin.sample), b = label_text(other, twin.other); !a.empty() && !b.empty())
      labels = a == b ? fmt::format("  both {}", a) : fmt::format("  {} and {}", a, b);
    fmt::print("    {} {} {}{}\n", printable(set.data->id(twin.sample)), what, printable(other.data->id(twin.other)),
               printable(labels));
  }
  if (twins.size() > 5) fmt::print("    … and {} more\n", with_commas(int64_t(twins.size()) - 5));
}

}  // namespace

int data_duplicates(const Common& common, const DataOptions& options) {
  if (!options.product.empty()) require_writable(options.product);
  auto start = std::chrono::steady_clock::now();
  Counted set = count(options.spec, options.limit, common.jobs);
  const bool two = !options.against.empty();
  Counted second = two ? count(options.against, 0, common.jobs) : Counted{};
  const Counted& other = two ? second : set;
  if (two && set.observer->form().content != other.observer->form().content)
    throw InputError(fmt::format("{} and {} hold different kinds of inputs", options.spec, options.against),
                     "Both must be images, both tables or both texts.");
  Repeats found = two ? between(set, other, common.jobs) : within(set, common.jobs);
  if (!options.product.empty()) write_drop(options.product, set, other, found);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  int64_t conflicting = 0;
  for (const census::Conflict& conflict : found.conflicts) conflicting += int64_t(conflict.samples.size());
  if (common.json) {
    Json json = {{"spec", set.data->info().spec},
                 {"against", two ? Json(other.data->info().spec) : Json(nullptr)},
                 {"inputs", set.data->size()},
                 {"same", found.exact.size()},
                 {"near", found.near.size()},
                 {"near_rule", how_near(set.observer->form())},
                 {"near_looked_at", found.search.looked_at},
                 {"near_compared_with", found.search.with},
                 {"conflicting_labels", conflicting},
                 {"same_inputs", twins_json(set, other, found.exact)},
                 {"near_inputs", twins_json(set, other, found.near)},
                 {"export", options.product.empty() ? Json(nullptr) : Json(options.product)},
                 {"seconds", seconds}};
    print_json(json);
    return 0;
  }
  const char* what = two ? "is also" : "repeats";
  fmt::print("{}  {} inputs{}   {:.1f} s\n", set.data->info().spec, with_commas(set.data->size()),
             two ? fmt::format(" against {} of {}", with_commas(other.data->size()), other.data->info().spec) : "",
             seconds);
  fmt::print("  the same          {}\n", counted(int64_t(found.exact.size()), "input"));
  print_some(set, other, found.exact, what);
  fmt::print("  nearly the same   {} ({})\n", counted(int64_t(found.near.size()), "input"),
             how_near(set.observer->form()));
  print_some(set, other, found.near, two ? "is nearly" : "nearly repeats");
  if (found.search.looked_at < found.search.of)
    fmt::print("  nearness was looked for in {} of them, evenly spread: --limit N for a part\n",
               with_commas(found.search.looked_at));
  if (conflicting > 0) fmt::print("  {} are the same but have different labels\n", counted(conflicting, "input"));
  if (!options.product.empty())
    fmt::print("  what could be dropped: {}\n", options.product);
  else if (!found.exact.empty() || !found.near.empty())
    fmt::print("\n  next  netmend data {} --duplicates{} --export drop.csv\n", options.spec,
               two ? " --against " + options.against : "");
  return 0;
}

}  // namespace netmend::app
