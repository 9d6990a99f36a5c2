// How sensitive a mutation score is: by how much it falls from a strong set of tests to a weak one. MuFF's inhibitors
// against DeepMutation's and DeepMutation++'s operators, on the same trainings of the same networks.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "studies/study_runs.h"

namespace netmend::studies {

/// For the first two of the request's networks that are named architectures; five trainings of each. A row per network.
nlohmann::ordered_json run_sensitivity(const StudyContext& context, const ScoresRequest& request);
/// As Markdown; "" for no rows.
std::string sensitivity_text(const nlohmann::ordered_json& rows);

}  // namespace netmend::studies
