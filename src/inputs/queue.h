// The queue of a fuzzing run on disk: a record per round, appended and flushed, so that a process that is killed at any
// moment loses at most the round it was in. What was half-written is cut off when the file is opened again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/lock.h"

namespace netmend::inputs {

/// An input that a round kept.
struct QueueEntry {
  int64_t root = 0;       ///< the seed it descends from
  int64_t reference = 0;  ///< the entry that its changes are measured against
  int64_t fresh = 0;      ///< goals that it was the first to reach
  int64_t after = 0;      ///< what the network predicts
  bool failing = false;   ///< otherwise than to the seed; such inputs are not changed any further
  bool moved = false;     ///< an affine change is in its history
  std::vector<float> values;
};

struct QueueRound {
  std::vector<int64_t> picked;     ///< entries that were changed
  int64_t tried = 0, failing = 0;  ///< inputs made, and those of them that were predicted otherwise
  std::vector<QueueEntry> kept;
};

class QueueFile {
 public:
  /// Opens or makes the file; one process at a time. `about` identifies model, data, criteria, seed and settings: a
  /// queue of another run is refused with an InputError. Values of an entry are `width` numbers.
  QueueFile(const std::string& path, const std::string& about, int64_t width);
  ~QueueFile();
  QueueFile(const QueueFile&) = delete;

  /// What was found in it.
  const std::vector<QueueRound>& rounds() const { return rounds_; }
  /// Is on disk when it returns.
  void append(const QueueRound& round);

 private:
  int64_t load(const std::string& bytes, const std::string& about, int64_t width);
  [[noreturn]] void refuse_other(const std::string& bytes) const;
  std::string path_;
  Lock lock_;
  int file_ = -1;
  uint64_t chain_ = 0;  ///< hash of the last record
  std::vector<QueueRound> rounds_;
};

}  // namespace netmend::inputs
