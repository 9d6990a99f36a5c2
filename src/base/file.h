// Reading and writing files. Only regular files are read. Everything we write goes beside its place first and is
// renamed when it is complete and on disk, so a full disk, a Ctrl-C or a power cut leaves nothing half-written.
// Failures are InputErrors that name the file and the reason.
//
// No file is both read as an input and replaced as a product of the same process, whatever names, links and hard links
// lead to it: a command says first what it will write (claim_product), and opening such a file for reading is refused.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

namespace netmend {

/// Whose file it is: an input of the user's, or one that we wrote earlier and go on from, such as a checkpoint.
enum class FileRole { kInput, kOwn };

/// A regular file that is open for reading.
class InputFile {
 public:
  /// Throws InputError when it is missing, unreadable, not a regular file, or going to be replaced.
  explicit InputFile(const std::string& path, FileRole role = FileRole::kInput);
  InputFile(const InputFile&) = delete;
  InputFile(InputFile&& other) noexcept : path_(std::move(other.path_)), size_(other.size_), file_(other.file_) {
    other.file_ = -1;
  }
  ~InputFile();

  int64_t size() const { return size_; }
  /// Bytes from `at` on, as many as are there up to `count`. Any thread may call.
  int64_t read(int64_t at, int64_t count, char* into) const;
  /// The descriptor, for the caller to close.
  int release();

 private:
  std::string path_;
  int64_t size_ = 0;
  int file_ = -1;
};

/// The whole file. Throws InputError as InputFile does, and when it is larger than `limit` bytes.
std::string read_file(const std::string& path, int64_t limit = int64_t(1) << 31, FileRole role = FileRole::kInput);

/// Replaces the file by `content`, completely or not at all. A link stays and what it leads to is replaced; devices and
/// pipes are written to.
void write_file(const std::string& path, std::string_view content);
/// The same for content that is produced piece by piece.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& produce);

/// Before any work: `path` will be written. `flag` is what named it, for messages. Throws InputError when nothing can
/// be written there, when it was read as an input, or when another product has the same place. What an earlier process
/// left beside it when it was killed is removed.
void claim_product(const std::string& path, const std::string& flag);
/// Throws InputError when this file was read as an input: it is about to be replaced.
void refuse_input(const std::string& path);

/// Where a product goes when Ctrl-C ended the work before it was whole: `adv.partial.npz`. What stands under a
/// product's own name is always whole.
std::string partial_name(const std::string& product);

/// Whether the last of them was not there before.
bool make_folders(const std::string& path);

/// 16 hex digits that identify content (not for security): names of cached and saved things.
std::string checksum(std::string_view bytes);
std::string file_checksum(const std::string& path, FileRole role = FileRole::kInput);

}  // namespace netmend
