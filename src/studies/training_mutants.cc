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
#include "mutants/judged.h"
#include "session/split.h"
#include "stats/bootstrap.h"
#include "stats/comparisons.h"
#include "studies/tables.h"
#include "studies/trained_networks.h"
#include "studies/training_operators.h"
#include "training/trainer.h"
#include "trials/store.h"
#include "zoo/zoo.h"

namespace netmend::studies {
namespace {

using Json = nlohmann::ordered_json;
using Data = std::shared_ptr<const dataset::Dataset>;

constexpr int kTrainingMutantsVersion = 2;
constexpr double kTrivial = 0.9,
                 kPower = 0.8;  ///< DeepCrime's: what is trivial; below which power a verdict is unstable
constexpr int64_t kNetworkMutants = 300;

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
        store_((make_folders(context.folder),
                open_store(context, "training-mutants", settings_of(context, request), kTrainingMutantsVersion))) {
    const size_t at = request.model.find('@');
    if (at == std::string::npos) fail("`{}` is not a network with its data, such as lenet5@mnist", request.model);
    network_ = request.model.substr(0, at);
    const dataset::Splits splits = dataset::parse_splits(request.model.substr(at + 1));
    if (!splits.train) fail("{} has no training split", request.model.substr(at + 1));
    const model::Graph graph = zoo::make(network_, {.seed = context.seed});
    train_ = session::open_data(*splits.train, graph, {});
    if (request.limit > 0) train_ = dataset::subset(train_, stream::spread(train_->size(), request.limit));
    const dataset::Spec tests = request.data.empty() ? *splits.test : dataset::parse_spec(request.data);
    const Data whole = session::open_data(tests, graph, {});
    test_ = dataset::subset(whole, stream::spread(whole->size(), request.tests));
    labels_ = dataset::read_labels(*train_);
    usual_.rate = 0.002, usual_.batch = 64, usual_.epochs = request.epochs, usual_.jobs = context.jobs;
  }

  Json run() {
    const auto all = operators_for(usual_, train_->size());
    std::vector<std::string> names;
    for (const TrainingOperator& op : all) names.emplace_back(op.name);
    for (const std::string& name : request_.operators)
      if (std::find(names.begin(), names.end(), name) == names.end())
        throw InputError(fmt::format("there is no operator {}{}", printable(name), did_you_mean(name, names)),
                         "Choose from " + join(names, ", ") + ".");
    originals_ = train_all("original", "", {});
    choose_tests();
    Json rows = Json::array();
    for (const TrainingOperator& op : all)
      if (request_.operators.empty() ||
          std::find(request_.operators.begin(), request_.operators.end(), op.name) != request_.operators.end())
        rows.push_back(judge(op));
    return report(rows);
  }

 private:
  const std::vector<Trained>& originals_of(const TrainingOperator& op) {
    if (!op.enriched) return originals_;
    if (enriched_.empty()) enriched_ = train_all("original", "enriched", [](Plan& plan) { enrich(plan, false); });
    return enriched_;
  }

  Plan plan_of(int64_t i, const std::function<void(Plan&)>& change) const {
    const uint64_t seed = context_.seed + uint64_t(i);
    Plan plan{zoo::make(network_, {.seed = seed}), train_, usual_, 0, false, seed, labels_};
    plan.options.seed = seed;
    if (change) change(plan);
    return plan;
  }

  model::Graph trained_graph(const Plan& plan) const {
    Data train = plan.train, held_out;
    if (plan.validation) {
      std::vector<int64_t> kept, held;
      for (int64_t i = 0; i < train->size(); ++i) (i % 10 == 9 ? held : kept).push_back(i);
      held_out = dataset::subset(train, held), train = dataset::subset(train, kept);
    }
    training::Trainer trainer({network_, plan.graph, plan.graph.outputs[0], train, held_out, plan.options});
    double best = INFINITY;
    int64_t waited = 0;
    while (!trainer.done() && (plan.patience == 0 || waited < plan.patience)) {
      const double loss = trainer.run_epoch().val_loss;
      waited = loss < best ? 0 : waited + 1;
      best = std::min(best, loss);
    }
    return trainer.result();
  }

  /// The trainings of a configuration, with paired seeds.
  trials::Part part_of(const std::string& op, const std::string& value,
                       const std::function<void(Plan&)>& change) const {
    trials::Part part;
    std::map<std::string, int64_t> numbers;
    for (int64_t i = 0; i < request_.runs; ++i) {
      part.keys.push_back(fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}", request_.model, context_.seed, request_.limit,
                                      request_.epochs, request_.data, request_.tests, op, value, i));
      numbers[part.keys.back()] = i;
    }
    part.name = op + "|" + value;
    part.prepare = [this, change, numbers]() -> trials::RunTrial {
      return [this, change, numbers](const std::string& key) {
        tell(context_, key);
        return train(plan_of(numbers.at(key), change));
      };
    };
    return part;
  }

  std::vector<Trained> train_all(const std::string& op, const std::string& value,
                                 const std::function<void(Plan&)>& change) {
    const trials::Part part = part_of(op, value, change);
    trials::run_parts(store_, {part}, {});
    std::vector<Trained> all;
    for (const std::string& key : part.keys) {
      const JsonDocument document = trials::trial_document(key, store_.find(key).value_or(""));
      all.push_back({document.top().at("right").text(), document.top().at("on_training").number()});
    }
    return all;
  }

  /// What is known from the start to be trained, to all workers at once; a search asks one question after another.
  void share_out(const TrainingOperator& op) {
    if (!store_.shared()) return;
    originals_of(op);
    std::vector<trials::Part> parts;
    for (const Configuration& one : op.list) parts.push_back(part_of(op.name, one.value, whole_change(op, one.apply)));
    try {
      trials::run_parts(store_, parts, {});
    } catch (const InputError&) {  // what cannot be changed like this is said where its turn comes
    }
  }

  /// WAB is the bias that the enriched original lacks.
  static std::function<void(Plan&)> whole_change(const TrainingOperator& op, std::function<void(Plan&)> change) {
    const bool with_bias = std::string_view(op.name) == "WAB", enriched = op.enriched;
    return [with_bias, enriched, change = std::move(change)](Plan& plan) {
      if (enriched) enrich(plan, with_bias);
      change(plan);
    };
  }

  static std::string settings_of(const StudyContext& context, const TrainingMutantsRequest& request) {
    return fmt::format("{}, seed {}, {} training inputs, epochs {}, runs {}, {} tests of {}, operators {}",
                       request.model, context.seed, request.limit, request.epochs, request.runs, request.tests,
                       request.data.empty() ? "the test split" : request.data,
                       request.operators.empty() ? "all" : join(request.operators, "+"));
  }

  std::string train(const Plan& plan) const {
    Trained done;
    try {
      const model::Graph result = trained_graph(plan);
      done.right = right_on(result, test_);
      const std::string learned = right_on(result, dataset::subset(train_, stream::spread(train_->size(), 2000)));
      done.on_training = double(std::count(learned.begin(), learned.end(), '1')) / double(learned.size());
    } catch (const InputError&) {  // the loss is no longer finite: nothing is predicted right
      done.right = std::string(size_t(test_->size()), '0');
    }
    return json_text(Json{{"right", done.right}, {"on_training", done.on_training}});
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
    std::vector<bool> easy(all_tests_.size());
    for (size_t i : easy_) easy[i] = true;
    Random(context_.seed, 5).shuffle(easy_);
    easy_.resize(easy_.size() / 4);
    const std::vector<int64_t> labels = dataset::read_labels(*test_);
    auto where = [&](const std::function<bool(size_t)>& takes) {
      std::vector<size_t> set;
      for (size_t i : all_tests_)
        if (takes(i)) set.push_back(i);
      return set;
    };
    sets_ = {{"all", all_tests_},
             {"easy: right in all originals, a quarter", easy_},
             {"hard: wrong in an original", where([&](size_t i) { return !easy[i]; })},
             {"one class missing", where([&](size_t i) { return labels[i] != 0; })},
             {"three classes", where([&](size_t i) { return labels[i] < 3; })}};
    for (uint64_t draw = 1; draw <= 4; ++draw) {
      std::vector<size_t> drawn = all_tests_;
      Random(context_.seed, 10 + draw).shuffle(drawn);
      drawn.resize(drawn.size() >> draw);
      sets_.push_back({fmt::format("random {}", drawn.size()), std::move(drawn)});
    }
  }

  struct Verdict {
    stats::Comparison tests, weak, training;
    double trivial = 0;
    bool stable = false;  ///< on training data; only what these kill asks for it
    static bool killed(const stats::Comparison& c) { return c.p < 0.05 && c.effect >= 0.5; }
    bool killable() const { return killed(training); }
  };

  static stats::Comparison on(const std::vector<size_t>& tests, const std::vector<Trained>& originals,
                              const std::vector<Trained>& mutant) {
    std::vector<double> lost;
    for (size_t i = 0; i < mutant.size(); ++i) lost.push_back(originals[i].accuracy(tests) - mutant[i].accuracy(tests));
    return stats::paired_t_test(lost);
  }

  Verdict compare(const std::vector<Trained>& originals, const std::vector<Trained>& mutant) const {
    std::vector<double> training;
    Verdict out{on(all_tests_, originals, mutant), on(easy_, originals, mutant)};
    for (size_t i = 0; i < mutant.size(); ++i) {
      training.push_back(originals[i].on_training - mutant[i].on_training);
      for (size_t t : all_tests_)
        out.trivial += double(originals[i].right[t] == '1' && mutant[i].right[t] == '0') /
                       double(all_tests_.size() * mutant.size());
    }
    out.training = stats::paired_t_test(training);
    out.stable = stats::paired_power(out.training.effect, request_.runs) >= kPower;
    return out;
  }

  Verdict evaluate(const TrainingOperator& op, const std::string& value, const std::function<void(Plan&)>& change,
                   Json& tried) {
    const std::string name = fmt::format("{}|{}", op.name, value);
    if (auto known = verdicts_.find(name); known != verdicts_.end()) return known->second;
    const std::vector<Trained>& originals = originals_of(op);
    const std::vector<Trained> mutant = train_all(op.name, value, whole_change(op, change));
    const Verdict verdict = compare(originals, mutant);
    verdicts_[name] = verdict;
    if (verdict.killable())
      for (TestSet& set : sets_) ++set.mutants, set.killed += Verdict::killed(on(set.tests, originals, mutant));
    auto number = [](double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); };
    tried.push_back({{"value", value},
                     {"killed_by_tests", Verdict::killed(verdict.tests)},
                     {"killed_by_easy_tests", Verdict::killed(verdict.weak)},
                     {"killed_by_training", verdict.killable()},
                     {"stable", verdict.stable},
                     {"p", number(verdict.tests.p)},
                     {"d", number(verdict.tests.effect)},
                     {"triviality", verdict.trivial}});
    return verdict;
  }

  Json judge(const TrainingOperator& op) {
    Json row = {{"operator", op.name}, {"words", op.words}};
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
          op, fmt::format("{:g}", value), [&, value](Plan& p) { op.with(p, value); }, tried));
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

  /// DeepCrime leaves out an operator of which only the strongest value is killed: no set of tests could do better.
  void search(const TrainingOperator& op, Json& row, Json& tried) {
    const auto by_training = weakest(op, tried, [](const Verdict& v) { return v.killable(); });
    row["killable"] = by_training.has_value();
    row["killability"] = by_training ? std::abs((op.strongest - *by_training) / (op.strongest - op.original)) : 0.0;
    if (!by_training) return;
    row["stable"] = verdicts_.at(fmt::format("{}|{:g}", op.name, *by_training)).stable;
    row["weakest_by_training"] = *by_training;
    const double range = op.strongest - *by_training;
    if (range == 0) {
      row["why_no_score"] = "only the strongest value is killed";
      return;
    }
    auto score = [&](const std::optional<double>& own) {
      return own ? std::clamp((op.strongest - *own) / range, 0.0, 1.0) : 0.0;
    };
    const auto by_tests = weakest(op, tried, [](const Verdict& v) { return Verdict::killed(v.tests); });
    const auto by_weak = weakest(op, tried, [](const Verdict& v) { return Verdict::killed(v.weak); });
    row["weakest_by_tests"] = by_tests ? Json(*by_tests) : Json(nullptr);
    row["score"] = score(by_tests), row["easy_score"] = score(by_weak);
  }

  void try_all(const TrainingOperator& op, Json& row, Json& tried) {
    share_out(op);
    int64_t killable = 0, stable = 0, killed = 0, weak = 0;
    for (const Configuration& one : op.list) {
      const Verdict verdict = evaluate(op, one.value, one.apply, tried);
      killable += verdict.killable();
      if (!verdict.killable() || !verdict.stable) continue;
      ++stable, killed += Verdict::killed(verdict.tests), weak += Verdict::killed(verdict.weak);
    }
    row["killable"] = killable > 0;
    row["killability"] = double(killable) / double(op.list.size());
    if (killable == 0) return;
    row["stable"] = stable == killable;
    if (stable > 0)
      row["score"] = double(killed) / double(stable), row["easy_score"] = double(weak) / double(stable);
    else
      row["why_no_score"] = "no kill by training data is stable";
  }

  static double most_trivial(const Json& row) {
    double most = 0;
    for (const Json& one : row["tried"]) most = std::max(most, one["triviality"].get<double>());
    return most;
  }
  /// `weakest` of the operators with an ordered strength, the killed ones of the others.
  static std::string killed_words(const Json& row) {
    if (row.contains("weakest_by_training")) {
      const std::string tests = !row.contains("weakest_by_tests") ? "–"
                                : row["weakest_by_tests"].is_number()
                                    ? fmt::format("{:g}", row["weakest_by_tests"].get<double>())
                                    : "none";
      return fmt::format("{:g}, tests {}", row["weakest_by_training"].get<double>(), tests);
    }
    std::vector<std::string> values;
    for (const Json& one : row["tried"])
      if (one["killed_by_training"].get<bool>())
        values.push_back(one["value"].get<std::string>() + (one["stable"].get<bool>() ? "" : " (unstable)"));
    return values.empty() ? "none" : join(values, ", ");
  }

  Json report(const Json& rows) const {
    struct Mean {
      double score = 0, easy = 0;
      int64_t count = 0;
      void add(const Json& row) {
        score += row["score"].get<double>(), easy += row["easy_score"].get<double>(), ++count;
      }
    } all, stable;
    std::string text = fmt::format(
        "# Mutants of trainings\n\n{}, {} training inputs, epochs: {}, runs with paired seeds: {}, {} tests{}, {} easy "
        "ones "
        "(predicted right by every original). Killed: p < 0.05 in a paired t-test of accuracies and an effect of 0.5 "
        "or "
        "more. Scores count what training data kills; an unstable kill has less than {:.0f} % power.\n\n## Table 1. "
        "Operators\n\n",
        request_.model, train_->size(), request_.epochs, request_.runs, all_tests_.size(),
        request_.data.empty() ? "" : " of " + printable(request_.data), easy_.size(), 100 * kPower);
    auto cell = [](const Json& row, const char* name) {
      return row.contains(name) ? fmt::format("{:.2f}", row[name].get<double>()) : std::string("–");
    };
    Table table({"operator", "what it does", "weakest value, or values, that training data kills", "killability",
                 "score", "of easy tests", "triviality", ""});
    int64_t killable = 0, trivial = 0, tried = 0;
    for (const Json& row : rows) {
      const std::string why = row.value("why_not", row.value("why_no_score", ""));
      killable += row.value("killable", false);
      for (const Json& one : row["tried"]) ++tried, trivial += one["triviality"].get<double>() >= kTrivial;
      const bool unstable = row.contains("stable") && !row["stable"].get<bool>();
      table.row({row["operator"].get<std::string>(), row["words"].get<std::string>(),
                 row.contains("why_not") ? "–" : killed_words(row), cell(row, "killability"), cell(row, "score"),
                 cell(row, "easy_score"), fmt::format("{:.2f}", most_trivial(row)),
                 !why.empty() ? why
                 : unstable   ? "unstable"
                              : ""});
      if (!row.contains("score")) continue;
      all.add(row);
      if (!unstable) stable.add(row);
    }
    text += table.text();
    text += fmt::format(
        "Killable by training data: {} of {} operators. Trivial (triviality of {} or more, the largest of "
        "an operator's values is shown): {} of {} configurations.\n",
        killable, rows.size(), kTrivial, trivial, tried);
    Json json = {{"model", request_.model}, {"runs", request_.runs}, {"operators", rows}};
    json["killable"] = killable, json["trivial"] = trivial, json["configurations"] = tried;
    auto tell_mean = [&](const Mean& mean, const std::string& of, const std::string& name) {
      if (mean.count == 0) return;
      const double score = mean.score / double(mean.count), easy = mean.easy / double(mean.count);
      json[name + "score"] = score, json[name + "easy_score"] = easy;
      if (score > 0) json[name + "sensitivity"] = (score - easy) / score;
      text += fmt::format("\nMean over {} {}: score of the tests {:.2f}, of the easy ones {:.2f}{}.\n", mean.count, of,
                          score, easy,
                          score > 0 ? fmt::format("; sensitivity {:.0f} %", 100 * (score - easy) / score) : "");
    };
    tell_mean(all, "operators with a score", "");
    tell_mean(stable, "of them without an unstable kill", "stable_");
    text += beside_network_level(json);
    json["text"] = text;
    write_file(context_.folder + "/training-mutants.md", text);
    write_file(context_.folder + "/training-mutants.json", json_text(json, 2));
    write_trials(store_, context_.folder + "/trials.csv");
    return json;
  }

  /// Do mutants of the trained network and mutants of trainings rank sets of tests alike?
  std::string beside_network_level(Json& json) const {
    if (sets_[0].mutants == 0) return "";
    session::Request request;
    request.quiet = true, request.jobs = context_.jobs;
    session::Session session(request, network_, trained_graph(plan_of(0, {})), test_);
    mutants::Generation how;
    how.operators = mutants::find_operators("all"), how.sample = kNetworkMutants, how.seed = context_.seed;
    const auto list = mutants::generate(session.test().subject, session.layers(), session.task(), how).list;
    const mutants::Judged judged = mutants::judge(session.test().subject, session.task(), session.layers(), list,
                                                  mutants::Kill::kClass, context_.jobs);
    std::vector<size_t> every(list.size());
    for (size_t m = 0; m < every.size(); ++m) every[m] = m;
    std::string text = "\n## Table 2. Sets of tests\n\n";
    Table table({"tests", "inputs", fmt::format("trainings: {} killable configurations killed", sets_[0].mutants),
                 fmt::format("network: score of {} mutants", list.size())});
    std::vector<double> trainings, networks;
    json["sets"] = Json::array();
    for (const TestSet& set : sets_) {
      const mutants::Killed by = mutants::killed(judged.table, {set.tests.begin(), set.tests.end()});
      trainings.push_back(double(set.killed) / double(set.mutants));
      networks.push_back(mutants::score(judged.table, by, every).value);
      table.row({set.name, std::to_string(set.tests.size()), fmt::format("{:.1f} %", 100 * trainings.back()),
                 fmt::format("{:.1f} %", 100 * networks.back())});
      json["sets"].push_back({{"set", set.name},
                              {"tests", set.tests.size()},
                              {"training_score", trainings.back()},
                              {"network_score", networks.back()}});
    }
    text += table.text();
    const stats::Estimate rho = stats::rank_agreement(trainings, networks, context_.seed);
    auto number = [](double x) { return std::isfinite(x) ? Json(x) : Json(nullptr); };
    json["rank_correlation"] = number(rho.value);
    json["rank_correlation_low"] = number(rho.low), json["rank_correlation_high"] = number(rho.high);
    if (!std::isfinite(rho.value))
      return text + "Spearman's rank correlation of both: none, one of them is the same for all sets.\n";
    if (!std::isfinite(rho.low))
      return text + fmt::format(
                        "Spearman's rank correlation of both over {} sets: {:.2f}; they are too much alike for an "
                        "interval.\n",
                        sets_.size(), rho.value);
    return text + fmt::format(
                      "Spearman's rank correlation of both over {} sets: {:.2f} ({:.2f} to {:.2f} in 95 % of draws "
                      "of sets). {}\n",
                      sets_.size(), rho.value, rho.low, rho.high,
                      rho.low > 0    ? "Both levels rank these sets of tests alike."
                      : rho.high < 0 ? "They rank these sets of tests the other way round."
                                     : "Whether both levels rank sets of tests alike cannot be told from these.");
  }

  struct TestSet {
    std::string name;
    std::vector<size_t> tests;
    int64_t mutants = 0, killed = 0;  ///< configurations that training data kills, and those that the set kills
  };

  const StudyContext& context_;
  const TrainingMutantsRequest& request_;
  trials::Store store_;
  std::string network_;
  Data train_, test_;
  std::vector<int64_t> labels_;
  training::Options usual_;
  std::vector<Trained> originals_, enriched_;
  std::vector<size_t> all_tests_, easy_;
  std::vector<TestSet> sets_;
  std::map<std::string, Verdict> verdicts_;  ///< of configurations, by operator and value
};

}  // namespace

Json run_training_mutants_study(const StudyContext& context, const TrainingMutantsRequest& request) {
  return Mutations(context, request).run();
}

}  // namespace netmend::studies
