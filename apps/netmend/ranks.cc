// A command that mpirun started several times: which of them may be, who of them talks, and how all end.
#include "netmend/ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "base/version.h"
#include "cluster/ranks.h"
#include "netmend/terminal.h"

namespace netmend::app {
namespace {

/// What a rank other than the first would tell people: kept here until it is known whether rank 0 says the same.
int unheard = -1, heard = -1;
/// What it writes: nobody needs it twice.
std::string own_folder;

std::string what_was_unheard() {
  std::string words(size_t(1) << 14, '\0');
  const ssize_t got = unheard < 0 ? 0 : pread(unheard, words.data(), words.size(), 0);
  words.resize(size_t(std::max<ssize_t>(got, 0)));
  return words.empty() ? "it ended without a word\n" : words;
}

/// Rank 0 talks and writes; the others work beside it, and what they would write goes into a folder that is removed.
void be_quiet(Common& common, const std::vector<std::string*>& products) {
  std::string folder = (std::filesystem::temp_directory_path() / "netmend-rank-XXXXXX").string();
  if (!mkdtemp(folder.data())) fail("cannot make a folder such as {}: {}", folder, std::strerror(errno));
  own_folder = folder;
  common.out = folder + "/run";
  for (std::string* path : products)
    if (!path->empty()) *path = folder + "/" + std::filesystem::path(*path).filename().string();
  unheard = memfd_create("netmend", MFD_CLOEXEC);
  heard = dup(STDERR_FILENO);
  const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(nowhere, STDOUT_FILENO);
  dup2(unheard >= 0 ? unheard : nowhere, STDERR_FILENO);
  close(nowhere);
}

}  // namespace

bool speaks() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (!rank) rank = std::getenv("PMIX_RANK");  // srun
  return !cluster::started_together() || !rank || std::string(rank) == "0";
}

/// mpirun -n N netmend …: those commands whose work is passes over the data; the others would do all of it N times.
void join_ranks(Common& common, const std::string& name, const std::vector<std::string*>& products) {
  const std::set<std::string> shared = {"eval", "coverage", "check", "locate", "explain", "stress"};
  if (!shared.contains(name)) {
    if (!speaks()) std::exit(2);
    throw InputError(
        fmt::format("{} cannot be shared by ranks: each would do all of it", name),
        fmt::format("Start it once, without mpirun. Ranks share {}; NETMEND_MPI=no lets each process run by "
                    "itself.",
                    join(std::vector<std::string>(shared.begin(), shared.end()), ", ")));
  }
  cluster::join();
  if (cluster::rank() > 0) be_quiet(common, products);
  std::vector<std::string> words(common.arguments.begin() + 1, common.arguments.end());
  cluster::agree("their command lines", fmt::format("{} {}", kVersion, json_text(Json(words))));
}

/// For those who want to know what sharing costs: the figures of docs/scale.md.
void tell_traffic(const Common& common) {
  if (cluster::size() == 1) return;
  const cluster::Traffic traffic = cluster::traffic();
  say(common, fmt::format("{} ranks: {} merged, {:.2f} s with waiting for the slowest", cluster::size(),
                          bytes_text(double(traffic.received)), traffic.seconds));
}

void leave_ranks(int status) {
  std::fflush(stdout);
  std::error_code none;
  if (!own_folder.empty()) std::filesystem::remove_all(own_folder, none);
  if (unheard >= 0) dup2(heard, STDERR_FILENO);
  cluster::leave(status, what_was_unheard);
}

}  // namespace netmend::app
