// Bytes with random access, wherever they lie: in a file (read piece by piece, never mapped), in memory, unpacked into
// a temporary file, or as a part or a sequence of others. Any number of threads may read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace netmend::dataset {

class Bytes {
 public:
  virtual ~Bytes() = default;
  int64_t size() const { return size_; }
  const std::string& name() const { return name_; }  ///< for messages: the file
  /// Copies `count` bytes from position `at`. Throws InputError when the file has become shorter meanwhile.
  virtual void read(int64_t at, int64_t count, uint8_t* to) const = 0;
  /// Where those bytes lie when they are in memory, else null.
  virtual const uint8_t* memory(int64_t at, int64_t count) const { return nullptr; }
  /// The bytes, in place or copied into `scratch`; valid as long as both live.
  const uint8_t* view(int64_t at, int64_t count, std::vector<uint8_t>& scratch) const;

 protected:
  Bytes(std::string name, int64_t size) : name_(std::move(name)), size_(size) {}
  void check_range(int64_t at, int64_t count) const;

 private:
  std::string name_;
  int64_t size_;
};

using BytesPtr = std::shared_ptr<const Bytes>;

/// A file; gzip is recognised by its first bytes and unpacked once.
BytesPtr open_bytes(const std::string& path);
BytesPtr bytes_of(std::string name, std::vector<uint8_t> content);
BytesPtr part_of(BytesPtr whole, int64_t at, int64_t size, std::string name = "");
/// One after the other, under the name of the first.
BytesPtr joined(std::vector<BytesPtr> parts);

/// What a stranger's file of this size may unpack to: real data shrinks a few times, sparse data some dozens of times,
/// and what goes far beyond that is meant to fill the disk.
int64_t unpack_limit(int64_t packed);

enum class Packing { kGzip, kDeflate };
/// Unpacks into memory, or beyond 64 MB into a temporary file that has no name. `limit` is the most that is unpacked.
BytesPtr unpack(const Bytes& packed, Packing packing, int64_t limit, const std::string& name);

/// Takes bytes in order: in memory first, then in an unnamed temporary file in $TMPDIR.
class Spool {
 public:
  explicit Spool(std::string name);
  ~Spool();
  void write(const uint8_t* data, int64_t count);
  int64_t size() const { return size_; }
  BytesPtr finish();

 private:
  void spill();
  std::string name_;
  std::vector<uint8_t> memory_;
  int file_ = -1;
  int64_t size_ = 0;
};

}  // namespace netmend::dataset
