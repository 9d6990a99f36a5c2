// Model → ONNX file. A graph that came from a file is written back into that file's own document: an unchanged one is
// copied byte for byte, a changed one differs in its changed constants and its metadata and in nothing else.
#pragma once

#include <map>
#include <string>

#include "model/graph.h"

namespace netmend::onnx {

/// Written beside and renamed. External data of the original is taken into the new file unless it would pass 2 GB.
void write_model(const model::Graph& graph, const std::string& path);

}  // namespace netmend::onnx
