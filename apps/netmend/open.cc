// netmend open: shows the report of a run; draws it where it is missing or older than what it is drawn from.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "netmend/terminal.h"
#include "report/page.h"

namespace netmend::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRuns = "netmend-runs";

bool has_report(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / report::kEvidence, error) || fs::is_regular_file(folder / report::kPage, error);
}

/// Names of runs that have a report, newest first: names begin with the time.
std::vector<std::string> runs_with_report() {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(kRuns, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    if (name != "latest" && name.front() != '.' && has_report(entry->path())) names.push_back(name);
  }
  std::sort(names.rbegin(), names.rend());
  return names;
}

/// The newest run; where that has no report, the newest that has one.
std::string latest_run(const Common& common) {
  fs::path latest = fs::path(kRuns) / "latest";
  if (has_report(latest)) return latest.string();
  std::vector<std::string> names = runs_with_report();
  if (names.empty())
    throw InputError(fmt::format("no run in {} has a report", kRuns),
                     "netmend check writes one; or name its folder: netmend open DIR");
  std::error_code error;
  if (fs::exists(latest, error)) say(common, fmt::format("the latest run has no report; this is {}", names.front()));
  return (fs::path(kRuns) / names.front()).string();
}

/// A folder, a file in it, or the name of a run.
std::string named_run(const std::string& name) {
  std::error_code error;
  for (const fs::path& path : {fs::path(name), fs::path(kRuns) / name}) {
    if (fs::is_directory(path, error)) return path.string();
    if (fs::is_regular_file(path, error)) return path.has_parent_path() ? path.parent_path().string() : ".";
  }
  throw InputError(fmt::format("there is no run {}{}", name, did_you_mean(name, runs_with_report())),
                   "Give the folder of a run, or nothing for the latest.");
}

bool drawn(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_regular_file(folder / report::kPage, error)) return false;
  auto page = fs::last_write_time(folder / report::kPage, error);
  auto evidence = fs::last_write_time(folder / report::kEvidence, error);
  return error || evidence <= page;  // a page without evidence is all there is
}

/// Starts the desktop's browser and does not wait for it. False when there is no desktop, or nothing to start.
bool show(const std::string& page) {
  if (!std::getenv("DISPLAY") && !std::getenv("WAYLAND_DISPLAY")) return false;
  pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) {  // a grandchild that nobody waits for; only calls that are safe between fork and exec
    if (fork() != 0) _exit(0);
    setsid();
    if (!std::freopen("/dev/null", "w", stdout) || !std::freopen("/dev/null", "w", stderr)) _exit(1);
    execlp("xdg-open", "xdg-open", page.c_str(), static_cast<char*>(nullptr));
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return true;
}

}  // namespace

int open_report(const Common& common, const OpenOptions& options) {
  fs::path folder = options.run.empty() ? latest_run(common) : named_run(options.run);
  if (!drawn(folder)) report::write_page(folder.string());
  std::string page = (folder / report::kPage).string();
  if (common.json) {
    print_json({{"report", page}});
    return 0;
  }
  show(fs::absolute(page).string());
  print("{}\n", printable(page));
  return 0;
}

}  // namespace netmend::app
