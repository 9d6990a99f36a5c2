// Memory that is not there, or not allowed: never taken for data that cannot be read or a network that cannot be
// explained.
#pragma once

#include "base/error.h"

namespace netmend {

/// A tensor would pass the budget (the model or the batch is too large, or the file is hostile), or the machine has no
/// more.
class MemoryError : public InputError {
 public:
  using InputError::InputError;
};

}  // namespace netmend
