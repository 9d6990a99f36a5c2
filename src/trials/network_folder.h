// Where SQLite must not be: its locks and its shared memory do not reach from one machine to another.
#pragma once

#include <string>

namespace netmend::trials {

/// The kind of a file system that other machines write to, as statfs() tells it ("NFS"); "" for any other.
std::string network_kind(long type);
/// Of the folder that a file lies in, or will.
std::string network_kind_at(const std::string& path);
/// Throws InputError that gives the reason.
void refuse_network_folder(const std::string& path);

}  // namespace netmend::trials
