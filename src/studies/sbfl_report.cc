// What the grid of the thesis comes to: its questions, its tables, its claims with tests.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "stats/comparisons.h"
#include "stats/distributions.h"
#include "studies/sbfl_repair.h"

namespace netmend::studies {

using trials::box_of;
using trials::trial_document;
using Json = nlohmann::ordered_json;

std::string GridKey::text() const {
  return fmt::format("{}|{}|{}|{}|{}|{:g}|{}|{}", network, size, epochs, measure, mutation, value,
                     trained ? "trained" : "untrained", published ? "published" : "corrected");
}

std::optional<GridKey> parse_key(const std::string& text) {
  std::vector<std::string> parts = split(text, '|');
  int64_t epochs = 0;
  GridKey key;
  if (parts.size() != 8 || !parse_int(parts[2], epochs) || !parse_double(parts[5], key.value)) return std::nullopt;
  key.network = parts[0], key.size = parts[1], key.epochs = int(epochs), key.measure = parts[3],
  key.mutation = parts[4];
  key.trained = parts[6] == "trained", key.published = parts[7] == "published";
  return key;
}

std::vector<GridRule> grid_rules(bool published) {
  std::vector<GridRule> all;
  for (const char* when : {"loss", "accuracy", "both", "either"})
    for (bool offsets : {false, true})
      all.push_back(
          {when, offsets, {repair::parse_when(when), offsets ? 0.005 : 0, offsets ? 0.01 : 0, true, published}});
  return all;
}

namespace {

/// A round of a trial that its rule had not stopped before: accuracy and loss against the benchmark.
struct Datum {
  const GridKey* key;
  const GridRule* rule;
  int64_t round;  ///< from 1
  double accuracy, loss;
};

double number(const Json& json) { return json.is_number() ? json.get<double>() : INFINITY; }

/// One form and half of the grid.
struct Part {
  bool published = false, trained = false;
  std::vector<GridKey> keys;
  std::vector<GridRule> rules;
  std::vector<Datum> data;
};

/// The four figures of round `round` of the network's further training: loss and accuracy on all tests, and on half.
Json benchmark_of(const Store& store, const GridKey& key, int64_t round) {
  const std::string name = fmt::format("benchmark|{}|{}|{}", key.network, key.size, key.epochs);
  const auto text = store.find(name);
  if (!text) return nullptr;
  const Json json = trial_document(name, *text).json();
  if (!json.is_object() || !json.contains("rounds") || !json["rounds"].is_array()) return nullptr;
  if (round < 1 || size_t(round) > json["rounds"].size()) return nullptr;
  const Json& found = json["rounds"][size_t(round) - 1];
  return found.is_array() && found.size() >= 4 ? found : Json(nullptr);
}

void follow(Part& part, const GridKey& key, const Json& json, const std::vector<Json>& benchmark) {
  auto start = [&](const char* name) { return json.contains(name) ? number(json[name]) : 0.0; };
  for (const GridRule& rule : part.rules) {
    repair::Follower follower(rule.rule, start("loss"), start("accuracy"));
    int64_t round = 0;
    for (const Json& row : json["rounds"]) {
      if (!row.is_array() || row.size() < (part.published ? 2u : 4u)) break;
      repair::Round seen{number(row[0]), number(row[1])};
      const bool goes_on = follower.goes_on(seen);
      // Corrected, the rejected round is taken back and is no result.
      if (!goes_on && !part.published) break;
      ++round;
      const double loss = part.published ? seen.loss : number(row[2]),
                   accuracy = part.published ? seen.accuracy : number(row[3]);
      double from_loss = start(part.published ? "loss" : "held_loss"),
             from_accuracy = start(part.published ? "accuracy" : "held_accuracy");
      if (part.trained) {
        if (size_t(round) > benchmark.size()) break;
        const Json& same = benchmark[size_t(round) - 1];
        from_loss = number(same[part.published ? 0 : 2]), from_accuracy = number(same[part.published ? 1 : 3]);
      }
      part.data.push_back({&key, &rule, round, accuracy / from_accuracy, loss / from_loss});
      if (!goes_on) break;
    }
  }
}

Part part_of(const Store& store, bool published, bool trained) {
  Part part{published, trained, {}, grid_rules(published), {}};
  std::vector<Json> results;
  for (const auto& [text, result] : store.all()) {
    std::optional<GridKey> key = parse_key(text);
    if (!key || key->published != published || key->trained != trained) continue;
    Json json = trial_document(text, result).json();
    if (!json.is_object() || !json.contains("rounds") || !json["rounds"].is_array()) continue;
    part.keys.push_back(*key), results.push_back(std::move(json));
  }
  std::map<std::string, std::vector<Json>> benchmarks;
  for (size_t k = 0; k < part.keys.size(); ++k) {
    const GridKey& key = part.keys[k];
    std::vector<Json>& benchmark = benchmarks[fmt::format("{}|{}|{}", key.network, key.size, key.epochs)];
    if (trained && benchmark.empty())
      for (int64_t round = 1; !benchmark_of(store, key, round).is_null(); ++round)
        benchmark.push_back(benchmark_of(store, key, round));
    follow(part, key, results[k], benchmark);
  }
  return part;
}

using Pick = std::function<std::string(const Datum&)>;

/// What a set of numbers is told by.
enum class Of { kMedian, kMost, kLeast, kSpread };
double told(std::vector<double> values, Of what) {
  const Box box = box_of("", std::move(values));
  switch (what) {
    case Of::kMedian:
      return box.median;
    case Of::kMost:
      return box.most;
    case Of::kLeast:
      return box.least;
    default:
      return box.most - box.least;
  }
}

/// Claims about one part of the grid.
class Asked {
 public:
  Asked(const Part& part, Answer& answer) : part_(part), answer_(answer) {}

  /// Boxes of the data that `label` names, "" leaves a datum out.
  void boxes(const std::vector<std::string>& order, const Pick& label) {
    std::map<std::string, std::vector<double>> accuracy, loss;
    for (const Datum& datum : part_.data)
      if (const std::string name = label(datum); !name.empty())
        accuracy[name].push_back(datum.accuracy), loss[name].push_back(datum.loss);
    for (const std::string& name : order) {
      answer_.accuracy.push_back(box_of(name, accuracy[name]));
      answer_.loss.push_back(box_of(name, loss[name]));
    }
  }

  /// `more` less `less` in each block is above 0; `less` "" is the constant `against`.
  void above(const std::string& text, const Pick& label, const std::string& more, const std::string& less, Of what,
             bool loss = false, double against = 1, double sign = 1) {
    std::map<std::string, std::map<std::string, std::vector<double>>> blocks;
    for (const Datum& datum : part_.data)
      if (const std::string name = label(datum); name == more || (!less.empty() && name == less))
        blocks[block_of(datum)][name].push_back(loss ? datum.loss : datum.accuracy);
    std::vector<double> differences;
    for (auto& [block, sides] : blocks) {
      if (!sides.count(more) || (!less.empty() && !sides.count(less))) continue;
      const double a = told(sides[more], what), b = less.empty() ? against : told(sides[less], what);
      if (std::isfinite(a - b)) differences.push_back(sign * (a - b));
    }
    judge(text, loss, differences);
  }

  /// The median stays within `width` of 1 in each block.
  void near(const std::string& text, const Pick& label, double width, bool loss = false) {
    std::map<std::string, std::vector<double>> blocks;
    for (const Datum& datum : part_.data)
      if (!label(datum).empty()) blocks[block_of(datum)].push_back(loss ? datum.loss : datum.accuracy);
    std::vector<double> room;
    for (auto& [block, values] : blocks) room.push_back(width - std::abs(told(std::move(values), Of::kMedian) - 1));
    judge(text, loss, room);
  }

  /// Nine tenths of each block's figures stay within `width` of 1.
  void still(const std::string& text, const Pick& label, double width) {
    std::map<std::string, std::vector<double>> blocks;
    for (const Datum& datum : part_.data)
      if (!label(datum).empty()) blocks[block_of(datum)].push_back(std::abs(datum.accuracy - 1));
    std::vector<double> room;
    for (auto& [block, moved] : blocks) {
      std::sort(moved.begin(), moved.end());
      room.push_back(width - moved[(moved.size() - 1) * 9 / 10]);
    }
    judge(text, false, room);
  }

  /// What a block is: the sides of a comparison share network, size and length but for what they differ in.
  std::function<std::string(const GridKey&)> block = [](const GridKey& key) {
    return fmt::format("{}|{}|{}", key.network, key.size, key.epochs);
  };

 private:
  std::string block_of(const Datum& datum) const { return block(*datum.key); }

  void judge(const std::string& text, bool loss, const std::vector<double>& differences) {
    GridClaim claim{text, loss, int64_t(differences.size())};
    const auto n = double(differences.size());
    for (double one : differences) claim.mean += one / n;
    if (differences.size() < 3) {
      claim.low = claim.high = claim.p = NAN;
      claim.verdict = "too little data";
    } else {
      double squares = 0;
      for (double one : differences) squares += (one - claim.mean) * (one - claim.mean);
      const double half = stats::t_quantile_95(n - 1) * std::sqrt(squares / (n - 1) / n);
      claim.low = claim.mean - half, claim.high = claim.mean + half;
      claim.p = stats::paired_t_test(differences).p;
      claim.verdict = claim.low > 0 ? "holds" : claim.high < 0 ? "does not hold" : "not shown";
    }
    answer_.claims.push_back(std::move(claim));
  }

  const Part& part_;
  Answer& answer_;
};

std::string by_network(const GridKey& key) { return fmt::format("{}|{}", key.network, key.size); }
std::string by_training(const GridKey& key) { return fmt::format("{}|{}", key.network, key.epochs); }
std::string by_data(const GridKey& key) { return fmt::format("{}|{}", key.size, key.epochs); }

bool of_bias(const Datum& d) { return d.key->mutation.find("bias") != std::string::npos; }

/// The thesis shows five rounds without training and ten with it.
void ask(const Part& part, std::vector<Answer>& answers) {
  const bool trained = part.trained;
  const int64_t shown = trained ? 10 : 5;
  auto in = [shown](const Datum& d) { return d.round <= shown; };
  auto question = [&](const std::string& name, const std::string& thesis, const auto& body) {
    Answer answer{name, thesis, part.published, trained, {}, {}, {}};
    Asked asked(part, answer);
    body(asked);
    answers.push_back(std::move(answer));
  };
  std::vector<std::string> rounds;
  for (int64_t round = 1; round <= (trained ? 12 : 5); ++round) rounds.push_back(fmt::format("round {}", round));
  const Pick round = [](const Datum& d) { return fmt::format("round {}", d.round); };
  const Pick early = [](const Datum& d) { return d.round <= 3 ? "in" : ""; };
  const Pick first = [](const Datum& d) { return d.round <= 4 ? "first" : d.round > 11 ? "late" : ""; };
  if (trained)
    question("RQ1: training between mutations",
             "median accuracy +1.75 % and loss −3 to −4 % in rounds 1 to 4, below the benchmark after round 11",
             [&](Asked& a) {
               a.boxes(rounds, round);
               a.above("median accuracy above the benchmark in rounds 1 to 4", first, "first", "", Of::kMedian);
               a.above("median loss below it in rounds 1 to 4", first, "first", "", Of::kMedian, true, 1, -1);
               a.above("median accuracy below it after round 11", first, "late", "", Of::kMedian, false, 1, -1);
             });
  else
    question("RQ2: mutation without training",
             "median about 1; extremes grow over rounds 1 to 3, to +25 and −17 % accuracy, −45 and +50 % loss",
             [&](Asked& a) {
               a.boxes(rounds, round);
               a.near("median accuracy within 1 % of the network before", early, 0.01);
               a.near("median loss within 1 %", early, 0.01, true);
               a.above("extremes are wider in round 3 than in round 1", round, "round 3", "round 1", Of::kSpread);
               a.above("each network has a trial that reaches +25 % accuracy", early, "in", "", Of::kMost, false, 1.25);
             });
  question("RQ3: length of pre-training", "one epoch leaves larger gains and larger losses than six", [&](Asked& a) {
    const Pick label = [&](const Datum& d) { return !in(d) ? "" : d.key->epochs == 1 ? "1 epoch" : "6 epochs"; };
    a.boxes({"1 epoch", "6 epochs"}, label);
    a.block = by_network;
    a.above("larger gains after one epoch", label, "1 epoch", "6 epochs", Of::kMost);
    a.above("wider extremes after one epoch", label, "1 epoch", "6 epochs", Of::kSpread);
    a.above("lower losses after one epoch", label, "1 epoch", "6 epochs", Of::kLeast, true, 1, -1);
  });
  question("RQ4: size of the training data",
           trained ? "three quarters above 1 with all data, half of them with a quarter"
                   : "full and half alike, a quarter worse",
           [&](Asked& a) {
             const Pick label = [&](const Datum& d) { return in(d) ? d.key->size : ""; };
             a.boxes(kSizes, label);
             a.block = by_training;
             a.above("median accuracy with all data above that with a quarter", label, "full", "quarter", Of::kMedian);
             a.above("median accuracy with half above that with a quarter", label, "half", "quarter", Of::kMedian);
             a.above("median loss with all data below that with a quarter", label, "quarter", "full", Of::kMedian,
                     true);
           });
  question("RQ5: measures", trained ? "only Tarantula differs: best" : "Tarantula is best, then Ochiai, D*, random",
           [&](Asked& a) {
             const Pick label = [&](const Datum& d) { return in(d) ? d.key->measure : ""; };
             a.boxes(kMeasures, label);
             for (size_t i = 1; i < kMeasures.size(); ++i)
               a.above(kMeasures[i - 1] + " has the higher median accuracy than " + kMeasures[i], label,
                       kMeasures[i - 1], kMeasures[i], Of::kMedian);
             a.above("tarantula has the higher median accuracy than random", label, "tarantula", "random", Of::kMedian);
             a.above("tarantula has larger gains than random", label, "tarantula", "random", Of::kMost);
             a.above("tarantula has the lower median loss than random", label, "random", "tarantula", Of::kMedian,
                     true);
           });
  question("RQ6: networks", "CNN1 gains most, CNN2 worsens the loss, DNNs stay at 1", [&](Asked& a) {
    const Pick label = [&](const Datum& d) { return in(d) ? d.key->network : ""; };
    a.boxes({"dnn1", "dnn2", "cnn1", "cnn2"}, label);
    a.block = by_data;
    for (const char* other : {"dnn1", "dnn2", "cnn2"})
      a.above(fmt::format("cnn1 gains more than {}", other), label, "cnn1", other, Of::kMost);
    a.above("median loss of cnn2 is above 1", label, "cnn2", "", Of::kMedian, true);
  });
  question("RQ7: offsets", "the same median, a larger deviation with offsets", [&](Asked& a) {
    const Pick label = [&](const Datum& d) { return !in(d) ? "" : d.rule->offsets ? "offset" : "no offset"; };
    a.boxes({"no offset", "offset"}, label);
    a.above("median accuracy is higher with offsets", label, "offset", "no offset", Of::kMedian);
    a.above("extremes of accuracy are wider with offsets", label, "offset", "no offset", Of::kSpread);
    a.above("extremes of the loss are wider with offsets", label, "offset", "no offset", Of::kSpread, true);
  });
  question(
      "RQ8: when to stop",
      trained ? "no difference" : "accuracy, and accuracy together with loss, do best; the loss worse even for loss",
      [&](Asked& a) {
        const Pick label = [&](const Datum& d) { return in(d) ? d.rule->when : ""; };
        a.boxes({"loss", "accuracy", "both", "either"}, label);
        for (const char* one : {"accuracy", "both"})
          for (const char* other : {"loss", "either"})
            a.above(fmt::format("{} gains more than {}", one, other), label, one, other, Of::kMost);
        a.above("loss as the rule has the higher median loss than accuracy", label, "loss", "accuracy", Of::kMedian,
                true);
      });
  question("RQ9: mutation functions and values",
           "functions of weights gain more than those of biases, which stay at 1; values make no difference",
           [&](Asked& a) {
             const Pick side = [&](const Datum& d) { return !in(d) ? "" : of_bias(d) ? "bias" : "weights"; };
             const Pick named = [&](const Datum& d) {
               return in(d) ? fmt::format("{} {:g}", d.key->mutation, d.key->value) : "";
             };
             std::set<std::string> names;
             for (const GridKey& key : part.keys) names.insert(fmt::format("{} {:g}", key.mutation, key.value));
             a.boxes({"weights", "bias"}, side);
             a.boxes({names.begin(), names.end()}, named);
             a.above("weights gain more than biases", side, "weights", "bias", Of::kMost);
             a.above("median accuracy of weights above that of biases", side, "weights", "bias", Of::kMedian);
             a.above("setting weights to 1 and to −1 differ in median accuracy", named, "set-weights 1",
                     "set-weights -1", Of::kMedian);
             a.still(
                 "scaling by 1 changes nothing",
                 [&](const Datum& d) {
                   return in(d) && d.key->mutation == "scale-weights" && d.key->value == 1 ? "in" : "";
                 },
                 1e-6);
             if (part.published && !trained)
               a.still(
                   "weight functions on dnn1 change nothing: the listing changes what leaves pixels of the top row",
                   [&](const Datum& d) { return in(d) && !of_bias(d) && d.key->network == "dnn1" ? "in" : ""; }, 1e-3);
           });
}

}  // namespace

std::vector<Answer> answer_questions(const Store& store) {
  std::vector<Answer> answers;
  for (bool published : {true, false})
    for (bool trained : {false, true})
      if (const Part part = part_of(store, published, trained); !part.keys.empty()) ask(part, answers);
  return answers;
}

std::vector<BaseRow> base_rows(const Store& store) {
  struct Printed {
    const char* network;
    int epochs;
    double accuracy[3], loss[3];  ///< full, half, quarter
  };
  constexpr Printed kTable[] = {{"dnn1", 1, {82.84, 81.49, 78.65}, {.4911, .5346, .6200}},
                                {"dnn1", 6, {84.23, 83.76, 83.57}, {.4442, .4448, .4694}},
                                {"dnn2", 1, {80.46, 79.20, 75.97}, {.5405, .5790, .6621}},
                                {"dnn2", 6, {83.52, 83.04, 82.74}, {.4423, .4679, .4888}},
                                {"cnn1", 1, {74.34, 77.31, 42.62}, {.7288, .6683, 1.4763}},
                                {"cnn1", 6, {83.69, 82.14, 61.06}, {.4844, .4735, .9561}},
                                {"cnn2", 1, {70.49, 54.52, 63.20}, {.8013, 1.1168, 1.0031}},
                                {"cnn2", 6, {78.43, 77.37, 74.56}, {.6028, .5929, .6574}}};
  std::vector<BaseRow> rows;
  for (const Printed& printed : kTable)
    for (size_t size = 0; size < kSizes.size(); ++size) {
      BaseRow row{printed.network, printed.epochs, kSizes[size], NAN, NAN, printed.accuracy[size], printed.loss[size]};
      const std::string name = fmt::format("base|{}|{}|{}", row.network, row.size, row.epochs);
      if (const auto text = store.find(name)) {
        const Json json = trial_document(name, *text).json();
        if (json.is_object())
          row.accuracy = 100 * number(json.value("accuracy", Json())), row.loss = number(json.value("loss", Json()));
      }
      rows.push_back(row);
    }
  return rows;
}

}  // namespace netmend::studies
