// A criterion says what a set of inputs should try; a tally is how much of it some inputs have tried. Tallies of parts
// of the data merge into the tally of the whole. Criteria live together in one observer (criteria.h), so that the
// values of units are read once for all of them.
#pragma once

#include <iosfwd>
#include <memory>
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
};

/// Whose behaviour is asked for where published programs differ from what they publish.
enum class Published { kCorrected, kDeepImportance, kSadl, kNlc, kDnnTip, kDeepGini };
/// deepimportance, sadl, nlc, dnn-tip, deepgini; "" is the corrected form. Throws InputError with the nearest.
Published parse_published(const std::string& name);

}  // namespace netmend::observers
