#include "localise/mutation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "mutants/judged.h"
#include "mutants/mutants.h"

namespace netmend::localise {
namespace {

/// Of the layers that are looked at, the place of each unit.
size_t place_of(const std::vector<model::Layer>& layers, const mutants::Mutant& mutant) {
  size_t place = 0;
  for (int l = 0; l < mutant.layer; ++l) place += size_t(layers[size_t(l)].units);
  return place + size_t(mutant.unit);
}

std::vector<mutants::Mutant> make_mutants(const stream::Subject& subject, const std::vector<model::Layer>& layers,
                                          const observers::PredictionSettings& settings, int64_t most) {
  int64_t units = 0;
  for (const model::Layer& layer : layers) units += layer.units;
  mutants::Generation how;
  how.operators = mutants::find_operators("deepmufl"), how.sample = 0;
  const auto each = size_t(std::clamp<int64_t>(most / std::max<int64_t>(1, units), 1, 8));
  // Weights before biases: not every layer has one.
  how.operators.resize(std::min(how.operators.size(), each));
  return mutants::generate(subject, layers, settings, how).list;
}

}  // namespace

MutationEvidence mutation_evidence(const stream::Subject& subject, const observers::PredictionSettings& settings,
                                   const std::vector<model::Layer>& layers, const std::vector<int64_t>& failing,
                                   const std::vector<int64_t>& passing, const MutantOptions& options, int jobs) {
  std::vector<int64_t> all = failing, samples;
  const std::set<int64_t> fails(failing.begin(), failing.end());
  all.insert(all.end(), passing.begin(), passing.end());
  std::sort(all.begin(), all.end());
  for (int64_t i : stream::spread(int64_t(all.size()), options.inputs, 0.5)) samples.push_back(all[size_t(i)]);
  stream::Subject some = subject;
  some.data = dataset::subset(subject.data, samples);
  const std::vector<mutants::Mutant> list = make_mutants(some, layers, settings, options.most);
  whatif::WhatIf whatif(some, settings, layers, {.jobs = jobs});
  std::vector<whatif::Question> questions(1);
  MutationEvidence out;
  for (const mutants::Mutant& mutant : list) {
    questions.push_back(mutants::question_of(mutant, whatif));
    out.places.push_back(place_of(layers, mutant)), out.layers.push_back(size_t(mutant.layer));
  }
  const int64_t groups = observers::kSampleGroups;
  auto fresh = [&](size_t columns) {
    return Evidence{at::zeros({2, groups, int64_t(columns)}, at::kDouble), at::zeros({2, groups}, at::kDouble)};
  };
  out.turned = fresh(list.size() + layers.size()), out.changed = fresh(list.size());
  std::vector<std::vector<bool>> any(layers.size(), std::vector<bool>(samples.size()));  ///< by layer and input
  auto turned = out.turned.sums.accessor<double, 3>(), changed = out.changed.sums.accessor<double, 3>();
  auto counted = out.turned.inputs.accessor<double, 2>();
  std::vector<whatif::Judgement> base(samples.size());
  whatif.ask(questions, [&](size_t q, int64_t first, std::span<const whatif::Judgement> rows) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t at = size_t(first) + i;
      const int64_t group = observers::sample_group(samples[at]), side = fails.count(samples[at]) ? 0 : 1;
      if (q == 0) {
        base[at] = rows[i];
        ++counted[side][group];
        continue;
      }
      const auto m = int64_t(q - 1);
      const size_t layer = out.layers[size_t(m)];
      const bool turns = side == 0 ? rows[i].right : base[at].right && !rows[i].right;
      if (turns && !any[layer][at]) any[layer][at] = true, ++turned[side][group][int64_t(list.size() + layer)];
      if (side == 0) {
        turned[0][group][m] += rows[i].right;
        changed[0][group][m] += rows[i].right || rows[i].predicted != base[at].predicted;
      } else if (turns) {
        ++turned[1][group][m], ++changed[1][group][m];
      }
    }
  });
  out.changed.inputs = out.turned.inputs;
  return out;
}

namespace {

/// Shares of failing and of passing inputs under one draw: of what a mutant, or any mutant of a layer, turns.
struct Shares {
  at::TensorAccessor<double, 1> failing, passing;
  double fails, passes;
  double f(int64_t column) const { return failing[column] / fails; }
  double p(int64_t column) const { return passing[column] / passes; }
};

/// The mean of a term over each unit's mutants. `terms` gives, for a draw's shares, the term as a function of the
/// mutant.
template <typename Terms>
at::Tensor mean_over_mutants(const Draws& draws, const std::vector<size_t>& places, size_t units, const Terms& terms) {
  const int64_t rows = draws.failing.size(0);
  at::Tensor scores = at::zeros({rows, int64_t(units)}, at::kDouble);
  auto score = scores.accessor<double, 2>();
  auto failing = draws.failing.accessor<double, 2>(), passing = draws.passing.accessor<double, 2>();
  std::vector<double> each(units);
  for (size_t place : places) ++each[place];
  for (int64_t d = 0; d < rows; ++d) {
    const auto term = terms(Shares{failing[d], passing[d], std::max(1.0, draws.failing_inputs[size_t(d)]),
                                   std::max(1.0, draws.passing_inputs[size_t(d)])});
    for (size_t m = 0; m < places.size(); ++m) score[d][int64_t(places[m])] += term(int64_t(m)) / each[places[m]];
  }
  return scores;
}

}  // namespace

at::Tensor muse_scores(const Draws& draws, const std::vector<size_t>& places, size_t units) {
  return mean_over_mutants(draws, places, units, [&](const Shares& shares) {
    double turned = 0, broken = 0;
    for (int64_t m = 0; m < int64_t(places.size()); ++m) turned += shares.f(m), broken += shares.p(m);
    const double alpha = broken > 0 ? turned / broken : 0;
    return [shares, alpha](int64_t m) { return shares.f(m) - alpha * shares.p(m); };
  });
}

at::Tensor published_muse_scores(const Draws& draws, const std::vector<size_t>& places,
                                 const std::vector<size_t>& layers, size_t units) {
  const auto mutants = int64_t(places.size());
  return mean_over_mutants(draws, places, units, [&](const Shares& shares) {
    return [shares, &layers, mutants](int64_t m) {
      const int64_t layer = mutants + int64_t(layers[size_t(m)]);
      return std::abs(shares.f(m) - shares.f(layer) * shares.p(layer) * shares.p(m));
    };
  });
}

at::Tensor metallaxis_scores(const Draws& draws, const std::vector<size_t>& places, size_t units) {
  const int64_t rows = draws.failing.size(0), mutants = draws.failing.size(1);
  at::Tensor scores = at::zeros({rows, int64_t(units)}, at::kDouble);
  auto score = scores.accessor<double, 2>();
  auto f = draws.failing.accessor<double, 2>(), p = draws.passing.accessor<double, 2>();
  for (int64_t d = 0; d < rows; ++d)
    for (int64_t m = 0; m < mutants; ++m) {
      if (f[d][m] + p[d][m] <= 0) continue;
      double& best = score[d][int64_t(places[size_t(m)])];
      best = std::max(best, f[d][m] / std::sqrt((f[d][m] + p[d][m]) * draws.failing_inputs[size_t(d)]));
    }
  return scores;
}

}  // namespace netmend::localise
