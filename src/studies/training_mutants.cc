// training-mutants: DeepCrime's operators (Humbatova et al. 2021) on netmend's trainer. The original and each mutant
// are trained several times with paired seeds: the same initial weights and order of batches. A configuration is killed
// by a set of inputs when the accuracies on it differ by a paired t-test (p < 0.05) with an effect of 0.5 and more.
// DeepCrime takes 20 unpaired trainings instead.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/random.h"
#include "base/text.h"
#include "dataset/relabelled.h"
#include "executor/layers.h"
#include "mutants/structure.h"
#include "session/split.h"
#include "stats/comparisons.h"
#include "studies/altered.h"
#include "studies/trained_networks.h"
#include "training/reinitialise.h"
#include "training/trainer.h"
#include "trials/store.h"
#include "zoo/zoo.h"

namespace netmend::studies {
namespace {

using Json = nlohmann::ordered_json;
using Data = std::shared_ptr<const dataset::Dataset>;

constexpr int kTrainingMutantsVersion = 1;

/// A training before it is run; an operator changes it.
struct Plan {
  model::Graph graph;
  Data train;
  training::Options options;
  uint64_t seed = 0;
  const std::vector<int64_t>& labels;  ///< of `train`
};

std::vector<int64_t> sizes_of(const std::vector<int64_t>& labels) {
  std::vector<int64_t> sizes;
  for (int64_t label : labels) {
    if (size_t(label) >= sizes.size()) sizes.resize(size_t(label) + 1);
    ++sizes[size_t(label)];
  }
  return sizes;
}

/// Classes by size, the largest first.
std::vector<int64_t> by_size(const std::vector<int64_t>& labels) {
  const std::vector<int64_t> sizes = sizes_of(labels);
  std::vector<int64_t> order(sizes.size());
  for (size_t c = 0; c < order.size(); ++c) order[c] = int64_t(c);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return sizes[size_t(a)] > sizes[size_t(b)]; });
  return order;
}

bool drawn(const Plan& plan, size_t i, double percent) {
  return Random(plan.seed, uint64_t(i) + 1000).uniform() * 100 < percent;
}

void change_labels(Plan& plan, double percent) {
  std::vector<int64_t> labels = plan.labels;
  const int64_t most = by_size(labels)[0], classes = int64_t(sizes_of(labels).size());
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] == most && drawn(plan, i, percent))
      labels[i] = (most + 1 + int64_t(Random(plan.seed, i).below(uint64_t(classes - 1)))) % classes;
  plan.train = dataset::relabelled(plan.train, labels);
}

void keep(Plan& plan, const std::function<bool(size_t)>& stays) {
  std::vector<int64_t> samples;
  for (size_t i = 0; i < plan.labels.size(); ++i)
    if (stays(i)) samples.push_back(int64_t(i));
  if (samples.empty()) samples.push_back(0);
  plan.train = dataset::subset(plan.train, samples);
}

void remove_data(Plan& plan, double percent) {
  keep(plan, [&](size_t i) { return !drawn(plan, i, percent); });
}

void unbalance(Plan& plan, double percent) {
  const std::vector<int64_t> sizes = sizes_of(plan.labels);
  const double average = double(plan.labels.size()) / double(sizes.size());
  keep(plan, [&](size_t i) { return double(sizes[size_t(plan.labels[i])]) >= average || !drawn(plan, i, percent); });
}

void add_noise(Plan& plan, double percent) {
  const uint64_t seed = plan.seed;
  plan.train = altered(plan.train, {.change = [=](dataset::Batch& batch, std::span<const int64_t> rows) {
                         for (at::Tensor& input : batch.inputs) {
                           if (!input.is_floating_point()) continue;
                           input = input.clone();
                           for (size_t i = 0; i < rows.size(); ++i) {
                             Random random(seed, uint64_t(rows[i]));
                             if (random.uniform() * 100 >= percent) continue;
                             at::Tensor row = input[int64_t(i)].view(-1);
                             const double deviation = percent / 100 * row.std().item<double>();
                             auto values = row.accessor<float, 1>();
                             for (int64_t k = 0; k < row.numel(); ++k) values[k] += float(deviation * random.normal());
                           }
                         }
                       }});
}

void overlap(Plan& plan, double percent) {
  const std::vector<int64_t> order = by_size(plan.labels);
  std::vector<int64_t> samples, labels;
  for (size_t i = 0; i < plan.labels.size(); ++i) samples.push_back(int64_t(i)), labels.push_back(plan.labels[i]);
  for (size_t i = 0; i < plan.labels.size(); ++i)
    if (plan.labels[i] == order[0] && drawn(plan, i, percent))
      samples.push_back(int64_t(i)), labels.push_back(order[1]);
  plan.train = dataset::relabelled(dataset::subset(plan.train, samples), labels);
}

/// The first layer with an activation function, and the last layer of all.
model::Layer activated_layer(const model::Graph& graph) {
  for (const model::Layer& layer : executor::find_layers(graph))
    if (layer.post != layer.pre) return layer;
  fail("no layer has an activation function");
}

void change_activation(Plan& plan, const std::string& op) {
  mutants::replace_activation(plan.graph, activated_layer(plan.graph), op);
}

void remove_biases(Plan& plan, double) {
  int64_t removed = 0;
  for (model::Node& node : plan.graph.nodes)
    if ((node.op == "Conv" || node.op == "Gemm") && node.inputs.size() > 2) node.inputs.resize(2), ++removed;
  if (removed == 0) fail("no layer has a bias");
}

/// A configuration: its value in words and as a number, and what it does.
struct Configuration {
  std::string value;
  double number = 0;
  std::function<void(Plan&)> apply;
};

struct TrainingOperator {
  const char *name, *words;
  /// For operators with an ordered strength: from the original value to the strongest, and how near two values may
  /// come.
  double original = 0, strongest = 0, precision = 0;
  void (*with)(Plan&, double) = nullptr;
  /// For the others: the values that are tried.
  std::vector<Configuration> list = {};
  const char* why_not = nullptr;  ///< it has no place in this trainer
};

Configuration named(const std::string& value, std::function<void(Plan&)> apply) { return {value, 0, std::move(apply)}; }

std::vector<TrainingOperator> operators_for(const training::Options& usual, int64_t inputs) {
  auto optimiser = [](const char* name) {
    return named(name, [=](Plan& p) { p.options.method = training::parse_method(name); });
  };
  auto activation = [](const char* op) { return named(op, [=](Plan& p) { change_activation(p, op); }); };
  auto init = [](const char* scheme) {
    return named(scheme, [=](Plan& p) { training::reinitialise(p.graph, scheme, p.seed); });
  };
  auto batch = [&](int64_t size) { return named(std::to_string(size), [=](Plan& p) { p.options.batch = size; }); };
  auto decay = [](double value) {
    return named(fmt::format("{:g}", value), [=](Plan& p) { p.options.decay = value; });
  };
  std::vector<TrainingOperator> all = {
      {"TCL", "labels of the most frequent class changed", 0, 100, 5, change_labels},
      {"TRD", "training data removed", 0, 99, 5, remove_data},
      {"TUD", "classes below average size made smaller", 0, 100, 5, unbalance},
      {"TAN", "noise added to training inputs", 0, 100, 5, add_noise},
      {"TCO", "inputs of the most frequent class repeated under the second's label", 0, 100, 5, overlap},
      {"HBS", "batch size", 0, 0, 0, nullptr, {batch(8), batch(256), batch(512)}},
      {"HLR", "learning rate as a power of ten below the usual", 0, 4, 0.5,
       [](Plan& p, double power) { p.options.rate *= std::pow(10.0, -power); }},
      {"HNE", "epochs", double(usual.epochs), 1, 1,
       [](Plan& p, double n) { p.options.epochs = std::max<int64_t>(1, std::llround(n)); }},
      {"HDB", "no batches: all inputs at once", 0, 0, 0, nullptr, {batch(inputs)}},
      {"ACH",
       "activation function of the first layer changed",
       0,
       0,
       0,
       nullptr,
       {activation("Elu"), activation("Selu"), activation("Softplus"), activation("Softsign"), activation("Tanh"),
        activation("Sigmoid"), activation("HardSigmoid")}},
      {"ARM", "activation function of the first layer removed", 0, 0, 0, nullptr, {activation("Identity")}},
      {"AAL",
       "activation function added after the first layer",
       0,
       0,
       0,
       nullptr,
       {named("Sigmoid", [](Plan& p) { mutants::insert_activation(p.graph, activated_layer(p.graph), "Sigmoid"); }),
        named("Tanh", [](Plan& p) { mutants::insert_activation(p.graph, activated_layer(p.graph), "Tanh"); })}},
      {"RAW", "weight decay added", 0, 0, 0, nullptr, {decay(1e-4), decay(1e-2), decay(0.1)}},
      {"RCW", "regulariser changed", 0, 0, 0, nullptr, {}, "the original has no regulariser"},
      {"RRW", "regulariser removed", 0, 0, 0, nullptr, {}, "the original has no regulariser"},
      {"RCD", "dropout rate changed", 0, 0, 0, nullptr, {}, "the network has no dropout"},
      {"RCP", "patience of early stopping changed", 0, 0, 0, nullptr, {}, "the trainer does not stop early"},
      {"WCI", "initialiser changed", 0, 0, 0, nullptr, {init("he"), init("uniform"), init("normal")}},
      {"WAB", "bias added", 0, 0, 0, nullptr, {}, "every layer has a bias"},
      {"WRB", "biases removed", 0, 0, 0, nullptr, {named("all", [](Plan& p) { remove_biases(p, 0); })}},
      {"LCH",
       "loss changed",
       0,
       0,
       0,
       nullptr,
       {named("mse", [](Plan& p) { p.options.loss = training::LossKind::kMse; })}},
      {"OCH", "optimiser changed", 0, 0, 0, nullptr, {optimiser("sgd"), optimiser("momentum"), optimiser("rmsprop")}},
      {"OCG", "gradient clipping changed", 0, 0, 0, nullptr, {}, "the trainer does not clip gradients"},
      {"VRM", "validation removed", 0, 0, 0, nullptr, {}, "the trainer decides nothing by validation"},
  };
  return all;
}

/// How a training did: which tests it predicts right, and its accuracy on training data.
struct Trained {
  std::string right;  ///< of tests, '1' or '0'
  double on_training = 0;
  double accuracy(const std::vector<size_t>& tests) const {
    int64_t count = 0;
    for (size_t i : tests) count += right[i] == '1';
    return tests.empty() ? 0 : double(count) / double(tests.size());
  }
};

class Mutations {
 public:
  Mutations(const StudyContext& context, const TrainingMutantsRequest& request)
      : context_(context),
        request_(request),
        store_((make_folders(context.folder), context.folder + "/trials.db"), "training-mutants",
               kTrainingMutantsVersion) {
    const size_t at = request.model.find('@');
    if (at == std::string::npos) fail("`{}` is not a network with its data, such as lenet5@mnist", request.model);
    network_ = request.model.substr(0, at);
    const dataset::Splits splits = dataset::parse_splits(request.model.substr(at + 1));
    if (!splits.train) fail("{} has no training split", request.model.substr(at + 1));
    const model::Graph graph = zoo::make(network_, {.seed = context.seed});
    train_ = session::open_data(*splits.train, graph, {});
    if (request.limit > 0) train_ = dataset::subset(train_, stream::spread(train_->size(), request.limit));
    const Data whole = session::open_data(*splits.test, graph, {});
    test_ = dataset::subset(whole, stream::spread(whole->size(), request.tests));
    labels_ = dataset::read_labels(*train_);
    usual_.rate = 0.002, usual_.batch = 64, usual_.epochs = request.epochs, usual_.jobs = context.jobs;
  }

  Json run() {
    for (int64_t i = 0; i < request_.runs; ++i) originals_.push_back(train("original", "", {}, i));
    choose_tests();
    Json rows = Json::array();
    std::vector<std::string> names;
    const auto all = operators_for(usual_, train_->size());
    for (const TrainingOperator& op : all) names.emplace_back(op.name);
    for (const std::string& name : request_.operators)
      if (std::find(names.begin(), names.end(), name) == names.end())
        throw InputError(fmt::format("there is no operator {}{}", printable(name), did_you_mean(name, names)),
                         "Choose from " + join(names, ", ") + ".");
    for (const TrainingOperator& op : all)
      if (request_.operators.empty() ||
          std::find(request_.operators.begin(), request_.operators.end(), op.name) != request_.operators.end())
        rows.push_back(judge(op));
    return report(rows);
  }

 private:
  Trained train(const std::string& op, const std::string& value, const std::function<void(Plan&)>& change, int64_t i) {
    const std::string key = fmt::format("{}|{}|{}|{}|{}|{}|{}", request_.model, request_.limit, request_.epochs,
                                        request_.tests, op, value, i);
    if (auto known = store_.find(key)) {
      const JsonDocument document = trials::trial_document(key, *known);
      return {document.top().at("right").text(), document.top().at("on_training").number()};
    }
    stop_if_interrupted();
    tell(context_, key);
    const uint64_t seed = context_.seed + uint64_t(i);
    Plan plan{zoo::make(network_, {.seed = seed}), train_, usual_, seed, labels_};
    plan.options.seed = seed;
    if (change) change(plan);
    training::Task task{network_, plan.graph, plan.graph.outputs[0], plan.train, nullptr, plan.options};
    Trained done;
    try {
      training::Trainer trainer(std::move(task));
      while (!trainer.done()) trainer.run_epoch();
      const model::Graph result = trainer.result();
      done.right = right_on(result, test_);
      const std::string learned = right_on(result, dataset::subset(train_, stream::spread(train_->size(), 2000)));
      done.on_training = double(std::count(learned.begin(), learned.end(), '1')) / double(learned.size());
    } catch (const InputError&) {  // the loss is no longer finite: nothing is predicted right
      done.right = std::string(size_t(test_->size()), '0');
    }
    store_.put(key, json_text(Json{{"right", done.right}, {"on_training", done.on_training}}));
    return done;
  }

  std::string right_on(const model::Graph& graph, const Data& data) const {
    session::Request request;
    request.quiet = true, request.jobs = context_.jobs;
    session::Session session(request, network_, graph, data);
    observers::Predictions predictions(session.task(), true);
    stream::Pass pass(session.test().subject);
    auto judged = pass.watch(predictions);
    session.run(pass, session.test(), "trained network");
    if (pass.interrupted()) throw Interrupted{};
    std::string right;
    for (const observers::SampleRow& row : pass.state(judged).rows)
      right += row.right == observers::SampleRow::kRight ? '1' : '0';
    return right;
  }

  /// All tests, and the easy ones: those that every original predicts right.
  void choose_tests() {
    for (size_t i = 0; i < originals_[0].right.size(); ++i) {
      all_tests_.push_back(i);
      if (std::all_of(originals_.begin(), originals_.end(), [&](const Trained& one) { return one.right[i] == '1'; }))
        easy_.push_back(i);
    }
    Random(context_.seed, 5).shuffle(easy_);
    easy_.resize(easy_.size() / 4);
  }

  struct Verdict {
    stats::Comparison tests, weak, training;
    double trivial = 0;
    static bool killed(const stats::Comparison& c) { return c.p < 0.05 && c.effect >= 0.5; }
  };

  Verdict compare(const std::vector<Trained>& mutant) const {
    std::vector<double> tests, weak, training;
    Verdict out;
    for (size_t i = 0; i < mutant.size(); ++i) {
      tests.push_back(originals_[i].accuracy(all_tests_) - mutant[i].accuracy(all_tests_));
      weak.push_back(originals_[i].accuracy(easy_) - mutant[i].accuracy(easy_));
      training.push_back(originals_[i].on_training - mutant[i].on_training);
      for (size_t t : all_tests_)
        out.trivial += double(originals_[i].right[t] == '1' && mutant[i].right[t] == '0') /
                       double(all_tests_.size() * mutant.size());
    }
    out.tests = stats::paired_t_test(tests), out.weak = stats::paired_t_test(weak);
    out.training = stats::paired_t_test(training);
    return out;
  }

  Verdict evaluate(const std::string& op, const std::string& value, const std::function<void(Plan&)>& change,
                   Json& tried) {
    std::vector<Trained> mutant;
    for (int64_t i = 0; i < request_.runs; ++i) mutant.push_back(train(op, value, change, i));
    const Verdict verdict = compare(mutant);
    auto number = [](double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); };
    tried.push_back({{"value", value},
                     {"killed_by_tests", Verdict::killed(verdict.tests)},
                     {"killed_by_easy_tests", Verdict::killed(verdict.weak)},
                     {"killed_by_training", Verdict::killed(verdict.training)},
                     {"p", number(verdict.tests.p)},
                     {"d", number(verdict.tests.effect)},
                     {"triviality", verdict.trivial}});
    return verdict;
  }

  Json judge(const TrainingOperator& op) {
    Json row = {{"operator", op.name}, {"words", op.words}};
    if (op.why_not) return row["why_not"] = op.why_not, row;
    Json tried = Json::array();
    try {
      op.with ? search(op, row, tried) : try_all(op, row, tried);
    } catch (const InputError& error) {
      row["why_not"] = error.what();
    }
    row["tried"] = tried;
    return row;
  }

  /// The weakest killed value for one judge, by bisection; nothing when the strongest is not killed.
  std::optional<double> weakest(const TrainingOperator& op, Json& tried, bool (*is_killed)(const Verdict&)) {
    auto killed = [&](double value) {
      return is_killed(evaluate(
          op.name, fmt::format("{:g}", value), [&, value](Plan& p) { op.with(p, value); }, tried));
    };
    if (!killed(op.strongest)) return std::nullopt;
    double low = op.original, high = op.strongest;
    while (std::abs(high - low) > op.precision) {
      double middle = (low + high) / 2;
      if (op.precision >= 1) middle = std::round(middle);
      if (middle == low || middle == high) break;
      (killed(middle) ? high : low) = middle;
    }
    return high;
  }

  void search(const TrainingOperator& op, Json& row, Json& tried) {
    const auto by_training = weakest(op, tried, [](const Verdict& v) { return Verdict::killed(v.training); });
    row["killable"] = by_training.has_value();
    if (!by_training) return;
    const double range = op.strongest - *by_training;
    auto score = [&](const std::optional<double>& own) {
      if (!own) return 0.0;
      return range == 0 ? 1.0 : std::clamp((op.strongest - *own) / range, 0.0, 1.0);
    };
    const auto by_tests = weakest(op, tried, [](const Verdict& v) { return Verdict::killed(v.tests); });
    const auto by_weak = weakest(op, tried, [](const Verdict& v) { return Verdict::killed(v.weak); });
    row["weakest_by_training"] = *by_training;
    row["weakest_by_tests"] = by_tests ? Json(*by_tests) : Json(nullptr);
    row["score"] = score(by_tests), row["easy_score"] = score(by_weak);
  }

  void try_all(const TrainingOperator& op, Json& row, Json& tried) {
    int64_t killable = 0, killed = 0, weak = 0;
    for (const Configuration& one : op.list) {
      const Verdict verdict = evaluate(op.name, one.value, one.apply, tried);
      if (!Verdict::killed(verdict.training)) continue;
      ++killable, killed += Verdict::killed(verdict.tests), weak += Verdict::killed(verdict.weak);
    }
    row["killable"] = killable > 0;
    if (killable > 0)
      row["score"] = double(killed) / double(killable), row["easy_score"] = double(weak) / double(killable);
  }

  Json report(const Json& rows) const {
    double score = 0, easy = 0;
    int64_t count = 0;
    std::string text = fmt::format(
        "# Mutants of trainings: {}, {} runs each\n\n| operator | what it does | killable by training data | "
        "score of the tests | of easy tests | |\n|---|---|---|---|---|---|\n",
        request_.model, request_.runs);
    auto cell = [](const Json& row, const char* name) {
      return row.contains(name) ? fmt::format("{:.2f}", row[name].get<double>()) : std::string("–");
    };
    for (const Json& row : rows) {
      const std::string why = row.value("why_not", "");
      text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", row["operator"].get<std::string>(),
                          row["words"].get<std::string>(),
                          !why.empty()                  ? ""
                          : row["killable"].get<bool>() ? "yes"
                                                        : "no",
                          cell(row, "score"), cell(row, "easy_score"), why);
      if (row.contains("score")) score += row["score"].get<double>(), easy += row["easy_score"].get<double>(), ++count;
    }
    Json json = {{"model", request_.model}, {"runs", request_.runs}, {"operators", rows}};
    if (count > 0) {
      json["score"] = score / double(count), json["easy_score"] = easy / double(count);
      if (score > 0) json["sensitivity"] = (score - easy) / score;
      text += fmt::format("\nScore of {} tests {:.2f}, of {} easy ones {:.2f}: sensitivity {:.0f} %.\n",
                          all_tests_.size(), score / double(count), easy_.size(), easy / double(count),
                          score > 0 ? 100 * (score - easy) / score : 0);
    }
    json["text"] = text;
    write_file(context_.folder + "/training-mutants.md", text);
    write_file(context_.folder + "/training-mutants.json", json_text(json, 2));
    return json;
  }

  const StudyContext& context_;
  const TrainingMutantsRequest& request_;
  trials::Store store_;
  std::string network_;
  Data train_, test_;
  std::vector<int64_t> labels_;
  training::Options usual_;
  std::vector<Trained> originals_;
  std::vector<size_t> all_tests_, easy_;
};

}  // namespace

Json run_training_mutants_study(const StudyContext& context, const TrainingMutantsRequest& request) {
  return Mutations(context, request).run();
}

}  // namespace netmend::studies
