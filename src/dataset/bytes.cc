#include "dataset/bytes.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace netmend::dataset {
namespace {

constexpr int64_t kMemoryLimit = int64_t(64) << 20;

class FileBytes : public Bytes {
 public:
  FileBytes(std::string name, int64_t size, int file) : Bytes(std::move(name), size), file_(file) {}
  ~FileBytes() override { ::close(file_); }
  void read(int64_t at, int64_t count, uint8_t* to) const override {
    check_range(at, count);
    while (count > 0) {
      ssize_t got = ::pread(file_, to, size_t(count), at);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("cannot read {}: {}", name(), std::strerror(errno));
      if (got == 0) fail("{} ended at byte {}: was it changed while in use?", name(), at);
      at += got, to += got, count -= got;
    }
  }

 private:
  int file_;
};

class MemoryBytes : public Bytes {
 public:
  MemoryBytes(std::string name, std::vector<uint8_t> content)
      : Bytes(std::move(name), int64_t(content.size())), content_(std::move(content)) {}
  void read(int64_t at, int64_t count, uint8_t* to) const override {
    check_range(at, count);
    if (count) std::memcpy(to, content_.data() + at, size_t(count));
  }
  const uint8_t* memory(int64_t at, int64_t count) const override {
    check_range(at, count);
    return content_.data() + at;
  }

 private:
  std::vector<uint8_t> content_;
};

class PartBytes : public Bytes {
 public:
  PartBytes(std::string name, BytesPtr whole, int64_t begin, int64_t size)
      : Bytes(std::move(name), size), whole_(std::move(whole)), begin_(begin) {}
  void read(int64_t at, int64_t count, uint8_t* to) const override {
    check_range(at, count);
    whole_->read(begin_ + at, count, to);
  }
  const uint8_t* memory(int64_t at, int64_t count) const override {
    check_range(at, count);
    return whole_->memory(begin_ + at, count);
  }

 private:
  BytesPtr whole_;
  int64_t begin_;
};

class JoinedBytes : public Bytes {
 public:
  JoinedBytes(std::vector<BytesPtr> parts, int64_t size)
      : Bytes(parts.front()->name(), size), parts_(std::move(parts)) {}
  void read(int64_t at, int64_t count, uint8_t* to) const override {
    check_range(at, count);
    for (const BytesPtr& part : parts_) {
      int64_t here = std::min(count, part->size() - at);
      if (here > 0) {
        part->read(at, here, to);
        to += here, count -= here, at += here;
      }
      at -= part->size();
    }
  }
  const uint8_t* memory(int64_t at, int64_t count) const override {
    for (const BytesPtr& part : parts_) {
      if (at >= 0 && at + count <= part->size()) return part->memory(at, count);
      at -= part->size();
    }
    return nullptr;
  }

 private:
  std::vector<BytesPtr> parts_;
};

/// zlib's state with an end.
struct Inflater {
  z_stream stream{};
  explicit Inflater(Packing packing) {
    int bits = packing == Packing::kGzip ? 15 + 16 : -15;
    check(inflateInit2(&stream, bits) == Z_OK, "zlib does not start");
  }
  ~Inflater() { inflateEnd(&stream); }
};

}  // namespace

const uint8_t* Bytes::view(int64_t at, int64_t count, std::vector<uint8_t>& scratch) const {
  if (const uint8_t* here = memory(at, count)) return here;
  check_range(at, count);
  if (int64_t(scratch.size()) < count) scratch.resize(size_t(count));
  read(at, count, scratch.data());
  return scratch.data();
}

void Bytes::check_range(int64_t at, int64_t count) const {
  check(at >= 0 && count >= 0 && count <= size_ && at <= size_ - count, "{}: bytes {}+{} of {} asked for", name_, at,
        count, size_);
}

BytesPtr bytes_of(std::string name, std::vector<uint8_t> content) {
  return std::make_shared<MemoryBytes>(std::move(name), std::move(content));
}

BytesPtr part_of(BytesPtr whole, int64_t at, int64_t size, std::string name) {
  check(at >= 0 && size >= 0 && size <= whole->size() && at <= whole->size() - size, "{}: no such part", whole->name());
  if (name.empty()) name = whole->name();
  return std::make_shared<PartBytes>(std::move(name), std::move(whole), at, size);
}

BytesPtr joined(std::vector<BytesPtr> parts) {
  if (parts.size() == 1) return parts[0];
  int64_t size = 0;
  for (const BytesPtr& part : parts) size += part->size();
  return std::make_shared<JoinedBytes>(std::move(parts), size);
}

BytesPtr open_bytes(const std::string& path) {
  InputFile file(path);
  const int64_t size = file.size();
  auto bytes = std::make_shared<FileBytes>(path, size, file.release());
  uint8_t magic[2] = {};
  if (bytes->size() >= 18) bytes->read(0, 2, magic);
  if (magic[0] != 0x1f || magic[1] != 0x8b) return bytes;
  return unpack(*bytes, Packing::kGzip, unpack_limit(bytes->size()), path);
}

int64_t unpack_limit(int64_t packed) { return std::max(int64_t(1) << 30, packed * 50); }

BytesPtr unpack(const Bytes& packed, Packing packing, int64_t limit, const std::string& name) {
  Inflater inflater(packing);
  z_stream& stream = inflater.stream;
  std::vector<uint8_t> out(1 << 16), scratch;
  Spool spool(name);
  int state = Z_OK;
  for (int64_t at = 0; at < packed.size();) {
    int64_t piece = std::min<int64_t>(1 << 16, packed.size() - at);
    stream.next_in = const_cast<uint8_t*>(packed.view(at, piece, scratch));
    stream.avail_in = uInt(piece);
    at += piece;
    do {
      if (state == Z_STREAM_END) {  // gzip files may be several, one after the other; zeros may follow the last
        if (stream.avail_in == 0) break;
        if (packing == Packing::kDeflate || stream.next_in[0] == 0) return spool.finish();
        inflateReset(&stream);
      }
      stream.next_out = out.data();
      stream.avail_out = uInt(out.size());
      state = inflate(&stream, Z_NO_FLUSH);
      if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
        fail("{} is damaged: it cannot be unpacked ({})", name, stream.msg ? stream.msg : "bad data");
      spool.write(out.data(), int64_t(out.size() - stream.avail_out));
      if (spool.size() > limit)
        throw InputError(limit < unpack_limit(packed.size())
                             ? fmt::format("{} is damaged: it unpacks to more than the {} that it claims", name,
                                           bytes_text(double(limit)))
                             : fmt::format("{} unpacks from {} to more than {}: this may be a ZIP bomb", name,
                                           bytes_text(double(packed.size())), bytes_text(double(limit))),
                         "If that is intended, unpack it first and give the unpacked file.");
    } while (stream.avail_in > 0 || stream.avail_out == 0);
  }
  if (state != Z_STREAM_END) fail("{} is cut short: its compressed data ends too early", name);
  return spool.finish();
}

Spool::Spool(std::string name) : name_(std::move(name)) {}

Spool::~Spool() {
  if (file_ >= 0) ::close(file_);
}

void Spool::spill() {
  const char* folder = std::getenv("TMPDIR");
  std::string path = fmt::format("{}/netmend-XXXXXX", folder && *folder ? folder : "/tmp");
  file_ = ::mkostemp(path.data(), O_CLOEXEC);
  if (file_ < 0) fail("cannot unpack {} into {}: {}", name_, path, std::strerror(errno));
  ::unlink(path.c_str());
  std::vector<uint8_t> held = std::move(memory_);
  memory_ = {};
  size_ = 0;
  write(held.data(), int64_t(held.size()));
}

void Spool::write(const uint8_t* data, int64_t count) {
  if (file_ < 0 && size_ + count > kMemoryLimit) spill();
  if (file_ < 0) {
    memory_.insert(memory_.end(), data, data + count);
    size_ += count;
    return;
  }
  while (count > 0) {
    ssize_t done = ::write(file_, data, size_t(count));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0)
      throw InputError(fmt::format("cannot unpack {}: {}", name_, std::strerror(errno)),
                       "Set TMPDIR to a folder with more free space.");
    data += done, count -= done, size_ += done;
  }
}

BytesPtr Spool::finish() {
  if (file_ < 0) {
    memory_.shrink_to_fit();
    return bytes_of(name_, std::move(memory_));
  }
  return std::make_shared<FileBytes>(name_, size_, std::exchange(file_, -1));
}

}  // namespace netmend::dataset
