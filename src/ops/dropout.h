// The masks of dropout, for those who drop by loops of their own.
#pragma once

#include <cstdint>

namespace netmend::ops {

/// 0 for a dropped element, 1/(1−ratio) for a kept one; depends on the seed and the element's number alone.
void fill_dropout_mask(float* mask, int64_t count, uint64_t seed, double ratio);

}  // namespace netmend::ops
