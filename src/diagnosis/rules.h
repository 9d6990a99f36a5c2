// The rules, a row each: which paper, what is measured, from which value on it speaks, what that points to. A rule is a
// function of a run; thresholds can be changed by a TOML file.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnosis/run.h"
#include "findings/finding.h"

namespace netmend::diagnosis {

/// What a rule says. It becomes a finding; several alarms of one kind become one.
struct Alarm {
  std::string rule;  ///< set by the engine: `exact/zero-grad`
  std::string kind, where, what;
  findings::Level level = findings::Level::kMinor;
  findings::Certainty certainty = findings::Certainty::kPossible;
  double likelihood = 0.5;  ///< for the order within a level
  std::string brief, evidence, source;
  findings::Json numbers = findings::Json::object();
};

class Thresholds {
 public:
  /// Published values and our own, by name.
  Thresholds();
  /// Throws InputError for a name that no rule knows.
  void set(const std::string& name, double value);
  double operator[](const std::string& name) const;
  const std::map<std::string, double>& all() const { return values_; }

 private:
  std::map<std::string, double> values_;
};

struct Scope {
  const Run& run;
  const Thresholds& limit;
  std::vector<Alarm>& out;
};

struct Rule {
  std::string_view set, name, symptom, quantity, threshold;  ///< threshold: names in Thresholds, or `exact`
  std::string_view kind;                                     ///< what it points to
  std::string_view paper;
  void (*look)(const Scope& scope);
};

/// Exact checks first, then netmend's relative rules, then the published sets.
std::span<const Rule> rules();
/// The sets there are, in order: exact, netmend, autotrainer, deeplocalize …
std::vector<std::string> rule_sets();

// The parts of the table, a file each.
std::span<const Rule> exact_rules();
std::span<const Rule> output_rules();
std::span<const Rule> relative_rules();
std::span<const Rule> published_rules();

}  // namespace netmend::diagnosis
