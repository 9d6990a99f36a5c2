// A model in one line.
#pragma once

#include <cstdint>
#include <string>

#include "session/session.h"

namespace netmend::evidence {

/// `lenet5.onnx  4 layers · 236 units · 107,786 weights`
std::string identity(const session::Session& session);
/// Inputs of a split, test or train; 0 when there is none.
int64_t inputs_of(session::Session& session, const std::string& split);

}  // namespace netmend::evidence
