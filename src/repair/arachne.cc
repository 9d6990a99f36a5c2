// Arachne's repair: a search on the blamed weights, by differential evolution or, as in its first version, by a
// particle swarm. What differs from the published code: a generation is judged at once, against the population it was
// bred from. The search keeps to the last two layers with weights (the published default is the last one): there a
// candidate costs next to nothing. The network as it is is one of the first points, and values that leave their bounds
// are drawn again; as published it is none, and they are clipped. The swarm's published form is told in
// search/particle_swarm.h.
#include "localise/arachne.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/pool.h"
#include "base/random.h"
#include "repair/methods.h"
#include "search/particle_swarm.h"
#include "whatif/whatif.h"

namespace netmend::repair {
namespace {

constexpr double kTailShare = 0.1;  ///< of a forward pass: what-if runs the last layers alone

constexpr double kFailing = 10;  ///< how much more a failing input counts (alpha)
constexpr int64_t kMostFailing = 1000, kMostPassing = 2000;
constexpr size_t kMostWeights = 40;

std::vector<int64_t> sample(const std::vector<int64_t>& all, int64_t most) {
  std::vector<int64_t> chosen;
  for (int64_t i : stream::spread(int64_t(all.size()), most)) chosen.push_back(all[size_t(i)]);
  return chosen;
}

std::vector<edits::Edit> edits_of(const Problem& problem, const std::vector<localise::BlamedWeight>& weights,
                                  const search::Point& point) {
  std::map<model::ValueId, std::map<int64_t, double>> by_constant;
  for (size_t i = 0; i < weights.size(); ++i)
    by_constant[problem.layers[weights[i].layer].weight][weights[i].position] = point[i];
  std::vector<edits::Edit> edits;
  for (const auto& [constant, numbers] : by_constant) {
    std::vector<int64_t> positions;
    std::vector<double> values;
    for (const auto& [position, value] : numbers) positions.push_back(position), values.push_back(value);
    for (edits::Edit& edit : edits::cut(problem.subject.graph, constant, positions, values, ""))
      edits.push_back(std::move(edit));
  }
  return edits;
}

/// How good a candidate is, from the inputs that failed and those that were right.
class Fitness {
 public:
  explicit Fitness(bool first_version) : first_version_(first_version) {}
  void add(bool failed, bool right, double loss) {
    ++(failed ? failing_ : passing_).all, (failed ? failing_ : passing_).right += right;
    (failed ? failing_ : passing_).loss += loss;
    sum_ += (failed ? kFailing : 1) * (right ? 1 : 1 / (loss + 1));
  }
  /// The first version: (patched + 1) / (loss + 1) of either side, mean losses; later a sum over inputs.
  double value() const { return first_version_ ? of(failing_) + of(passing_) : sum_; }

 private:
  struct Side {
    double all = 0, right = 0, loss = 0;
  };
  static double of(const Side& side) { return (side.right + 1) / (side.loss / std::max(1.0, side.all) + 1); }
  bool first_version_;
  Side failing_, passing_;
  double sum_ = 0;
};

/// With a swarm, as the first version searched, or by differential evolution.
Found search_weights(const Problem& problem, Budget& budget, bool by_swarm) {
  const bool published = problem.sbfl.as_published;
  if (!problem.settings.by_class()) return {{}, "it needs predictions that are classes"};
  const std::vector<int64_t> failing =
                                 sample(problem.on(observers::Side::kFailing, problem.parts.search), kMostFailing),
                             passing =
                                 sample(problem.on(observers::Side::kPassing, problem.parts.search), kMostPassing);
  if (failing.empty() || passing.empty()) return {{}, "it needs failing and passing inputs"};
  const size_t first = problem.layers.size() > 2 ? problem.layers.size() - 2 : 0;
  const std::vector<model::Layer> last(problem.layers.begin() + int64_t(first), problem.layers.end());
  localise::ArachneOptions blame;
  blame.as_published = published;
  for (int64_t sample : passing) blame.passing_classes.push_back(int64_t(problem.rows[size_t(sample)].predicted));
  std::vector<localise::BlamedWeight> weights =
      localise::arachne(problem.subject, problem.settings, last, failing, passing, problem.jobs, nullptr, blame);
  for (localise::BlamedWeight& weight : weights) weight.layer += first;
  if (weights.empty()) return {{}, "no weight of a dense or convolutional layer could be blamed"};
  if (weights.size() > kMostWeights) weights.resize(kMostWeights);
  std::vector<search::Bounds> bounds;
  std::vector<std::pair<double, double>> spread;
  search::Point origin;
  for (const localise::BlamedWeight& weight : weights) {
    at::Tensor layer = problem.subject.graph.constant(problem.layers[weight.layer].weight).to(at::kDouble);
    const double low = layer.min().item<double>(), high = layer.max().item<double>();
    bounds.push_back({low < 0 ? 2 * low : low / 2, high > 0 ? 2 * high : high / 2});
    spread.emplace_back(layer.mean().item<double>(), layer.std().item<double>());
    origin.push_back(layer.contiguous().view(-1)[weight.position].item<double>());
    bounds.back().low = std::min(bounds.back().low, origin.back()),
    bounds.back().high = std::max(bounds.back().high, origin.back());
  }
  std::vector<int64_t> samples = failing;
  samples.insert(samples.end(), passing.begin(), passing.end());
  std::sort(samples.begin(), samples.end());
  const std::set<int64_t> fails(failing.begin(), failing.end());
  stream::Subject part = edited(problem, {}, &samples);
  whatif::WhatIf whatif(part, problem.settings, problem.layers, {.jobs = problem.jobs, .keep = true});
  search::Judge judge = [&](std::span<const search::Point> points) {
    std::vector<whatif::Question> questions;
    for (const search::Point& point : points) questions.push_back({edits_of(problem, weights, point)});
    std::vector<Fitness> scores(points.size(), Fitness(by_swarm));
    budget.spend(kTailShare * double(points.size()) * problem.work(samples.size()));
    whatif.ask(questions, [&](size_t q, int64_t first, std::span<const whatif::Judgement> rows) {
      for (size_t i = 0; i < rows.size(); ++i)
        scores[q].add(fails.count(samples[size_t(first) + i]) > 0, rows[i].right, double(rows[i].loss));
    });
    std::vector<double> values;
    for (const Fitness& score : scores) values.push_back(score.value());
    return values;
  };
  auto start = [&](size_t i, double normal) { return spread[i].first + spread[i].second * normal; };
  auto stop = [&] { return budget.left() <= 0; };
  const search::Point none, &first_point = published ? none : origin;
  const search::Evolved found =
      by_swarm
          ? search::swarm(bounds, first_point, start, judge,
                          {.particles = 100, .as_published = published, .seed = problem.seed, .stop = stop})
          : search::evolve(bounds, first_point, start, judge, {.clip = published, .seed = problem.seed, .stop = stop});
  Candidate out{by_swarm ? "arachne-pso" : "arachne",
                fmt::format("{} weight{}, {} {}{}", weights.size(), weights.size() == 1 ? "" : "s", found.generations,
                            by_swarm ? "swarm iteration" : "generation", found.generations == 1 ? "" : "s"),
                edits_of(problem, weights, found.best),
                {},
                {}};
  if (out.edits.empty()) return {{}, "no change of the blamed weights improved the predictions"};
  out.selection = evaluate(problem, out.edits, problem.parts.selection).figure;
  return {{std::move(out)}, ""};
}

}  // namespace

Found arachne(const Problem& problem, Budget& budget) { return search_weights(problem, budget, false); }
Found arachne_pso(const Problem& problem, Budget& budget) { return search_weights(problem, budget, true); }

}  // namespace netmend::repair
