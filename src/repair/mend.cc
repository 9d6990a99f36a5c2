#include "repair/mend.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/text.h"
#include "findings/phrases.h"

namespace netmend::repair {

using observers::SampleRow;

std::string verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kRepaired:
      return "repaired";
    case Verdict::kNoRealChange:
      return "no real change";
    case Verdict::kRefuse:
      return "refused";
  }
  return "";
}

namespace {

/// The chance of an error that we accept before we call a change real.
constexpr double kLevel = 0.05;
/// A class that loses so much is too high a price.
constexpr double kClassPrice = 0.05;

class Mending {
 public:
  Mending(const Problem& problem, const std::function<void(const std::string&)>& progress,
          OnInterrupt on_interrupt = OnInterrupt::kThrow)
      : problem_(problem), budget_(problem.budget), progress_(progress), on_interrupt_(on_interrupt) {}

  Outcome run(const std::string& name) {
    std::vector<const Method*> list;
    for (const Method& method : methods())
      if ((name == "auto" && method.share > 0) || method.name == name || method.cheap) list.push_back(&method);
    // What was asked for by name gets all that the cheap ones leave.
    auto share = [&](const Method& method) { return method.name == name ? 1.0 : method.share; };
    double whole = 0;
    for (const Method* method : list) whole += share(*method);
    for (const Method* method : list) {
      Budget part = budget_.part(share(*method) / std::max(whole, 1e-9));
      whole -= share(*method);
      try {
        try_one(*method, part);
        budget_.spend(part);
      } catch (const Interrupted&) {
        const bool any =
            std::any_of(out_.tried.begin(), out_.tried.end(), [](const Tried& one) { return one.best.has_value(); });
        if (!any || on_interrupt_ == OnInterrupt::kThrow) throw;
        forget_interrupt();
        if (progress_) progress_("stopped: judging what was found so far");
        out_.interrupted = true;
        break;
      }
    }
    out_.work = budget_.spent() - problem_.budget.spent();
    evaluate_holdout();
    choose(name);
    confirm();
    return std::move(out_);
  }

  Outcome judge(const Candidate& candidate) {
    out_.tried.push_back({candidate.method, candidate, "", {}, {}, 0, 0, 0, changed_values(candidate.edits)});
    out_.chosen = 0;
    evaluate_holdout();
    confirm();
    return std::move(out_);
  }

 private:
  void try_one(const Method& method, Budget& budget) {
    if (progress_) progress_(fmt::format("{}: {}", method.name, method.story));
    const auto start = Clock::now();
    Tried one;
    one.method = method.name;
    try {
      Found found = method.search(problem_, budget);
      one.why_not = found.why_not;
      one.looked_at = std::max(found.looked_at, int64_t(found.candidates.size()));
      // Methods put their own choice first; the others they found are not looked at.
      if (!found.candidates.empty()) one.best = std::move(found.candidates.front());
    } catch (const InputError& error) {  // one way that cannot be gone does not close the others
      one.why_not = error.what();
    }
    if (one.best && one.best->edits.empty()) one.best.reset(), one.why_not = "it found nothing to change";
    if (one.best) one.weights = changed_values(one.best->edits);
    one.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    out_.tried.push_back(std::move(one));
  }

  static bool cheap(const Tried& one) { return find_method(one.method).cheap; }

  /// The best of what was asked for on the selection split; with auto the smallest change that is as good.
  void choose(const std::string& name) {
    // What is no better than the network as it is has nothing to confirm.
    const double now = evaluate(problem_, {}, problem_.parts.selection).figure.score;
    double best = name == "auto" ? now : -INFINITY, best_cheap = now;
    int cheapest = -1;
    for (size_t i = 0; i < out_.tried.size(); ++i) {
      Tried& one = out_.tried[i];
      if (!one.best) continue;
      one.selection = evaluate(problem_, one.best->edits, problem_.parts.selection);
      const double score = one.best->selection.score;
      const bool allowed =
          problem_.units.empty() || !one.best->units.empty();  // only the units that were named may change
      if ((name == "auto" || one.method == name) && allowed && score > best) best = score, out_.chosen = int(i);
      if (cheap(one) && problem_.units.empty() && score > best_cheap) best_cheap = score, cheapest = int(i);
    }
    if (name == "auto" && out_.chosen >= 0) return prefer_the_smallest(now);
    if (out_.chosen < 0 || cheapest < 0 || cheap(out_.tried[size_t(out_.chosen)])) return;
    if (!as_good(out_.tried[size_t(cheapest)], out_.tried[size_t(out_.chosen)])) return;
    out_.cheap = out_.tried[size_t(cheapest)].method, out_.cheap_does_as_well = true;
  }

  /// Of changes that cannot be told apart the one of the fewest weights is taken: it is the easiest to understand and
  /// the least likely to do harm elsewhere.
  void prefer_the_smallest(double now) {
    const Tried& best = out_.tried[size_t(out_.chosen)];
    int small = out_.chosen;
    for (size_t i = 0; i < out_.tried.size(); ++i) {
      const Tried& one = out_.tried[i];
      if (!one.best || one.weights >= out_.tried[size_t(small)].weights) continue;
      const bool allowed = problem_.units.empty() || !one.best->units.empty();
      if (allowed && one.best->selection.score > now && as_good(one, best)) small = int(i);
    }
    if (small == out_.chosen) return tell_why_not_smaller(now);
    const Tried& taken = out_.tried[size_t(small)];
    const auto [better, worse] = apart(taken.holdout, best.holdout);
    out_.smaller = fmt::format(
        "{} is chosen: it changes {} instead of the {} of {}, and their results do not differ significantly "
        "(hold-out inputs that only the first gets right: {}, only the second: {}; McNemar's test, p = {:.2g})",
        taken.method, findings::counted(taken.weights, "weight"), with_commas(best.weights), best.method,
        with_commas(better), with_commas(worse), stats::sign_test(better, worse));
    out_.chosen = small;
  }

  /// Where a smaller change comes close, why it was not taken: on the hold-out split it may even look better.
  void tell_why_not_smaller(double now) {
    constexpr double kClose = 0.01;
    const Tried& best = out_.tried[size_t(out_.chosen)];
    const Tried* near = nullptr;
    for (const Tried& one : out_.tried)
      if (one.best && one.weights < best.weights && (problem_.units.empty() || !one.best->units.empty()) &&
          one.best->selection.score > now && one.holdout.figure.score >= best.holdout.figure.score - kClose &&
          (!near || one.best->selection.score > near->best->selection.score))
        near = &one;
    if (!near || !paired()) return;
    const auto [better, worse] = apart(near->selection, best.selection);
    const auto [better_out, worse_out] = apart(near->holdout, best.holdout);
    out_.larger = fmt::format(
        "{} changes only {}, but is not chosen: inputs that only {} or only {} gets right: {} or {} of the selection "
        "split, {} or {} of the hold-out set",
        near->method, findings::counted(near->weights, "weight"), near->method, best.method, with_commas(better),
        with_commas(worse), with_commas(better_out), with_commas(worse_out));
  }

  /// Inputs that only the first, and that only the second gets right.
  static std::pair<int64_t, int64_t> apart(const Evaluation& first, const Evaluation& second) {
    int64_t only_first = 0, only_second = 0;
    for (size_t i = 0; i < first.rows.size(); ++i) {
      const bool a = first.rows[i].right == SampleRow::kRight, b = second.rows[i].right == SampleRow::kRight;
      only_first += a && !b, only_second += b && !a;
    }
    return {only_first, only_second};
  }

  /// Whether scores are counts of correct predictions, so that two networks can be compared input by input.
  bool paired() const { return problem_.settings.metric == "accuracy" && !problem_.targeted; }

  /// The best score of several is partly luck: the level is shared by all states that it was chosen from.
  bool as_good_to_select(const Tried& one, const Tried& best) const {
    if (!paired())
      return one.best->selection.score >= best.best->selection.score - score_error(problem_, best.best->selection);
    const auto [better, worse] = apart(one.selection, best.selection);
    int64_t states = 0;
    for (const Tried& tried : out_.tried) states += tried.looked_at;
    return better >= worse || stats::sign_test(better, worse) > kLevel / double(std::max<int64_t>(1, states));
  }

  /// The one chosen on the selection split may give way to one that is worse by no more than chance makes, there and on
  /// the hold-out split, where the limit is a standard error of the paired difference of correct predictions, which is
  /// stricter than McNemar's test at 5 %. The hold-out split thus never speaks for a change, only against one.
  bool as_good(const Tried& one, const Tried& best) const {
    if (!as_good_to_select(one, best)) return false;
    if (problem_.settings.metric != "accuracy")
      return one.holdout.figure.score >= best.holdout.figure.score - score_error(problem_, best.holdout.figure);
    const auto [better, worse] = apart(one.holdout, best.holdout);
    return better >= worse ||
           (double(worse - better) <= std::sqrt(double(better + worse)) && stats::sign_test(better, worse) > kLevel);
  }

  void evaluate_holdout() {
    if (progress_)
      progress_(fmt::format("confirming on a hold-out set of {} inputs",
                            with_commas(int64_t(problem_.parts.holdout.size()))));
    out_.before = evaluate(problem_, {}, problem_.parts.holdout);
    for (Tried& one : out_.tried) {
      if (!one.best) continue;
      one.holdout = evaluate(problem_, one.best->edits, problem_.parts.holdout);
      observers::Flips flips = compare(one.holdout, nullptr);
      one.fixed = flips.whole().fixed, one.broken = flips.whole().broken;
    }
  }

  void confirm() {
    if (out_.chosen < 0) {
      out_.after = out_.before;
      out_.reason = "nothing that was tried is better than the unchanged network";
      return;
    }
    out_.after = out_.tried[size_t(out_.chosen)].holdout;
    observers::Flips flips = compare(out_.after, &out_.list);
    out_.flips = flips.whole(), out_.per_class = flips.per_class();
    out_.p = stats::sign_test(out_.flips.fixed, out_.flips.broken);
    const bool numbers = problem_.settings.task == observers::Task::kNumber && problem_.settings.tolerance < 0;
    out_.change = numbers ? flips.error_change() : out_.flips.change();
    judge();
  }

  observers::Flips compare(const Evaluation& after, std::vector<Flipped>* list) const {
    observers::Flips flips(problem_.settings, *problem_.subject.data);
    for (size_t i = 0; i < after.rows.size(); ++i) {
      const SampleRow& old = out_.before.rows[i];
      observers::Change change = flips.add(observers::before_of(problem_.settings, old), after.rows[i]);
      if (list && change != observers::Change::kNone)
        list->push_back(
            {old.sample, change == observers::Change::kFixed, old.label, old.predicted, after.rows[i].predicted});
    }
    return flips;
  }

  /// By the harmonic mean of recall and precision: a class that everything was called may well lose recall. Among many
  /// classes some lose by chance: a class must lose more than chance takes from any of them.
  bool pays_with_a_class() {
    auto f1 = [](const observers::ClassResult& one) {
      const double sum = one.recall + one.precision;
      return one.samples > 0 && std::isfinite(sum) && sum > 0 ? 2 * one.recall * one.precision / sum : 0;
    };
    const auto &before = out_.before.result.per_class, &after = out_.after.result.per_class;
    for (size_t c = 0; c < before.size() && c < after.size() && c < out_.per_class.size(); ++c) {
      const double lost = f1(before[c]) - f1(after[c]);
      const double chance = stats::sign_test(out_.per_class[c].fixed, out_.per_class[c].broken);
      if (lost < kClassPrice || chance * double(before.size()) > kLevel) continue;
      out_.reason =
          fmt::format("it lowers the F1 of class {} by {:.1f} points", problem_.settings.classes[c], 100 * lost);
      return true;
    }
    return false;
  }

  /// By how much the user's metric got better, with its interval; positive is better.
  stats::Estimate gain() const {
    const std::string& metric = problem_.settings.metric;
    auto turned = [](stats::Estimate e) { return stats::Estimate{-e.value, -e.high, -e.low}; };
    if (metric == "log_loss" || metric == "rmse") return turned(loss_change());  // the loss of numbers is squared error
    if (metric == "mae") return turned(out_.change);
    if (metric == "accuracy") return out_.flips.change();
    if (metric == "auc") {
      // The areas' own intervals, as if they were independent: wider than need be.
      const stats::Estimate &a = out_.before.result.metrics[0].estimate, &b = out_.after.result.metrics[0].estimate;
      const double half = std::hypot(a.high - a.low, b.high - b.low) / 2, value = b.value - a.value;
      return {value, value - half, value + half};
    }
    return resampled_gain();
  }

  /// f1 and balanced accuracy: the difference on hold-out inputs drawn again and again.
  stats::Estimate resampled_gain() const {
    const auto classes = problem_.settings.classes.size();
    constexpr int kDraws = 400;
    const size_t count = out_.before.rows.size();
    std::vector<double> gains;
    Random random(problem_.seed, 91);
    for (int draw = 0; draw < kDraws; ++draw) {
      std::vector<std::array<double, 3>> sides[2] = {std::vector<std::array<double, 3>>(classes),
                                                     std::vector<std::array<double, 3>>(classes)};
      for (size_t i = 0; i < count; ++i) {
        const size_t at = random.below(count);
        for (int side : {0, 1}) {
          const SampleRow& row = (side ? out_.after : out_.before).rows[at];
          const auto label = size_t(row.label);
          if (label >= classes) continue;
          ++sides[side][label][0];
          if (!(row.predicted >= 0) || size_t(row.predicted) >= classes) continue;
          ++sides[side][size_t(row.predicted)][1];
          sides[side][label][2] += row.right == SampleRow::kRight;
        }
      }
      gains.push_back(metric_of(sides[1]) - metric_of(sides[0]));
    }
    std::sort(gains.begin(), gains.end());
    return {out_.after.figure.metric - out_.before.figure.metric, gains[kDraws / 40], gains[kDraws - kDraws / 40 - 1]};
  }

  /// From inputs of a class, predictions of it, and those that are right.
  double metric_of(const std::vector<std::array<double, 3>>& counts) const {
    double sum = 0, classes = 0;
    const bool f1 = problem_.settings.metric == "f1";
    for (size_t c = 0; c < counts.size(); ++c) {
      if (f1 && counts.size() == 2 && int64_t(c) != problem_.settings.positive) continue;
      const auto& [have, called, right] = counts[c];
      if (have == 0 && !f1) continue;
      sum += f1 ? have + called > 0 ? 2 * right / (have + called) : 0 : right / have;
      ++classes;
    }
    return classes > 0 ? sum / classes : 0;
  }

  /// One number that divides the logits changes no prediction: what it is for is the loss.
  bool only_calibrates() const { return out_.tried[size_t(out_.chosen)].method == "temperature"; }

  void judge() {
    if (only_calibrates() && loss_change().high < 0 && out_.flips.fixed + out_.flips.broken == 0) {
      out_.verdict = Verdict::kRepaired;
      out_.reason = fmt::format("no prediction changes, and the loss on the hold-out set falls from {:.4g} to {:.4g}",
                                out_.before.figure.loss, out_.after.figure.loss);
      return;
    }
    const stats::Estimate better = gain();
    const bool test = problem_.settings.metric == "accuracy";  // counted: the exact test decides
    const bool up = test ? out_.p < kLevel && out_.flips.net() > 0 : better.low > 0;
    const bool down = test ? out_.p < kLevel && out_.flips.net() < 0 : better.high < 0;
    if (out_.after.result.not_finite > out_.before.result.not_finite) {
      out_.verdict = Verdict::kRefuse;
      out_.reason = "some outputs become NaN or Inf";
    } else if (down) {
      out_.verdict = Verdict::kRefuse;
      out_.reason = test ? "more regressions than fixes"
                         : fmt::format("{} is worse on the hold-out set", problem_.settings.metric);
    } else if (up && pays_with_a_class()) {
      out_.verdict = Verdict::kRefuse;
    } else if (up) {
      out_.verdict = Verdict::kRepaired;
      out_.reason = "confirmed on the hold-out set";
    } else {
      out_.verdict = Verdict::kNoRealChange;
      const bool numbers = problem_.settings.task == observers::Task::kNumber && problem_.settings.tolerance < 0;
      out_.reason = out_.flips.fixed + out_.flips.broken == 0 && !numbers ? "no prediction changes"
                                                                          : "the changes may be due to chance";
      if (!numbers && loss_change().high < 0)
        out_.reason +=
            fmt::format("; the loss falls from {:.4g} to {:.4g}", out_.before.figure.loss, out_.after.figure.loss);
    }
  }

  stats::Estimate loss_change() const {
    double sum = 0, squares = 0;
    int64_t count = 0;
    for (size_t i = 0; i < out_.after.rows.size(); ++i) {
      const double change = double(out_.after.rows[i].loss) - out_.before.rows[i].loss;
      if (!std::isfinite(change)) continue;
      sum += change, squares += change * change, ++count;
    }
    return stats::mean(sum, squares, count);
  }

  const Problem& problem_;
  Budget budget_;
  const std::function<void(const std::string&)>& progress_;
  OnInterrupt on_interrupt_;
  Outcome out_;
};

}  // namespace

Outcome mend(const Problem& problem, const std::string& method, const std::function<void(const std::string&)>& progress,
             OnInterrupt on_interrupt) {
  if (method != "auto") find_method(method);
  return Mending(problem, progress, on_interrupt).run(method);
}

Outcome judge_edits(const Problem& problem, const Candidate& candidate) {
  return Mending(problem, {}).judge(candidate);
}

}  // namespace netmend::repair
