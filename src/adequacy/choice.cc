#include "adequacy/choice.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace netmend::adequacy {
namespace {

constexpr CriterionRow kRows[] = {
    {"IDC", "combinations of what the most important units do", "", 0, true},
    {"NC", "every unit is strongly active once", "threshold", 0.75, false},
    {"KMNC", "every part of each unit's training range", "sections", 1000, true},
    {"NBC", "values beyond the training range, on both sides", "deviations", 0, true},
    {"SNAC", "values above the training range", "deviations", 0, true},
    {"TKNC", "every unit is among the largest of its layer once", "k", 3, false},
    {"TKNP", "different sets of largest units", "k", 3, false},
    {"MCDC", "each unit's sign decides signs in the next layer", "", 0, false},
    {"NLC", "how widely the units of a layer spread together", "", 0, false},
    {"LSC", "surprise by likelihood: every degree of it", "buckets", 1000, true},
    {"DSC", "surprise by distance: every degree of it", "buckets", 1000, true},
    {"MDSC", "surprise by spread of the class: every degree of it", "buckets", 1000, true},
};

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const CriterionRow& row : kRows) names.emplace_back(row.name);
  return names;
}

std::string upper(std::string text) {
  for (char& c : text) c = char(std::toupper(static_cast<unsigned char>(c)));
  return text == "LSA" ? "LSC" : text == "DSA" ? "DSC" : text == "MDSA" ? "MDSC" : text == "MC/DC" ? "MCDC" : text;
}

bool sound(const CriterionRow& row, double value) {
  if (row.parameter == "threshold" || row.parameter == "deviations") return std::isfinite(value);
  return value == std::floor(value) && value >= (row.parameter == "k" ? 1 : 2) && value <= 1e6;
}

Wanted parse_one(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string name = upper(text.substr(0, colon));
  auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const CriterionRow& r) { return r.name == name; });
  if (row == std::end(kRows))
    throw InputError(fmt::format("--criteria: there is no criterion `{}`{}", text, did_you_mean(name, names())),
                     "There are all, " + join(names(), ", ") + ".");
  Wanted wanted{name, row->usual};
  if (colon == std::string::npos) return wanted;
  if (row->parameter.empty()) fail("--criteria {}: {} has no parameter", text, name);
  if (!parse_double(text.substr(colon + 1), wanted.parameter) || !sound(*row, wanted.parameter))
    fail("--criteria {}: `{}` is no {}", text, text.substr(colon + 1), row->parameter);
  return wanted;
}

}  // namespace

std::span<const CriterionRow> criteria() { return kRows; }

std::string criteria_names() { return join(names(), ", "); }

const CriterionRow& criterion_row(std::string_view name) {
  for (const CriterionRow& row : kRows)
    if (row.name == name) return row;
  throw std::logic_error(fmt::format("{} is not in the table of criteria", name));
}

std::vector<Wanted> parse_criteria(const std::string& text) {
  std::vector<Wanted> all;
  if (lower(text) == "all") {
    for (const CriterionRow& row : kRows) all.push_back({std::string(row.name), row.usual});
    return all;
  }
  for (const std::string& part : split(text, ',')) {
    Wanted wanted = parse_one(std::string(trim(part)));
    for (const Wanted& other : all)
      if (other.name == wanted.name && other.parameter == wanted.parameter)
        fail("--criteria: {} is there twice", wanted.name);
    all.push_back(std::move(wanted));
  }
  return all;
}

std::vector<int64_t> parse_counts(const std::string& text, const std::string& flag) {
  std::vector<int64_t> counts;
  for (const std::string& part : split(text, ',')) {
    int64_t count = 0;
    if (!parse_int(trim(part), count) || count < 1 || count > 1'000'000)
      fail("{} {}: expected whole numbers from 1 on with commas between them, for example 6,8,10,12", flag, text);
    counts.push_back(count);
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

}  // namespace netmend::adequacy
