#include "sandbox/watchdog.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "sandbox/processes.h"

namespace netmend::sandbox {
namespace {

/// The watchdog's own work: it reads lines until the pipe closes, then ends and removes what is left.
[[noreturn]] void watch(int pipe) {
  std::set<int> processes;
  std::set<std::string> folders, groups, marks;
  std::string line;
  char c = 0;
  while (read(pipe, &c, 1) == 1) {
    if (c != '\n') {
      line += c;
      continue;
    }
    const std::string text = line.substr(1);
    if (line[0] == '+') processes.insert(std::atoi(text.c_str()));
    if (line[0] == '-') processes.erase(std::atoi(text.c_str()));
    if (line[0] == 'f') folders.insert(text);
    if (line[0] == 'm') marks.insert(text);
    if (line[0] == 'g') groups.insert(text);
    if (line[0] == 'h') groups.erase(text);
    line.clear();
  }
  for (int process : processes) kill(process, SIGKILL);
  for (const std::string& mark : marks) end_marked(mark);
  std::error_code error;
  for (int attempt = 0; attempt < 50 && !groups.empty(); ++attempt) {
    std::erase_if(groups, [](const std::string& path) { return rmdir(path.c_str()) == 0; });
    if (!groups.empty()) usleep(20000);
  }
  for (const std::string& folder : folders) std::filesystem::remove_all(folder, error);
  _exit(0);
}

}  // namespace

Watchdog::Watchdog() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("no pipe could be made for the watchdog");
  child_ = fork();
  if (child_ < 0) fail("the watchdog could not be started");
  if (child_ == 0) {
    close(ends[1]);
    setsid();
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_IGN);
    // Whoever reads the driver's output must not wait for the watchdog.
    for (int file = 0; file < 3; ++file) close(file);
    watch(ends[0]);
  }
  close(ends[0]);
  pipe_ = ends[1];
}

Watchdog::~Watchdog() {
  close(pipe_);
  waitpid(child_, nullptr, 0);
}

void Watchdog::tell(char what, const std::string& text) {
  const std::string line = what + text + "\n";
  const std::lock_guard<std::mutex> guard(lock_);
  for (size_t at = 0; at < line.size();) {
    const ssize_t wrote = write(pipe_, line.data() + at, line.size() - at);
    check(wrote > 0 || errno == EINTR, "the watchdog is gone");
    if (wrote > 0) at += size_t(wrote);
  }
}

}  // namespace netmend::sandbox
