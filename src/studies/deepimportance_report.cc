#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/error.h"
#include "base/text.h"
#include "studies/deepimportance.h"
#include "studies/deepimportance_paper.h"

namespace netmend::studies {

using trials::trial_document;

using Json = nlohmann::ordered_json;

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  check(a.size() == b.size(), "pairs are compared");
  auto ranks = [](const std::vector<double>& x) {
    std::vector<double> rank;
    for (double one : x) {
      double below = 0, equal = 0;
      for (double other : x) below += other < one, equal += other == one;
      rank.push_back(below + (equal + 1) / 2);
    }
    return rank;
  };
  const std::vector<double> p = ranks(a), q = ranks(b);
  const double middle = (double(a.size()) + 1) / 2;
  double pq = 0, pp = 0, qq = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    pq += (p[i] - middle) * (q[i] - middle);
    pp += (p[i] - middle) * (p[i] - middle), qq += (q[i] - middle) * (q[i] - middle);
  }
  return pp > 0 && qq > 0 ? pq / std::sqrt(pp * qq) : NAN;
}

namespace {

const std::vector<std::string> kRivals = {"NC", "KMNC", "NBC", "SNAC", "TKNC", "LSC", "DSC", "NLC"};
const std::vector<std::string> kSets3 = {"U_O", "U_S", "U_DI"};
const std::vector<std::string> kSets4 = {"U_O", "+S", "+noise", "+FGSM", "+BIM", "+JSMA", "+CW"};
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
          found_[trial].push_back(trial_document(trial, *text).json());
  }
  /// A number of a trial by its path, over the runs that have it.
  Spread of(const std::string& trial, const std::string& path) const {
    std::vector<double> values;
    if (auto all = found_.find(trial); all != found_.end())
      for (const Json& one : all->second)
        if (Json::json_pointer at("/" + path); one.contains(at) && one[at].is_number()) values.push_back(one[at]);
    return spread(values);
  }
  double figure(const std::string& set, const std::string& criterion) const {
    return of(set, "figures/" + criterion).mean;
  }
  const std::vector<Json>& all(const std::string& trial) const {
    static const std::vector<Json> none;
    auto at = found_.find(trial);
    return at == found_.end() ? none : at->second;
  }
  bool empty() const { return found_.empty(); }
  std::string model;

 private:
  std::map<std::string, std::vector<Json>> found_;
};

/// A conclusion, put to every case it speaks of.
class Claim {
 public:
  Claim(std::string id, std::string text) : id_(std::move(id)), text_(std::move(text)) {}
  void want(bool holds, const std::string& where) {
    ++cases_, held_ += holds;
    if (!holds) against_.push_back(where);
  }
  void want_above(double more, double less, const std::string& where) {
    if (std::isfinite(more) && std::isfinite(less))
      want(more > less, fmt::format("{} ({:.4g} against {:.4g})", where, more, less));
  }
  Json json() const {
    const char* verdict = cases_ == 0          ? "not tested"
                          : held_ == cases_    ? "holds"
                          : 2 * held_ > cases_ ? "holds in part"
                                               : "does not hold";
    return {{"id", id_},     {"claim", text_},  {"verdict", verdict},
            {"held", held_}, {"cases", cases_}, {"against", against_}};
  }

 private:
  std::string id_, text_;
  int64_t cases_ = 0, held_ = 0;
  std::vector<std::string> against_;
};

class Report {
 public:
  explicit Report(std::vector<Trials> models) : models_(std::move(models)) {}

  Json json() {
    Json json;
    json["networks"] = Json::array();
    for (const Trials& t : models_)
      json["networks"].push_back({{"model", t.model},
                                  {"runs", t.all("network").size()},
                                  {"tests", t.of("network", "tests").mean},
                                  {"training", t.of("network", "training").mean},
                                  {"attacked", number(t.of("+FGSM", "inputs").mean)},
                                  {"accuracy", json_of(t.of("network", "accuracy"), 100)},
                                  {"paper", json_of(paper::accuracy(t.model))}});
    json["table2"] = table2(), json["table3"] = table3(), json["sets"] = sets(), json["table4"] = table4();
    json["table5"] = table5(), json["correlation"] = correlation();
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
      for (const char* units : {"random", "important"})
        rows.push_back({{"model", t.model},
                        {"units", units},
                        {"ours",
                         {{"mean", number(t.of("reaction", fmt::format("{}/mean", units)).mean)},
                          {"sd", number(t.of("reaction", fmt::format("{}/sd", units)).mean)}}},
                        {"by_own_deviation", number(t.of("reaction", fmt::format("{}_scaled/mean", units)).mean)},
                        {"paper", json_of(paper::reaction(t.model, units))}});
      react.want_above(t.of("reaction", "important/mean").mean, t.of("reaction", "random/mean").mean, t.model);
      scaled.want_above(t.of("reaction", "important_scaled/mean").mean, t.of("reaction", "random_scaled/mean").mean,
                        t.model);
    }
    claims_.push_back(react), claims_.push_back(scaled);
    return rows;
  }

  Json table3() {
    Json rows = Json::array();
    Claim diverse("di-covers-more", "IDC of U_O+DI is above that of U_O+S"),
        more("m-covers-less", "IDC falls as m grows"),
        upset("di-upsets-more", "the network has lower accuracy and confidence on U_DI than on U_S"),
        rivals("rivals-prefer-s", "other criteria rate U_O+S above U_O+DI (all networks but LeNet-1)");
    std::vector<std::string> criteria = {"IDC6", "IDC8", "IDC10", "IDC12"};
    criteria.insert(criteria.end(), kRivals.begin(), kRivals.end());
    for (const Trials& t : models_) {
      for (const std::string& criterion : criteria) {
        for (const std::string& set : kSets3)
          rows.push_back({{"model", t.model},
                          {"criterion", criterion},
                          {"set", set},
                          {"ours", json_of(t.of(set, "figures/" + criterion), criterion == "NLC" ? 1 : 100)},
                          {"paper", json_of(paper::diversity(t.model, criterion, set))}});
        const double s = t.figure("U_S", criterion), di = t.figure("U_DI", criterion);
        const std::string where = t.model + " " + criterion;
        if (criterion.starts_with("IDC"))
          diverse.want_above(100 * di, 100 * s, where);
        else if (t.model != "lenet1" && criterion != "NLC")
          rivals.want_above(100 * s, 100 * di, where);
      }
      for (size_t i = 1; i < 4; ++i)
        more.want_above(100 * t.figure("U_O", criteria[i - 1]), 100 * t.figure("U_O", criteria[i]),
                        t.model + " " + criteria[i]);
      for (const char* what : {"accuracy", "confidence"})
        upset.want_above(100 * t.of("U_S", what).mean, 100 * t.of("U_DI", what).mean, t.model + " " + what);
    }
    for (const Claim& claim : {diverse, upset, rivals, more}) claims_.push_back(claim);
    return rows;
  }

  /// How the network fares on what was made.
  Json sets() const {
    Json rows = Json::array();
    for (const Trials& t : models_)
      for (const char* set : {"U_S", "U_DI", "+S", "+noise", "+FGSM", "+BIM", "+JSMA", "+CW"})
        rows.push_back({{"model", t.model},
                        {"set", set},
                        {"inputs", number(t.of(set, "inputs").mean)},
                        {"accuracy", json_of(t.of(set, "accuracy"), 100)},
                        {"confidence", json_of(t.of(set, "confidence"))}});
    return rows;
  }

  Json table4() {
    Json rows = Json::array();
    Claim above("attacks-above-noise", "adversarial sets raise IDC more than noise on random pixels"),
        white("attacks-above-white-noise",
              "adversarial sets raise IDC more than noise on all pixels (not in the paper)"),
        raised("attacks-raise", "adversarial sets raise IDC above that of U_O");
    std::vector<std::string> criteria = {"IDC6", "IDC8"};
    criteria.insert(criteria.end(), kRivals.begin(), kRivals.end());
    for (const Trials& t : models_)
      for (const std::string& set : kSets4)
        for (const std::string& criterion : criteria) {
          const double value = t.figure(set, criterion);
          rows.push_back({{"model", t.model},
                          {"set", set},
                          {"criterion", criterion},
                          {"ours", json_of(t.of(set, "figures/" + criterion), criterion == "NLC" ? 1 : 100)},
                          {"paper", json_of(paper::effectiveness(t.model, criterion, set))}});
          if (!criterion.starts_with("IDC") || std::find(kAttacks.begin(), kAttacks.end(), set) == kAttacks.end())
            continue;
          const std::string where = fmt::format("{} {} {}", t.model, criterion, set);
          raised.want_above(100 * value, 100 * t.figure("U_O", criterion), where);
          above.want_above(100 * value, 100 * t.figure("+S", criterion), where);
          white.want_above(100 * value, 100 * t.figure("+noise", criterion), where);
        }
    for (const Claim& claim : {raised, above, white}) claims_.push_back(claim);
    return rows;
  }

  Json correlation() {
    Json rows = Json::array();
    Claim together("rivals-correlate", "KMNC, NBC, SNAC, LSC and DSC rise with IDC over the sets of table 4"),
        still("nc-tknc-still", "NC and TKNC hardly move over the sets of table 4 (less than a point)");
    for (const Trials& t : models_)
      for (const std::string& rival : kRivals) {
        std::vector<double> idc, other, paper_idc, paper_other;
        for (const std::string& set : kSets4) {
          const double a = t.figure(set, "IDC6"), b = t.figure(set, rival);
          if (std::isfinite(a) && std::isfinite(b)) idc.push_back(a), other.push_back(b);
          auto c = paper::effectiveness(t.model, "IDC6", set), d = paper::effectiveness(t.model, rival, set);
          if (c && d) paper_idc.push_back(*c), paper_other.push_back(*d);
        }
        if (idc.size() < 3) continue;
        const double rho = rank_correlation(idc, other);
        const double moved =
            100 * (*std::max_element(other.begin(), other.end()) - *std::min_element(other.begin(), other.end()));
        rows.push_back(
            {{"model", t.model},
             {"criterion", rival},
             {"ours", number(rho)},
             {"paper", paper_idc.size() < 3 ? Json(nullptr) : number(rank_correlation(paper_idc, paper_other))},
             {"moved", rival == "NLC" ? Json(nullptr) : number(moved)}});
        const std::string where =
            fmt::format("{} {} (rank correlation {})", t.model, rival,
                        std::isfinite(rho) ? fmt::format("{:.2f}", rho) : "none: it does not move");
        if (rival == "NC" || rival == "TKNC")
          still.want(moved < 1, fmt::format("{} {} moves by {:.1f} points", t.model, rival, moved));
        else if (rival != "NLC")
          together.want(rho > 0, where);
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
      const Json& first_run = t.all("layers")[0];
      const size_t count =
          first_run.contains("layers") && first_run["layers"].is_array() ? first_run["layers"].size() : 0;
      auto at = [&](size_t i, const std::string& set) {
        return 100 * t.of("layers", fmt::format("layers/{}/{}", i, set)).mean;
      };
      for (size_t i = 0; i < count; ++i) {
        const Json& named = first_run["layers"][i];
        if (!named.is_object() || !named.contains("layer") || !named["layer"].is_string()) continue;
        const std::string layer = named["layer"];
        for (const char* set : {"U_O", "U_O+DI"})
          rows.push_back({{"model", t.model},
                          {"layer", layer},
                          {"m", first_run.value("m", Json())},
                          {"set", set},
                          {"ours", json_of(t.of("layers", fmt::format("layers/{}/{}", i, set)), 100)},
                          {"paper", json_of(paper::layer(t.model, layer, set))}});
        if (i > 0) steps.want_above(at(i, "U_O"), at(i - 1, "U_O"), t.model + " " + layer);
      }
      if (count < 2) continue;
      deeper.want_above(at(count - 1, "U_O"), at(0, "U_O"), t.model);
      delta.want_above(at(count - 1, "U_O+DI") - at(count - 1, "U_O"), at(0, "U_O+DI") - at(0, "U_O"), t.model);
    }
    for (const Claim& claim : {deeper, steps, delta}) claims_.push_back(claim);
    return rows;
  }

  std::vector<Trials> models_;
  std::vector<Claim> claims_;
};

}  // namespace

Json report_deepimportance(const Store& store, const std::string& prefix, const std::vector<std::string>& models,
                           int64_t runs) {
  std::vector<Trials> trials;
  for (const std::string& model : models)
    if (Trials own(store, prefix, model, runs); !own.empty()) trials.push_back(std::move(own));
  return Report(std::move(trials)).json();
}

}  // namespace netmend::studies
