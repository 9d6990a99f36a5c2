#include "dataset/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace netmend::dataset {
namespace {

/// Little-endian numbers out of bytes that are known to be there.
struct Fields {
  const uint8_t* at;
  uint64_t number(int64_t offset, int width) const {
    uint64_t value = 0;
    for (int i = width; i-- > 0;) value = value << 8 | at[offset + i];
    return value;
  }
  int64_t two(int64_t offset) const { return int64_t(number(offset, 2)); }
  int64_t four(int64_t offset) const { return int64_t(number(offset, 4)); }
};

struct Directory {
  int64_t begin = 0, size = 0;
};

[[noreturn]] void damaged(const Bytes& archive, const char* where) {
  fail("{} is not a complete ZIP archive: {}", archive.name(), where);
}

/// Reads a 64-bit number that must be a position or length within the archive.
int64_t within(const Bytes& archive, uint64_t value) {
  if (value > uint64_t(archive.size())) damaged(archive, "a member lies outside of it");
  return int64_t(value);
}

Directory find_directory(const Bytes& archive) {
  constexpr int64_t kEnd = 22, kLocator = 20, kEnd64 = 56;
  const int64_t tail = std::min<int64_t>(archive.size(), kEnd + 65535 + kLocator);
  std::vector<uint8_t> last(static_cast<size_t>(tail));
  archive.read(archive.size() - tail, tail, last.data());
  int64_t at = tail - kEnd;
  while (at >= 0 && std::memcmp(&last[size_t(at)], "PK\5\6", 4) != 0) --at;
  if (at < 0) damaged(archive, "its directory is missing");
  Fields end{&last[size_t(at)]};
  Directory directory{end.four(16), end.four(12)};
  if (at >= kLocator && std::memcmp(&last[size_t(at - kLocator)], "PK\6\7", 4) == 0) {
    int64_t place = within(archive, Fields{&last[size_t(at - kLocator)]}.number(8, 8));
    uint8_t wide[kEnd64];
    if (place > archive.size() - kEnd64) damaged(archive, "its 64-bit directory is cut short");
    archive.read(place, kEnd64, wide);
    if (std::memcmp(wide, "PK\6\6", 4) != 0) damaged(archive, "its 64-bit directory is missing");
    directory = {within(archive, Fields{wide}.number(48, 8)), within(archive, Fields{wide}.number(40, 8))};
  }
  if (directory.begin > archive.size() - directory.size) damaged(archive, "its directory is cut short");
  return directory;
}

/// Sizes and positions that do not fit 32 bits stand in an extra field, in this order, only those that did not fit.
void read_wide_sizes(const Bytes& archive, const uint8_t* extra, int64_t length, uint64_t& size, uint64_t& packed,
                     uint64_t& header) {
  for (int64_t at = 0; at + 4 <= length;) {
    Fields field{extra + at};
    int64_t end = at + 4 + field.two(2);
    if (end > length) return;
    at += 4;
    for (uint64_t* value : {&size, &packed, &header}) {
      if (field.two(0) != 1 || *value != 0xffffffff) continue;
      if (at + 8 > end) damaged(archive, "a 64-bit size is missing");
      *value = Fields{extra + at}.number(0, 8);
      at += 8;
    }
    at = end;
  }
}

}  // namespace

std::vector<ZipMember> zip_members(const Bytes& archive) {
  constexpr int64_t kEntry = 46;
  Directory directory = find_directory(archive);
  std::vector<uint8_t> entries(static_cast<size_t>(directory.size));
  archive.read(directory.begin, directory.size, entries.data());
  std::vector<ZipMember> members;
  for (int64_t at = 0; at + kEntry <= directory.size;) {
    Fields entry{&entries[size_t(at)]};
    if (std::memcmp(entry.at, "PK\1\2", 4) != 0) damaged(archive, "an entry of its directory is broken");
    const int64_t name = entry.two(28), extra = entry.two(30), comment = entry.two(32);
    if (name + extra + comment > directory.size - at - kEntry)
      damaged(archive, "an entry of its directory is cut short");
    uint64_t packed = entry.number(20, 4), size = entry.number(24, 4), header = entry.number(42, 4);
    read_wide_sizes(archive, entry.at + kEntry + name, extra, size, packed, header);
    ZipMember member;
    member.name.assign(reinterpret_cast<const char*>(entry.at + kEntry), size_t(name));
    member.header = within(archive, header);
    member.packed = within(archive, packed);
    if (size > uint64_t(1) << 50) damaged(archive, "a member claims an impossible size");
    member.size = int64_t(size);
    member.checksum = uint32_t(entry.four(16));
    member.method = int(entry.two(10));
    member.encrypted = entry.two(8) & 1;
    members.push_back(std::move(member));
    at += kEntry + name + extra + comment;
  }
  return members;
}

namespace {

void verify(const Bytes& content, const ZipMember& member, const std::string& name) {
  std::vector<uint8_t> scratch;
  uLong sum = crc32(0, nullptr, 0);
  for (int64_t at = 0; at < content.size(); at += 1 << 16) {
    int64_t piece = std::min<int64_t>(1 << 16, content.size() - at);
    sum = crc32(sum, content.view(at, piece, scratch), uInt(piece));
  }
  if (content.size() != member.size || uint32_t(sum) != member.checksum)
    fail("{} is damaged: its content does not match its checksum", name);
}

}  // namespace

BytesPtr zip_content(const BytesPtr& archive, const ZipMember& member) {
  constexpr int64_t kLocal = 30;
  const std::string name = archive->name() + "/" + member.name;
  if (member.encrypted) fail("{} is encrypted", name);
  uint8_t local[kLocal];
  if (member.header > archive->size() - kLocal) damaged(*archive, "a member lies outside of it");
  archive->read(member.header, kLocal, local);
  if (std::memcmp(local, "PK\3\4", 4) != 0) damaged(*archive, "a member does not begin where the directory says");
  const int64_t begin = member.header + kLocal + Fields{local}.two(26) + Fields{local}.two(28);
  if (begin > archive->size() - member.packed) damaged(*archive, "a member is cut short");
  if (member.method == 0) {
    BytesPtr content = part_of(archive, begin, member.packed, name);
    verify(*content, member, name);
    return content;
  }
  if (member.method != 8)
    fail("{} is compressed by method {}; netmend reads stored and deflated files", name, member.method);
  const int64_t limit = std::min(member.size, unpack_limit(member.packed));
  BytesPtr content = unpack(*part_of(archive, begin, member.packed), Packing::kDeflate, limit, name);
  verify(*content, member, name);
  return content;
}

}  // namespace netmend::dataset
