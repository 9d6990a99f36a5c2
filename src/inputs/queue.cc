#include "inputs/queue.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"

namespace netmend::inputs {
namespace {

const std::string kName = "netmend-queue ", kMagic = kName + "2\n";
constexpr int64_t kLargest = int64_t(16) << 30;
constexpr int64_t kHead = 24;  ///< bytes before the content of a record
constexpr const char* kAnew = "Remove it to start over, or name another with --queue FILE.";

void put(std::string& out, int64_t number) { out.append(reinterpret_cast<const char*>(&number), sizeof number); }

int64_t hash_of_length(int64_t length, uint64_t chain) { return int64_t(hash64(&length, sizeof length, chain)); }

/// A record: length, the length's hash, the content's hash, content. Hashes go on from the record before, so that none
/// can be changed, left out or exchanged unnoticed.
std::string record(const std::string& content, uint64_t& chain) {
  std::string out;
  put(out, int64_t(content.size()));
  put(out, hash_of_length(int64_t(content.size()), chain));
  chain = hash64(content, chain);
  put(out, int64_t(chain));
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
    if (!std::all_of(entry.values.begin(), entry.values.end(), [](float x) { return std::isfinite(x); })) return false;
    reader.at += bytes;
    round.kept.push_back(std::move(entry));
  }
  return reader.good && reader.at == reader.end && round.failing >= 0 && round.failing <= round.tried &&
         int64_t(round.kept.size()) <= round.tried;
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

QueueFile::QueueFile(const std::string& path, const std::string& about, int64_t width)
    : path_(path), lock_(path + ".lock", path) {
  uint64_t chain = 0;
  const std::string head = kMagic + record(about, chain);
  int64_t good = 0;
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) {
    const std::string bytes = read_file(path, kLargest, FileRole::kOwn);
    if (bytes.size() >= head.size())
      good = load(bytes, about, width);
    else if (head.compare(0, bytes.size(), bytes) != 0)
      refuse_other(bytes);
  }
  if (good == 0) chain_ = chain;
  file_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) fail("cannot write {}: {}", path, std::strerror(errno));
  if (::ftruncate(file_, off_t(good)) != 0 || ::lseek(file_, 0, SEEK_END) < 0)
    fail("cannot write {}: {}", path, std::strerror(errno));
  if (good == 0) write_all(file_, head, path_);
}

QueueFile::~QueueFile() {
  if (file_ >= 0) ::close(file_);
}

void QueueFile::refuse_other(const std::string& bytes) const {
  if (!bytes.starts_with(kName) || bytes.starts_with(kMagic))
    throw InputError(fmt::format("{} is not a queue that netmend stress wrote", path_), kAnew);
  throw InputError(fmt::format("{} is a queue of version {}, but this netmend reads version 2", path_,
                               printable(trim(bytes.substr(kName.size(), 4)))),
                   "Continue with the netmend that began it, or remove it to start over.");
}

/// How much of the file is whole. Only what a process that was killed left at the end is passed over.
int64_t QueueFile::load(const std::string& bytes, const std::string& about, int64_t width) {
  if (!bytes.starts_with(kMagic)) refuse_other(bytes);
  auto damaged = [&](const std::string& where) {
    throw InputError(fmt::format("{} is damaged {}", path_, where), kAnew);
  };
  auto place = [&] {
    return rounds_.empty() ? std::string("at its beginning") : fmt::format("after round {}", rounds_.size());
  };
  Reader reader{bytes.data() + kMagic.size(), bytes.data() + bytes.size()};
  bool first = true;
  while (reader.end - reader.at >= kHead) {
    const char* begin = reader.at;
    const int64_t length = reader.number(), sum = reader.number(), hash = reader.number();
    if (sum != hash_of_length(length, chain_)) {
      if (std::all_of(begin, reader.end, [](char c) { return c == 0; })) return begin - bytes.data();
      damaged(place());
    }
    if (length < 0 || length > reader.end - reader.at) return first ? 0 : begin - bytes.data();
    const std::string content(reader.at, size_t(length));
    if (int64_t(hash64(content, chain_)) != hash) {
      // The last record may have been on its way to the disk when the machine stopped.
      if (!first && reader.at + length == reader.end) return begin - bytes.data();
      damaged(place());
    }
    if (first) {
      if (content != about)
        throw InputError(fmt::format("{} is the queue of another run (inputs, criteria, model or seed differ)", path_),
                         kAnew);
    } else {
      QueueRound round;
      if (!parse({reader.at, reader.at + length}, width, round)) damaged(place());
      rounds_.push_back(std::move(round));
    }
    chain_ = uint64_t(hash);
    first = false;
    reader.at += length;
  }
  if (first) damaged(place());
  return reader.at - bytes.data();
}

void QueueFile::append(const QueueRound& round) { write_all(file_, record(text_of(round), chain_), path_); }

}  // namespace netmend::inputs
