// The coverage criteria that made inputs are measured by: by name, as `netmend coverage` has them.
#pragma once

#include <string>
#include <vector>

#include "adequacy/choice.h"
#include "observers/coverage/profile.h"

namespace netmend::inputs {

/// Throws InputError: a criterion that needs a profile without one, one that is not counted input by input.
observers::Criteria::List make_criteria(const std::vector<adequacy::Wanted>& wanted, const observers::SpacePtr& space,
                                        const observers::Profile* profile, int64_t important);

}  // namespace netmend::inputs
