#include "adequacy/coverage_findings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/text.h"
#include "observers/figures.h"
#include "observers/sample_table.h"

namespace netmend::adequacy {

using Json = nlohmann::ordered_json;

std::string CoverageFindings::test_id(int64_t sample) const { return tests->id(sample); }

std::string CoverageFindings::train_id(int64_t sample) const {
  return train && sample < train->size() ? train->id(sample) : std::to_string(sample);
}

std::string CoverageFindings::important_unit(int64_t unit) const {
  return model::unit_name(space->layers().back(), unit);
}

namespace {

/// Rows of the highest finite scores.
std::vector<size_t> most_surprising(const std::vector<double>& scores) {
  std::vector<size_t> rows;
  for (size_t row = 0; row < scores.size(); ++row)
    if (std::isfinite(scores[row])) rows.push_back(row);
  const size_t shown = std::min(CoverageFindings::kShown, rows.size());
  std::partial_sort(rows.begin(), rows.begin() + std::ptrdiff_t(shown), rows.end(),
                    [&](size_t a, size_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  rows.resize(shown);
  return rows;
}

using observers::Figure;

Json finite(double value) { return observers::number_json(value); }

/// Counts as whole numbers where they are some; totals may be beyond them.
Json count_json(double value) {
  if (value < 0 || !std::isfinite(value)) return nullptr;
  return value == std::floor(value) && value < 9e15 ? Json(int64_t(value)) : Json(value);
}

Json train_ids(const CoverageFindings& f, const std::vector<int64_t>& samples) {
  Json list = Json::array();
  for (int64_t sample : samples) list.push_back(f.train_id(sample));
  return list;
}

Json figure_json(const Figure& figure) {
  Json parameters = Json::object();
  for (const observers::Parameter& parameter : figure.parameters)
    parameters[parameter.name] = parameter.word.empty() ? count_json(parameter.number) : Json(parameter.word);
  for (const observers::Parameter& parameter : figure.parameters)
    if (parameter.word.empty() && parameters[parameter.name].is_null())
      parameters[parameter.name] = finite(parameter.number);
  Json json = {{"name", figure.name},
               {"parameters", parameters},
               {"covered", criterion_row(figure.name).counts ? count_json(figure.covered) : Json(nullptr)},
               {"total", count_json(figure.total)},
               {"value", finite(figure.value)}};
  if (!figure.notes.empty()) json["notes"] = figure.notes;
  return json;
}

/// One row a layer, one entry a criterion that can be told by layer.
Json layers_json(const CoverageFindings& f) {
  Json list = Json::array();
  for (size_t l = 0; l < f.space->layers().size(); ++l) {
    Json criteria = Json::array();
    for (const Figure& figure : f.found.figures)
      if (l < figure.layers.size() && figure.layers[l].layer == f.space->layers()[l].name) {  // not pairs of layers
        const Figure::Part& part = figure.layers[l];
        const bool share = part.total > 0;
        criteria.push_back({{"name", figure.name},
                            {"covered", share ? count_json(part.covered) : Json(nullptr)},
                            {"total", count_json(part.total)},
                            {"value", share ? finite(part.covered / part.total) : finite(part.covered)}});
      }
    list.push_back({{"layer", f.space->layers()[l].name}, {"units", f.space->units(l)}, {"criteria", criteria}});
  }
  return list;
}

Json unit_json(const CoverageFindings& f, int64_t unit) {
  Json json = {{"unit", f.space->name(unit)}, {"layer", f.space->layers()[f.space->layer_of(unit)].name}};
  if (f.space->choice().elements) json["position"] = f.space->position(unit);
  return json;
}

Json low_unit_json(const CoverageFindings& f, const observers::LowUnit& low) {
  Json json = unit_json(f, low.unit);
  json["high_in_tests"] = finite(low.tests), json["high_in_training"] = finite(low.training);
  json["training_inputs_above"] = low.higher;
  json["at_least"] = low.higher == observers::Peaks::kKept;
  json["training_inputs"] = train_ids(f, low.samples);
  return json;
}

Json units_json(const CoverageFindings& f) {
  std::map<int64_t, Json> units;
  auto entry = [&](int64_t unit) -> Json& {
    auto [place, added] = units.try_emplace(unit, unit_json(f, unit));
    if (added) place->second["criteria"] = Json::array();
    return place->second;
  };
  for (const auto& [name, uncovered] : f.found.uncovered)
    for (int64_t unit : uncovered) entry(unit)["criteria"].push_back(name);
  for (const observers::LowUnit& low : f.found.low_units) {
    Json& unit = entry(low.unit);
    unit["criteria"].push_back("high");
    unit.update(low_unit_json(f, low));
  }
  Json list = Json::array();
  for (auto& [unit, json] : units) list.push_back(std::move(json));
  return list;
}

Json region_json(const CoverageFindings& f, const Region& region) {
  return {{"unit", f.important_unit(region.unit)},
          {"rank", region.rank},
          {"region", region.cluster + 1},
          {"regions", region.clusters},
          {"low", finite(region.low)},
          {"high", finite(region.high)},
          {"training", region.training},
          {"tests", region.tests},
          {"training_inputs", train_ids(f, region.samples)}};
}

Json important_json(const CoverageFindings& f) {
  Json list = Json::array();
  for (const Assessment::Important& important : f.found.important) {
    Json units = Json::array(), untried = Json::array();
    for (const observers::QuantisedUnit& unit : important.units)
      units.push_back({{"unit", f.important_unit(unit.unit)},
                       {"importance", finite(f.profile->facts.importance[size_t(unit.unit)])},
                       {"centroids", unit.clusters.centroids},
                       {"silhouette", finite(unit.clusters.silhouette)}});
    const Combinations& all = important.combinations;
    for (size_t i = 0; i < std::min(CoverageFindings::kShown, all.untried.size()); ++i) {
      Json regions = Json::array();
      for (char cluster : all.untried[i].clusters) regions.push_back(int(cluster) + 1);
      untried.push_back({{"regions", regions},
                         {"training", all.untried[i].training},
                         {"training_inputs", train_ids(f, all.untried[i].samples)}});
    }
    list.push_back({{"m", important.units.size()},
                    {"units", units},
                    {"combinations",
                     {{"possible", count_json(important.figure.total)},
                      {"training", all.training},
                      {"tests", all.tests},
                      {"both", all.both},
                      {"untried", all.untried.size()}}},
                    {"untried", untried}});
  }
  return list;
}

Json surprise_json(const CoverageFindings& f) {
  Json list = Json::array();
  for (const Surprise& surprise : f.found.surprise) {
    Json most = Json::array();
    for (size_t row : most_surprising(surprise.scores))
      most.push_back({{"input", f.test_id(f.found.rows[row].sample)}, {"score", finite(surprise.scores[row])}});
    int64_t scored = 0;
    double sum = 0;
    for (double score : surprise.scores)
      if (std::isfinite(score)) ++scored, sum += score;
    list.push_back({{"name", surprise.name},
                    {"scored", scored},
                    {"mean", scored > 0 ? finite(sum / double(scored)) : Json(nullptr)},
                    {"most", most}});
  }
  return list;
}

Json subset_json(const CoverageFindings& f, const std::optional<Subset>& subset, const std::string& file) {
  if (!subset) return nullptr;
  Json most = Json::array();
  const auto& kept = subset->kept;
  for (size_t i = 0; i < std::min(CoverageFindings::kShown, kept.size()); ++i)
    most.push_back({{"input", f.test_id(f.found.rows[size_t(kept[i].input)].sample)}, {"adds", kept[i].adds}});
  return {
      {"inputs", kept.size()},        {"of", f.found.inputs}, {"add_nothing", f.found.inputs - int64_t(kept.size())},
      {"criteria", subset->criteria}, {"add_most", most},     {"file", file}};
}

}  // namespace

Json coverage_json(const CoverageRequest& request, const CoverageFindings& f) {
  const Assessment& found = f.found;
  Json json = {{"inputs", found.inputs},
               {"data", f.tests->info().spec},
               {"train", f.profile ? Json(f.profile->facts.data) : Json(nullptr)},
               {"train_inputs", f.profile ? Json(f.profile->facts.inputs) : Json(nullptr)},
               {"on", request.on.empty() ? Json(nullptr) : Json(request.on)},
               {"tap", f.space->choice().before_activation ? "pre" : "post"},
               {"unit", f.space->choice().elements ? "element" : "channel"},
               {"as_published", request.published.empty() ? Json(nullptr) : Json(lower(request.published))},
               {"layer", f.layer},
               {"units", f.space->units()}};
  json["criteria"] = Json::array();
  for (const Figure& figure : found.figures) json["criteria"].push_back(figure_json(figure));
  json["layers"] = layers_json(f);
  json["units_uncovered"] = units_json(f);
  json["units_low"] = found.highs_judged ? Json(found.low_units.size()) : Json(nullptr);
  json["low_units"] = Json::array();
  for (size_t i = 0; i < std::min(CoverageFindings::kShown, found.low_units.size()); ++i)
    json["low_units"].push_back(low_unit_json(f, found.low_units[i]));
  json["important"] = important_json(f);
  json["regions"] = found.regions.size();
  json["regions_untried"] = Json::array();
  for (const Region& region : found.regions)
    if (region.tests == 0 && region.training > 0) json["regions_untried"].push_back(region_json(f, region));
  json["subset"] = subset_json(f, found.subset, f.subset_file);
  json["core"] = subset_json(f, found.core, f.run + "/core.txt");
  json["surprise"] = surprise_json(f);
  json["skipped"] = Json::array();
  for (const Skipped& skipped : found.skipped)
    json["skipped"].push_back({{"what", skipped.what}, {"why", skipped.why}});
  json["notes"] = found.notes;
  json["memory"] = {{"bytes", int64_t(found.bytes + (f.profile ? f.profile->bytes(f.profile->facts.inputs) : 0))}};
  json["profile"] = request.profile.empty() ? Json(nullptr) : Json(request.profile);
  json["learned"] = f.learned;
  json["learning_seconds"] = f.learning_seconds;
  json["seconds"] = found.seconds;
  json["scoring_seconds"] = found.scoring_seconds;
  json["next"] = f.next.empty() ? Json::array() : Json::array({f.next});
  json["run"] = f.run;
  return json;
}

void write_subset(const std::string& path, const CoverageFindings& f, const std::optional<Subset>& subset) {
  if (!subset) throw InputError("-o: there is no list of tests to write", "netmend coverage without -o says why.");
  std::vector<int64_t> samples;
  for (const Kept& kept : subset->kept) samples.push_back(f.found.rows[size_t(kept.input)].sample);
  std::sort(samples.begin(), samples.end());
  write_file(path, [&](std::ostream& out) {
    for (int64_t sample : samples) out << sample << "\n";
  });
}

void write_coverage_tables(const std::string& folder, const CoverageFindings& f) {
  std::map<std::string, std::set<int64_t>> uncovered;
  for (const auto& [name, units] : f.found.uncovered) uncovered[name] = {units.begin(), units.end()};
  std::map<int64_t, const observers::LowUnit*> low;
  for (const observers::LowUnit& unit : f.found.low_units) low[unit.unit] = &unit;
  std::vector<std::string> criteria;
  for (const auto& [name, units] : uncovered) criteria.push_back(name);
  write_csv(
      folder + "/units.csv",
      "unit,position,layer,training_low,training_high,training_mean,training_deviation,never_as_high",
      [&](CsvWriter& out) {
        for (int64_t u = 0; u < f.space->units(); ++u) {
          out << f.space->name(u);
          f.space->choice().elements ? out << f.space->position(u) : out << "";
          out << f.space->layers()[f.space->layer_of(u)].name;
          if (f.profile) {
            const observers::UnitRange& range = (*f.profile->ranges())[size_t(u)];
            out << Digits{range.low, 9} << Digits{range.high, 9} << Digits{range.mean, 9}
                << Digits{range.deviation(), 9};
          } else {
            out << ""
                << ""
                << ""
                << "";
          }
          out << int(low.count(u) > 0);
          for (const auto& [name, units] : uncovered) out << int(units.count(u) == 0);
          out.end();
        }
      },
      criteria);
  if (f.found.subset) write_subset(folder + "/subset.txt", f, f.found.subset);
  if (f.found.core) write_subset(folder + "/core.txt", f, f.found.core);
  if (f.found.surprise.empty()) return;
  std::vector<std::string> names;
  for (const Surprise& surprise : f.found.surprise) names.push_back(surprise.name);
  write_csv(
      folder + "/surprise.csv", "sample,id",
      [&](CsvWriter& out) {
        for (size_t row = 0; row < f.found.rows.size(); ++row) {
          const int64_t sample = f.found.rows[row].sample;
          out << sample << f.test_id(sample);
          for (const Surprise& surprise : f.found.surprise) out << Digits{surprise.scores[row], 17, true};
          out.end();
        }
      },
      names);
}

}  // namespace netmend::adequacy
