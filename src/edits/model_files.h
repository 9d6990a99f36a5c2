// Edits and weights of models in files. No tensors: commands and other programs call it.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "edits/changes.h"

namespace netmend::edits {

struct AppliedEdits {
  int64_t edits = 0;
  std::set<std::string> units, parameters;
};
/// Writes `product`: the model with the edits of a file, or, to revert, without them. Throws InputError when the file
/// was made for another model.
AppliedEdits apply_file(const std::string& model, const std::string& edit_file, const std::string& product,
                        bool revert = false);

/// Two model files of one structure.
Difference compare_files(const std::string& before, const std::string& after);
/// Writes the edits that turn the first into the second. Returns how many there are.
int64_t write_edits_between(const std::string& before, const std::string& after, const std::string& product);

struct WrittenWeights {
  int64_t parameters = 0, values = 0;
};
/// All parameters of a model as an NPZ file, by name.
WrittenWeights write_weights(const std::string& model, const std::string& product);

}  // namespace netmend::edits
