// Whether a network is a judge of labels: what it doubts may say more about the network than about them.
#pragma once

#include <string>

namespace netmend::session {
class Session;
}

namespace netmend::checks {

struct Observed;

/// Why the network's doubts count little, a sentence; empty where they count. Of a check, and of a command that has
/// measured the accuracy on the session's tests.
std::string poor_judge(Observed& seen);
std::string poor_judge(session::Session& session, double accuracy);

}  // namespace netmend::checks
