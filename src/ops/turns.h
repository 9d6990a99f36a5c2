// How long the loops of a network may go on: their files choose the number of turns.
#pragma once

#include <chrono>
#include <optional>

namespace netmend::ops {

/// While it lives, loops that this thread runs end with an InputError after so many seconds. Without one they take what
/// they take, until Ctrl-C.
class LoopLimit {
 public:
  explicit LoopLimit(double seconds);
  ~LoopLimit();
  LoopLimit(const LoopLimit&) = delete;

 private:
  std::optional<std::chrono::steady_clock::time_point> before_;
};

/// Before each turn of a loop: throws Interrupted after Ctrl-C, and an InputError where the limit is reached.
void begin_turn();

}  // namespace netmend::ops
