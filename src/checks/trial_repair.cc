// Is one unit, or one layer, to blame for many failures? Suspects are ranked by ablation and gradient, the first is
// refitted, and the gain counts only on held-out inputs, beside what refitting another unit gains.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "checks/observed.h"
#include "checks/results.h"
#include "checks/rows.h"
#include "edits/operations.h"
#include "edits/outlying_biases.h"
#include "findings/kinds.h"
#include "findings/phrases.h"
#include "localise/candidates.h"
#include "observers/figures.h"

namespace netmend::checks {
namespace {

using findings::Certainty;
using findings::Effect;
using observers::FlipCount;
using observers::SampleRow;

constexpr int64_t kFewest = 20;        ///< failures, and correct predictions
constexpr double kWorthwhile = 0.005;  ///< gain on unseen inputs
constexpr double kClear = 0.01;        ///< p of a gain that a sound unit hardly ever makes
constexpr double kWorthALayer = 0.02;  ///< a whole layer fits much that is no damage
constexpr double kNearlyAll = 0.8;     ///< of the failures
constexpr double kMost = 0.5;          ///< of the failures: more than going on with training would remove
constexpr double kAsMuch = 0.98;       ///< of the best layer's gain
constexpr size_t kLayersTried = 4;
constexpr size_t kBiasesTried = 4;  ///< places where biases stand apart
constexpr double kRepeated = 0.3;   ///< of the failures, for units that repeat others to be damage
constexpr double kLittle = 0.01;    ///< gain of a unit that may only stand for something larger
constexpr double kShared = 0.8;     ///< of a unit's gain: neighbours that gain as much share the damage
/// Whatever the budget: a search that is cut short finds nothing, and that says nothing.
constexpr double kLeastWork = 4e10;
constexpr size_t kScaledOn = 400;  ///< inputs that factors of a layer are tried on
constexpr double kControl = 0.7;   ///< of the gain: a control that gains more clears the unit

using observers::points_text;

class TrialRepairs {
 public:
  TrialRepairs(Observed& seen, Results& found) : seen_(seen), found_(found), budget_(seen.session.budget()) {
    if (!budget_.timed() && budget_.left() < kLeastWork) budget_ = Budget::of_work(kLeastWork);
  }

  void run() {
    if (!possible()) return;
    find_suspects();
    try_repairs();
    if (!found_.has("suspicious-unit") && !found_.has("damaged-layer")) keep_biases();
    found_.repair = std::move(tried_);
  }

 private:
  void try_repairs() {
    if (tried_.blame && !tried_.blame->located.empty()) {
      if (!make_problem() || reset_biases() || refit_repeated()) return;
      auto gain = single_unit();
      if (!gain || scaled_layer(*gain)) return;
      const bool second = *gain >= kLittle && error_rate_ - *gain >= kLittle && second_unit();
      if (second) gain = gain_of(*tried_.repair);
      if (second && layer_of_both()) return;
      // What units leave may have another cause, and a unit that gains little may only stand for it.
      if (error_rate_ - *gain >= kWorthALayer && !whole_layer(*gain) && *gain < kLittle) more_training(*gain);
    }
  }

  bool possible() {
    int64_t wrong = 0, right = 0;
    for (const SampleRow& row : seen_.test->rows) {
      wrong += row.right == SampleRow::kWrong;
      right += row.right == SampleRow::kRight;
    }
    error_rate_ = double(wrong) / double(std::max<int64_t>(1, wrong + right));
    // Of a network that was never trained any part can be fitted to something.
    if (found_.has("no-better-than-baseline")) least_ = kNearlyAll * error_rate_;
    if (wrong < kFewest || right < kFewest) {
      found_.skipped.push_back(
          {"units to blame", fmt::format("at least {} failures and {} correct predictions (there are {} and {})",
                                         kFewest, kFewest, with_commas(wrong), with_commas(right))});
      return false;
    }
    return true;
  }

  std::optional<localise::Blame> suspects(const stream::Subject& subject, const std::vector<SampleRow>& rows,
                                          Budget& budget) {
    localise::BlameOptions how;
    how.choices = {localise::find_measure("auto")};
    how.top = 10, how.resamples = 100, how.seed = seen_.seed();
    how.pass.jobs = seen_.jobs(), how.pass.quiet = true;
    Budget part = budget.part(0.4);
    how.ablation.budget = &part;
    how.rows = &rows;
    std::vector<model::Layer> layers = seen_.space->layers();
    std::erase_if(layers, [](const model::Layer& layer) { return layer.merged != model::Merged::kNo; });
    if (layers.empty()) return {};
    localise::Blame blame = localise::blame(subject, seen_.settings, layers, how);
    budget.spend(part);
    return blame;
  }

  void find_suspects() {
    try {
      tried_.blame = suspects(seen_.subject(), seen_.test->rows, budget_);
      if (!tried_.blame) return;
      seen_.session.record(seen_.session.test(), "ablation of suspicious units",
                           tried_.blame->ablated ? tried_.blame->ablated->inputs : 0);
    } catch (const InputError& error) {
      found_.skipped.push_back({"units to blame", fmt::format("another model or other data: {}", error.what())});
    }
  }

  /// False, and told, where the inputs are too few different ones to have three parts.
  bool make_problem() {
    std::vector<int64_t> strata;
    for (const SampleRow& row : seen_.test->rows)
      strata.push_back((seen_.settings.by_class() ? int64_t(row.label) : 0) * 3 + row.right);
    // Duplicates of an input stay on its side of the split.
    const std::vector<uint64_t> hashes = seen_.test->census ? seen_.test->census->hashes : std::vector<uint64_t>{};
    repair::Shares shares;
    // A few epochs over the search part must fit into what is left.
    const double cost = seen_.subject().cost;
    shares.most_search = std::clamp<int64_t>(budget_.times(60 * cost, shares.most_search), 1500, shares.most_search);
    shares.most_selection = std::min(shares.most_selection, shares.most_search / 2);
    shares.most_holdout = std::min(shares.most_holdout, 4 * shares.most_search);
    repair::Problem problem{seen_.subject(),
                            seen_.settings,
                            seen_.layers,
                            seen_.test->rows,
                            repair::split(strata, shares, seen_.seed(), hashes),
                            observers::Target{}};
    problem_.emplace(std::move(problem));
    problem_->seed = seen_.seed(), problem_->jobs = seen_.jobs(), problem_->quiet = true;
    const repair::Parts& parts = problem_->parts;
    if (parts.search.empty() || parts.selection.empty() || parts.holdout.empty()) {
      found_.skipped.push_back({"units to blame", "more inputs that are not duplicates of each other"});
      return false;
    }
    tried_.holdout = int64_t(parts.holdout.size());
    seen_.session.record(seen_.session.test(), "trial repairs: search, selection and hold-out splits",
                         int64_t(parts.search.size() + parts.selection.size()) + tried_.holdout);
    return true;
  }

  /// The units fitted alone, judged on the hold-out split.
  repair::Outcome fit(const std::vector<localise::UnitPlace>& units, double share, Budget* from = nullptr) {
    Budget& budget = from ? *from : budget_;
    problem_->units = units;
    problem_->budget = budget.part(share);
    repair::Outcome outcome = repair::mend(*problem_, "surgical", {});
    budget.spend(outcome.work);
    return outcome;
  }

  /// Where a unit of the blamed layers stands among all layers.
  std::optional<localise::UnitPlace> place_of(size_t place) const { return place_of(*tried_.blame, place); }
  std::optional<localise::UnitPlace> place_of(const localise::Blame& blame, size_t place) const {
    const localise::UnitPlace& at = blame.places[place];
    for (size_t l = 0; l < seen_.layers.size(); ++l)
      if (seen_.layers[l].node == blame.layers[at.layer].node) return localise::UnitPlace{l, at.unit};
    return {};
  }

  static double gain_of(const repair::Outcome& outcome) {
    return outcome.verdict == repair::Verdict::kRepaired ? outcome.flips.change().value : 0;
  }

  /// What refitting the first suspect gains, told as a finding; 0 when it is not to blame; nothing where the cause is
  /// another one, and told.
  std::optional<double> single_unit() {
    const localise::Ranking& ranking = tried_.blame->located[0].ranking;
    const localise::RankedUnit& first = ranking.units[0];
    auto place = place_of(first.place);
    if (!place) return 0;
    blamed_ = first.place;
    repair::Outcome outcome = fit({*place}, 0.4);
    shifted(outcome);
    if (auto undone = undo(); undone && does_as_well(undone->outcome, outcome)) return tell_undone(std::move(*undone));
    const double gain = gain_of(outcome);
    const std::string unit = tried_.blame->unit(first.place);
    keep(std::move(outcome), unit);
    if (gain < least_) {
      found_.passed.push_back({"refitting the most suspicious unit",
                               fmt::format("{}: {}", unit, points_text(tried_.repair->flips.change()))});
      return 0;
    }
    // Would any other unit have done? Then training stopped early, and this unit is no worse than others.
    double control = 0;
    const size_t other = control_of(*tried_.blame, first.place);
    const auto control_place = place_of(other);
    const bool controlled = control_place && ranking.units.size() > 2;
    if (controlled) control = gain_of(fit({*control_place}, 0.4));
    const auto& flips = tried_.repair->flips;
    const std::string evidence = fmt::format(
        "It ranks first of {}{} (expected rank of a unit drawn at random: {:.0f}). Refitting it fixes {} and breaks {} "
        "of {} held-out inputs: {}, {}.{}{}",
        findings::counted(int64_t(ranking.units.size()), "unit"),
        std::isfinite(first.first) ? fmt::format(" in {:.0f} of 100 resamples", 100 * first.first) : "",
        ranking.random_rank(), with_commas(flips.fixed), with_commas(flips.broken), with_commas(tried_.holdout),
        points_text(flips.change()), findings::p_text(tried_.repair->p),
        controlled ? fmt::format(" Refitting {}, from the middle of the ranking, {}.", tried_.blame->unit(other),
                                 gain_words(control))
                   : "",
        cheap_words());
    const std::string brief = flips_brief("refitted", flips);
    if (control > kControl * gain) {
      if (whole_layer(0)) return {};
      // No training that is only too short leaves most failures to one unit.
      if (gain < kMost * error_rate_)
        under_trained(
            gain,
            fmt::format("refitting the most suspicious unit gains {}, another one {}", findings::points(gain),
                        findings::points(control)),
            fmt::format("Refitting {} gains {} on held-out inputs, and refitting {}, which is not suspicious, gains "
                        "{}: more training would probably help the whole network.",
                        unit, findings::points(gain), tried_.blame->unit(other), findings::points(control)));
      return {};
    }
    if (gain >= kWorthALayer && shared_by_layer(first, gain)) return {};
    const bool clear = tried_.repair->p <= kClear;
    auto finding = findings::make("suspicious-unit", unit, seen_.words({{"unit", unit}}), {gain, 0},
                                  clear ? Certainty::kLikely : Certainty::kPossible, brief, evidence);
    if (!clear) finding.level = std::min(finding.level, findings::Level::kMinor);
    finding.title = fmt::format(
        "Unit {} causes {} of the failures; refitting it fixes {} and breaks {} of {} held-out inputs.", unit,
        share_words(share_fixed()), with_commas(flips.fixed), with_commas(flips.broken), with_commas(tried_.holdout));
    finding.numbers = {{"fixed", flips.fixed},
                       {"broken", flips.broken},
                       {"p", tried_.repair->p},
                       {"random_rank", ranking.random_rank()}};
    add_rivals(finding);
    show_flips(finding);
    found_.add(std::move(finding));
    return gain;
  }

  /// Shifting the final biases, the simplest repair there is, predicts held-out inputs as well and leaves no higher
  /// loss.
  bool biases_do_as_well(const repair::Outcome& one) const {
    if (!by_biases_ || one.after.rows.size() != by_biases_->rows.size()) return false;
    const FlipCount more = flips_between(by_biases_->rows, one.after.rows);
    return !clearly_better(more) && by_biases_->figure.loss <= one.after.figure.loss;
  }

  /// Where the final biases are to blame, shifting them is the trial repair, which shows what goes with it.
  void keep_biases() {
    for (findings::Finding& finding : found_.findings) {
      if (finding.kind != "shifted-biases" || !biases_) continue;
      keep(repair::judge_edits(*problem_, *biases_), "the final biases");
      const FlipCount& flips = tried_.repair->flips;
      finding.numbers["fixed"] = flips.fixed, finding.numbers["broken"] = flips.broken;
      show_flips(finding);
      return;
    }
  }

  /// A unit whose refitting says whether any would do: one from the middle of the ranking, and none behind the suspect,
  /// since later units can make up for it.
  static size_t control_of(const localise::Blame& blame, size_t suspect) {
    const localise::Ranking& ranking = blame.located[0].ranking;
    std::vector<size_t> others;
    for (const localise::RankedUnit& unit : ranking.units)
      if (unit.place != suspect && blame.places[unit.place].layer <= blame.places[suspect].layer)
        others.push_back(unit.place);
    return others.size() < 2 ? ranking.units[ranking.units.size() / 2].place : others[others.size() / 2];
  }

  /// What else explains the failures: what the final biases gain, and the loss that is left. Later parts of a network
  /// can make up for earlier ones.
  void add_rivals(findings::Finding& finding) const {
    finding.numbers["loss"] = tried_.repair->after.figure.loss;
    finding.numbers["biases_gain"] = bias_gain_;
  }

  /// A unit whose weights and bias do better with the opposite sign, or many times smaller: nothing is fitted.
  struct Undone {
    size_t place = 0;  ///< among those that may be blamed
    double factor = 1;
    repair::Outcome outcome;
  };
  std::vector<edits::Edit> scaled_unit(size_t place, double factor) const {
    const auto at = place_of(place);
    std::vector<edits::Edit> all;
    for (edits::Target target : {edits::Target::kWeights, edits::Target::kBias}) {
      if (!at) break;
      try {
        for (edits::Edit& edit : edits::operate(seen_.subject().graph, seen_.layers[at->layer], at->unit,
                                                {target, edits::Change::kScale, factor}, 0))
          all.push_back(std::move(edit));
      } catch (const InputError&) {
        if (target == edits::Target::kWeights) return {};
      }
    }
    return all;
  }

  std::optional<Undone> undo() {
    const localise::Ranking& ranking = tried_.blame->located[0].ranking;
    std::vector<int64_t> some = problem_->parts.selection;
    if (some.size() > kScaledOn) some.resize(kScaledOn);
    constexpr double kFactors[] = {-1, 1. / 16, 1. / 8, 1. / 4};
    const auto most = budget_.timed() ? 3 : int64_t(0.15 * kLeastWork / (4 * problem_->work(some.size())));
    struct Tried {
      size_t place;
      double factor, accuracy, loss;
    };
    std::vector<Tried> tried;
    auto look = [&](size_t place, double factor) {
      const std::vector<edits::Edit> made = scaled_unit(place, factor);
      if (made.empty()) return;
      const repair::Figure then = repair::evaluate(*problem_, made, some).figure;
      tried.push_back({place, factor, then.accuracy, std::isfinite(then.loss) ? then.loss : INFINITY});
    };
    auto best = [&] {
      return *std::min_element(tried.begin(), tried.end(),
                               [](const Tried& a, const Tried& b) { return a.loss < b.loss; });
    };
    for (size_t i = 0; i < std::min(ranking.units.size(), size_t(std::clamp<int64_t>(most, 2, 10))); ++i)
      for (double factor : kFactors) look(ranking.units[i].place, factor);
    if (tried.empty()) return {};
    const repair::Figure now = repair::evaluate(*problem_, {}, some).figure;
    Tried one = best();
    if (one.accuracy < now.accuracy + kLittle || !(one.loss < now.loss)) return {};
    if (one.factor > 0) {
      for (double by : {0.63, 0.8, 1.25, 1.6}) look(one.place, one.factor * by);
      one = best();
    }
    Undone undone{one.place, one.factor,
                  repair::judge_edits(*problem_, {"undo", "", scaled_unit(one.place, one.factor), {}, {}})};
    if (gain_of(undone.outcome) < std::max(kLittle, least_) || undone.outcome.p > 0.01) return {};
    return undone;
  }

  /// No worse on the hold-out split than chance makes.
  static bool does_as_well(const repair::Outcome& one, const repair::Outcome& other) {
    const FlipCount flips = flips_between(other.after.rows, one.after.rows);
    return flips.fixed >= flips.broken || stats::sign_test(flips.fixed, flips.broken) > 0.05;
  }

  double tell_undone(Undone undone) {
    const std::string unit = tried_.blame->unit(undone.place);
    const double gain = gain_of(undone.outcome);
    blamed_ = undone.place;
    keep(std::move(undone.outcome), unit);
    const auto& flips = tried_.repair->flips;
    const bool flipped = undone.factor < 0;
    const std::string what =
        flipped ? "flipping the sign of its weights" : fmt::format("dividing its weights by {:.2g}", 1 / undone.factor);
    auto finding = findings::make(
        "suspicious-unit", unit, seen_.words({{"unit", unit}}), {gain, 0}, Certainty::kLikely,
        fmt::format("{}: {} fixed, {} broken on held-out inputs",
                    flipped ? "sign flipped" : fmt::format("divided by {:.2g}", 1 / undone.factor),
                    with_commas(flips.fixed), with_commas(flips.broken)),
        fmt::format("With the weights and the bias of {} multiplied by {:.2g}, {} of {} held-out inputs are fixed and "
                    "{} broken: {}, {}. Nothing was fitted.{}",
                    unit, undone.factor, with_commas(flips.fixed), with_commas(tried_.holdout),
                    with_commas(flips.broken), points_text(flips.change()), findings::p_text(tried_.repair->p),
                    bias_words_));
    finding.title = fmt::format("Unit {} causes {} of the failures; {} fixes {} and breaks {} of {} held-out inputs.",
                                unit, share_words(share_fixed()), what, with_commas(flips.fixed),
                                with_commas(flips.broken), with_commas(tried_.holdout));
    finding.numbers = {
        {"fixed", flips.fixed}, {"broken", flips.broken}, {"p", tried_.repair->p}, {"factor", undone.factor}};
    add_rivals(finding);
    show_flips(finding);
    found_.add(std::move(finding));
    return gain;
  }

  static std::string flips_brief(const std::string& done, const FlipCount& flips) {
    return fmt::format("{}: {} fixed, {} broken on held-out inputs", done, with_commas(flips.fixed),
                       with_commas(flips.broken));
  }

  /// What a repair that was confirmed gains; 0 stands for one that was not.
  static std::string gain_words(double gain) {
    return gain == 0 ? "gives no confirmed gain" : "gains " + findings::points(gain);
  }

  /// Of the failures among the held-out inputs.
  double share_fixed() const {
    const FlipCount& flips = tried_.repair->flips;
    return double(flips.fixed) / double(std::max<int64_t>(1, flips.samples - flips.right_before));
  }

  /// `38 %`; neither 0 nor 100 where it is not.
  static std::string share_words(double share) {
    return share < 0.01 || share > 0.99 ? findings::percent(share) : fmt::format("{:.0f} %", 100 * share);
  }

  static FlipCount flips_between(const std::vector<SampleRow>& before, const std::vector<SampleRow>& after) {
    FlipCount count;
    for (size_t i = 0; i < before.size() && i < after.size(); ++i) {
      const bool was = before[i].right == SampleRow::kRight, is = after[i].right == SampleRow::kRight;
      ++count.samples, count.right_before += was, count.right_after += is;
      count.fixed += !was && is, count.broken += was && !is;
    }
    return count;
  }

  /// Biases that stand far apart from their layer: units that one of them drives, or many that they silence.
  struct SetApart {
    const model::Layer* layer;
    std::vector<edits::OutlyingBias> biases;
    std::vector<edits::Edit> reset;
    double right = 0;  ///< share, once they are put back
  };
  std::vector<SetApart> outlying_biases() const {
    std::vector<SetApart> found;
    for (const model::Layer& layer : seen_.layers) {
      const executor::Head& head = seen_.settings.head;
      if (layer.post == head.logits || layer.pre == head.logits) continue;  // a class that is held back shows by itself
      auto biases = edits::find_outlying_biases(seen_.subject().graph, layer);
      if (biases.size() > 2) {
        found.push_back({&layer, std::move(biases), {}});
        continue;
      }
      for (edits::OutlyingBias& one : biases) found.push_back({&layer, {std::move(one)}, {}});
    }
    for (SetApart& one : found)
      for (const edits::OutlyingBias& bias : one.biases)
        one.reset.insert(one.reset.end(), bias.reset.begin(), bias.reset.end());
    return found;
  }

  /// Putting such biases back is the simplest repair there is: where it helps, nothing else is searched for.
  bool reset_biases() {
    std::vector<SetApart> suspects = outlying_biases();
    std::vector<int64_t> some = problem_->parts.selection;
    if (some.size() > kScaledOn) some.resize(kScaledOn);
    for (SetApart& one : suspects) {
      one.right = repair::evaluate(*problem_, one.reset, some).figure.accuracy;
      budget_.spend(problem_->work(some.size()));
    }
    std::stable_sort(suspects.begin(), suspects.end(),
                     [](const SetApart& a, const SetApart& b) { return a.right > b.right; });
    std::vector<edits::Edit> edits;
    bool found = false;
    for (size_t i = 0; i < std::min(suspects.size(), kBiasesTried); ++i) {
      const SetApart& one = suspects[i];
      std::vector<edits::Edit> all = edits;
      all.insert(all.end(), one.reset.begin(), one.reset.end());
      repair::Outcome outcome = repair::judge_edits(*problem_, {"reset", "", all, {}, {}});
      const FlipCount more = flips_between(found ? tried_.repair->after.rows : outcome.before.rows, outcome.after.rows);
      if (more.change().value < least_ || stats::sign_test(more.fixed, more.broken) > 0.01) continue;
      const std::string what =
          one.biases.size() == 1 ? model::unit_name(*one.layer, one.biases[0].unit) : one.layer->name;
      keep(std::move(outcome), found ? tried_.repaired + " and " + what : what);
      edits = std::move(all), found = true;
      tell_reset(one, what, more);
    }
    return found;
  }

  void tell_reset(const SetApart& one, const std::string& what, const FlipCount& more) {
    const auto [low, high] = std::minmax_element(one.biases.begin(), one.biases.end(),
                                                 [](const auto& a, const auto& b) { return a.bias < b.bias; });
    const std::string effect = fmt::format("fixes {} and breaks {} of {} held-out inputs", with_commas(more.fixed),
                                           with_commas(more.broken), with_commas(tried_.holdout));
    const std::string brief = flips_brief("bias reset", more);
    if (one.biases.size() == 1) {
      auto finding = findings::make(
          "suspicious-unit", what, seen_.words({{"unit", what}}), {more.change().value, 0}, Certainty::kConfirmed,
          brief,
          low->low == low->high
              ? fmt::format("The bias of {} is {}. Setting it to {} {}: {}.", what, findings::plain(low->bias),
                            findings::plain(low->low), effect, points_text(more.change()))
              : fmt::format("The bias of {} is {}; the others of its layer lie between {} and {}. "
                            "Setting it to their median {}: {}.",
                            what, findings::plain(low->bias), findings::plain(low->low), findings::plain(low->high),
                            effect, points_text(more.change())));
      finding.title = fmt::format("The bias of unit {} is far from those of its layer; resetting it {}.", what, effect);
      finding.numbers = {{"fixed", more.fixed}, {"broken", more.broken}, {"bias", low->bias}};
      show_flips(finding);
      return found_.add(std::move(finding));
    }
    const std::string evidence = fmt::format(
        "The biases of {} of {} units of {} {}, far from the others. Setting them to the median of the others {}: {}.",
        one.biases.size(), with_commas(one.layer->units), what,
        findings::plain(low->bias) == findings::plain(high->bias)
            ? "are " + findings::plain(low->bias)
            : fmt::format("lie between {} and {}", findings::plain(low->bias), findings::plain(high->bias)),
        effect, points_text(more.change()));
    // Units that they silence were told of already; now it is known what that costs.
    auto dead = std::find_if(found_.findings.begin(), found_.findings.end(), [&](const findings::Finding& each) {
      return each.kind == "dead-units" && each.where == what;
    });
    if (dead == found_.findings.end())
      return damaged_layer(what, "Resetting the outlying biases of", "biases reset", evidence);
    promote(*dead, more,
            fmt::format("Units of {} are dead because of their biases; resetting these biases {}.", what, effect),
            brief, evidence);
  }

  /// Units that repeat another: where refitting them gains much, they were meant to be something else.
  bool refit_repeated() {
    for (findings::Finding& finding : found_.findings) {
      if (finding.kind != "duplicate-units" || !finding.numbers.contains("units")) continue;
      std::vector<localise::UnitPlace> units;
      for (size_t l = 0; l < seen_.layers.size(); ++l)
        if (seen_.layers[l].name == finding.where)
          for (int64_t u = 0; u < seen_.layers[l].units; ++u)
            for (const auto& name : finding.numbers["units"])
              if (name == model::unit_name(seen_.layers[l], u)) units.push_back({l, u});
      if (units.empty()) continue;
      repair::Outcome outcome = fit(units, 0.5);
      const FlipCount flips = outcome.flips;
      if (gain_of(outcome) < std::max(kWorthALayer, kRepeated * error_rate_)) continue;
      keep(std::move(outcome), finding.where);
      promote(finding, flips,
              fmt::format("Units of {} duplicate others; refitting these {} fixes {} and breaks {} of {} held-out "
                          "inputs.",
                          finding.where, units.size(), with_commas(flips.fixed), with_commas(flips.broken),
                          with_commas(tried_.holdout)),
              flips_brief("refitted", flips),
              fmt::format("Refitting them alone changes accuracy by {}.", points_text(flips.change())));
      return true;
    }
    return false;
  }

  /// A finding about a layer of which it is now known what it costs.
  void promote(findings::Finding& finding, const FlipCount& flips, std::string title, std::string brief,
               const std::string& evidence) {
    finding.effect = {flips.change().value, 0};
    finding.level = std::max(finding.level, findings::level_of(findings::Rule::kEffect, finding.effect));
    finding.title = std::move(title), finding.brief = std::move(brief);
    finding.evidence = evidence + " " + finding.evidence;
    finding.numbers["fixed"] = flips.fixed, finding.numbers["broken"] = flips.broken;
    show_flips(finding);
  }

  /// Is another unit damaged as well? One damage hides another: the network with the first unit refitted is looked at
  /// anew. Both units are then refitted together, and the second must add to the first.
  bool second_unit() {
    // On top of what was meant for one damage: layers are still to be looked at.
    Budget budget = budget_.timed() ? budget_.part(0.5) : Budget::of_work(kLeastWork);
    const bool found = second_unit(budget);
    if (budget_.timed()) budget_.spend(budget);
    return found;
  }

  bool second_unit(Budget& budget) {
    if (budget.left() <= 0 || tried_.repair->chosen < 0 || !tried_.repair->tried[size_t(tried_.repair->chosen)].best)
      return false;
    const std::vector<edits::Edit>& edits = tried_.repair->tried[size_t(tried_.repair->chosen)].best->edits;
    const repair::Evaluation now = repair::evaluate(*problem_, edits, problem_->parts.search);
    const std::optional<localise::Blame> blame = suspects(repair::edited(*problem_, edits), now.rows, budget);
    if (!blame || blame->located.empty() || blame->located[0].ranking.units.size() < 4) return false;
    const localise::Ranking& ranking = blame->located[0].ranking;
    const std::string before = tried_.repaired;
    const auto first = place_of(blamed_);
    if (!first) return false;
    const repair::Outcome alone = *tried_.repair;
    auto added = [&](const repair::Outcome& both) { return flips_between(alone.after.rows, both.after.rows); };
    std::optional<repair::Outcome> best;
    FlipCount gained;
    size_t which = 0, looked = 0;
    for (size_t i = 0; i < ranking.units.size() && looked < 3; ++i) {
      const auto place = place_of(*blame, ranking.units[i].place);
      if (!place || blame->unit(ranking.units[i].place) == before || budget.left() <= 0) continue;
      ++looked;
      repair::Outcome both = fit({*first, *place}, 0.3, &budget);
      const FlipCount more = added(both);
      if (!best || more.fixed - more.broken > gained.fixed - gained.broken)
        best = std::move(both), gained = more, which = i;
    }
    if (!best || gained.change().value < kWorthwhile || stats::sign_test(gained.fixed, gained.broken) > 0.01)
      return false;
    const size_t control_unit = control_of(*blame, ranking.units[which].place);
    const auto other = place_of(*blame, control_unit);
    const double control = other ? added(fit({*first, *other}, 1, &budget)).change().value : 0;
    if (control > kControl * gained.change().value) return false;
    const std::string unit = blame->unit(ranking.units[which].place);
    second_ = place_of(*blame, ranking.units[which].place);
    keep(std::move(*best), before + " and " + unit);
    auto finding = findings::make(
        "suspicious-unit", unit, seen_.words({{"unit", unit}}), {gained.change().value, 0}, Certainty::kLikely,
        fmt::format("refitting it as well fixes another {} and breaks {}", with_commas(gained.fixed),
                    with_commas(gained.broken)),
        fmt::format(
            "Compared with refitting {} alone, refitting both fixes {} more and breaks {} of {} held-out inputs: "
            "{}.{}",
            before, with_commas(gained.fixed), with_commas(gained.broken), with_commas(tried_.holdout),
            points_text(gained.change()),
            other ? fmt::format(" Refitting {} with {}, from the middle of the ranking, instead {}.", before,
                                blame->unit(control_unit), gain_words(std::max(0.0, control)))
                  : ""));
    finding.title = fmt::format(
        "Unit {} is also damaged; refitting it together with {} fixes {} more held-out inputs and breaks "
        "{}.",
        unit, before, with_commas(gained.fixed), with_commas(gained.broken));
    finding.numbers = {{"fixed", gained.fixed}, {"broken", gained.broken}};
    found_.add(std::move(finding));
    return true;
  }

  /// Two units of one layer: is it all of it? Then the whole layer fixes what the two leave.
  bool layer_of_both() {
    if (!second_ || tried_.blame->places[blamed_].layer >= tried_.blame->layers.size()) return false;
    const model::Layer& layer = tried_.blame->layers[tried_.blame->places[blamed_].layer];
    if (seen_.layers[second_->layer].node != layer.node) return false;
    repair::Outcome outcome = fit(units_of(layer), 1);
    const FlipCount more = flips_between(tried_.repair->after.rows, outcome.after.rows);
    if (gain_of(outcome) < std::max(bias_gain_, least_) || !clearly_better(more)) return false;
    keep(std::move(outcome), layer.name);
    std::erase_if(found_.findings, [](const findings::Finding& one) { return one.kind == "suspicious-unit"; });
    damaged_layer(layer.name, "Refitting", "refitted",
                  fmt::format("Compared with refitting its two most suspicious units alone, it fixes {} more and "
                              "breaks {}.",
                              with_commas(more.fixed), with_commas(more.broken)));
    return true;
  }
  static bool clearly_better(const FlipCount& more) {
    return more.fixed > more.broken && stats::sign_test(more.fixed, more.broken) < 0.05;
  }

  /// Are all weights of a layer too large or too small by one factor? The simplest explanation of a layer's damage.
  bool scaled_layer(double unit_gain) {
    const auto& ranked = tried_.blame->located[0].ranking.layers;
    std::vector<int64_t> some = problem_->parts.selection;
    if (some.size() > kScaledOn) some.resize(kScaledOn);
    struct Scaled {
      const model::Layer* layer = nullptr;
      double factor = 1, accuracy = 0, loss = 0;
      std::vector<edits::Edit> edits;
    };
    std::vector<Scaled> tried;
    auto look = [&](const model::Layer& at, double by) {
      std::vector<edits::Edit> made = edits::scale_layer(seen_.subject().graph, at, by);
      if (made.empty()) return;
      const repair::Figure then = repair::evaluate(*problem_, made, some).figure;
      budget_.spend(problem_->work(some.size()));
      tried.push_back({&at, by, then.accuracy, std::isfinite(then.loss) ? then.loss : INFINITY, std::move(made)});
    };
    auto chance = [&](double accuracy) { return std::sqrt(accuracy * (1 - accuracy) / double(some.size())); };
    // Over a wide range of factors predictions hardly change: of those that accuracy does not tell apart the loss does.
    auto best_of = [&]() -> const Scaled& {
      const double most = std::max_element(tried.begin(), tried.end(), [](const Scaled& a, const Scaled& b) {
                            return a.accuracy < b.accuracy;
                          })->accuracy;
      const Scaled* best = nullptr;
      for (const Scaled& one : tried)
        if (one.accuracy >= most - chance(most) && (!best || one.loss < best->loss)) best = &one;
      return *best;
    };
    for (size_t i = 0; i < std::min<size_t>(ranked.size(), 3); ++i)
      for (double by : {1. / 16, 1. / 8, 1. / 4, 1. / 2, 2., 4., 8., 16.})
        look(tried_.blame->layers[ranked[i].layer], by);
    if (tried.empty()) return false;
    const double now = repair::evaluate(*problem_, {}, some).figure.accuracy;
    if (best_of().accuracy <= now + 2 * chance(now)) return false;
    const model::Layer* layer = best_of().layer;
    const double coarse = best_of().factor;
    for (double by : {0.63, 0.8, 1.25, 1.6}) look(*layer, coarse * by);
    const Scaled& best = best_of();
    layer = best.layer;
    const double factor = best.factor;
    const std::vector<edits::Edit>& edits = best.edits;
    const repair::Outcome outcome = repair::judge_edits(*problem_, {"scale", "", edits, {}, {}});
    const double gain = gain_of(outcome);
    if (gain < std::max(kLittle, least_) || gain < 0.9 * unit_gain || gain < bias_gain_) return false;
    std::erase_if(found_.findings, [](const findings::Finding& one) { return one.kind == "suspicious-unit"; });
    keep(outcome, layer->name);
    damaged_layer(layer->name, fmt::format("A factor of {:.2g} on all weights of", factor), "weights scaled", "");
    findings::Finding& told = found_.findings.back();
    told.title =
        fmt::format("The weights of {} are about {:.2g} times as large as they should be.", layer->name, 1 / factor);
    told.numbers["factor"] = 1 / factor;
    return true;
  }

  void under_trained(double gain, const std::string& brief, const std::string& evidence) {
    found_.add(findings::make("under-trained", "", seen_.words({}), {std::min(gain, 0.0099), 0}, Certainty::kLikely,
                              brief, evidence));
  }

  std::string cheap_words() const {
    for (const repair::Tried& one : tried_.repair->tried)
      if (one.method == "bias" && one.best) return words_of_biases(one);
    return "";
  }
  static std::string words_of_biases(const repair::Tried& one) {
    return fmt::format(" Shifting the final biases alone fixes {} and breaks {}.", with_commas(one.fixed),
                       with_commas(one.broken));
  }

  /// What biases alone gain, when they gain much.
  void shifted(const repair::Outcome& outcome) {
    for (const repair::Tried& one : outcome.tried) {
      if (one.method != "bias" || !one.best || !seen_.settings.by_class()) continue;
      const stats::Estimate change = stats::net_change(one.fixed, one.broken, tried_.holdout);
      bias_gain_ = std::max(bias_gain_, change.value), bias_words_ = words_of_biases(one);
      by_biases_ = one.holdout, biases_ = *one.best;
      if (change.low <= 0 || change.value < kWorthwhile)
        return found_.passed.push_back({"final biases are where they should be", points_text(change)});
      auto finding =
          findings::make("shifted-biases", "", seen_.words(), {change.value, 0}, Certainty::kLikely,
                         fmt::format("shifting the final biases fixes {} and breaks {} of {} held-out inputs",
                                     with_commas(one.fixed), with_commas(one.broken), with_commas(tried_.holdout)),
                         fmt::format("Repair: {}. It fixes {} and breaks {} of {} held-out inputs: {}.",
                                     one.best->words, with_commas(one.fixed), with_commas(one.broken),
                                     with_commas(tried_.holdout), points_text(change)));
      finding.numbers = {{"loss", one.holdout.figure.loss}};
      found_.add(std::move(finding));
    }
  }

  std::vector<localise::UnitPlace> units_of(const model::Layer& layer) const {
    std::vector<localise::UnitPlace> units;
    for (size_t l = 0; l < seen_.layers.size(); ++l)
      if (seen_.layers[l].node == layer.node)
        for (int64_t u = 0; u < layer.units; ++u) units.push_back({l, u});
    return units;
  }

  /// Where the whole layer is damaged, refitting any of its units makes up for it; where one unit is, its neighbours
  /// help less. Tells of the layer, and is true, in the first case.
  bool shared_by_layer(const localise::RankedUnit& first, double gain) {
    const size_t layer = tried_.blame->places[first.place].layer;
    std::vector<size_t> neighbours;
    for (const localise::RankedUnit& unit : tried_.blame->located[0].ranking.units)
      if (tried_.blame->places[unit.place].layer == layer && unit.place != first.place)
        neighbours.push_back(unit.place);
    if (neighbours.size() < 2) return false;
    std::vector<std::string> words;
    for (const size_t place : {neighbours[neighbours.size() / 2], neighbours.back()}) {
      const auto at = place_of(place);
      const double other = at ? gain_of(fit({*at}, 0.5)) : 0;
      if (other < kShared * gain) return false;
      words.push_back(fmt::format("{} ({:+.1f})", tried_.blame->unit(place), 100 * other));
    }
    const model::Layer& whole = tried_.blame->layers[layer];
    repair::Outcome outcome = fit(units_of(whole), 1);
    if (gain_of(outcome) < std::max({kShared * gain, bias_gain_, least_})) return false;
    keep(std::move(outcome), whole.name);
    damaged_layer(whole.name, "Refitting", "refitted",
                  fmt::format("Refitting any single one of these units gains about as many points: {} ({:+.1f}), {}.",
                              tried_.blame->unit(first.place), 100 * gain, join(words, ", ")));
    return true;
  }

  /// Is a layer as a whole to blame? Where refitting one unit gains something, a layer must gain clearly more to be the
  /// better explanation. Nor is a layer to blame where the final biases alone gain more. Units of a damaged layer seem
  /// damaged one after the other; the layer then gains more than any two of them.
  /// Layers behind a damaged one make up for it as well as it does itself, those before it cannot: of those that gain
  /// about as much as the best the first is to blame. Where several gain alike and much is left, training stopped
  /// early.
  bool whole_layer(double unit_gain) {
    const auto& ranked = tried_.blame->located[0].ranking.layers;
    if (ranked.size() < 2 || (budget_.timed() && budget_.left() <= 0)) return false;
    struct Refitted {
      size_t layer;
      double gain;
      repair::Outcome outcome;
    };
    std::vector<Refitted> layers;
    const size_t looked = std::min(ranked.size(), kLayersTried);
    // On top of what was meant for units, and each for itself: a layer that nobody looked at is not cleared.
    for (size_t i = 0; i < looked; ++i) {
      if (budget_.timed() && budget_.left() <= 0) break;
      Budget own = budget_.timed() ? budget_.part(0.5) : Budget::of_work(kLeastWork / double(looked));
      repair::Outcome one = fit(units_of(tried_.blame->layers[ranked[i].layer]), 1, &own);
      if (budget_.timed()) budget_.spend(own);
      const double gain = gain_of(one);
      layers.push_back({ranked[i].layer, gain, std::move(one)});
    }
    if (layers.empty()) return false;
    std::vector<double> gains;
    for (const Refitted& one : layers) gains.push_back(one.gain);
    std::sort(gains.rbegin(), gains.rend());
    const double best = gains[0], second = gains.size() > 1 ? gains[1] : 0;
    std::sort(layers.begin(), layers.end(), [](const Refitted& a, const Refitted& b) { return a.layer < b.layer; });
    Refitted& first =
        *std::find_if(layers.begin(), layers.end(), [&](const Refitted& one) { return one.gain >= kAsMuch * best; });
    const std::string name = tried_.blame->layers[first.layer].name;
    if (best < std::max({0.9 * bias_gain_, least_, unit_gain + std::max(kLittle, 0.25 * unit_gain)}) ||
        best < kWorthALayer)
      return false;
    if (biases_do_as_well(first.outcome)) return true;  // told as what it is
    if (unit_gain > 0 && !clearly_better(flips_between(tried_.repair->after.rows, first.outcome.after.rows)))
      return false;
    if (second > kControl * best && best < kMost * error_rate_) {
      if (unit_gain > 0) return false;
      under_trained(
          best,
          fmt::format("refitting one layer gains {}, another one {}", findings::points(best), findings::points(second)),
          fmt::format("Refitting one layer gains {} on held-out inputs, and refitting another one {}: more training "
                      "would probably help the whole network.",
                      findings::points(best), findings::points(second)));
      return true;
    }
    std::vector<std::string> others;
    for (const Refitted& one : layers)
      if (&one != &first)
        others.push_back(fmt::format("{} ({:+.1f})", tried_.blame->layers[one.layer].name, 100 * one.gain));
    keep(std::move(first.outcome), name);
    std::erase_if(found_.findings, [](const findings::Finding& one) { return one.kind == "suspicious-unit"; });
    const std::string one =
        unit_gain > 0 ? fmt::format("Refitting the most suspicious unit alone gains {}.", findings::points(unit_gain))
                      : "No single unit is to blame.";
    damaged_layer(name, "Refitting", "refitted",
                  others.empty() ? one
                                 : fmt::format("{} Refitting another layer instead gains, in points: {}. Of layers "
                                               "that gain about as much, the first is named, since later layers can "
                                               "make up for a damaged one.",
                                               one, join(others, ", ")));
    return true;
  }

  /// `repair` is what was tried, as the subject of a sentence that ends in the layer, and `done` the same in short.
  void damaged_layer(const std::string& name, const std::string& repair, const std::string& done,
                     const std::string& compared) {
    const auto& flips = tried_.repair->flips;
    auto finding =
        findings::make("damaged-layer", name, seen_.words({{"layer", name}}), {flips.change().value, 0},
                       Certainty::kLikely, flips_brief(done, flips),
                       fmt::format("{} {} fixes {} and breaks {} of {} held-out inputs: {}, {}.{}{}{}", repair, name,
                                   with_commas(flips.fixed), with_commas(flips.broken), with_commas(tried_.holdout),
                                   points_text(flips.change()), findings::p_text(tried_.repair->p),
                                   compared.empty() ? "" : " ", compared, cheap_words()));
    add_rivals(finding);
    show_flips(finding);
    found_.add(std::move(finding));
  }

  /// Nothing stands out: does going on with training help? Then a unit that gained a little stood for all of them.
  bool more_training(double unit_gain) {
    if (budget_.left() <= 0) return false;
    problem_->units.clear();
    problem_->budget = budget_.part(1);
    const repair::Outcome outcome = repair::mend(*problem_, "retrain", {});
    const double gain = gain_of(outcome);
    if (gain < std::max(kLittle, 1.5 * unit_gain)) {
      found_.passed.push_back({"more training", points_text(outcome.flips.change())});
      return false;
    }
    std::erase_if(found_.findings, [](const findings::Finding& one) { return one.kind == "suspicious-unit"; });
    under_trained(
        gain, flips_brief("more training", outcome.flips),
        fmt::format("Continuing training on {} of the tests changes accuracy by {} on held-out inputs, and neither a "
                    "unit nor a layer stands out.",
                    with_commas(int64_t(problem_->parts.search.size())), points_text(outcome.flips.change())));
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

  Observed& seen_;
  Results& found_;
  Budget budget_;
  TrialRepair tried_;
  double error_rate_ = 0, bias_gain_ = 0;
  std::string bias_words_;                       ///< what the final biases alone do
  std::optional<repair::Evaluation> by_biases_;  ///< how they predict held-out inputs then
  std::optional<repair::Candidate> biases_;      ///< and the edits
  size_t blamed_ = 0;                            ///< the place of the unit whose repair is kept
  std::optional<localise::UnitPlace> second_;    ///< and of another that was told
  double least_ = kWorthwhile;                   ///< gain, for a unit or a layer to be blamed
  std::optional<repair::Problem> problem_;
};

}  // namespace

void check_trial_repair(Observed& seen, Results& out) { TrialRepairs(seen, out).run(); }

}  // namespace netmend::checks
