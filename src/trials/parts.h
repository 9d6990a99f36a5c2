// The work of a study: parts, each with trials that need the same preparation, run by this process alone or shared out
// with others that work on the same database.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trials/store.h"

namespace netmend::trials {

/// A trial by its key; its result. Any of the threads calls it.
using RunTrial = std::function<std::string(const std::string& key)>;

struct Part {
  std::string name;
  std::vector<std::string> keys;
  /// What its trials have in common is made when the first of them is run, and dropped after the last.
  std::function<RunTrial()> prepare;
};

struct PartsOptions {
  int threads = 1;                                                              ///< trials at a time
  std::function<void(int)> enter;                                               ///< first on each thread; may be empty
  std::function<void(const std::string& key, const std::string& result)> told;  ///< of each that was run here, in turn
};

/// Runs what the store lacks. With a file: in the order of parts and keys. With a database: whatever no other process
/// has, beginning elsewhere than those that came before, until all parts are finished, by whomever; what a dead process
/// held is run again. Throws Interrupted; what was held is given back then.
void run_parts(Store& store, const std::vector<Part>& parts, const PartsOptions& options);

/// Trials that are run as one computation, which hands each result over as soon as it is there, from any thread.
using HandOver = std::function<void(const std::string& key, std::string result)>;
struct JoinedPart {
  std::string name;
  std::vector<std::string> keys;
  std::function<void(const std::vector<std::string>& missing, const HandOver& done)> run;
};
/// The same for parts whose trials are run together: all that the store lacks of a part goes to one call, and each part
/// has a thread of its own, so that they must share the cores out among themselves. With a database a process takes
/// whole parts.
void run_joined(Store& store, const std::vector<JoinedPart>& parts, const PartsOptions& options);

}  // namespace netmend::trials
