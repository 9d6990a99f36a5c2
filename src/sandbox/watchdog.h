// A process that outlives the one that started it: it ends programs and removes folders that are left when that one is
// gone.
#pragma once

#include <mutex>
#include <string>

namespace netmend::sandbox {

class Watchdog {
 public:
  /// Forks: call it before threads are started.
  Watchdog();
  /// What is watched then is ended and removed, and the process is gone.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;

  /// Processes are killed, folders removed with all that is in them, `group` folders (of cgroups) removed when empty.
  void watch_process(int pid) { tell('+', std::to_string(pid)); }
  void forget_process(int pid) { tell('-', std::to_string(pid)); }
  void watch_folder(const std::string& path) { tell('f', path); }
  /// Processes with this in their environment.
  void watch_mark(const std::string& mark) { tell('m', mark); }
  void watch_group(const std::string& path) { tell('g', path); }
  void forget_group(const std::string& path) { tell('h', path); }

 private:
  void tell(char what, const std::string& text);
  std::mutex lock_;
  int pipe_ = -1;
  int child_ = -1;
};

}  // namespace netmend::sandbox
