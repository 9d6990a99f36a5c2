// NPZ files: a ZIP archive with an NPY file an array.
#pragma once

#include <string>
#include <vector>

#include "dataset/array.h"
#include "dataset/zip.h"

namespace netmend::dataset {

class Npz {
 public:
  explicit Npz(BytesPtr bytes);
  std::vector<std::string> names() const;
  Array read(const std::string& name) const;

 private:
  BytesPtr bytes_;
  std::vector<ZipMember> members_;
};

}  // namespace netmend::dataset
