#include "findings/merge.h"

#include <algorithm>
#include <string>

namespace netmend::findings {
namespace {

/// `conv1` of `conv1/7`.
std::string layer_of(const std::string& unit) { return unit.substr(0, unit.rfind('/')); }

/// `cat` is one of `cat-dog`; names may hold dashes themselves.
bool names(const std::string& pair, const std::string& one) {
  return pair.rfind(one + "-", 0) == 0 ||
         (pair.size() > one.size() && pair.compare(pair.size() - one.size() - 1, std::string::npos, "-" + one) == 0);
}

/// Both classes of `a-as-b` are those of `a-b`.
bool same_pair(const std::string& pair, const std::string& cluster) {
  const size_t at = cluster.find("-as-");
  if (at == std::string::npos) return false;
  const std::string a = cluster.substr(0, at), b = cluster.substr(at + 4);
  return pair == a + "-" + b || pair == b + "-" + a;
}

struct Relation {
  const char *cause, *effect;
  bool (*holds)(const Finding& cause, const Finding& effect);
};

bool always(const Finding&, const Finding&) { return true; }
bool same_layer(const Finding& cause, const Finding& effect) { return layer_of(cause.where) == effect.where; }
bool class_of_pair(const Finding& cause, const Finding& effect) { return names(cause.where, effect.where); }
bool pair_of_cluster(const Finding& cause, const Finding& effect) { return same_pair(cause.where, effect.where); }
/// What a repair of an earlier part gains, later ones can make up for, the final biases above all: what gains nearly as
/// much and leaves the lower loss explains more.
bool gains_more(const Finding& cause, const Finding& effect) {
  if (cause.effect.gain >= effect.effect.gain) return true;
  return cause.effect.gain >= 0.8 * effect.effect.gain && cause.numbers.contains("loss") &&
         effect.numbers.contains("loss") && cause.numbers["loss"] <= effect.numbers["loss"];
}
/// Predictions follow how frequent classes were in training: what the final biases gain nearly as well as the repair.
bool by_biases(const Finding& cause, const Finding& effect) {
  return cause.level > Level::kNote && effect.numbers.value("biases_gain", 0.0) >= 0.7 * effect.effect.gain;
}
bool same_where(const Finding& cause, const Finding& effect) { return cause.where == effect.where; }
/// Most of a pair's confusions are inputs whose labels look wrong.
bool labels_of_pair(const Finding& cause, const Finding& effect) {
  if (cause.level == Level::kNote || !cause.numbers.contains("pairs") || !cause.numbers["pairs"].contains(effect.where))
    return false;
  const auto doubted = cause.numbers["pairs"][effect.where].get<int64_t>();
  return 2 * doubted >= effect.numbers.value("a_as_b", int64_t{0}) + effect.numbers.value("b_as_a", int64_t{0});
}
/// Most of what a class misses are inputs that only carry its label.
bool labels_of_class(const Finding& cause, const Finding& effect) {
  if (cause.level == Level::kNote || !cause.numbers.contains("given") || !cause.numbers["given"].contains(effect.where))
    return false;
  const double missed = effect.numbers.value("samples", 0.0) * (1 - effect.numbers.value("recall", 1.0));
  return 2 * cause.numbers["given"][effect.where].get<double>() >= missed;
}
bool serious(const Finding& cause, const Finding&) { return cause.level >= Level::kSerious; }
bool above_a_note(const Finding& cause, const Finding&) { return cause.level > Level::kNote; }
/// The suspicious unit is one of those that the cause lists.
bool lists_unit(const Finding& cause, const Finding& effect) {
  if (layer_of(effect.where) != cause.where || !cause.numbers.contains("units")) return false;
  const auto& units = cause.numbers["units"];
  return std::find(units.begin(), units.end(), effect.where) != units.end();
}
/// No more predictions are NaN or Inf than inputs are.
bool as_many(const Finding& cause, const Finding& effect) {
  return cause.where == "test" &&
         effect.numbers.value("inputs", int64_t{1}) <= cause.numbers.value("inputs", int64_t{0});
}
/// Most labels in doubt are of the class that is never predicted.
bool doubts_class(const Finding& cause, const Finding& effect) {
  if (!effect.numbers.contains("given")) return false;
  double all = 0, own = 0;
  for (const auto& [name, count] : effect.numbers["given"].items())
    all += count.get<double>(), own += name == cause.where ? count.get<double>() : 0;
  return 2 * own >= all;
}
/// Most of what a repair gains is lost on tests alone: training data, which does not differ, is predicted well.
bool only_on_tests(const Finding& cause, const Finding& effect) {
  return cause.level >= Level::kSerious && cause.numbers.value("gap", 0.0) >= 0.5 * effect.effect.gain;
}
/// Tests that differ from training data, which is predicted much better: what fails fails for that.
bool fails_on_tests(const Finding& cause, const Finding&) {
  return cause.level >= Level::kSerious && cause.numbers.value("gap", 0.0) >= 0.1;
}
/// A trial repair says what it costs.
bool repaired(const Finding& cause, const Finding&) { return cause.numbers.contains("fixed"); }
/// Units drawn at random do not repeat each other: a third of a layer that does was not left untrained.
bool repaired_or_many(const Finding& cause, const Finding& effect) {
  return repaired(cause, effect) || cause.value >= 1.0 / 3;
}
bool class_is_missed(const Finding& cause, const Finding& effect) { return names(effect.where, cause.where); }
bool cluster_of_class(const Finding& cause, const Finding& effect) {
  return effect.where.rfind(cause.where + "-as-", 0) == 0;
}
/// Without the inputs of that group there is no drift.
bool confined(const Finding& cause, const Finding& effect) {
  return effect.numbers.value("group", std::string()) == cause.where;
}
/// Failures whose prediction is no class at all.
bool of_no_class(const Finding&, const Finding& effect) { return effect.where.ends_with("-as-?"); }
/// Training inputs among the tests repeat each other; more repeated tests than those have another cause.
bool of_tests(const Finding& cause, const Finding& effect) {
  return effect.where == "test" && !(effect.value > cause.value);
}

/// What explains what. A cause takes its effects in, in this order.
constexpr Relation kRelations[] = {
    {"non-finite-predictions", "failure-cluster", of_no_class},
    {"suspicious-unit", "no-better-than-baseline", always},
    {"dead-units", "no-better-than-baseline", repaired},
    {"duplicate-units", "no-better-than-baseline", repaired_or_many},
    {"no-better-than-baseline", "damaged-layer", always},
    {"non-finite-weights", "non-finite-predictions", always},
    {"non-finite-weights", "no-better-than-baseline", always},
    {"missing-values", "non-finite-predictions", as_many},
    {"duplicate-units", "suspicious-unit", lists_unit},
    {"dead-units", "suspicious-unit", lists_unit},
    {"suspicious-unit", "extreme-weights", same_layer},
    {"suspicious-unit", "zero-units", same_layer},
    {"suspicious-unit", "duplicate-units", same_layer},
    {"suspicious-unit", "dead-units", same_layer},
    {"suspicious-unit", "exploding-activations", always},
    {"suspicious-unit", "shifted-biases", gains_more},
    {"damaged-layer", "extreme-weights", same_where},
    {"damaged-layer", "duplicate-units", same_where},
    {"damaged-layer", "dead-units", same_where},
    {"damaged-layer", "shifted-biases", gains_more},
    {"suspicious-unit", "over-confident", serious},
    {"damaged-layer", "over-confident", serious},
    {"never-predicted", "mislabelled", doubts_class},
    {"mislabelled", "confused-classes", labels_of_pair},
    {"mislabelled", "weak-class", labels_of_class},
    {"mislabelled", "class-shift", serious},
    {"confused-classes", "failure-cluster", pair_of_cluster},
    {"confused-classes", "weak-class", class_of_pair},
    {"never-predicted", "weak-class", same_where},
    {"never-predicted", "confused-classes", class_is_missed},
    {"never-predicted", "failure-cluster", cluster_of_class},
    {"never-predicted", "misleading-metric", always},
    {"never-predicted", "shifted-biases", serious},
    {"never-predicted", "over-confident", serious},
    {"range-shift", "no-better-than-baseline", fails_on_tests},
    {"drift", "no-better-than-baseline", fails_on_tests},
    {"no-better-than-baseline", "failure-cluster", always},
    {"no-better-than-baseline", "shifted-biases", always},
    {"no-better-than-baseline", "confused-classes", always},
    {"no-better-than-baseline", "weak-class", always},
    {"no-better-than-baseline", "weak-slice", always},
    {"absent-class", "shifted-biases", serious},
    {"absent-class", "damaged-layer", serious},
    {"absent-class", "suspicious-unit", by_biases},
    {"absent-class", "class-shift", serious},
    {"class-shift", "suspicious-unit", by_biases},
    {"class-shift", "damaged-layer", by_biases},
    {"class-shift", "shifted-biases", above_a_note},
    {"split-leak", "duplicates", of_tests},
    {"group-gap", "weak-slice", same_where},
    {"group-gap", "drift", confined},
    {"group-gap", "range-shift", confined},
    {"weak-slice", "range-shift", confined},
    {"group-gap", "over-confident", serious},
    {"weak-slice", "drift", confined},
    {"range-shift", "drift", always},
    {"drift", "drift", always},
    {"range-shift", "over-fit", serious},
    {"range-shift", "suspicious-unit", only_on_tests},
    {"range-shift", "damaged-layer", only_on_tests},
    {"range-shift", "shifted-biases", only_on_tests},
    {"range-shift", "not-robust", serious},
    {"range-shift", "weak-slice", fails_on_tests},
    {"range-shift", "failure-cluster", fails_on_tests},
    {"range-shift", "weak-class", fails_on_tests},
    {"range-shift", "confused-classes", fails_on_tests},
    {"drift", "over-fit", serious},
    {"drift", "suspicious-unit", only_on_tests},
    {"drift", "damaged-layer", only_on_tests},
    {"drift", "shifted-biases", only_on_tests},
    {"drift", "not-robust", serious},
    {"drift", "weak-slice", fails_on_tests},
    {"drift", "failure-cluster", fails_on_tests},
    {"drift", "weak-class", fails_on_tests},
    {"drift", "confused-classes", fails_on_tests},
};

/// Damaged units are repaired together: as long as one of them stays as it is, the others are fitted to it.
void repair_together(std::vector<Finding>& found) {
  const auto damaged = [](const Finding& one) { return one.kind == "suspicious-unit" && one.level > Level::kNote; };
  std::string all;
  for (const Finding& one : found)
    if (damaged(one)) all += (all.empty() ? "" : ",") + one.where;
  if (all.find(',') == all.npos) return;
  for (Finding& one : found) {
    if (!damaged(one)) continue;
    const std::string own = " --unit " + Shell::of("{}", one.where).text();
    for (Shell& next : one.next) {
      std::string line = next.text();
      const size_t at = line.find(own + " ");
      if (at == line.npos) continue;
      line.replace(at, own.size(), " --unit " + Shell::of("{}", all).text());
      if (auto command = ShellPlace::read(line)) next = *std::move(command);
    }
  }
}

}  // namespace

std::vector<Finding> merge_related(std::vector<Finding> found) {
  for (const Relation& relation : kRelations)
    for (Finding& cause : found) {
      if (cause.kind != relation.cause) continue;
      for (Finding& effect : found) {
        if (effect.kind != relation.effect || effect.kind.empty() || &effect == &cause ||
            !relation.holds(cause, effect))
          continue;
        cause.related.push_back(effect.id());
        cause.related.insert(cause.related.end(), effect.related.begin(), effect.related.end());
        cause.evidence += " " + effect.title + " " + effect.evidence;
        cause.level = std::max(cause.level, effect.level);
        cause.effect.gain = std::max(cause.effect.gain, effect.effect.gain);
        effect.kind.clear();  // taken in
      }
    }
  std::erase_if(found, [](const Finding& finding) { return finding.kind.empty(); });
  repair_together(found);
  return found;
}

}  // namespace netmend::findings
