#include "census/overview.h"

#include <algorithm>

#include "base/error.h"
#include "dataset/contact_sheet.h"
#include "dataset/summary.h"

namespace netmend::census {
namespace {

constexpr int64_t kExamples = 3;

std::shared_ptr<const dataset::Dataset> open(const OverviewRequest& request) {
  std::shared_ptr<const dataset::Dataset> data = dataset::open(request.spec);
  if (request.limit <= 0 || request.limit >= data->size()) return data;
  std::vector<int64_t> first(static_cast<size_t>(request.limit));
  for (size_t i = 0; i < first.size(); ++i) first[i] = int64_t(i);
  return dataset::subset(data, std::move(first));
}

bool has_pictures(const dataset::Info& info) {
  return std::any_of(info.features.begin(), info.features.end(),
                     [](const dataset::Feature& feature) { return feature.image; });
}

ValueRange range_of(const dataset::ValueSummary& values) {
  const stats::Moments& of = values.finite;
  if (of.count() == 0) return {0, 0, 0, 0, values.nan, values.infinite};
  return {of.low(), of.high(), of.mean(), of.deviation(), values.nan, values.infinite};
}

FeatureOverview feature_of(const dataset::FeatureSummary& summary) {
  FeatureOverview feature;
  feature.name = summary.feature.name, feature.shape = summary.feature.shape, feature.image = summary.feature.image;
  feature.type = summary.feature.type == at::kLong ? "int64" : "float32";
  feature.raw = range_of(summary.raw), feature.values = range_of(summary.values);
  for (const dataset::ValueSummary& channel : summary.channels) feature.channels.push_back(range_of(channel));
  feature.unknown_ids = summary.unknown_ids, feature.mean_length = summary.mean_length;
  return feature;
}

}  // namespace

DataOverview describe_data(const OverviewRequest& request) {
  const auto data = open(request);
  const dataset::Summary summary = dataset::summarize(*data, [&](int64_t done) {
    if (request.progress) request.progress(done, data->size());
  });
  DataOverview overview;
  overview.spec = summary.spec, overview.samples = summary.samples;
  for (const dataset::FeatureSummary& feature : summary.features) overview.features.push_back(feature_of(feature));
  const char* kinds[] = {"none", "classes", "number", "labels"};
  overview.labels = kinds[int(summary.labels)];
  for (size_t c = 0; c < summary.classes.size(); ++c)
    overview.classes.push_back({summary.classes[c], c < summary.class_counts.size() ? summary.class_counts[c] : 0});
  overview.label_values = range_of(summary.label_values);
  overview.preprocessing = dataset::options_of(data->info().preprocess);
  overview.notes = data->info().notes;
  overview.pictures = has_pictures(data->info()) && data->size() > 0;
  for (int64_t sample = 0; sample < std::min(kExamples, data->size()); ++sample)
    if (dataset::Display shown = data->display(sample); shown.kind == dataset::Display::kText)
      overview.examples.emplace_back(data->id(sample), shown.text);
  return overview;
}

void write_sheet(const OverviewRequest& request, int64_t count, const std::string& path) {
  const auto data = open(request);
  if (!has_pictures(data->info()) || data->size() == 0)
    fail("{} holds no images: there is no contact sheet to write", request.spec);
  const auto classes = int64_t(std::max<size_t>(data->info().classes.size(), 1));
  const auto each = std::max<int64_t>(1, count / classes);
  dataset::write_contact_sheet(*data, dataset::sheet_samples(*data, each), std::clamp<int64_t>(each, 5, 20), path);
}

}  // namespace netmend::census
