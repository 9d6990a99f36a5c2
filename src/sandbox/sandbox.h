// Strangers' programs, run where they can do no harm: bubblewrap with namespaces of their own, no network, a read-only
// system, a private temporary folder, and limits on memory, processes, output and time. A watchdog process outlives the
// driver: when the driver dies, in whatever way, it ends what is running and removes the folder for files.
//
// Started by root, programs run as `nobody`: limits on processes do not bind root.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace netmend::sandbox {

/// Whether bubblewrap works here.
struct Support {
  bool works = false;
  std::string reason;  ///< why not: not installed, user namespaces forbidden, mounts refused
  std::string hint;    ///< what to try
};
Support probe();

struct Limits {
  double seconds = 600;               ///< of wall-clock time
  int64_t memory = int64_t(4) << 30;  ///< bytes of all its processes together
  int64_t processes = 256;
  int64_t output = int64_t(64) << 20;  ///< bytes that it may print before it is ended
  int64_t files = int64_t(1) << 30;    ///< bytes of its private folders, and of any one file
};

/// A file that a program sees instead of another; the other stays as it is.
struct Replacement {
  std::string path, by;
};

struct Command {
  std::vector<std::string> words;     ///< program and arguments
  std::string folder;                 ///< where it runs. What stands there can be read; new files vanish with it
  std::vector<std::string> readable;  ///< files and folders that it needs besides, shown where they stand
  std::vector<std::string> writable;  ///< folders that are empty and its own
  std::vector<std::string> left_out;  ///< what stands directly in `folder` and is not shown: it may write it anew
  std::map<std::string, std::string> environment;  ///< added to a small set: PATH, HOME, LANG, one thread
  std::vector<Replacement> replaced;
  bool report = false;  ///< NETMEND_REPORT_FD names a descriptor to write a report to
};

enum class Ending {
  kExited,      ///< by itself; see status
  kSignal,      ///< by a signal; see status
  kTimeout,     ///< ended by us: too long
  kMemory,      ///< ended by us or the kernel: too much memory
  kOutput,      ///< ended by us: printed too much
  kInterrupted  ///< Ctrl-C of our user
};
struct Outcome {
  Ending ending = Ending::kExited;
  int status = 0;  ///< exit status, or the signal
  double seconds = 0;
  int64_t peak = 0;            ///< bytes of memory, of all processes together
  std::string output, errors;  ///< beginnings and ends where there was more than a megabyte
  std::string report;
};

/// One for a whole study. Threads may run programs at the same time.
class Sandbox {
 public:
  /// `unsafe`: programs run without bubblewrap, with limits alone. Makes a folder for files and starts the watchdog:
  /// before any thread is started. Throws InputError with Support's words where bubblewrap does not work.
  explicit Sandbox(bool unsafe = false);
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;

  bool unsafe() const;
  /// A folder that programs can read; gone when this is.
  const std::string& folder() const;
  /// Throws InputError when the program cannot be started or read by whom it runs as.
  Outcome run(const Command& command, const Limits& limits);
  /// Throws InputError with what to do when the user that programs run as cannot read `path`.
  void require_readable(const std::string& path) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace netmend::sandbox
