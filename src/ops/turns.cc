#include "ops/turns.h"

#include "base/error.h"
#include "base/pool.h"

namespace netmend::ops {
namespace {

using Clock = std::chrono::steady_clock;
thread_local std::optional<Clock::time_point> end;

}  // namespace

LoopLimit::LoopLimit(double seconds) : before_(end) {
  end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

LoopLimit::~LoopLimit() { end = before_; }

void begin_turn() {
  if (interrupted()) throw Interrupted{};
  if (end && Clock::now() > *end) fail("the loop takes too long to be looked at");
}

}  // namespace netmend::ops
