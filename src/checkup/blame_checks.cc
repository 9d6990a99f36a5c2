#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "checkup/trial_checks.h"
#include "localise/candidates.h"

namespace netmend::checkup {
namespace {

using findings::Effect;
using findings::Sureness;
using observers::SampleRow;

constexpr int64_t kFewest = 20;        ///< failures, and right answers
constexpr double kWorthwhile = 0.005;  ///< gain on unseen inputs
constexpr double kLeastSeconds =
    8;  ///< whatever the budget: a search that is cut short finds nothing, and nothing is no answer
constexpr double kControl = 0.7;  ///< of the gain: what fitting any other unit gives too is no fault of this one

std::string points(const stats::Estimate& change) {
  return fmt::format("{:+.1f} points ({:+.1f} to {:+.1f})", 100 * change.value, 100 * change.low, 100 * change.high);
}

class BlameChecks {
 public:
  BlameChecks(const Context& context, double seconds, Found& found)
      : context_(context),
        found_(found),
        deadline_(repair::Clock::now() + to_clock(std::max(seconds, kLeastSeconds))) {}

  Attempts run() {
    if (!possible()) return {};
    find_suspects();
    if (!tried_.blame || tried_.blame->located.empty()) return std::move(tried_);
    make_problem();
    single_unit() || whole_layer();
    return std::move(tried_);
  }

 private:
  static repair::Clock::duration to_clock(double seconds) {
    return std::chrono::duration_cast<repair::Clock::duration>(std::chrono::duration<double>(seconds));
  }
  double left() const { return std::chrono::duration<double>(deadline_ - repair::Clock::now()).count(); }

  bool possible() {
    if (!context_.space) return false;
    int64_t wrong = 0, right = 0;
    for (const SampleRow& row : context_.test.rows) {
      wrong += row.right == SampleRow::kWrong;
      right += row.right == SampleRow::kRight;
    }
    if (wrong < kFewest || right < kFewest) {
      found_.skipped.push_back(
          {"units to blame", fmt::format("at least {} failures and {} right answers (there are {} and {})", kFewest,
                                         kFewest, with_commas(wrong), with_commas(right))});
      return false;
    }
    if (context_.subject.batching.kind != executor::Batching::kAny) {
      found_.skipped.push_back({"units to blame", "a model that takes any number of inputs at once"});
      return false;
    }
    return true;
  }

  void find_suspects() {
    localise::BlameOptions how;
    how.choices = {localise::find_measure("auto")};
    how.top = 10, how.resamples = 100, how.seed = context_.seed;
    how.pass.jobs = context_.jobs, how.pass.quiet = true;
    how.supposing.inputs = left() < 8 ? 512 : 1024;
    std::vector<model::Layer> layers = context_.space->layers();
    std::erase_if(layers, [](const model::Layer& layer) { return layer.merged != model::Merged::kNo; });
    if (layers.empty()) return;
    try {
      tried_.blame = localise::blame(context_.subject, context_.settings, layers, how);
    } catch (const InputError& error) {
      found_.skipped.push_back({"units to blame", error.what()});
    }
  }

  void make_problem() {
    std::vector<int64_t> strata;
    for (const SampleRow& row : context_.test.rows)
      strata.push_back((context_.settings.by_class() ? int64_t(row.label) : 0) * 3 + row.right);
    repair::Shares shares;
    if (left() < 15) shares.most_search = 3000, shares.most_selection = 1500, shares.most_holdout = 4000;
    repair::Problem problem{context_.subject,
                            context_.settings,
                            context_.layers,
                            context_.test.rows,
                            repair::split(strata, shares, context_.seed),
                            observers::Target{}};
    problem_.emplace(std::move(problem));
    problem_->seed = context_.seed, problem_->jobs = context_.jobs, problem_->quiet = true;
    tried_.holdout = int64_t(problem_->parts.holdout.size());
  }

  /// The units fitted alone, judged on inputs that no search saw.
  repair::Outcome fit(const std::vector<localise::UnitPlace>& units, double seconds) {
    problem_->units = units;
    problem_->deadline = std::min(deadline_, repair::Clock::now() + to_clock(seconds));
    return repair::mend(*problem_, "surgical", {});
  }

  /// Where a unit of the blamed layers stands among all layers.
  std::optional<localise::UnitPlace> place_of(size_t place) const {
    const localise::UnitPlace& at = tried_.blame->places[place];
    for (size_t l = 0; l < context_.layers.size(); ++l)
      if (context_.layers[l].node == tried_.blame->layers[at.layer].node) return localise::UnitPlace{l, at.unit};
    return {};
  }

  static double gain_of(const repair::Outcome& outcome) {
    return outcome.verdict == repair::Verdict::kRepaired ? outcome.flips.change().value : 0;
  }

  bool single_unit() {
    const localise::Ranking& ranking = tried_.blame->located[0].ranking;
    const localise::RankedUnit& first = ranking.units[0];
    auto place = place_of(first.place);
    if (!place) return false;
    repair::Outcome outcome = fit({*place}, left() * 0.4);
    shifted(outcome);
    const double gain = gain_of(outcome);
    const std::string unit = tried_.blame->unit(first.place);
    keep(std::move(outcome), unit);
    if (gain < kWorthwhile) {
      found_.passed.push_back(
          {"refitting the most suspicious unit", fmt::format("{}: {}", unit, points(tried_.repair->flips.change()))});
      return false;
    }
    // Would any other unit have done? Then training stopped early, and this unit is no worse than others.
    double control = 0;
    const size_t other = ranking.units[ranking.units.size() / 2].place;
    if (auto control_place = place_of(other); control_place && ranking.units.size() > 2)
      control = gain_of(fit({*control_place}, left() * 0.4));
    const auto& flips = tried_.repair->flips;
    const std::string evidence = fmt::format(
        "First of {} units in {:.0f} of 100 resamples (a unit by lot: rank {:.0f}). On {} unseen inputs {} fixed, {} "
        "broken, {}, "
        "p = {:.1g}. The same for {}, a unit from the middle of the ranking: {:+.1f} points.{}",
        ranking.units.size(), 100 * first_share(first), ranking.random_rank(), with_commas(tried_.holdout), flips.fixed,
        flips.broken, points(flips.change()), tried_.repair->p, tried_.blame->unit(other), 100 * control,
        cheap_words());
    const std::string brief = fmt::format("repair on unseen data: {} fixed, {} broken", flips.fixed, flips.broken);
    if (control > kControl * gain) {
      under_trained(gain, control, tried_.blame->unit(other));
      return true;
    }
    auto finding = findings::make("suspicious-unit", unit, words_of(context_, {{"unit", unit}}), {gain, 0},
                                  Sureness::kLikely, brief, evidence);
    finding.numbers = {{"fixed", flips.fixed},
                       {"broken", flips.broken},
                       {"p", tried_.repair->p},
                       {"rank_of_chance", ranking.random_rank()}};
    show_flips(finding);
    found_.add(std::move(finding));
    return true;
  }

  static double first_share(const localise::RankedUnit& unit) { return std::isfinite(unit.in_top) ? unit.in_top : 1; }

  void under_trained(double gain, double control, const std::string& other) {
    found_.add(findings::make(
        "under-trained", "", words_of(context_, {}), {std::min(gain, 0.0099), 0}, Sureness::kLikely,
        fmt::format("fitting any unit gains: {:+.1f}, {:+.1f} points", 100 * gain, 100 * control),
        fmt::format("Fitting the weights of one unit gains {:.1f} points on unseen inputs, and fitting {}, which "
                    "nothing speaks against, gains {:.1f}: more training would help everywhere.",
                    100 * gain, other, 100 * control)));
  }

  std::string cheap_words() const {
    std::string words;
    for (const repair::Tried& one : tried_.repair->tried)
      if (one.method == "bias" && one.best)
        words = fmt::format(" Shifting the final biases alone: {} fixed, {} broken.", one.fixed, one.broken);
    return words;
  }

  /// What biases alone gain, when they gain much.
  void shifted(const repair::Outcome& outcome) {
    for (const repair::Tried& one : outcome.tried) {
      if (one.method != "bias" || !one.best || !context_.settings.by_class()) continue;
      const stats::Estimate change = stats::net_change(one.fixed, one.broken, tried_.holdout);
      if (change.low <= 0 || change.value < kWorthwhile)
        return found_.passed.push_back({"final biases are where they should be", points(change)});
      found_.add(findings::make(
          "shifted-answers", "", words_of(context_), {change.value, 0}, Sureness::kLikely,
          fmt::format("biases alone: {} fixed, {} broken on unseen data", one.fixed, one.broken),
          fmt::format("With the final biases shifted ({}), {} of {} unseen inputs are fixed and {} broken: {}.",
                      one.best->words, one.fixed, with_commas(tried_.holdout), one.broken, points(change))));
    }
  }

  /// No single unit: is a layer as a whole to blame? Held against the layer that is blamed least.
  bool whole_layer() {
    const auto& ranked = tried_.blame->located[0].ranking.layers;
    if (ranked.size() < 2 || left() < 2) return false;
    double best = 0, least = 1;
    std::optional<repair::Outcome> outcome;
    std::string name;
    const size_t looked = std::min<size_t>(ranked.size(), 3);
    for (size_t i = 0; i < looked && left() > 1; ++i) {
      const model::Layer& layer = tried_.blame->layers[ranked[i].layer];
      std::vector<localise::UnitPlace> units;
      for (size_t l = 0; l < context_.layers.size(); ++l)
        if (context_.layers[l].node == layer.node)
          for (int64_t u = 0; u < layer.units; ++u) units.push_back({l, u});
      repair::Outcome one = fit(units, left() / double(looked - i));
      const double gain = gain_of(one);
      least = std::min(least, gain);
      if (gain > best) best = gain, outcome = std::move(one), name = layer.name;
    }
    if (!outcome || best < 0.03) return false;
    if (least > kControl * best) {
      under_trained(best, least, "another layer");
      return true;
    }
    keep(std::move(*outcome), name);
    const auto& flips = tried_.repair->flips;
    auto finding = findings::make(
        "damaged-layer", name, words_of(context_, {{"layer", name}}), {best, 0}, Sureness::kLikely,
        fmt::format("refitted on unseen data: {} fixed, {} broken", flips.fixed, flips.broken),
        fmt::format("No single unit is to blame. With {} refitted, {} of {} unseen inputs are fixed and {} "
                    "broken: {}, p = {:.1g}. Another layer gains {:+.1f} points.{}",
                    name, flips.fixed, with_commas(tried_.holdout), flips.broken, points(flips.change()),
                    tried_.repair->p, 100 * least, cheap_words()));
    show_flips(finding);
    found_.add(std::move(finding));
    return true;
  }

  void show_flips(findings::Finding& finding) const {
    for (const repair::Flipped& flip : tried_.repair->list)
      if (flip.fixed && finding.inputs.size() < 8) finding.inputs.push_back({"test", flip.sample});
  }

  void keep(repair::Outcome outcome, const std::string& what) {
    tried_.repair = std::move(outcome);
    tried_.repaired = what;
  }

  const Context& context_;
  Found& found_;
  repair::Clock::time_point deadline_;
  Attempts tried_;
  std::optional<repair::Problem> problem_;
};

}  // namespace

Attempts check_blame(const Context& context, double seconds, Found& found) {
  return BlameChecks(context, seconds, found).run();
}

}  // namespace netmend::checkup
