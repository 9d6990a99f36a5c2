#include "base/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"

namespace netmend {
namespace {

using Clock = std::chrono::steady_clock;
double seconds(Clock::duration span) { return std::chrono::duration<double>(span).count(); }

}  // namespace

Progress::Progress(std::string what, int64_t total, bool quiet)
    : what_(std::move(what)),
      total_(total),
      shown_(!quiet && isatty(STDERR_FILENO)),
      start_(Clock::now()),
      last_(start_) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\033[K", stderr), std::fflush(stderr);
}

void Progress::advance(int64_t count, const std::string& note) {
  done_ += count;
  auto now = Clock::now();
  if (!shown_ || seconds(now - start_) < 0.5 || seconds(now - last_) < 0.1) return;
  last_ = now;
  draw(note);
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
