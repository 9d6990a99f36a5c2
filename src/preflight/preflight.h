// Are we running the user's model as it was meant? Asked before anything is said about the model. Where the answer is
// no, the usual ways of preparing data are tried on some labelled inputs, and the one that explains the gap is named;
// none is ever applied silently.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "findings/finding.h"
#include "stats/intervals.h"

namespace netmend::session {
class Session;
}

namespace netmend::preflight {

/// A set-up that was tried.
struct Tried {
  std::string about, words;  ///< `scale`, `scaled to 0…1`
  std::string line;          ///< to put into netmend.toml; "" when it cannot be said there
  stats::Estimate accuracy;  ///< or the mean error, for numbers
  bool runs = true;          ///< the model takes such inputs at all
};

struct Line {
  std::string text;
  bool holds = true;
};

/// Why nothing can be said about the model.
struct Blocker {
  std::string kind;   ///< a row of findings::kinds(): one of blocker_kinds()
  std::string where;  ///< `scale`
  std::string title;  ///< one sentence
  std::string evidence;
  std::string line;   ///< to put into netmend.toml, one line or two; may be empty
  std::string brief;  ///< the evidence in a few words, where a set-up was tried
  std::string id() const { return kind + ":" + where; }
};
/// Every kind that a blocker may be of.
const std::vector<std::string>& blocker_kinds();

struct Preflight {
  std::vector<Line> lines;   ///< what was looked at, in words
  std::vector<Tried> tried;  ///< as it is first, then the best
  std::optional<Blocker> blocker;
  std::string unknown;              ///< what could not be found out although nothing blocks, in words; may be empty
  std::vector<std::string> rivals;  ///< lines for netmend.toml of which one is probably right
  int64_t inputs = 0;               ///< that set-ups were tried on
  /// What else went through the network, for the record of traversals: tests, or another split that may be meant.
  struct Looked {
    std::string reason;
    int64_t inputs = 0;
    bool tests = true;
  };
  std::vector<Looked> looked;
};

/// Do the model and the test data of a session belong together? With what netmend.toml expects, saved outputs of the
/// original framework, and other splits that may have been meant. Throws InputError when the model cannot run on the
/// data at all.
Preflight examine(session::Session& session);
/// The blocker as a finding like any other; its next command is `netmend VERB` again.
findings::Finding finding_of(const Blocker& blocker, const session::Session& session, const std::string& verb);

}  // namespace netmend::preflight
