// The second opinion: a forest of decision trees that was trained on records of planted faults
// (python -m netmend.study forest) and is read from its file.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace netmend::diagnosis {

class Forest {
 public:
  /// Throws InputError when the file is damaged, or was made for other features.
  explicit Forest(const JsonView& file);

  /// Kinds with their shares of the vote, most likely first; `none`: nothing is wrong. `features` by name, as
  /// features_of() gives them. Throws InputError when one that the forest asks for is missing.
  std::vector<std::pair<std::string, double>> vote(const std::vector<std::pair<std::string, double>>& features) const;

 private:
  struct Node {
    int32_t feature = -1;  ///< below 0: a leaf
    double threshold = 0;  ///< up to it to the left
    int32_t left = 0, right = 0;
    std::vector<std::pair<int32_t, double>> votes;  ///< of a leaf
  };
  std::vector<std::string> classes_, features_;
  std::vector<std::vector<Node>> trees_;
};

/// The forest that netmend ships with; nullptr where its file is not there.
const Forest* shipped_forest();

}  // namespace netmend::diagnosis
