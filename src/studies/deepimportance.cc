#include "studies/deepimportance.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numeric>
#include <optional>

#include "adequacy/learn.h"
#include "base/error.h"
#include "base/pool.h"
#include "base/random.h"
#include "inputs/campaign.h"
#include "inputs/criteria_choice.h"
#include "inputs/made_dataset.h"
#include "localise/candidates.h"
#include "observers/input_relevance.h"
#include "observers/surprise/dsa.h"
#include "observers/surprise/lsa.h"
#include "observers/surprise/surprise_coverage.h"
#include "stream/layers.h"
#include "studies/erase_relevant.h"

namespace netmend::studies {

using Json = nlohmann::ordered_json;
using observers::Criteria;
using observers::CriteriaState;
using observers::SampleRow;
using observers::UnitBatch;

namespace {

constexpr int64_t kImportant = 6, kDraws = 20;

/// How the tests of a set are changed.
struct SetRow {
  const char* trial;
  const char* method;
  bool all;    ///< every test; else those of table 4
  double eps;  ///< on digits; below 0: the method's own
};
constexpr SetRow kSets[] = {{"U_S", "random-noise", true, -1}, {"U_DI", "relevant-noise", true, -1},
                            {"+S", "random-noise", false, -1}, {"+noise", "white-noise", false, -1},
                            {"+FGSM", "fgsm", false, 0.3},     {"+BIM", "bim", false, 0.3},
                            {"+JSMA", "jsma", false, -1},      {"+CW", "cw", false, -1}};

constexpr inputs::Method kErase{"erase-relevant",
                                "the most relevant tenth of the pixels turned over",
                                "DeepImportance, arXiv:2002.03433",
                                int(inputs::Kind::kImage),
                                true,
                                false,
                                0,
                                0,
                                0,
                                erase_relevant};

/// Mean and spread over inputs.
struct Moments {
  double sum = 0, squares = 0, count = 0;
  void add(double x) { sum += x, squares += x * x, count += 1; }
  Json json() const {
    const double mean = count > 0 ? sum / count : 0;
    return {{"mean", mean}, {"sd", count > 1 ? std::sqrt(std::max(0.0, squares / count - mean * mean)) : 0}};
  }
};

/// One network, and what its trials share.
class Studied {
 public:
  Studied(const TrainedNetwork& network, const DeepImportanceOptions& options)
      : network_(network), options_(options), changed_(inputs::find_subject(network.test.data->info())) {
    if (network.test.data->info().features.size() != 1 || changed_.kind != inputs::Kind::kImage)
      fail("{} gives no images", network.test.data->info().spec);
    pass_.jobs = options.jobs, pass_.quiet = true;
  }

  Json run(const std::string& trial) {
    if (!space_) learn();
    if (trial == "network") return about();
    if (trial == "reaction") return reaction();
    if (trial == "layers") return layers();
    for (const SetRow& row : kSets)
      if (trial == row.trial) return measure(&row);
    check(trial == "U_O", "no trial {}", trial);
    return measure(nullptr);
  }

 private:
  /// The profile of the training data, the criteria, and what the tests reach as they are.
  void learn() {
    auto layers = localise::candidates(stream::find_layers(network_.test), network_.test.graph,
                                       network_.test_settings.head, network_.test_settings.outputs);
    space_ = observers::make_unit_space(network_.test, std::move(layers), {});
    layer_ = space_->layers().size() - 1;
    learned_.emplace(learned(layer_));
    observers::Profile& profile = learned_->profile;
    traces_ = std::make_shared<observers::Traces>(space_, layer_, layer_ + 1);
    Criteria::List list{traces_};
    auto add = [&](const std::string& names, int64_t m) {
      for (auto& one : inputs::make_criteria(adequacy::parse_criteria(names), space_, &profile, m)) {
        names_.push_back(m > 0 ? fmt::format("IDC{}", m) : one->name());
        list.push_back(std::move(one));
      }
    };
    for (int64_t m : {6, 8, 10, 12}) add("IDC", m);
    add("NC,KMNC,NBC,SNAC,TKNC,NLC", 0);
    criteria_.emplace(network_.test_settings, space_, std::move(list));
    originals_ = pass_over(network_.test.data, *criteria_);
    known_ = observers::sort_by_class(profile.traces(), classes(), false);
    likelihood_.emplace(known_), distance_.emplace(known_);
    for (double score : likelihood_->scores(known_, options_.jobs))
      if (std::isfinite(score)) least_likelihood_ = std::min(least_likelihood_, score);
    likelihood_scores_ = likelihood(*originals_), distance_scores_ = distance(*originals_);
    range_.emplace(*network_.test.data, changed_.feature);
    attacked_.emplace(network_.test, network_.test_settings, changed_, &*range_);
    explainer_.emplace(network_.test, network_.test_settings);
  }

  adequacy::LearnedProfile learned(size_t layer) const {
    adequacy::LearnOptions how;
    how.pass = pass_;
    adequacy::LearnedProfile learned = adequacy::learn(network_.train, network_.train_settings, space_, layer, how);
    if (!learned.no_importance.empty()) fail("{}: {}", network_.model, learned.no_importance);
    return learned;
  }

  int64_t classes() const { return int64_t(network_.test_settings.classes.size()); }

  std::unique_ptr<CriteriaState> pass_over(std::shared_ptr<const dataset::Dataset> data,
                                           const Criteria& criteria) const {
    stream::Subject subject = network_.test;
    subject.data = std::move(data);
    stream::Pass pass(subject);
    auto watched = pass.watch(criteria);
    pass.run(pass_);
    if (pass.interrupted()) throw Interrupted{};
    return pass.release(watched);
  }

  const UnitBatch& traces_of(const CriteriaState& state) const { return state.own_tally(*traces_).kept; }

  std::vector<double> likelihood(const CriteriaState& state) const {
    if (likelihood_->units() == 0) return {};
    return likelihood_->scores(observers::sort_by_class(traces_of(state), classes(), false), options_.jobs);
  }
  std::vector<double> distance(const CriteriaState& state) const {
    return distance_->scores(observers::sort_by_class(traces_of(state), classes(), false), options_.jobs);
  }

  Json about() const {
    const auto& rows = traces_of(*originals_).rows;
    return {{"accuracy", right(rows)}, {"tests", rows.size()}, {"training", network_.train.data->size()}};
  }

  static double right(const std::vector<SampleRow>& rows) {
    int64_t count = 0;
    for (const SampleRow& row : rows) count += row.right == SampleRow::kRight;
    return rows.empty() ? 0 : double(count) / double(rows.size());
  }

  inputs::Chosen chosen(bool all) const {
    inputs::Chosen chosen;
    std::vector<const SampleRow*> rows;
    for (const SampleRow& row : traces_of(*originals_).rows)
      if (all || row.right == SampleRow::kRight) rows.push_back(&row);
    const auto count = int64_t(rows.size());
    for (int64_t i : stream::spread(count, all ? count : std::min(count, options_.attacked))) {
      chosen.samples.push_back(rows[size_t(i)]->sample);
      chosen.predictions.push_back(int64_t(rows[size_t(i)]->predicted));
    }
    return chosen;
  }

  /// The changed inputs as data, one for each that was chosen.
  std::shared_ptr<const dataset::Dataset> make(const inputs::Method& method, const inputs::Chosen& chosen, double eps,
                                               double* success = nullptr) const {
    inputs::Settings asked;
    asked.seed = Random::hash(options_.seed);
    const auto& shape = changed_.about.shape;
    if (shape[changed_.about.channels_last ? 2 : 0] == 1) asked.eps = eps;
    if (method.make == inputs::carlini_wagner) asked.steps = options_.carlini_steps, asked.step_size = 0.1;
    if (method.make == inputs::bim && asked.eps > 0) asked.step_size = asked.eps / 6;
    asked.relevance = [this](const inputs::Originals& originals) {
      return explainer_->run(originals.batch, originals.predictions).features[changed_.feature].to(at::kFloat);
    };
    inputs::CampaignOptions how;
    how.jobs = options_.jobs, how.quiet = true;
    inputs::CampaignResult result =
        inputs::run_campaign(*attacked_, network_.test, chosen, method, inputs::settle(method, changed_, asked), how);
    if (result.interrupted) throw Interrupted{};
    dataset::Batch batch;
    batch.inputs = {range_->fed(result.raw)}, batch.masks.resize(1);
    std::vector<int64_t> labels;
    int64_t successes = 0;
    for (const inputs::Attempt& attempt : result.attempts) {
      labels.push_back(attempt.label), batch.samples.push_back(int64_t(batch.samples.size()));
      successes += attempt.success();
    }
    if (success) *success = double(successes) / double(std::max<size_t>(1, labels.size()));
    batch.labels = at::tensor(labels, at::kLong);
    return std::make_shared<inputs::MadeDataset>(network_.test.data->info(), std::move(batch));
  }

  /// All criteria on the tests, with a set of changed ones unless `row` is null.
  Json measure(const SetRow* row) const {
    Json json, figures;
    CriteriaState state(*criteria_);  // of its own: what is added for one set is none of the next
    state.merge(*originals_);
    std::vector<double> likely = likelihood_scores_, near = distance_scores_;
    if (row) {
      double success = 0;
      auto data = make(inputs::find_method(row->method), chosen(row->all), row->eps, &success);
      std::unique_ptr<CriteriaState> more = pass_over(data, *criteria_);
      auto append = [](std::vector<double>& to, const std::vector<double>& from) {
        to.insert(to.end(), from.begin(), from.end());
      };
      append(likely, likelihood(*more)), append(near, distance(*more));
      double confidence = 0;
      const auto& rows = traces_of(*more).rows;
      for (const SampleRow& one : rows) confidence += one.confidence / double(rows.size());
      json = {{"inputs", rows.size()}, {"success", success}, {"accuracy", right(rows)}, {"confidence", confidence}};
      state.merge(*more);
    }
    for (size_t i = 0; i < names_.size(); ++i) {
      const observers::Criterion& criterion = *criteria_->list()[i + 1];
      figures[names_[i]] = criterion.figure(state.tally(criterion)).value;
    }
    if (!likely.empty() && std::isfinite(least_likelihood_))
      figures["LSC"] = observers::SurpriseCoverage("LSC", least_likelihood_, 2000).figure(likely).value;
    figures["DSC"] = observers::SurpriseCoverage("DSC", 0, 2).figure(near).value;
    json["figures"] = std::move(figures);
    return json;
  }

  std::vector<int64_t> by_importance() const {
    const std::vector<double>& importance = learned_->profile.facts.importance;
    std::vector<int64_t> order(importance.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return importance[size_t(a)] > importance[size_t(b)]; });
    return order;
  }

  /// RQ1: how far important and other units move when relevant pixels change; also by each unit's own deviation, since
  /// units that are large anyway move far.
  Json reaction() const {
    auto data = make(kErase, chosen(true), -1);
    std::unique_ptr<CriteriaState> state = pass_over(data, *criteria_);
    const UnitBatch &before = traces_of(*originals_), &after = traces_of(*state);
    std::vector<double> deviations;
    for (int64_t u = 0; u < before.units; ++u) {
      Moments unit;
      for (int64_t row = 0; row < before.count(); ++row) unit.add(before.input(row)[u]);
      deviations.push_back(unit.json()["sd"]);
    }
    auto add = [&](const std::vector<int64_t>& units, Moments& plain, Moments& scaled) {
      for (int64_t row = 0; row < before.count(); ++row) {
        double sum = 0, own = 0;
        for (int64_t i = 0; i < std::min<int64_t>(kImportant, int64_t(units.size())); ++i) {
          const int64_t u = units[size_t(i)];
          const double off = double(after.input(row)[u]) - double(before.input(row)[u]);
          sum += off * off;
          if (deviations[size_t(u)] > 0) own += off * off / (deviations[size_t(u)] * deviations[size_t(u)]);
        }
        plain.add(std::sqrt(sum)), scaled.add(std::sqrt(own));
      }
    };
    Moments important, important_scaled, random, random_scaled;
    std::vector<int64_t> units = by_importance();
    add(units, important, important_scaled);
    for (int64_t draw = 0; draw < kDraws; ++draw) {
      Random(options_.seed, uint64_t(draw)).shuffle(units);
      add(units, random, random_scaled);
    }
    return {{"important", important.json()},
            {"random", random.json()},
            {"important_scaled", important_scaled.json()},
            {"random_scaled", random_scaled.json()},
            {"accuracy", right(after.rows)}};
  }

  /// RQ5: IDC at every layer.
  Json layers() const {
    const int64_t m = network_.model == "lenet1" || network_.model == "lenet4" ? 4 : 6;
    Criteria::List list;
    Json json = {{"m", m}, {"layers", Json::array()}};
    for (size_t layer = 0; layer <= layer_; ++layer) {
      std::optional<adequacy::LearnedProfile> own;
      if (layer < layer_) own.emplace(learned(layer));
      const observers::Profile& profile = (own ? *own : *learned_).profile;
      list.push_back(inputs::make_criteria({{"IDC"}}, space_, &profile, m)[0]);
    }
    Criteria criteria(network_.test_settings, space_, list);
    auto state = pass_over(network_.test.data, criteria);
    auto values = [&] {
      std::vector<double> found;
      for (const auto& one : list) found.push_back(one->figure(state->tally(*one)).value);
      return found;
    };
    const std::vector<double> alone = values();
    auto data = make(inputs::find_method("relevant-noise"), chosen(true), -1);
    state->merge(*pass_over(data, criteria));
    const std::vector<double> with = values();
    for (size_t i = 0; i < list.size(); ++i)
      json["layers"].push_back({{"layer", space_->layers()[i].name}, {"U_O", alone[i]}, {"U_O+DI", with[i]}});
    return json;
  }

  const TrainedNetwork& network_;
  const DeepImportanceOptions& options_;
  inputs::Subject changed_;
  stream::PassOptions pass_;
  observers::SpacePtr space_;
  size_t layer_ = 0;
  std::optional<adequacy::LearnedProfile> learned_;
  std::vector<std::string> names_;  ///< of the criteria behind the first, which keeps traces
  std::optional<Criteria> criteria_;
  std::shared_ptr<const observers::Traces> traces_;
  std::unique_ptr<CriteriaState> originals_;  ///< what the tests reach as they are
  observers::ClassTraces known_;
  std::optional<observers::Lsa> likelihood_;
  std::optional<observers::Dsa> distance_;
  double least_likelihood_ = INFINITY;
  std::vector<double> likelihood_scores_, distance_scores_;
  std::optional<stream::RawRange> range_;
  std::optional<inputs::Network> attacked_;
  std::optional<observers::InputExplainer> explainer_;
};

}  // namespace

const std::vector<std::string>& deepimportance_trials() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names = {"network", "reaction", "U_O"};
    for (const SetRow& row : kSets) names.emplace_back(row.trial);
    names.emplace_back("layers");
    return names;
  }();
  return all;
}

void run_deepimportance(Store& store, const std::string& prefix, const TrainedNetwork& network,
                        const DeepImportanceOptions& options, const std::function<void(const std::string&)>& progress) {
  Studied studied(network, options);
  for (const std::string& trial : deepimportance_trials()) {
    const std::string key = prefix + "|" + trial;
    if (store.find(key)) continue;
    if (interrupted()) throw Interrupted{};
    const auto start = std::chrono::steady_clock::now();
    Json result = studied.run(trial);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    result["seconds"] = seconds;
    store.put(key, json_text(result));
    if (progress) progress(fmt::format("{} in {:.1f} s", key, seconds));
  }
}

}  // namespace netmend::studies
