// What commands that open a model share: flags to a request, and the preflight.
#pragma once

#include <optional>
#include <string>

#include "netmend/terminal.h"
#include "preflight/preflight.h"
#include "session/evaluate.h"
#include "session/session.h"

namespace netmend::app {

/// The flags as a session takes them.
session::Request request_of(const Common& common, const CaseOptions& options);

/// `--device auto` before anything is opened: "auto" where the command decides it by its work, else a device, which is
/// told.
std::string settle_device(const Common& common);

/// Do model and data belong together? Tells what was looked at unless the output is JSON. The exit status when the
/// command must stop: a blocker without --anyway, which is printed as JSON where that was asked for.
struct Examined {
  preflight::Preflight preflight;
  std::optional<int> stop;
};
Examined examine(const Common& common, const CaseOptions& options, session::Session& session, const std::string& verb);

/// --shard: throws InputError for ranks of MPI, which share the data themselves, and without a file (-o) for the part.
void check_shard(const std::string& product);
/// Says that part `shard` is in its file, and which command puts the parts together.
void tell_shard(const Common& common, const session::Shard& done, const std::string& shard, const std::string& product,
                const std::string& merge);

}  // namespace netmend::app
