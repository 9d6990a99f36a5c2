#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"
#include "sandbox/processes.h"
#include "sandbox/watchdog.h"

namespace netmend::sandbox {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr size_t kKept = 512 << 10;         ///< bytes of output kept from its beginning, and from its end
constexpr int64_t kMostCopied = 256 << 20;  ///< bytes of files that root copies for whom programs run as
constexpr size_t kMostEntries = 1000;       ///< of a folder that are shown one by one
constexpr int kLookEvery = 100;             ///< milliseconds between looks at memory

/// Whom programs run as.
struct Person {
  uid_t user = getuid();
  gid_t group = getgid();
  bool other = false;  ///< not us
};

Person nobody_for_root() {
  Person who;
  if (geteuid() != 0) return who;
  const passwd* entry = getpwnam("nobody");
  who.user = entry ? entry->pw_uid : 65534, who.group = entry ? entry->pw_gid : 65534;
  who.other = true;
  return who;
}

/// In a child: no way back.
bool become(const Person& who) {
  return !who.other || (setgroups(0, nullptr) == 0 && setgid(who.group) == 0 && setuid(who.user) == 0);
}

std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path ? path : "/usr/local/bin:/usr/bin:/bin", ':'))
    if (access((folder + "/" + name).c_str(), X_OK) == 0) return folder + "/" + name;
  return "";
}

/// Words as exec wants them.
class Words {
 public:
  explicit Words(const std::vector<std::string>& words) : words_(words) {
    for (std::string& word : words_) pointers_.push_back(word.data());
    pointers_.push_back(nullptr);
  }
  char** data() { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail("no pipe could be made: {}", std::strerror(errno));
    read = ends[0], write = ends[1];
  }
  ~Pipe() { close_read(), close_write(); }
  Pipe(const Pipe&) = delete;
  void close_read() {
    if (read >= 0) close(read);
    read = -1;
  }
  void close_write() {
    if (write >= 0) close(write);
    write = -1;
  }
};

/// The beginning and the end of what is printed.
class Kept {
 public:
  void add(const char* bytes, size_t count) {
    total_ += int64_t(count);
    const size_t first = std::min(count, kKept - std::min(kKept, head_.size()));
    head_.append(bytes, first);
    tail_.append(bytes + first, count - first);
    if (tail_.size() > 2 * kKept) tail_.erase(0, tail_.size() - kKept), cut_ = true;
  }
  int64_t total() const { return total_; }
  std::string text() const {
    return head_ + (cut_ ? "\n[…]\n" : "") + (tail_.size() > kKept ? tail_.substr(tail_.size() - kKept) : tail_);
  }

 private:
  std::string head_, tail_;
  int64_t total_ = 0;
  bool cut_ = false;
};

void limit(int what, int64_t value) {
  const rlimit both{rlim_t(value), rlim_t(value)};
  setrlimit(decltype(RLIMIT_CORE)(what), &both);
}

bool under(const std::string& path, const std::string& folder) {
  return path == folder || (path.starts_with(folder) && path.size() > folder.size() && path[folder.size()] == '/');
}

/// Places that a sandbox has for itself.
const char* const kMasked[] = {"/tmp", "/run", "/var/run", "/var/tmp"};

}  // namespace

struct Sandbox::Impl {
  bool unsafe = false;
  Person who;
  std::string bwrap, folder;
  Watchdog watchdog;
  std::atomic<int> runs{0};
  std::mutex copying;
  std::map<std::string, std::string> copies;  ///< by path: where a copy stands that programs can read

  explicit Impl(bool without) : unsafe(without), who(without ? Person() : nobody_for_root()) {
    std::string name = (fs::temp_directory_path() / "netmend-sandbox-XXXXXX").string();
    if (!mkdtemp(name.data()))
      fail("no folder can be made in {}: {}", fs::temp_directory_path().string(), std::strerror(errno));
    folder = name;
    chmod(folder.c_str(), 0755);
    watchdog.watch_folder(folder);
    watchdog.watch_mark(mark());
  }
  ~Impl() {
    std::error_code error;
    fs::remove_all(folder, error);
  }

  /// In the environment of all that runs here.
  std::string mark() const { return "NETMEND_SANDBOX=" + folder + "/"; }

  /// Asked of a child that is whom programs run as.
  bool readable(const std::string& path) const {
    if (!who.other) return access(path.c_str(), R_OK) == 0;
    std::error_code error;  // nothing may be thrown in the child: it would go on as a second netmend
    const int asked = R_OK | (fs::is_directory(path, error) ? X_OK : 0);
    const pid_t child = fork();
    if (child == 0) _exit(become(who) && access(path.c_str(), asked) == 0 ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  /// The path itself, or a copy that root makes of files that only root can read.
  std::string source_for(const std::string& path) {
    if (readable(path)) return path;
    const std::lock_guard<std::mutex> guard(copying);
    auto [hit, fresh] = copies.emplace(path, "");
    if (!fresh) return hit->second;
    const std::string copy = fmt::format("{}/copy{}", folder, copies.size());
    int64_t bytes = 0;
    copy_readable(path, copy, bytes);
    return hit->second = copy;
  }

  void copy_readable(const fs::path& from, const fs::path& to, int64_t& bytes) const {
    const fs::file_status status = fs::symlink_status(from);
    if (fs::is_symlink(status)) return fs::copy_symlink(from, to);
    if (fs::is_directory(status)) {
      fs::create_directory(to);
      for (const fs::directory_entry& entry : fs::directory_iterator(from))
        copy_readable(entry.path(), to / entry.path().filename(), bytes);
    } else if (fs::is_regular_file(status)) {
      bytes += int64_t(fs::file_size(from));
      if (bytes > kMostCopied)
        throw InputError(fmt::format("only root can read {}, and it holds more than {} that would have to be copied",
                                     printable(from.string()), bytes_text(double(kMostCopied))),
                         "Let others read it (chmod -R a+rX), or start netmend as an ordinary user.");
      fs::copy_file(from, to);
    }
    chmod(to.c_str(), fs::is_directory(status) || access(from.c_str(), X_OK) == 0 ? 0755 : 0644);
  }

  // ---- bubblewrap's words

  /// A path is shown where it stands; where whom we are may not pass, an empty folder stands in its parent's place.
  void show(std::vector<std::string>& words, const std::string& path, const std::string& source,
            std::vector<std::string>& masked) const {
    open_way(words, path, masked);
    if (source == path && !is_masked(path, masked)) return;
    words.insert(words.end(), {"--ro-bind", source, path});
  }

  void open_way(std::vector<std::string>& words, const std::string& path, std::vector<std::string>& masked) const {
    for (const fs::path& part : ancestors(path))
      if (!is_masked(part.string(), masked) && !readable_place(part.string())) {
        words.insert(words.end(), {"--tmpfs", part.string()});
        masked.push_back(part.string());
      }
  }

  static std::vector<fs::path> ancestors(const fs::path& path) {
    std::vector<fs::path> list;
    for (fs::path at = path.parent_path(); at.has_relative_path(); at = at.parent_path()) list.insert(list.begin(), at);
    return list;
  }
  static bool is_masked(const std::string& path, const std::vector<std::string>& masked) {
    return std::any_of(masked.begin(), masked.end(), [&](const std::string& place) { return under(path, place); });
  }
  bool readable_place(const std::string& path) const {
    if (!who.other) return true;
    const pid_t child = fork();
    if (child == 0) _exit(become(who) && access(path.c_str(), X_OK) == 0 ? 0 : 1);
    int status = 1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  std::vector<std::string> wrapped(const Command& command, const Limits& limits) {
    const std::string size = std::to_string(limits.files);
    std::vector<std::string> words = {bwrap,
                                      "--unshare-all",
                                      "--unshare-user",
                                      "--die-with-parent",
                                      "--new-session",
                                      "--ro-bind",
                                      "/",
                                      "/",
                                      "--dev",
                                      "/dev",
                                      "--size",
                                      size,
                                      "--tmpfs",
                                      "/dev/shm",
                                      "--remount-ro",
                                      "/dev",
                                      "--proc",
                                      "/proc"};
    std::vector<std::string> masked;
    for (const char* place : kMasked)
      if (fs::is_directory(fs::symlink_status(place))) {
        words.insert(words.end(), {"--size", size, "--tmpfs", place});
        masked.emplace_back(place);
      }
    for (const std::string& path : command.readable)
      if (fs::exists(path)) show(words, path, source_for(path), masked);
    show_folder(words, command.folder, command.left_out, size, masked);
    for (const std::string& path : command.writable) words.insert(words.end(), {"--size", size, "--tmpfs", path});
    for (const Replacement& one : command.replaced) {
      open_way(words, one.path, masked);
      words.insert(words.end(), {"--ro-bind", one.by, one.path});
    }
    words.insert(words.end(), {"--chdir", command.folder, "--"});
    words.insert(words.end(), command.words.begin(), command.words.end());
    return words;
  }

  /// A private folder in which what the real one holds can be read.
  void show_folder(std::vector<std::string>& words, const std::string& path, const std::vector<std::string>& left_out,
                   const std::string& size, std::vector<std::string>& masked) {
    const std::string source = source_for(path);
    std::vector<fs::directory_entry> entries;
    for (const fs::directory_entry& entry : fs::directory_iterator(source)) {
      entries.push_back(entry);
      if (entries.size() > kMostEntries) break;
    }
    if (entries.size() > kMostEntries || path == "/") return show(words, path, source, masked);
    open_way(words, path, masked);
    words.insert(words.end(), {"--size", size, "--tmpfs", path});
    masked.push_back(path);
    for (const fs::directory_entry& entry : entries) {
      const std::string to = (fs::path(path) / entry.path().filename()).string();
      if (std::find(left_out.begin(), left_out.end(), to) != left_out.end()) continue;
      if (entry.is_symlink())
        words.insert(words.end(), {"--symlink", fs::read_symlink(entry.path()).string(), to});
      else if (entry.is_regular_file() || entry.is_directory())
        words.insert(words.end(), {"--ro-bind-try", source_for(entry.path().string()), to});
    }
  }

  std::vector<std::string> environment(const Command& command, bool report, const std::string& own) const {
    std::map<std::string, std::string> all = {{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                                              {"HOME", "/tmp"},
                                              {"LANG", "C.UTF-8"},
                                              {"OMP_NUM_THREADS", "1"},
                                              {"MKL_NUM_THREADS", "1"},
                                              {"OPENBLAS_NUM_THREADS", "1"}};
    if (const char* path = std::getenv("PATH")) all["PATH"] = path;
    for (const auto& [name, value] : command.environment) all[name] = value;
    if (report) all["NETMEND_REPORT_FD"] = "3";
    std::vector<std::string> list = {own};
    for (const auto& [name, value] : all) list.push_back(name + "=" + value);
    return list;
  }
};

namespace {

/// A program that runs: its pipes are read, its limits watched.
class Running {
 public:
  Running(pid_t pid, const Limits& limits, const ControlGroup& group, Pipe& out, Pipe& errors, Pipe& report,
          bool group_kill)
      : pid_(pid), limits_(limits), group_(group), pipes_{&out, &errors, &report}, whole_group_(group_kill) {}

  Outcome follow() {
    const auto start = Clock::now();
    auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
    auto looked = Clock::now();
    bool ended = false;
    while (!ended || pipes_open()) {
      read_some();
      if (!ended && waitpid(pid_, &status_, WNOHANG) == pid_) ended = true, done_ = Clock::now();
      if (ended) {
        // Who holds the pipes now has outlived the program: only without bubblewrap.
        if (Clock::now() - done_ > std::chrono::milliseconds(500)) break;
        continue;
      }
      if (Clock::now() - looked > std::chrono::milliseconds(kLookEvery)) {
        looked = Clock::now();
        peak_ = std::max(peak_, memory_of_tree(pid_));
        if (peak_ > limits_.memory) stop(Ending::kMemory);
      }
      if (seconds() > limits_.seconds) stop(Ending::kTimeout);
      if (kept_[0].total() + kept_[1].total() > limits_.output) stop(Ending::kOutput);
      if (interrupted()) stop(Ending::kInterrupted);
    }
    return result(std::chrono::duration<double>(done_ - start).count());
  }

 private:
  bool pipes_open() const { return pipes_[0]->read >= 0 || pipes_[1]->read >= 0 || pipes_[2]->read >= 0; }

  void read_some() {
    pollfd waiting[3];
    nfds_t count = 0;
    int which[3];
    for (int i = 0; i < 3; ++i)
      if (pipes_[i]->read >= 0) waiting[count] = {pipes_[i]->read, POLLIN, 0}, which[count++] = i;
    if (poll(waiting, count, 10) <= 0) return;
    static thread_local char buffer[1 << 16];
    for (nfds_t i = 0; i < count; ++i) {
      if (!(waiting[i].revents & (POLLIN | POLLHUP | POLLERR))) continue;
      const ssize_t got = read(waiting[i].fd, buffer, sizeof buffer);
      if (got > 0)
        which[i] == 2 ? void(report_.append(buffer, report_.size() < kMostReport ? size_t(got) : 0))
                      : kept_[which[i]].add(buffer, size_t(got));
      else if (got == 0 || errno != EINTR)
        pipes_[which[i]]->close_read();
    }
  }

  void stop(Ending why) {
    if (!stopped_) ending_ = why;
    stopped_ = true;
    if (whole_group_) kill(-pid_, SIGKILL);
    kill(pid_, SIGKILL);
  }

  Outcome result(double seconds) {
    Outcome out;
    out.seconds = seconds;
    out.peak = std::max(peak_, group_.peak());
    out.output = kept_[0].text(), out.errors = kept_[1].text(), out.report = std::move(report_);
    if (stopped_) {
      out.ending = ending_;
    } else if (group_.ran_out()) {
      out.ending = Ending::kMemory;
    } else if (WIFSIGNALED(status_)) {
      out.ending = Ending::kSignal, out.status = WTERMSIG(status_);
    } else {
      out.status = WEXITSTATUS(status_);
      // bubblewrap tells of a signal as shells do.
      if (!whole_group_ && out.status > 128) out.ending = Ending::kSignal, out.status -= 128;
    }
    return out;
  }

  static constexpr size_t kMostReport = 64 << 20;
  pid_t pid_;
  const Limits& limits_;
  const ControlGroup& group_;
  Pipe* pipes_[3];
  bool whole_group_, stopped_ = false;
  Ending ending_ = Ending::kExited;
  int status_ = 0;
  int64_t peak_ = 0;
  Kept kept_[2];
  std::string report_;
  Clock::time_point done_;
};

}  // namespace

Sandbox::Sandbox(bool unsafe) {
  if (!unsafe)
    if (const Support support = probe(); !support.works) throw InputError(support.reason, support.hint);
  impl_ = std::make_unique<Impl>(unsafe);
  if (!unsafe) impl_->bwrap = find_program("bwrap");
}
Sandbox::~Sandbox() = default;

bool Sandbox::unsafe() const { return impl_->unsafe; }
const std::string& Sandbox::folder() const { return impl_->folder; }

void Sandbox::require_readable(const std::string& path) const {
  if (impl_->readable(path)) return;
  throw InputError(
      fmt::format("programs run as `nobody` when root starts netmend, and nobody can read {}", printable(path)),
      "Let others read it (chmod a+rX on it and the folders above it), or start netmend as an ordinary user.");
}

Outcome Sandbox::run(const Command& command, const Limits& limits) {
  const std::vector<std::string> typed = impl_->unsafe ? command.words : impl_->wrapped(command, limits);
  const std::string program = find_program(typed[0]);
  if (program.empty()) fail("{} cannot be started: there is no such program", printable(typed[0]));
  const int number = ++impl_->runs;
  const std::string mark = fmt::format("{}{}/", impl_->mark(), number);
  Words words(typed), environment(impl_->environment(command, command.report, mark));
  const ControlGroup group(fmt::format("netmend-{}-{}", getpid(), number), limits.memory, limits.processes + 8);
  for (const std::string& one : group.folders()) impl_->watchdog.watch_group(one);
  const int64_t processes = processes_of(impl_->who.user) + limits.processes;
  Pipe out, errors, report;
  const int silent = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const pid_t parent = getpid();
  const bool root = impl_->who.user == 0;
  const pid_t child = fork();
  if (child < 0) fail("{} cannot be started: {}", printable(typed[0]), std::strerror(errno));
  if (child == 0) {
    setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_DFL);
    group.enter();
    dup2(silent, 0), dup2(out.write, 1), dup2(errors.write, 2);
    if (command.report) dup2(report.write, 3);
    limit(RLIMIT_CORE, 0), limit(RLIMIT_FSIZE, limits.files), limit(RLIMIT_DATA, limits.memory);
    if (!root) limit(RLIMIT_NPROC, processes);
    if (!become(impl_->who)) _exit(125);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(125);
    if (impl_->unsafe && chdir(command.folder.c_str()) != 0) _exit(126);
    execve(program.c_str(), words.data(), environment.data());
    _exit(127);
  }
  close(silent);
  setpgid(child, child);
  impl_->watchdog.watch_process(child);
  out.close_write(), errors.close_write(), report.close_write();
  Outcome outcome = Running(child, limits, group, out, errors, report, impl_->unsafe).follow();
  if (outcome.ending != Ending::kExited) end_marked(mark);
  impl_->watchdog.forget_process(child);
  for (const std::string& one : group.folders()) impl_->watchdog.forget_group(one);
  return outcome;
}

Support probe() {
  const std::string bwrap = find_program("bwrap");
  const std::string hint = "--unsafe runs programs without a sandbox: only for code that you trust.";
  if (bwrap.empty()) return {false, "bubblewrap is not installed", "Install it (apt install bubblewrap). " + hint};
  Pipe errors;
  const Person who = nobody_for_root();
  Words words({bwrap, "--unshare-all", "--unshare-user", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc",
               "--tmpfs", "/tmp", "--", "/bin/true"});
  const pid_t child = fork();
  if (child < 0) return {false, "no process can be started", hint};
  if (child == 0) {
    dup2(errors.write, 2);
    if (!become(who)) _exit(125);
    execv(bwrap.c_str(), words.data());
    _exit(127);
  }
  errors.close_write();
  std::string said;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(errors.read, buffer, sizeof buffer)) > 0;) said.append(buffer, size_t(got));
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {true, "", ""};
  const std::string line = printable(std::string(trim(said.substr(0, said.find('\n')))));
  const bool mounts = said.find("mount") != std::string::npos && said.find("namespace") == std::string::npos;
  return {false,
          fmt::format("bubblewrap does not work here: {} ({})",
                      mounts ? "the kernel refuses its mounts" : "user namespaces are forbidden", line),
          (mounts ? std::string("In a container it needs an unmasked /proc. ")
                  : std::string("The administrator can allow them (sysctl user.max_user_namespaces, or an AppArmor "
                                "profile for bwrap). ")) +
              hint};
}

}  // namespace netmend::sandbox
