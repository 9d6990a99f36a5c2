#include "studies/sbfl_repair.h"

#include <ATen/ATen.h>

#include <cmath>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/text.h"
#include "edits/difference.h"
#include "executor/runtime.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "stream/layers.h"
#include "studies/lockstep_rounds.h"
#include "studies/trained_networks.h"
#include "training/trainer.h"
#include "zoo/zoo.h"

namespace netmend::studies {

using Json = nlohmann::json;
using repair::StopRule;
using DataPtr = std::shared_ptr<const dataset::Dataset>;

namespace {

constexpr int64_t kMostTrainedRounds = 12;  ///< the thesis plots ten, and speaks of what comes after the eleventh

struct Mutation {
  const char* name;
  double value;
};
/// Functions and values of §5.1.2.
std::vector<Mutation> mutations() {
  std::vector<Mutation> all;
  for (double v : {-1.0, -0.5, 0.0, 0.5, 1.0}) all.push_back({"set-weights", v}), all.push_back({"set-bias", v});
  for (double v : {-1.0, -0.5, 0.5, 1.0}) all.push_back({"scale-weights", v});
  for (double s : {0.5, 1.0})
    for (const char* name :
         {"gauss-weights-one", "gauss-weights", "scale-weights-gauss-one", "scale-weights-gauss", "gauss-bias"})
      all.push_back({name, s});
  return all;
}

std::vector<GridKey> grid(const GridOptions& options) {
  std::vector<GridKey> keys;
  const int64_t bases = int64_t(options.networks.size() * kSizes.size() * 2);
  int64_t base = -1;
  for (const std::string& network : options.networks)
    for (const std::string& size : kSizes)
      for (int epochs : {1, 6}) {
        // What starts from one network stays together, as far as the number of slices allows: it runs in lockstep.
        int64_t number = ++base;
        for (const std::string& measure : kMeasures)
          for (const Mutation& mutation : mutations())
            for (bool trained : {false, true}) {
              if (trained ? !options.trained : !options.untrained) continue;
              GridKey key{network, size, epochs, measure, mutation.name, mutation.value, trained, options.as_published};
              // Which ones a sample holds depends on the key alone, so that a larger sample holds a smaller one.
              uint64_t hash = options.seed;
              for (unsigned char c : key.text()) hash = Random::hash(hash ^ c);
              if (double(hash >> 11) * 0x1p-53 >= options.sample) continue;
              if (options.slice.holds(number)) keys.push_back(std::move(key));
              number += bases;
            }
      }
  return keys;
}

/// Read once, kept as tensors: thousands of passes over the same inputs.
class Kept : public dataset::Dataset {
 public:
  explicit Kept(const dataset::Dataset& data) {
    info_ = data.info();
    std::vector<std::vector<at::Tensor>> columns(info_.features.size());
    std::vector<at::Tensor> labels;
    for (int64_t first = 0; first < data.size(); first += 1000) {
      std::vector<int64_t> some;
      for (int64_t i = first; i < std::min(first + 1000, data.size()); ++i) some.push_back(i);
      dataset::Batch batch = data.read(some);
      for (size_t f = 0; f < columns.size(); ++f) columns[f].push_back(batch.inputs[f]);
      labels.push_back(batch.labels);
    }
    for (auto& column : columns) inputs_.push_back(at::cat(column, 0));
    labels_ = at::cat(labels, 0);
  }
  dataset::Batch read(std::span<const int64_t> samples) const override {
    at::Tensor which = at::tensor(at::ArrayRef<int64_t>(samples.data(), samples.size()), at::kLong);
    dataset::Batch batch;
    for (const at::Tensor& input : inputs_)
      batch.inputs.push_back(input.index_select(0, which)), batch.masks.emplace_back();
    batch.labels = labels_.index_select(0, which);
    batch.samples.assign(samples.begin(), samples.end());
    return batch;
  }
  dataset::Display display(int64_t) const override { return {}; }

 private:
  std::vector<at::Tensor> inputs_;
  at::Tensor labels_;
};

/// A network of the grid before any mutation.
struct Base {
  stream::Subject subject;
  observers::PredictionSettings settings;
  std::vector<model::Layer> layers;
  DataPtr train;
  std::unique_ptr<LockstepRounds> rounds;  ///< null: one by one
};

/// The epoch between two rounds: trained by itself, by a seed of its own.
training::Options epoch_options(uint64_t seed, int jobs, const at::Device& device) {
  training::Options options;
  options.epochs = 1, options.seed = seed, options.jobs = jobs, options.device = device.str();
  return options;
}

/// What is kept of a trajectory, and the rules that follow it.
class Record {
 public:
  Record(const GridKey& key, double loss, double accuracy, const repair::Figure* held) {
    json_ = {{"loss", loss}, {"accuracy", accuracy}, {"rounds", Json::array()}};
    if (held) json_["held_loss"] = held->loss, json_["held_accuracy"] = held->accuracy;
    for (const GridRule& rule : grid_rules(key.published)) followers_.emplace_back(rule.rule, loss, accuracy);
  }
  /// False when every rule has stopped.
  bool add(const repair::Round& round, const repair::Figure* held) {
    bool open = false;
    for (repair::Follower& follower : followers_)
      if (!follower.stopped()) open = follower.goes_on(round) || open;
    Json row = {round.loss, round.accuracy};
    if (held) row.push_back(held->loss), row.push_back(held->accuracy);
    for (auto& number : row)
      if (!std::isfinite(number.get<double>())) number = nullptr;
    json_["rounds"].push_back(row);
    return open;
  }
  std::string text() const { return json_text(json_); }

 private:
  Json json_;
  std::vector<repair::Follower> followers_;
};

class Grid {
 public:
  Grid(Store& store, const GridOptions& options, const std::function<void(const std::string&)>& progress)
      : store_(store),
        options_(options),
        heard_(progress),
        device_(options.device),
        permits_(options.jobs > 0 ? options.jobs : cores()),
        test_(std::make_shared<Kept>(*dataset::open(options.data + ":test"))),
        train_(kept_training(options)),
        all_(*test_, every(test_->size(), 0, 1)),
        even_(*test_, every(test_->size(), 0, 2)),
        odd_(*test_, every(test_->size(), 1, 2)) {}

  /// Networks and what training alone makes of them, without any trajectory.
  void prepare() {
    for (const std::string& network : options_.networks)
      for (const std::string& size : kSizes)
        for (int epochs : {1, 6}) {
          if (interrupted()) throw Interrupted{};
          GridKey key{network, size, epochs};
          const Base base = open_base(key);
          if (options_.trained) benchmark(key, base);
        }
  }

  void run() {
    std::map<std::string, std::map<std::string, GridKey>> by_base;
    std::set<std::string> known;
    for (const auto& [key, unused] : store_.all()) known.insert(key);
    int64_t missing = 0;
    for (GridKey& key : grid(options_)) {
      const std::string base = fmt::format("{}|{}|{}", key.network, key.size, key.epochs), text = key.text();
      missing += !known.count(text);
      by_base[base].emplace(text, std::move(key));
    }
    std::vector<trials::JoinedPart> parts;
    for (auto& [name, keys] : by_base) {
      trials::JoinedPart part{name, {}, [this, &keys = keys](const auto& some, const trials::HandOver& done) {
                                run_base(keys, some, done);
                              }};
      for (const auto& [text, unused] : keys) part.keys.push_back(text);
      parts.push_back(std::move(part));
    }
    int64_t done = 0;
    const auto start = repair::Clock::now();
    auto told = [&](const std::string&, const std::string&) {
      ++done;
      const double spent = std::chrono::duration<double>(repair::Clock::now() - start).count();
      if (heard_ && (done % 100 == 0 || done == missing))
        heard_(fmt::format("{} of {} trajectories after {}", with_commas(done), with_commas(missing),
                           duration_text(spent)));
    };
    trials::run_joined(store_, parts, {1, [](int) { executor::enter_worker(); }, told});
  }

 private:
  static DataPtr kept_training(const GridOptions& options) {
    DataPtr train = dataset::open(options.data + ":train");
    if (options.limit > 0) train = dataset::subset(train, stream::spread(train->size(), options.limit));
    return std::make_shared<Kept>(*train);
  }

  static std::vector<int64_t> every(int64_t size, int64_t first, int64_t step) {
    std::vector<int64_t> some;
    for (int64_t i = first; i < size; i += step) some.push_back(i);
    return some;
  }

  DataPtr part_of(const std::string& size) const {
    const double share = size == "full" ? 1 : size == "half" ? 0.5 : 0.25;
    std::vector<int64_t> all(static_cast<size_t>(train_->size()));
    std::iota(all.begin(), all.end(), 0);
    Random(options_.seed, 4).shuffle(all);
    all.resize(size_t(share * double(all.size())));
    return dataset::subset(train_, std::move(all));
  }

  /// Trained once and kept as a file; with the benchmark of further training where the grid trains between rounds.
  Base open_base(const GridKey& key) {
    DataPtr train = part_of(key.size);
    const std::string& folder = options_.bases.empty() ? options_.folder : options_.bases;
    make_folders(folder);
    const std::string file = fmt::format("{}/{}-{}-{}.onnx", folder, key.network, key.size, key.epochs);
    make_once(file, [&] {
      if (heard_) heard_(fmt::format("training {} on {} data for {} epochs", key.network, key.size, key.epochs));
      model::Graph graph = zoo::make(key.network, {.seed = options_.seed});
      training::Task task{key.network, graph, graph.outputs[0], train, nullptr, {}};
      task.options.epochs = key.epochs, task.options.seed = options_.seed, task.options.jobs = options_.jobs;
      training::Trainer trainer(std::move(task));
      while (!trainer.done()) trainer.run_epoch();
      onnx::write_model(trainer.result(), file);
    });
    model::Graph graph = onnx::read_model(file);
    executor::Head head = executor::find_head(graph, graph.outputs[0]);
    stream::Subject subject(file, graph, test_, {head.output, head.logits}, device_);
    dataset::Batch few = test_->read(stream::spread(test_->size(), 64));
    auto settings =
        observers::infer_task(graph, head, test_->info(), few, stream::run_few(subject, {head.output}, few)[0]);
    Base base{std::move(subject), std::move(settings), {}, train};
    base.layers = stream::find_layers(base.subject);
    judge(key, base);
    if (!options_.one_by_one) go_in_lockstep(key, base);
    return base;
  }

  void go_in_lockstep(const GridKey& key, Base& base) {
    base.rounds = std::make_unique<LockstepRounds>(base.subject, base.settings, samples_of(key.size, base),
                                                   samples_of("test", base));
    if (base.rounds->refusal().empty()) return;
    if (heard_) heard_(fmt::format("{}: one by one, {}", key.network, base.rounds->refusal()));
    base.rounds.reset();
  }

  /// What several networks read alike is kept once.
  std::shared_ptr<const training::Samples> samples_of(const std::string& part, const Base& base) {
    const DataPtr& data = part == "test" ? test_ : base.train;
    stream::Feed feed(base.subject.graph, base.subject.model_name, data->info());
    const int64_t first = 0;
    const at::Tensor one = feed.inputs(data->read(std::span(&first, 1))).at(0);
    auto& kept = samples_[fmt::format("{} {}", part, shape_text({one.sizes().data(), one.sizes().size()}))];
    if (!kept)
      kept = std::make_shared<training::Samples>(data, std::move(feed), options_.jobs > 0 ? options_.jobs : cores(),
                                                 training::samples_limit(), device_);
    return kept;
  }

  /// As it is, for table 5.2.
  void judge(const GridKey& key, const Base& base) {
    const std::string name = fmt::format("base|{}|{}|{}", key.network, key.size, key.epochs);
    store_.once(name, [&] {
      const repair::Figure whole = repair::evaluate(problem_of(base, options_.jobs), {}, all_.samples()).figure;
      return json_text(Json{{"loss", whole.loss}, {"accuracy", whole.accuracy}});
    });
  }

  static std::string benchmark_name(const GridKey& key) {
    return fmt::format("benchmark|{}|{}|{}", key.network, key.size, key.epochs);
  }

  /// What training alone does to the same network in as many epochs.
  void benchmark(const GridKey& key, const Base& base) {
    const std::string name = benchmark_name(key);
    store_.once(name, [&] {
      if (heard_) heard_(fmt::format("{} trained further without mutations, for comparison", name));
      if (!base.rounds) return trained_alone(base);
      Trained alone(base);
      while (alone.next()) base.rounds->run(permits_, {network_of(alone)}, &alone.options);
      return alone.text();
    });
  }

  /// The benchmark, round by round.
  struct Trained {
    explicit Trained(const Base& base) : graph(base.subject.graph) {}
    bool next() { return rounds.size() < size_t(kMostTrainedRounds) && !diverged; }
    std::string text() const { return json_text(Json{{"rounds", rounds}}); }
    model::Graph graph;
    Json rounds = Json::array();
    bool diverged = false;
    training::Options options;
  };

  RoundNetwork network_of(Trained& alone) const {
    alone.options = epoch_options(round_seed(alone.rounds.size()), 1, device_);
    return {&alone.graph,
            {&all_, &odd_},
            [&alone](const std::vector<repair::Figure>& figures, const std::function<void(model::Graph&)>& weights) {
              if (!weights) return void(alone.diverged = true);
              alone.rounds.push_back({figures[0].loss, figures[0].accuracy, figures[1].loss, figures[1].accuracy});
              weights(alone.graph);
            }};
  }

  /// As Trajectory::training_seed: the same batches as all that start from this network.
  uint64_t round_seed(size_t round) const { return Random::hash(options_.seed + 31 * uint64_t(round)); }

  std::string trained_alone(const Base& base) const {
    repair::Problem problem = problem_of(base, options_.jobs);
    model::Graph graph = base.subject.graph;
    Json rounds = Json::array();
    for (int64_t round = 0; round < kMostTrainedRounds; ++round) {
      training::Task task{base.subject.model_name, graph, base.settings.head.output, base.train, nullptr, {}};
      task.options = epoch_options(round_seed(size_t(round)), options_.jobs, device_);
      training::Trainer trainer(std::move(task));
      trainer.run_epoch();
      graph = trainer.result();
      const std::vector<edits::Edit> edits = edits::edits_between(base.subject.graph, graph, base.layers);
      repair::Figure whole = repair::evaluate(problem, edits, all_.samples()).figure,
                     held = repair::evaluate(problem, edits, odd_.samples()).figure;
      rounds.push_back({whole.loss, whole.accuracy, held.loss, held.accuracy});
    }
    return json_text(Json{{"rounds", rounds}});
  }

  repair::Problem problem_of(const Base& base, int jobs) const {
    repair::Problem problem{base.subject, base.settings, base.layers};
    problem.seed = options_.seed, problem.jobs = jobs, problem.quiet = true;
    return problem;
  }

  /// As published all is judged on the test data; corrected, units are located and rules followed on one half of it,
  /// and the other half tells what came of it.
  const JudgedPart& search_part(const GridKey& key) const { return key.published ? all_ : even_; }

  static repair::SbflOptions search_options(const GridKey& key) {
    repair::SbflOptions how;
    how.measure = localise::find_measure(key.measure);
    how.operation = edits::find_operation(key.mutation).usual;
    how.operation.value = key.value;
    how.train_between = key.trained, how.as_published = key.published;
    if (key.trained) how.most_rounds = kMostTrainedRounds;
    return how;
  }

  /// Rounds until every rule has stopped.
  std::string trajectory(const Base& base, const GridKey& key) const {
    const repair::Problem problem = problem_of(base, 1);
    repair::Trajectory trajectory(problem, search_options(key), search_part(key).samples(), base.train);
    auto held_figure = [&](const std::vector<edits::Edit>& edits) {
      return key.published ? std::optional<repair::Figure>() : repair::evaluate(problem, edits, odd_.samples()).figure;
    };
    std::optional<repair::Figure> held = held_figure({});
    Record record(key, trajectory.loss(), trajectory.accuracy(), held ? &*held : nullptr);
    try {
      for (bool open = true; open && !interrupted();) {
        const repair::Round* round = trajectory.next();
        if (!round) break;
        held = held_figure(round->edits);
        open = record.add(*round, held ? &*held : nullptr);
      }
    } catch (const training::Diverged&) {
      const repair::Figure none{.loss = INFINITY};
      record.add({none.loss, none.accuracy, {}, {}}, key.published ? nullptr : &none);
    }
    if (interrupted()) throw Interrupted{};
    return record.text();
  }

  /// One of the searches that start from a network and go on together.
  struct Search {
    std::string text;
    std::unique_ptr<repair::Trajectory> trajectory;
    std::unique_ptr<Record> record;
    bool open = true;
  };

  void run_base(const std::map<std::string, GridKey>& keys, const std::vector<std::string>& missing,
                const trials::HandOver& done) {
    const GridKey& first = keys.at(missing.front());
    std::optional<Base> base;
    {
      std::lock_guard lock(opening_);
      base.emplace(open_base(first));
    }
    if (!base->rounds) {
      with_permits(permits_, missing.size(), [&](size_t i) {
        if (interrupted()) throw Interrupted{};
        done(missing[i], trajectory(*base, keys.at(missing[i])));
      });
      return;
    }
    for (bool trained : {false, true}) {
      std::vector<std::string> some;
      for (const std::string& key : missing)
        if (keys.at(key).trained == trained) some.push_back(key);
      if (!some.empty()) run_together(*base, keys, some, trained, done);
    }
  }

  void run_together(const Base& base, const std::map<std::string, GridKey>& keys, const std::vector<std::string>& some,
                    bool trained, const trials::HandOver& done) {
    const repair::Problem problem = problem_of(base, 1);
    std::map<std::string, repair::SearchStart> starts;
    for (const std::string& key : some) starts[keys.at(key).measure];
    const GridKey& any = keys.at(some.front());
    with_permits(permits_, starts.size(), [&](size_t i) {
      auto& [measure, start] = *std::next(starts.begin(), std::ptrdiff_t(i));
      GridKey own = any;
      own.measure = measure;
      start = repair::start_search(problem, search_options(own), search_part(own).samples());
    });
    // Rules compare a round with the network before to the last bit: an unchanged network must get the same figures.
    repair::Figure before, held_before;
    base.rounds->run(permits_,
                     {{&base.subject.graph,
                       {&search_part(any), &odd_},
                       [&](const auto& figures, const auto&) { before = figures[0], held_before = figures[1]; }}},
                     nullptr);
    for (auto& [measure, start] : starts) start.loss = before.loss, start.accuracy = before.accuracy;
    std::vector<Search> searches;
    for (const std::string& text : some) {
      const GridKey& key = keys.at(text);
      const repair::SearchStart& start = starts.at(key.measure);
      searches.push_back(
          {text, std::make_unique<repair::Trajectory>(problem, search_options(key), search_part(key).samples(), start),
           std::make_unique<Record>(key, start.loss, start.accuracy, key.published ? nullptr : &held_before)});
    }
    std::optional<Trained> alone;
    const std::string benchmark = benchmark_name(keys.at(some.front()));
    if (trained && !store_.find(benchmark)) alone.emplace(base);
    for (size_t round = 0; !searches.empty() || (alone && alone->next()); ++round) {
      if (interrupted()) throw Interrupted{};
      run_round(base, keys.at(some.front()), searches, alone && alone->next() ? &*alone : nullptr, round);
      for (Search& search : searches)
        if (!search.open) done(search.text, search.record->text());
      std::erase_if(searches, [](const Search& search) { return !search.open; });
      if (alone && !alone->next()) store_.put(benchmark, alone->text()), alone.reset();
    }
  }

  /// One round of all that are left: those without further units, and those whose rules have stopped, are closed.
  void run_round(const Base& base, const GridKey& key, std::vector<Search>& searches, Trained* alone, size_t round) {
    std::vector<RoundNetwork> networks;
    if (alone) networks.push_back(network_of(*alone));
    for (Search& search : searches) {
      search.open = search.trajectory->mutate();
      if (!search.open) continue;
      RoundNetwork network{&search.trajectory->network(), {&search_part(key)}, {}};
      if (!key.published) network.parts.push_back(&odd_);
      network.done = [&search](const auto& figures, const auto& weights) {
        if (weights) search.trajectory->take(weights);
        const repair::Round& made = search.trajectory->judged(figures[0].loss, figures[0].accuracy);
        search.open = search.record->add(made, figures.size() > 1 ? &figures[1] : nullptr) && weights;
      };
      networks.push_back(std::move(network));
    }
    const training::Options options = epoch_options(round_seed(round), 1, device_);
    base.rounds->run(permits_, networks, key.trained ? &options : nullptr);
  }

  Store& store_;
  const GridOptions& options_;
  const std::function<void(const std::string&)>& heard_;
  const at::Device device_;
  Permits permits_;
  std::mutex opening_;
  DataPtr test_, train_;
  std::map<std::string, std::shared_ptr<const training::Samples>> samples_;  ///< by part of the data and form of inputs
  JudgedPart all_, even_, odd_;                                              ///< of the test data
};

}  // namespace

GridSize grid_size(const Store& store, const GridOptions& options) {
  GridOptions whole = options;
  whole.sample = 1.1, whole.slice = {};
  GridSize size;
  size.all = int64_t(grid(whole).size());
  std::set<std::string> known;
  for (const auto& [key, unused] : store.all()) known.insert(key);
  for (const GridKey& key : grid(options)) ++size.chosen, size.missing += !known.count(key.text());
  size.trials = size.chosen * int64_t(grid_rules(options.as_published).size());
  return size;
}

void run_grid(Store& store, const GridOptions& options, const std::function<void(const std::string&)>& progress) {
  Grid grid(store, options, progress);
  if (options.bases_only)
    grid.prepare();
  else
    grid.run();
}

}  // namespace netmend::studies
