// Reading and writing files. Everything we write goes beside its place first and is renamed when it is complete, so a
// full disk or a Ctrl-C leaves nothing half-written. Failures are InputErrors that name the file and the reason.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

namespace netmend {

/// The whole file. Throws InputError when it is missing, unreadable, or larger than `limit` bytes.
std::string read_file(const std::string& path, int64_t limit = int64_t(1) << 40);
/// Replaces the file by `content`, completely or not at all.
void write_file(const std::string& path, std::string_view content);
/// The same for content that is produced piece by piece.
void write_file(const std::string& path, const std::function<void(std::ostream&)>& produce);
/// Fails now, rather than after hours of work, when nothing could be written there.
void require_writable(const std::string& path);
void make_folders(const std::string& path);

/// 16 hex digits that identify content (not for security): names of cached and saved things.
std::string checksum(std::string_view bytes);
std::string file_checksum(const std::string& path);

}  // namespace netmend
