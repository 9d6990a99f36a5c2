#pragma once

#include <cstdint>

namespace netmend::localise {

/// How much measures that are made of mutants look at.
struct MutantOptions {
  int64_t inputs = 1024;  ///< sampled evenly from those on either side
  int64_t most = 4096;    ///< mutants in all; beyond it units get fewer of the eight each
};

}  // namespace netmend::localise
