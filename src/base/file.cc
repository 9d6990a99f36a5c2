#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/hash.h"

namespace netmend {
namespace fs = std::filesystem;

std::string read_file(const std::string& path, int64_t limit) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail("cannot read {}: {}", path, std::strerror(errno));
  struct Closer {
    int file;
    ~Closer() { ::close(file); }
  } closer{file};
  struct stat about {};
  if (::fstat(file, &about) != 0) fail("cannot read {}: {}", path, std::strerror(errno));
  if (S_ISDIR(about.st_mode)) fail("cannot read {}: it is a folder", path);
  if (about.st_size > limit) fail("{} is too large: {} bytes, at most {} are read", path, about.st_size, limit);
  std::string content(size_t(about.st_size), '\0');
  size_t have = 0;
  for (;;) {
    if (have == content.size()) content.resize(have + (have ? 1 << 16 : 1 << 12));  // pipes, and the check for the end
    ssize_t got = ::read(file, content.data() + have, content.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot read {}: {}", path, std::strerror(errno));
    if (got == 0) break;
    have += size_t(got);
    if (int64_t(have) > limit) fail("{} is too large: at most {} bytes are read", path, limit);
  }
  content.resize(have);
  return content;
}

void write_file(const std::string& path, const std::function<void(std::ostream&)>& produce) {
  std::error_code status;
  bool in_place =
      fs::exists(path, status) && !fs::is_regular_file(path, status);  // a device or a pipe stays what it is
  std::string beside = in_place ? path : path + ".part" + std::to_string(::getpid());
  auto give_up = [&](const char* reason) {
    std::error_code ignored;
    if (!in_place) fs::remove(beside, ignored);
    fail("cannot write {}: {}", path, reason);
  };
  errno = 0;
  try {
    std::ofstream out(beside, std::ios::binary);
    if (!out) give_up(std::strerror(errno ? errno : EIO));
    produce(out);
    out.flush();
    if (!out) give_up(std::strerror(errno ? errno : ENOSPC));
    out.close();
    if (!out) give_up(std::strerror(errno ? errno : ENOSPC));
  } catch (...) {
    std::error_code ignored;
    if (!in_place) fs::remove(beside, ignored);
    throw;
  }
  if (in_place) return;
  std::error_code error;
  fs::rename(beside, path, error);
  if (error) give_up(error.message().c_str());
}

void write_file(const std::string& path, std::string_view content) {
  write_file(path, [&](std::ostream& out) { out.write(content.data(), std::streamsize(content.size())); });
}

void require_writable(const std::string& path) {
  std::error_code error;
  fs::path folder = fs::absolute(path, error).parent_path();
  if (!fs::is_directory(folder, error)) fail("cannot write {}: there is no folder {}", path, folder.string());
  if (::access(folder.c_str(), W_OK) != 0) fail("cannot write {}: {}", path, std::strerror(errno));
}

void make_folders(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail("cannot make the folder {}: {}", path, error.message());
}

std::string checksum(std::string_view bytes) { return fmt::format("{:016x}", hash64(bytes)); }

std::string file_checksum(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail("cannot read {}", path);
  Hasher hasher;
  std::string block(size_t(1) << 20, '\0');  // data files may be larger than memory
  while (file) {
    file.read(block.data(), std::streamsize(block.size()));
    hasher.add(std::string_view(block).substr(0, size_t(file.gcount())));
  }
  if (file.bad()) fail("cannot read {}", path);
  return fmt::format("{:016x}", hasher.finish());
}

}  // namespace netmend
