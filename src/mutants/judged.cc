#include "mutants/judged.h"

#include <ATen/ATen.h>

#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "whatif/judge.h"

namespace netmend::mutants {
namespace {

/// Losses nearer than this, relative to 1 + loss, are equal: shortcuts add in another order.
constexpr double kEqual = 1e-6;
constexpr int64_t kAtOnce = 256;

struct Seen {
  float loss = 0;
  int32_t predicted = -1;
  bool right = false;
};

}  // namespace

std::vector<int32_t> classes_of(const stream::Subject& subject, const observers::PredictionSettings& settings) {
  std::vector<int32_t> classes(size_t(subject.data->size()));
  if (!settings.by_class()) return classes;
  for (int64_t first = 0; first < subject.data->size(); first += kAtOnce) {
    std::vector<int64_t> samples;
    for (int64_t i = first; i < std::min(first + kAtOnce, subject.data->size()); ++i) samples.push_back(i);
    const whatif::Truth truth = whatif::truth_of(settings, subject.data->read(samples).labels, int64_t(samples.size()));
    for (size_t i = 0; i < truth.classes.size(); ++i) classes[size_t(first) + i] = int32_t(truth.classes[i]);
  }
  return classes;
}

Judged judge(const stream::Subject& subject, const observers::PredictionSettings& settings,
             const std::vector<model::Layer>& layers, const std::vector<Mutant>& mutants, Kill kill, int jobs) {
  whatif::WhatIf whatif(subject, settings, layers, {.jobs = jobs});
  std::vector<whatif::Question> questions(1);
  for (const Mutant& mutant : mutants) questions.push_back(question_of(mutant, whatif));
  const auto inputs = double(subject.data->size());
  Judged out{KillTable(kill, mutants.size(), classes_of(subject, settings),
                       settings.by_class() ? int64_t(settings.classes.size()) : 1),
             std::vector<double>(mutants.size()), std::vector<int64_t>(mutants.size()),
             std::vector<uint64_t>(mutants.size()), std::vector<bool>(mutants.size(), true)};
  std::vector<Seen> base(size_t(subject.data->size()));
  whatif.ask(questions, [&](size_t q, int64_t first, std::span<const whatif::Judgement> rows) {
    uint64_t& behaviour = q == 0 ? out.original : out.behaviour[q - 1];
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto& row = rows[i];
      Seen& was = base[size_t(first) + i];
      behaviour = Random::hash(behaviour ^ (uint64_t(uint32_t(row.predicted)) << 1 | uint64_t(row.right)));
      if (q == 0) {
        was = {row.loss, row.predicted, row.right};
        out.original_accuracy += row.right / inputs;
        continue;
      }
      const size_t m = q - 1;
      const bool changed = row.predicted != was.predicted || row.right != was.right;
      out.accuracy[m] += row.right / inputs;
      out.changed[m] += changed;
      if (kill == Kill::kStrict ? changed : was.right && !row.right) out.table.set(m, first + int64_t(i));
      const bool equal = !changed && (row.loss == was.loss ||
                                      std::abs(double(row.loss) - was.loss) <= kEqual * (1 + std::abs(was.loss)));
      if (!equal) out.same[m] = false;
    }
  });
  return out;
}

bool same_outputs(const stream::Subject& subject, const observers::PredictionSettings& settings, const Mutant& mutant) {
  model::Graph graph = mutant.graph ? *mutant.graph : subject.graph;
  if (!mutant.graph) edits::apply(graph, mutant.edits);
  const model::ValueId answers = whatif::answers_of(settings);
  const stream::Subject changed(mutant.id, std::move(graph), subject.data, {answers});
  const dataset::Batch few = subject.data->read(stream::spread(subject.data->size(), subject.batch_size()));
  const at::Tensor was = stream::run_few(subject, {answers}, few)[0].to(at::kDouble),
                   is = stream::run_few(changed, {answers}, few)[0].to(at::kDouble);
  return at::allclose(is, was, kEqual, kEqual * (1 + was.abs().max().item<double>()), true);
}

}  // namespace netmend::mutants
