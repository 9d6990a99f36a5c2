// Other people's programs, started by us: their input and output untouched, signals passed on, the exit status handed
// back.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace netmend {

/// Runs `words` with `environment` set on top of ours and waits. With `output` its standard output goes there, 64 MB at
/// most. Returns its exit status, 128 + signal where one ended it. Throws InputError when it cannot be started.
/// Ctrl-C, SIGTERM and SIGHUP that reach us go on to it; when it has ended, `stopped` says whether one came, and
/// without `stopped` Interrupted is thrown.
int run_child(const std::vector<std::string>& words, const std::map<std::string, std::string>& environment,
              std::string* output = nullptr, bool* stopped = nullptr);

}  // namespace netmend
