#include "adequacy/assess.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"
#include "observers/surprise/surprise_coverage.h"
#include "observers/surprise/surprise_scores.h"

namespace netmend::adequacy {
namespace {

using observers::Criteria;
using observers::CriteriaState;
using observers::Criterion;
using observers::Figure;
using observers::Idc;
using observers::Profile;
using observers::Published;
using observers::SpacePtr;
using observers::UnitBatch;
using Memory = CriterionRow::Memory;

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

  /// Takes a criterion in unless its tallies would be too large; then says so.
  void add(std::shared_ptr<const Criterion> criterion, Memory memory) {
    const double states = 2 + (options_.pass.jobs > 0 ? options_.pass.jobs : cores());
    const double bytes = criterion->bytes(tests_.data->size()) * (memory == Memory::kPerInput ? 1 : states);
    if (found_.bytes + bytes > options_.most_bytes)
      return skip(criterion->name(),
                  fmt::format("would take {} of memory (--memory allows more, --layer needs less)", bytes_text(bytes)));
    found_.bytes += bytes;
    list_.push_back(std::move(criterion));
  }

  void choose() {
    keep_ranges();
    keep_traces();
    kept_ = list_.size();
    for (const Wanted& wanted : options_.criteria) choose(criterion_row(wanted.name), wanted.parameter);
  }

  /// Extremes of units on the tests, which are held against those on training data.
  void keep_ranges() {
    ranges_ = std::make_shared<observers::Ranges>(space_);
    add(ranges_, Memory::kPerWorker);
    if (list_.empty()) ranges_ = nullptr;
  }

  /// Of all layers where they fit, else of the profile's.
  void keep_traces() {
    const int64_t inputs = tests_.data->size();
    const double wide = observers::Traces(space_, 0, space_->layers().size()).bytes(inputs);
    traced_all_ = wide <= options_.most_bytes / 2;
    const size_t from = traced_all_ || !profile_ ? 0 : profile_->layer();
    const size_t end = traced_all_ ? space_->layers().size() : profile_ ? from + 1 : 0;
    traces_ = std::make_shared<observers::Traces>(space_, from, end, inputs);
    const double bytes = traces_->bytes(inputs);
    if (bytes > options_.most_bytes)
      throw InputError(fmt::format("the activation traces of {} inputs would take {} of memory", with_commas(inputs),
                                   bytes_text(bytes)),
                       "--limit N takes fewer inputs, --memory allows more.");
    found_.bytes += bytes;
    list_.push_back(traces_);
    if (!traced_all_)
      skip("which tests add to what is covered",
           "the values of all units would not fit into memory (--layer "
           "needs less)");
  }

  void choose(const CriterionRow& row, double parameter) {
    const std::string name(row.name);
    if (std::string why = missing(row.needs); !why.empty()) return skip(name, why);
    if (row.score) {
      buckets_[name] = int64_t(parameter);
      return;
    }
    observers::CriterionMaterials materials;
    if (profile_) materials = profile_->materials();
    materials.space = space_;
    materials.parameter = parameter;
    materials.published = options_.published;
    materials.important = options_.important;
    materials.zero_cluster = options_.zero_cluster;
    observers::MadeCriteria made = row.make(materials);
    found_.notes.insert(found_.notes.end(), made.notes.begin(), made.notes.end());
    important_.insert(important_.end(), made.important.begin(), made.important.end());
    for (auto& criterion : made.list) add(std::move(criterion), row.memory);
    if (!made.skipped.empty()) skip(name, made.skipped);
  }

  /// What a criterion needs and is not there, in words; "" when all is.
  std::string missing(const CriterionRow::Needs& needs) const {
    if (needs.training && !profile_) return options_.no_training;
    if (needs.importance && profile_ && profile_->facts.importance.empty()) return options_.no_importance;
    if (int64_t(space_->layers().size()) < needs.layers) return fmt::format("needs at least {} layers", needs.layers);
    if (predicted_classes(settings_) < needs.classes)
      return "predictions are not classes, so no other class can be near";
    return "";
  }

  CriteriaState& state() const { return *state_; }
  const UnitBatch& traces() const { return state().own_tally(*traces_).kept; }

  void finish() {
    for (size_t i = kept_; i < list_.size(); ++i) {
      const observers::Tally& tally = *state().tallies[i];
      const std::string name = list_[i]->name();
      found_.figures.push_back(list_[i]->figure(tally));
      if (criterion_row(name).lists_uncovered) {
        const std::vector<int64_t> units = list_[i]->uncovered_units(tally);
        auto& all = found_.uncovered[name];
        all.insert(all.end(), units.begin(), units.end());
      }
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

  void score() {
    if (buckets_.empty()) return;
    const int64_t classes = predicted_classes(settings_);
    const bool by_label = options_.published == Published::kNlc && settings_.by_class();
    const observers::ClassTraces training = observers::sort_by_class(profile_->traces(), classes, by_label);
    const observers::ClassTraces tests = observers::sort_by_class(tests_layer_, classes, by_label);
    int64_t unknown = 0;
    for (int64_t c = 0; c < classes; ++c) unknown += training.size(c) == 0 && tests.size(c) > 0;
    if (unknown > 0)
      found_.notes.push_back(fmt::format(
          "{} class{} predicted for tests but for no training input: surprise is not defined for these tests", unknown,
          unknown == 1 ? "" : "es"));
    const bool as_in_profile = options_.published == Published::kCorrected && !by_label;
    const observers::SurpriseMaterials materials{training, tests, options_.published, options_.pass.jobs,
                                                 as_in_profile ? &profile_->facts : nullptr};
    for (const CriterionRow& row : criteria())
      if (row.score && buckets_.count(std::string(row.name))) fill_buckets(row, row.score(materials));
  }

  void fill_buckets(const CriterionRow& row, observers::SurpriseScores found) {
    const std::string name(row.name);
    found_.notes.insert(found_.notes.end(), found.notes.begin(), found.notes.end());
    if (!found.skipped.empty()) return skip(name, found.skipped);
    observers::SurpriseCoverage coverage(name, found.low, found.high, buckets_.at(name), options_.published);
    found_.figures.push_back(coverage.figure(found.scores));
    found_.figures.back().parameters.push_back({"layer", 0, space_->layers()[profile_->layer()].name});
    places_[name] = coverage.places(found.scores);
    found_.surprise.push_back({found.name, std::move(found.scores)});
  }

  void look_at_importance() {
    for (const auto& criterion : important_) {
      if (std::find(list_.begin(), list_.end(), criterion) == list_.end()) continue;
      found_.important.push_back({criterion->figure(state().tally(*criterion)),
                                  find_combinations(*criterion, profile_->traces(), tests_layer_), criterion->units()});
    }
    if (!important_.empty()) found_.regions = find_regions(*important_.back(), profile_->traces(), tests_layer_);
  }

  /// Not for some kinds of tests alone: training is not cut down to the same kinds.
  void look_at_highs() {
    if (options_.counts || !ranges_) return;
    std::vector<double> highs;
    for (const observers::UnitRange& range : state().own_tally(*ranges_).ranges)
      highs.push_back(range.seen > 0 ? range.high : -INFINITY);
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

  std::vector<Told> tell_all() const {
    std::vector<Told> all;
    auto fresh = [&](const std::string& name) -> Told& {
      all.push_back({name});
      all.back().goals.resize(found_.rows.size());
      return all.back();
    };
    for (size_t i = kept_; i < list_.size(); ++i) {
      observers::Reached reached;
      const std::optional<int64_t> count = list_[i]->reach_by_input(traces(), reached);
      if (!count) continue;
      Told& told = fresh(list_[i]->name());
      told.count = uint64_t(*count);
      size_t at = 0;
      for (size_t row = 0; row < told.goals.size(); ++row)
        for (; at < reached.ends[row]; ++at) told.goals[row].push_back(uint32_t(reached.goals[at]));
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
      if ((coarse && criterion_row(told.name).fine) || next + told.count > UINT32_MAX) continue;
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
    if (!found_.subset)
      skip("which tests add to what is covered",
           "none of the chosen criteria can be counted "
           "per input");
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
  Criteria::List list_;                              ///< what is kept of the tests, then the criteria
  size_t kept_ = 0;                                  ///< where these begin
  std::shared_ptr<const observers::Ranges> ranges_;  ///< null where they do not fit into memory
  std::shared_ptr<const observers::Traces> traces_;
  bool traced_all_ = true;
  std::map<std::string, int64_t> buckets_;  ///< of the surprise criteria asked for
  std::vector<std::shared_ptr<const Idc>> important_;
  std::unique_ptr<const Criteria> observer_;
  CriteriaState* state_ = nullptr;                      ///< while finishing
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
