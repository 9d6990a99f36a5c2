// A bar with a rate and the time that is left, on stderr, and only where a person looks at it. A program that started
// this one may ask for lines instead: NETMEND_PROGRESS=N has `DONE TOTAL WHAT` written to N, a socket.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace netmend {

class Progress {
 public:
  /// `what` is counted ("inputs"); nothing is drawn when `quiet`, or when stderr is no terminal. The bar appears after
  /// half a second and is wiped by the destructor.
  Progress(std::string what, int64_t total, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  /// Not thread safe: called where results are handed over in order.
  void advance(int64_t count, const std::string& note = "");

 private:
  void draw(const std::string& note);
  void tell();
  std::string what_;
  int64_t total_, done_ = 0;
  bool shown_, drawn_ = false, told_ = false;
  int channel_;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace netmend
