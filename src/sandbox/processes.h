// Processes and the memory they take, from /proc; and cgroups, v1 or v2, where they are writable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace netmend::sandbox {

/// Bytes of memory that a process and all its descendants take together (resident, without shared pages where the
/// kernel tells).
int64_t memory_of_tree(int root);
/// How many processes a user has.
int64_t processes_of(unsigned user);

/// Kills every process whose environment holds `mark`, and looks again until there is none. bubblewrap's inner process
/// can outlive the outer one when that is killed while it sets things up.
void end_marked(const std::string& mark);

/// The folder of the process's own group in version 2, from the text of /proc/self/cgroup; "" where it has none that it
/// can see.
std::string own_group(const std::string& told);

/// A control group for one program, below the one that netmend itself is in. Empty where none can be made.
class ControlGroup {
 public:
  ControlGroup(const std::string& name, int64_t memory, int64_t processes);
  ~ControlGroup();
  ControlGroup(const ControlGroup&) = delete;
  const std::vector<std::string>& folders() const { return folders_; }
  /// Called by a child about itself: no memory is taken.
  void enter() const;
  /// The kernel ended something for lack of memory.
  bool ran_out() const;
  int64_t peak() const;  ///< bytes; 0 when it is not known

 private:
  std::vector<std::string> folders_, members_;  ///< `members_`: files that a process joins by
  std::string memory_;                          ///< the folder that counts memory
};

}  // namespace netmend::sandbox
