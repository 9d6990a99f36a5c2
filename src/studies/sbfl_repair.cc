#include "studies/sbfl_repair.h"

#include <ATen/ATen.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/error.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/text.h"
#include "edits/difference.h"
#include "executor/runtime.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "stream/layers.h"
#include "training/trainer.h"
#include "zoo/zoo.h"

namespace netmend::studies {

using trials::box_of;
using trials::trial_document;

using Json = nlohmann::json;
using repair::StopRule;
using DataPtr = std::shared_ptr<const dataset::Dataset>;

namespace {

constexpr int64_t kMostTrainedRounds = 12;  ///< the thesis plots ten
const std::vector<std::string> kSizes = {"full", "half", "quarter"};
const std::vector<std::string> kMeasures = {"tarantula", "ochiai", "dstar", "random"};

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

struct Key {
  std::string network, size;
  int epochs = 1;
  std::string measure, mutation;
  double value = 0;
  bool trained = false, published = false;

  std::string text() const {
    return fmt::format("{}|{}|{}|{}|{}|{:g}|{}|{}", network, size, epochs, measure, mutation, value,
                       trained ? "trained" : "untrained", published ? "published" : "corrected");
  }
};

std::optional<Key> parse_key(const std::string& text) {
  std::vector<std::string> parts = split(text, '|');
  int64_t epochs = 0;
  Key key;
  if (parts.size() != 8 || !parse_int(parts[2], epochs) || !parse_double(parts[5], key.value)) return std::nullopt;
  key.network = parts[0], key.size = parts[1], key.epochs = int(epochs), key.measure = parts[3],
  key.mutation = parts[4];
  key.trained = parts[6] == "trained", key.published = parts[7] == "published";
  return key;
}

std::vector<Key> grid(const GridOptions& options) {
  std::vector<Key> keys;
  for (const std::string& network : options.networks)
    for (const std::string& size : kSizes)
      for (int epochs : {1, 6})
        for (const std::string& measure : kMeasures)
          for (const Mutation& mutation : mutations())
            for (bool trained : {false, true}) {
              if (trained ? !options.trained : !options.untrained) continue;
              Key key{network, size, epochs, measure, mutation.name, mutation.value, trained, options.as_published};
              // Which ones a sample holds depends on the key alone, so that a larger sample holds a smaller one.
              uint64_t hash = options.seed;
              for (unsigned char c : key.text()) hash = Random::hash(hash ^ c);
              if (double(hash >> 11) * 0x1p-53 < options.sample) keys.push_back(std::move(key));
            }
  return keys;
}

/// Eight ways to stop: four conditions, with and without offsets.
struct NamedRule {
  std::string when;
  bool offsets;
  StopRule rule;
};
std::vector<NamedRule> rules(bool published) {
  std::vector<NamedRule> all;
  for (const char* when : {"loss", "accuracy", "both", "either"})
    for (bool offsets : {false, true})
      all.push_back(
          {when, offsets, {repair::parse_when(when), offsets ? 0.005 : 0, offsets ? 0.01 : 0, true, published}});
  return all;
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

  void run() {
    std::map<std::string, std::vector<Key>> by_base;
    int64_t missing = 0;
    for (Key& key : grid(options_))
      if (!store_.find(key.text()))
        ++missing, by_base[fmt::format("{}|{}|{}", key.network, key.size, key.epochs)].push_back(std::move(key));
    int64_t done = 0;
    const auto start = repair::Clock::now();
    for (auto& [name, keys] : by_base) {
      Base base = open_base(keys[0]);
      std::vector<std::string> found(keys.size());
      auto work = [&](int64_t item, int) { found[size_t(item)] = trajectory(base, keys[size_t(item)]); };
      auto keep = [&](int64_t item) {
        store_.put(keys[size_t(item)].text(), found[size_t(item)]);
        ++done;
        const double spent = std::chrono::duration<double>(repair::Clock::now() - start).count();
        if (heard_ && (done % 100 == 0 || done == missing))
          heard_(fmt::format("{} of {} trajectories, {} left", with_commas(done), with_commas(missing),
                             duration_text(spent / double(done) * double(missing - done))));
      };
      in_order(
          int64_t(keys.size()), options_.jobs > 0 ? options_.jobs : cores(), [](int) { executor::enter_worker(); },
          work, keep);
    }
  }

 private:
  DataPtr part_of(const std::string& size) const {
    const double share = size == "full" ? 1 : size == "half" ? 0.5 : 0.25;
    std::vector<int64_t> all(static_cast<size_t>(train_->size()));
    std::iota(all.begin(), all.end(), 0);
    Random(options_.seed, 4).shuffle(all);
    all.resize(size_t(share * double(all.size())));
    return dataset::subset(train_, std::move(all));
  }

  /// Trained once and kept as a file; with the benchmark of further training where the grid trains between rounds.
  Base open_base(const Key& key) {
    DataPtr train = part_of(key.size);
    const std::string file = fmt::format("{}/{}-{}-{}.onnx", options_.folder, key.network, key.size, key.epochs);
    if (!std::filesystem::exists(file)) {
      if (heard_) heard_(fmt::format("training {} on {} data for {} epochs", key.network, key.size, key.epochs));
      model::Graph graph = zoo::make(key.network, {.seed = options_.seed});
      training::Task task{key.network, graph, graph.outputs[0], train, nullptr, {}};
      task.options.epochs = key.epochs, task.options.seed = options_.seed, task.options.jobs = options_.jobs;
      training::Trainer trainer(std::move(task));
      while (!trainer.done()) trainer.run_epoch();
      onnx::write_model(trainer.result(), file);
    }
    model::Graph graph = onnx::read_model(file);
    executor::Head head = executor::find_head(graph, graph.outputs[0]);
    stream::Subject subject(file, graph, test_, {head.output, head.logits});
    dataset::Batch few = test_->read(stream::spread(test_->size(), 64));
    auto settings =
        observers::infer_task(graph, head, test_->info(), few, stream::run_few(subject, {head.output}, few)[0]);
    Base base{std::move(subject), std::move(settings), {}, train};
    base.layers = stream::find_layers(base.subject);
    if (options_.trained) benchmark(key, base);
    return base;
  }

  /// What training alone does to the same network in as many epochs.
  void benchmark(const Key& key, const Base& base) {
    const std::string name = fmt::format("benchmark|{}|{}|{}", key.network, key.size, key.epochs);
    if (store_.find(name)) return;
    if (heard_) heard_(fmt::format("{} trained further without mutations, for comparison", name));
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
    store_.put(name, json_text(Json{{"rounds", rounds}}));
  }

  /// Rounds until every rule has stopped. As published all is judged on the test data; corrected, units are located and
  /// rules followed on one half of it, and the other half tells what came of it.
  std::string trajectory(const Base& base, const Key& key) const {
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
    for (const NamedRule& rule : rules(key.published))
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

// ---- what it comes to

/// A round of a trial that its rule had not stopped before: accuracy and loss against the benchmark.
struct Datum {
  const Key* key;
  std::string when;
  bool offsets;
  int64_t round;  ///< from 1
  double accuracy, loss;
};

double number(const Json& json) { return json.is_number() ? json.get<double>() : INFINITY; }

std::vector<Datum> data_of(const Store& store, bool published, std::vector<Key>& keys) {
  std::map<std::string, Json> benchmarks;
  std::vector<Json> results;
  keys.clear();
  for (const auto& [text, result] : store.all()) {
    Json json = trial_document(text, result).json();
    if (!json.is_object() || !json.contains("rounds") || !json["rounds"].is_array()) continue;
    if (text.starts_with("benchmark|")) benchmarks[text] = json;
    std::optional<Key> key = parse_key(text);
    if (key && key->published == published) keys.push_back(*key), results.push_back(std::move(json));
  }
  std::vector<Datum> data;
  for (size_t k = 0; k < keys.size(); ++k) {
    const Json& json = results[k];
    auto start = [&](const char* key) { return json.contains(key) ? number(json[key]) : 0.0; };
    const std::string bench = fmt::format("benchmark|{}|{}|{}", keys[k].network, keys[k].size, keys[k].epochs);
    for (const NamedRule& rule : rules(published)) {
      repair::Follower follower(rule.rule, start("loss"), start("accuracy"));
      int64_t round = 0;
      for (const Json& row : json["rounds"]) {
        if (!row.is_array() || row.size() < (published ? 2u : 4u)) break;
        repair::Round seen{number(row[0]), number(row[1])};
        const bool goes_on = follower.goes_on(seen);
        // Corrected, the rejected round is taken back and is no result.
        if (!goes_on && !published) break;
        ++round;
        double loss = published ? seen.loss : number(row[2]), accuracy = published ? seen.accuracy : number(row[3]);
        double from_loss = published ? json.value("loss", 0.0) : json.value("held_loss", 0.0),
               from_accuracy = published ? json.value("accuracy", 0.0) : json.value("held_accuracy", 0.0);
        if (keys[k].trained) {
          const auto& rounds = benchmarks[bench]["rounds"];
          if (!rounds.is_array() || size_t(round) > rounds.size()) break;
          const Json& same = rounds[size_t(round) - 1];
          if (!same.is_array() || same.size() < 4) break;
          from_loss = number(same[published ? 0 : 2]), from_accuracy = number(same[published ? 1 : 3]);
        }
        data.push_back(
            {&keys[k], rule.when, rule.offsets, round, accuracy / from_accuracy, from_loss / std::max(loss, 1e-9)});
        if (!goes_on) break;
      }
    }
  }
  return data;
}

using Pick = std::function<std::string(const Datum&)>;

/// Boxes of the data that `label` names; "" leaves a datum out. In the order of `order`.
std::vector<Box> boxes_by(const std::vector<Datum>& data, const std::vector<std::string>& order, const Pick& label,
                          bool loss) {
  std::map<std::string, std::vector<double>> values;
  for (const Datum& datum : data)
    if (std::string name = label(datum); !name.empty()) values[name].push_back(loss ? datum.loss : datum.accuracy);
  std::vector<Box> boxes;
  for (const std::string& name : order) boxes.push_back(box_of(name, values[name]));
  return boxes;
}

double median_of(const std::vector<Box>& boxes, const std::string& label) {
  for (const Box& box : boxes)
    if (box.label == label) return box.median;
  return NAN;
}

bool all_filled(const std::vector<Box>& boxes) {
  return std::all_of(boxes.begin(), boxes.end(), [](const Box& box) { return box.count >= 10; });
}

std::string medians_text(const std::vector<Box>& boxes) {
  std::vector<std::string> parts;
  for (const Box& box : boxes)
    parts.push_back(box.count ? fmt::format("{} {:+.2f} % ({:+.1f} to {:+.1f})", box.label, 100 * (box.median - 1),
                                            100 * (box.least - 1), 100 * (box.most - 1))
                              : box.label + " –");
  return "median accuracy against the benchmark: " + join(parts, ", ");
}

}  // namespace

GridSize grid_size(const Store& store, const GridOptions& options) {
  GridOptions whole = options;
  whole.sample = 1.1;
  GridSize size;
  size.all = int64_t(grid(whole).size());
  for (const Key& key : grid(options)) ++size.chosen, size.missing += !store.find(key.text());
  size.trials = size.chosen * int64_t(rules(options.as_published).size());
  return size;
}

void run_grid(Store& store, const GridOptions& options, const std::function<void(const std::string&)>& progress) {
  Grid(store, options, progress).run();
}

std::vector<Answer> answer_questions(const Store& store, bool published) {
  std::vector<Key> keys;
  const std::vector<Datum> data = data_of(store, published, keys);
  std::vector<Answer> answers;
  auto ask = [&](std::string question, std::string thesis, const std::vector<std::string>& order, const Pick& label,
                 const std::function<bool(const std::vector<Box>&)>& holds) {
    Answer answer{std::move(question), std::move(thesis)};
    answer.accuracy = boxes_by(data, order, label, false), answer.loss = boxes_by(data, order, label, true);
    answer.enough = all_filled(answer.accuracy);
    answer.holds = answer.enough && holds(answer.accuracy);
    answer.here = medians_text(answer.accuracy);
    answers.push_back(std::move(answer));
  };
  auto untrained = [](const Datum& d) { return !d.key->trained && d.round <= 5; };
  ask(
      "RQ1: training between mutations",
      "the median is above the benchmark for the first four epochs and below it after the eleventh",
      {"epoch 1", "epoch 2", "epoch 3", "epoch 4"},
      [](const Datum& d) { return d.key->trained && d.round <= 4 ? fmt::format("epoch {}", d.round) : ""; },
      [](const auto& boxes) {
        return std::all_of(boxes.begin(), boxes.end(), [](const Box& b) { return b.median > 1; });
      });
  ask(
      "RQ2: mutation without training", "the median stays near the baseline, extremes reach +25 % accuracy",
      {"round 1", "round 2", "round 3"},
      [](const Datum& d) { return !d.key->trained && d.round <= 3 ? fmt::format("round {}", d.round) : ""; },
      [](const auto& boxes) {
        return std::all_of(boxes.begin(), boxes.end(), [](const Box& b) { return std::abs(b.median - 1) < 0.02; }) &&
               boxes.back().most > 1.1;
      });
  ask(
      "RQ3: length of pre-training", "one epoch leaves more room than six: larger gains and larger losses",
      {"1 epoch", "6 epochs"},
      [&](const Datum& d) { return untrained(d) ? d.key->epochs == 1 ? "1 epoch" : "6 epochs" : ""; },
      [](const auto& boxes) { return boxes[0].most > boxes[1].most; });
  ask(
      "RQ4: size of the training data", "full and half behave alike, a quarter is worse", {"full", "half", "quarter"},
      [&](const Datum& d) { return untrained(d) ? d.key->size : ""; },
      [](const auto& boxes) { return boxes[2].median < std::min(boxes[0].median, boxes[1].median); });
  ask(
      "RQ5: measures", "Tarantula is best, then Ochiai, D*, random", kMeasures,
      [&](const Datum& d) { return untrained(d) ? d.key->measure : ""; },
      [](const auto& boxes) {
        const double t = median_of(boxes, "tarantula"), o = median_of(boxes, "ochiai"), s = median_of(boxes, "dstar"),
                     r = median_of(boxes, "random");
        return t >= o && o >= s && s >= r && t > r;
      });
  ask(
      "RQ6: networks", "CNN1 gains most, DNNs hardly", {"dnn1", "dnn2", "cnn1", "cnn2"},
      [&](const Datum& d) { return untrained(d) ? d.key->network : ""; },
      [](const auto& boxes) { return boxes[2].most > std::max(boxes[0].most, boxes[1].most); });
  ask(
      "RQ7: offsets", "the same median, a larger spread with offsets", {"no offset", "offset"},
      [&](const Datum& d) { return untrained(d) ? d.offsets ? "offset" : "no offset" : ""; },
      [](const auto& boxes) {
        return std::abs(boxes[0].median - boxes[1].median) < 0.01 &&
               boxes[1].high - boxes[1].low >= boxes[0].high - boxes[0].low;
      });
  ask(
      "RQ8: when to stop", "accuracy, and accuracy together with loss, do best", {"loss", "accuracy", "both", "either"},
      [&](const Datum& d) { return untrained(d) ? d.when : ""; },
      [](const auto& boxes) {
        return std::min(boxes[1].high, boxes[2].high) >= std::max(boxes[0].high, boxes[3].high);
      });
  ask(
      "RQ9: mutation functions", "functions of weights gain more than functions of biases", {"weights", "bias"},
      [&](const Datum& d) {
        return untrained(d) ? d.key->mutation.find("bias") == std::string::npos ? "weights" : "bias" : "";
      },
      [](const auto& boxes) { return boxes[0].most > boxes[1].most; });
  return answers;
}

}  // namespace netmend::studies
