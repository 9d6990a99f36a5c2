#include "base/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"

namespace netmend {
namespace {

constexpr double kPatience = 20;  ///< seconds, for a small file to be changed by somebody else
constexpr double kWritten = 0.5;  ///< seconds, within which who has just taken a lock has written who it is

std::string about_us() {
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char time[64];
  std::strftime(time, sizeof time, "%Y-%m-%d %H:%M:%S", &parts);
  return fmt::format("process {} on {} since {}", getpid(), host, time);
}

std::string read_holder(int file) {
  char text[400];
  const ssize_t got = pread(file, text, sizeof text, 0);
  return got > 0 ? printable(std::string(text, size_t(got))) : "";
}

/// Whether the open file is still the one with that name: who let go of it may have removed it meanwhile.
bool is_still(int file, const std::string& path) {
  struct stat opened {
  }, named{};
  return fstat(file, &opened) == 0 && stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino &&
         opened.st_dev == named.st_dev;
}

}  // namespace

struct Lock::Held {
  int file = -1;
  std::string path;
  ~Held() {
    if (file < 0) return;
    unlink(path.c_str());  // before it is let go: nobody else's file is removed
    close(file);
  }
};

Lock::Lock(const std::string& path, const std::string& what, double patience) {
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const int file = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0) fail("cannot write {}: {}", path, std::strerror(errno));
    if (flock(file, LOCK_EX | LOCK_NB) == 0) {
      if (!is_still(file, path)) {
        close(file);
        continue;
      }
      held_ = std::make_unique<Held>();
      held_->file = file, held_->path = path;
      const std::string us = about_us();
      if (ftruncate(file, 0) != 0 || pwrite(file, us.data(), us.size(), 0) < 0)
        fail("cannot write {}: {}", path, std::strerror(errno));
      return;
    }
    const int reason = errno;
    const std::string holder = read_holder(file);
    close(file);
    if (reason != EWOULDBLOCK && reason != EINTR) fail("{} cannot be locked: {}", what, std::strerror(reason));
    if (interrupted()) throw Interrupted{};
    const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (waited >= patience + (holder.empty() ? kWritten : 0))
      throw InputError(fmt::format("{} is in use by {}", what, holder.empty() ? "another process" : holder),
                       "Wait for it to end, or choose another place.");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

Lock::~Lock() = default;
Lock::Lock(Lock&&) noexcept = default;
Lock& Lock::operator=(Lock&&) noexcept = default;

Lock lock_for_change(const std::string& file) {
  const std::filesystem::path path(file);
  return {(path.parent_path() / ("." + path.filename().string() + ".lock")).string(), file, kPatience};
}

}  // namespace netmend
