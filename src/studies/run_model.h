// A model on tensors from files. No tensors here: commands call it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace netmend::studies {

struct RunRequest {
  std::string model, folder;
  std::vector<std::string> inputs;   ///< NAME=FILE.npy, one per input; the name may be left out where there is one
  std::vector<std::string> outputs;  ///< values to write; empty: the model's outputs
  bool float64 = false;
  std::string device = "cpu";
  /// OUTPUT=INPUT: a state. Inputs are then steps along their first axis, run one after the other, and each begins with
  /// what the step before made of the state.
  std::vector<std::string> carry;
  std::string sequences;  ///< NPY file, a number per step: where it changes, states begin anew; empty: one sequence
};
struct WrittenOutput {
  std::string name, file;
  std::vector<int64_t> shape;
};
/// Writes an NPY file per output into the folder, and per state what each step began with, under its input's name.
/// Throws InputError.
std::vector<WrittenOutput> run_model(const RunRequest& request);

}  // namespace netmend::studies
