// NPZ files: a ZIP archive with an NPY file per array.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "dataset/array.h"
#include "dataset/zip.h"

namespace netmend::dataset {

class Npz {
 public:
  explicit Npz(BytesPtr bytes);
  const std::string& name() const { return bytes_->name(); }
  std::vector<std::string> names() const;
  /// Memory that all arrays together take when they are read: those that are packed, unpacked.
  int64_t unpacked_bytes() const;
  bool has(const std::string& name) const;
  /// Throws InputError that suggests the nearest name.
  Array read(const std::string& name, bool may_be_empty = false) const;
  /// The member itself, an NPY file.
  BytesPtr content(const std::string& name) const;

 private:
  BytesPtr bytes_;
  std::vector<ZipMember> members_;
  std::unordered_map<std::string, size_t> places_;  ///< of the members
};

}  // namespace netmend::dataset
