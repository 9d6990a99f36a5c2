#include "localise/ranking.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <tuple>

#include "base/error.h"
#include "base/random.h"

namespace netmend::localise {

Evidence evidence_of(const observers::SpectrumState& state) {
  return {state.active.to(at::kDouble), state.inputs.to(at::kDouble)};
}

Counts Draws::counts(int64_t draw, int64_t unit) const {
  const int64_t units = failing.size(1);
  double af = failing.data_ptr<double>()[draw * units + unit], as = passing.data_ptr<double>()[draw * units + unit];
  return {as, af, passing_inputs[size_t(draw)] - as, failing_inputs[size_t(draw)] - af};
}

namespace {

/// How often each group is taken, draw × group; the first row takes each once.
at::Tensor draw_weights(int64_t groups, int64_t resamples, uint64_t seed) {
  at::Tensor weights = at::zeros({resamples + 1, groups}, at::kDouble);
  weights[0].fill_(1);
  auto* row = weights.data_ptr<double>();
  for (int64_t r = 1; r <= resamples; ++r) {
    row += groups;
    Random random(seed, uint64_t(r));
    for (int64_t i = 0; i < groups; ++i) ++row[random.below(uint64_t(groups))];
  }
  return weights;
}

}  // namespace

Draws draw(const Evidence& evidence, int64_t resamples, uint64_t seed) {
  at::Tensor weights = draw_weights(evidence.inputs.size(1), resamples, seed);
  at::Tensor inputs = weights.mm(evidence.inputs.t()).contiguous();  // draw × side
  std::vector<int64_t> kept;
  Draws draws;
  for (int64_t r = 0; r <= resamples; ++r) {
    double failing = inputs[r][0].item<double>(), passing = inputs[r][1].item<double>();
    if (r > 0 && (failing == 0 || passing == 0)) continue;
    kept.push_back(r);
    draws.failing_inputs.push_back(failing);
    draws.passing_inputs.push_back(passing);
  }
  at::Tensor used = weights.index_select(0, at::tensor(kept, at::kLong));
  draws.failing = used.mm(evidence.sums[0]).contiguous();
  draws.passing = used.mm(evidence.sums[1]).contiguous();
  return draws;
}

at::Tensor spectrum_scores(const Draws& draws, const Choice& choice, uint64_t seed) {
  check(choice.measure->score != nullptr, "{} is no measure of counts", choice.measure->name);
  at::Tensor scores = at::empty_like(draws.failing);
  const int64_t units = scores.size(1);
  auto* row = scores.data_ptr<double>();
  for (int64_t r = 0; r < scores.size(0); ++r, row += units) {
    Random random(seed, uint64_t(r));
    for (int64_t u = 0; u < units; ++u)
      row[u] = choice.measure->score(draws.counts(r, u), {choice.star, random.uniform()});
    finite_scores({row, size_t(units)});
  }
  return scores;
}

at::Tensor difference_scores(const Draws& draws) {
  auto column = [](const std::vector<double>& totals) {
    return at::tensor(totals, at::kDouble).clamp_min(1).unsqueeze(1);
  };
  return draws.failing / column(draws.failing_inputs) - draws.passing / column(draws.passing_inputs);
}

double chance_score(const Counts& c, const Choice& choice) {
  if (!choice.measure->score) return 0;
  double failing = c.af + c.nf, passing = c.as + c.ns, active = (c.af + c.as) / (failing + passing);
  Counts even{passing * active, failing * active, passing * (1 - active), failing * (1 - active)};
  double score = choice.measure->score(even, {choice.star, 0.5});
  finite_scores({&score, 1});
  return score;
}

std::vector<UnitPlace> unit_places(const std::vector<model::Layer>& layers) {
  std::vector<UnitPlace> places;
  for (size_t l = 0; l < layers.size(); ++l)
    for (int64_t u = 0; u < layers[l].units; ++u) places.push_back({l, u});
  return places;
}

namespace {

/// Places as equal scores rank them: deeper layer first, then smaller unit.
std::vector<size_t> tie_order(const std::vector<UnitPlace>& places) {
  std::vector<size_t> order(places.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return places[a].layer > places[b].layer; });
  return order;
}

std::vector<size_t> order_of(const std::vector<size_t>& ties, const double* scores) {
  std::vector<std::pair<double, size_t>> keys;
  keys.reserve(ties.size());
  for (size_t i = 0; i < ties.size(); ++i) keys.emplace_back(-scores[ties[i]], i);
  std::sort(keys.begin(), keys.end());
  std::vector<size_t> order;
  order.reserve(keys.size());
  for (const auto& [score, i] : keys) order.push_back(ties[i]);
  return order;
}

/// Ranks from 1 in each resample: unit × resample.
std::vector<int32_t> resampled_ranks(const std::vector<size_t>& ties, const at::Tensor& scores) {
  const size_t units = ties.size(), resamples = size_t(scores.size(0)) - 1;
  std::vector<int32_t> ranks(units * resamples);
  for (size_t r = 0; r < resamples; ++r) {
    std::vector<size_t> order = order_of(ties, scores.data_ptr<double>() + (r + 1) * units);
    for (size_t i = 0; i < units; ++i) ranks[order[i] * resamples + r] = int32_t(i) + 1;
  }
  return ranks;
}

/// The middle 95 % of ranks, rounded outwards. Reorders them.
std::pair<int64_t, int64_t> middle(std::span<int32_t> ranks) {
  auto last = double(ranks.size() - 1);
  auto low = ranks.begin() + std::ptrdiff_t(0.025 * last),
       high = ranks.begin() + std::ptrdiff_t(std::ceil(0.975 * last));
  std::nth_element(ranks.begin(), low, ranks.end());
  int64_t lowest = *low;  // the next step moves it
  std::nth_element(low, high, ranks.end());
  return {lowest, *high};
}

std::vector<RankedUnit> rank_all(const std::vector<UnitPlace>& places, const at::Tensor& scores, int64_t top) {
  const size_t resamples = size_t(scores.size(0)) - 1;
  const std::vector<size_t> ties = tie_order(places);
  std::vector<int32_t> ranks = resampled_ranks(ties, scores);
  std::vector<RankedUnit> units;
  for (size_t place : order_of(ties, scores.data_ptr<double>())) {
    auto rank = int64_t(units.size()) + 1;
    RankedUnit unit{place, scores.data_ptr<double>()[place], NAN, NAN, rank, rank};
    if (resamples > 0) {
      std::span<int32_t> own(ranks.data() + place * resamples, resamples);
      auto within = std::count_if(own.begin(), own.end(), [&](int32_t r) { return r <= top; });
      unit.in_top = double(within) / double(resamples);
      unit.first = double(std::count(own.begin(), own.end(), 1)) / double(resamples);
      std::tie(unit.rank_low, unit.rank_high) = middle(own);
    }
    units.push_back(unit);
  }
  return units;
}

std::vector<double> layer_means(const std::vector<UnitPlace>& places, const double* scores, size_t layers) {
  std::vector<double> sums(layers), counts(layers);
  for (size_t i = 0; i < places.size(); ++i) sums[places[i].layer] += scores[i], ++counts[places[i].layer];
  for (size_t l = 0; l < layers; ++l) sums[l] /= std::max(counts[l], 1.0);
  return sums;
}

/// Of equal ones the deepest.
size_t highest(const std::vector<double>& means) {
  size_t best = 0;
  for (size_t l = 1; l < means.size(); ++l)
    if (means[l] >= means[best]) best = l;
  return best;
}

std::vector<RankedLayer> rank_layers(const std::vector<UnitPlace>& places, const at::Tensor& scores,
                                     const Ranking& ranking) {
  if (places.empty()) return {};
  const size_t count = places.back().layer + 1, resamples = size_t(scores.size(0)) - 1;
  std::vector<double> means = layer_means(places, scores.data_ptr<double>(), count);
  std::vector<RankedLayer> layers(count);
  for (size_t l = 0; l < count; ++l) layers[l].layer = l, layers[l].mean = means[l], layers[l].best = -INFINITY;
  for (size_t i = 0; i < ranking.units.size(); ++i) {
    RankedLayer& layer = layers[places[ranking.units[i].place].layer];
    ++layer.units;
    layer.best = std::max(layer.best, ranking.units[i].score);
    layer.in_top += int64_t(i) < ranking.top;
  }
  for (RankedLayer& layer : layers) {
    layer.by_chance = ranking.random_in_top() * double(layer.units);
    if (resamples == 0) layer.first = NAN;
  }
  for (size_t r = 1; r <= resamples; ++r)
    layers[highest(layer_means(places, scores.data_ptr<double>() + r * places.size(), count))].first +=
        1 / double(resamples);
  std::sort(layers.begin(), layers.end(), [](const RankedLayer& a, const RankedLayer& b) {
    return a.mean != b.mean ? a.mean > b.mean : a.layer > b.layer;
  });
  return layers;
}

}  // namespace

Ranking rank_units(const std::vector<UnitPlace>& places, const at::Tensor& scores, int64_t top) {
  check(scores.size(1) == int64_t(places.size()) && scores.is_contiguous(), "a score for each unit");
  Ranking ranking;
  ranking.top = std::min(top, int64_t(places.size()));
  ranking.resamples = scores.size(0) - 1;
  ranking.units = rank_all(places, scores, ranking.top);
  ranking.layers = rank_layers(places, scores, ranking);
  return ranking;
}

}  // namespace netmend::localise
