#include "explain/rule.h"

#include <array>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace netmend::explain {
namespace {

struct Named {
  const char* name;
  Rule::Kind kind;
  double parameter;  ///< by default
  bool takes;        ///< a parameter
};
// The defaults of ε and α are those of DeepImportance's toolbox, that of γ is Captum's.
constexpr std::array<Named, 6> kRules = {{{"z", Rule::kZ, 0, false},
                                          {"epsilon", Rule::kEpsilon, 0.01, true},
                                          {"gamma", Rule::kGamma, 0.25, true},
                                          {"alpha-beta", Rule::kAlphaBeta, 3, true},
                                          {"flat", Rule::kFlat, 0, false},
                                          {"w2", Rule::kW2, 0, false}}};
constexpr const char* kPossible =
    "Rules are z, epsilon:0.01, gamma:0.25, alpha-beta:3, flat, w2 and composite; dense=…, conv=… and first=… choose "
    "one for a kind of layer.";

const Named& named(Rule::Kind kind) {
  for (const Named& row : kRules)
    if (row.kind == kind) return row;
  throw std::logic_error("a rule without a name");
}

Rule parse_rule(const std::string& text) {
  std::vector<std::string> parts = split(text, ':'), names{"composite"};
  for (const Named& row : kRules) {
    names.push_back(row.name);
    if (parts[0] != row.name) continue;
    Rule rule{row.kind, row.parameter};
    if (parts.size() == 1) return rule;
    if (!row.takes)
      throw InputError(fmt::format("--rule {}: {} takes no number", printable(text), row.name), kPossible);
    const double least = row.kind == Rule::kAlphaBeta ? 1 : 0;
    if (parts.size() > 2 || !parse_double(parts[1], rule.parameter) || !std::isfinite(rule.parameter) ||
        rule.parameter < least)
      throw InputError(fmt::format("--rule {}: expected a number of at least {}", printable(text), least), kPossible);
    return rule;
  }
  throw InputError(fmt::format("--rule {}: there is no such rule{}", printable(text), did_you_mean(parts[0], names)),
                   kPossible);
}

std::string text_of(const Rule& rule) {
  const Named& row = named(rule.kind);
  return row.takes ? fmt::format("{}:{:g}", row.name, rule.parameter) : row.name;
}

}  // namespace

bool parse_bias(const std::string& text) {
  const std::vector<std::string> names{"keep", "spread"};
  for (size_t i = 0; i < names.size(); ++i)
    if (text == names[i]) return i == 1;
  throw InputError(fmt::format("--bias {}: expected keep or spread{}", printable(text), did_you_mean(text, names)),
                   "keep: a bias keeps its share of relevance; spread: the inputs that it is added to get it.");
}

Rules parse_rules(const std::string& text) {
  if (text.empty()) return {};
  if (text == "composite") return parse_rules("dense=epsilon,conv=alpha-beta:1,first=flat");
  if (text.find('=') == std::string::npos) {
    Rule rule = parse_rule(text);
    return {rule, rule, rule};
  }
  Rules rules;
  bool first = false;
  for (const std::string& part : split(text, ',')) {
    size_t equals = part.find('=');
    if (equals == std::string::npos)
      throw InputError(fmt::format("--rule {}: `{}` does not name a kind of layer", printable(text), printable(part)),
                       kPossible);
    std::string kind = part.substr(0, equals);
    Rule rule = parse_rule(part.substr(equals + 1));
    const std::vector<std::string> kinds{"dense", "conv", "first"};
    if (kind == "dense")
      rules.dense = rule;
    else if (kind == "conv")
      rules.conv = rule;
    else if (kind == "first")
      rules.first = rule, first = true;
    else
      throw InputError(fmt::format("--rule {}: there is no kind of layer `{}`{}", printable(text), printable(kind),
                                   did_you_mean(kind, kinds)),
                       kPossible);
  }
  if (!first) rules.first = rules.conv == rules.dense ? rules.dense : Rule{};
  return rules;
}

std::string rules_text(const Rules& rules) {
  if (rules.dense == rules.conv && rules.conv == rules.first) return text_of(rules.dense);
  return fmt::format("dense={},conv={},first={}", text_of(rules.dense), text_of(rules.conv), text_of(rules.first));
}

}  // namespace netmend::explain
