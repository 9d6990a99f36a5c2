#include "mutants/mutate.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/text.h"
#include "mutants/judged.h"
#include "mutants/own_labels.h"
#include "observers/figures.h"
#include "session/session.h"
#include "session/split.h"
#include "stats/comparisons.h"

namespace netmend::mutants {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

/// Training inputs on which all mutants are judged and strengths of inhibitors found; those that could be equivalent
/// are judged on more.
constexpr int64_t kTrainingInputs = 2000, kMostTrainingInputs = 60'000;
/// What-if of single units is about this much cheaper than an evaluation each.
constexpr double kCheaper = 20;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class Mutating {
 public:
  Mutating(session::Session& session, const MutateRequest& request)
      : session_(session), request_(request), kill_(find_kill(request.kill)), jobs_(session.request().jobs) {}

  MutateResult run() {
    prepare();
    const auto start = Clock::now();
    generate_mutants();
    result_.generating = since(start);
    const Judged judged = judge(tests_->subject, task_, session_.layers(), mutants_, kill_, jobs_);
    session_.record(*tests_, "mutants", result_.inputs, since(start));
    if (kill_ == Kill::kStatistical) compare_trainings(judged);
    look_at_training();
    fill(judged);
    result_.seconds = since(start);
    return std::move(result_);
  }

 private:
  void prepare() {
    session::Split& test = session_.test();
    session_.sample(test, 1 + double(request_.sample) / kCheaper);
    task_ = session_.task(), tests_ = &test;
    result_.model = session_.model_name(), result_.data = test.data->info().spec, result_.kill = request_.kill;
    result_.inputs = test.used(), result_.of = test.inputs();
    if (task_.task == observers::Task::kNone) use_own_labels(test);
    if (!task_.has_right_and_wrong())
      throw InputError("the model predicts numbers, which are neither right nor wrong by themselves",
                       "Say in netmend.toml which error still counts as correct: goal.tolerance = 0.5");
    result_.classes = task_.by_class() ? int64_t(task_.classes.size()) : 1;
    if (session::Split* train = session_.train()) {
      training_ = *train;
      training_->subject.data = dataset::subset(train->data, stream::spread(train->data->size(), kTrainingInputs));
      training_task_ = session_.task_of(*train);
      if (!training_task_.has_right_and_wrong()) training_.reset();
    }
    if (training_) result_.training = training_->data->info().spec;
  }

  void use_own_labels(const session::Split& test) {
    OwnLabels own = with_own_labels(session_, test);
    own_ = std::move(own.split), task_ = std::move(own.task);
    tests_ = &*own_;
    result_.own_labels = true;
    session_.note(
        fmt::format("{} has no labels: the model's own predictions stand in for them, so that a mutant is "
                    "killed by any prediction that changes",
                    result_.data));
  }

  void generate_mutants() {
    Generation& how = generation_;
    how.operators = find_operators(request_.operators);
    how.sample = request_.sample, how.seed = session_.request().seed, how.layers = request_.layers;
    if (std::any_of(how.operators.begin(), how.operators.end(),
                    [](const Operator* op) { return op->source == "muff"; }))
      how.strengths = search_strengths();
    Generated made = generate(tests_->subject, session_.layers(), task_, how);
    mutants_ = std::move(made.list), result_.without = std::move(made.without);
    if (!mutants_.empty()) return;
    std::vector<std::string> reasons;
    for (const auto& [op, why] : result_.without) reasons.push_back(op + ": " + why);
    throw InputError("no mutant of this network can be made: " + join(reasons, "; "),
                     "netmend info lists its layers; --operators and --layer choose.");
  }

  /// A further training of the network, with data of the session's model.
  struct Further {
    std::unique_ptr<session::Session> session;
    session::Split split;
    observers::PredictionSettings task;
  };
  std::vector<Further> open_originals(const session::Split& on, bool training) {
    std::vector<Further> list;
    for (const std::string& file : request_.originals) {
      session::Request other = session_.request();
      other.model = file;
      auto own = std::make_unique<session::Session>(other);
      session::Split split = training ? *own->train() : own->test();
      split.subject.data = on.subject.data;
      const observers::PredictionSettings task = own->task();
      if (own->layers().size() != session_.layers().size())
        fail("{} has {} layers and {} has {}: these are not trainings of one network", file, own->layers().size(),
             result_.model, session_.layers().size());
      list.push_back({std::move(own), std::move(split), task});
    }
    return list;
  }

  /// DeepCrime's test, with pairs: the same mutant of each training against that training as it is.
  void compare_trainings(const Judged& judged) {
    std::map<std::string, std::vector<double>> lost;
    auto add = [&](const std::vector<Mutant>& list, const Judged& seen) {
      for (size_t m = 0; m < list.size(); ++m) lost[list[m].id].push_back(seen.original_accuracy - seen.accuracy[m]);
    };
    add(mutants_, judged);
    for (Further& one : open_originals(*tests_, false)) {
      const std::vector<Mutant> list = generate(one.split.subject, one.session->layers(), one.task, generation_).list;
      add(list, judge(one.split.subject, one.task, one.session->layers(), list, kill_, jobs_));
    }
    result_.originals = 1 + int64_t(request_.originals.size());
    for (const Mutant& mutant : mutants_) {
      const stats::Comparison test = stats::paired_t_test(lost[mutant.id]);
      statistical_.push_back(test.p < 0.05 && test.effect >= 0.5);
    }
  }

  std::vector<Strength> search_strengths() {
    const session::Split& on = training_ ? *training_ : *tests_;
    const std::vector<Further> further = open_originals(on, training_.has_value());
    std::vector<Original> originals = {{&on.subject, training_ ? &training_task_ : &task_, &session_.layers()}};
    for (const Further& one : further) originals.push_back({&one.split.subject, &one.task, &one.session->layers()});
    result_.originals = int64_t(originals.size());
    std::vector<Strength> found = find_strengths(originals, jobs_);
    for (const Strength& one : found) {
      StrengthResult row{one.kind == Inhibitor::kWeights ? "wi" : "ni",
                         session_.layers()[size_t(one.layer)].name,
                         one.share,
                         one.killable,
                         one.monotone(),
                         one.weakest,
                         {}};
      for (const StrengthTried& tried : one.tried) row.tried.push_back({tried.strength, tried.killed, tried.lost});
      result_.strengths.push_back(std::move(row));
    }
    return found;
  }

  void look_at_training() {
    if (!training_) return;
    Judged seen = judge(training_->subject, training_task_, session_.layers(), mutants_, kill_, jobs_);
    session_.record(*training_, "mutants on training data", training_->used());
    on_training_ = killed(seen.table);
    equivalent_ = std::move(seen.same);
    confirm_equivalent();
  }

  /// What a few training inputs could not tell from the model: by the outputs themselves, and on more training inputs.
  void confirm_equivalent() {
    result_.training_inputs = training_->used();
    std::vector<size_t> which;
    std::vector<Mutant> left;
    for (size_t m = 0; m < mutants_.size(); ++m) {
      if (!equivalent_[m]) continue;
      equivalent_[m] = same_outputs(training_->subject, training_task_, mutants_[m]);
      if (equivalent_[m]) which.push_back(m), left.push_back(mutants_[m]);
    }
    const auto& all = session_.train()->data;
    if (all->size() <= training_->used()) return;
    session::Split more = *training_;
    more.subject.data = dataset::subset(all, stream::spread(all->size(), kMostTrainingInputs));
    result_.training_inputs = more.used();
    if (left.empty()) return;
    const Judged seen = judge(more.subject, training_task_, session_.layers(), left, kill_, jobs_);
    session_.record(more, "equivalent mutants on training data", more.used());
    for (size_t i = 0; i < which.size(); ++i) equivalent_[which[i]] = seen.same[i];
  }

  std::vector<size_t> judged_mutants() const {
    std::vector<size_t> list;
    for (size_t m = 0; m < mutants_.size(); ++m)
      if (equivalent_.empty() || !equivalent_[m]) list.push_back(m);
    return list;
  }

  template <typename Name>
  std::vector<GroupScore> grouped(const KillTable& table, const Killed& by, const Name& name) {
    std::vector<GroupScore> groups;
    std::map<std::string, size_t> known;
    std::vector<std::vector<size_t>> members;
    for (size_t m : judged_mutants()) {
      const auto [key, words] = name(m);
      auto [hit, fresh] = known.emplace(key, groups.size());
      if (fresh) groups.push_back({key, words}), members.emplace_back();
      members[hit->second].push_back(m);
    }
    for (size_t g = 0; g < groups.size(); ++g) {
      groups[g].mutants = int64_t(members[g].size());
      for (size_t m : members[g]) groups[g].killed += by.goals[m] > 0;
      groups[g].score = score(table, by, members[g]);
    }
    return groups;
  }

  std::string layer_name(size_t m) const {
    return mutants_[m].layer < 0 ? "" : session_.layers()[size_t(mutants_[m].layer)].name;
  }

  void fill(const Judged& judged) {
    Killed by = killed(judged.table);
    for (size_t m = 0; m < statistical_.size(); ++m) by.goals[m] = statistical_[m];
    const std::vector<size_t> counted = judged_mutants();
    result_.accuracy = judged.original_accuracy;
    result_.score = score(judged.table, by, counted);
    result_.judged = int64_t(counted.size()), result_.equivalent = int64_t(mutants_.size() - counted.size());
    fill_mutants(judged, by);
    result_.operators = grouped(judged.table, by, [&](size_t m) {
      return std::pair(std::string(mutants_[m].op->name), std::string(mutants_[m].op->words));
    });
    result_.layers = grouped(judged.table, by, [&](size_t m) {
      const std::string name = layer_name(m);
      return std::pair(name.empty() ? "inputs" : name, std::string());
    });
    fill_classes(by);
    if (kill_ != Kill::kStatistical) fill_tests(judged.table);  // by accuracy no single test kills
    result_.next = {session_.command("next", {"--pool", "UNLABELLED", "--method", "mutation"})};
  }

  void fill_mutants(const Judged& judged, const Killed& by) {
    std::map<uint64_t, std::vector<size_t>> alike;
    for (size_t m = 0; m < mutants_.size(); ++m) alike[judged.behaviour[m]].push_back(m);
    std::vector<int64_t> cluster(mutants_.size());
    for (size_t m = 0; m < mutants_.size(); ++m) {
      const auto& group = alike[judged.behaviour[m]];
      if (group.size() < 2 || judged.behaviour[m] == judged.original) continue;
      if (group[0] == m) cluster[m] = ++result_.clusters, result_.redundant += int64_t(group.size()) - 1;
      cluster[m] = cluster[group[0]];
    }
    for (size_t m = 0; m < mutants_.size(); ++m) {
      const Mutant& one = mutants_[m];
      MutantResult row{one.id, std::string(one.op->name), std::string(one.op->source), layer_name(m)};
      if (one.layer >= 0 && one.unit >= 0) row.unit = model::unit_name(session_.layers()[size_t(one.layer)], one.unit);
      row.killed = by.goals[m] > 0;
      row.killed_classes = by.goals[m], row.killing_inputs = by.inputs[m];
      row.changed = judged.changed[m], row.accuracy = judged.accuracy[m], row.cluster = cluster[m];
      if (!equivalent_.empty()) row.equivalent = equivalent_[m], row.killed_by_training = on_training_.goals[m] > 0;
      result_.killed += row.killed && !row.equivalent.value_or(false);
      result_.mutants.push_back(std::move(row));
    }
  }

  /// Equivalent mutants kill nothing, so that all mutants may be counted.
  void fill_classes(const Killed& by) {
    if (kill_ != Kill::kClass || result_.classes < 2) return;
    for (int64_t c = 0; c < result_.classes; ++c)
      result_.by_class.push_back({task_.classes[size_t(c)], "", result_.judged, by.by_class[size_t(c)],
                                  stats::rate(std::min(by.by_class[size_t(c)], result_.judged), result_.judged)});
  }

  void fill_tests(const KillTable& table) {
    for (const LoneKiller& one : lone_killers(table))
      result_.unique.push_back({one.input, one.alone, tests_->subject.data->id(one.input)});
    result_.smallest = few_tests(table), result_.fewest = fewest_tests(table);
    for (int64_t sample : result_.smallest) result_.smallest_ids.push_back(tests_->subject.data->id(sample));
  }

  session::Session& session_;
  const MutateRequest& request_;
  Kill kill_;
  int jobs_;
  const session::Split* tests_ = nullptr;
  std::optional<session::Split> own_, training_;
  observers::PredictionSettings task_, training_task_;
  Generation generation_;
  std::vector<Mutant> mutants_;
  std::vector<bool> statistical_;  ///< by mutant; empty for other criteria
  std::vector<bool> equivalent_;   ///< by mutant; empty without training data
  Killed on_training_;
  MutateResult result_;
};

Json groups_json(const std::vector<GroupScore>& groups, const char* name) {
  Json list = Json::array();
  for (const GroupScore& one : groups) {
    Json row = {{name, one.name}, {"mutants", one.mutants}, {"killed", one.killed}};
    row["score"] = observers::estimate_json(one.score);
    if (!one.words.empty()) row["words"] = one.words;
    list.push_back(std::move(row));
  }
  return list;
}

Json mutant_json(const MutantResult& one, bool by_class) {
  auto known = [](const std::optional<bool>& value) { return value ? Json(*value) : Json(nullptr); };
  Json row = {{"id", one.id}, {"operator", one.op}, {"source", one.source}, {"layer", one.layer}};
  row["unit"] = one.unit.empty() ? Json(nullptr) : Json(one.unit);
  row["killed"] = one.killed;
  if (by_class) row["killed_classes"] = one.killed_classes;
  row["killing_inputs"] = one.killing_inputs, row["changed"] = one.changed, row["accuracy"] = one.accuracy;
  row["equivalent"] = known(one.equivalent), row["killed_by_training"] = known(one.killed_by_training);
  row["cluster"] = one.cluster > 0 ? Json(one.cluster) : Json(nullptr);
  return row;
}

}  // namespace

void check_request(const MutateRequest& request) {
  find_operators(request.operators);
  if (find_kill(request.kill) == Kill::kStatistical && request.originals.size() < 2)
    throw InputError("--kill statistical compares accuracies over several trainings of the network",
                     "Name further trainings of it: --original second.onnx --original third.onnx; DeepCrime uses 20.");
}

MutateResult mutate(session::Session& session, const MutateRequest& request) {
  return Mutating(session, request).run();
}

Json to_json(const MutateResult& result) {
  const bool by_class = result.kill == "class" && result.classes > 1;
  Json json = {{"model", result.model}, {"data", result.data}, {"kill", result.kill}};
  json["score"] = observers::number_json(result.score.value);
  json["interval"] = {{"low", observers::number_json(result.score.low)},
                      {"high", observers::number_json(result.score.high)}};
  json["killed"] = result.killed, json["judged"] = result.judged;
  json["equivalent"] = result.training.empty() ? Json(nullptr) : Json(result.equivalent);
  json["training"] = result.training.empty() ? Json(nullptr) : Json(result.training);
  json["training_inputs"] = result.training.empty() ? Json(nullptr) : Json(result.training_inputs);
  json["redundant"] = result.redundant, json["clusters"] = result.clusters;
  json["inputs"] = result.inputs, json["of"] = result.of, json["classes"] = result.classes;
  json["accuracy"] = result.accuracy, json["own_labels"] = result.own_labels;
  json["operators"] = groups_json(result.operators, "operator");
  json["layers"] = groups_json(result.layers, "layer");
  json["by_class"] = groups_json(result.by_class, "class");
  json["without_mutants"] = Json::array();
  for (const auto& [op, why] : result.without) json["without_mutants"].push_back({{"operator", op}, {"reason", why}});
  json["unique_tests"] = Json::array();
  for (const UniqueTest& one : result.unique)
    json["unique_tests"].push_back({{"sample", one.sample}, {"id", one.id}, {"alone", one.alone}});
  json["smallest"] = {{"tests", result.smallest.size()}, {"at_least", result.fewest}, {"samples", result.smallest}};
  json["strengths"] = Json::array();
  for (const StrengthResult& one : result.strengths)
    json["strengths"].push_back({{"operator", one.op},
                                 {"layer", one.layer},
                                 {"share", one.share},
                                 {"killable", one.killable},
                                 {"strength", one.killable ? Json(one.weakest) : Json(nullptr)},
                                 {"monotone", one.monotone},
                                 {"tried", one.tried}});
  json["originals"] = result.originals;
  json["mutants"] = Json::array();
  for (const MutantResult& one : result.mutants) json["mutants"].push_back(mutant_json(one, by_class));
  json["seconds"] = result.seconds, json["generating_seconds"] = result.generating;
  json["next"] = result.next;
  return json;
}

void write_mutants(const std::string& path, const MutateResult& result) {
  auto known = [](const std::optional<bool>& value) { return !value ? "" : *value ? "1" : "0"; };
  write_csv(path,
            "id,operator,source,layer,unit,killed,killed_classes,killing_inputs,changed,accuracy,equivalent,"
            "killed_by_training,cluster",
            [&](CsvWriter& out) {
              for (const MutantResult& one : result.mutants)
                out.row(one.id, one.op, one.source, one.layer, one.unit, int(one.killed), one.killed_classes,
                        one.killing_inputs, one.changed, Digits{one.accuracy}, known(one.equivalent),
                        known(one.killed_by_training), one.cluster);
            });
}

void write_smallest(const std::string& path, const MutateResult& result) {
  write_csv(path, "sample,id", [&](CsvWriter& out) {
    for (size_t i = 0; i < result.smallest.size(); ++i) out.row(result.smallest[i], result.smallest_ids[i]);
  });
}

}  // namespace netmend::mutants
