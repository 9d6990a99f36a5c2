#include "base/run_search.h"

#include <algorithm>
#include <filesystem>

namespace netmend {

std::string find_run_with(const std::string& file, const std::string& name) {
  std::error_code error;
  if (!name.empty()) {
    const std::filesystem::path run = std::filesystem::path("netmend-runs") / name;
    return std::filesystem::exists(name, error) || !std::filesystem::exists(run, error) ? name : run.string();
  }
  std::string best;
  for (std::filesystem::directory_iterator entry("netmend-runs", error), end; !error && entry != end;
       entry.increment(error))
    if (!entry->is_symlink(error) && std::filesystem::exists(entry->path() / file, error))
      best = std::max(best, entry->path().filename().string());
  return best.empty() ? best : "netmend-runs/" + best;
}

}  // namespace netmend
