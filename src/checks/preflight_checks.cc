// What the preflight found, and whether a repair's search has seen these inputs.
#include <cctype>

#include "checks/observed.h"
#include "checks/results.h"
#include "checks/rows.h"
#include "session/repair_record.h"

namespace netmend::checks {

void check_preflight(Observed& seen, Results& out) {
  if (!seen.preflight) return;
  if (seen.preflight->blocker) out.add(preflight::finding_of(*seen.preflight->blocker, seen.session, "check"));
}

void check_search_overlap(Observed& seen, Results& out) {
  std::string overlap = session::seen_in_search(seen.session.graph(), *seen.session.test().data);
  if (!overlap.empty()) overlap[0] = char(std::toupper(overlap[0])), overlap += ".";
  if (!overlap.empty())
    out.add(findings::make("seen-in-search", "", seen.words(), {}, findings::Certainty::kConfirmed,
                           "the metric may be too optimistic", overlap));
}

}  // namespace netmend::checks
