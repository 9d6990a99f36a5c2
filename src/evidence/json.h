// Results as JSON; the same keys in every command and file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "observers/result.h"
#include "observers/task.h"
#include "preflight/preflight.h"

namespace netmend::evidence {

/// One document as text; bytes that are no UTF-8 are replaced.
std::string dump(const nlohmann::ordered_json& json, int indent = -1);

nlohmann::ordered_json preflight_json(const preflight::Preflight& preflight);
/// An evaluation: samples, task, metrics, per class, confusion. Without times.
nlohmann::ordered_json result_json(const observers::PredictionSettings& settings,
                                   const observers::PredictionResult& result);

}  // namespace netmend::evidence
