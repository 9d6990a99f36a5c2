// The findings that a check-up left in its run folder.
#pragma once

#include <string>
#include <vector>

#include "findings/finding.h"

namespace netmend::session {

struct RunFindings {
  std::string folder;
  std::vector<findings::Finding> findings;
  bool partial = false;  ///< the check-up was stopped: what is not among them may be there all the same
  std::vector<std::string> ids() const;
  /// nullptr when there is none with this id.
  const findings::Finding* find(const std::string& id) const;
};

/// `run` is a folder, or the name of one in netmend-runs; "" for the newest that has findings. Throws InputError when
/// there is none, or when its file is damaged.
RunFindings read_findings(const std::string& run);
/// Whether there is anything to read without `run`.
bool has_findings();

}  // namespace netmend::session
