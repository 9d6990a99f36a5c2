#include "base/progress.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"

namespace netmend {
namespace {

using Clock = std::chrono::steady_clock;
double seconds(Clock::duration span) { return std::chrono::duration<double>(span).count(); }

/// The descriptor that NETMEND_PROGRESS names, or -1. Standard streams belong to others.
int channel() {
  const char* text = std::getenv("NETMEND_PROGRESS");
  int64_t number = -1;
  if (!text || !parse_int(text, number) || number < 3 || number > INT_MAX) return -1;
  return fcntl(int(number), F_GETFD) < 0 ? -1 : int(number);
}

}  // namespace

Progress::Progress(std::string what, int64_t total, bool quiet)
    : what_(std::move(what)),
      total_(total),
      shown_(!quiet && isatty(STDERR_FILENO)),
      channel_(channel()),
      start_(Clock::now()),
      last_(start_) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\033[K", stderr), std::fflush(stderr);
  if (told_) tell();
}

void Progress::advance(int64_t count, const std::string& note) {
  done_ += count;
  auto now = Clock::now();
  if (seconds(now - last_) < 0.1) return;
  last_ = now;
  if (channel_ >= 0) tell();
  if (shown_ && seconds(now - start_) >= 0.5) draw(note);
}

void Progress::tell() {
  const std::string line = fmt::format("{} {} {}\n", done_, total_, what_);
  // A line that nobody reads is no error, and nobody is waited for.
  told_ = send(channel_, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0 || told_;
}

void Progress::draw(const std::string& note) {
  double spent = seconds(Clock::now() - start_), rate = double(done_) / spent;
  int width = 24, full = total_ > 0 ? int(width * std::min<int64_t>(done_, total_) / total_) : 0;
  std::string bar;
  for (int i = 0; i < width; ++i) bar += i < full ? "━" : "╌";
  const std::string line =
      fmt::format("\r\033[K{} {} of {} {} · {}/s · {} left{}", bar, with_commas(done_), with_commas(total_), what_,
                  with_commas(int64_t(rate)), duration_text(double(total_ - done_) / std::max(rate, 1e-9)),
                  note.empty() ? "" : " · " + printable(note));
  std::fputs(line.c_str(), stderr), std::fflush(stderr);  // a terminal that is gone is no error
  drawn_ = true;
}

}  // namespace netmend
