#include "inputs/fuzz.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <chrono>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/pool.h"
#include "base/progress.h"
#include "cluster/ranks.h"
#include "executor/runtime.h"
#include "inputs/made_dataset.h"
#include "inputs/mutators.h"
#include "observers/coverage/traces.h"

namespace netmend::inputs {
namespace {

constexpr int64_t kPicks = 128, kMutants = 16, kDraws = 50;
constexpr double kLeast = 0.01, kPatience = 5;  // p = max(p_min, 1 − picks / gamma)

/// A mutant on its way.
struct Mutant {
  int64_t parent = 0;
  bool moved = false;
  at::Tensor picture;  ///< undefined when no valid one was found
};

class Fuzzing {
 public:
  Fuzzing(const Network& network, const stream::Subject& subject, const observers::PredictionSettings& settings,
          const Chosen& seeds, const observers::SpacePtr& space, Novelty& novelty, const FuzzOptions& options)
      : network_(network),
        subject_(subject),
        seeds_(seeds),
        novelty_(novelty),
        options_(options),
        last_(network.changed().about.channels_last),
        classes_(std::max<int64_t>({2, settings.outputs, int64_t(settings.classes.size())})),
        traces_(std::make_shared<observers::Traces>(space, 0, space->layers().size())),
        observer_(settings, space, {traces_}) {}

  FuzzResult run() {
    auto start = std::chrono::steady_clock::now();
    auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
    read_seeds();
    QueueFile queue(options_.queue, options_.about, width_);
    for (const QueueRound& round : queue.rounds()) replay(round);
    result_.resumed = result_.rounds;
    const int64_t rounds = rounds_that_fit();
    Progress progress("rounds", std::max<int64_t>(0, rounds - result_.rounds), options_.quiet);
    const double room = double(executor::memory_budget()) / 8 / double(width_ * int64_t(sizeof(float)));
    const Budget& budget = options_.budget;
    while (result_.rounds < rounds && !interrupted() && double(entries_.size()) < room &&
           (!budget.timed() || budget.left() > 0 || result_.rounds == 0)) {
      QueueRound round;
      try {
        round = play(result_.rounds);
      } catch (const Interrupted&) {
      }
      if (interrupted()) break;  // half a round is none
      queue.append(round);
      take(round);
      progress.advance(1, fmt::format("{} kept", result_.kept));
    }
    result_.made.interrupted = interrupted();
    result_.made.cut = result_.rounds < options_.rounds && !interrupted();
    result_.covered = novelty_.covered();
    result_.made.seconds = spent();
    collect();
    return std::move(result_);
  }

 private:
  /// Each mutant goes through the network once.
  int64_t rounds_that_fit() const {
    if (options_.budget.timed() || !options_.budget.limited()) return options_.rounds;
    return std::max<int64_t>(1, options_.budget.times(double(kPicks * kMutants) * subject_.cost, options_.rounds));
  }

  struct Entry {
    int64_t root, reference;
    bool moved, live;    ///< live: may be changed further
    at::Tensor picture;  ///< channels × rows × columns
    int64_t picks = 0;
  };

  /// The queue begins with the seeds, and what they cover counts as covered.
  void read_seeds() {
    std::vector<at::Tensor> pictures;
    for (int64_t first = 0; first < seeds_.count(); first += 1024) {
      std::span<const int64_t> some(seeds_.samples.data() + first,
                                    size_t(std::min<int64_t>(1024, seeds_.count() - first)));
      at::Tensor units = network_.range()->units(subject_.data->read(some).inputs[network_.changed().feature]);
      pictures.push_back(upright(units));
    }
    at::Tensor all = at::cat(pictures, 0);
    width_ = all[0].numel();
    for (int64_t i = 0; i < all.size(0); ++i) entries_.push_back({i, i, false, true, all[i]});
    if (auto seen = look(all, all_roots())) novelty_.add(*seen);
    result_.covered_before = novelty_.covered();
  }

  std::vector<int64_t> all_roots() const {
    std::vector<int64_t> roots;
    for (const Entry& entry : entries_) roots.push_back(entry.root);
    return roots;
  }

  at::Tensor upright(const at::Tensor& units) const {
    return (last_ ? units.permute({0, 3, 1, 2}) : units).contiguous();
  }
  at::Tensor as_fed(const at::Tensor& pictures) const {
    return last_ ? pictures.permute({0, 2, 3, 1}).contiguous() : pictures;
  }

  /// Values of all units for these pictures, and the predictions for them; nothing when it was interrupted.
  std::optional<observers::UnitBatch> look(const at::Tensor& pictures, const std::vector<int64_t>& roots) const {
    Originals originals;
    std::vector<int64_t> samples;
    for (int64_t root : roots) samples.push_back(seeds_.samples[size_t(root)]);
    originals.batch = subject_.data->read(samples);
    stream::Subject made = subject_;
    made.data =
        std::make_shared<MadeDataset>(subject_.data->info(), network_.changed_batch(originals, as_fed(pictures)));
    stream::PassOptions how;
    how.jobs = options_.jobs, how.quiet = true;
    stream::PassResult done = stream::run_pass(made, {&observer_}, how);
    if (done.interrupted || done.collected[0].pieces.empty()) return std::nullopt;
    auto state = done.collected[0].fold(observer_);
    auto& own = dynamic_cast<observers::CriteriaState&>(*state);
    return std::move(dynamic_cast<observers::TraceTally&>(*own.tallies[0]).kept);
  }

  /// What was kept in earlier rounds is covered, and nothing else is: what was thrown away covered nothing new.
  void replay(const QueueRound& round) {
    for (int64_t pick : round.picked)
      if (pick < 0 || pick >= int64_t(entries_.size()))
        fail("{} does not fit these inputs: remove it to start over", options_.queue);
    for (size_t i = 0; i < round.kept.size(); ++i) {
      const QueueEntry& entry = round.kept[i];
      // What changes are measured against stands before the entry, or is the entry itself.
      if (entry.root < 0 || entry.root >= seeds_.count() || entry.reference < 0 ||
          entry.reference > int64_t(entries_.size() + i) || entry.fresh < 0 || entry.after < -1 ||
          entry.after >= classes_)
        fail("{} does not fit these inputs: remove it to start over", options_.queue);
    }
    take(round);
    std::vector<at::Tensor> pictures;
    std::vector<int64_t> roots;
    for (size_t i = entries_.size() - round.kept.size(); i < entries_.size(); ++i)
      pictures.push_back(entries_[i].picture), roots.push_back(entries_[i].root);
    if (!pictures.empty())
      if (auto seen = look(at::stack(pictures), roots)) novelty_.add(*seen);
  }

  int64_t pick(Random& random) const {
    for (;;) {
      const auto number = int64_t(random.below(entries_.size()));
      const Entry& entry = entries_[size_t(number)];
      if (entry.live && random.uniform() < std::max(kLeast, 1 - double(entry.picks) / kPatience)) return number;
    }
  }

  Mutant mutate(int64_t parent, Random random) const {
    const Entry& entry = entries_[size_t(parent)];
    for (int64_t draw = 0; draw < kDraws; ++draw) {
      const Mutator& mutator = mutators()[random.below(mutators().size())];
      if (mutator.affine && entry.moved) continue;
      at::Tensor picture = mutator.apply(entry.picture, random);
      if (at::equal(picture, entry.picture)) continue;
      const bool checked = !mutator.affine && !(options_.as_published && mutator.unchecked_as_published);
      // Changes are measured against the seed, or against what an affine change made of it.
      if (!checked || is_valid(entries_[size_t(entry.reference)].picture, picture))
        return {parent, mutator.affine, std::move(picture)};
    }
    return {parent, false, {}};
  }

  QueueRound play(int64_t number) {
    Random choice(options_.seed, uint64_t(number) * 2 + 1);
    QueueRound round;
    for (int64_t i = 0; i < kPicks; ++i) round.picked.push_back(pick(choice));
    std::vector<Mutant> mutants(size_t(kPicks * kMutants));
    in_order(
        kPicks, options_.jobs > 0 ? options_.jobs : cores(), [](int) { executor::enter_worker(); },
        [&](int64_t item, int) {
          at::NoGradGuard no_grad;
          for (int64_t m = 0; m < kMutants; ++m) {
            const int64_t slot = item * kMutants + m;
            mutants[size_t(slot)] = mutate(round.picked[size_t(item)], random_for(options_.seed, "fuzz", number, slot));
          }
        },
        [](int64_t) {});
    std::erase_if(mutants, [](const Mutant& mutant) { return !mutant.picture.defined(); });
    if (mutants.empty()) return round;
    std::vector<at::Tensor> pictures;
    std::vector<int64_t> roots;
    for (const Mutant& mutant : mutants)
      pictures.push_back(mutant.picture), roots.push_back(entries_[size_t(mutant.parent)].root);
    auto seen = look(at::stack(pictures), roots);
    if (!seen) return round;
    judge(mutants, *seen, round);
    return round;
  }

  void judge(const std::vector<Mutant>& mutants, const observers::UnitBatch& seen, QueueRound& round) {
    std::vector<int64_t> fresh = novelty_.add(seen);
    std::set<int64_t> failed_now;
    for (size_t i = 0; i < mutants.size(); ++i) {
      const Entry& parent = entries_[size_t(mutants[i].parent)];
      const double predicted = seen.rows[i].predicted;
      const int64_t after = std::isfinite(predicted) ? int64_t(predicted) : -1;
      const bool failing = after != seeds_.predictions[size_t(parent.root)];
      ++round.tried, round.failing += failing;
      const bool first = failing && !failed_.count(parent.root) && failed_now.insert(parent.root).second;
      if (fresh[i] == 0 && !first) continue;
      QueueEntry entry{parent.root, parent.reference, fresh[i], after, failing, parent.moved || mutants[i].moved, {}};
      if (mutants[i].moved) entry.reference = int64_t(entries_.size() + round.kept.size());
      at::Tensor flat = mutants[i].picture.contiguous();
      entry.values.assign(flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
      round.kept.push_back(std::move(entry));
    }
  }

  void take(const QueueRound& round) {
    for (int64_t number : round.picked) ++entries_[size_t(number)].picks;
    for (const QueueEntry& kept : round.kept) {
      at::Tensor picture = at::tensor(kept.values, at::kFloat).reshape(entries_[0].picture.sizes());
      entries_.push_back({kept.root, kept.reference, kept.moved, !kept.failing, picture});
      after_.push_back(kept.after);
      if (kept.failing) failed_.insert(kept.root);
      result_.kept += !kept.failing;
    }
    result_.tried += round.tried, result_.failing += round.failing;
    ++result_.rounds;
  }

  /// Everything that was kept, in the form that all methods hand over.
  void collect() {
    const auto seeds = size_t(seeds_.count());
    if (entries_.size() == seeds) return;
    std::vector<at::Tensor> before, after;
    for (size_t i = seeds; i < entries_.size(); ++i)
      before.push_back(entries_[size_t(entries_[i].root)].picture), after.push_back(entries_[i].picture);
    at::Tensor old = as_fed(at::stack(before)), now = as_fed(at::stack(after));
    std::vector<Distance> far = distances(old, now, false);
    at::Tensor raw = network_.range()->raw(now), own = network_.range()->raw(old);
    result_.made.raw = at::where(now == old, network_.range()->bytes() ? own.round() : own, raw);
    for (size_t i = seeds; i < entries_.size(); ++i) {
      Attempt attempt;
      const auto root = size_t(entries_[i].root);
      attempt.sample = seeds_.samples[root], attempt.before = seeds_.predictions[root],
      attempt.after = after_[i - seeds];
      at::Tensor labels = subject_.data->read(std::span(&attempt.sample, 1)).labels;
      if (labels.defined() && labels.dim() == 1) attempt.label = labels[0].item().toLong();
      attempt.distance = far[i - seeds];
      result_.made.attempts.push_back(attempt);
    }
  }

  const Network& network_;
  const stream::Subject& subject_;
  const Chosen& seeds_;
  Novelty& novelty_;
  const FuzzOptions& options_;
  bool last_;
  int64_t classes_;
  std::shared_ptr<const observers::Traces> traces_;
  observers::Criteria observer_;
  std::vector<Entry> entries_;
  std::vector<int64_t> after_;  ///< predictions for what was kept
  std::set<int64_t> failed_;    ///< seeds with a failure
  int64_t width_ = 0;
  FuzzResult result_;
};

}  // namespace

FuzzResult fuzz(const Network& network, const stream::Subject& subject, const observers::PredictionSettings& settings,
                const Chosen& seeds, const observers::SpacePtr& space, Novelty& novelty, const FuzzOptions& options) {
  if (cluster::size() > 1)
    throw InputError("fuzzing cannot be shared by ranks: each input follows from those before it",
                     "Start it once, without mpirun.");
  return Fuzzing(network, subject, settings, seeds, space, novelty, options).run();
}

}  // namespace netmend::inputs
