#include "evidence/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/memory_error.h"
#include "base/text.h"
#include "checks/calibration.h"
#include "evidence/input_table.h"
#include "observers/importance.h"

namespace netmend::evidence {
namespace {

using Json = nlohmann::ordered_json;
using model::ValueId;
using observers::SampleRow;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
/// Of single precision, with the digits that it has: 90, not 89.99999829.
Json single(double value) {
  return std::isfinite(value) ? Json(std::stod(fmt::format("{:.7g}", value))) : Json(nullptr);
}
constexpr int64_t kExplained = 256;  ///< tests whose relevance tells how important units are
constexpr int64_t kFlipsKept = 400;  ///< fixes, and regressions, of the trial repair
constexpr int64_t kFlipsShown = 36;  ///< of these, those that the page shows
constexpr size_t kPairsShown = 12;   ///< of duplicates
constexpr size_t kSuspectedKept = 2000, kSuspectedShown = 48;
constexpr int64_t kTextsRead = 2000;  ///< to count their tokens

Json figure(const stats::Estimate& e) {
  return {{"value", number(e.value)}, {"low", number(e.low)}, {"high", number(e.high)}};
}

class Evidence {
 public:
  Evidence(const checks::Checkup& checkup, const EvidenceOptions& options)
      : checkup_(checkup), seen_(*checkup.seen), options_(options), inputs_(checkup, options) {}

  Json run(const std::vector<findings::Finding>& findings) {
    for (const findings::Finding& finding : findings)
      for (const findings::Shown& shown : finding.inputs) inputs_.show(inputs_.row(shown.split, shown.sample));
    inputs_.add_tests();
    Json json;
    if (seen_.settings.by_class()) classes(json);
    if (checkup_.results.repair.repair) repaired(json);
    show_flips();
    if (seen_.space && seen_.test->units) network(json), tests(json);
    weak_slices(json);
    data(json);
    inputs_.show_failures();  // after what sections speak of: there may be more failures than room
    if (seen_.space) inputs_.add_map(json);
    json["inputs"] = inputs_.to_json();  // last: what is shown wants to have rows
    return json;
  }

 private:
  void classes(Json& json) {
    const auto& result = seen_.test->result;
    json["classes"] = seen_.settings.classes;
    json["per_class"] = Json::array();
    std::vector<int64_t> trained(seen_.settings.classes.size());
    if (seen_.train)
      for (const auto& one : seen_.train->result.per_class)
        trained[size_t(&one - seen_.train->result.per_class.data())] = one.samples;
    for (size_t c = 0; c < result.per_class.size(); ++c) {
      const auto& one = result.per_class[c];
      Json row = {{"name", one.name},
                  {"samples", one.samples},
                  {"correct", one.correct},
                  {"predicted", one.predicted},
                  {"precision", number(one.precision)}};
      row.update(figure(one.samples ? one.range : stats::Estimate{NAN, NAN, NAN}));
      row["value"] = one.samples ? number(one.recall) : Json(nullptr);
      if (seen_.train) row["train"] = trained[c];
      json["per_class"].push_back(std::move(row));
    }
    json["confusion"] = Json::array();
    for (size_t i = 0; i < result.confusion.size(); ++i)
      for (size_t j = 0; j < result.confusion[i].size(); ++j)
        if (result.confusion[i][j] > 0) json["confusion"].push_back({i, j, result.confusion[i][j]});
    const checks::Calibration all = checks::calibration(seen_.test->rows),
                              fine = checks::calibration(seen_.test->rows, 40);
    if (all.count == 0) return;
    Json& confidence = json["confidence"];
    confidence["bins"] = Json::array(), confidence["histogram"] = Json::array();
    for (const checks::CalibrationBin& bin : all.bins)
      if (bin.count > 0)
        confidence["bins"].push_back({{"low", bin.low},
                                      {"high", bin.high},
                                      {"count", bin.count},
                                      {"confidence", bin.confidence},
                                      {"accuracy", double(bin.correct) / double(bin.count)}});
    for (const checks::CalibrationBin& bin : fine.bins)
      confidence["histogram"].push_back(
          {{"low", bin.low}, {"high", bin.high}, {"right", bin.correct}, {"wrong", bin.count - bin.correct}});
    confidence["calibration_error"] = all.ece;
  }

  /// The layers that a value comes from, with no other layer between.
  std::set<size_t> feeding(ValueId value, const std::vector<int>& producers, const std::vector<model::Layer>& layers,
                           std::map<ValueId, std::set<size_t>>& known) const {
    if (value == model::kAbsent) return {};
    if (auto hit = known.find(value); hit != known.end()) return hit->second;
    std::set<size_t> found;
    const int at = producers[size_t(value)];
    for (size_t l = 0; l < layers.size() && at >= 0; ++l)
      if (layers[l].node == at) found = {l};
    if (found.empty() && at >= 0)
      for (ValueId input : seen_.subject().graph.nodes[size_t(at)].inputs)
        found.merge(feeding(input, producers, layers, known));
    return known[value] = found;
  }

  /// Mean relevance of each hidden unit over some tests, as a share of all; empty where an operator has no rule for it.
  void find_importance() {
    try {
      const stream::Subject& tests = seen_.subject();
      stream::Subject some = tests;
      some.data = dataset::subset(tests.data, stream::spread(tests.data->size(), kExplained, 0.5));
      observers::Importance importance(some, seen_.settings, seen_.space->layers());
      stream::Pass pass(some);
      auto watched = pass.watch(importance);
      stream::PassOptions how = seen_.session.pass_options();
      how.quiet = true;
      pass.run(how);
      seen_.session.record(seen_.session.test(), "importance of units", some.data->size(), pass.seconds());
      double all = 0;
      for (size_t l = 0; l < seen_.space->layers().size(); ++l) {
        const at::Tensor sums = observers::importance_of(pass.state(watched), l).clamp_min(0).contiguous();
        importance_.insert(importance_.end(), sums.data_ptr<double>(), sums.data_ptr<double>() + sums.numel());
      }
      for (double value : importance_) all += value;
      for (double& value : importance_) value = all > 0 ? value / all : 0;
      if (int64_t(importance_.size()) != seen_.space->units() || !(all > 0)) importance_.clear();
    } catch (const MemoryError&) {
      throw;
    } catch (const InputError&) {  // some operators have no rule for relevance
      importance_.clear();
    }
  }

  Json layer_importance(const model::Layer& layer) const {
    if (importance_.empty()) return nullptr;
    for (size_t l = 0; l < seen_.space->layers().size(); ++l)
      if (seen_.space->layers()[l].node == layer.node) {
        double sum = 0;
        for (int64_t u = seen_.space->first(l); u < seen_.space->first(l + 1); ++u) sum += importance_[size_t(u)];
        return sum;
      }
    return nullptr;
  }

  void network(Json& json) {
    find_importance();
    const auto& layers = seen_.layers;
    const auto& space = *seen_.space;
    const auto& ranges = *seen_.test->units->ranges();
    const std::vector<int> producers = model::producers(seen_.subject().graph);
    std::map<ValueId, std::set<size_t>> known;
    std::map<std::string, size_t> hidden;
    for (size_t l = 0; l < space.layers().size(); ++l) hidden[space.layers()[l].name] = l;
    std::vector<double> blame(size_t(space.units()), NAN);
    std::vector<int64_t> ranks(size_t(space.units()), 0);
    read_blame(blame, ranks);
    std::vector<double> untested(size_t(space.units()), 0);
    if (seen_.adequacy && seen_.train)
      for (const observers::LowUnit& unit : seen_.adequacy->low_units)
        untested[size_t(unit.unit)] = double(unit.higher) / double(seen_.train->data->size());
    Json rows = Json::array();
    for (size_t l = 0; l < layers.size(); ++l) {
      const model::Layer& layer = layers[l];
      Json from = Json::array();
      for (ValueId input : seen_.subject().graph.nodes[size_t(layer.node)].inputs)
        for (size_t other : feeding(input, producers, layers, known)) from.push_back(layers[other].name);
      int64_t dead = 0, low = 0;
      double most = NAN;
      if (auto hit = hidden.find(layer.name); hit != hidden.end())
        for (int64_t u = space.first(hit->second); u < space.first(hit->second + 1); ++u) {
          dead += ranges[size_t(u)].constant(), low += untested[size_t(u)] > 0;
          if (std::isfinite(blame[size_t(u)]))
            most = std::isfinite(most) ? std::max(most, blame[size_t(u)]) : blame[size_t(u)];
        }
      rows.push_back({{"name", layer.name},
                      {"kind", layer.op},
                      {"shape", shape_text(seen_.subject().graph.constant(layer.weight).sizes())},
                      {"units", layer.units},
                      {"weights", layer.parameters},
                      {"dead", dead},
                      {"blame", number(most)},
                      {"importance", layer_importance(layer)},
                      {"untested", low},
                      {"from", from}});
    }
    json["network"]["layers"] = std::move(rows);
    json["network"]["units"] = Json::array();
    units(json["network"]["units"], blame, ranks, untested);
  }

  void read_blame(std::vector<double>& blame, std::vector<int64_t>& ranks) const {
    if (!checkup_.results.repair.blame || checkup_.results.repair.blame->located.empty()) return;
    const localise::Blame& found = *checkup_.results.repair.blame;
    const auto& ranked = found.located[0].ranking.units;
    const double most = ranked.empty() ? 1 : std::max(ranked[0].score, 1e-12);
    for (size_t r = 0; r < ranked.size(); ++r) {
      const localise::UnitPlace& place = found.places[ranked[r].place];
      for (size_t l = 0; l < seen_.space->layers().size(); ++l) {
        if (seen_.space->layers()[l].node != found.layers[place.layer].node) continue;
        const auto unit = size_t(seen_.space->first(l) + place.unit);
        blame[unit] = std::clamp(ranked[r].score / most, 0.0, 1.0), ranks[unit] = int64_t(r) + 1;
      }
    }
  }

  /// The index of a layer of the space among all layers.
  size_t layer_number(size_t of_space) const {
    for (size_t l = 0; l < seen_.layers.size(); ++l)
      if (seen_.layers[l].node == seen_.space->layers()[of_space].node) return l;
    return 0;
  }

  void units(Json& list, const std::vector<double>& blame, const std::vector<int64_t>& ranks,
             const std::vector<double>& untested) {
    const auto& space = *seen_.space;
    const auto& ranges = *seen_.test->units->ranges();
    const auto& peaks = seen_.test->units->peaks();
    std::vector<int64_t> order;
    for (int64_t u = 0; u < space.units(); ++u) order.push_back(u);
    auto notable = [&](int64_t u) { return std::isfinite(blame[size_t(u)]) ? blame[size_t(u)] : 0.0; };
    if (space.units() > options_.most_units) {
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return notable(a) > notable(b); });
      order.resize(size_t(options_.most_units));
      std::sort(order.begin(), order.end());
    }
    const size_t last = space.layers().size() - 1;
    for (int64_t u : order) {
      const observers::UnitRange& range = ranges[size_t(u)];
      const size_t l = space.layer_of(u);
      Json unit = {{"name", space.name(u)},
                   {"layer", layer_number(l)},
                   {"mean", number(range.mean)},
                   {"sd", number(range.deviation())},
                   {"min", number(range.low)},
                   {"max", number(range.high)},
                   {"zeros", range.seen > 0 ? Json(double(range.zeros) / double(range.seen)) : Json(nullptr)},
                   {"blame", number(blame[size_t(u)])},
                   {"rank", ranks[size_t(u)] ? Json(ranks[size_t(u)]) : Json(nullptr)},
                   {"importance", number(importance_.empty() ? NAN : importance_[size_t(u)])},
                   {"untested", untested[size_t(u)]},
                   {"drivers", Json::array()}};
      for (int64_t n = 0; n < std::min<int64_t>(6, peaks.kept(u)); ++n)
        if (int64_t row = inputs_.find("test", peaks.sample(u, n)); row >= 0) {
          unit["drivers"].push_back(row);
          if (ranks[size_t(u)] > 0 && ranks[size_t(u)] <= 10) inputs_.show(row);
        }
      if (l == last && space.units(last) <= 512) histogram(unit, u - space.first(last), range);
      list.push_back(std::move(unit));
    }
  }

  /// How the unit's values spread over right and wrong predictions, and its mean by class; of the layer that is traced.
  void histogram(Json& unit, int64_t column, const observers::UnitRange& range) const {
    constexpr int64_t kBins = 16;
    const observers::UnitBatch& traces = seen_.test->units->traces();
    if (range.constant()) return;
    std::vector<int64_t> right(kBins), wrong(kBins);
    std::vector<double> sums(seen_.settings.classes.size());
    std::vector<int64_t> counts(sums.size());
    for (int64_t i = 0; i < traces.count(); ++i) {
      const double value = traces.input(i)[column];
      const SampleRow& row = traces.rows[size_t(i)];
      if (!std::isfinite(value)) continue;
      const auto bin =
          std::clamp<int64_t>(int64_t((value - range.low) / (range.high - range.low) * kBins), 0, kBins - 1);
      if (row.right == SampleRow::kWrong)
        ++wrong[size_t(bin)];
      else
        ++right[size_t(bin)];
      if (seen_.settings.by_class() && row.label >= 0 && size_t(row.label) < sums.size())
        sums[size_t(row.label)] += value, ++counts[size_t(row.label)];
    }
    Json edges = Json::array(), means = Json::array();
    for (int64_t b = 0; b <= kBins; ++b) edges.push_back(range.low + (range.high - range.low) * double(b) / kBins);
    for (size_t c = 0; c < sums.size(); ++c)
      means.push_back(counts[c] ? number(sums[c] / double(counts[c])) : Json(nullptr));
    unit["edges"] = edges, unit["right"] = right, unit["wrong"] = wrong;
    if (seen_.settings.by_class() && sums.size() <= 100) unit["by_class"] = means;
  }

  void tests(Json& json) {
    if (!seen_.adequacy) return;
    const adequacy::Assessment& found = *seen_.adequacy;
    Json& tests = json["tests"];
    tests = {{"criteria", Json::array()}, {"growth", Json::array()}, {"untried", Json::array()}};
    for (const observers::Figure& one : found.figures)
      tests["criteria"].push_back({{"name", one.name},
                                   {"value", number(one.value)},
                                   {"covered", number(one.covered)},
                                   {"goals", one.total >= 0 ? number(one.total) : Json(nullptr)},
                                   {"about", adequacy::criterion_row(one.name).asks}});
    int64_t needed = found.inputs;
    if (found.core) {
      needed = int64_t(found.core->kept.size());
      int64_t all = 0, so_far = 0;
      for (const adequacy::Kept& kept : found.core->kept) all += kept.adds;
      const int64_t step = std::max<int64_t>(1, needed / 60);
      for (int64_t i = 0; i < needed; ++i) {
        so_far += found.core->kept[size_t(i)].adds;
        if (i % step == 0 || i + 1 == needed)
          tests["growth"].push_back({{"inputs", i + 1}, {"share", double(so_far) / double(std::max<int64_t>(1, all))}});
      }
    }
    if (found.core) {
      tests["useful_rows"] = Json::array();
      for (size_t i = 0; i < std::min<size_t>(200, found.core->kept.size()); ++i) {
        const int64_t input = found.core->kept[i].input;
        if (input < int64_t(found.rows.size()))
          if (int64_t row = inputs_.find("test", found.rows[size_t(input)].sample); row >= 0)
            tests["useful_rows"].push_back(row);
      }
    }
    tests["needed"] = needed;
    for (size_t i = 0; i < std::min<size_t>(50, found.low_units.size()); ++i) {
      const observers::LowUnit& unit = found.low_units[i];
      Json rows = Json::array();
      for (size_t s = 0; s < std::min<size_t>(6, unit.samples.size()) && i < 12; ++s)
        if (int64_t row = inputs_.row("train", unit.samples[s]); row >= 0) inputs_.show(row), rows.push_back(row);
      tests["untried"].push_back({{"unit", seen_.space->name(unit.unit)},
                                  {"low", unit.tests},
                                  {"high", unit.training},
                                  {"train", unit.higher},
                                  {"rows", rows}});
    }
  }

  /// Inputs whose prediction became right or wrong against the reference.
  void show_flips() {
    if (!seen_.comparison) return;
    int64_t fixes = 0, regressions = 0;
    for (const compare::Flip& flip : seen_.comparison->list)
      if ((flip.change == observers::Change::kFixed ? fixes : regressions)++ < kFlipsShown)
        inputs_.show(inputs_.row("test", flip.sample));
  }

  /// Rules, groups and clusters; which rows belong to which stands in the table of inputs. A rule is judged on the half
  /// of the tests that it was not found on, as in its finding.
  void weak_slices(Json& json) {
    const auto& rows = seen_.test->rows;
    json["slices"] = Json::array();
    auto add = [&](const std::string& name, const char* source, const std::vector<size_t>& members,
                   const slices::Slice* rule = nullptr) {
      // Inputs without a label are neither right nor wrong.
      auto judged = [](const SampleRow& row) {
        return row.right == SampleRow::kWrong || row.right == SampleRow::kRight;
      };
      int64_t wrong = 0, all_wrong = 0, count = 0, all = 0;
      for (size_t row : members) wrong += rows[row].right == SampleRow::kWrong, count += judged(rows[row]);
      for (const SampleRow& row : rows) all_wrong += row.right == SampleRow::kWrong, all += judged(row);
      if (count == 0 || seen_.settings.task == observers::Task::kNumber) return;
      const auto size = double(all);
      Json slice = {{"name", name},
                    {"source", source},
                    {"samples", count},
                    {"failures", wrong},
                    {"elsewhere", count < int64_t(size) ? 1 - double(all_wrong - wrong) / (size - double(count))
                                                        : 1 - double(all_wrong) / size}};
      slice.update(figure(stats::rate(count - wrong, count)));
      if (rule) {
        slice.update(figure({1 - rule->here.value, 1 - rule->here.high, 1 - rule->here.low}));
        slice["elsewhere"] = 1 - rule->rest.value, slice["held_out"] = rule->judged_on;
      }
      inputs_.add_slice(json["slices"].size(), members);
      json["slices"].push_back(std::move(slice));
    };
    for (const slices::Slice& slice : checkup_.results.slices) add(slice.words, "rule", slice.rows, &slice);
    const auto& info = seen_.test->data->info();
    std::map<std::pair<size_t, std::string>, std::vector<size_t>> groups;
    if (!info.groups.empty())
      for (size_t row = 0; row < rows.size(); ++row) {
        const auto own = seen_.test->data->groups(rows[row].sample);
        for (size_t g = 0; g < own.size(); ++g) groups[{g, own[g]}].push_back(row);
      }
    for (const auto& [at, members] : groups)
      if (members.size() >= 20 && json["slices"].size() < 60)
        add(info.groups[at.first] + "=" + at.second, "group", members);
    std::map<int64_t, std::vector<size_t>> clusters;
    for (size_t row = 0; row < checkup_.results.clusters.size(); ++row)
      if (checkup_.results.clusters[row] >= 0) clusters[checkup_.results.clusters[row]].push_back(row);
    for (const auto& [number, members] : clusters)
      if (json["slices"].size() < 80) add(fmt::format("failure cluster {}", number + 1), "cluster", members);
    if (json["slices"].empty()) json.erase("slices");
  }

  /// How long texts are and how much of them the vocabulary knows, of evenly spread ones.
  Json tokens(const checks::ObservedSplit& split) const {
    const dataset::Feature& feature = split.data->info().features[0];
    int64_t all = 0, unknown = 0;
    const std::vector<int64_t> looked = stream::spread(split.data->size(), kTextsRead);
    for (size_t begin = 0; begin < looked.size(); begin += 256) {
      const std::span samples(looked.data() + begin, std::min<size_t>(256, looked.size() - begin));
      const dataset::Batch batch = split.data->read(samples);
      for (int64_t i = 0; i < batch.count(); ++i) {
        const at::Tensor mask = batch.masks.empty() || !batch.masks[0].defined() ? at::Tensor() : batch.masks[0][i];
        for (int64_t token : census::tokens_of(feature, batch.inputs[0][i], mask))
          ++all, unknown += token == feature.unknown;
      }
    }
    const double texts = double(std::max<size_t>(1, looked.size()));
    return {{"split", split.name},
            {"unknown", feature.unknown >= 0 && all > 0 ? Json(double(unknown) / double(all)) : Json(nullptr)},
            {"mean_length", double(all) / texts}};
  }

  void data(Json& json) {
    Json& data = json["data"];
    data = {{"splits", Json::array()},
            {"ranges", Json::array()},
            {"duplicates", Json::array()},
            {"suspected", Json::array()}};
    for (const checks::ObservedSplit* split : {&*seen_.test, seen_.train ? &*seen_.train : nullptr}) {
      if (!split || !split->census) continue;
      const checks::ObservedSplit& of = *split;
      const census::CensusState& seen = *of.census;
      std::vector<int64_t> classes(seen_.settings.by_class() ? seen_.settings.classes.size() : 0);
      for (float label : seen.labels)
        if (label >= 0 && size_t(label) < classes.size()) ++classes[size_t(label)];
      data["splits"].push_back({{"name", of.name}, {"size", of.data->size()}, {"classes", classes}});
      if (of.data->info().features[0].type == at::kLong) {
        data["words"].push_back(tokens(of));
        continue;  // token ids have no order, and so no range
      }
      for (size_t c = 0; c < seen.moments.size() && c < 400; ++c) {
        const census::ColumnMoments& column = seen.moments[c];
        const auto& names = seen.form().columns;
        data["ranges"].push_back({{"split", of.name},
                                  {"name", c < names.size() ? names[c] : ""},
                                  {"min", single(column.low())},
                                  {"max", single(column.high())},
                                  {"mean", number(column.mean())},
                                  {"sd", number(column.deviation())},
                                  {"missing", column.not_finite}});
      }
    }
    for (const findings::Finding& finding : checkup_.results.findings)
      if (finding.kind == "duplicates" || finding.kind == "split-leak") {
        Json row = {
            {"where", finding.where}, {"exact", 0}, {"near", 0}, {"effect", finding.brief}, {"pairs", Json::array()}};
        for (const auto& list : checkup_.results.duplicates)
          for (const auto& [a, b] : list.pairs)
            if (list.where == finding.where) {
              const int64_t one = inputs_.row(a.split, a.sample), other = inputs_.row(b.split, b.sample);
              row["pairs"].push_back({one, other});
              if (row["pairs"].size() <= kPairsShown) inputs_.show(one), inputs_.show(other);
            }
        if (finding.numbers.contains("same")) row["exact"] = finding.numbers["same"];
        if (finding.numbers.contains("near")) row["near"] = finding.numbers["near"];
        data["duplicates"].push_back(std::move(row));
      }
    for (size_t i = 0; i < std::min(kSuspectedKept, checkup_.results.label_issues.size()); ++i) {
      const selection::LabelIssue& issue = checkup_.results.label_issues[i];
      const int64_t row = inputs_.row("test", issue.sample);
      if (i < kSuspectedShown) inputs_.show(row);
      data["suspected"].push_back(
          {{"row", row}, {"given", issue.given}, {"likely", issue.suggested}, {"confidence", issue.confidence}});
    }
  }

  void repaired(Json& json) {
    const repair::Outcome& outcome = *checkup_.results.repair.repair;
    auto metric = [](const repair::Evaluation& of) {
      return of.result.metrics.empty() ? figure({NAN, NAN, NAN}) : figure(of.result.metrics[0].estimate);
    };
    Json& repair = json["repair"];
    repair = {{"about", checkup_.results.repair.repaired},
              {"verdict", verdict_name(outcome.verdict)},
              {"reason", outcome.reason},
              {"method", outcome.chosen >= 0 ? outcome.tried[size_t(outcome.chosen)].method : ""},
              {"before", metric(outcome.before)},
              {"after", metric(outcome.after)},
              {"change", figure(outcome.flips.change())},
              {"fixed", outcome.flips.fixed},
              {"broken", outcome.flips.broken},
              {"p", number(outcome.p)},
              {"inputs", checkup_.results.repair.holdout},
              {"per_class", Json::array()},
              {"edits", Json::array()},
              {"alternatives", Json::array()},
              {"flips", Json::array()}};
    for (size_t c = 0; c < outcome.per_class.size() && c < seen_.settings.classes.size(); ++c)
      repair["per_class"].push_back({{"name", seen_.settings.classes[c]},
                                     {"fixed", outcome.per_class[c].fixed},
                                     {"broken", outcome.per_class[c].broken}});
    for (const repair::Tried& one : outcome.tried)
      repair["alternatives"].push_back(
          {{"method", one.method},
           {"change", double(one.fixed - one.broken) / double(std::max<int64_t>(1, checkup_.results.repair.holdout))},
           {"fixed", one.fixed},
           {"broken", one.broken},
           {"seconds", one.seconds},
           {"why_not", one.why_not}});
    if (outcome.chosen >= 0 && outcome.tried[size_t(outcome.chosen)].best) {
      const repair::Candidate& best = *outcome.tried[size_t(outcome.chosen)].best;
      std::map<std::string, double> moved;
      for (const edits::Edit& edit : best.edits)
        for (size_t i = 0; i < edit.after.size(); ++i) moved[edit.unit] += std::pow(edit.after[i] - edit.before[i], 2);
      for (const std::string& unit : best.units)
        repair["edits"].push_back(
            {{"unit", unit}, {"words", best.words}, {"distance", number(std::sqrt(moved[unit]))}});
    }
    int64_t fixes = 0, regressions = 0;
    for (const repair::Flipped& flip : outcome.list)
      if (int64_t& count = flip.fixed ? fixes : regressions; count < kFlipsKept) {
        const int64_t row = inputs_.row("test", flip.sample);
        if (row < 0) continue;
        repair["flips"].push_back(
            {{"row", row}, {"fixed", flip.fixed}, {"before", number(flip.before)}, {"after", number(flip.after)}});
        if (count++ < kFlipsShown) inputs_.show(row);
      }
  }

  const checks::Checkup& checkup_;
  const checks::Observed& seen_;
  const EvidenceOptions& options_;
  InputTable inputs_;
  std::vector<double> importance_;  ///< of hidden units
};

}  // namespace

Json evidence(const checks::Checkup& checkup, const std::vector<findings::Finding>& findings,
              const EvidenceOptions& options) {
  return Evidence(checkup, options).run(findings);
}

}  // namespace netmend::evidence
