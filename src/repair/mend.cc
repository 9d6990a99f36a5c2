#include "repair/mend.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"

namespace netmend::repair {

using observers::SampleRow;

std::string verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kRepaired:
      return "repaired";
    case Verdict::kNoRealChange:
      return "no real change";
    case Verdict::kRefuse:
      return "refuse";
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
  Mending(const Problem& problem, const std::function<void(const std::string&)>& heard)
      : problem_(problem), heard_(heard) {}

  Outcome run(const std::string& name) {
    std::vector<const Method*> list;
    for (const Method& method : methods())
      if ((name == "auto" && method.share > 0) || method.name == name || method.cheap) list.push_back(&method);
    // What was asked for by name gets all that the cheap ones leave.
    auto share = [&](const Method& method) { return method.name == name ? 1.0 : method.share; };
    double whole = 0;
    for (const Method* method : list) whole += share(*method);
    for (const Method* method : list) {
      const double seconds = std::max(0.5, problem_.seconds_left() * share(*method) / std::max(whole, 1e-9));
      whole -= share(*method);
      try_one(*method, seconds);
    }
    choose(name);
    confirm();
    return std::move(out_);
  }

  Outcome judge(const Candidate& candidate) {
    out_.tried.push_back({candidate.method, candidate, "", {}, 0, 0, 0});
    out_.chosen = 0;
    confirm();
    return std::move(out_);
  }

 private:
  void try_one(const Method& method, double seconds) {
    if (heard_) heard_(fmt::format("{}: {}", method.name, method.story));
    const auto start = Clock::now();
    Tried one;
    one.method = method.name;
    try {
      Found found = method.search(problem_, seconds);
      one.why_not = found.why_not;
      // Methods put their own choice first; selection decides between the rest only when that is clearly better.
      if (!found.candidates.empty()) one.best = std::move(found.candidates.front());
    } catch (const Unsupported& error) {
      one.why_not = error.what();
    }
    if (one.best && one.best->edits.empty()) one.best.reset(), one.why_not = "it found nothing to change";
    one.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    out_.tried.push_back(std::move(one));
  }

  static bool cheap(const Tried& one) { return find_method(one.method).cheap; }

  /// The best on the selection part; of what was asked for.
  void choose(const std::string& name) {
    double best = -INFINITY, best_cheap = -INFINITY;
    int cheapest = -1;
    for (size_t i = 0; i < out_.tried.size(); ++i) {
      const Tried& one = out_.tried[i];
      if (!one.best) continue;
      const double score = one.best->selection.score;
      if ((name == "auto" || one.method == name) && score > best) best = score, out_.chosen = int(i);
      if (cheap(one) && score > best_cheap) best_cheap = score, cheapest = int(i);
    }
    if (out_.chosen < 0 || cheapest < 0 || cheap(out_.tried[size_t(out_.chosen)])) return;
    const double accuracy = out_.tried[size_t(out_.chosen)].best->selection.accuracy;
    const double error = std::sqrt(std::max(accuracy * (1 - accuracy), 0.0) /
                                   double(std::max<size_t>(1, problem_.parts.selection.size())));
    if (best_cheap < best - error) return;
    out_.cheap_does_as_well = true, out_.cheap = out_.tried[size_t(cheapest)].method;
    if (name == "auto") out_.chosen = cheapest;
  }

  void confirm() {
    if (heard_)
      heard_(fmt::format("confirming on {} inputs that no search saw",
                         with_commas(int64_t(problem_.parts.holdout.size()))));
    out_.before = answer(problem_, {}, problem_.parts.holdout);
    for (Tried& one : out_.tried) {
      if (!one.best) continue;
      one.holdout = answer(problem_, one.best->edits, problem_.parts.holdout);
      observers::Flips flips = compare(one.holdout, nullptr);
      one.fixed = flips.whole().fixed, one.broken = flips.whole().broken;
    }
    if (out_.chosen < 0) {
      out_.after = out_.before;
      out_.reason = "no method found anything to change";
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

  observers::Flips compare(const Answers& after, std::vector<Flipped>* list) const {
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

  /// By the harmonic mean of recall and precision: a class that everything was called may well lose recall.
  bool pays_with_a_class() {
    auto f1 = [](const observers::ClassResult& one) {
      const double sum = one.recall + one.precision;
      return one.samples > 0 && std::isfinite(sum) && sum > 0 ? 2 * one.recall * one.precision / sum : 0;
    };
    const auto &before = out_.before.result.per_class, &after = out_.after.result.per_class;
    for (size_t c = 0; c < before.size() && c < after.size(); ++c) {
      const double lost = f1(before[c]) - f1(after[c]);
      if (before[c].samples < 20 || lost < kClassPrice) continue;
      out_.reason = fmt::format("it costs class {} {:.1f} points of f1", problem_.settings.classes[c], 100 * lost);
      return true;
    }
    return false;
  }

  void judge() {
    const bool error = observers::is_error(problem_.settings.metric);
    const double gain = (out_.after.figure.metric - out_.before.figure.metric) * (error ? -1 : 1);
    const bool numbers = problem_.settings.task == observers::Task::kNumber && problem_.settings.tolerance < 0;
    // Calibration changes no answer: the loss of each input is what can be compared.
    const stats::Estimate loss = loss_change();
    const bool by_loss = problem_.settings.metric == "log_loss" || problem_.settings.metric == "auc";
    const bool better = numbers   ? out_.change.high < 0
                        : by_loss ? loss.high < 0 && gain > 0
                                  : out_.p < kLevel && out_.flips.net() > 0 && gain > 0;
    const bool worse = numbers   ? out_.change.low > 0
                       : by_loss ? loss.low > 0 || gain < 0
                                 : out_.p < kLevel && out_.flips.net() < 0;
    if (worse) {
      out_.verdict = Verdict::kRefuse;
      out_.reason = numbers || by_loss ? "it is worse on unseen data" : "it breaks more than it fixes";
    } else if (better && pays_with_a_class()) {
      out_.verdict = Verdict::kRefuse;
    } else if (better) {
      out_.verdict = Verdict::kRepaired;
      out_.reason = "confirmed on unseen data";
    } else {
      out_.verdict = Verdict::kNoRealChange;
      out_.reason =
          out_.flips.fixed + out_.flips.broken == 0 && !numbers ? "no answer changes" : "what changes may be chance";
      if (loss.high < 0)
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
  const std::function<void(const std::string&)>& heard_;
  Outcome out_;
};

}  // namespace

Outcome mend(const Problem& problem, const std::string& method, const std::function<void(const std::string&)>& heard) {
  if (method != "auto") find_method(method);
  return Mending(problem, heard).run(method);
}

Outcome judge_edits(const Problem& problem, const Candidate& candidate) {
  return Mending(problem, {}).judge(candidate);
}

}  // namespace netmend::repair
