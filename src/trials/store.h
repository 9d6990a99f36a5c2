// Results of trials, kept so that a study can be stopped at any moment and goes on where it was. A trial is a pure
// function of its key; a result is written once, whole, or not at all.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace netmend::trials {

class Store {
 public:
  /// Opens or makes a file. Throws InputError: it belongs to another study or version, is no store, is damaged, or
  /// another process works on it.
  Store(const std::string& path, const std::string& study, int version);
  ~Store();

  std::optional<std::string> find(const std::string& key) const;
  void put(const std::string& key, const std::string& result);
  /// By key.
  std::vector<std::pair<std::string, std::string>> all() const;
  int64_t count() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The result of a trial, which anybody may have written. Throws InputError that names the trial.
JsonDocument trial_document(const std::string& key, const std::string& result);

}  // namespace netmend::trials
