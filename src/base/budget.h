// How much work a command may do. Work is counted in multiply-adds (inputs × cost of the network), so that the same
// command gives the same result on any machine, busy or not. A clock counts only where the user gives a time; what was
// found then depends on the machine.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace netmend {

class Budget {
 public:
  /// quick, normal (also ""), deep; or a time such as 90s, 30m, 2h. Throws InputError.
  static Budget parse(std::string_view text);
  static Budget unlimited();
  static Budget of_work(double multiply_adds);
  static Budget of_seconds(double seconds);

  /// Counts work that was done.
  void spend(double multiply_adds) { spent_ += multiply_adds; }
  /// Counts what a part has spent.
  void spend(const Budget& part) { spent_ += part.spent_; }
  double spent() const { return spent_; }

  /// Work that is left; of a time, by the speed so far (without end before anything was spent).
  double left() const;
  bool allows(double multiply_adds) const { return left() >= multiply_adds; }
  /// How often `each` fits into what is left, at most `most`.
  int64_t times(double each, int64_t most) const;
  /// A share of what is left, to be spent on one thing; give it back with spend(part).
  Budget part(double share) const;

  /// A clock decides, and results may differ from run to run.
  bool timed() const { return timed_; }
  bool limited() const { return timed_ || limit_ < kNoEnd; }
  /// `quick`, `90 s`; for messages and the run's record.
  const std::string& name() const { return name_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kNoEnd = 1e300;
  std::string name_ = "unlimited";
  double limit_ = kNoEnd, spent_ = 0;
  bool timed_ = false;
  Clock::time_point start_ = Clock::now(), deadline_ = Clock::time_point::max();
};

}  // namespace netmend
