// What can be seen in the text of training programs.
#pragma once

#include <string>
#include <vector>

#include "findings/finding.h"
#include "netmend/commands.h"

namespace netmend::app {

struct LintFinding {
  findings::Finding finding;
  std::string file;
  int64_t line;
};

/// Throws InputError when a file cannot be read or parsed, or Python is missing.
std::vector<LintFinding> lint_files(const LintOptions& options);

}  // namespace netmend::app
