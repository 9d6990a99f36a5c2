// netmend data: what a data set holds, in numbers and in one picture.
#include <algorithm>

#include "base/error.h"
#include "base/pool.h"
#include "base/progress.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "dataset/contact_sheet.h"
#include "dataset/summary.h"
#include "netmend/shared.h"

namespace netmend::app {
namespace {

using dataset::FeatureSummary;
using dataset::LabelKind;
using dataset::Summary;
using dataset::ValueSummary;

Json values_json(const ValueSummary& values) {
  return {{"min", values.low},       {"max", values.high}, {"mean", values.mean},
          {"std", values.deviation}, {"nan", values.nan},  {"infinite", values.infinite}};
}

Json summary_json(const Summary& summary) {
  Json json = {
      {"spec", summary.spec}, {"samples", summary.samples}, {"inputs", Json::array()}, {"classes", Json::array()}};
  for (const FeatureSummary& feature : summary.features)
    json["inputs"].push_back({{"name", feature.feature.name},
                              {"shape", feature.feature.shape},
                              {"type", feature.feature.type == at::kLong ? "int64" : "float32"},
                              {"raw", values_json(feature.raw)},
                              {"values", values_json(feature.values)},
                              {"unknown_ids", feature.unknown_ids}});
  for (size_t c = 0; c < summary.classes.size(); ++c)
    json["classes"].push_back(
        {{"class", summary.classes[c]}, {"samples", c < summary.class_counts.size() ? summary.class_counts[c] : 0}});
  const char* kinds[] = {"none", "classes", "number", "labels"};
  json["labels"] = kinds[int(summary.labels)];
  if (summary.labels == LabelKind::kNumber) json["label_values"] = values_json(summary.label_values);
  return json;
}

void print_feature(const FeatureSummary& feature) {
  const ValueSummary& raw = feature.raw;
  const ValueSummary& values = feature.values;
  fmt::print("  input {}  {} {}{}\n", feature.feature.name, shape_text(feature.feature.shape),
             feature.feature.type == at::kLong ? "int64" : "float32", feature.feature.image ? "  (image)" : "");
  fmt::print("    as read         {:.6g} to {:.6g}\n", raw.low, raw.high);
  fmt::print("    for the model   {:.6g} to {:.6g}, mean {:.4g}, deviation {:.4g}\n", values.low, values.high,
             values.mean, values.deviation);
  for (size_t c = 0; feature.channels.size() > 1 && c < feature.channels.size(); ++c)
    fmt::print("      channel {}     mean {:.4g}, deviation {:.4g}\n", c, feature.channels[c].mean,
               feature.channels[c].deviation);
  if (values.nan + values.infinite > 0)
    fmt::print("    {} values are NaN, {} infinite\n", with_commas(values.nan), with_commas(values.infinite));
  if (feature.mean_length > 0)
    fmt::print("    {:.1f} tokens an input on average, {} unknown in all\n", feature.mean_length,
               with_commas(feature.unknown_ids));
}

void print_classes(const Summary& summary) {
  size_t width = 5, most = 40;
  for (const std::string& name : summary.classes) width = std::min<size_t>(40, std::max(width, name.size()));
  fmt::print("  {} classes\n", summary.classes.size());
  for (size_t c = 0; c < std::min(summary.classes.size(), most); ++c) {
    double share = summary.samples ? double(summary.class_counts[c]) / double(summary.samples) : 0;
    fmt::print("    {:<{}}  {:>9}  {:>5.1f} %\n", summary.classes[c], width, with_commas(summary.class_counts[c]),
               100 * share);
  }
  if (summary.classes.size() > most) fmt::print("    … and {} more (--json has all)\n", summary.classes.size() - most);
}

bool has_pictures(const dataset::Info& info) {
  return std::any_of(info.features.begin(), info.features.end(),
                     [](const dataset::Feature& feature) { return feature.image; });
}

void print_examples(const dataset::Dataset& set) {
  constexpr int64_t most = 3, width = 100;
  if (set.size() == 0 || set.display(0).kind != dataset::Display::kText) return;
  fmt::print("  for example\n");
  for (int64_t sample = 0; sample < std::min(most, set.size()); ++sample) {
    std::string text = printable(set.display(sample).text);
    size_t end = std::min<size_t>(text.size(), width);
    while (end > 0 && end < text.size() && (uint8_t(text[end]) & 0xC0) == 0x80) --end;  // not inside a character
    fmt::print("    {}: {}{}\n", printable(set.id(sample)), text.substr(0, end), end < text.size() ? " …" : "");
  }
}

}  // namespace

int data(const Common& common, const DataOptions& options) {
  auto set = first_inputs(dataset::open(options.spec), options.limit);
  Summary summary;
  {
    Progress progress("inputs", set->size(), common.quiet);
    int64_t shown = 0;
    summary = dataset::summarize(*set, [&](int64_t done) {
      if (interrupted()) throw Interrupted{};
      progress.advance(done - shown);
      shown = done;
    });
  }
  std::string sheet = options.sheet;
  if (has_pictures(set->info()) && set->size() > 0) {
    RunFolder folder = RunFolder(sheet.empty()        ? common.out
                                 : common.out.empty() ? "."
                                                      : common.out,
                                 "data", common.arguments);
    if (sheet.empty()) sheet = folder.file("sheet.png");
    auto classes = int64_t(std::max<size_t>(summary.classes.size(), 1));
    auto each = std::max<int64_t>(1, options.count / classes);
    dataset::write_contact_sheet(*set, dataset::sheet_samples(*set, each), std::clamp<int64_t>(each, 5, 20), sheet);
  } else if (!sheet.empty()) {
    fail("{} holds no images: there is no contact sheet to write", options.spec);
  }
  if (common.json) {
    Json json = summary_json(summary);
    json["preprocess"] = dataset::options_of(set->info().preprocess);
    json["sheet"] = sheet.empty() ? Json(nullptr) : Json(sheet);
    print_json(json);
    return 0;
  }
  fmt::print("{}  {} inputs\n", summary.spec, with_commas(summary.samples));
  for (const FeatureSummary& feature : summary.features) print_feature(feature);
  std::vector<std::string> steps;
  for (const auto& [key, value] : dataset::options_of(set->info().preprocess)) steps.push_back(key + "=" + value);
  if (!steps.empty()) fmt::print("  preprocessing: {}\n", join(steps, " "));
  if (summary.labels == LabelKind::kNumber)
    fmt::print("  labels are numbers: {:.6g} to {:.6g}, mean {:.4g}\n", summary.label_values.low,
               summary.label_values.high, summary.label_values.mean);
  else if (summary.labels == LabelKind::kNone)
    fmt::print("  no labels\n");
  else
    print_classes(summary);
  if (!sheet.empty()) fmt::print("  contact sheet: {}\n", sheet);
  if (sheet.empty()) print_examples(*set);
  return 0;
}

}  // namespace netmend::app
