// What commands that open a model share: flags to a request, and the preflight.
#pragma once

#include <optional>
#include <string>

#include "netmend/terminal.h"
#include "preflight/preflight.h"
#include "session/session.h"

namespace netmend::app {

/// The flags as a session takes them.
session::Request request_of(const Common& common, const CaseOptions& options);

/// Do model and data belong together? Tells what was looked at unless the output is JSON. The exit status when the
/// command must stop: a blocker without --anyway, which is printed as JSON where that was asked for.
struct Examined {
  preflight::Preflight preflight;
  std::optional<int> stop;
};
Examined examine(const Common& common, const CaseOptions& options, session::Session& session, const std::string& verb);

}  // namespace netmend::app
