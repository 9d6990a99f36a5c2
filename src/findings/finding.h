// A finding: the only way in which netmend says that something is wrong. Where, how bad, how certain, the evidence, and
// what to do next as commands that can be pasted. Terminal, JSON, page and exit status are views of findings.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/escape.h"
#include "base/json.h"

namespace netmend::findings {

using Json = nlohmann::ordered_json;

enum class Level { kNote, kMinor, kSerious, kBlocker };
enum class Certainty {
  kPossible,
  kLikely,     ///< tested on unseen data, or stable over resamples
  kConfirmed,  ///< counted
};
std::string level_name(Level level);
std::string certainty_name(Certainty certainty);
/// Throws InputError for anything else than blocker, serious, minor, note.
Level parse_level(const std::string& name);
/// Throws InputError for anything else than confirmed, likely, possible.
Certainty parse_certainty(const std::string& name);

/// An input that is shown as evidence.
struct Shown {
  std::string split;  ///< test or train
  int64_t sample = 0;
};

/// What a finding costs, as shares (0.01 is a point).
struct Effect {
  double gain = 0;   ///< expected gain in the user's metric if it were gone
  double local = 0;  ///< how far a class or slice lies behind the rest
};

struct Finding {
  std::string kind;   ///< a row of kinds()
  std::string where;  ///< made of names: `cat-dog`, `conv1/7`; may be empty
  Level level = Level::kNote;
  Certainty certainty = Certainty::kPossible;
  std::string title;     ///< one sentence
  std::string brief;     ///< the evidence in a few words, for one line
  std::string evidence;  ///< sentences with counts and intervals
  Effect effect;
  double value = 0;                  ///< how bad it is in its own measure, larger is worse; what `accept` remembers
  std::vector<Shell> next;           ///< commands
  std::vector<Shown> inputs;         ///< some that show it
  Json numbers = Json::object();     ///< what the evidence is made of
  std::vector<std::string> related;  ///< findings that were merged into this one

  std::string id() const { return where.empty() ? kind : kind + ":" + where; }
};

/// What fills a place of a pattern, `{a}`, in a title and in a command: a text, which is a word of the command, or
/// words of a command.
struct Word {
  Word() = default;
  Word(std::string words)
      : text(std::move(words)), command(Shell::of("{}", text)) {}       // NOLINT(google-explicit-constructor)
  Word(const char* words) : Word(std::string(words)) {}                 // NOLINT(google-explicit-constructor)
  Word(Shell words) : text(words.text()), command(std::move(words)) {}  // NOLINT(google-explicit-constructor)
  std::string text;
  Shell command;
};
using Words = std::map<std::string, Word>;

/// A finding of a kind of the table: title and next commands are filled from its patterns, the level follows from its
/// rule. `words` needs `case`: the model and the data as they are typed behind a command, a Shell that is empty where
/// netmend.toml names them.
Finding make(const std::string& kind, const std::string& where, const Words& words, const Effect& effect,
             Certainty certainty, std::string brief, std::string evidence);

/// Related ones are merged (the two directions of a confusion; a slice that is a class), then the most gain first:
/// level, then expected gain × certainty.
std::vector<Finding> rank(std::vector<Finding> found);

Json to_json(const Finding& finding);
/// Throws InputError that names the place when a field is missing or of another type.
Finding finding_from_json(const JsonView& json);

}  // namespace netmend::findings
