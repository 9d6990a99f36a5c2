// Checks of the user's own: programs that read the run folder and print findings as JSON. They run only when they are
// named on the command line or in the user's own configuration, never because a file beside a model names them.
#pragma once

#include <string>
#include <vector>

#include "checks/checkup.h"

namespace netmend::checks {

/// Those of the command line, then `checks.programs` of the user's own configuration
/// ($XDG_CONFIG_HOME/netmend/config.toml or ~/.config/netmend/config.toml).
std::vector<std::string> programs_to_run(const std::vector<std::string>& typed);

/// Runs each as `PROGRAM RUN_FOLDER`; it prints one document, {"findings": [{"kind", "where", "level", "title",
/// "evidence", …}]}. A finding's kind becomes `user:NAME/KIND` so that it cannot be taken for one of ours. What they
/// found joins the check-up. Throws InputError that names the program: it cannot be started, fails, runs longer than
/// ten minutes, or prints something else.
void run_programs(const std::vector<std::string>& programs, const std::string& run_folder, Checkup& checkup);

/// The findings of a document that a program printed; `name` is what errors and kinds call it.
std::vector<findings::Finding> parse_program_findings(const std::string& text, const std::string& name);

}  // namespace netmend::checks
