// NPY headers and ZIP containers, as far as writing them: tables for NumPy without NumPy.
#pragma once

#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace netmend {

/// The header of a C-ordered NPY file; `type` as NumPy writes it: `<f4`, `<i8`, `|b1` …
std::string npy_header(std::string_view type, std::span<const int64_t> shape);

/// Writes members one after the other into a ZIP (NPZ) without compression; 4 GB at most.
class ZipWriter {
 public:
  explicit ZipWriter(std::ostream& out) : out_(out) {}
  void add(const std::string& name, std::string_view content);
  /// The directory at the end. Call once.
  void finish();

 private:
  struct Member {
    std::string name;
    uint32_t crc, size, offset;
  };
  std::ostream& out_;
  std::vector<Member> members_;
  uint64_t at_ = 0;
};

}  // namespace netmend
