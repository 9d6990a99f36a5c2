// The ONNX project's backend tests: a folder per case, with a model, inputs and expected outputs.
#pragma once

#include <string>
#include <vector>

namespace netmend::studies {

struct ConformanceCase {
  std::string name, status, reason;  ///< passed, failed, unsupported
};

/// Folders of cases whose name contains `filter`, or the folder itself when it is one. Throws InputError.
std::vector<std::string> find_conformance_cases(const std::string& folder, const std::string& filter);
/// Never throws; a crash is a crash.
ConformanceCase run_conformance_case(const std::string& folder);

}  // namespace netmend::studies
