// Observer states as files: a header that says of which model, data and observer they are, the pieces, and a hash of
// it all, so that a changed count is no result.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "stream/pass.h"

namespace netmend::stream {

struct StateFile {
  std::string observer;     ///< Observer::name
  int version = 0;          ///< Observer::version
  std::string description;  ///< JSON that rebuilds the observer and prints the result
  std::string subject;      ///< checksum of model and data: states of different ones do not merge
  int64_t chunks = 0;       ///< of the whole data set
  int64_t bytes = 0;        ///< of the file that was read
  Collected collected;
};

void write_state(const std::string& path, const StateFile& file, const Observer& observer);
/// Reads everything but the states, which need the observer that the description names.
StateFile read_state_header(const std::string& path, FileRole role = FileRole::kInput);
/// Reads the states too. Throws InputError when the file is of another observer or version.
StateFile read_state(const std::string& path, const Observer& observer, FileRole role = FileRole::kInput);
/// All pieces of the files in order. Throws InputError: parts of different subjects, a part missing or given twice.
Collected join_states(std::vector<StateFile> files, const std::vector<std::string>& paths);

}  // namespace netmend::stream
