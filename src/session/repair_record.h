// What a repaired model carries about the search that made it, so that it is not judged on inputs that the search saw.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace netmend::dataset {
class Dataset;
}
namespace netmend::model {
struct Graph;
}

namespace netmend::session {

/// A hash of what an input looks like, whatever the spec and the preprocessing.
uint32_t content_hash(const dataset::Dataset& data, int64_t sample);

struct RepairRecord {
  std::string parent;  ///< checksum of the model that was repaired
  std::string method, data;
  std::vector<std::string> units;
  int64_t edits = 0;
  uint64_t seed = 0;
  std::vector<uint32_t> inputs;  ///< hashes of what search and selection saw

  /// As `netmend.repair` of the model's metadata. Of many inputs an even choice of hashes is kept.
  void write_to(model::Graph& graph) const;
};

/// A sentence when the model was repaired on inputs that are in this data; "" otherwise.
std::string seen_in_search(const model::Graph& graph, const dataset::Dataset& data);
/// Whether a note is that sentence about all tests: commands that judge a part of them say their own.
bool tells_of_search(const std::string& note);

}  // namespace netmend::session
