#include "selection/next.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "adequacy/learn.h"
#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "dataset/spec.h"
#include "executor/runtime.h"
#include "localise/candidates.h"
#include "mutants/judged.h"
#include "mutants/own_labels.h"
#include "observers/coverage/criteria.h"
#include "observers/coverage/traces.h"
#include "observers/sample_table.h"
#include "observers/surprise/dsa.h"
#include "observers/top_predictions.h"
#include "selection/core_set.h"
#include "selection/priority.h"
#include "session/split.h"

namespace netmend::selection {
namespace {

using observers::PredictionSettings;
using observers::SampleRow;
using observers::TopRow;

const std::vector<std::string> kMethods = {"gini", "margin",  "entropy",  "max-p",
                                           "mcp",  "coreset", "surprise", "mutation"};

/// What a pass over some data shows.
struct Shown {
  std::vector<TopRow> top;  ///< where predictions are classes
  std::vector<SampleRow> rows;
  observers::UnitBatch values;  ///< of the layer that is looked at, where one is
};

/// The order that a method brings the pool into.
struct Order {
  std::vector<size_t> order;
  std::vector<double> scores;  ///< one per input of the pool; empty when there are none
  bool whole = true;           ///< an order of the whole pool
};

bool predicts_classes(const session::Session& session, const PredictionSettings& task) {
  if (task.by_class()) return true;
  if (task.task != observers::Task::kNone) return false;
  return task.outputs > 1 || session.config().overrides.kind == "binary" ||
         task.head.output_kind != executor::OutputKind::kLogits;
}

at::Tensor as_tensor(const observers::UnitBatch& batch) {
  return at::from_blob(const_cast<float*>(batch.values.data()), {batch.count(), batch.units}, at::kFloat);
}

/// The largest scores first; what has none comes `last` or first.
std::vector<size_t> by_score(const std::vector<double>& scores, bool last) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  auto key = [&](size_t i) { return std::isnan(scores[i]) ? (last ? -INFINITY : INFINITY) : scores[i]; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) > key(b); });
  return order;
}

constexpr int64_t kMutants = 500;  ///< of --method mutation

double room() { return double(executor::memory_budget()) / 4; }

class Choosing {
 public:
  Choosing(session::Session& pool, session::Session& known, const NextRequest& request)
      : pool_(pool), known_(known), request_(request), task_(pool.task()), tests_(pool.test()) {
    // Data without labels has no names for classes; netmend.toml may.
    const std::vector<std::string>& names = pool.config().classes;
    if (task_.task == observers::Task::kNone && names.size() == task_.classes.size()) task_.classes = names;
  }

  NextReport run() {
    const bool unit = !request_.on.empty();
    report_.classes = predicts_classes(pool_, task_);
    if (!report_.classes && !unit && request_.method != "coreset")
      throw InputError(fmt::format("--method {} needs predictions that are classes", request_.method),
                       "--method coreset and --on unit=LAYER/NUMBER work for any model.");
    pool_.sample(tests_);
    report_.pool = tests_.subject.data->info().spec;
    const Order order = unit                                                            ? by_unit()
                        : request_.method == "mutation"                                 ? by_mutation()
                        : request_.method == "coreset" || request_.method == "surprise" ? by_values()
                                                                                        : by_predictions();
    fill(order);
    return std::move(report_);
  }

 private:
  /// One pass; `space` may be null: then no values are kept, else those of every n-th input.
  Shown look(const session::Split& split, const PredictionSettings& task, const observers::SpacePtr& space,
             int64_t stride, bool top, const std::string& reason) {
    const observers::Predictions predictions(task, true);
    const observers::TopPredictions likely(task);
    std::optional<observers::Criteria> criteria;
    stream::Pass pass(split.subject);
    auto judged = pass.watch(predictions);
    std::optional<stream::Watched<observers::Criteria>> traced;
    std::optional<stream::Watched<observers::TopPredictions>> ranked;
    if (space) {
      auto traces = std::make_shared<observers::Traces>(space, 0, space->layers().size(), split.used(), stride);
      criteria.emplace(task, space, observers::Criteria::List{traces});
      traced = pass.watch(*criteria);
    }
    if (top) ranked = pass.watch(likely);
    pool_.run(pass, split, reason);
    if (pass.interrupted()) throw Interrupted();
    report_.seconds += pass.seconds();
    Shown shown;
    shown.rows = std::move(pass.state(judged).rows);
    if (traced) shown.values = std::move(static_cast<observers::TraceTally&>(*pass.state(*traced).tallies[0]).kept);
    if (ranked) shown.top = std::move(pass.state(*ranked).rows);
    return shown;
  }

  void require_room(const observers::UnitSpace& space, int64_t inputs, const std::string& what) const {
    if (adequacy::stride_for(space, 0, inputs, room()) > 1)
      throw InputError(fmt::format("the activations of {} {} would take more than {} of memory", with_commas(inputs),
                                   what, bytes_text(room())),
                       "--limit N takes fewer inputs, --memory allows more.");
  }

  Order by_predictions() {
    pool_shown_ = look(tests_, task_, nullptr, 1, true, "pool");
    Order order;
    order.order = prioritise(pool_shown_.top, request_.method, request_.count);
    report_.score_name = request_.method == "mcp" ? "ratio" : request_.method;
    report_.words = "most uncertain first, spread over pairs of classes (MCP)";
    const Score* own = nullptr;
    for (const Score& score : scores())
      if (score.name == request_.method) own = &score;
    if (own) report_.words = "most uncertain first: " + std::string(own->words);
    for (const TopRow& row : pool_shown_.top) {
      const double value = own                        ? own->of(row)
                           : row.probabilities[0] > 0 ? row.probabilities[1] / row.probabilities[0]
                                                      : 0;
      order.scores.push_back(request_.method == "margin" ? -value : value);
    }
    return order;
  }

  /// By distance from all that is known, or by surprise.
  Order by_values() {
    const std::vector<model::Layer> layers =
        localise::candidates(pool_.layers(), tests_.subject.graph, task_.head, task_.outputs, request_.layers);
    const auto space = observers::make_unit_space(tests_.subject, {layers.back()}, {});
    require_room(*space, tests_.used(), "inputs of the pool");
    const bool surprise = request_.method == "surprise";
    session::Split* split = known_.train();
    if (surprise && !split)
      throw InputError("--method surprise compares with training data, and none is given", "Add --train SPEC.");
    if (!split && known_.has_data()) split = &known_.test();
    pool_shown_ = look(tests_, task_, space, 1, report_.classes, "pool");
    report_.layer = layers.back().name;
    Order order;
    Shown known;
    if (split) {
      known_.sample(*split);
      session::Split other = *split;
      other.name = "known";
      const PredictionSettings task = known_.task_of(*split);
      known = look(other, task, space, adequacy::stride_for(*space, 0, other.used(), room()), false, "known inputs");
      report_.known = known.values.count();
      report_.known_data = other.subject.data->info().spec;
      if (surprise) {
        const auto classes = int64_t(task.classes.size());
        const observers::ClassTraces training = observers::sort_by_class(known.values, classes, false);
        order.scores = observers::Dsa(training).scores(observers::sort_by_class(pool_shown_.values, classes, false),
                                                       pool_.request().jobs);
      }
    }
    if (surprise) {
      report_.score_name = "surprise";
      report_.words = fmt::format("most surprising first (DSA of {}), against {} training inputs", report_.layer,
                                  with_commas(report_.known));
      order.order = by_score(order.scores, false);
      return order;
    }
    order.order = core_set(as_tensor(pool_shown_.values), report_.known > 0 ? as_tensor(known.values) : at::Tensor(),
                           request_.count, pool_.request().jobs);
    order.whole = false;
    report_.words =
        fmt::format("each is the farthest, by the activations of {}, from {}", report_.layer,
                    split ? fmt::format("{} known inputs and those chosen before", with_commas(report_.known))
                          : std::string("those chosen before"));
    return order;
  }

  /// Mutants of the network on data whose labels are its own predictions: any change kills.
  mutants::KillTable kills_on(session::Session& session, const session::Split& split,
                              const std::vector<mutants::Mutant>& list) {
    const mutants::OwnLabels own = mutants::with_own_labels(session, split);
    return mutants::judge(own.split.subject, own.task, pool_.layers(), list, mutants::Kill::kStrict,
                          pool_.request().jobs)
        .table;
  }

  /// First inputs that kill mutants which no test kills, then by the share of mutants that they kill.
  Order by_mutation() {
    const mutants::OwnLabels own = mutants::with_own_labels(pool_, tests_);
    mutants::Generation how;
    how.operators = mutants::find_operators("all"), how.sample = kMutants, how.seed = pool_.request().seed;
    const std::vector<mutants::Mutant> list = mutants::generate(own.split.subject, pool_.layers(), own.task, how).list;
    const mutants::KillTable table = kills_on(pool_, tests_, list);
    std::vector<uint64_t> left(table.words(), ~uint64_t(0));
    int64_t survivors = int64_t(list.size());
    if (known_.has_data()) {
      session::Split& split = known_.test();
      known_.sample(split);
      const mutants::KillTable known = kills_on(known_, split, list);
      for (int64_t i = 0; i < known.inputs(); ++i)
        for (size_t w = 0; w < left.size(); ++w) left[w] &= ~known.killed_by(i)[w];
      survivors = 0;
      for (size_t m = 0; m < list.size(); ++m) survivors += left[m / 64] >> m % 64 & 1;
      report_.known = known.inputs(), report_.known_data = split.subject.data->info().spec;
    }
    pool_shown_ = look(tests_, task_, nullptr, 1, report_.classes, "pool");
    Order order = in_order_of_kills(table, left, list.size());
    report_.score_name = "killing score";
    report_.words = fmt::format(
        "first the inputs that kill mutants which {}, then by the share of the {} mutants that each input "
        "kills",
        report_.known_data.empty() ? std::string("those chosen before do not kill")
                                   : fmt::format("no test kills ({} of them survive {} tests)", with_commas(survivors),
                                                 with_commas(report_.known)),
        with_commas(int64_t(list.size())));
    return order;
  }

  Order in_order_of_kills(const mutants::KillTable& table, std::vector<uint64_t> left, size_t mutants) const {
    auto count = [&](int64_t input, const std::vector<uint64_t>* of) {
      int64_t sum = 0;
      for (size_t w = 0; w < table.words(); ++w)
        sum += std::popcount(table.killed_by(input)[w] & (of ? (*of)[w] : ~uint64_t(0)));
      return sum;
    };
    Order order;
    for (int64_t i = 0; i < table.inputs(); ++i) order.scores.push_back(double(count(i, nullptr)) / double(mutants));
    std::vector<size_t> rest = by_score(order.scores, true);
    while (int64_t(order.order.size()) < request_.count) {
      int64_t most = 0;
      auto best = rest.end();
      for (auto at = rest.begin(); at != rest.end(); ++at)
        if (const int64_t own = count(int64_t(*at), &left); own > most) most = own, best = at;
      if (best == rest.end()) break;
      for (size_t w = 0; w < left.size(); ++w) left[w] &= ~table.killed_by(int64_t(*best))[w];
      order.order.push_back(*best);
      rest.erase(best);
    }
    order.order.insert(order.order.end(), rest.begin(), rest.end());
    return order;
  }

  /// Inputs that drive one unit above what tests reach.
  Order by_unit() {
    const std::string name = request_.on.substr(5);
    const session::UnitPlace place = pool_.unit(name);
    const auto space = observers::make_unit_space(tests_.subject, {pool_.layers()[place.layer]}, {});
    require_room(*space, tests_.used(), "inputs of the pool");
    pool_shown_ = look(tests_, task_, space, 1, report_.classes, "pool");
    Order order;
    report_.score_name = "value";
    for (int64_t i = 0; i < pool_shown_.values.count(); ++i)
      order.scores.push_back(pool_shown_.values.input(i)[place.unit]);
    order.order = by_score(order.scores, true);
    report_.unit = name;
    report_.words = fmt::format("highest activation of unit {} first", name);
    if (!known_.has_data()) return order;
    session::Split& split = known_.test();
    known_.sample(split);
    session::Split tests = split;
    tests.name = "known";
    require_room(*space, tests.used(), "tests");
    const Shown reached = look(tests, known_.task(), space, 1, false, "known inputs");
    double highest = -INFINITY;
    for (int64_t i = 0; i < reached.values.count(); ++i)
      if (const double value = reached.values.input(i)[place.unit]; std::isfinite(value))
        highest = std::max(highest, value);
    if (!std::isfinite(highest)) return order;
    report_.tests_reach = highest;
    report_.above = std::count_if(order.scores.begin(), order.scores.end(), [&](double v) { return v > highest; });
    report_.words +=
        fmt::format("; higher than in any of {2} tests ({3:.4g}): {0} of {1}", with_commas(*report_.above),
                    with_commas(int64_t(order.scores.size())), with_commas(reached.values.count()), highest);
    return order;
  }

  std::string class_name(int32_t number) const {
    if (number < 0) return "";
    return size_t(number) < task_.classes.size() ? task_.classes[size_t(number)] : std::to_string(number);
  }

  ChosenInput describe(size_t i, const Order& order) const {
    const SampleRow& row = pool_shown_.rows[i];
    ChosenInput chosen;
    chosen.sample = row.sample, chosen.id = tests_.subject.data->id(row.sample);
    chosen.wrong = row.right == SampleRow::kWrong;
    if (!pool_shown_.top.empty()) {
      const TopRow& top = pool_shown_.top[i];
      chosen.predicted = class_name(top.classes[0]), chosen.second = class_name(top.classes[1]);
      chosen.confidence = top.probabilities[0], chosen.second_confidence = top.probabilities[1];
    } else if (!std::isnan(row.predicted)) {
      chosen.predicted = fmt::format("{:.6g}", row.predicted);
    }
    if (!order.scores.empty() && std::isfinite(order.scores[i])) chosen.score = order.scores[i];
    return chosen;
  }

  void fill(const Order& order) {
    report_.inputs = tests_.used();
    std::vector<bool> fails;
    for (const SampleRow& row : pool_shown_.rows) {
      fails.push_back(row.right == SampleRow::kWrong);
      report_.wrong += fails.back();
      report_.labelled = report_.labelled || row.right != SampleRow::kNotJudged;
    }
    const size_t count = std::min(order.order.size(), size_t(request_.count));
    for (size_t rank = 0; rank < count; ++rank) {
      report_.chosen.push_back(describe(order.order[rank], order));
      report_.chosen_wrong += report_.chosen.back().wrong;
    }
    if (report_.labelled && order.whole) report_.apfd = apfd(order.order, fails);
  }

  session::Session& pool_;
  session::Session& known_;
  const NextRequest& request_;
  PredictionSettings task_;
  session::Split& tests_;
  Shown pool_shown_;
  NextReport report_;
};

}  // namespace

void check_request(NextRequest& request) {
  const std::string typed = request.method;
  request.method = lower(typed);
  if (std::find(kMethods.begin(), kMethods.end(), request.method) == kMethods.end())
    throw InputError(
        fmt::format("--method {}: there is no such method{}", printable(typed), did_you_mean(request.method, kMethods)),
        "Choose from " + join(kMethods, ", ") + ".");
  if (!request.on.empty() && !request.on.starts_with("unit="))
    throw InputError(fmt::format("--on {}: not understood", printable(request.on)),
                     "Give unit=LAYER/NUMBER, such as unit=conv1/7.");
}

NextReport choose_next(session::Session& pool, session::Session& known, const NextRequest& request) {
  return Choosing(pool, known, request).run();
}

void write_chosen(const std::string& path, const NextReport& report) {
  auto number = [](const std::optional<double>& value) { return Digits{value.value_or(NAN), 6, true}; };
  std::vector<std::string> more;
  if (!report.score_name.empty()) more.push_back(report.score_name);
  write_csv(
      path,
      report.classes ? OwnWords("rank,sample,id,predicted,confidence,second,second_confidence")
                     : OwnWords("rank,sample,id,predicted"),
      [&](CsvWriter& out) {
        for (size_t rank = 0; rank < report.chosen.size(); ++rank) {
          const ChosenInput& one = report.chosen[rank];
          out << rank + 1 << one.sample << one.id << one.predicted;
          if (report.classes) out << number(one.confidence) << one.second << number(one.second_confidence);
          if (!report.score_name.empty()) out << number(one.score);
          out.end();
        }
      },
      more);
}

std::string pool_spec(const std::string& text) {
  std::error_code error;
  if (!std::filesystem::is_directory(text, error)) return text;
  dataset::Spec folder;
  folder.head = "images", folder.rest = text.ends_with("/") && text.size() > 1 ? text.substr(0, text.size() - 1) : text;
  return dataset::spec_text(folder);
}

}  // namespace netmend::selection
