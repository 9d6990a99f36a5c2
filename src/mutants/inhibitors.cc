#include "mutants/inhibitors.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/hash.h"
#include "base/random.h"
#include "edits/unit_numbers.h"
#include "stats/intervals.h"
#include "stats/moments.h"
#include "stream/pass.h"
#include "whatif/whatif.h"

namespace netmend::mutants {
namespace {

constexpr double kShares[] = {0.1, 0.25, 0.5, 1};
constexpr int kDraws = 5;
constexpr double kPrecision = 0.01, kAgree = 0.95, kPoint = 0.01;
constexpr size_t kEnoughOriginals = 5;

/// What one draw does to one original.
struct Effect {
  int64_t fixed = 0, broken = 0, inputs = 0;
  double lost() const { return inputs ? double(broken - fixed) / double(inputs) : 0; }
  bool kills() const { return stats::sign_test(fixed, broken) < 0.05 && lost() >= kPoint; }
};

/// P(mean as large when signs are drawn), over all patterns of signs.
double sign_flip_test(const std::vector<double>& differences) {
  double sum = 0;
  for (double x : differences) sum += x;
  int64_t as_large = 0;
  const int64_t patterns = int64_t(1) << differences.size();
  for (int64_t pattern = 0; pattern < patterns; ++pattern) {
    double other = 0;
    for (size_t i = 0; i < differences.size(); ++i) other += (pattern >> i & 1) ? -differences[i] : differences[i];
    as_large += other >= sum - 1e-12;
  }
  return double(as_large) / double(patterns);
}

bool clear_effect(const std::vector<double>& lost) {
  stats::Moments moments;
  for (double x : lost) moments.add(x);
  const double deviation = std::sqrt(moments.sample_variance());
  const bool large = deviation > 0 ? moments.mean() / deviation >= 0.5 : moments.mean() > 0;
  return large && (lost.size() > 20 || sign_flip_test(lost) < 0.05);
}

/// `effects` by original, then by draw.
StrengthTried judge(double strength, const std::vector<std::vector<Effect>>& effects) {
  StrengthTried tried{strength};
  std::vector<double> lost;
  int64_t pairs = 0;
  for (const auto& draws : effects) {
    double sum = 0;
    for (const Effect& one : draws) sum += one.lost(), tried.killed += one.kills(), ++pairs;
    lost.push_back(sum / double(draws.size()));
    tried.lost += lost.back() / double(effects.size());
  }
  tried.killed /= double(pairs);
  tried.kills = tried.killed >= kAgree && (lost.size() < kEnoughOriginals || clear_effect(lost));
  return tried;
}

/// All strengths that are asked for together: the inputs of each block are run once.
class Search {
 public:
  Search(std::span<const Original> originals, int jobs) : originals_(originals), jobs_(jobs) {}

  std::vector<Strength> run() {
    for (size_t l = 0; l < originals_[0].layers->size(); ++l)
      for (Inhibitor kind : {Inhibitor::kWeights, Inhibitor::kNeurons})
        for (double share : kShares) cells_.push_back({{kind, int(l), share}, 0, 1, 1, true});
    ask();
    while (std::any_of(cells_.begin(), cells_.end(), [](const Cell& c) { return c.open; })) ask();
    std::vector<Strength> found;
    for (Cell& cell : cells_)
      if (!cell.found.tried.empty()) found.push_back(std::move(cell.found));
    return found;
  }

 private:
  struct Cell {
    Strength found;
    double low = 0, high = 1, next = 1;
    bool open = true;
  };

  /// Strength `next` of every open cell, on every original and draw.
  void ask() {
    std::vector<std::vector<std::vector<Effect>>> effects(cells_.size());
    for (size_t o = 0; o < originals_.size(); ++o) {
      std::vector<whatif::Question> questions(1);
      std::vector<std::pair<size_t, size_t>> asked(1);
      for (size_t c = 0; c < cells_.size(); ++c) {
        if (!cells_[c].open) continue;
        effects[c].resize(originals_.size());
        add_questions(o, c, questions, asked, effects[c][o]);
      }
      judge_all(o, questions, asked, effects);
    }
    for (size_t c = 0; c < cells_.size(); ++c)
      if (cells_[c].open) settle(cells_[c], effects[c]);
  }

  void add_questions(size_t o, size_t c, std::vector<whatif::Question>& questions,
                     std::vector<std::pair<size_t, size_t>>& asked, std::vector<Effect>& own) {
    const Strength& cell = cells_[c].found;
    try {
      for (int draw = 0; draw < draws_of(cell.share); ++draw) {
        questions.push_back({inhibited_edits(originals_[o].subject->graph, (*originals_[o].layers)[size_t(cell.layer)],
                                             cell.kind, cell.share, cells_[c].next, uint64_t(draw))});
        asked.emplace_back(c, own.size());
        own.emplace_back();
      }
    } catch (const InputError&) {  // shared or quantised weights, readers that are not linear: no such mutant
      cells_[c].open = false;
    }
  }

  void judge_all(size_t o, const std::vector<whatif::Question>& questions,
                 const std::vector<std::pair<size_t, size_t>>& asked,
                 std::vector<std::vector<std::vector<Effect>>>& effects) {
    whatif::WhatIf whatif(*originals_[o].subject, *originals_[o].settings, *originals_[o].layers, {.jobs = jobs_});
    std::vector<bool> right(size_t(originals_[o].subject->data->size()));
    whatif.ask(questions, [&](size_t q, int64_t first, std::span<const whatif::Judgement> rows) {
      for (size_t i = 0; i < rows.size(); ++i) {
        const size_t at = size_t(first) + i;
        if (q == 0) {
          right[at] = rows[i].right;
          continue;
        }
        Effect& effect = effects[asked[q].first][o][asked[q].second];
        ++effect.inputs;
        effect.fixed += rows[i].right && !right[at], effect.broken += !rows[i].right && right[at];
      }
    });
  }

  static void settle(Cell& cell, const std::vector<std::vector<Effect>>& effects) {
    const StrengthTried tried = judge(cell.next, effects);
    cell.found.tried.push_back(tried);
    if (cell.next == 1 && cell.found.tried.size() == 1) {
      cell.found.killable = cell.open = tried.kills;
    } else {
      (tried.kills ? cell.high : cell.low) = cell.next;
    }
    cell.found.weakest = cell.high;
    if (cell.high - cell.low <= kPrecision) cell.open = false;
    cell.next = (cell.low + cell.high) / 2;
  }

  std::span<const Original> originals_;
  int jobs_;
  std::vector<Cell> cells_;
};

}  // namespace

bool Strength::monotone() const {
  double weakest_kill = 2, strongest_miss = -1;
  for (const StrengthTried& one : tried)
    (one.kills ? weakest_kill : strongest_miss) =
        one.kills ? std::min(weakest_kill, one.strength) : std::max(strongest_miss, one.strength);
  return strongest_miss < weakest_kill;
}

int draws_of(double share) { return share >= 1 ? 1 : kDraws; }

std::vector<edits::Edit> inhibited_edits(const model::Graph& graph, const model::Layer& layer, Inhibitor kind,
                                         double share, double strength, uint64_t draw) {
  Random random(draw, hash64(fmt::format("{}/{}/{:g}", layer.name, int(kind), share)));
  std::vector<edits::UnitNumbers> list;
  std::vector<int64_t> units(static_cast<size_t>(layer.units));
  for (size_t u = 0; u < units.size(); ++u) units[u] = int64_t(u);
  if (kind == Inhibitor::kNeurons) {
    random.shuffle(units);
    units.resize(std::max<size_t>(1, size_t(std::lround(share * double(layer.units)))));
  }
  for (int64_t unit : units)
    for (edits::UnitNumbers& own : kind == Inhibitor::kNeurons
                                       ? edits::outgoing_numbers(graph, layer, unit)
                                       : edits::unit_numbers(graph, layer, unit, edits::Role::kWeight)) {
      for (double& x : own.values)
        if (kind == Inhibitor::kNeurons || share >= 1 || random.uniform() < share) x *= 1 - strength;
      list.push_back(std::move(own));
    }
  return edits::written_together(graph, list, layer.name);
}

std::vector<Strength> find_strengths(std::span<const Original> originals, int jobs) {
  check(!originals.empty(), "inhibitors need a network");
  return Search(originals, jobs).run();
}

}  // namespace netmend::mutants
