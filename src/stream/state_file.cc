#include "stream/state_file.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "model/element.h"

namespace netmend::stream {
namespace {

const std::string kMagic = "netmend state\n";
constexpr int64_t kFormat = 1;

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

StateFile read_header(std::istream& in) {
  std::string magic(kMagic.size(), '\0');
  if (!in.read(magic.data(), std::streamsize(magic.size())) || magic != kMagic) fail("not a state file of netmend");
  int64_t format = get_int(in);
  if (format != kFormat) fail("a state file of format {}, this netmend reads format {}", format, kFormat);
  StateFile file;
  file.observer = get_text(in);
  file.version = int(get_int(in));
  file.description = get_text(in);
  file.subject = get_text(in);
  file.chunks = get_int(in);
  return file;
}

template <typename Body>
auto with_file(const std::string& path, const Body& body) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("cannot read {}", path);
  try {
    return body(in);
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
  write_file(path, [&](std::ostream& out) {
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
  });
}

StateFile read_state_header(const std::string& path) {
  return with_file(path, [](std::istream& in) { return read_header(in); });
}

StateFile read_state(const std::string& path, const Observer& observer) {
  return with_file(path, [&](std::istream& in) {
    StateFile file = read_header(in);
    if (file.observer != observer.name()) fail("a state of {}, expected one of {}", file.observer, observer.name());
    if (file.version != observer.version())
      fail("a state of {} in version {}, this netmend reads version {}", file.observer, file.version,
           observer.version());
    int64_t count = get_int(in);
    for (int64_t i = 0; i < count; ++i) {
      Piece piece{get_int(in), 0, nullptr};
      piece.chunks = get_int(in);
      if (piece.first_chunk < 0 || piece.chunks < 1) fail("the state file is damaged");
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
