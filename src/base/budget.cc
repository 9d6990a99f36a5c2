#include "base/budget.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace netmend {
namespace {

/// About ten seconds, a minute, ten minutes on two cores of 2023.
constexpr double kQuick = 2.5e11, kNormal = 1.5e12, kDeep = 1.5e13;

std::chrono::steady_clock::duration clock_time(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e9)));
}

}  // namespace

Budget Budget::parse(std::string_view text) {
  const std::string name = text.empty() ? "normal" : lower(text);
  if (name == "quick" || name == "normal" || name == "deep") {
    Budget budget = of_work(name == "quick" ? kQuick : name == "normal" ? kNormal : kDeep);
    budget.name_ = name;
    return budget;
  }
  return of_seconds(parse_seconds(text));
}

Budget Budget::unlimited() { return {}; }

Budget Budget::of_work(double multiply_adds) {
  Budget budget;
  budget.limit_ = multiply_adds;
  budget.name_ = fmt::format("{:.3g} multiply-adds", multiply_adds);
  return budget;
}

Budget Budget::of_seconds(double seconds) {
  Budget budget;
  budget.timed_ = true;
  budget.deadline_ = budget.start_ + clock_time(seconds);
  budget.name_ = duration_text(seconds);
  return budget;
}

double Budget::left() const {
  if (!timed_) return std::max(0.0, limit_ - spent_);
  const double passed = std::chrono::duration<double>(Clock::now() - start_).count(),
               remains = std::chrono::duration<double>(deadline_ - Clock::now()).count();
  if (remains <= 0) return 0;
  return spent_ > 0 && passed > 0 ? spent_ / passed * remains : kNoEnd;
}

int64_t Budget::times(double each, int64_t most) const {
  const double fits = each > 0 ? left() / each : kNoEnd;
  return fits >= double(most) ? most : int64_t(fits);
}

Budget Budget::part(double share) const {
  Budget part;
  part.name_ = name_;
  part.timed_ = timed_;
  if (timed_)
    part.deadline_ = part.start_ + clock_time(share * std::chrono::duration<double>(deadline_ - part.start_).count());
  else if (limit_ < kNoEnd)
    part.limit_ = share * left();
  return part;
}

}  // namespace netmend
