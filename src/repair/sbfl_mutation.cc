#include "repair/sbfl_mutation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/text.h"
#include "edits/difference.h"
#include "edits/places.h"
#include "localise/blame.h"
#include "localise/candidates.h"
#include "repair/methods.h"
#include "training/trainer.h"

namespace netmend::repair {

using edits::Edit;

namespace {
const std::vector<std::string> kWhens = {"loss", "accuracy", "both", "either"};
}

StopRule::When parse_when(const std::string& name) {
  auto hit = std::find(kWhens.begin(), kWhens.end(), name);
  if (hit == kWhens.end())
    throw InputError(fmt::format("--stop {}: there is no such condition{}", name, did_you_mean(name, kWhens)),
                     "Choose from loss, accuracy, both and either.");
  return StopRule::When(hit - kWhens.begin());
}
std::string when_name(StopRule::When when) { return kWhens[size_t(when)]; }

bool Follower::goes_on(const Round& round) {
  ++rounds_;
  // The listing adds the loss offset on the wrong side, which makes it stop sooner.
  const bool loss =
      rule_.as_published ? !(round.loss + rule_.loss_offset <= loss_) : !(round.loss <= loss_ + rule_.loss_offset);
  const bool accuracy = round.accuracy + rule_.accuracy_offset < accuracy_;
  switch (rule_.when) {
    case StopRule::kLoss:
      stopped_ = loss;
      break;
    case StopRule::kAccuracy:
      stopped_ = accuracy;
      break;
    case StopRule::kBoth:
      stopped_ = loss && accuracy;
      break;
    case StopRule::kEither:
      stopped_ = loss || accuracy;
      break;
  }
  if (stopped_) return false;
  if (rule_.halve) rule_.loss_offset /= 2, rule_.accuracy_offset /= 2;
  loss_ = round.loss, accuracy_ = round.accuracy;
  return true;
}

std::vector<size_t> numpy_order(const std::vector<double>& scores) {
  constexpr int64_t kSmall = 15;  // parts of at most one more are sorted by insertion
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  auto less = [&](int64_t a, int64_t b) { return scores[order[size_t(a)]] < scores[order[size_t(b)]]; };
  auto swap = [&](int64_t a, int64_t b) { std::swap(order[size_t(a)], order[size_t(b)]); };
  std::vector<std::pair<int64_t, int64_t>> parts{{0, int64_t(scores.size()) - 1}};
  while (!parts.empty()) {
    auto [first, last] = parts.back();
    parts.pop_back();
    while (last - first > kSmall) {
      const int64_t middle = first + (last - first) / 2;
      if (less(middle, first)) swap(middle, first);
      if (less(last, middle)) swap(last, middle);
      if (less(middle, first)) swap(middle, first);
      swap(middle, last - 1);  // the median waits at the end
      int64_t low = first, high = last - 1;
      while (true) {
        while (less(++low, last - 1)) {
        }
        while (less(last - 1, --high)) {
        }
        if (low >= high) break;
        swap(low, high);
      }
      swap(low, last - 1);
      // The larger part waits.
      if (low - first < last - low) {
        parts.emplace_back(low + 1, last);
        last = low - 1;
      } else {
        parts.emplace_back(first, low - 1);
        first = low + 1;
      }
    }
    for (int64_t i = first + 1; i <= last; ++i)
      for (int64_t at = i; at > first && less(at, at - 1); --at) swap(at, at - 1);
  }
  return order;
}

namespace {

Figure judge(const stream::Subject& subject, const Problem& problem) {
  observers::Predictions predictions(problem.settings, false);
  stream::PassOptions how;
  how.jobs = problem.jobs, how.quiet = true;
  stream::Pass pass(subject);
  auto handle = pass.watch(predictions);
  pass.run(how);
  if (pass.interrupted()) throw Interrupted{};
  const observers::PredictionResult result = observers::finish(predictions, pass.state(handle));
  Figure figure;
  figure.loss = result.loss, figure.accuracy = result.accuracy;
  return figure;
}

/// Units, the one to be mutated next at the end; without those that were mutated before.
std::vector<localise::UnitPlace> locate(const stream::Subject& subject, const Problem& problem,
                                        const SbflOptions& options, const std::vector<model::Layer>& layers,
                                        const std::set<std::string>& mutated) {
  localise::BlameOptions how;
  how.choices = {options.measure};
  how.resamples = 0, how.seed = problem.seed;
  how.pass.jobs = problem.jobs, how.pass.quiet = true;
  localise::Blame blame = localise::blame(subject, problem.settings, layers, how);
  std::vector<localise::UnitPlace> order;
  if (blame.located.empty()) return order;
  const std::vector<localise::RankedUnit>& ranked = blame.located[0].ranking.units;
  auto add = [&](size_t place) {
    if (!mutated.count(blame.unit(place))) order.push_back(blame.places[place]);
  };
  if (options.as_published) {
    // The listing sorts scores upwards, turns the list over and pops from its end: the least suspicious unit first.
    std::vector<double> scores(blame.places.size());
    for (const localise::RankedUnit& unit : ranked) scores[unit.place] = unit.score;
    for (size_t place : numpy_order(scores)) add(place);
  } else {
    for (const localise::RankedUnit& unit : ranked) add(unit.place);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

SbflOptions with_measure(SbflOptions options) {
  if (!options.measure.measure) options.measure = localise::find_measure("tarantula");
  return options;
}

std::vector<model::Layer> layers_of(const Problem& p) {
  return localise::candidates(p.layers, p.subject.graph, p.settings.head, p.settings.outputs);
}

}  // namespace

SearchStart start_search(const Problem& problem, const SbflOptions& options, const std::vector<int64_t>& samples) {
  const stream::Subject subject = edited(problem, {}, &samples);
  SearchStart start;
  start.waiting = locate(subject, problem, with_measure(options), layers_of(problem), {});
  const Figure figure = judge(subject, problem);
  start.loss = figure.loss, start.accuracy = figure.accuracy;
  return start;
}

struct Trajectory::Impl {
  const Problem& problem;
  SbflOptions options;
  std::shared_ptr<const dataset::Dataset> train;
  std::vector<model::Layer> layers;
  stream::Subject now;
  std::vector<Edit> done;
  std::vector<Round> rounds;
  Round open;                                ///< mutated, not judged yet
  std::vector<localise::UnitPlace> waiting;  ///< the next one last
  std::set<std::string> mutated;             ///< each unit gets one mutation, also where the spectrum is refreshed
  double loss = 0, accuracy = 0;

  Impl(const Problem& p, const SbflOptions& o, const std::vector<int64_t>& samples, const SearchStart& start)
      : problem(p),
        options(with_measure(o)),
        layers(layers_of(p)),
        now(edited(p, {}, &samples)),
        waiting(start.waiting),
        loss(start.loss),
        accuracy(start.accuracy) {}

  /// As published, a dense unit's number selects an input of its layer instead. Behind maps inputs are counted with
  /// channels fastest, as Keras flattens them; files here have channels slowest.
  int64_t input_of(size_t place_layer, int64_t number, int64_t inputs) const {
    const int64_t channels =
        place_layer > 0 && layers[place_layer - 1].op == "Conv" ? layers[place_layer - 1].units : 1;
    if (channels <= 1 || inputs % channels) return number;
    return number % channels * (inputs / channels) + number / channels;
  }

  std::vector<Edit> mutate(const localise::UnitPlace& place, uint64_t seed) const {
    const model::Layer& layer = layers[place.layer];
    const bool dense = layer.op == "Gemm" || layer.op == "MatMul";
    if (!options.as_published || !dense || options.operation.target != edits::Target::kWeights)
      return edits::operate(now.graph, layer, place.unit, options.operation, seed);
    edits::Seen weight = edits::see(now.graph, layer.weight_input);
    check(weight.view.defined() && weight.view.dim() == 2, "{} has a matrix of weights", layer.name);
    const int64_t inputs_axis = 1 - layer.weight_axis;
    if (place.unit >= weight.view.size(inputs_axis)) return {};
    const int64_t input = input_of(place.layer, place.unit, weight.view.size(inputs_axis));
    std::vector<int64_t> positions = edits::positions_of(weight, now.graph, weight.view.select(inputs_axis, input));
    Random random(seed, uint64_t(place.unit));
    std::vector<double> values = edits::numbers(
        now.graph.constant(weight.root).contiguous().view(-1).index_select(0, at::tensor(positions, at::kLong)));
    const double one = options.operation.value * random.normal();
    for (double& value : values) {
      const double each = options.operation.value * random.normal();
      switch (options.operation.change) {
        case edits::Change::kSet:
          value = options.operation.value;
          break;
        case edits::Change::kSetGauss:
          value = one;
          break;
        case edits::Change::kSetGaussEach:
          value = each;
          break;
        case edits::Change::kScale:
          value *= options.operation.value;
          break;
        case edits::Change::kScaleGauss:
          value *= one;
          break;
        case edits::Change::kScaleGaussEach:
          value *= each;
          break;
      }
    }
    return edits::cut(now.graph, weight.root, positions, values, model::unit_name(layer, place.unit));
  }

  void train_once(uint64_t seed) {
    training::Task task{problem.subject.model_name, now.graph, problem.settings.head.output, train, nullptr, {}};
    task.options.epochs = 1, task.options.seed = seed, task.options.jobs = problem.jobs;
    task.options.device = problem.subject.device.str();
    training::Trainer trainer(std::move(task));
    trainer.run_epoch();
    add(edits::edits_between(now.graph, trainer.result(), layers));
  }

  void add(const std::vector<Edit>& more) {
    edits::apply(now.graph, more);
    edits::apply(now.batching.graph, more);
    done.insert(done.end(), more.begin(), more.end());
  }

  uint64_t seed() const { return Random::hash(problem.seed + 31 * rounds.size()); }

  bool mutate_units() {
    if (options.most_rounds > 0 && int64_t(rounds.size()) >= options.most_rounds) return false;
    if (options.refresh && !rounds.empty()) waiting = locate(now, problem, options, layers, mutated);
    open = {};
    for (int64_t i = 0; i < options.at_a_time && !waiting.empty(); ++i) {
      const localise::UnitPlace place = waiting.back();
      waiting.pop_back();
      open.units.push_back(model::unit_name(layers[place.layer], place.unit));
      mutated.insert(open.units.back());
      add(mutate(place, seed()));
    }
    return !open.units.empty();
  }

  const Round& judged(double new_loss, double new_accuracy) {
    open.loss = new_loss, open.accuracy = new_accuracy;
    rounds.push_back(std::move(open));
    return rounds.back();
  }

  const Round* next() {
    if (!mutate_units()) return nullptr;
    if (options.train_between) train_once(seed());
    const Figure figure = judge(now, problem);
    open.edits = done;
    return &judged(figure.loss, figure.accuracy);
  }
};

Trajectory::Trajectory(const Problem& problem, const SbflOptions& options, const std::vector<int64_t>& samples,
                       std::shared_ptr<const dataset::Dataset> train)
    : Trajectory(problem, options, samples, start_search(problem, options, samples)) {
  impl_->train = std::move(train);
  if (options.train_between && !impl_->train)
    impl_->train = dataset::subset(problem.subject.data, problem.parts.search);
}
Trajectory::Trajectory(const Problem& problem, const SbflOptions& options, const std::vector<int64_t>& samples,
                       const SearchStart& start)
    : impl_(std::make_unique<Impl>(problem, options, samples, start)) {}
Trajectory::~Trajectory() = default;
double Trajectory::loss() const { return impl_->loss; }
double Trajectory::accuracy() const { return impl_->accuracy; }
const Round* Trajectory::next() { return impl_->next(); }
const std::vector<Round>& Trajectory::rounds() const { return impl_->rounds; }
bool Trajectory::mutate() { return impl_->mutate_units(); }
const model::Graph& Trajectory::network() const { return impl_->now.graph; }
uint64_t Trajectory::training_seed() const { return impl_->seed(); }
void Trajectory::take(const std::function<void(model::Graph&)>& write) {
  write(impl_->now.graph), write(impl_->now.batching.graph);
}
const Round& Trajectory::judged(double loss, double accuracy) { return impl_->judged(loss, accuracy); }

Found sbfl_mutation(const Problem& problem, Budget& budget) {
  if (!problem.settings.by_class()) return {{}, "it needs predictions that are classes"};
  const SbflChoice& choice = problem.sbfl;
  SbflOptions options;
  options.measure = localise::find_measure(choice.measure);
  const edits::NamedOperation& named = edits::find_operation(choice.mutation);
  options.operation = named.usual;
  if (choice.value) options.operation.value = *choice.value;
  options.train_between = choice.train, options.at_a_time = choice.at_a_time, options.refresh = choice.refresh;
  options.as_published = choice.as_published;
  StopRule rule{parse_when(choice.stop), choice.loss_offset, choice.accuracy_offset, choice.halve, choice.as_published};
  Trajectory trajectory(problem, options, problem.parts.search);
  Follower follower(rule, trajectory.loss(), trajectory.accuracy());
  while (const Round* round = trajectory.next()) {
    budget.spend(problem.work(problem.parts.search.size()));
    if (!follower.goes_on(*round) || budget.left() <= 0) break;
  }
  if (follower.kept() == 0) return {{}, "the first mutation already made the predictions worse"};
  const Round& last = trajectory.rounds()[size_t(follower.kept()) - 1];
  Candidate out{"sbfl-mutation", "", edits::compact(last.edits), {}, {}};
  for (int64_t i = 0; i < follower.kept(); ++i)
    for (const std::string& unit : trajectory.rounds()[size_t(i)].units) out.units.push_back(unit);
  out.words = fmt::format("{} on {} unit{} in {} round{}", named.name, out.units.size(),
                          out.units.size() == 1 ? "" : "s", follower.kept(), follower.kept() == 1 ? "" : "s");
  out.selection = evaluate(problem, out.edits, problem.parts.selection).figure;
  return {{std::move(out)}, ""};
}

}  // namespace netmend::repair
