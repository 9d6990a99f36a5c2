#include "adequacy/choice.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace netmend::adequacy {
namespace {

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const CriterionRow& row : criteria()) names.emplace_back(row.name);
  return names;
}

std::string upper(std::string text) {
  for (char& c : text) c = char(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

const CriterionRow* find_row(std::string_view name) {
  for (const CriterionRow& row : criteria())
    if (row.name == name || (!row.also.empty() && row.also == name)) return &row;
  return nullptr;
}

bool fits(const CriterionRow::Setting& setting, double value) {
  constexpr double kMost = 1e6;  // goals are counted unit by unit: more would only be a slip of the finger
  if (!std::isfinite(value) || value < setting.least) return false;
  return !setting.whole || (value == std::floor(value) && value <= kMost);
}

Wanted parse_one(const std::string& text) {
  const size_t colon = text.find(':');
  const std::string name = upper(text.substr(0, colon));
  const CriterionRow* row = find_row(name);
  if (!row)
    throw InputError(fmt::format("--criteria: there is no criterion `{}`{}", text, did_you_mean(name, names())),
                     "Choose from all, " + join(names(), ", ") + ".");
  Wanted wanted{std::string(row->name), row->parameter.usual};
  if (colon == std::string::npos) return wanted;
  if (row->parameter.name.empty()) fail("--criteria {}: {} takes no parameter", text, name);
  if (!parse_double(text.substr(colon + 1), wanted.parameter) || !fits(row->parameter, wanted.parameter))
    fail("--criteria {}: `{}` is not a valid {}", text, text.substr(colon + 1), row->parameter.name);
  return wanted;
}

}  // namespace

std::string criteria_names() { return join(names(), ", "); }

const CriterionRow& criterion_row(std::string_view name) {
  if (const CriterionRow* row = find_row(name)) return *row;
  throw std::logic_error(fmt::format("{} is not in the table of criteria", name));
}

std::vector<Wanted> parse_criteria(const std::string& text) {
  std::vector<Wanted> all;
  if (lower(text) == "all") {
    for (const CriterionRow& row : criteria())
      if (!row.asked_for) all.push_back({std::string(row.name), row.parameter.usual});
    return all;
  }
  for (const std::string& part : split(text, ',')) {
    Wanted wanted = parse_one(std::string(trim(part)));
    for (const Wanted& other : all)
      if (other.name == wanted.name && other.parameter == wanted.parameter)
        fail("--criteria: {} is given twice", wanted.name);
    all.push_back(std::move(wanted));
  }
  return all;
}

std::vector<int64_t> parse_counts(const std::string& text, const std::string& flag) {
  std::vector<int64_t> counts;
  for (const std::string& part : split(text, ',')) {
    int64_t count = 0;
    if (!parse_int(trim(part), count) || count < 1 || count > 1'000'000)
      fail("{} {}: expected whole numbers of 1 or more, separated by commas, for example 6,8,10,12", flag, text);
    counts.push_back(count);
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

}  // namespace netmend::adequacy
