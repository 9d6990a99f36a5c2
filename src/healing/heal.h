// Puts a training right: changes that answer what the doctor found, each tried in a training of its own and kept when
// the problem is gone and held-out data is predicted better. No tensors.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "diagnosis/diagnose.h"
#include "healing/settings.h"

namespace netmend::healing {

/// A training that can be run again with other settings.
class Training {
 public:
  virtual ~Training() = default;
  virtual const Knobs& knobs() const = 0;
  /// Trains with these settings and leaves the record in `folder`, which is made. Returns what it cost, in the unit
  /// below. Throws InputError when it cannot be run; a training that fails is recorded as such.
  virtual double run(const Settings& settings, const std::string& folder) = 0;
  /// `epochs over the inputs`, or `s`.
  virtual std::string cost_unit() const = 0;
};

/// How well held-out data is predicted at the end; NaN where that was not recorded.
struct HeldOut {
  double accuracy = NAN, loss = NAN;
  std::string loss_name;
  /// Accuracy where there is any, and where it is equal to half a point the loss.
  bool better_than(const HeldOut& other) const;
};

struct Attempt {
  Settings settings;
  std::string problem, source, changes;  ///< the kind that is answered, who says so, what was changed
  diagnosis::Diagnosis diagnosis;
  HeldOut held_out;
  double cost = 0, seconds = 0;
  bool gone = false, better = false, kept = false;
  std::string folder, failure;
};

struct HealRequest {
  int64_t tries = 12;
  double cost = INFINITY;  ///< no attempt begins once so much was spent
  std::string folder;      ///< attempts lie in `try-01` …
  diagnosis::Thresholds thresholds;
  uint64_t seed = 42;
  /// Asked before each attempt; false leaves it out. May be empty.
  std::function<bool(const std::string& problem, const std::string& changes, const std::string& source)> ask;
  std::function<void(const Attempt& attempt)> told;  ///< may be empty
};

struct Healing {
  Attempt before;
  std::vector<Attempt> tries;
  int best = -1;        ///< index into `tries` of what was kept last
  bool healed = false;  ///< nothing above a note is left of what was found, and held-out data is predicted better
  double cost = 0;      ///< of all tries
  std::vector<std::string> left;  ///< ids of findings above a note that are left
  const Attempt& result() const { return best >= 0 ? tries[size_t(best)] : before; }
};

/// `record` is that of the training with its current settings.
Healing heal(Training& training, const records::Record& record, const HealRequest& request);
/// Settings drawn at random from the same choices until the cost is spent; judged in the same way.
Healing random_search(Training& training, const records::Record& record, const HealRequest& request);

/// For people: `91.3 %` or `loss 0.21`; ids with commas, or `none`; a row for each try.
std::string held_out_text(const Json& held_out);
std::string ids_text(const Json& ids);
std::vector<std::vector<std::string>> try_rows(const Json& healing);
Json healing_json(const Healing& healing, const std::string& cost_unit);

}  // namespace netmend::healing
