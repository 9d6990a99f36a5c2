// Half a second of each run of netmend goes into loading LibTorch and its 280 libraries. Loaded into the program before
// them (LD_PRELOAD), this starts the engine once and forks it for each run, just before its main:
//
//   NETMEND_FORKS=SOCKET         in the engine: listens there instead of entering main
//   NETMEND_FORKED_BY=SOCKET     in `netmend`: hands arguments, environment, folder and standard streams to that engine
//                                instead of starting one, and ends as its child ends
//
// A child that nobody waits for any more is killed. Limits and ignored signals are not handed over: who tests those
// starts the program itself (shell.py).
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

extern "C" char** environ;

namespace {

using Main = int (*)(int, char**, char**);
constexpr int kStreams = 4;  // standard input, output, error, and the folder

Main real_main;

[[noreturn]] void give_up(const char* why) {
  std::perror(why);
  _exit(3);
}

sockaddr_un address(const char* path) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  if (std::strlen(path) >= sizeof at.sun_path) give_up("forked: too long a path");
  std::strcpy(at.sun_path, path);
  return at;
}

void send_all(int to, const void* data, size_t size) {
  for (auto* at = static_cast<const char*>(data); size;) {
    const ssize_t sent = send(to, at, size, MSG_NOSIGNAL);
    if (sent <= 0) give_up("forked: send");
    at += sent, size -= size_t(sent);
  }
}

bool receive_all(int from, void* data, size_t size) {
  for (auto* at = static_cast<char*>(data); size;) {
    const ssize_t got = recv(from, at, size, 0);
    if (got <= 0) return false;
    at += got, size -= size_t(got);
  }
  return true;
}

void add_words(std::string& text, char** words) {
  uint32_t count = 0;
  while (words[count]) ++count;
  text.append(reinterpret_cast<char*>(&count), sizeof count);
  for (uint32_t i = 0; i < count; ++i) text.append(words[i]).push_back('\0');
}

std::vector<char*> take_words(char*& at) {
  uint32_t count;
  std::memcpy(&count, at, sizeof count);
  at += sizeof count;
  std::vector<char*> words;
  for (; count; --count, at += std::strlen(at) + 1) words.push_back(at);
  words.push_back(nullptr);
  return words;
}

struct Header {
  uint32_t bytes;
  mode_t mask;
  sigset_t blocked;
};

// ---- in the engine ----

// One run: the child becomes the program; its parent waits for its end, or for that of those who asked for it.
int run_once(int client) {
  int streams[kStreams];
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof streams)];
  Header header;
  iovec part{&header, sizeof header};
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = sizeof control;
  if (recvmsg(client, &message, MSG_WAITALL) != ssize_t(sizeof header)) _exit(3);
  std::memcpy(streams, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof streams);
  auto* text = new std::string(header.bytes, '\0');  // lives as long as the process: main's arguments lie there
  if (!receive_all(client, text->data(), text->size())) _exit(3);

  const pid_t child = fork();
  if (child < 0) give_up("forked: fork");
  if (child > 0) {
    for (const int stream : streams) close(stream);
    pollfd wait_for[] = {{int(syscall(SYS_pidfd_open, child, 0)), POLLIN, 0}, {client, POLLRDHUP, 0}};
    poll(wait_for, 2, -1);
    if (!wait_for[0].revents) kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    send(client, &status, sizeof status, MSG_NOSIGNAL);
    _exit(0);
  }
  close(client);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (fchdir(streams[3]) != 0) give_up("forked: fchdir");
  for (int i = 0; i < 3; ++i) dup2(streams[i], i);
  for (const int stream : streams)
    if (stream > 2) close(stream);
  umask(header.mask);
  sigprocmask(SIG_SETMASK, &header.blocked, nullptr);
  char* at = text->data();
  auto& arguments = *new std::vector<char*>(take_words(at));
  auto& environment = *new std::vector<char*>(take_words(at));
  clearenv();
  for (char* setting : environment)
    if (setting) putenv(setting);
  return real_main(int(arguments.size()) - 1, arguments.data(), environ);
}

int serve(int, char**, char**) {
  const std::string path = getenv("NETMEND_FORKS");
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un at = address(path.c_str());
  if (bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 || listen(listener, 64) != 0)
    give_up("forked: listen");
  signal(SIGCHLD, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (;;) {
    const int client = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) continue;
    if (fork() == 0) {
      close(listener);
      signal(SIGCHLD, SIG_DFL);
      return run_once(client);
    }
    close(client);
  }
}

// ---- in netmend ----

[[noreturn]] void ask(const char* path, char* const* arguments) {
  const int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un at = address(path);
  // The socket has a name a moment before it listens.
  for (int tries = 0; connect(server, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0; ++tries)
    if (errno != ECONNREFUSED || tries == 1000 || usleep(10'000) != 0) give_up("forked: connect");
  unsetenv("LD_PRELOAD");
  unsetenv("NETMEND_FORKED_BY");
  std::string text;
  add_words(text, const_cast<char**>(arguments));
  add_words(text, environ);
  Header header{uint32_t(text.size()), umask(0), {}};
  sigprocmask(SIG_SETMASK, nullptr, &header.blocked);
  const int streams[kStreams] = {0, 1, 2, open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof streams)] = {};
  iovec part{&header, sizeof header};
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = control, message.msg_controllen = sizeof control;
  cmsghdr* first = CMSG_FIRSTHDR(&message);
  first->cmsg_level = SOL_SOCKET, first->cmsg_type = SCM_RIGHTS, first->cmsg_len = CMSG_LEN(sizeof streams);
  std::memcpy(CMSG_DATA(first), streams, sizeof streams);
  if (sendmsg(server, &message, MSG_NOSIGNAL) != ssize_t(sizeof header)) give_up("forked: sendmsg");
  send_all(server, text.data(), text.size());
  for (const int stream : streams) close(stream);  // a reader of our output sees its end when the child ends
  int status;
  if (!receive_all(server, &status, sizeof status)) _exit(3);
  if (WIFSIGNALED(status)) {
    signal(WTERMSIG(status), SIG_DFL);
    sigset_t all;
    sigemptyset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    raise(WTERMSIG(status));
  }
  _exit(WEXITSTATUS(status));
}

bool is_engine(std::string_view path) { return path.ends_with("/netmend-engine"); }

}  // namespace

extern "C" int execv(const char* path, char* const* arguments) {
  const char* server = getenv("NETMEND_FORKED_BY");
  if (server && is_engine(path)) ask(server, arguments);
  return execve(path, arguments, environ);
}

extern "C" int __libc_start_main(Main main, int argc, char** argv, Main init, void (*fini)(), void (*rtld_fini)(),
                                 void* stack_end) {
  const auto start = reinterpret_cast<decltype(&__libc_start_main)>(dlsym(RTLD_NEXT, "__libc_start_main"));
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  real_main = main;
  const bool serves = getenv("NETMEND_FORKS") && length > 0 && is_engine({self, size_t(length)});
  return start(serves ? serve : main, argc, argv, init, fini, rtld_fini, stack_end);
}
