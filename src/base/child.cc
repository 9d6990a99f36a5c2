#include "base/child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/pool.h"

namespace netmend {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};
constexpr size_t kMostOutput = size_t(64) << 20;
volatile sig_atomic_t child_id = 0, signal_came = 0;

/// Ctrl-C reaches the child by itself: the terminal sends it to both. What somebody sends to us alone goes on to it.
void pass_on(int signal, siginfo_t* info, void*) {
  signal_came = 1;
  if (child_id > 0 && (signal != SIGINT || info->si_code == SI_USER)) kill(pid_t(child_id), signal);
}

/// Our signals go to the child while it runs.
class PassedOn {
 public:
  PassedOn() {
    signal_came = 0;
    struct sigaction action {};
    action.sa_sigaction = pass_on;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    for (size_t i = 0; i < std::size(kSignals); ++i) {
      sigaction(kSignals[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
    }
  }
  ~PassedOn() {
    child_id = 0;
    for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  }

 private:
  struct sigaction before_[std::size(kSignals)]{};
};

[[noreturn]] void become(const std::vector<std::string>& words, int failed) {
  for (const int signal : kSignals) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN) std::signal(signal, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int why = errno;
  [[maybe_unused]] const ssize_t told = write(failed, &why, sizeof why);
  _exit(127);
}

}  // namespace

int run_child(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment,
              std::string* output, bool* stopped) {
  int failed[2], piped[2] = {-1, -1};
  if (pipe2(failed, O_CLOEXEC) != 0 || (output && pipe2(piped, O_CLOEXEC) != 0))
    fail("cannot make a pipe: {}", std::strerror(errno));
  PassedOn passed;
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  const pid_t child = fork();
  if (child < 0) fail("cannot start a process: {}", std::strerror(errno));
  if (child == 0) {
    if (output) dup2(piped[1], STDOUT_FILENO);
    become(words, failed[1]);
  }
  child_id = child;
  close(failed[1]);
  if (output) close(piped[1]);
  int why = 0;
  ssize_t told = 0;
  do told = read(failed[0], &why, sizeof why);
  while (told < 0 && errno == EINTR);
  close(failed[0]);
  char buffer[65536];
  for (ssize_t count = 1; output && count != 0;) {
    count = read(piped[0], buffer, sizeof buffer);
    if (count < 0 && errno != EINTR) break;
    if (count > 0 && output->size() < kMostOutput) output->append(buffer, size_t(count));
  }
  if (output) close(piped[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (told > 0)
    throw InputError(fmt::format("cannot start {}: {}", words[0], std::strerror(why)),
                     "Is it installed and on the PATH?");
  if (stopped) *stopped = signal_came != 0;
  if (!stopped && signal_came) throw Interrupted{};
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace netmend
