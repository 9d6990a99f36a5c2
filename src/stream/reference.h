// The outputs of the framework that trained a network, kept in one NPZ file (docs/formats.md), for comparing.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "dataset/array.h"

namespace netmend::stream {

/// One recorded tensor, inputs first. Read piece by piece: layers of a large network would not fit into memory.
struct Recorded {
  std::string name;
  dataset::Array array;
  /// Some inputs along axis 0: float64 stays, other reals become float32, whole numbers int64, bools bool.
  at::Tensor rows(int64_t first, int64_t count) const;
};

struct Reference {
  std::string path, framework;
  std::vector<int64_t> samples;  ///< positions in the data, one per input; empty when the file does not say
  std::vector<Recorded> inputs, outputs;
  std::vector<Recorded> layers;    ///< in order of execution
  std::vector<std::string> notes;  ///< what was left out and why
  int64_t count() const { return inputs.at(0).array.count(); }
};

/// Throws InputError that names file and member: not whole, another format, tensors of different numbers of inputs.
Reference read_reference(const std::string& path);

}  // namespace netmend::stream
