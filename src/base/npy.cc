#include "base/npy.h"

#include <zlib.h>

#include "base/error.h"

namespace netmend {

std::string npy_header(std::string_view type, std::span<const int64_t> shape) {
  std::string sizes;
  for (int64_t size : shape) sizes += std::to_string(size) + (shape.size() == 1 ? "," : ", ");
  if (shape.size() > 1) sizes.resize(sizes.size() - 2);
  std::string dict = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, sizes);
  size_t total = (10 + dict.size() + 1 + 63) / 64 * 64;
  dict.resize(total - 11, ' ');
  dict += '\n';
  std::string header = "\x93NUMPY";
  header += '\x01';
  header += '\x00';
  header += char(dict.size() & 0xff);
  header += char(dict.size() >> 8);
  return header + dict;
}

namespace {
void put16(std::string& out, uint32_t v) { out += char(v), out += char(v >> 8); }
void put32(std::string& out, uint32_t v) { put16(out, v & 0xffff), put16(out, v >> 16); }
}  // namespace

void ZipWriter::add(const std::string& name, std::string_view content) {
  if (at_ + content.size() > 0xfff00000u) fail("an NPZ file of more than 4 GB");
  auto crc = uint32_t(crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()));
  members_.push_back({name, crc, uint32_t(content.size()), uint32_t(at_)});
  std::string header;
  put32(header, 0x04034b50), put16(header, 20), put16(header, 0), put16(header, 0), put32(header, 0x00210000);
  put32(header, crc), put32(header, uint32_t(content.size())), put32(header, uint32_t(content.size()));
  put16(header, uint32_t(name.size())), put16(header, 0);
  header += name;
  out_.write(header.data(), std::streamsize(header.size()));
  out_.write(content.data(), std::streamsize(content.size()));
  at_ += header.size() + content.size();
}

void ZipWriter::finish() {
  std::string directory;
  for (const Member& m : members_) {
    put32(directory, 0x02014b50), put16(directory, 20), put16(directory, 20), put16(directory, 0), put16(directory, 0);
    put32(directory, 0x00210000), put32(directory, m.crc), put32(directory, m.size), put32(directory, m.size);
    put16(directory, uint32_t(m.name.size())), put16(directory, 0), put16(directory, 0), put16(directory, 0);
    put16(directory, 0), put32(directory, 0), put32(directory, m.offset);
    directory += m.name;
  }
  auto size = uint32_t(directory.size()), count = uint32_t(members_.size());
  put32(directory, 0x06054b50), put16(directory, 0), put16(directory, 0), put16(directory, count),
      put16(directory, count);
  put32(directory, size), put32(directory, uint32_t(at_)), put16(directory, 0);
  out_.write(directory.data(), std::streamsize(directory.size()));
}

}  // namespace netmend
