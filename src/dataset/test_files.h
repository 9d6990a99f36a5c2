// Files that tests write: the formats by hand, whole or broken.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace netmend::dataset {

/// A folder that goes away with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "netmend-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string write(const std::string& name, std::string_view content) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + "/" + name).parent_path());
    write_file(path_ + "/" + name, content);
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

inline std::string error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const InputError& error) {
    return error.what() + std::string(" | ") + error.hint();
  }
  return "no error";
}

inline testing::AssertionResult mentions(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << text << "' does not mention '" << part << "'";
}

/// Big-endian, as IDX wants it.
inline std::string big(uint32_t value) { return {char(value >> 24), char(value >> 16), char(value >> 8), char(value)}; }
inline std::string little(uint64_t value, int width) {
  std::string out;
  for (int i = 0; i < width; ++i) out += char(value >> (8 * i));
  return out;
}

inline std::string idx_bytes(uint8_t type, const std::vector<uint32_t>& shape, const std::string& values) {
  std::string out = {0, 0, char(type), char(shape.size())};
  for (uint32_t size : shape) out += big(size);
  return out + values;
}

template <typename T>
std::string raw_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline std::string npy_bytes(const std::string& type, const std::string& shape, const std::string& values,
                             bool fortran = false, int version = 1) {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape + ", }\n";
  return std::string("\x93NUMPY") + char(version) + '\0' + little(header.size(), version == 1 ? 2 : 4) + header +
         values;
}

inline std::string gzipped(const std::string& content, int window = 15 + 16) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = uInt(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = uInt(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

struct ZipEntry {
  std::string name, content;
  bool deflated = false;
};

/// With `wide` the sizes stand in 64-bit fields, as NumPy writes them for large arrays.
inline std::string zip_bytes(const std::vector<ZipEntry>& entries, bool wide = false) {
  std::string out, directory;
  for (const ZipEntry& entry : entries) {
    std::string packed = entry.deflated ? gzipped(entry.content, -15) : entry.content;
    uLong sum = crc32(0, reinterpret_cast<const Bytef*>(entry.content.data()), uInt(entry.content.size()));
    std::string extra = wide ? little(1, 2) + little(24, 2) + little(entry.content.size(), 8) +
                                   little(packed.size(), 8) + little(out.size(), 8)
                             : "";
    std::string common = little(entry.deflated ? 8 : 0, 2) + little(0, 4) + little(sum, 4) +
                         (wide ? little(0xffffffff, 4) + little(0xffffffff, 4)
                               : little(packed.size(), 4) + little(entry.content.size(), 4)) +
                         little(entry.name.size(), 2);
    directory += "PK\1\2" + little(20, 2) + little(20, 2) + little(0, 2) + common + little(extra.size(), 2) +
                 little(0, 2) + little(0, 2) + little(0, 2) + little(0, 4) + little(wide ? 0xffffffff : out.size(), 4) +
                 entry.name + extra;
    out += "PK\3\4" + little(20, 2) + little(0, 2) + common + little(0, 2) + entry.name + packed;
  }
  uint64_t begin = out.size();
  out += directory;
  if (wide) {
    uint64_t end64 = out.size();
    out += "PK\6\6" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 4) + little(0, 4) +
           little(entries.size(), 8) + little(entries.size(), 8) + little(directory.size(), 8) + little(begin, 8);
    out += "PK\6\7" + little(0, 4) + little(end64, 8) + little(1, 4);
  }
  out += "PK\5\6" + little(0, 4) + little(entries.size(), 2) + little(entries.size(), 2) +
         little(wide ? 0xffffffff : directory.size(), 4) + little(wide ? 0xffffffff : begin, 4) + little(0, 2);
  return out;
}

}  // namespace netmend::dataset
