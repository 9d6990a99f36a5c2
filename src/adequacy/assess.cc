#include "adequacy/assess.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"
#include "observers/coverage/layer_spread.h"
#include "observers/coverage/neuron_coverage.h"
#include "observers/coverage/sections.h"
#include "observers/coverage/sign_pairs.h"
#include "observers/coverage/top_units.h"
#include "observers/surprise/buckets.h"
#include "observers/surprise/distance.h"
#include "observers/surprise/likelihood.h"
#include "observers/surprise/mahalanobis.h"

namespace netmend::adequacy {
namespace {

using observers::Criteria;
using observers::CriteriaState;
using observers::Criterion;
using observers::Figure;
using observers::GoalCriterion;
using observers::GoalTally;
using observers::ImportanceCoverage;
using observers::PatternCriterion;
using observers::Profile;
using observers::Published;
using observers::QuantisedUnit;
using observers::RangeTally;
using observers::SpacePtr;
using observers::SurpriseBuckets;
using observers::TraceTally;
using observers::UnitBatch;

template <typename T>
std::shared_ptr<const Criterion> make(T criterion) {
  return std::make_shared<T>(std::move(criterion));
}

/// The values of one layer's units alone.
UnitBatch layer_part(const UnitBatch& all, const observers::UnitSpace& space, size_t layer) {
  UnitBatch part{space.units(layer), 0, all.rows};
  part.values.reserve(all.rows.size() * size_t(part.units));
  for (int64_t row = 0; row < all.count(); ++row) {
    const float* from = all.input(row) + space.first(layer);
    part.values.insert(part.values.end(), from, from + part.units);
  }
  return part;
}

/// Classes that predictions are of; 1 when they are none.
int64_t predicted_classes(const observers::PredictionSettings& settings) {
  if (settings.by_class()) return int64_t(settings.classes.size());
  return settings.task == observers::Task::kNone ? std::max<int64_t>(1, settings.outputs) : 1;
}

}  // namespace

class Assessor::Impl {
 public:
  Impl(const stream::Subject& tests, const observers::PredictionSettings& settings, SpacePtr space, Profile* profile,
       const AssessOptions& options)
      : tests_(tests), settings_(settings), space_(std::move(space)), profile_(profile), options_(options) {
    choose();
    if (options_.before_pass) options_.before_pass(found_.bytes);
    observer_ = std::make_unique<Criteria>(settings_, space_, list_, options_.counts);
  }

  const Criteria& observer() const { return *observer_; }

  Assessment finish(CriteriaState& state, double seconds, bool interrupted) {
    state_ = &state;
    found_.seconds = seconds;
    found_.interrupted = interrupted;
    found_.inputs = state.samples;
    found_.rows = traces().rows;
    auto start = std::chrono::steady_clock::now();
    finish();
    found_.scoring_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(found_);
  }

 private:
  void skip(const std::string& what, const std::string& why) { found_.skipped.push_back({what, why}); }

  /// Takes a criterion in unless its tally would be too large; then says so.
  bool add(std::shared_ptr<const Criterion> criterion) {
    const double states = 2 + (options_.pass.jobs > 0 ? options_.pass.jobs : cores());
    const double bytes = criterion->bytes(tests_.data->size());
    const double all = criterion->name() == "MCDC" || criterion->name() == "TKNP" ? bytes : bytes * states;
    if (found_.bytes + all > options_.most_bytes) {
      skip(criterion->name(),
           fmt::format("would take {} of memory (--memory allows more, --layer needs less)", bytes_text(all)));
      return false;
    }
    found_.bytes += all;
    list_.push_back(std::move(criterion));
    return true;
  }

  /// Reads and keeps what all criteria need: first the extremes, then the traces.
  void choose() {
    add(make(observers::Ranges(space_)));
    const double wide = observers::Traces(space_, 0, space_->layers().size()).bytes(tests_.data->size());
    traced_all_ = wide <= options_.most_bytes / 2;
    const size_t from = traced_all_ || !profile_ ? 0 : profile_->layer();
    const size_t end = traced_all_ ? space_->layers().size() : profile_ ? from + 1 : 0;
    auto traces = std::make_shared<observers::Traces>(space_, from, end, tests_.data->size());
    if (traces->bytes(tests_.data->size()) > options_.most_bytes)
      throw InputError(fmt::format("the traces of {} inputs would take {}", with_commas(tests_.data->size()),
                                   bytes_text(traces->bytes(tests_.data->size()))),
                       "--limit N takes fewer inputs, --memory allows more.");
    found_.bytes += traces->bytes(tests_.data->size());
    list_.push_back(traces);
    if (!traced_all_)
      skip("inputs that add nothing", "the values of all units would not fit into memory (--layer needs less)");
    for (const Wanted& wanted : options_.criteria) {
      if (criterion_row(wanted.name).needs_training && !profile_)
        skip(wanted.name, options_.no_training);
      else
        choose_one(wanted);
    }
  }

  void choose_one(const Wanted& wanted) {
    const auto whole = int64_t(wanted.parameter);
    if (wanted.name == "NC") add(make(observers::NeuronCoverage(space_, wanted.parameter, options_.published)));
    if (wanted.name == "KMNC")
      add(make(observers::SectionCoverage(space_, profile_->ranges(), whole, options_.published)));
    if (wanted.name == "NBC" || wanted.name == "SNAC")
      add(make(observers::CornerCoverage(space_, profile_->ranges(), wanted.name == "NBC", wanted.parameter,
                                         options_.published)));
    if (wanted.name == "TKNC") add(make(observers::TopUnits(space_, whole)));
    if (wanted.name == "TKNP") add(make(observers::TopPatterns(space_, whole, options_.published)));
    if (wanted.name == "MCDC" && space_->layers().size() < 2) return skip("MCDC", "needs two layers at least");
    if (wanted.name == "MCDC") add(make(observers::SignPairs(space_, options_.published)));
    if (wanted.name == "NLC") add(make(observers::LayerSpread(space_)));
    if (wanted.name == "IDC") choose_importance();
    if (wanted.name == "LSC" || wanted.name == "DSC" || wanted.name == "MDSC") buckets_[wanted.name] = whole;
  }

  void choose_importance() {
    const std::vector<double>& importance = profile_->facts.importance;
    const size_t layer = profile_->layer();
    if (importance.empty()) return skip("IDC", options_.no_importance);
    if (int64_t(importance.size()) != space_->units(layer))
      return skip("IDC", "looks at whole units: leave out --unit element");
    std::vector<int64_t> order(importance.size());
    for (size_t u = 0; u < order.size(); ++u) order[u] = int64_t(u);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return importance[size_t(a)] > importance[size_t(b)]; });
    std::vector<QuantisedUnit> units;
    int64_t last = 0;
    for (int64_t m : options_.important) {
      const int64_t there = std::min<int64_t>(m, int64_t(order.size()));
      if (there < m)
        found_.notes.push_back(
            fmt::format("{} has {} units: m = {} becomes {}", space_->layers()[layer].name, there, m, there));
      if (there == last) continue;
      last = there;
      while (int64_t(units.size()) < there) units.push_back(quantise(order[units.size()]));
      auto coverage = std::make_shared<ImportanceCoverage>(space_, layer, units);
      if (coverage->units().empty()) return skip("IDC", "no important unit has a finite value on training data");
      if (options_.published == Published::kDeepImportance) read_before(*coverage, layer);
      add(coverage);
      important_.push_back(coverage);
    }
  }

  QuantisedUnit quantise(int64_t unit) const {
    const UnitBatch& traces = profile_->traces();
    std::vector<float> values;
    values.reserve(traces.rows.size());
    for (int64_t row = 0; row < traces.count(); ++row) values.push_back(traces.input(row)[unit]);
    return observers::quantise(unit, values, {options_.zero_cluster, options_.published});
  }

  /// The authors' program measures at the layer before, by the same numbers.
  void read_before(ImportanceCoverage& coverage, size_t layer) {
    bool there = layer > 0;
    for (const QuantisedUnit& unit : coverage.units()) there = there && unit.unit < space_->units(layer - 1);
    if (there)
      coverage.read_at(layer - 1);
    else
      found_.notes.push_back(
          "IDC is measured at its own layer: the one before has too few units for the published way");
  }

  CriteriaState& state() const { return *state_; }
  const UnitBatch& traces() const { return dynamic_cast<const TraceTally&>(*state().tallies[1]).kept; }

  void finish() {
    for (size_t i = 2; i < list_.size(); ++i) {
      found_.figures.push_back(list_[i]->figure(*state().tallies[i]));
      note_uncovered(*list_[i], *state().tallies[i]);
    }
    if (profile_) {
      tests_layer_ = traced_all_ ? layer_part(traces(), *space_, profile_->layer()) : traces();
      score();
      look_at_importance();
      look_at_highs();
    }
    if (traced_all_) reduce_tests();
    in_order_of_the_table();
  }

  void note_uncovered(const Criterion& criterion, const observers::Tally& tally) {
    if (criterion.name() != "NC" && criterion.name() != "TKNC") return;
    auto& units = found_.uncovered[criterion.name()];
    for (int64_t unit = 0; unit < space_->units(); ++unit)
      if (!dynamic_cast<const GoalTally&>(tally).reached(unit)) units.push_back(unit);
  }

  void score() {
    if (buckets_.empty()) return;
    const int64_t classes = predicted_classes(settings_);
    const bool by_label = options_.published == Published::kNlc && settings_.by_class();
    const observers::ClassTraces training = observers::sort_by_class(profile_->traces(), classes, by_label);
    const observers::ClassTraces tests = observers::sort_by_class(tests_layer_, classes, by_label);
    const bool corrected = options_.published == Published::kCorrected;
    int64_t unknown = 0;
    for (int64_t c = 0; c < classes; ++c) unknown += training.size(c) == 0 && tests.size(c) > 0;
    if (unknown > 0)
      found_.notes.push_back(
          fmt::format("{} class{} predicted for tests and for no training input: these tests have no surprise", unknown,
                      unknown == 1 ? "" : "es"));
    if (buckets_.count("LSC")) score_likelihood(training, tests, corrected && !by_label);
    if (buckets_.count("DSC")) {
      if (classes < 2)
        skip("DSC", "predictions are not classes, of which another could be near");
      else
        bucket("DSC", "DSA", 0,
               options_.published == Published::kSadl || options_.published == Published::kDeepImportance ? 2000 : 2,
               observers::DistanceSurprise(training, options_.published).scores(tests, options_.pass.jobs));
    }
    if (buckets_.count("MDSC")) score_mahalanobis(training, tests);
  }

  void score_likelihood(const observers::ClassTraces& training, const observers::ClassTraces& tests, bool known) {
    const observers::LikelihoodSurprise likelihood(training);
    if (likelihood.units() == 0)
      return skip("LSC", "no unit of the layer varies within every class, so that there is no density");
    if (likelihood.units() < likelihood.all_units())
      found_.notes.push_back(fmt::format("LSC looks at {} of {} units: the others hardly vary within some class",
                                         likelihood.units(), likelihood.all_units()));
    if (likelihood.regularised() > 0)
      found_.notes.push_back(fmt::format("LSC: the covariance of {} class{} is singular and was widened a little",
                                         likelihood.regularised(), likelihood.regularised() == 1 ? "" : "es"));
    double low = known ? profile_->facts.likelihood_low : NAN;
    if (!std::isfinite(low)) {
      low = INFINITY;
      for (double score : likelihood.scores(training, options_.pass.jobs))
        if (std::isfinite(score)) low = std::min(low, score);
      if (known) profile_->facts.likelihood_low = low;
    }
    if (!std::isfinite(low)) return skip("LSC", "no training input has a density");
    bucket("LSC", "LSA", low, 2000, likelihood.scores(tests, options_.pass.jobs));
  }

  void score_mahalanobis(const observers::ClassTraces& training, const observers::ClassTraces& tests) {
    const observers::MahalanobisSurprise spread(training, options_.published);
    double high = 0;
    for (double score : spread.scores(training))
      if (std::isfinite(score)) high = std::max(high, score);
    if (high == 0) return skip("MDSC", "training inputs do not spread within any class");
    bucket("MDSC", "MDSA", 0, high, spread.scores(tests));
  }

  void bucket(const std::string& name, const std::string& score_name, double low, double high,
              std::vector<double> scores) {
    SurpriseBuckets buckets(name, low, high, buckets_[name], options_.published);
    found_.figures.push_back(buckets.figure(scores));
    found_.figures.back().parameters.push_back({"layer", 0, space_->layers()[profile_->layer()].name});
    places_[name] = buckets.places(scores);
    found_.surprise.push_back({score_name, std::move(scores)});
  }

  void look_at_importance() {
    for (size_t i = 0; i < important_.size(); ++i) {
      const size_t place = size_t(std::find(list_.begin(), list_.end(), important_[i]) - list_.begin());
      if (place == list_.size()) continue;
      found_.important.push_back({important_[i]->figure(*state().tallies[place]),
                                  find_combinations(*important_[i], profile_->traces(), tests_layer_),
                                  important_[i]->units()});
    }
    if (!important_.empty()) found_.regions = find_regions(*important_.back(), profile_->traces(), tests_layer_);
  }

  /// Not for some kinds of tests alone: training is not cut down to the same kinds.
  void look_at_highs() {
    if (options_.counts) return;
    const auto& ranges = dynamic_cast<const RangeTally&>(*state().tallies[0]).ranges;
    std::vector<double> highs;
    for (const observers::UnitRange& range : ranges) highs.push_back(range.seen > 0 ? range.high : -INFINITY);
    found_.low_units =
        observers::find_low_units(profile_->peaks(), profile_->facts.inputs, highs, found_.inputs, found_.highs_judged);
    std::erase_if(found_.low_units, [](const observers::LowUnit& unit) { return !std::isfinite(unit.tests); });
  }

  /// Goals of one criterion, told input by input, with numbers of their own.
  struct Told {
    std::string name;
    std::vector<std::vector<uint32_t>> goals;  ///< by row
    uint64_t count = 0;
  };

  void tell(const GoalCriterion& criterion, Told& told) const {
    observers::Reached reached;
    criterion.reach(traces(), reached);
    size_t at = 0;
    for (size_t row = 0; row < told.goals.size(); ++row)
      for (; at < reached.ends[row]; ++at) told.goals[row].push_back(uint32_t(reached.goals[at]));
    told.count = uint64_t(criterion.goals());
  }

  void tell(const ImportanceCoverage& criterion, Told& told) const {
    std::unordered_map<std::string, uint32_t> numbers;
    for (size_t row = 0; row < told.goals.size(); ++row)
      if (std::string pattern = criterion.pattern(traces(), int64_t(row)); !pattern.empty())
        told.goals[row].push_back(numbers.try_emplace(pattern, uint32_t(numbers.size())).first->second);
    told.count = numbers.size();
  }

  std::vector<Told> tell_all() const {
    std::vector<Told> all;
    auto fresh = [&](const std::string& name) -> Told& {
      all.push_back({name});
      all.back().goals.resize(found_.rows.size());
      return all.back();
    };
    for (size_t i = 2; i < list_.size(); ++i) {
      if (const auto* goals = dynamic_cast<const GoalCriterion*>(list_[i].get()); goals && goals->goals() < UINT32_MAX)
        tell(*goals, fresh(goals->name()));
      if (const auto* important = dynamic_cast<const ImportanceCoverage*>(list_[i].get()))
        tell(*important, fresh(important->name()));
    }
    for (const auto& [name, places] : places_) {
      if (options_.published == Published::kNlc) continue;  // without end: no numbers in advance
      Told& told = fresh(name);
      told.count = uint64_t(buckets_.at(name));
      for (size_t row = 0; row < told.goals.size(); ++row)
        if (places[row] >= 0) told.goals[row].push_back(uint32_t(places[row]));
    }
    return all;
  }

  std::optional<Subset> smallest(const std::vector<Told>& all, bool coarse) const {
    Subset subset;
    uint64_t next = 0;
    std::vector<std::vector<uint32_t>> goals(found_.rows.size());
    for (const Told& told : all) {
      const bool fine = told.name == "KMNC" || buckets_.count(told.name) > 0;
      if ((coarse && fine) || next + told.count > UINT32_MAX) continue;
      for (size_t row = 0; row < goals.size(); ++row)
        for (uint32_t goal : told.goals[row]) goals[row].push_back(uint32_t(next) + goal);
      next += told.count;
      if (subset.criteria.empty() || subset.criteria.back() != told.name) subset.criteria.push_back(told.name);
    }
    if (subset.criteria.empty()) return {};
    InputGoals flat;
    flat.count = uint32_t(next);
    for (const auto& own : goals) {
      flat.goals.insert(flat.goals.end(), own.begin(), own.end());
      flat.starts.push_back(flat.goals.size());
    }
    subset.kept = reduce(flat);
    return subset;
  }

  void reduce_tests() {
    const std::vector<Told> all = tell_all();
    found_.subset = smallest(all, false);
    found_.core = smallest(all, true);
    if (!found_.subset) skip("inputs that add nothing", "none of the criteria asked for can be told input by input");
    if (found_.core && found_.core->criteria == found_.subset->criteria) found_.core.reset();
  }

  void in_order_of_the_table() {
    auto place = [](const Figure& figure) { return &criterion_row(figure.name) - criteria().data(); };
    std::stable_sort(found_.figures.begin(), found_.figures.end(),
                     [&](const Figure& a, const Figure& b) { return place(a) < place(b); });
  }

  const stream::Subject& tests_;
  const observers::PredictionSettings& settings_;
  SpacePtr space_;
  Profile* profile_;
  const AssessOptions& options_;
  Criteria::List list_;  ///< ranges, traces, then the criteria
  bool traced_all_ = true;
  std::map<std::string, int64_t> buckets_;  ///< of the surprise criteria asked for
  std::vector<std::shared_ptr<ImportanceCoverage>> important_;
  std::unique_ptr<const Criteria> observer_;
  CriteriaState* state_ = nullptr;  ///< while finishing
  UnitBatch tests_layer_;                               ///< values of the traced layer
  std::map<std::string, std::vector<int64_t>> places_;  ///< buckets of the tests
  Assessment found_;
};

Assessor::Assessor(const stream::Subject& tests, const observers::PredictionSettings& settings, SpacePtr space,
                   Profile* profile, const AssessOptions& options)
    : impl_(std::make_unique<Impl>(tests, settings, std::move(space), profile, options)) {}
Assessor::~Assessor() = default;
const Criteria& Assessor::observer() const { return impl_->observer(); }
Assessment Assessor::finish(CriteriaState& state, double seconds, bool interrupted) {
  return impl_->finish(state, seconds, interrupted);
}

Assessment assess(const stream::Subject& tests, const observers::PredictionSettings& settings, SpacePtr space,
                  Profile* profile, const AssessOptions& options) {
  Assessor assessor(tests, settings, std::move(space), profile, options);
  stream::Pass pass(tests);
  auto watched = pass.watch(assessor.observer());
  pass.run(options.pass);
  if (pass.samples() == 0) throw Interrupted{};
  return assessor.finish(pass.state(watched), pass.seconds(), pass.interrupted());
}

}  // namespace netmend::adequacy
