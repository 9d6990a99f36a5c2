// netmend data: what a data set holds, in numbers and in one picture.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/pool.h"
#include "base/progress.h"
#include "base/run_folder.h"
#include "base/text.h"
#include "census/overview.h"
#include "netmend/shared.h"
#include "netmend/terminal.h"

namespace netmend::app {
namespace {

using census::DataOverview;
using census::FeatureOverview;
using census::ValueRange;

constexpr size_t kClasses = 40;  ///< that are shown

Json values_json(const ValueRange& values) {
  return {{"min", values.low},       {"max", values.high}, {"mean", values.mean},
          {"std", values.deviation}, {"nan", values.nan},  {"infinite", values.infinite}};
}

Json overview_json(const DataOverview& data) {
  Json json = {{"spec", data.spec}, {"samples", data.samples}, {"inputs", Json::array()}, {"classes", Json::array()}};
  for (const FeatureOverview& feature : data.features)
    json["inputs"].push_back({{"name", feature.name},
                              {"shape", feature.shape},
                              {"type", feature.type},
                              {"raw", values_json(feature.raw)},
                              {"values", values_json(feature.values)},
                              {"unknown_ids", feature.unknown_ids}});
  for (const census::ClassCount& one : data.classes)
    json["classes"].push_back({{"class", one.name}, {"samples", one.samples}});
  json["labels"] = data.labels;
  if (data.labels == "number") json["label_values"] = values_json(data.label_values);
  json["preprocess"] = data.preprocessing, json["notes"] = data.notes;
  return json;
}

void print_feature(const FeatureOverview& feature) {
  const ValueRange& values = feature.values;
  print("  input {}  {} {}{}\n", feature.name, shape_text(feature.shape), feature.type,
        feature.image ? "  (image)" : "");
  print("    as read         {:.6g} to {:.6g}\n", feature.raw.low, feature.raw.high);
  print("    for the model   {:.6g} to {:.6g}, mean {:.4g}, standard deviation {:.4g}\n", values.low, values.high,
        values.mean, values.deviation);
  for (size_t c = 0; feature.channels.size() > 1 && c < feature.channels.size(); ++c)
    print("      channel {}     mean {:.4g}, standard deviation {:.4g}\n", c, feature.channels[c].mean,
          feature.channels[c].deviation);
  if (values.nan + values.infinite > 0)
    print("    {} values are NaN, {} infinite\n", with_commas(values.nan), with_commas(values.infinite));
  if (feature.mean_length > 0)
    print("    {:.1f} tokens per input on average, {} unknown in all\n", feature.mean_length,
          with_commas(feature.unknown_ids));
}

void print_labels(const DataOverview& data) {
  if (data.labels == "number")
    return print("  labels are numbers: {:.6g} to {:.6g}, mean {:.4g}\n", data.label_values.low, data.label_values.high,
                 data.label_values.mean);
  if (data.labels == "none") return print("  no labels\n");
  size_t width = 5;
  for (const census::ClassCount& one : data.classes) width = std::min<size_t>(40, std::max(width, one.name.size()));
  print("  {}\n", data.classes.size() == 1 ? "1 class" : fmt::format("{} classes", data.classes.size()));
  for (size_t c = 0; c < std::min(data.classes.size(), kClasses); ++c) {
    const double share = data.samples ? double(data.classes[c].samples) / double(data.samples) : 0;
    print("    {:<{}}  {:>9}  {:>5.1f} %\n", printable(data.classes[c].name), width,
          with_commas(data.classes[c].samples), 100 * share);
  }
  if (data.classes.size() > kClasses) print("    … and {} more (--json has all)\n", data.classes.size() - kClasses);
}

void print_examples(const DataOverview& data) {
  if (data.examples.empty()) return;
  print("  for example\n");
  for (const auto& [id, text] : data.examples) print_wrapped(fmt::format("{}: {}", id, text), 4);
}

}  // namespace

int data(const Common& common, const DataOptions& options) {
  std::optional<Progress> progress;
  int64_t shown = 0;
  const census::OverviewRequest request{options.spec, options.limit, [&](int64_t done, int64_t of) {
                                          if (interrupted()) throw Interrupted{};
                                          if (!progress) progress.emplace("inputs", of, common.quiet);
                                          progress->advance(done - shown);
                                          shown = done;
                                        }};
  const DataOverview found = census::describe_data(request);
  progress.reset();
  std::string sheet = options.sheet;
  std::optional<RunFolder> folder;  // it goes where nothing was written
  if (found.pictures && sheet.empty()) sheet = folder.emplace(common.out, "data", common.arguments).file("sheet.png");
  if (!sheet.empty()) census::write_sheet(request, options.count, sheet);
  if (common.json) {
    Json json = overview_json(found);
    json["sheet"] = sheet.empty() ? Json(nullptr) : Json(sheet);
    return print_json(json), 0;
  }
  print("{}  {}\n", found.spec, counted(found.samples, "input"));
  for (const FeatureOverview& feature : found.features) print_feature(feature);
  std::vector<std::string> steps;
  for (const auto& [key, value] : found.preprocessing) steps.push_back(key + "=" + value);
  if (!steps.empty()) print("  preprocessing: {}\n", join(steps, " "));
  print_labels(found);
  for (const std::string& note : found.notes) print_wrapped("note: " + note, 2);
  if (!sheet.empty())
    print("  contact sheet: {}\n", sheet);
  else
    print_examples(found);
  return 0;
}

}  // namespace netmend::app
