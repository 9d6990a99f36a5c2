#include "studies/sbfl_repair.h"

#include <ATen/ATen.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/text.h"
#include "edits/difference.h"
#include "executor/runtime.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "stream/layers.h"
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
  int64_t number = 0;
  for (const std::string& network : options.networks)
    for (const std::string& size : kSizes)
      for (int epochs : {1, 6})
        for (const std::string& measure : kMeasures)
          for (const Mutation& mutation : mutations())
            for (bool trained : {false, true}) {
              if (trained ? !options.trained : !options.untrained) continue;
              GridKey key{network, size, epochs, measure, mutation.name, mutation.value, trained, options.as_published};
              // Which ones a sample holds depends on the key alone, so that a larger sample holds a smaller one.
              uint64_t hash = options.seed;
              for (unsigned char c : key.text()) hash = Random::hash(hash ^ c);
              if (double(hash >> 11) * 0x1p-53 < options.sample && options.slice.holds(number++))
                keys.push_back(std::move(key));
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
};

class Grid {
 public:
  Grid(Store& store, const GridOptions& options, const std::function<void(const std::string&)>& progress)
      : store_(store), options_(options), heard_(progress) {
    test_ = std::make_shared<Kept>(*dataset::open(options.data + ":test"));
    DataPtr train = dataset::open(options.data + ":train");
    if (options.limit > 0) train = dataset::subset(train, stream::spread(train->size(), options.limit));
    train_ = std::make_shared<Kept>(*train);
  }

  /// Networks and what training alone makes of them, without any trajectory.
  void prepare() {
    for (const std::string& network : options_.networks)
      for (const std::string& size : kSizes)
        for (int epochs : {1, 6}) {
          if (interrupted()) throw Interrupted{};
          GridKey key{network, size, epochs};
          open_base(key);
        }
  }

  void run() {
    std::map<std::string, std::map<std::string, GridKey>> by_base;
    std::vector<trials::Part> parts;
    std::set<std::string> known;
    for (const auto& [key, unused] : store_.all()) known.insert(key);
    int64_t missing = 0;
    for (GridKey& key : grid(options_)) {
      const std::string base = fmt::format("{}|{}|{}", key.network, key.size, key.epochs), text = key.text();
      missing += !known.count(text);
      by_base[base].emplace(text, std::move(key));
    }
    for (auto& [name, keys] : by_base) {
      trials::Part part{name, {}, [this, &keys = keys] { return runner(keys); }};
      for (const auto& [text, unused] : keys) part.keys.push_back(text);
      parts.push_back(std::move(part));
    }
    int64_t done = 0;
    const auto start = repair::Clock::now();
    auto told = [&](const std::string&, const std::string&) {
      ++done;
      const double spent = std::chrono::duration<double>(repair::Clock::now() - start).count();
      if (heard_ && (done % 100 == 0 || done == missing))
        heard_(fmt::format("{} of {} trajectories, {} left", with_commas(done), with_commas(missing),
                           duration_text(spent / double(done) * double(missing - done))));
    };
    trials::run_parts(store_, parts,
                      {options_.jobs > 0 ? options_.jobs : cores(), [](int) { executor::enter_worker(); }, told});
  }

 private:
  trials::RunTrial runner(const std::map<std::string, GridKey>& keys) {
    auto base = std::make_shared<const Base>(open_base(keys.begin()->second));
    return [this, base, &keys](const std::string& key) { return trajectory(*base, keys.at(key)); };
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
    stream::Subject subject(file, graph, test_, {head.output, head.logits});
    dataset::Batch few = test_->read(stream::spread(test_->size(), 64));
    auto settings =
        observers::infer_task(graph, head, test_->info(), few, stream::run_few(subject, {head.output}, few)[0]);
    Base base{std::move(subject), std::move(settings), {}, train};
    base.layers = stream::find_layers(base.subject);
    judge(key, base);
    if (options_.trained) benchmark(key, base);
    return base;
  }

  /// As it is, for table 5.2.
  void judge(const GridKey& key, const Base& base) {
    const std::string name = fmt::format("base|{}|{}|{}", key.network, key.size, key.epochs);
    store_.once(name, [&] {
      repair::Problem problem{base.subject, base.settings, base.layers};
      problem.jobs = options_.jobs, problem.quiet = true;
      std::vector<int64_t> all(static_cast<size_t>(test_->size()));
      std::iota(all.begin(), all.end(), 0);
      const repair::Figure whole = repair::evaluate(problem, {}, all).figure;
      return json_text(Json{{"loss", whole.loss}, {"accuracy", whole.accuracy}});
    });
  }

  /// What training alone does to the same network in as many epochs.
  void benchmark(const GridKey& key, const Base& base) {
    const std::string name = fmt::format("benchmark|{}|{}|{}", key.network, key.size, key.epochs);
    store_.once(name, [&] {
      if (heard_) heard_(fmt::format("{} trained further without mutations, for comparison", name));
      return trained_alone(base);
    });
  }

  std::string trained_alone(const Base& base) const {
    repair::Problem problem{base.subject, base.settings, base.layers};
    problem.jobs = options_.jobs, problem.quiet = true;
    std::vector<int64_t> all, odd;
    for (int64_t i = 0; i < test_->size(); ++i) {
      all.push_back(i);
      if (i % 2) odd.push_back(i);
    }
    model::Graph graph = base.subject.graph;
    Json rounds = Json::array();
    for (int64_t round = 0; round < kMostTrainedRounds; ++round) {
      // As a trajectory trains: an epoch by itself, with the same seeds.
      training::Task task{base.subject.model_name, graph, base.settings.head.output, base.train, nullptr, {}};
      task.options.epochs = 1, task.options.seed = Random::hash(options_.seed + 31 * uint64_t(round)),
      task.options.jobs = options_.jobs;
      training::Trainer trainer(std::move(task));
      trainer.run_epoch();
      graph = trainer.result();
      const std::vector<edits::Edit> edits = edits::edits_between(base.subject.graph, graph, base.layers);
      repair::Figure whole = repair::evaluate(problem, edits, all).figure,
                     held = repair::evaluate(problem, edits, odd).figure;
      rounds.push_back({whole.loss, whole.accuracy, held.loss, held.accuracy});
    }
    return json_text(Json{{"rounds", rounds}});
  }

  /// Rounds until every rule has stopped. As published all is judged on the test data; corrected, units are located and
  /// rules followed on one half of it, and the other half tells what came of it.
  std::string trajectory(const Base& base, const GridKey& key) const {
    repair::Problem problem{base.subject, base.settings, base.layers};
    problem.seed = options_.seed, problem.jobs = 1, problem.quiet = true;
    std::vector<int64_t> search, held;
    for (int64_t i = 0; i < test_->size(); ++i) (key.published || i % 2 == 0 ? search : held).push_back(i);
    repair::SbflOptions how;
    how.measure = localise::find_measure(key.measure);
    how.operation = edits::find_operation(key.mutation).usual;
    how.operation.value = key.value;
    how.train_between = key.trained, how.as_published = key.published;
    if (key.trained) how.most_rounds = kMostTrainedRounds;
    repair::Trajectory trajectory(problem, how, search, base.train);
    std::vector<repair::Follower> followers;
    for (const GridRule& rule : grid_rules(key.published))
      followers.emplace_back(rule.rule, trajectory.loss(), trajectory.accuracy());
    Json json = {{"loss", trajectory.loss()}, {"accuracy", trajectory.accuracy()}, {"rounds", Json::array()}};
    if (!key.published) {
      repair::Figure before = repair::evaluate(problem, {}, held).figure;
      json["held_loss"] = before.loss, json["held_accuracy"] = before.accuracy;
    }
    bool open = true;
    while (open && !interrupted()) {
      const repair::Round* round = trajectory.next();
      if (!round) break;
      open = false;
      for (repair::Follower& follower : followers)
        if (!follower.stopped()) open = follower.goes_on(*round) || open;
      Json row = {round->loss, round->accuracy};
      if (!key.published) {
        repair::Figure figure = repair::evaluate(problem, round->edits, held).figure;
        row.push_back(figure.loss), row.push_back(figure.accuracy);
      }
      for (auto& number : row)
        if (!std::isfinite(number.get<double>())) number = nullptr;
      json["rounds"].push_back(row);
    }
    if (interrupted()) throw Interrupted{};
    return json_text(json);
  }

  Store& store_;
  const GridOptions& options_;
  const std::function<void(const std::string&)>& heard_;
  DataPtr test_, train_;
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
