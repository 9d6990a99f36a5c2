// check --against: what got worse than in a reference, as findings.
#pragma once

#include "netmend/check_show.h"

namespace netmend::app {

/// Adds findings to the view; returns what the report shows of it. Throws InputError when it cannot be compared.
Json compare_with(const Common& common, const CaseOptions& options, Case& about, const std::string& reference, CheckView& view);

}  // namespace netmend::app
