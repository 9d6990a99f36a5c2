// Results of trials, kept so that a study can be stopped at any moment and goes on where it was. A trial is a pure
// function of its key; a result is written once, whole, or not at all. A store is a SQLite file, which one process
// works on, or a PostgreSQL database, where any number of processes on any machine share the trials out.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace netmend::trials {

class Store {
 public:
  /// `place`: a file, made when it is not there, or postgresql://…. `study` is its name, and after the first comma what
  /// it was asked. Throws InputError: the place holds another study or version, is no store, is damaged, cannot be
  /// reached, or is a file that another process works on or that lies on a network file system.
  /// `lease`: seconds after which the trials of a process of which the database has heard nothing are given to others.
  Store(const std::string& place, const std::string& study, int version, double lease = kLease);
  ~Store();
  Store(Store&&) noexcept;
  static constexpr double kLease = 60;

  std::optional<std::string> find(const std::string& key) const;
  /// Durable when it returns, in a database; a file loses the last ones in a power cut. In a database the first
  /// result of a trial stays.
  void put(const std::string& key, const std::string& result);
  /// By key.
  std::vector<std::pair<std::string, std::string>> all() const;
  int64_t count() const;

  /// The result of a trial that is run here unless it is there, or another process has it: then it is waited for.
  std::string once(const std::string& key, const std::function<std::string()>& run);

  /// Whether other processes may work on it at the same time; what follows is for those stores alone. Any thread may
  /// call any of it.
  bool shared() const;
  /// Names trials, under the name of the part of the study that they belong to.
  void plan(const std::string& part, const std::vector<std::string>& keys);
  /// Up to `most` trials of the part that nobody has, in no order: they are this process's until they are finished,
  /// given back, or nothing was heard of it for so long that others took them.
  std::vector<std::string> lease(const std::string& part, int64_t most);
  /// Trials with their results, durable when it returns. False for each whose lease was lost: its result is somebody
  /// else's to give.
  std::vector<bool> finish(const std::vector<std::pair<std::string, std::string>>& done);
  /// All that this process holds.
  void give_back();
  /// Trials of the part without a result, whoever holds them. Takes the leases of the dead back, now and then.
  int64_t open(const std::string& part);
  /// How many other processes that are alive came before this one: who comes later begins elsewhere.
  int64_t before() const;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

/// Whether a place names a database. Throws InputError when it looks like one of another kind.
bool is_database(const std::string& place);
/// Throws InputError when an address of a database is none, or a password stands in it. Connects to nothing.
void check_place(const std::string& place);

/// The result of a trial, which anybody may have written. Throws InputError that names the trial.
JsonDocument trial_document(const std::string& key, const std::string& result);

}  // namespace netmend::trials
