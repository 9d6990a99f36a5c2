#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "stats/bootstrap.h"
#include "stats/comparisons.h"
#include "stats/distributions.h"
#include "studies/deepimportance.h"
#include "studies/deepimportance_paper.h"

namespace netmend::studies {

using trials::trial_document;

using Json = nlohmann::ordered_json;

namespace {

const std::vector<std::string> kRivals = {"NC", "KMNC", "NBC", "SNAC", "TKNC", "LSC", "DSC", "NLC"};
const std::vector<std::string> kSets3 = {"U_O", "U_S", "U_DI"};
const std::vector<std::string> kSets4 = {"U_O", "+S", "+FGSM", "+BIM", "+JSMA", "+CW"};
const std::vector<std::string> kAttacks = {"+FGSM", "+BIM", "+JSMA", "+CW"};

/// Means and deviations over runs.
struct Spread {
  double mean = NAN, sd = NAN;  ///< of one run there is no deviation
};
Spread spread(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto n = double(values.size());
  Spread found{std::accumulate(values.begin(), values.end(), 0.0) / n};
  double squares = 0;
  for (double x : values) squares += (x - found.mean) * (x - found.mean);
  if (values.size() > 1) found.sd = std::sqrt(squares / (n - 1));
  return found;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json json_of(const Spread& found, double factor = 1) {
  return {{"mean", number(found.mean * factor)}, {"sd", number(found.sd * factor)}};
}
Json json_of(const std::optional<paper::Figure>& figure) {
  if (!figure) return nullptr;
  return {{"mean", figure->mean}, {"sd", figure->sd < 0 ? Json(nullptr) : Json(figure->sd)}};
}
Json json_of(const std::optional<double>& value) { return value ? Json{{"mean", *value}} : Json(nullptr); }

/// What the trials of one model found.
class Trials {
 public:
  Trials(const Store& store, const std::string& prefix, std::string model, int64_t runs) : model(std::move(model)) {
    for (int64_t run = 1; run <= runs; ++run)
      for (const std::string& trial : deepimportance_trials())
        if (auto text = store.find(fmt::format("{}|{}|{}|{}", prefix, this->model, run, trial)))
          found_[trial][run] = trial_document(trial, *text).json();
  }
  /// A number of a trial by its path, by run.
  std::map<int64_t, double> by_run(const std::string& trial, const std::string& path) const {
    std::map<int64_t, double> values;
    if (auto all = found_.find(trial); all != found_.end())
      for (const auto& [run, one] : all->second)
        if (Json::json_pointer at("/" + path); one.contains(at) && one[at].is_number()) values[run] = one[at];
    return values;
  }
  Spread of(const std::string& trial, const std::string& path) const {
    std::vector<double> values;
    for (const auto& [run, value] : by_run(trial, path)) values.push_back(value);
    return spread(values);
  }
  /// Another value minus one, in the runs that have both.
  std::map<int64_t, double> difference(const std::string& more_trial, const std::string& more,
                                       const std::string& less_trial, const std::string& less,
                                       double factor = 1) const {
    const std::map<int64_t, double> a = by_run(more_trial, more), b = by_run(less_trial, less);
    std::map<int64_t, double> apart;
    for (const auto& [run, value] : a)
      if (auto other = b.find(run); other != b.end()) apart[run] = factor * (value - other->second);
    return apart;
  }
  const std::map<int64_t, Json>& all(const std::string& trial) const {
    static const std::map<int64_t, Json> none;
    auto at = found_.find(trial);
    return at == found_.end() ? none : at->second;
  }
  bool empty() const { return found_.empty(); }
  /// Where table 4 has surprise from: of the set alone, as the program has it, or with the tests.
  std::string surprise() const {
    for (const auto& [run, one] : all("network"))
      if (one.value("surprise_alone", false)) return "alone/";
    return "figures/";
  }
  std::string model;

 private:
  std::map<std::string, std::map<int64_t, Json>> found_;
};

std::string where_table4_has(const Trials& t, const std::string& criterion) {
  if (criterion.starts_with("IDC")) return "figures/" + criterion;
  return (criterion == "LSC" || criterion == "DSC" ? t.surprise() : "whole/") + criterion;
}

/// A conclusion, put to every case it speaks of: differences that are above 0 where it holds, by network. Each network
/// counts as one observation, with the mean of its cases.
class Claim {
 public:
  Claim(std::string id, std::string text) : id_(std::move(id)), text_(std::move(text)) {}
  void want(const std::string& model, const std::map<int64_t, double>& by_run, const std::string& where) {
    if (by_run.empty()) return;
    double sum = 0;
    for (const auto& [run, difference] : by_run) {
      sum += difference;
      auto& [total, count] = networks_[{model, run}];
      total += difference, ++count;
    }
    const double mean = sum / double(by_run.size());
    ++cases_, held_ += mean > 0;
    if (!(mean > 0)) against_.push_back(fmt::format("{} ({:+.3g})", where, mean));
  }
  Json json() const {
    std::vector<double> means;
    for (const auto& [network, total] : networks_) means.push_back(total.first / double(total.second));
    Json json = {{"id", id_}, {"claim", text_}, {"held", held_}, {"cases", cases_}, {"networks", means.size()}};
    const Spread all = spread(means);
    const double half = means.size() > 1
                            ? stats::t_quantile_95(double(means.size()) - 1) * all.sd / std::sqrt(double(means.size()))
                            : NAN;
    json["mean"] = number(all.mean), json["low"] = number(all.mean - half), json["high"] = number(all.mean + half);
    json["p"] = means.size() > 1 ? number(stats::paired_t_test(means).p) : Json(nullptr);
    json["verdict"] = verdict(all.mean - half, all.mean + half, means.size());
    json["against"] = against_;
    return json;
  }

 private:
  std::string verdict(double low, double high, size_t networks) const {
    if (cases_ == 0) return "not tested";
    if (networks < 3) return held_ == cases_ ? "holds in each case" : held_ == 0 ? "holds in no case" : "unclear";
    if (low > 0) return held_ == cases_ ? "holds" : "holds on average";
    return high < 0 ? "does not hold" : "not shown";
  }
  std::string id_, text_;
  int64_t cases_ = 0, held_ = 0;
  std::vector<std::string> against_;
  std::map<std::pair<std::string, int64_t>, std::pair<double, int64_t>> networks_;
};

/// One protocol.
class Report {
 public:
  explicit Report(std::vector<Trials> models) : models_(std::move(models)) {}

  Json json() {
    Json json;
    json["networks"] = Json::array();
    for (const Trials& t : models_)
      json["networks"].push_back({{"model", t.model},
                                  {"runs", t.all("network").size()},
                                  {"parameters", number(t.of("network", "parameters").mean)},
                                  {"tests", number(t.of("network", "tests").mean)},
                                  {"training", number(t.of("network", "training").mean)},
                                  {"attacked", number(t.of("+CW", "inputs").mean)},
                                  {"accuracy", json_of(t.of("network", "accuracy"), 100)},
                                  {"paper", json_of(paper::accuracy(t.model))}});
    json["table2"] = table2(), json["table3"] = table3(), json["sets"] = sets(), json["table4"] = table4();
    json["table5"] = table5(), json["correlation"] = correlation(), json["switches"] = switches();
    json["conclusions"] = Json::array();
    for (const Claim& claim : claims_) json["conclusions"].push_back(claim.json());
    return json;
  }

 private:
  Json table2() {
    Json rows = Json::array();
    Claim react("important-react", "important units react more than random ones"),
        scaled("important-react-scaled", "so they do by each unit's own deviation (not in the paper)");
    for (const Trials& t : models_) {
      if (t.all("reaction").empty()) continue;
      auto ratio = [&](const char* random) {
        return t.of("reaction", "important/mean").mean / t.of("reaction", random).mean;
      };
      auto over_classes = [&](const std::string& key) {
        double important = 0, random = 0;
        for (const auto& [run, one] : t.all("reaction"))
          for (const Json& row : one.value(key, Json::array()))
            important += row["important"]["mean"].get<double>(), random += row["random_mean"]["mean"].get<double>();
        return important / random;
      };
      for (const char* units : {"random", "important"}) {
        Json row = {{"model", t.model}, {"units", units}};
        row["ours"] = {{"mean", number(t.of("reaction", fmt::format("{}/mean", units)).mean)},
                       {"sd", number(t.of("reaction", fmt::format("{}/sd", units)).mean)}};
        row["by_own_deviation"] = number(t.of("reaction", fmt::format("{}_scaled/mean", units)).mean);
        row["paper"] = json_of(paper::reaction(t.model, units));
        if (units[0] == 'i') {
          const auto a = paper::reaction(t.model, "important"), b = paper::reaction(t.model, "random");
          row["ratio"] = number(ratio("random/mean")), row["ratio_draws"] = number(ratio("random_mean/mean"));
          std::vector<double> single;  // of every draw of every network
          for (const auto& [run, one] : t.all("reaction"))
            for (const Json& draw : one.value("draws", Json::array()))
              single.push_back(one["important"]["mean"].get<double>() / draw.get<double>());
          if (!single.empty()) {
            std::sort(single.begin(), single.end());
            row["ratio_low"] = number(single.front()), row["ratio_high"] = number(single.back());
          }
          row["ratio_classes"] = number(over_classes("by_class"));
          row["ratio_other_percentile"] = number(over_classes("other_percentile"));
          row["ratio_paper"] = a && b ? Json(a->mean / b->mean) : Json(nullptr);
        }
        rows.push_back(std::move(row));
      }
      react.want(t.model, t.difference("reaction", "important/mean", "reaction", "random_mean/mean"), t.model);
      scaled.want(t.model, t.difference("reaction", "important_scaled/mean", "reaction", "random_scaled/mean"),
                  t.model);
    }
    claims_.push_back(react), claims_.push_back(scaled);
    return rows;
  }

  Json table3() {
    Json rows = Json::array();
    Claim diverse("di-covers-more", "IDC of U_O+DI is above that of U_O+S"),
        more("m-covers-less", "IDC falls as m grows"),
        accuracy("di-less-accurate", "the network has lower accuracy on U_DI than on U_S"),
        confidence("di-less-confident", "its confidence is lower on U_DI than on U_S"),
        rivals("rivals-prefer-s", "NC, KMNC, NBC, SNAC and TKNC rate U_O+S above U_O+DI, each from the tests alone"),
        kept("rivals-prefer-s-accumulated", "so they do in the program's order, where U_S is counted on top of U_DI");
    std::vector<std::string> criteria = {"IDC6", "IDC8", "IDC10", "IDC12"};
    criteria.insert(criteria.end(), kRivals.begin(), kRivals.end());
    for (const Trials& t : models_) {
      for (const std::string& criterion : criteria) {
        const std::string path = "figures/" + criterion, where = t.model + " " + criterion;
        for (const std::string& set : kSets3)
          rows.push_back({{"model", t.model},
                          {"criterion", criterion},
                          {"set", set},
                          {"ours", json_of(t.of(set, path), criterion == "NLC" ? 1 : 100)},
                          {"paper", json_of(paper::diversity(t.model, criterion, set))}});
        if (criterion.starts_with("IDC")) {
          diverse.want(t.model, t.difference("U_DI", path, "U_S", path, 100), where);
        } else if (criterion != "NLC" && criterion != "LSC" && criterion != "DSC") {
          for (const char* kind : {"fresh", "accumulated"}) {
            const std::string from = std::string(kind) + "/" + criterion;
            (kind[0] == 'f' ? rivals : kept).want(t.model, t.difference("U_S", from, "U_DI", from, 100), where);
          }
        }
      }
      for (size_t i = 1; i < 4; ++i)
        more.want(t.model, t.difference("U_O", "figures/" + criteria[i - 1], "U_O", "figures/" + criteria[i], 100),
                  t.model + " " + criteria[i]);
      accuracy.want(t.model, t.difference("U_S", "accuracy", "U_DI", "accuracy", 100), t.model);
      confidence.want(t.model, t.difference("U_S", "confidence", "U_DI", "confidence", 100), t.model);
    }
    for (const Claim& claim : {diverse, accuracy, confidence, rivals, kept, more}) claims_.push_back(claim);
    return rows;
  }

  /// How the network fares on what was made.
  Json sets() const {
    Json rows = Json::array();
    for (const Trials& t : models_)
      for (const char* set : {"U_S", "U_DI", "+S", "+FGSM", "+BIM", "+JSMA", "+CW"})
        rows.push_back({{"model", t.model},
                        {"set", set},
                        {"inputs", number(t.of(set, "inputs").mean)},
                        {"success", json_of(t.of(set, "success"), 100)},
                        {"accuracy", json_of(t.of(set, "accuracy"), 100)},
                        {"confidence", json_of(t.of(set, "confidence"))}});
    return rows;
  }

  Json table4() {
    Json rows = Json::array();
    Claim above("attacks-above-noise", "adversarial sets raise IDC more than noise on all pixels"),
        raised("attacks-raise", "adversarial sets raise IDC above that of U_O");
    std::vector<std::string> criteria = {"IDC6", "IDC8"};
    criteria.insert(criteria.end(), kRivals.begin(), kRivals.end());
    for (const Trials& t : models_)
      for (const std::string& set : kSets4)
        for (const std::string& criterion : criteria) {
          const std::string path = where_table4_has(t, criterion);
          rows.push_back({{"model", t.model},
                          {"set", set},
                          {"criterion", criterion},
                          {"ours", json_of(t.of(set, path), criterion == "NLC" ? 1 : 100)},
                          {"paper", json_of(paper::effectiveness(t.model, criterion, set))}});
          if (!criterion.starts_with("IDC") || std::find(kAttacks.begin(), kAttacks.end(), set) == kAttacks.end())
            continue;
          const std::string where = fmt::format("{} {} {}", t.model, criterion, set);
          raised.want(t.model, t.difference(set, path, "U_O", path, 100), where);
          above.want(t.model, t.difference(set, path, "+S", path, 100), where);
        }
    for (const Claim& claim : {raised, above}) claims_.push_back(claim);
    return rows;
  }

  Json correlation() {
    Json rows = Json::array();
    Claim together("rivals-correlate", "KMNC, NBC, SNAC, LSC and DSC rise with IDC over the sets of table 4"),
        still("nc-tknc-still", "NC and TKNC move by less than a point over the sets of table 4");
    for (const Trials& t : models_)
      for (const std::string& rival : kRivals) {
        std::map<int64_t, double> rho, moved;
        for (const auto& [run, unused] : t.all("U_O")) {
          std::vector<double> idc, other;
          for (const std::string& set : kSets4) {
            const auto a = t.by_run(set, "figures/IDC6"), b = t.by_run(set, where_table4_has(t, rival));
            if (a.count(run) && b.count(run)) idc.push_back(a.at(run)), other.push_back(b.at(run));
          }
          if (idc.size() < 3) continue;
          rho[run] = stats::rank_correlation(idc, other);
          moved[run] =
              100 * (*std::max_element(other.begin(), other.end()) - *std::min_element(other.begin(), other.end()));
          if (!std::isfinite(rho[run])) rho[run] = 0;  // it does not move at all
        }
        if (rho.empty()) continue;
        std::vector<double> paper_idc, paper_other, found, span;
        for (const std::string& set : kSets4) {
          auto c = paper::effectiveness(t.model, "IDC6", set), d = paper::effectiveness(t.model, rival, set);
          if (c && d) paper_idc.push_back(*c), paper_other.push_back(*d);
        }
        for (const auto& [run, value] : rho) found.push_back(value), span.push_back(moved[run]);
        rows.push_back(
            {{"model", t.model},
             {"criterion", rival},
             {"ours", number(spread(found).mean)},
             {"paper", paper_idc.size() < 3 ? Json(nullptr) : number(stats::rank_correlation(paper_idc, paper_other))},
             {"moved", rival == "NLC" ? Json(nullptr) : number(spread(span).mean)}});
        if (rival == "NC" || rival == "TKNC") {
          for (auto& [run, value] : moved) value = 1 - value;
          still.want(t.model, moved, t.model + " " + rival);
        } else if (rival != "NLC") {
          together.want(t.model, rho, t.model + " " + rival);
        }
      }
    claims_.push_back(together), claims_.push_back(still);
    return rows;
  }

  Json table5() {
    Json rows = Json::array();
    Claim deeper("deeper-layers", "IDC is higher in the last layer than in the first"),
        steps("every-deeper-layer", "IDC grows from every layer to the next"),
        delta("deeper-react", "U_DI adds more IDC in the last layer than in the first");
    for (const Trials& t : models_) {
      if (t.all("layers").empty()) continue;
      const Json& first_run = t.all("layers").begin()->second;
      const size_t count =
          first_run.contains("layers") && first_run["layers"].is_array() ? first_run["layers"].size() : 0;
      auto path = [](size_t i, const std::string& set) { return fmt::format("layers/{}/{}", i, set); };
      for (size_t i = 0; i < count; ++i) {
        const Json& named = first_run["layers"][i];
        if (!named.is_object() || !named.contains("layer") || !named["layer"].is_string()) continue;
        const std::string layer = named["layer"];
        for (const char* set : {"U_O", "U_O+DI"})
          rows.push_back({{"model", t.model},
                          {"layer", layer},
                          {"m", first_run.value("m", Json())},
                          {"set", set},
                          {"ours", json_of(t.of("layers", path(i, set)), 100)},
                          {"paper", json_of(paper::layer(t.model, layer, set))}});
        if (i > 0)
          steps.want(t.model, t.difference("layers", path(i, "U_O"), "layers", path(i - 1, "U_O"), 100),
                     t.model + " " + layer);
      }
      if (count < 2) continue;
      deeper.want(t.model, t.difference("layers", path(count - 1, "U_O"), "layers", path(0, "U_O"), 100), t.model);
      std::map<int64_t, double> last =
          t.difference("layers", path(count - 1, "U_O+DI"), "layers", path(count - 1, "U_O"), 100);
      for (const auto& [run, gain] : t.difference("layers", path(0, "U_O+DI"), "layers", path(0, "U_O"), 100))
        if (last.count(run)) last[run] -= gain;
      delta.want(t.model, last, t.model);
    }
    for (const Claim& claim : {deeper, steps, delta}) claims_.push_back(claim);
    return rows;
  }

  /// One difference between protocols at a time.
  Json switches() const {
    Json rows = Json::array();
    for (const Trials& t : models_) {
      if (t.all("switches").empty()) continue;
      const Json& named = t.all("switches").begin()->second["rows"];
      for (size_t i = 0; i < named.size(); ++i)
        for (const char* m : {"IDC6", "IDC8", "IDC10", "IDC12"})
          rows.push_back({{"model", t.model},
                          {"switch", named[i]["name"]},
                          {"criterion", m},
                          {"ours", json_of(t.of("switches", fmt::format("rows/{}/{}", i, m)), 100)},
                          {"paper", json_of(paper::diversity(t.model, m, "U_O"))}});
    }
    return rows;
  }

  std::vector<Trials> models_;
  std::vector<Claim> claims_;
};

/// One verdict out of those by protocol.
std::string overall(const Json& verdicts) {
  std::vector<std::string> different;
  for (const auto& [protocol, found] : verdicts.items()) {
    std::string verdict = found["verdict"];
    if (verdict == "not tested") continue;
    if (verdict == "holds on average") verdict = "holds";
    if (std::find(different.begin(), different.end(), verdict) == different.end()) different.push_back(verdict);
  }
  if (different.empty()) return "not tested";
  return different.size() == 1 ? different[0] : "depends on the protocol";
}

}  // namespace

Json report_deepimportance(const Store& store, const std::string& prefix, const std::vector<std::string>& models,
                           int64_t runs) {
  // Keys are PREFIX|protocol|model|run|trial; the corrected protocol comes first.
  std::vector<std::string> protocols{"corrected"};
  for (const auto& [key, unused] : store.all()) {
    if (!key.starts_with(prefix + "|")) continue;
    const std::string protocol = split(key.substr(prefix.size() + 1), '|')[0];
    if (std::find(protocols.begin(), protocols.end(), protocol) == protocols.end()) protocols.push_back(protocol);
  }
  Json json = {{"protocols", Json::array()}, {"conclusions", Json::array()}};
  std::vector<std::pair<std::string, Json>> reports;
  for (const std::string& protocol : protocols) {
    std::vector<Trials> trials;
    for (const std::string& model : models)
      if (Trials own(store, prefix + "|" + protocol, model, runs); !own.empty()) trials.push_back(std::move(own));
    if (trials.empty()) continue;
    json["protocols"].push_back(protocol);
    reports.emplace_back(protocol, Report(std::move(trials)).json());
  }
  for (const char* table : {"networks", "table2", "table3", "sets", "table4", "table5", "correlation", "switches"}) {
    Json& rows = json[table] = Json::array();
    for (const std::string& model : models)
      for (const auto& [protocol, report] : reports)
        for (const Json& row : report[table])
          if (row["model"] == model) {
            rows.push_back(row);
            rows.back()["protocol"] = protocol;
          }
  }
  if (!reports.empty())
    for (size_t i = 0; i < reports[0].second["conclusions"].size(); ++i) {
      const Json& first = reports[0].second["conclusions"][i];
      Json row = {{"id", first["id"]}, {"claim", first["claim"]}, {"by_protocol", Json::object()}};
      for (const auto& [protocol, report] : reports) row["by_protocol"][protocol] = report["conclusions"][i];
      row["verdict"] = overall(row["by_protocol"]);
      json["conclusions"].push_back(std::move(row));
    }
  return json;
}

}  // namespace netmend::studies
