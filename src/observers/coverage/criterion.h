// A criterion says what a set of inputs should try; a tally is how much of it some inputs have tried. Tallies of parts
// of the data merge into the tally of the whole. Criteria live together in one observer (criteria.h), so that the
// values of units are read once for all of them.
#pragma once

#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "observers/coverage/units.h"

namespace netmend::observers {

class Tally {
 public:
  virtual ~Tally() = default;
  virtual void add(const UnitBatch& batch) = 0;
  /// `later` is of the same criterion and stays as it is.
  virtual void merge(const Tally& later) = 0;
  virtual void save(std::ostream& out) const = 0;
  /// Throws InputError for what save() did not write.
  virtual void load(std::istream& in) = 0;
};

/// A setting of a criterion, a number or a word.
struct Parameter {
  std::string name;
  double number = 0;
  std::string word;  ///< counts when it is not empty
};

/// How much was tried.
struct Figure {
  std::string name;
  std::vector<Parameter> parameters;
  double covered = 0;
  double total = -1;  ///< below 0: there is no end to it, and the value is not a share
  double value = 0;
  struct Part {
    std::string layer;
    double covered = 0, total = 0;
  };
  std::vector<Part> layers;        ///< empty where it makes no sense by layer
  std::vector<std::string> notes;  ///< what was left out
};

/// The goals that inputs reach, one input after the other.
struct Reached {
  std::vector<int64_t> goals;
  std::vector<size_t> ends;  ///< of each input's goals
  void end_input() { ends.push_back(goals.size()); }
  void clear() { goals.clear(), ends.clear(); }
};

/// A class names the type of the tallies that fresh() gives `OwnTally` where others look into them.
class Criterion {
 public:
  virtual ~Criterion() = default;
  /// As the literature calls it: KMNC.
  virtual std::string name() const = 0;
  virtual std::unique_ptr<Tally> fresh() const = 0;
  virtual Figure figure(const Tally& tally) const = 0;
  /// See stream::Observer.
  virtual bool merges_exactly() const { return true; }
  /// Most bytes that a tally of so many inputs takes.
  virtual double bytes(int64_t inputs) const = 0;
  /// Which goals each input reaches, so that inputs can be chosen that reach as many as all. Returns how many numbers
  /// goals have, from 0 on; nothing where the criterion cannot be told input by input or has too many.
  virtual std::optional<int64_t> reach_by_input(const UnitBatch&, Reached&) const { return {}; }
  /// Units that reached none of their goals; empty where goals are not those of units.
  virtual std::vector<int64_t> uncovered_units(const Tally&) const { return {}; }
};

/// Whose behaviour is asked for where published programs differ from what they publish.
enum class Published { kCorrected, kDeepImportance, kSadl, kNlc, kDnnTip, kDeepGini };
/// deepimportance, sadl, nlc, dnn-tip, deepgini; "" is the corrected form. Throws InputError with the nearest.
Published parse_published(const std::string& name);

}  // namespace netmend::observers
