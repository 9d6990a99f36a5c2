// Values of the inputs: features that never change, NaN or Inf, unknown tokens, texts that were cut, outliers.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "census/comparison.h"
#include "checks/data_look.h"
#include "checks/rows.h"
#include "findings/phrases.h"

namespace netmend::checks {
namespace {

using findings::Certainty;
using findings::Effect;

constexpr double kUnknown = 0.05, kManyUnknown = 0.2, kCut = 0.05;
constexpr double kFar = 5;  ///< times the span of 99 % of values from the middle

std::vector<int64_t> where(const Side& side, const std::function<bool(size_t)>& holds) {
  std::vector<int64_t> inputs;
  for (size_t i = 0; i < size_t(side.inputs()); ++i)
    if (holds(i)) inputs.push_back(int64_t(i));
  return inputs;
}

/// The first few of many names, and how many more there are.
std::string first_names(const std::vector<std::string>& names) {
  std::string list = join(std::span(names).first(std::min<size_t>(names.size(), 6)), ", ");
  if (names.size() > 6) list += fmt::format(" and {} more", with_commas(int64_t(names.size() - 6)));
  return list;
}

void look_for_constant(DataLook& look, const Side& side) {
  const census::Form& form = side.census->form();
  if (form.content != census::Content::kTable && form.content != census::Content::kPictures) return;
  std::vector<std::string> names;
  const Side* other = look.train && &side == &look.test ? &*look.train : look.train ? &look.test : nullptr;
  std::vector<std::string> moving;  // in the other split
  for (size_t c = 0; c < form.columns.size(); ++c) {
    if (side.inputs() < 20 || !side.census->moments[c].constant()) continue;
    names.push_back(form.columns[c]);
    if (other && c < other->census->moments.size() && !other->census->moments[c].constant())
      moving.push_back(form.columns[c]);
  }
  if (names.empty()) return look.pass(fmt::format("constant features in {} data", side.words()), "none");
  const std::string list = first_names(names);
  std::string brief = fmt::format("{} of {}: {}", with_commas(int64_t(names.size())),
                                  findings::counted(int64_t(form.columns.size()), "feature"), list);
  const std::string elsewhere =
      moving.empty() ? ""
      : moving.size() == names.size()
          ? ", but not in the other split"
          : fmt::format("; in the other split {} {}", first_names(moving), moving.size() == 1 ? "varies" : "vary");
  auto finding =
      findings::make("constant-features", side.part->name, look.words(side), {}, Certainty::kConfirmed, brief,
                     fmt::format("{} the same for all {}{}.", names.size() == 1 ? list + " is" : list + " are",
                                 findings::counted(side.inputs(), side.words() + " input"), elsewhere));
  finding.value = double(names.size()) / double(form.columns.size());
  if (!moving.empty()) finding.level = findings::Level::kMinor;
  look.found.add(std::move(finding));
}

void look_for_missing(DataLook& look, const Side& side) {
  const std::vector<int32_t>& odd = side.census->not_finite;
  std::vector<int64_t> inputs = where(side, [&](size_t i) { return odd[i] > 0; });
  if (inputs.empty()) return look.pass(fmt::format("NaN or Inf in {} data", side.words()), "none");
  std::vector<std::string> columns;
  for (size_t c = 0; c < side.census->moments.size(); ++c)
    if (side.census->moments[c].not_finite > 0) columns.push_back(side.census->form().columns[c]);
  Effect effect = look.cost(side, [&](size_t i) { return odd[i] > 0; });
  std::string brief = look.share_text(side, int64_t(inputs.size()));
  auto finding = findings::make(
      "missing-values", side.part->name, look.words(side), effect, Certainty::kConfirmed, brief,
      fmt::format("{} {} NaN or Inf, in {}; {}.", brief, inputs.size() == 1 ? "contains" : "contain",
                  columns.empty() ? "another input of the model" : first_names(columns), look.cost_text(side, effect)));
  finding.value = double(inputs.size()) / double(side.inputs());
  finding.numbers = {{"inputs", int64_t(inputs.size())}};
  finding.level = std::max(finding.level, findings::Level::kMinor);
  finding.inputs = some(side, inputs);
  look.found.add(std::move(finding));
}

void look_for_unknown(DataLook& look) {
  const Side& side = look.test;
  const census::Form& form = side.census->form();
  if (form.content != census::Content::kIds || form.properties.size() < 2) return;
  auto share_of = [](const Side& of) {
    std::vector<float> length = of.census->property(0), unknown = of.census->property(1);
    double words = 0, lost = 0;
    for (size_t i = 0; i < length.size(); ++i) words += length[i], lost += double(length[i]) * unknown[i];
    return words > 0 ? lost / words : 0;
  };
  const double here = share_of(side), there = look.train ? share_of(*look.train) : NAN;
  const std::string before = look.train ? fmt::format(", in training data {}", findings::percent(there)) : "";
  std::string brief = fmt::format("{} of the tokens{}", findings::percent(here), before);
  if (here <= kUnknown) return look.pass("unknown tokens in test data", brief);
  std::vector<float> unknown = side.census->property(1);
  Effect effect = look.cost(side, [&](size_t i) { return unknown[i] > kManyUnknown; });
  std::vector<int64_t> inputs = where(side, [&](size_t i) { return unknown[i] > kManyUnknown; });
  auto finding = findings::make(
      "unknown-tokens", side.part->name, look.words(side), effect, Certainty::kConfirmed, brief,
      fmt::format("{} of the tokens are unknown{}. More than a fifth of the tokens are unknown in {}; {}.",
                  findings::percent(here), before, look.share_text(side, int64_t(inputs.size())),
                  look.cost_text(side, effect)));
  finding.value = here;
  finding.inputs = some(side, inputs);
  if (here > 0.15) finding.level = std::max(finding.level, findings::Level::kMinor);
  look.found.add(std::move(finding));
}

void look_for_cut(DataLook& look) {
  const Side& side = look.test;
  const std::vector<uint8_t>& full = side.census->full_length;
  if (full.empty()) return;
  std::vector<int64_t> inputs = where(side, [&](size_t i) { return full[i] != 0; });
  const double share = double(inputs.size()) / double(std::max<int64_t>(1, side.inputs()));
  std::string brief = look.share_text(side, int64_t(inputs.size()));
  // Texts that all have one length were never padded: that is their length, not a limit.
  if (share <= kCut || share > 0.95) return look.pass("texts that fill the whole length", brief);
  Effect effect = look.cost(side, [&](size_t i) { return full[i] != 0; });
  auto finding = findings::make("truncated-text", side.part->name, look.words(side), effect, Certainty::kLikely, brief,
                                fmt::format("{} {}; {}.", brief,
                                            inputs.size() == 1 ? "fills the whole length and was probably longer"
                                                               : "fill the whole length and were probably longer",
                                            look.cost_text(side, effect)));
  finding.value = share;
  finding.inputs = some(side, inputs);
  look.found.add(std::move(finding));
}

/// Where nearly all values lie, learned from training data where there is some.
struct Span {
  double middle = 0, width = 0;
  bool far(double value) const { return width > 0 && std::abs(value - middle) > kFar * width; }
};
Span span_of(const std::vector<float>& values) {
  return {census::quantile(values, 0.5), census::quantile(values, 0.995) - census::quantile(values, 0.005)};
}

void look_for_outliers(DataLook& look) {
  const Side& side = look.test;
  const Side& usual = look.train ? *look.train : look.test;
  const census::Form& form = side.census->form();
  std::vector<uint8_t> odd(size_t(side.inputs()), 0);
  std::vector<std::string> what;
  auto all = [](const Side& of) {
    std::vector<int64_t> inputs(size_t(of.inputs()));
    std::iota(inputs.begin(), inputs.end(), 0);
    return inputs;
  };
  int64_t blank = 0;
  if (form.content == census::Content::kPictures) {
    std::vector<float> contrast = side.census->property(1);
    for (size_t i = 0; i < contrast.size(); ++i)
      if (contrast[i] < 1e-4f) ++blank, odd[i] = 1;
    if (blank) what.push_back(fmt::format("{} blank", with_commas(blank)));
  }
  const std::vector<int64_t> own = all(side), others = all(usual);
  const auto [here, there] =
      slices::columns_of_both({*side.part->data, *side.census, own}, {*usual.part->data, *usual.census, others});
  for (const slices::Column& column : here) {
    if (column.is_words() || column.aside) continue;
    auto same =
        std::find_if(there.begin(), there.end(), [&](const slices::Column& c) { return c.name == column.name; });
    if (same == there.end() || same->is_words()) continue;
    const Span span = span_of(same->numbers);
    int64_t count = 0;
    for (size_t i = 0; i < column.numbers.size(); ++i)
      if (std::isfinite(column.numbers[i]) && span.far(column.numbers[i])) ++count, odd[i] = 1;
    if (count) what.push_back(fmt::format("{} with an extreme value of {}", with_commas(count), column.name));
  }
  std::vector<int64_t> inputs = where(side, [&](size_t i) { return odd[i] != 0; });
  if (inputs.empty()) return look.pass("inputs unlike all others", "none");
  Effect effect = look.cost(side, [&](size_t i) { return odd[i] != 0; });
  std::string brief = join(std::span(what).first(std::min<size_t>(what.size(), 3)), ", ");
  if (what.size() > 3) brief += ", …";
  auto finding =
      findings::make("outlier-inputs", side.part->name, look.words(side), effect, Certainty::kLikely, brief,
                     fmt::format("{} {} unlike the rest ({}); {}.", look.share_text(side, int64_t(inputs.size())),
                                 inputs.size() == 1 ? "is" : "are", brief, look.cost_text(side, effect)));
  finding.value = double(inputs.size()) / double(side.inputs());
  finding.inputs = some(side, inputs);
  look.found.add(std::move(finding));
}

}  // namespace

void check_constant_features(Observed& seen, Results& out) {
  DataLook look(seen, out);
  for (const Side* side : look.sides()) look_for_constant(look, *side);
}

void check_missing_values(Observed& seen, Results& out) {
  DataLook look(seen, out);
  for (const Side* side : look.sides()) look_for_missing(look, *side);
}

void check_unknown_tokens(Observed& seen, Results& out) {
  DataLook look(seen, out);
  look_for_unknown(look);
}

void check_truncated_text(Observed& seen, Results& out) {
  DataLook look(seen, out);
  look_for_cut(look);
}

void check_outliers(Observed& seen, Results& out) {
  DataLook look(seen, out);
  look_for_outliers(look);
}

}  // namespace netmend::checks
