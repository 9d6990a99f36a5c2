#include "preflight/setup_search.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "preflight/setup_candidates.h"
#include "stats/moments.h"

namespace netmend::preflight {
namespace {

using dataset::Batch;
using observers::PredictionSettings;
using observers::SampleRow;
using Places = Candidates::Places;

constexpr double kDistinct = 0.05;    ///< McNemar's p below which two set-ups are told apart
constexpr double kFurther = 0.01;     ///< the same p for inputs that are changed further
constexpr double kNegligible = 0.01;  ///< of the inputs
constexpr double kFreshWork = 6e9;    ///< multiply-adds for one set-up on fresh inputs
constexpr double kTieWork = 8e10;     ///< for all that are not told apart, on further ones
constexpr double kSure = 1.96;        ///< standard errors of a difference in loss that tell two set-ups apart
constexpr double kSurer = 3;          ///< the same where one of the two is unusual: it must convince
constexpr double kPoints = 0.003, kLoss = 0.03;  ///< of accuracy, and part of the loss: costs that do not matter
constexpr double kPlain = 1.6;  ///< times the loss of another, both without a temperature: a scale that is too large
constexpr double kSameValues = 0.05;  ///< of their deviation: values that are hardly different
constexpr size_t kFinalists = 5;      ///< set-ups that are judged on all of the first inputs
constexpr size_t kLast = 4;           ///< and on fresh ones

class Search {
 public:
  Search(const Trial& trial, const SearchOptions& options)
      : trial_(trial), options_(options), candidates_(trial, options.work) {}

  Searched run() {
    Candidate& now = candidates_.as_it_is();
    Places last = finalists();
    for (const Candidate* candidate : ranked_by_tried()) result_.tried.push_back(candidate->tried);
    if (!now.first.made() || last.empty()) return result_;
    fresh_ = trial_.read_fresh(kFreshWork);
    now.fresh = candidates_.outcome(now, fresh_);
    for (Candidate* candidate : last)
      if (candidate != &now) candidate->fresh = candidates_.outcome(*candidate, fresh_);
    std::erase_if(last, [&](const Candidate* c) { return c != &now && !plausible(*c); });
    if (std::find(last.begin(), last.end(), &now) == last.end()) last.push_back(&now);
    mixed_ = std::any_of(last.begin(), last.end(), [](const Candidate* c) { return !c->order.empty(); });
    const Candidate& best = options_.free ? settle(last) : choose(last);
    // Classes that are numbered otherwise hide what else is amiss: that is looked at when they are put right.
    if (options_.free && best.order.empty()) result_.doubt = doubt(best);
    if (options_.free && result_.doubt.empty()) doubt_ties(best, last);
    if (&best == &now || !result_.doubt.empty()) return result_;
    const bool by_mistakes = convinces(now, best), by_loss = !by_mistakes && lowers_loss(now, best);
    if (!by_mistakes && !by_loss && !options_.free) return result_;
    // What is only a little better is a choice between guesses; damage costs more.
    if (by_mistakes && biases_explain(now, best)) {
      result_.instead = fmt::format(
          "shifting the biases of the last layer removes about as many failures as the set-up \"{}\" would ({})",
          best.tried.words, text_of(best.fresh.rows));
      return result_;
    }
    if (const std::string group = sound_group(now, best); !group.empty()) {
      result_.instead = fmt::format(
          "the set-up \"{}\" does better ({} instead of {}), but not for {}: inputs of other groups differ, not the "
          "set-up",
          best.tried.words, text_of(best.fresh.rows), text_of(now.fresh.rows), group);
      return result_;
    }
    result_.by_loss = by_loss;
    result_.removed = 1 - best.fresh.error / std::max(now.fresh.error, 1e-12);
    name(best, by_loss);
    return result_;
  }

 private:
  /// The best of the first look on all of the first inputs, and the best of these: by mistakes and by loss, since many
  /// set-ups make about as few mistakes.
  Places finalists() {
    Places chosen = best_of(candidates_.ranked(), &Candidate::few, kFinalists);
    if (std::find(chosen.begin(), chosen.end(), &candidates_.as_it_is()) == chosen.end())
      chosen.push_back(&candidates_.as_it_is());
    // What most people do with this very data is never out of the race by chance.
    auto take_known = [&](Places& places) {
      for (Candidate* c : candidates_.all())
        if (c->setups.size() == 1 && c->setups[0].of_this_data && candidates_.on_first(*c).made() &&
            std::find(places.begin(), places.end(), c) == places.end())
          places.push_back(c);
    };
    take_known(chosen);
    std::erase_if(chosen, [&](Candidate* c) { return !candidates_.on_first(*c).made(); });
    Places last = best_of(chosen, &Candidate::first, kLast);
    take_known(last);
    return last;
  }

  static Places best_of(const Places& places, Outcome Candidate::*on, size_t most) {
    if (places.empty()) return {};
    Places by_error = places, by_loss, chosen;
    std::stable_sort(by_error.begin(), by_error.end(), [&](const Candidate* a, const Candidate* b) {
      return std::pair((a->*on).error, (a->*on).loss.mean()) < std::pair((b->*on).error, (b->*on).loss.mean());
    });
    for (Candidate* c : by_error)
      if ((c->*on).error <= (by_error[0]->*on).error + 0.05) by_loss.push_back(c);
    std::stable_sort(by_loss.begin(), by_loss.end(), [&](const Candidate* a, const Candidate* b) {
      return (a->*on).loss.mean() < (b->*on).loss.mean();
    });
    for (const Places* some : {&by_error, &by_loss})
      for (size_t i = 0; i < std::min(most, some->size()); ++i)
        if (std::find(chosen.begin(), chosen.end(), (*some)[i]) == chosen.end()) chosen.push_back((*some)[i]);
    return chosen;
  }

  Places ranked_by_tried() const {
    Places places = candidates_.all();
    places.erase(places.begin());  // as it is
    auto error = [](const Candidate* c) { return c->first.made() ? c->first.error : c->few.error; };
    std::stable_sort(places.begin(), places.end(),
                     [&](const Candidate* a, const Candidate* b) { return error(a) < error(b); });
    return places;
  }

  /// The most accurate; of those that cannot be told from it the one with the lower loss, then the simplest.
  const Candidate& choose(const Places& places) const {
    const Candidate* best = places[0];
    for (const Candidate* c : places)
      if (std::pair(error(*c), loss(*c)) < std::pair(error(*best), loss(*best))) best = c;
    std::vector<const Candidate*> alike;
    for (const Candidate* c : places)
      if (c == best || changes(trial_.settings, rows(*c), rows(*best)).p > kDistinct || much_plainer(*c, *best))
        alike.push_back(c);
    drop_too_large(alike);
    const Candidate* least = lowest_loss(alike);
    const Candidate* chosen = nullptr;
    for (const Candidate* c : alike) {
      if (c != least && loses_more(*c, *least)) continue;
      if (!chosen || simplicity(*c) < simplicity(*chosen)) chosen = c;
    }
    return *chosen;
  }

  /// A few mistakes more, but without any temperature a far lower loss.
  bool much_plainer(const Candidate& c, const Candidate& best) const {
    return trial_.settings.by_class() && error(c) - error(best) < kNegligible &&
           kPlain * mean_loss(rows(c)) < mean_loss(rows(best));
  }

  const Candidate* lowest_loss(const std::vector<const Candidate*>& places) const {
    return *std::min_element(places.begin(), places.end(),
                             [&](const Candidate* a, const Candidate* b) { return loss(*a) < loss(*b); });
  }

  /// At the best temperature a network of rectifiers does about as well on inputs of several times the scale; without
  /// any, its confidence is then far beyond what training makes of it. That decides between losses that hardly differ.
  void drop_too_large(std::vector<const Candidate*>& alike) const {
    if (!trial_.settings.by_class()) return;
    const Candidate* least = lowest_loss(alike);
    double plainest = mean_loss(rows(*least));
    for (const Candidate* c : alike)
      if (apart(*c, *least).mean <= kLoss * loss(*least)) plainest = std::min(plainest, mean_loss(rows(*c)));
    std::erase_if(alike, [&](const Candidate* c) { return mean_loss(rows(*c)) > kPlain * plainest; });
  }

  /// Set-ups that neither mistakes nor loss tell apart are judged on further inputs, as long as there are any.
  const Candidate& settle(Places& last) {
    double work = kTieWork;
    for (;;) {
      const Candidate& best = choose(last);
      const Places tied = rivals(best, last);
      Candidate& now = candidates_.as_it_is();
      std::set<Candidate*> judged(tied.begin(), tied.end());
      judged.insert({const_cast<Candidate*>(&best), &now});
      const double each = double(judged.size()) * trial_.subject.cost;
      if (tied.empty() || mixed_ || work < each * double(Trial::kInputs)) return best;
      const Batch more = trial_.read_further(
          further_, std::min<int64_t>(Trial::kMostFresh, int64_t(std::min(work / each, double(INT32_MAX)))));
      if (more.count() < 2) return best;
      further_ += more.count(), work -= each * double(more.count());
      // Those that were told apart are out.
      std::erase_if(last, [&](Candidate* c) { return !judged.count(c); });
      for (Candidate* c : judged) add_to(c->further, candidates_.outcome(*c, more));
      std::erase_if(last, [&](Candidate* c) { return c->further.rows.size() != now.further.rows.size(); });
    }
  }

  static void add_to(Outcome& all, const Outcome& more) {
    all.rows.insert(all.rows.end(), more.rows.begin(), more.rows.end());
    all.loss.losses.insert(all.loss.losses.end(), more.loss.losses.begin(), more.loss.losses.end());
  }

  /// Those whose values are others, and that are not told from the best by their mistakes or by their loss. Where the
  /// loss without a temperature says clearly otherwise than the loss with the best one, the two do not count as told
  /// apart.
  Places rivals(const Candidate& best, const Places& places) const {
    Places tied;
    for (Candidate* c : places)
      if (c != &best && c->order == best.order && !alike_values(*c, best) &&
          changes(trial_.settings, rows(*c), rows(best)).p > kDistinct &&
          std::abs(apart(*c, best).sure()) < (c->unusual() == best.unusual() ? kSure : kSurer))
        tied.push_back(c);
    return tied;
  }

  /// Hardly another picture: constants of the same data, to fewer digits.
  bool alike_values(const Candidate& one, const Candidate& other) const {
    const Batch a = candidates_.prepared(one, trial_.first), b = candidates_.prepared(other, trial_.first);
    for (size_t f = 0; f < a.inputs.size(); ++f) {
      if (a.inputs[f].sizes() != b.inputs[f].sizes()) return false;
      if (!a.inputs[f].is_floating_point()) {
        if (!a.inputs[f].equal(b.inputs[f])) return false;
        continue;
      }
      const at::Tensor apart = (a.inputs[f] - b.inputs[f]).nan_to_num(0, 0, 0);
      if (!(apart.square().mean().sqrt().item<double>() <= kSameValues * b.inputs[f].std().item<double>()))
        return false;
    }
    return true;
  }

  /// What one set-up loses more than another on the same inputs: mean and standard error.
  struct Apart {
    double mean = 0, error = 0;
    double sure() const { return error > 0 ? mean / error : mean == 0 ? 0 : std::copysign(INFINITY, mean); }
  };
  Apart apart(const Candidate& one, const Candidate& other) const {
    const std::vector<double> losses = losses_of(one), others = losses_of(other);
    if (others.size() < 2 || losses.size() != others.size()) return {};
    stats::Moments more;
    for (size_t i = 0; i < losses.size(); ++i) more.add(losses[i] - others[i]);
    return {more.mean(), std::sqrt(more.sample_variance() / double(more.count()))};
  }

  /// What choosing `best` may cost where the rival is the one of training: points of accuracy, and part of the loss.
  bool may_matter(const Candidate& best, const Candidate& rival) const {
    const Changes more = changes(trial_.settings, rows(best), rows(rival));
    const double count = double(rows(best).size()), net = double(more.fixed - more.broken);
    if (net + std::sqrt(double(more.fixed + more.broken)) > kPoints * count) return true;
    const Apart lost = apart(best, rival);
    return lost.mean + lost.error > kLoss * loss(best);
  }

  /// Where another usual set-up fits as well, or an unusual one even better, nobody can say which it was.
  void doubt_ties(const Candidate& best, const Places& last) {
    Places others;
    for (Candidate* c : rivals(best, last))
      if (may_matter(best, *c) && (!c->unusual() || loss(*c) < loss(best))) others.push_back(c);
    if (others.empty()) return;
    auto told = [&](const Candidate& c) {
      return fmt::format("{} ({}, loss {:.3g})", c.tried.words.empty() ? "as it is" : c.tried.words,
                         figure_text(c.settings, figure(c.settings, rows(c))), loss(c));
    };
    std::vector<std::string> words = {told(best)};
    for (const Candidate* c : others) words.push_back(told(*c));
    result_.doubt = fmt::format("{} inputs are too few to distinguish these set-ups: {}",
                                with_commas(int64_t(rows(best).size())), join(words, "; "));
    for (const Candidate* c : others)
      if (!c->tried.line.empty()) result_.rivals.push_back(c->tried.line);
    if (!best.tried.line.empty()) result_.rivals.insert(result_.rivals.begin(), best.tried.line);
  }

  /// On all inputs that both sides were judged on; of an order of classes only the fresh ones tell, since the others
  /// were used to find it.
  Rows rows(const Candidate& c) const {
    Rows all = mixed_ ? Rows{} : c.first.rows;
    for (const Outcome* more : {&c.fresh, &c.further}) all.insert(all.end(), more->rows.begin(), more->rows.end());
    return all;
  }
  std::vector<double> losses_of(const Candidate& c) const {
    std::vector<double> all = mixed_ ? std::vector<double>{} : c.first.loss.losses;
    for (const Outcome* more : {&c.fresh, &c.further})
      all.insert(all.end(), more->loss.losses.begin(), more->loss.losses.end());
    return all;
  }
  double error(const Candidate& c) const { return mean_error(c.settings, rows(c)); }
  double loss(const Candidate& c) const {
    const std::vector<double> all = losses_of(c);
    double sum = 0;
    for (double one : all) sum += one;
    return all.empty() ? 0 : sum / double(all.size());
  }

  /// What changes least; where nobody said how values are scaled, a usual scale is as simple as the present one.
  std::tuple<size_t, size_t, bool, double> simplicity(const Candidate& c) const {
    const size_t others = c.changes() - size_t(c.scales());
    const size_t scale = options_.free ? c.plainness : size_t(c.scales());
    return {others, scale, c.changes() > 0 && c.tried.line.empty(), loss(c)};
  }

  /// On the same inputs, by more than half a percent and more than chance makes of it.
  bool loses_more(const Candidate& one, const Candidate& least) const {
    const Apart more = apart(one, least);
    return more.mean > more.error && more.mean > 0.005 * loss(least);
  }

  /// Of orders of classes only the fresh inputs tell: the others were used to find them.
  bool convinces(const Candidate& now, const Candidate& best) const {
    if (!best.order.empty()) return improves_accuracy(trial_.settings, now.fresh.rows, best.fresh.rows);
    Rows before = now.first.rows, after = best.first.rows;
    before.insert(before.end(), now.fresh.rows.begin(), now.fresh.rows.end());
    after.insert(after.end(), best.fresh.rows.begin(), best.fresh.rows.end());
    const Changes again = changes(trial_.settings, now.fresh.rows, best.fresh.rows);
    return improves_accuracy(trial_.settings, before, after) && again.fixed > again.broken && again.p < kDistinct;
  }

  /// Networks of plain rectifiers predict almost the same for inputs of another scale, but with far too high a
  /// confidence: more than any training makes of it, which is why no temperature does as well.
  bool lowers_loss(const Candidate& now, const Candidate& best) const {
    if (best.where != "scale" || now.fresh.loss.losses.empty() || best.fresh.error >= 0.5) return false;
    auto plain = [&](const Candidate& c) { return mean_loss(c.fresh.rows); };
    return plain(now) >= 3 * plain(best) && now.fresh.loss.mean() >= 2 * plain(best);
  }

  /// Better than the majority class, each class with a number of its own, and not against what the network remembers of
  /// its training.
  bool plausible(const Candidate& candidate) const {
    if (!candidate.fresh.made()) return false;
    if (!trial_.settings.by_class()) return true;
    if (figure(candidate.settings, candidate.fresh.rows).low <= trial_.chance()) return false;
    if (!candidate.order.empty() && !one_to_one(candidate.fresh.rows)) return false;
    // A ruined network does better with odd inputs too, but not as well as one that was trained on them.
    if (!options_.free && !candidate.setups.empty() && candidate.order.empty() &&
        1 - candidate.fresh.error < nearest_mean())
      return false;
    if (!options_.distance || candidate.setups.empty()) return true;
    return options_.distance(candidates_.prepared(candidate, trial_.first)) <=
           std::max(1.0, 2 * options_.distance(trial_.first));
  }

  /// What a network remembers of its training shows in its mistakes: it makes fewer than the simplest classifier, and
  /// not fewer still when its inputs are changed further.
  std::string doubt(const Candidate& best) const {
    if (!trial_.settings.by_class()) return "";
    const stats::Estimate accuracy = figure(best.settings, best.fresh.rows);
    if (const double simplest = nearest_mean(); accuracy.high < simplest)
      return fmt::format(
          "with the best set-up found, accuracy is {}, while a nearest-centroid classifier reaches {:.1f} %",
          figure_text(best.settings, accuracy), 100 * simplest);
    if (best.setups.empty() && best.fresh.error < kNegligible) return "";
    const std::vector<Setup> further = stretches(trial_.subject.data->info(), candidates_.prepared(best, trial_.first));
    if (double(further.size() * size_t(Trial::kInputs)) * trial_.subject.cost > options_.work) return "";
    Candidate least = best;
    for (const Setup& setup : further) {
      Candidate changed = best;
      changed.setups.insert(changed.setups.begin(), setup);
      changed.first = candidates_.outcome(changed, trial_.first);
      if (changed.first.made() && changed.first.error < least.first.error) least = std::move(changed);
    }
    if (least.setups.size() == best.setups.size()) return "";
    least.fresh = candidates_.outcome(least, fresh_);
    const Changes more = changes(trial_.settings, best.fresh.rows, least.fresh.rows);
    if (more.p > kFurther || double(more.fixed - more.broken) < kNegligible * double(best.fresh.rows.size())) return "";
    return fmt::format(
        "accuracy is {1} with the best set-up found ({0}) and {3} with {2}: the constants of the first are probably "
        "not those of training",
        best.tried.words.empty() ? "as it is" : best.tried.words, figure_text(best.settings, accuracy),
        least.setups[0].words, figure_text(best.settings, figure(least.settings, least.fresh.rows)));
  }

  /// The accuracy of the simplest classifier there is, the nearest mean of a class, on the fresh inputs: what any
  /// trained network exceeds. 0 where inputs are no quantities.
  double nearest_mean() const {
    auto flat = [](const Batch& batch) {
      std::vector<at::Tensor> columns;
      for (const at::Tensor& input : batch.inputs)
        if (input.is_floating_point()) columns.push_back(input.flatten(1).nan_to_num(0, 0, 0));
      return columns.empty() ? at::Tensor() : at::cat(columns, 1);
    };
    const at::Tensor known = flat(trial_.first), asked = flat(fresh_);
    if (!known.defined()) return 0;
    const at::Tensor labels = trial_.first.labels.to(at::kLong);
    const auto classes = int64_t(trial_.settings.classes.size());
    at::Tensor sums = at::zeros({classes, known.size(1)}), counts = at::zeros({classes, 1});
    sums.index_add_(0, labels, known), counts.index_add_(0, labels, at::ones({known.size(0), 1}));
    const at::Tensor means = sums / counts.clamp_min(1);
    at::Tensor distances = means.square().sum(1) - 2 * at::matmul(asked, means.t());
    distances.masked_fill_((counts == 0).t(), INFINITY);
    return (distances.argmin(1) == fresh_.labels.to(at::kLong)).to(at::kDouble).mean().item<double>();
  }

  /// For most classes the most frequent prediction is the right one.
  bool one_to_one(const Rows& rows) const {
    std::map<double, std::map<double, int64_t>> predicted_for;
    for (const SampleRow& row : rows)
      if (!std::isnan(row.predicted)) ++predicted_for[row.label][row.predicted];
    int64_t judged = 0, kept = 0;
    for (const auto& [label, counts] : predicted_for) {
      int64_t total = 0, most = 0;
      for (const auto& [answer, count] : counts) total += count, most = std::max(most, count);
      if (total < 5) continue;
      ++judged;
      auto own = counts.find(label);
      kept += own != counts.end() && own->second == most;
    }
    return double(kept) >= 0.8 * double(judged);
  }

  /// A bias of the last layer that is off makes a network do better with odd inputs too. Where biases that are fitted
  /// on the first inputs do as well on the fresh ones, the inputs are not to blame.
  bool biases_explain(const Candidate& now, const Candidate& best) const {
    if (best.setups.empty() || !best.order.empty() || !trial_.settings.by_class()) return false;
    const at::Tensor bias = fit_biases(trial_.settings, now.first.values, trial_.first);
    if (!bias.defined()) return false;
    const at::Tensor values = with_biases(trial_.settings, now.fresh.values, bias);
    const Rows rows = judge(trial_.settings, values, fresh_);
    const Changes more = changes(trial_.settings, rows, best.fresh.rows);
    const bool worse = more.fixed > more.broken && more.p < kDistinct;
    const Fitted loss = fit_temperature(trial_.settings, values, fresh_, kTemperature);
    return !worse && loss.mean() <= 1.1 * best.fresh.loss.mean() + 0.005;
  }

  std::string text_of(const Rows& rows) const { return figure_text(trial_.settings, figure(trial_.settings, rows)); }

  /// A group that the data keeps aside, of a fifth of the inputs or more, which is predicted as well as it is: what was
  /// prepared wrongly would be wrong for all. "" where there is none.
  std::string sound_group(const Candidate& now, const Candidate& best) const {
    const dataset::Dataset& data = *trial_.subject.data;
    if (best.kind != "preprocessing" || data.info().groups.empty()) return "";
    const Rows before = rows(now), after = rows(best);
    if (before.size() != after.size()) return "";
    std::map<std::string, std::pair<Rows, Rows>> by_group;
    for (size_t i = 0; i < before.size(); ++i) {
      const std::vector<std::string> values = data.groups(before[i].sample);
      for (size_t g = 0; g < std::min(values.size(), data.info().groups.size()); ++g) {
        auto& [as_is, other] = by_group[data.info().groups[g] + "=" + values[g]];
        as_is.push_back(before[i]), other.push_back(after[i]);
      }
    }
    for (const auto& [group, both] : by_group) {
      if (both.first.size() < 50 || 5 * both.first.size() < before.size() || both.first.size() == before.size())
        continue;
      const Changes more = changes(trial_.settings, both.first, both.second);
      const double error = mean_error(trial_.settings, both.first), all = mean_error(trial_.settings, before);
      if (more.fixed <= more.broken && error < all) return fmt::format("{} ({})", group, text_of(both.first));
    }
    return "";
  }

  void name(const Candidate& best, bool by_loss) {
    const Candidate& now = candidates_.as_it_is();
    std::string guessing =
        trial_.settings.by_class() ? fmt::format(" (majority class: {:.0f} %)", 100 * trial_.chance()) : "";
    const bool slight = options_.free && !by_loss && !convinces(now, best);
    const std::string loss =
        (by_loss || slight) && trial_.settings.by_class()
            ? fmt::format("; loss {:.3g} instead of {:.3g}", mean_loss(best.fresh.rows), mean_loss(now.fresh.rows))
            : "";
    auto text = [&](const Rows& rows) { return text_of(rows); };
    result_.blocker = Blocker{
        best.kind,
        best.where,
        slight ? "The network does better on inputs that are preprocessed differently." : best.title,
        fmt::format("As it is: {}{}{}. With the set-up \"{}\": {} on {} inputs and {} on {} others (as it is: {}){}",
                    trial_.settings.task == observers::Task::kNumber ? "" : "accuracy ", text(now.first.rows), guessing,
                    best.tried.words, text(best.first.rows), with_commas(int64_t(now.first.rows.size())),
                    text(best.fresh.rows), with_commas(int64_t(best.fresh.rows.size())), text(now.fresh.rows), loss),
        best.tried.line,
        fmt::format("tried on {} inputs: {} instead of {}{}", with_commas(int64_t(best.fresh.rows.size())),
                    text(best.fresh.rows), text(now.fresh.rows), loss)};
  }

  const Trial& trial_;
  const SearchOptions& options_;
  Candidates candidates_;
  Batch fresh_;
  int64_t further_ = 0;  ///< inputs read beyond these
  bool mixed_ = false;   ///< orders of classes are among the last
  Searched result_;
};

}  // namespace

Searched search_setups(const Trial& trial, const SearchOptions& options) { return Search(trial, options).run(); }

}  // namespace netmend::preflight
