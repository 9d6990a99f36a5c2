// What activations show on real inputs: units that never react, stay at a limit, or grow without bound.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "checks/observed.h"
#include "checks/results.h"
#include "checks/rows.h"
#include "checks/simple_models.h"
#include "findings/phrases.h"

namespace netmend::checks {
namespace {

using findings::Certainty;
using observers::UnitRange;

constexpr double kDeadShare = 1.0 / 6;  ///< of a layer: up to that is usual for small rectifier networks
constexpr double kNearlyAll = 0.9;      ///< of a layer: what is left passes little on
constexpr double kStuckShare = 0.3;
constexpr int64_t kEnoughInputs = 16;  ///< inputs: on fewer a unit may have one value by chance
constexpr double kHuge = 1e4;          ///< half precision ends at 65,504

/// Where a saturating function ends.
bool limits(const std::string& activation, double& low, double& high) {
  if (activation == "Sigmoid" || activation == "HardSigmoid") return low = 0, high = 1, true;
  if (activation == "Tanh" || activation == "Softsign") return low = -1, high = 1, true;
  return false;
}

class UnitChecks {
 public:
  UnitChecks(Observed& seen, Results& found) : seen_(seen), found_(found), ranges_(*seen.test->units->ranges()) {
    if (seen.train && seen.train->units) more_ = seen.train->units->ranges().get();
  }

  /// Of layers whose activations never change the first is named; what lies behind only passes it on.
  size_t layers() const {
    for (size_t l = 0; l < seen_.space->layers().size(); ++l)
      if (constant(l)) return l;
    return seen_.space->layers().size();
  }

  void constant_layers() {
    const size_t l = layers();
    if (l == seen_.space->layers().size()) return found_.pass("layers whose activations never change", "none");
    found_.add(findings::make(
        "constant-layer", seen_.space->layers()[l].name, words(l, 0), {0.2, 0}, Certainty::kConfirmed,
        fmt::format("{}, {}", findings::counted(seen_.space->units(l), "unit"), findings::counted(inputs(), "input")),
        fmt::format("No unit of {} ({}) changes its value over {}; this is the first such layer.",
                    seen_.space->layers()[l].name, findings::counted(seen_.space->units(l), "unit"),
                    findings::counted(inputs(), "input"))));
  }

  void dead_units() {
    if (inputs() < kEnoughInputs) return found_.skip("dead units", "at least 16 inputs");
    int64_t dead = 0, units = 0;
    for (size_t l = 0; l < layers(); ++l) units += seen_.space->units(l), dead += look_dead(l);
    if (dead == 0)
      found_.pass("dead units", fmt::format("{} of {} units, in no layer more than one unit or a sixth",
                                            with_commas(silent_), with_commas(units)));
  }

  void saturated_units() {
    if (inputs() < kEnoughInputs) return;
    for (size_t l = 0; l < layers(); ++l) stuck(l);
  }

  void activation_range() {
    double most = 0;
    for (size_t l = 0; l < layers(); ++l) most = std::max(most, huge(l));
    if (most <= kHuge) found_.pass("range of activations", fmt::format("largest {}", findings::plain(most)));
  }

 private:
  /// Over tests and, where it was run, training data.
  UnitRange range(int64_t unit) const {
    UnitRange all = ranges_[size_t(unit)];
    if (more_ && (*more_)[size_t(unit)].seen > 0) {
      const UnitRange& other = (*more_)[size_t(unit)];
      if (all.seen == 0) return other;
      all.low = std::min(all.low, other.low), all.high = std::max(all.high, other.high), all.seen += other.seen;
    }
    return all;
  }
  int64_t inputs() const { return seen_.test->data->size() + (more_ ? seen_.train->data->size() : 0); }
  findings::Words words(size_t l, int64_t count) const {
    return seen_.words({{"layer", seen_.space->layers()[l].name},
                        {"n", with_commas(count)},
                        {"of", with_commas(seen_.space->units(l))}});
  }

  bool constant(size_t l) const {
    if (inputs() < kEnoughInputs) return false;
    for (int64_t u = seen_.space->first(l); u < seen_.space->first(l + 1); ++u) {
      const UnitRange all = range(u);
      if (!all.constant() && all.high - all.low > 1e-7 * std::max(std::abs(all.high), std::abs(all.low))) return false;
    }
    return true;
  }

  int64_t look_dead(size_t l) {
    std::vector<int64_t> dead;
    for (int64_t u = seen_.space->first(l); u < seen_.space->first(l + 1); ++u)
      if (range(u).constant()) dead.push_back(u);
    silent_ += int64_t(dead.size());
    const auto count = int64_t(dead.size()), of = seen_.space->units(l);
    if (double(count) <= kDeadShare * double(of) || count < 2) return 0;
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min<size_t>(dead.size(), 6); ++i) names.push_back(seen_.space->name(dead[i]));
    // Units that are dead cost nothing where the rest does; what they cost shows against a linear model.
    const double share = double(count) / double(of), accuracy = seen_.test->result.accuracy;
    const bool judged = seen_.settings.by_class() && seen_.test->result.samples > 0;
    const std::optional<stats::Estimate> linear = judged ? linear_baseline(seen_) : std::nullopt;
    const bool costs = linear && accuracy < linear->low, pays = linear && accuracy > linear->high;
    std::string against;
    if (linear)
      against = fmt::format(" Accuracy is {}, that of a linear model {}.", findings::percent(accuracy),
                            findings::percent(linear->value));
    auto finding = findings::make(
        "dead-units", seen_.space->layers()[l].name, words(l, count), {costs ? 0.5 * (1 - accuracy) : 0, 0},
        Certainty::kConfirmed,
        fmt::format("{} of {} units, on {}", with_commas(count), with_commas(of), findings::counted(inputs(), "input")),
        fmt::format("{} of {} units of {} have the same value on all {} inputs: {}{}.{}", with_commas(count),
                    with_commas(of), seen_.space->layers()[l].name, with_commas(inputs()), join(names, ", "),
                    dead.size() > names.size() ? " …" : "", against));
    if (share > kNearlyAll && !pays)
      finding.level = findings::Level::kSerious;
    else if (share > kNearlyAll || (share > 0.5 && !pays))
      finding.level = std::max(finding.level, findings::Level::kMinor);
    finding.value = share;
    for (int64_t unit : dead) finding.numbers["units"].push_back(seen_.space->name(unit));
    found_.add(std::move(finding));
    return count;
  }

  void stuck(size_t l) {
    double low = 0, high = 0;
    if (!limits(seen_.space->layers()[l].activation, low, high)) return;
    int64_t still = 0, flipping = 0;
    const double near = 0.01 * (high - low);
    for (int64_t u = seen_.space->first(l); u < seen_.space->first(l + 1); ++u) {
      const UnitRange all = range(u);
      if (all.seen == 0) continue;
      const bool stays = all.low > high - near || all.high < low + near;
      still += stays, flipping += !stays && at_either_limit(ranges_[size_t(u)], low, high);
    }
    const int64_t count = still + flipping;
    if (double(count) <= kStuckShare * double(seen_.space->units(l)) || count < 2) return;
    found_.add(findings::make("saturated-units", seen_.space->layers()[l].name, words(l, count), {},
                              Certainty::kConfirmed,
                              fmt::format("{} of {} units", with_commas(count), with_commas(seen_.space->units(l))),
                              saturated_words(l, still, flipping)));
  }

  std::string saturated_words(size_t l, int64_t still, int64_t flipping) const {
    const model::Layer& layer = seen_.space->layers()[l];
    auto of_layer = [&](int64_t count) {
      return fmt::format("{} of {} units of {} ({})", with_commas(count), with_commas(seen_.space->units(l)),
                         layer.name, layer.activation);
    };
    std::vector<std::string> found;
    if (still > 0)
      found.push_back(
          fmt::format("Within 1 % of a limit on all {} inputs: {}.", with_commas(inputs()), of_layer(still)));
    if (flipping > 0)
      found.push_back(
          fmt::format("Flipping between both limits, on average over {} tests within 0.5 % of the range from "
                      "the nearer one: {}.",
                      with_commas(seen_.test->data->size()), of_layer(flipping)));
    return join(found, " ");
  }

  /// With t from −1 to 1 between the limits: 1 − |t| is at most 1 − t², so that the mean of t² bounds the mean distance
  /// from the nearer limit.
  static bool at_either_limit(const UnitRange& one, double low, double high) {
    const double half = (high - low) / 2, off = one.mean - (high + low) / 2;
    return one.seen >= kEnoughInputs && (one.squares / double(one.seen) + off * off) / (half * half) >= 0.99;
  }

  double huge(size_t l) {
    double most = 0;
    int64_t worst = -1;
    for (int64_t u = seen_.space->first(l); u < seen_.space->first(l + 1); ++u) {
      const UnitRange all = range(u);
      const double size = std::max(std::abs(all.low), std::abs(all.high));
      if (all.seen > 0 && size > most) most = size, worst = u;
    }
    if (most <= kHuge || worst < 0 || told_huge_) return most;
    told_huge_ = true;  // layers behind follow from the first
    auto finding =
        findings::make("exploding-activations", seen_.space->layers()[l].name, words(l, 0), {}, Certainty::kConfirmed,
                       fmt::format("up to {} in {}", findings::plain(most), seen_.space->name(worst)),
                       fmt::format("{} reaches {} in magnitude. (Of a feature map this is the mean over positions, so "
                                   "single values may be larger.)",
                                   seen_.space->name(worst), findings::plain(most)));
    const auto& peaks = seen_.test->units->peaks();
    for (int64_t n = 0; n < std::min<int64_t>(4, peaks.kept(worst)); ++n)
      finding.inputs.push_back({"test", peaks.sample(worst, n)});
    found_.add(std::move(finding));
    return most;
  }

  Observed& seen_;
  Results& found_;
  const std::vector<UnitRange>& ranges_;
  const std::vector<UnitRange>* more_ = nullptr;
  int64_t silent_ = 0;
  bool told_huge_ = false;
};

}  // namespace

void check_constant_layers(Observed& seen, Results& out) { UnitChecks(seen, out).constant_layers(); }
void check_dead_units(Observed& seen, Results& out) { UnitChecks(seen, out).dead_units(); }
void check_saturated_units(Observed& seen, Results& out) { UnitChecks(seen, out).saturated_units(); }
void check_activation_range(Observed& seen, Results& out) { UnitChecks(seen, out).activation_range(); }

}  // namespace netmend::checks
