// Pass or fail against the limits of netmend.toml: every criterion judged in one pass (must_pass in a second one), and
// the three documents that a pipeline reads. No tensors: commands and other people's programs call it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/escape.h"
#include "compare/gate_limits.h"
#include "preflight/preflight.h"
#include "session/session.h"

namespace netmend::compare {

struct GateRequest {
  std::string against;  ///< an earlier model, a run folder of eval, baseline.json, or ""
  bool by_id = false;   ///< only inputs that both name
  bool strict = false;  ///< the worse end of each interval decides
};

struct GateReport {
  std::string title;  ///< `model.onnx on mnist:test, 10,000 inputs, against prod.onnx`
  std::string data;   ///< the spec
  bool strict = false;
  std::vector<Ruling> rulings;                ///< empty when there is a blocker
  std::optional<preflight::Blocker> blocker;  ///< why nothing could be judged
  int64_t inputs = 0;
  int64_t accepted = 0;  ///< wrong inputs that netmend.toml accepts as known
  Shell next;            ///< the command to look at what failed first; "" when all passed
  double seconds = 0;

  bool pass() const;
  int64_t failed() const;
};

/// Criteria of netmend.toml, checked against model and data before any work. Throws InputError that names the line.
std::vector<Criterion> gate_criteria(session::Session& session, const GateRequest& request);
/// Whether the blocker stops the gate: not when netmend.toml accepts it, today and as bad as it is.
bool stops_gate(session::Session& session, const preflight::Blocker& blocker);
/// A blocker: nothing was judged, and the gate does not pass.
GateReport blocked_gate(session::Session& session, const GateRequest& request, const preflight::Blocker& blocker);
/// Throws Interrupted: half a gate says nothing.
GateReport run_gate(session::Session& session, const std::vector<Criterion>& criteria, const GateRequest& request);

/// For programs, for a merge request, for a pipeline.
nlohmann::ordered_json gate_json(const GateReport& report);
std::string gate_markdown(const GateReport& report);
std::string gate_junit(const GateReport& report);

}  // namespace netmend::compare
