#include "base/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

namespace netmend {
namespace fs = std::filesystem;

namespace {

constexpr int64_t kSmallHoles = 64 << 20;  ///< bytes of a file that may be holes

/// One file, whatever it is called.
using FileId = std::pair<dev_t, ino_t>;

/// What this process read, and what it said it would replace. What it wrote itself is neither.
struct Ledger {
  std::mutex mutex;
  std::set<FileId> read;
  std::map<FileId, timespec> written;           ///< with their time: numbers of files that are gone are used again
  std::map<FileId, std::string> claimed;        ///< files that are there, and the flag that named them
  std::map<std::string, std::string> products;  ///< paths of all products, there or not
};

Ledger& ledger() {
  static Ledger one;
  return one;
}

std::string reason() { return std::strerror(errno ? errno : EIO); }

[[noreturn]] void both(const std::string& path, const std::string& flag,
                       const std::string& hint = "Name another file to write.") {
  throw InputError(fmt::format("{} is an input of this command and would be replaced ({})", path, flag), hint);
}

void note_read(const std::string& path, const struct stat& about) {
  const FileId id{about.st_dev, about.st_ino};
  std::lock_guard lock(ledger().mutex);
  if (auto own = ledger().written.find(id); own != ledger().written.end() &&
                                            own->second.tv_sec == about.st_mtim.tv_sec &&
                                            own->second.tv_nsec == about.st_mtim.tv_nsec)
    return;
  if (auto hit = ledger().claimed.find(id); hit != ledger().claimed.end()) both(path, hit->second);
  ledger().read.insert(id);
}

/// An output stream over a descriptor. It keeps errno of the first failure.
class DescriptorBuffer final : public std::streambuf {
 public:
  explicit DescriptorBuffer(int file) : file_(file), block_(size_t(1) << 16) {
    setp(block_.data(), block_.data() + block_.size());
  }
  int error() const { return error_; }

 private:
  int overflow(int c) override {
    if (sync() != 0) return traits_type::eof();
    if (c != traits_type::eof()) *pptr() = char(c), pbump(1);
    return 0;
  }
  int sync() override {
    const bool good = put(pbase(), pptr() - pbase());
    setp(block_.data(), block_.data() + block_.size());
    return good ? 0 : -1;
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    if (count < epptr() - pptr()) {
      std::memcpy(pptr(), text, size_t(count));
      pbump(int(count));
      return count;
    }
    return sync() == 0 && put(text, count) ? count : 0;
  }
  bool put(const char* text, std::streamsize count) {
    while (count > 0 && error_ == 0) {
      const ssize_t done = ::write(file_, text, size_t(count));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) error_ = errno;
      if (done > 0) text += done, count -= done;
    }
    return error_ == 0;
  }

  int file_, error_ = 0;
  std::vector<char> block_;
};

struct Closer {
  int file;
  ~Closer() {
    if (file >= 0) ::close(file);
  }
};

/// Where a chain of links ends, be something there or not. A path of /proc or /dev is not followed any further:
/// `/dev/stdout` is the stream that is open, not the file that it happens to lead to.
fs::path end_of_links(fs::path path) {
  for (int hop = 0; hop < 40; ++hop) {
    std::error_code error;
    const fs::path whole = fs::absolute(path, error).lexically_normal();
    if (whole.string().starts_with("/proc/") || whole.string().starts_with("/dev/fd/")) return whole;
    if (!fs::is_symlink(fs::symlink_status(path, error))) return path;
    const fs::path next = fs::read_symlink(path, error);
    if (error) return path;
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  fail("cannot write {}: too many links", path.string());
}

/// The descriptor that a path such as /proc/self/fd/1 means; -1 for other paths.
int descriptor_of(const fs::path& path) {
  int64_t number = -1;
  const std::string folder = path.parent_path().string();
  const bool own = folder == "/proc/self/fd" || folder == "/dev/fd" || folder == fmt::format("/proc/{}/fd", getpid());
  return own && parse_int(path.filename().string(), number) && number <= INT32_MAX ? int(number) : -1;
}

void produce_into(int file, const std::string& path, const std::function<void(std::ostream&)>& produce) {
  DescriptorBuffer buffer(file);
  std::ostream out(&buffer);
  produce(out);
  out.flush();
  if (buffer.error() != 0 || !out)
    fail("cannot write {}: {}", path, std::strerror(buffer.error() ? buffer.error() : EIO));
}

/// Devices, pipes and open descriptors stay what they are.
void write_in_place(const std::string& path, const fs::path& target,
                    const std::function<void(std::ostream&)>& produce) {
  const int open = descriptor_of(target);
  // A pipe that nobody reads would hold us up for ever.
  Closer out{open >= 0 ? ::dup(open) : ::open(target.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
  if (out.file < 0 && errno == ENXIO) fail("cannot write {}: it is a pipe or a device that nobody reads", path);
  if (out.file < 0) fail("cannot write {}: {}", path, reason());
  if (open < 0) ::fcntl(out.file, F_SETFL, ::fcntl(out.file, F_GETFL) & ~O_NONBLOCK);
  produce_into(out.file, path, produce);
}

void sync_folder(const fs::path& folder) {
  // A folder that cannot be opened or synced (some network file systems) is no reason to call the file unwritten.
  if (Closer open{::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)}; open.file >= 0)
    ::fsync(open.file);
}

/// A new file in the folder of `target` that gets its name when it is complete. Where the file system can, it has none
/// until then, so that a process that is killed leaves nothing.
class NewFile {
 public:
  NewFile(const std::string& path, const fs::path& target)
      : path_(path), target_(target), beside_(target.string() + ".part" + std::to_string(::getpid())) {
    const fs::path folder = target.parent_path().empty() ? "." : target.parent_path();
    file_ = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    named_ = file_ < 0;
    if (named_) file_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file_ < 0) fail("cannot write {}: {}", path_, reason());
  }
  ~NewFile() {
    if (file_ >= 0) ::close(file_);
    if (named_) ::unlink(beside_.c_str());
  }
  int file() const { return file_; }

  /// Takes the place of what was there. The new file keeps the old one's permissions.
  void take_place() {
    struct stat old {
    }, about{};
    const bool there = ::stat(target_.c_str(), &old) == 0;
    if (there) ::fchmod(file_, old.st_mode & 07777);
    if (::fsync(file_) != 0 || ::fstat(file_, &about) != 0) fail("cannot write {}: {}", path_, reason());
    if (!named_) {
      const std::string self = fmt::format("/proc/self/fd/{}", file_);
      ::unlink(beside_.c_str());
      if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, beside_.c_str(), AT_SYMLINK_FOLLOW) != 0)
        fail("cannot write {}: {}", path_, reason());
      named_ = true;
    }
    const int done = ::close(std::exchange(file_, -1));
    if (done != 0 || ::rename(beside_.c_str(), target_.c_str()) != 0) fail("cannot write {}: {}", path_, reason());
    named_ = false;
    sync_folder(target_.parent_path());
    std::lock_guard lock(ledger().mutex);
    ledger().written[{about.st_dev, about.st_ino}] = about.st_mtim;
    ledger().read.erase({about.st_dev, about.st_ino});
    if (there) ledger().claimed.erase({old.st_dev, old.st_ino});
  }

 private:
  std::string path_;
  fs::path target_;
  std::string beside_;
  int file_ = -1;
  bool named_ = false;
};

/// What processes that were killed left beside a product: `model.onnx.part1234`.
void remove_remains(const fs::path& target) {
  std::error_code error;
  const std::string start = target.filename().string() + ".part";
  const fs::path folder = target.parent_path().empty() ? "." : target.parent_path();
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    int64_t process = 0;
    if (!name.starts_with(start) || !parse_int(name.substr(start.size()), process) || process <= 0) continue;
    if (::kill(pid_t(process), 0) != 0 && errno == ESRCH) ::unlink(entry->path().c_str());
  }
}

}  // namespace

InputFile::InputFile(const std::string& path, FileRole role) : path_(path) {
  file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);  // a pipe without a writer would wait
  if (file_ < 0) fail("cannot read {}: {}", path, reason());
  struct stat about {};
  Closer closer{file_};
  if (::fstat(file_, &about) != 0) fail("cannot read {}: {}", path, reason());
  if (S_ISDIR(about.st_mode)) fail("cannot read {}: it is a folder", path);
  if (!S_ISREG(about.st_mode))
    throw InputError(fmt::format("cannot read {}: it is {}, not a regular file", path,
                                 S_ISFIFO(about.st_mode) ? "a pipe" : "a device or a socket"),
                     "Write it to a file first: files are read more than once and at any position.");
  size_ = int64_t(about.st_size);
  // A few bytes on the disk may claim any size, and whoever reads them all reads zeros for minutes.
  if (const int64_t held = int64_t(about.st_blocks) * 512; size_ > kSmallHoles && held < size_ / 1000)
    throw InputError(fmt::format("{} claims {} and holds {}: the rest are holes", path, bytes_text(double(size_)),
                                 bytes_text(double(held))),
                     "If these zeros are meant, copy the file with: cp --sparse=never");
  if (role == FileRole::kInput) note_read(path, about);
  closer.file = -1;
}

InputFile::~InputFile() {
  if (file_ >= 0) ::close(file_);
}

int InputFile::release() { return std::exchange(file_, -1); }

int64_t InputFile::read(int64_t at, int64_t count, char* into) const {
  int64_t have = 0;
  while (have < count) {
    const ssize_t got = ::pread(file_, into + have, size_t(count - have), off_t(at + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail("cannot read {}: {}", path_, reason());
    if (got == 0) break;
    have += got;
  }
  return have;
}

std::string read_file(const std::string& path, int64_t limit, FileRole role) {
  const InputFile file(path, role);
  if (file.size() > limit)
    fail("{} is too large: {}, at most {} are read", path, bytes_text(double(file.size())), bytes_text(double(limit)));
  std::string content;
  try {
    content.resize(size_t(file.size()));
  } catch (const std::bad_alloc&) {
    fail("{} is too large for the memory of this machine: {}", path, bytes_text(double(file.size())));
  }
  content.resize(size_t(file.read(0, file.size(), content.data())));
  // Files of /proc and /sys say that they are empty.
  for (std::string more(1 << 12, '\0'); file.size() == 0;) {
    const int64_t got = file.read(int64_t(content.size()), int64_t(more.size()), more.data());
    content.append(more, 0, size_t(got));
    if (int64_t(content.size()) > limit) fail("{} is too large: at most {} are read", path, bytes_text(double(limit)));
    if (got < int64_t(more.size())) break;
  }
  return content;
}

void write_file(const std::string& path, const std::function<void(std::ostream&)>& produce) {
  const fs::path target = end_of_links(path);
  std::error_code status;
  if (fs::is_directory(target, status)) fail("cannot write {}: it is a folder", path);
  if (descriptor_of(target) >= 0 || (fs::exists(target, status) && !fs::is_regular_file(target, status)))
    return write_in_place(path, target, produce);
  NewFile file(path, target);
  produce_into(file.file(), path, produce);
  file.take_place();
}

void write_file(const std::string& path, std::string_view content) {
  write_file(path, [&](std::ostream& out) { out.write(content.data(), std::streamsize(content.size())); });
}

void claim_product(const std::string& path, const std::string& flag) {
  if (path.empty()) throw InputError(fmt::format("{} was given an empty name", flag));
  const fs::path target = end_of_links(path);
  std::error_code error;
  const fs::path folder = fs::absolute(target, error).parent_path();
  if (fs::is_directory(target, error)) fail("cannot write {}: it is a folder", path);
  if (!fs::is_directory(folder, error)) fail("cannot write {}: there is no folder {}", path, folder.string());
  struct stat about {};
  const bool there = ::stat(target.c_str(), &about) == 0;
  if (there && !S_ISREG(about.st_mode)) return;  // devices and pipes hold nothing that could be lost
  if (descriptor_of(target) >= 0) return;
  if (::access(folder.c_str(), W_OK) != 0) fail("cannot write {}: {}", path, reason());
  remove_remains(target);
  const std::string whole = fs::weakly_canonical(target, error).string();
  std::lock_guard lock(ledger().mutex);
  const FileId id{about.st_dev, about.st_ino};
  if (there && ledger().read.count(id)) both(path, flag);
  auto [product, fresh] = ledger().products.emplace(whole, flag);
  if (!fresh && product->second != flag)
    throw InputError(fmt::format("{} and {} both name {}", product->second, flag, path),
                     "Give each a file of its own.");
  if (!there) return;
  auto [file, first] = ledger().claimed.emplace(id, flag);
  if (!first && file->second != flag)
    throw InputError(fmt::format("{} and {} both name {}", file->second, flag, path), "Give each a file of its own.");
}

namespace {

bool was_read(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return false;
  std::lock_guard lock(ledger().mutex);
  return ledger().read.count({about.st_dev, about.st_ino}) > 0;
}

}  // namespace

void refuse_input(const std::string& path) {
  if (was_read(path)) both(path, "a file of the run folder", "Name another folder with --out.");
}

std::string partial_name(const std::string& product) {
  const fs::path path(product);
  for (int number = 1;; ++number) {
    fs::path name = path.stem();
    name += number == 1 ? ".partial" : fmt::format(".partial{}", number);
    name += path.extension();
    if (const std::string partial = (path.parent_path() / name).string(); !was_read(partial)) return partial;
  }
}

bool make_folders(const std::string& path) {
  std::error_code error;
  const bool made = fs::create_directories(path, error);
  if (error) fail("cannot make the folder {}: {}", path, error.message());
  return made;
}

std::string checksum(std::string_view bytes) { return fmt::format("{:016x}", hash64(bytes)); }

std::string file_checksum(const std::string& path, FileRole role) {
  const InputFile file(path, role);
  Hasher hasher;
  std::string block(size_t(1) << 20, '\0');  // data files may be larger than memory
  for (int64_t at = 0;;) {
    const int64_t got = file.read(at, int64_t(block.size()), block.data());
    hasher.add(std::string_view(block).substr(0, size_t(got)));
    if (got < int64_t(block.size())) return fmt::format("{:016x}", hasher.finish());
    at += got;
  }
}

}  // namespace netmend
