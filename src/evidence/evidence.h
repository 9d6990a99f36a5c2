// The evidence behind the findings, for the report: tables of inputs, classes, units and tests, with pictures of what
// is spoken of. The form is docs/formats.md's `evidence.json`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "checks/checkup.h"

namespace netmend::evidence {

struct EvidenceOptions {
  bool pictures = true;
  int64_t most_pictures = 900;
  int64_t most_rows = 4000;      ///< of a table, or sentences: what is shown instead of pictures
  int64_t most_bytes = 8 << 20;  ///< of pictures, rows and sentences, as they are embedded
  int64_t most_inputs = 12000;   ///< rows of the table: failures first
  int64_t most_units = 3000;
};

/// Everything but what is known outside: verdict, findings, run. `findings` say which inputs must be there.
nlohmann::ordered_json evidence(const checks::Checkup& checkup, const std::vector<findings::Finding>& findings,
                                const EvidenceOptions& options);

}  // namespace netmend::evidence
