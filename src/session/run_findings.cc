#include "session/run_findings.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/json.h"

namespace netmend::session {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRuns = "netmend-runs";

bool holds_findings(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "findings.json", error);
}

/// The newest run with findings, whatever ran since; names begin with the time.
std::string newest() {
  if (holds_findings(fs::path(kRuns) / "latest")) return (fs::path(kRuns) / "latest").string();
  std::string best;
  std::error_code error;
  for (fs::directory_iterator entry(kRuns, error), end; !error && entry != end; entry.increment(error))
    if (holds_findings(entry->path())) best = std::max(best, entry->path().filename().string());
  return best.empty() ? "" : (fs::path(kRuns) / best).string();
}

}  // namespace

std::vector<std::string> RunFindings::ids() const {
  std::vector<std::string> all;
  for (const findings::Finding& finding : findings) all.push_back(finding.id());
  return all;
}

const findings::Finding* RunFindings::find(const std::string& id) const {
  for (const findings::Finding& finding : findings)
    if (finding.id() == id || std::count(finding.related.begin(), finding.related.end(), id)) return &finding;
  return nullptr;
}

bool has_findings() { return !newest().empty(); }

RunFindings read_findings(const std::string& run) {
  RunFindings found;
  found.folder = run.empty() ? newest() : run;
  if (!run.empty() && !holds_findings(run) && holds_findings(fs::path(kRuns) / run))
    found.folder = (fs::path(kRuns) / run).string();
  if (found.folder.empty())
    throw InputError(fmt::format("no run in {} has findings", kRuns),
                     "netmend check writes them; --run DIR names another run folder.");
  if (!holds_findings(found.folder))
    throw InputError(fmt::format("{} holds no findings.json", found.folder),
                     "Give the run folder of a netmend check, or leave --run out for the latest.");
  const std::string path = found.folder + "/findings.json";
  const JsonDocument document = read_json(path, {}, "Run netmend check again.");
  const JsonView top = document.top();
  if (!top.has("findings"))
    throw InputError(fmt::format("{} is not a findings.json that netmend wrote", path), "Run netmend check again.");
  found.partial = top.has("partial") && top.at("partial").truth();
  // Those that were accepted stand apart, where a run knows of any.
  for (const char* part : {"findings", "accepted"}) {
    if (!top.has(part)) continue;
    const JsonView list = top.at(part);
    for (size_t i = 0; i < list.size(); ++i)
      if (list.at(i).has("kind")) found.findings.push_back(findings::finding_from_json(list.at(i)));
  }
  return found;
}

}  // namespace netmend::session
