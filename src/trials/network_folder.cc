#include "trials/network_folder.h"

#include <mntent.h>
#include <sys/vfs.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "base/text.h"

namespace netmend::trials {
namespace {

constexpr unsigned long kFuse = 0x65735546;

/// Of file systems that run as programs the type says nothing, but the table of mounts tells which program it is.
std::string fuse_kind_at(const std::string& folder) {
  std::error_code none;
  const std::string path = std::filesystem::canonical(folder, none).string() + "/";
  std::unique_ptr<FILE, int (*)(FILE*)> mounts(setmntent("/proc/self/mounts", "r"), endmntent);
  std::string kind, longest;
  while (const mntent* one = mounts ? getmntent(mounts.get()) : nullptr) {
    std::string at = one->mnt_dir;
    if (!at.ends_with('/')) at += '/';
    if (path.starts_with(at) && at.size() >= longest.size()) longest = at, kind = one->mnt_type;
  }
  for (const char* name : {"sshfs", "glusterfs", "rclone", "s3fs", "goofys", "juicefs", "mfs", "ceph-fuse", "davfs2"})
    if (kind == std::string("fuse.") + name) return name;
  return "";
}

}  // namespace

std::string network_kind(long type) {
  struct Kind {
    unsigned long type;
    const char* name;
  };
  static constexpr Kind kKinds[] = {{0x6969, "NFS"},        {0x517B, "SMB"},        {0xFF534D42, "CIFS"},
                                    {0xFE534D42, "SMB"},    {0x0BD00BD0, "Lustre"}, {0x47504653, "GPFS"},
                                    {0x19830326, "BeeGFS"}, {0x00C36400, "Ceph"},   {0x5346414F, "AFS"},
                                    {0x6B414653, "AFS"},    {0x01161970, "GFS2"},   {0x7461636F, "OCFS2"},
                                    {0xAAD7AAEA, "PanFS"},  {0x73757245, "Coda"},   {0x20030528, "OrangeFS"}};
  for (const Kind& kind : kKinds)
    if ((static_cast<unsigned long>(type) & 0xFFFFFFFF) == kind.type) return kind.name;
  return "";
}

std::string network_kind_at(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  struct statfs about {};
  if (statfs(folder.empty() ? "." : folder.c_str(), &about) != 0) return "";
  if (static_cast<unsigned long>(about.f_type) == kFuse) return fuse_kind_at(folder.empty() ? "." : folder);
  return network_kind(long(about.f_type));
}

void refuse_network_folder(const std::string& path) {
  const std::string kind = network_kind_at(path);
  if (kind.empty()) return;
  throw InputError(
      fmt::format(
          "{} lies on a network file system ({}), where SQLite's locks do not hold between machines and a store "
          "can be damaged",
          printable(path), kind),
      "Give a folder on a local disk with --out, or a database that many machines share with --store postgresql://….");
}

}  // namespace netmend::trials
