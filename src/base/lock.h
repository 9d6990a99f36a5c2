// One process at a time: in a run folder, on a study, on a file that is read, changed and written again.
#pragma once

#include <memory>
#include <string>

namespace netmend {

/// Held until it is destroyed or the process ends, however it ends: the kernel takes it back, so there are no stale
/// ones. A file beside what is locked says who holds it and since when; it is removed afterwards.
class Lock {
 public:
  /// `what` is locked by the file `path`. Waits up to `patience` seconds for another process to let go, then throws an
  /// InputError that names it.
  Lock(const std::string& path, const std::string& what, double patience = 0);
  ~Lock();
  Lock(Lock&&) noexcept;
  Lock& operator=(Lock&&) noexcept;

 private:
  struct Held;
  std::unique_ptr<Held> held_;
};

/// For a file that is read, changed and written again: waits, since nobody takes long over that.
Lock lock_for_change(const std::string& file);

}  // namespace netmend
