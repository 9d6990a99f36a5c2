#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "netmend/coverage.h"
#include "netmend/show.h"
#include "observers/sample_table.h"

namespace netmend::app {
namespace {

using adequacy::Assessment;
using adequacy::Region;
using observers::Figure;

constexpr size_t kShown = 10;

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

/// Counts as whole numbers where they are some; totals may be beyond them.
Json count_json(double value) {
  if (value < 0 || !std::isfinite(value)) return nullptr;
  return value == std::floor(value) && value < 9e15 ? Json(int64_t(value)) : Json(value);
}

std::string test_id(const CoverageFindings& f, int64_t sample) { return f.tests->id(sample); }
std::string train_id(const CoverageFindings& f, int64_t sample) {
  return f.train && sample < f.train->size() ? f.train->id(sample) : std::to_string(sample);
}

Json train_ids(const CoverageFindings& f, const std::vector<int64_t>& samples) {
  Json list = Json::array();
  for (int64_t sample : samples) list.push_back(train_id(f, sample));
  return list;
}

std::string unit_of(const CoverageFindings& f, int64_t unit_in_layer) {
  return model::unit_name(f.space->layers().back(), unit_in_layer);
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
               {"covered", figure.name == "NLC" ? Json(nullptr) : count_json(figure.covered)},
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
      if (figure.name != "MCDC" && l < figure.layers.size()) {
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
    unit["high_in_tests"] = finite(low.tests);
    unit["high_in_training"] = finite(low.training);
    unit["training_inputs_above"] = low.higher;
    unit["training_inputs"] = train_ids(f, low.samples);
  }
  Json list = Json::array();
  for (auto& [unit, json] : units) list.push_back(std::move(json));
  return list;
}

Json region_json(const CoverageFindings& f, const Region& region) {
  return {{"unit", unit_of(f, region.unit)},
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
      units.push_back({{"unit", unit_of(f, unit.unit)},
                       {"importance", finite(f.profile->facts.importance[size_t(unit.unit)])},
                       {"centroids", unit.clusters.centroids},
                       {"silhouette", finite(unit.clusters.silhouette)}});
    const adequacy::Combinations& all = important.combinations;
    for (size_t i = 0; i < std::min(kShown, all.untried.size()); ++i) {
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

/// Rows of the highest finite scores.
std::vector<size_t> most_surprising(const std::vector<double>& scores) {
  std::vector<size_t> rows;
  for (size_t row = 0; row < scores.size(); ++row)
    if (std::isfinite(scores[row])) rows.push_back(row);
  const size_t shown = std::min(kShown, rows.size());
  std::partial_sort(rows.begin(), rows.begin() + std::ptrdiff_t(shown), rows.end(),
                    [&](size_t a, size_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  rows.resize(shown);
  return rows;
}

Json surprise_json(const CoverageFindings& f) {
  Json list = Json::array();
  for (const adequacy::Surprise& surprise : f.found.surprise) {
    Json most = Json::array();
    for (size_t row : most_surprising(surprise.scores))
      most.push_back({{"input", test_id(f, f.found.rows[row].sample)}, {"score", finite(surprise.scores[row])}});
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

Json subset_json(const CoverageFindings& f, const std::optional<adequacy::Subset>& subset, const std::string& file) {
  if (!subset) return nullptr;
  Json most = Json::array();
  const auto& kept = subset->kept;
  for (size_t i = 0; i < std::min(kShown, kept.size()); ++i)
    most.push_back({{"input", test_id(f, f.found.rows[size_t(kept[i].input)].sample)}, {"adds", kept[i].adds}});
  return {
      {"inputs", kept.size()},        {"of", f.found.inputs}, {"add_nothing", f.found.inputs - int64_t(kept.size())},
      {"criteria", subset->criteria}, {"add_most", most},     {"file", file}};
}

std::string percent(double value) {
  if (value > 0 && value < 0.0005) return "< 0.1 %";
  return fmt::format("{:.1f} %", 100 * value);
}

std::string amount(double value) { return value < 1e15 ? with_commas(int64_t(value)) : fmt::format("{:.2g}", value); }

/// A label and what is to say about it, folded to the width of a page.
void print_item(const std::string& label, const std::string& text) {
  constexpr size_t kWidth = 98, kIndent = 13;
  std::string line = fmt::format("  {:<11}", label);
  size_t used = kIndent;
  bool first = true;
  for (const std::string& word : split(text, ' ')) {
    size_t width = 0;  // characters, not bytes
    for (char c : word) width += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (!first && used + 1 + width > kWidth) {
      fmt::print("{}\n", line);
      line = std::string(kIndent, ' ') + word;
      used = kIndent + width;
      continue;
    }
    line += (first ? "" : " ") + word;
    used += width + !first;
    first = false;
  }
  fmt::print("{}\n", line);
}

void print_figures(const CoverageFindings& f) {
  fmt::print("\n    {:<6}{:<54}{:>19}\n", "", "what it wants tried", "tried");
  for (const Figure& figure : f.found.figures) {
    std::string asks(adequacy::criterion_row(figure.name).asks);
    if (figure.name == "IDC")
      asks = fmt::format("combinations of the {:.0f} most important units of {}", figure.parameters[0].number,
                         printable(f.layer));
    std::string tried = figure.name == "NLC" ? "" : amount(figure.covered);
    if (figure.total >= 0) tried += " of " + amount(figure.total);
    std::string share = figure.total >= 0      ? percent(figure.value)
                        : figure.name == "NLC" ? fmt::format("{:.4g}", figure.value)
                                               : "";
    std::string line = fmt::format("    {:<6}{:<54}{:>19}  {:>9}", figure.name,
                                   asks.size() > 53 ? asks.substr(0, 50) + "..." : asks, tried, share);
    line.resize(line.find_last_not_of(' ') + 1);
    fmt::print("{}\n", line);
  }
}

std::string some_ids(const CoverageFindings& f, const std::vector<int64_t>& samples) {
  std::vector<std::string> ids;
  for (size_t i = 0; i < std::min<size_t>(3, samples.size()); ++i) ids.push_back(printable(train_id(f, samples[i])));
  return join(ids, ", ");
}

std::vector<const Region*> untried_regions(const CoverageFindings& f) {
  std::vector<const Region*> untried;
  for (const Region& region : f.found.regions)
    if (region.tests == 0 && region.training > 0) untried.push_back(&region);
  std::stable_sort(untried.begin(), untried.end(), [](auto* a, auto* b) { return a->training > b->training; });
  return untried;
}

/// How much of what training shows the tests show too, in a sentence.
std::string verdict(const CoverageFindings& f) {
  if (f.found.important.empty()) return "";
  const adequacy::Combinations& all = f.found.important.front().combinations;
  const size_t untried = untried_regions(f).size();
  const double share = all.training > 0 ? double(all.both) / double(all.training) : 1;
  const std::string missing =
      untried == 0 ? "" : fmt::format("; {} of important units untried", counted(int64_t(untried), "value region"));
  const char* how = share >= 0.9 ? "nearly all" : share >= 0.6 ? "most" : share >= 0.3 ? "part" : "little";
  if (share >= 1 && untried == 0) return "Tests show what training shows.";
  return fmt::format("Tests show {} of what training shows{}.", how, missing);
}

void print_untried(const CoverageFindings& f) {
  const std::vector<const Region*> untried = untried_regions(f);
  if (!f.found.regions.empty() && untried.empty())
    print_item("regions",
               fmt::format("tests reach all {} value regions of the {} most important units of {}",
                           f.found.regions.size(), f.found.important.back().units.size(), printable(f.layer)));
  for (size_t i = 0; i < std::min<size_t>(3, untried.size()); ++i)
    print_item(i == 0 ? "regions" : "",
               fmt::format("{} from {:.3g} to {:.3g}: no test, {} training inputs (such as {})",
                           printable(unit_of(f, untried[i]->unit)), untried[i]->low, untried[i]->high,
                           with_commas(untried[i]->training), some_ids(f, untried[i]->samples)));
  if (untried.size() > 3) print_item("", fmt::format("and {} more", counted(int64_t(untried.size()) - 3, "region")));
  if (f.found.important.empty()) return;
  const Assessment::Important& first = f.found.important.front();
  const adequacy::Combinations& all = first.combinations;
  print_item("combined",
             fmt::format("training shows {} of {} units, tests show {} of them{}", counted(all.training, "combination"),
                         first.units.size(), with_commas(all.both),
                         all.tests > all.both ? fmt::format(" and {} new", with_commas(all.tests - all.both)) : ""));
  for (size_t i = 0; i < std::min<size_t>(2, all.untried.size()); ++i)
    print_item("", fmt::format("untried: {} like {}", counted(all.untried[i].training, "training input"),
                               some_ids(f, all.untried[i].samples)));
}

/// `conv1/3`, or `conv1/3 at 31` where each position counts.
std::string unit_words(const CoverageFindings& f, int64_t unit) {
  return f.space->name(unit) + (f.space->choice().elements ? fmt::format(" at {}", f.space->position(unit)) : "");
}

void print_low_units(const CoverageOptions& options, const CoverageFindings& f) {
  if (!f.profile || !options.on.empty()) return;
  if (!f.found.highs_judged)
    return print_item("highs", "too few tests to tell whether they drive units as high as training does");
  const auto& low = f.found.low_units;
  if (low.empty())
    return print_item("highs",
                      fmt::format("all {} are driven about as high as in training", counted(f.space->units(), "unit")));
  print_item("highs", fmt::format("{} of {} {} never driven as high as in training", low.size(),
                                  counted(f.space->units(), "unit"), low.size() == 1 ? "is" : "are"));
  for (size_t i = 0; i < std::min<size_t>(2, low.size()); ++i)
    print_item("", fmt::format("{}: tests up to {:.3g}, {}{} training inputs above that (such as {})",
                               printable(unit_words(f, low[i].unit)), low[i].tests,
                               low[i].higher == observers::Peaks::kKept ? "at least " : "", low[i].higher,
                               some_ids(f, low[i].samples)));
}

std::string first_kept(const CoverageFindings& f, const std::vector<adequacy::Kept>& kept) {
  std::vector<std::string> ids;
  for (size_t i = 0; i < std::min<size_t>(5, kept.size()); ++i)
    ids.push_back(printable(test_id(f, f.found.rows[size_t(kept[i].input)].sample)));
  return join(ids, ", ");
}

void print_inputs(const CoverageFindings& f) {
  if (f.found.subset && !f.found.subset->kept.empty()) {
    const auto& kept = f.found.subset->kept;
    const int64_t spare = f.found.inputs - int64_t(kept.size());
    const std::string what =
        spare == 0 ? fmt::format("all {} add something", with_commas(f.found.inputs))
                   : fmt::format("{} of {} try all that the others do; {} add nothing new",
                                 with_commas(int64_t(kept.size())), with_commas(f.found.inputs), with_commas(spare));
    print_item("tests", what + ". Most is added by " + first_kept(f, kept));
  }
  if (f.found.core && !f.found.core->kept.empty())
    print_item("", fmt::format("for {} alone {} are enough", join(f.found.core->criteria, ", "),
                               with_commas(int64_t(f.found.core->kept.size()))));
  const auto& kinds = f.found.surprise;
  auto chosen = std::find_if(kinds.begin(), kinds.end(), [](const auto& kind) { return kind.name == "DSA"; });
  if (chosen == kinds.end()) chosen = kinds.begin();
  if (chosen != kinds.end()) {
    const adequacy::Surprise& surprise = *chosen;
    std::vector<std::string> ids;
    for (size_t row : most_surprising(surprise.scores))
      if (ids.size() < 5 && surprise.scores[row] != 0)
        ids.push_back(
            fmt::format("{} ({:.3g})", printable(test_id(f, f.found.rows[row].sample)), surprise.scores[row]));
    if (!ids.empty()) print_item("surprise", "least like training: " + join(ids, ", "));
  }
}

void print_skipped(const CoverageFindings& f) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const adequacy::Skipped& skipped : f.found.skipped) by_reason[skipped.why].push_back(skipped.what);
  for (const auto& [why, what] : by_reason) print_item("skipped", printable(why) + ": " + join(what, ", "));
}

}  // namespace

Json coverage_json(const CoverageOptions& options, const CoverageFindings& f) {
  const Assessment& found = f.found;
  Json json = {{"inputs", found.inputs},
               {"data", f.tests->info().spec},
               {"train", f.profile ? Json(f.profile->facts.data) : Json(nullptr)},
               {"train_inputs", f.profile ? Json(f.profile->facts.inputs) : Json(nullptr)},
               {"on", options.on.empty() ? Json(nullptr) : Json(options.on)},
               {"tap", f.space->choice().before_activation ? "pre" : "post"},
               {"unit", f.space->choice().elements ? "element" : "channel"},
               {"as_published", options.published.empty() ? Json(nullptr) : Json(lower(options.published))},
               {"layer", f.layer},
               {"units", f.space->units()}};
  json["criteria"] = Json::array();
  for (const Figure& figure : found.figures) json["criteria"].push_back(figure_json(figure));
  json["layers"] = layers_json(f);
  json["units_uncovered"] = units_json(f);
  json["units_low"] = found.highs_judged ? Json(found.low_units.size()) : Json(nullptr);
  json["important"] = important_json(f);
  json["regions_untried"] = Json::array();
  for (const Region& region : found.regions)
    if (region.tests == 0 && region.training > 0) json["regions_untried"].push_back(region_json(f, region));
  json["subset"] = subset_json(f, found.subset, f.subset_file);
  json["core"] = subset_json(f, found.core, f.run + "/core.txt");
  json["surprise"] = surprise_json(f);
  json["skipped"] = Json::array();
  for (const adequacy::Skipped& skipped : found.skipped)
    json["skipped"].push_back({{"what", skipped.what}, {"why", skipped.why}});
  json["notes"] = found.notes;
  json["memory"] = {{"bytes", int64_t(found.bytes + (f.profile ? f.profile->bytes(f.profile->facts.inputs) : 0))}};
  json["profile"] = options.profile.empty() ? Json(nullptr) : Json(options.profile);
  json["learned"] = f.learned;
  json["learning_seconds"] = f.learning_seconds;
  json["seconds"] = found.seconds;
  json["scoring_seconds"] = found.scoring_seconds;
  json["next"] = f.next.empty() ? Json::array() : Json::array({f.next});
  json["run"] = f.run;
  return json;
}

void print_coverage(const CoverageOptions& options, const CoverageFindings& f) {
  std::string against = f.profile ? fmt::format("   training {} ({})", with_commas(f.profile->facts.inputs),
                                                printable(f.profile->facts.data))
                                  : "";
  fmt::print("  {} · {}   tests {} ({}){}\n", counted(int64_t(f.space->layers().size()), "layer"),
             counted(f.space->units(), "unit"), with_commas(f.found.inputs), printable(f.tests->info().spec), against);
  if (!options.published.empty()) fmt::print("  figures as {} publishes them\n", lower(options.published));
  if (std::string sentence = verdict(f); !sentence.empty()) fmt::print("\n  {}\n", sentence);
  print_figures(f);
  fmt::print("\n");
  print_untried(f);
  print_low_units(options, f);
  print_inputs(f);
  for (const std::string& note : f.found.notes) print_item("note", printable(note));
  print_skipped(f);
  fmt::print("\n");
  print_item("files", fmt::format("{}/: units.csv{}{}", f.run, f.found.subset ? ", subset.txt (tests to keep)" : "",
                                  f.found.surprise.empty() ? "" : ", surprise.csv"));
  if (!f.next.empty()) fmt::print("  next       {}\n", f.next);
}

void write_subset(const std::string& path, const CoverageFindings& f, const std::optional<adequacy::Subset>& subset) {
  if (!subset) throw InputError("-o: there is no list of tests to write", "netmend coverage without -o says why.");
  std::vector<int64_t> samples;
  for (const adequacy::Kept& kept : subset->kept) samples.push_back(f.found.rows[size_t(kept.input)].sample);
  std::sort(samples.begin(), samples.end());
  write_file(path, [&](std::ostream& out) {
    for (int64_t sample : samples) out << sample << "\n";
  });
}

void write_coverage_tables(const std::string& folder, const CoverageFindings& f) {
  using observers::csv_field;
  std::map<std::string, std::set<int64_t>> uncovered;
  for (const auto& [name, units] : f.found.uncovered) uncovered[name] = {units.begin(), units.end()};
  std::map<int64_t, const observers::LowUnit*> low;
  for (const observers::LowUnit& unit : f.found.low_units) low[unit.unit] = &unit;
  write_file(folder + "/units.csv", [&](std::ostream& out) {
    out << "unit,position,layer,training_low,training_high,training_mean,training_deviation,never_as_high";
    for (const auto& [name, units] : uncovered) out << "," << name;
    out << "\n";
    for (int64_t u = 0; u < f.space->units(); ++u) {
      out << csv_field(f.space->name(u)) << ",";
      if (f.space->choice().elements) out << f.space->position(u);
      out << "," << csv_field(f.space->layers()[f.space->layer_of(u)].name);
      if (f.profile) {
        const observers::UnitRange& range = (*f.profile->ranges())[size_t(u)];
        out << fmt::format(",{:.9g},{:.9g},{:.9g},{:.9g}", range.low, range.high, range.mean, range.deviation());
      } else {
        out << ",,,,";
      }
      out << "," << int(low.count(u) > 0);
      for (const auto& [name, units] : uncovered) out << "," << int(units.count(u) == 0);
      out << "\n";
    }
  });
  if (f.found.subset) write_subset(folder + "/subset.txt", f, f.found.subset);
  if (f.found.core) write_subset(folder + "/core.txt", f, f.found.core);
  if (f.found.surprise.empty()) return;
  write_file(folder + "/surprise.csv", [&](std::ostream& out) {
    out << "sample,id";
    for (const adequacy::Surprise& surprise : f.found.surprise) out << "," << surprise.name;
    out << "\n";
    for (size_t row = 0; row < f.found.rows.size(); ++row) {
      const int64_t sample = f.found.rows[row].sample;
      out << sample << "," << csv_field(test_id(f, sample));
      for (const adequacy::Surprise& surprise : f.found.surprise)
        out << (std::isfinite(surprise.scores[row]) ? fmt::format(",{:.17g}", surprise.scores[row]) : ",");
      out << "\n";
    }
  });
}

}  // namespace netmend::app
