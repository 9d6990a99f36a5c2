// What can be seen in the text of training programs, without running them. Python's own parser reads them
// (python/netmend/lint.py); levels, words and SARIF are ours.
#pragma once

#include <string>
#include <vector>

#include "diagnosis/diagnose.h"
#include "findings/finding.h"

namespace netmend::diagnosis {

struct LintFinding {
  findings::Finding finding;
  std::string file;
  int64_t line;
};

/// `python` is the interpreter that parses the programs. Throws InputError when a file cannot be read or parsed, or
/// Python is missing.
std::vector<LintFinding> lint_files(const std::vector<std::string>& programs, const std::string& python);

/// Where the programs of a command line ended before they trained, their text is all there is: adds what it shows.
void add_from_text(Diagnosis& found, const std::vector<std::string>& command, const std::string& python);

/// The findings as a SARIF document, for code hosts.
std::string lint_sarif(const std::vector<LintFinding>& all);

}  // namespace netmend::diagnosis
