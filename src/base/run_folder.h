// The folder a command leaves behind: run.json with all that is needed to repeat it, and its tables.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace netmend {

/// Makes a folder and keeps other processes out of it for as long as the result lives; within a process, whoever works
/// in it shares that. A folder that was made for it and stays empty is removed. Throws InputError when it is in use.
std::shared_ptr<void> claim_folder(const std::string& folder);

class RunFolder {
 public:
  /// Makes `out`, or netmend-runs/<time>-<command>/ when it is empty, and points netmend-runs/latest to the latter.
  RunFolder(const std::string& out, const std::string& command, std::vector<std::string> arguments);

  /// After Ctrl-C, where an earlier run left its files: a folder `partial` inside. Whole files are only replaced by
  /// whole ones. Decided with the first file, so that all files of a run lie together.
  std::string path() const;
  /// A file inside, to be written. Throws InputError when it was read as an input.
  std::string file(const std::string& name) const;
  /// An input file by its checksum, or any other fact worth keeping.
  void note_file(const std::string& file);
  void note(const std::string& key, const std::string& value) { facts_[key] = value; }
  /// Anything else that belongs into run.json.
  void add(const std::string& key, nlohmann::ordered_json value);
  /// Writes run.json. Call once, at the end.
  void finish(uint64_t seed, double seconds, int exit_status);

 private:
  std::string path_, command_, started_;
  bool used_ = false;          ///< by an earlier run
  mutable std::string place_;  ///< of the files, once there is one
  std::vector<std::string> arguments_;
  std::map<std::string, std::string> files_, facts_;
  std::shared_ptr<nlohmann::ordered_json> more_;
  std::shared_ptr<void> claimed_;  ///< where somebody else may have named the folder as well
};

}  // namespace netmend
