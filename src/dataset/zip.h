// ZIP archives as far as NPZ files need them (APPNOTE.TXT of PKWARE): members stored or deflated, sizes of 64 bits.
#pragma once

#include <string>
#include <vector>

#include "dataset/bytes.h"

namespace netmend::dataset {

struct ZipMember {
  std::string name;
  int64_t header = 0;  ///< where its local header lies
  int64_t packed = 0, size = 0;
  uint32_t checksum = 0;
  int method = 0;
  bool encrypted = false;
};

std::vector<ZipMember> zip_members(const Bytes& archive);
/// The content of a member, checked against its checksum: a part of the archive when it is stored, else unpacked.
BytesPtr zip_content(const BytesPtr& archive, const ZipMember& member);

}  // namespace netmend::dataset
