#include "stream/state_file.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <istream>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "model/element.h"

namespace netmend::stream {
namespace {

const std::string kMagic = "netmend state\n";
constexpr int64_t kFormat = 2;
constexpr int64_t kSum = 8;  ///< the hash of all that stands before it

template <typename T>
void put_raw(std::ostream& out, const T& value) {
  out.write(reinterpret_cast<const char*>(&value), sizeof value);
}
template <typename T>
T get_raw(std::istream& in) {
  T value{};
  if (!in.read(reinterpret_cast<char*>(&value), sizeof value)) fail("the state file ends too early");
  return value;
}

/// The content without its hash, which must be right.
class StateBuffer final : public std::streambuf {
 public:
  StateBuffer(const std::string& path, FileRole role) : file_(path, role), block_(size_t(1) << 20) {
    setg(block_.data(), block_.data(), block_.data());
  }
  int64_t size() const { return std::max<int64_t>(0, file_.size() - kSum); }
  bool whole() {
    Hasher hasher;
    for (int64_t at = 0; at < size();) {
      const int64_t got = file_.read(at, std::min(size() - at, int64_t(block_.size())), block_.data());
      if (got <= 0) return false;
      hasher.add({block_.data(), size_t(got)});
      at += got;
    }
    uint64_t sum = 0;
    return file_.size() >= kSum && file_.read(size(), kSum, reinterpret_cast<char*>(&sum)) == kSum &&
           sum == hasher.finish();
  }

 private:
  int underflow() override {
    const int64_t got = file_.read(at_, std::min(size() - at_, int64_t(block_.size())), block_.data());
    at_ += got;
    setg(block_.data(), block_.data(), block_.data() + got);
    return got > 0 ? traits_type::to_int_type(*gptr()) : traits_type::eof();
  }
  pos_type seekoff(off_type by, std::ios_base::seekdir from, std::ios_base::openmode) override {
    const int64_t here = at_ - (egptr() - gptr()), to = by + (from == std::ios_base::beg   ? 0
                                                              : from == std::ios_base::cur ? here
                                                                                           : size());
    if (to < 0 || to > size()) return pos_type(off_type(-1));
    if (to != here) at_ = to, setg(block_.data(), block_.data(), block_.data());
    return pos_type(to);
  }
  pos_type seekpos(pos_type to, std::ios_base::openmode which) override {
    return seekoff(off_type(to), std::ios_base::beg, which);
  }

  InputFile file_;
  std::vector<char> block_;
  int64_t at_ = 0;  ///< behind the block
};

/// Hashes what passes through to another stream.
class HashingBuffer final : public std::streambuf {
 public:
  explicit HashingBuffer(std::ostream& out) : out_(out) {}
  uint64_t finish() const { return hasher_.finish(); }

 private:
  int overflow(int c) override {
    const char one = char(c);
    return xsputn(&one, 1) == 1 ? 0 : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    hasher_.add({text, size_t(count)});
    return out_.write(text, count) ? count : 0;
  }
  std::ostream& out_;
  Hasher hasher_;
};

StateFile read_header(std::istream& in) {
  std::string magic(kMagic.size(), '\0');
  if (!in.read(magic.data(), std::streamsize(magic.size())) || magic != kMagic) fail("not a state file of netmend");
  if (const int64_t format = get_int(in); format != kFormat)
    throw InputError(fmt::format("a state file of format {}, but this netmend reads format {}", format, kFormat),
                     "Make it again with this netmend.");
  StateFile file;
  file.observer = get_text(in);
  file.version = int(get_int(in));
  file.description = get_text(in);
  file.subject = get_text(in);
  file.chunks = get_int(in);
  return file;
}

template <typename Body>
auto with_file(const std::string& path, FileRole role, const Body& body) {
  StateBuffer buffer(path, role);
  std::istream in(&buffer);
  try {
    read_header(in);  // says first what is no state file, or one of another netmend
    if (!buffer.whole()) fail("the state file is damaged: its content does not match its checksum");
    in.seekg(0);
    return body(in, buffer.size());
  } catch (const InputError& error) {
    throw InputError(path + ": " + error.what(), error.hint());
  }
}

}  // namespace

void put(std::ostream& out, int64_t number) { put_raw(out, number); }
void put(std::ostream& out, double number) { put_raw(out, number); }
int64_t get_int(std::istream& in) { return get_raw<int64_t>(in); }
double get_double(std::istream& in) { return get_raw<double>(in); }

void put(std::ostream& out, const std::string& text) {
  put(out, int64_t(text.size()));
  out.write(text.data(), std::streamsize(text.size()));
}

std::string get_text(std::istream& in) {
  int64_t size = get_int(in);
  auto here = in.tellg();
  in.seekg(0, std::ios::end);
  int64_t left = int64_t(in.tellg() - here);
  in.seekg(here);
  if (size < 0 || size > left) fail("the state file is damaged");
  std::string text(size_t(size), '\0');
  if (!in.read(text.data(), size)) fail("the state file ends too early");
  return text;
}

void put(std::ostream& out, const at::Tensor& tensor) {
  model::Element type = model::element_of(tensor.scalar_type());
  put(out, int64_t(type));
  put(out, tensor.dim());
  for (int64_t size : tensor.sizes()) put(out, size);
  put(out, model::encode(type, tensor));
}

at::Tensor get_tensor(std::istream& in) {
  auto type = model::Element(get_int(in));
  int64_t rank = get_int(in);
  if (rank < 0 || rank > 64 || !model::supported(type)) fail("the state file is damaged");
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < rank; ++i) sizes.push_back(get_int(in));
  return model::decode(type, sizes, get_text(in));
}

void write_state(const std::string& path, const StateFile& file, const Observer& observer) {
  write_file(path, [&](std::ostream& file_out) {
    HashingBuffer hashing(file_out);
    std::ostream out(&hashing);
    out << kMagic;
    put(out, kFormat);
    put(out, observer.name());
    put(out, int64_t(observer.version()));
    put(out, file.description);
    put(out, file.subject);
    put(out, file.chunks);
    put(out, int64_t(file.collected.pieces.size()));
    for (const Piece& piece : file.collected.pieces) {
      put(out, piece.first_chunk);
      put(out, piece.chunks);
      piece.state->save(out);
    }
    if (!out) file_out.setstate(std::ios::badbit);
    put_raw(file_out, hashing.finish());
  });
}

StateFile read_state_header(const std::string& path, FileRole role) {
  return with_file(path, role, [](std::istream& in, int64_t size) {
    StateFile file = read_header(in);
    file.bytes = size;
    return file;
  });
}

StateFile read_state(const std::string& path, const Observer& observer, FileRole role) {
  return with_file(path, role, [&](std::istream& in, int64_t size) {
    StateFile file = read_header(in);
    if (file.observer != observer.name()) fail("a state of {}, expected one of {}", file.observer, observer.name());
    if (file.version != observer.version())
      fail("a state of {} in version {}, but this netmend reads version {}", file.observer, file.version,
           observer.version());
    file.bytes = size;
    const int64_t count = get_int(in);
    if (count < 0 || count > file.chunks) fail("the state file is damaged");
    for (int64_t i = 0; i < count; ++i) {
      Piece piece{get_int(in), 0, nullptr};
      piece.chunks = get_int(in);
      if (piece.first_chunk < 0 || piece.chunks < 1 || piece.chunks > file.chunks - piece.first_chunk)
        fail("the state file is damaged");
      piece.state = observer.fresh();
      piece.state->load(in);
      file.collected.pieces.push_back(std::move(piece));
    }
    return file;
  });
}

Collected join_states(std::vector<StateFile> files, const std::vector<std::string>& paths) {
  Collected whole;
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].subject != files[0].subject || files[i].chunks != files[0].chunks)
      fail("{} and {} are of different models or data", paths[0], paths[i]);
    for (Piece& piece : files[i].collected.pieces) whole.pieces.push_back(std::move(piece));
  }
  std::sort(whole.pieces.begin(), whole.pieces.end(),
            [](const Piece& a, const Piece& b) { return a.first_chunk < b.first_chunk; });
  int64_t next = 0;
  for (const Piece& piece : whole.pieces) {
    if (piece.first_chunk < next) fail("a part of the data is there twice");
    if (piece.first_chunk > next) break;
    next += piece.chunks;
  }
  if (next != (files.empty() ? 0 : files[0].chunks))
    fail("a shard is missing: these files do not cover the whole data");
  return whole;
}

}  // namespace netmend::stream
