// The one content hash (XXH3, 64 bits): equal bytes give equal numbers on every machine. Not for secrets.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

namespace netmend {

uint64_t hash64(const void* bytes, size_t size, uint64_t seed = 0);
inline uint64_t hash64(std::string_view text, uint64_t seed = 0) { return hash64(text.data(), text.size(), seed); }

/// The same of bytes that come in pieces.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  void add(std::string_view bytes);
  uint64_t finish() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace netmend
