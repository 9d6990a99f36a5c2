// What commands share: flags to a request, the preflight's answer, one JSON document, lines for people.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "netmend/commands.h"
#include "preflight/preflight.h"
#include "session/session.h"

namespace netmend::app {

using Json = nlohmann::ordered_json;

/// One JSON document on stdout.
void print_json(const Json& json);
/// A line for people on stderr, unless --quiet.
void say(const Common& common, const std::string& line);

/// The flags as a session takes them.
session::Request request_of(const Common& common, const CaseOptions& options);

/// Do model and data belong together? Tells what was looked at unless the output is JSON. The exit status when the
/// command must stop: a blocker without --anyway, which is printed as JSON where that was asked for.
struct Examined {
  preflight::Preflight preflight;
  std::optional<int> stop;
};
Examined examine(const Common& common, const CaseOptions& options, session::Session& session, const std::string& verb);

/// `1 unit`, `1,204 units`
std::string counted(int64_t count, const std::string& what);

}  // namespace netmend::app
