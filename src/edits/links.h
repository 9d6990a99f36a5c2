// Graph with its links, and constants followed through them; shared by the files of this folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "edits/places.h"

namespace netmend::edits {

/// Made once for a question; must not outlive the graph.
struct Links {
  explicit Links(const model::Graph& graph)
      : graph(graph), made_by(model::producers(graph)), used_by(model::consumers(graph)) {}
  const model::Graph& graph;
  std::vector<int> made_by;
  std::vector<std::vector<int>> used_by;
};

Seen see(const Links& links, model::ValueId id, int depth = 0);

/// `Conv /layer1/conv1/Conv`
std::string node_text(const model::Node& node);
/// Integers that are an attribute in old files and an input (a constant) in new ones.
std::optional<std::vector<int64_t>> integers(const model::Graph& graph, const model::Node& node, const char* attribute,
                                             size_t slot);
int64_t integer(const model::Node& node, const char* attribute, int64_t otherwise);

}  // namespace netmend::edits
