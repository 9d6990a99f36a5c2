#include "inputs/queue.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace netmend::inputs {
namespace {

constexpr char kMagic[] = "netmend-queue 1\n";
constexpr size_t kMagicSize = sizeof kMagic - 1;

void put(std::string& out, int64_t number) { out.append(reinterpret_cast<const char*>(&number), sizeof number); }

/// A record: length, checksum, content.
std::string record(const std::string& content) {
  std::string out;
  put(out, int64_t(content.size()));
  put(out, int64_t(crc32(0, reinterpret_cast<const Bytef*>(content.data()), uInt(content.size()))));
  return out + content;
}

/// Reads numbers and never beyond the end.
struct Reader {
  const char* at;
  const char* end;
  bool good = true;
  int64_t number() {
    int64_t value = 0;
    if (end - at < int64_t(sizeof value)) return good = false, 0;
    std::memcpy(&value, at, sizeof value);
    at += sizeof value;
    return value;
  }
  /// How many of something that takes `each` bytes.
  int64_t count(int64_t each) {
    int64_t value = number();
    if (value < 0 || value > (end - at) / each) good = false, value = 0;
    return value;
  }
};

std::string text_of(const QueueRound& round) {
  std::string out;
  put(out, int64_t(round.picked.size()));
  for (int64_t entry : round.picked) put(out, entry);
  put(out, round.tried), put(out, round.failing);
  put(out, int64_t(round.kept.size()));
  for (const QueueEntry& entry : round.kept) {
    for (int64_t number :
         {entry.root, entry.reference, entry.fresh, entry.after, int64_t(entry.failing), int64_t(entry.moved)})
      put(out, number);
    out.append(reinterpret_cast<const char*>(entry.values.data()), entry.values.size() * sizeof(float));
  }
  return out;
}

bool parse(Reader reader, int64_t width, QueueRound& round) {
  for (int64_t left = reader.count(8); left > 0; --left) round.picked.push_back(reader.number());
  round.tried = reader.number(), round.failing = reader.number();
  const int64_t bytes = width * int64_t(sizeof(float));
  for (int64_t left = reader.count(48 + bytes); left > 0; --left) {
    QueueEntry entry;
    entry.root = reader.number(), entry.reference = reader.number(), entry.fresh = reader.number();
    entry.after = reader.number(), entry.failing = reader.number() != 0, entry.moved = reader.number() != 0;
    entry.values.resize(size_t(width));
    if (reader.end - reader.at < bytes) return false;
    std::memcpy(entry.values.data(), reader.at, size_t(bytes));
    reader.at += bytes;
    round.kept.push_back(std::move(entry));
  }
  return reader.good && reader.at == reader.end;
}

void write_all(int file, const std::string& bytes, const std::string& path) {
  for (size_t done = 0; done < bytes.size();) {
    ssize_t wrote = ::write(file, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) fail("cannot write {}: {}", path, std::strerror(errno));
    done += size_t(wrote);
  }
  if (::fsync(file) != 0) fail("cannot write {}: {}", path, std::strerror(errno));
}

}  // namespace

QueueFile::QueueFile(const std::string& path, const std::string& about, int64_t width) : path_(path) {
  const std::string head = kMagic + record(about);
  size_t good = 0;
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    const std::string bytes = read_file(path);
    if (bytes.size() >= head.size()) {
      load(bytes, about, width);
      good = head.size();
      for (const QueueRound& round : rounds_) good += 16 + text_of(round).size();
    } else if (head.compare(0, bytes.size(), bytes) != 0) {
      fail("{} is not a queue that netmend stress wrote", path);
    }
  }
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) fail("cannot write {}: {}", path, std::strerror(errno));
  if (::ftruncate(file_, off_t(good)) != 0 || ::lseek(file_, 0, SEEK_END) < 0)
    fail("cannot write {}: {}", path, std::strerror(errno));
  if (good == 0) write_all(file_, head, path_);
}

QueueFile::~QueueFile() {
  if (file_ >= 0) ::close(file_);
}

void QueueFile::load(const std::string& bytes, const std::string& about, int64_t width) {
  if (bytes.compare(0, kMagicSize, kMagic) != 0) fail("{} is not a queue that netmend stress wrote", path_);
  Reader reader{bytes.data() + kMagicSize, bytes.data() + bytes.size()};
  bool first = true;
  while (reader.at < reader.end) {
    const int64_t length = reader.number(), sum = reader.number();
    if (!reader.good || length < 0 || length > reader.end - reader.at) break;
    if (sum != int64_t(crc32(0, reinterpret_cast<const Bytef*>(reader.at), uInt(length)))) break;
    if (first) {
      if (std::string(reader.at, size_t(length)) != about)
        throw InputError(fmt::format("{} is the queue of another run (inputs, criteria, model or seed differ)", path_),
                         "Remove it to start over, or name another with --queue FILE.");
    } else {
      QueueRound round;
      if (!parse({reader.at, reader.at + length}, width, round)) break;
      rounds_.push_back(std::move(round));
    }
    first = false;
    reader.at += length;
  }
  if (first) fail("{} is damaged at its beginning: remove it to start over", path_);
}

void QueueFile::append(const QueueRound& round) { write_all(file_, record(text_of(round)), path_); }

}  // namespace netmend::inputs
