#include "dataset/npz.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "dataset/npy.h"

namespace netmend::dataset {

std::vector<std::string> Npz::names() const {
  std::vector<std::string> names;
  for (const ZipMember& member : members_)
    if (member.name.ends_with(".npy")) names.push_back(member.name.substr(0, member.name.size() - 4));
  return names;
}

Npz::Npz(BytesPtr bytes) : bytes_(std::move(bytes)), members_(zip_members(*bytes_)) {
  for (size_t i = 0; i < members_.size(); ++i)
    if (!places_.emplace(members_[i].name, i).second)
      fail("{} holds {} twice: programs differ in which of the two they read", bytes_->name(), members_[i].name);
  if (names().empty()) fail("{} holds no arrays", bytes_->name());
}

int64_t Npz::unpacked_bytes() const {
  int64_t total = 0;
  for (const ZipMember& member : members_)
    if (member.method != 0) total += std::min(member.size, unpack_limit(member.packed));
  return total;
}

bool Npz::has(const std::string& name) const { return places_.count(name + ".npy") > 0; }

Array Npz::read(const std::string& name, bool may_be_empty) const { return read_npy(content(name), may_be_empty); }

BytesPtr Npz::content(const std::string& name) const {
  if (auto hit = places_.find(name + ".npy"); hit != places_.end()) return zip_content(bytes_, members_[hit->second]);
  fail("{} has no array '{}'{}: its arrays are {}", bytes_->name(), name, did_you_mean(name, names()),
       join(names(), ", "));
}

}  // namespace netmend::dataset
