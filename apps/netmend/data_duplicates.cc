// netmend data --duplicates: inputs that occur more than once in a data set, or in it and in another.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/escape.h"
#include "base/file.h"
#include "base/text.h"
#include "census/repeats.h"
#include "netmend/shared.h"
#include "netmend/terminal.h"

namespace netmend::app {
namespace {

using census::RepeatedInput;
using census::Repeats;

constexpr size_t kInJson = 100, kShown = 5;

Json list_json(const std::vector<RepeatedInput>& inputs) {
  Json list = Json::array();
  for (size_t i = 0; i < std::min(inputs.size(), kInJson); ++i)
    list.push_back({{"id", inputs[i].id},
                    {"sample", inputs[i].sample},
                    {"other_id", inputs[i].other_id},
                    {"other_sample", inputs[i].other},
                    {"correlation", inputs[i].correlation}});
  return list;
}

Json repeats_json(const Repeats& found) {
  return {{"spec", found.spec},
          {"against", found.against.empty() ? Json(nullptr) : Json(found.against)},
          {"inputs", found.inputs},
          {"duplicates", found.exact.size()},
          {"near_duplicates", found.near.size()},
          {"near_rule", found.near_rule},
          {"near_looked_at", found.looked_at},
          {"near_compared_with", found.compared_with},
          {"conflicting_labels", found.conflicting},
          {"duplicate_inputs", list_json(found.exact)},
          {"near_duplicate_inputs", list_json(found.near)}};
}

void print_some(const std::vector<RepeatedInput>& inputs, const char* verb) {
  for (size_t i = 0; i < std::min(inputs.size(), kShown); ++i) {
    const RepeatedInput& one = inputs[i];
    std::string labels;
    if (!one.label.empty() && !one.other_label.empty())
      labels = one.label == one.other_label ? fmt::format("  both labelled {}", one.label)
                                            : fmt::format("  labelled {} and {}", one.label, one.other_label);
    print("    {} {} {}{}\n", printable(one.id), verb, printable(one.other_id), printable(labels));
  }
  if (inputs.size() > kShown) print("    … and {} more\n", with_commas(int64_t(inputs.size() - kShown)));
}

void print_repeats(const Repeats& found, double seconds) {
  print("{}  {}{}   {:.1f} s\n", found.spec, counted(found.inputs, "input"),
        found.against.empty() ? "" : fmt::format(" against {} of {}", with_commas(found.other_inputs), found.against),
        seconds);
  print("  duplicates        {}\n", counted(int64_t(found.exact.size()), "input"));
  print_some(found.exact, "is a duplicate of");
  print("  near-duplicates   {} ({})\n", counted(int64_t(found.near.size()), "input"), found.near_rule);
  print_some(found.near, "is a near-duplicate of");
  if (found.looked_at < found.of)
    print("  near-duplicates were searched for among {} inputs, evenly spread (--limit N: the first N)\n",
          with_commas(found.looked_at));
  if (found.conflicting > 0) print("  label conflicts   {}\n", counted(found.conflicting, "input"));
}

}  // namespace

int data_duplicates(const Common& common, const DataOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const Repeats found = census::find_repeats(options.spec, options.against, options.limit, common.jobs);
  if (!options.product.empty()) census::write_repeats(options.product, found);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (common.json) {
    Json json = repeats_json(found);
    json["export"] = options.product.empty() ? Json(nullptr) : Json(options.product);
    json["seconds"] = seconds;
    return print_json(json), 0;
  }
  print_repeats(found, seconds);
  if (!options.product.empty())
    print("  inputs that could be dropped: {}\n", options.product);
  else if (!found.exact.empty() || !found.near.empty()) {
    Shell next = Shell::of("netmend data {} --duplicates", options.spec);
    if (!options.against.empty()) next += Shell::of(" --against {}", options.against);
    print("\n  next  {} --export drop.csv\n", next.text());
  }
  return 0;
}

}  // namespace netmend::app
