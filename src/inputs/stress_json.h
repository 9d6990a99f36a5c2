// What `stress` found, as the document that --json prints.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "inputs/stress.h"
#include "observers/task.h"

namespace netmend::inputs {

nlohmann::ordered_json to_json(const StressReport& report, const observers::PredictionSettings& task);
/// Methods that made something: those that coverage is told of.
std::vector<const MethodResult*> makers(const StressReport& report);

}  // namespace netmend::inputs
