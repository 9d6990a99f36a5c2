#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace netmend {

uint64_t hash64(const void* bytes, size_t size, uint64_t seed) { return XXH3_64bits_withSeed(bytes, size, seed); }

struct Hasher::Impl {
  XXH3_state_t state;
};

Hasher::Hasher() : impl_(std::make_unique<Impl>()) { XXH3_64bits_reset(&impl_->state); }
Hasher::~Hasher() = default;
void Hasher::add(std::string_view bytes) { XXH3_64bits_update(&impl_->state, bytes.data(), bytes.size()); }
uint64_t Hasher::finish() const { return XXH3_64bits_digest(&impl_->state); }

}  // namespace netmend
