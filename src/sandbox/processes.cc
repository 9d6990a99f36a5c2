#include "sandbox/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/text.h"

namespace netmend::sandbox {
namespace {

namespace fs = std::filesystem;

std::string content(const std::string& path) {
  std::ifstream in(path);
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}

bool put(const std::string& path, const std::string& text) {
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool done = write(file, text.data(), text.size()) == ssize_t(text.size());
  close(file);
  return done;
}

int64_t number_in(const std::string& path) {
  int64_t value = 0;
  return parse_int(trim(content(path)), value) ? value : 0;
}

std::vector<int> all_processes() {
  std::vector<int> list;
  DIR* folder = opendir("/proc");
  if (!folder) return list;
  while (const dirent* entry = readdir(folder))
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0]))) list.push_back(std::atoi(entry->d_name));
  closedir(folder);
  return list;
}

}  // namespace

int64_t memory_of_tree(int root) {
  std::multimap<int, int> children;
  for (int pid : all_processes()) {
    const std::string stat = content("/proc/" + std::to_string(pid) + "/stat");
    const size_t end = stat.rfind(')');
    int parent = 0;
    char state = 0;
    if (end != std::string::npos && std::sscanf(stat.c_str() + end + 1, " %c %d", &state, &parent) == 2)
      children.emplace(parent, pid);
  }
  int64_t bytes = 0;
  std::vector<int> open = {root};
  while (!open.empty()) {
    const int pid = open.back();
    open.pop_back();
    long size = 0, resident = 0, shared = 0;
    if (std::sscanf(content("/proc/" + std::to_string(pid) + "/statm").c_str(), "%ld %ld %ld", &size, &resident,
                    &shared) == 3)
      bytes += int64_t(resident - shared) * sysconf(_SC_PAGESIZE);
    for (auto [at, end] = children.equal_range(pid); at != end; ++at) open.push_back(at->second);
  }
  return bytes;
}

int64_t processes_of(unsigned user) {
  int64_t count = 0;
  for (int pid : all_processes()) {
    struct stat about {};
    count += stat(("/proc/" + std::to_string(pid)).c_str(), &about) == 0 && about.st_uid == user;
  }
  return count;
}

void end_marked(const std::string& mark) {
  constexpr int kRounds = 100;
  for (int round = 0, quiet = 0; round < kRounds && quiet < 3; ++round) {
    bool any = false;
    for (int pid : all_processes()) {
      if (pid == getpid() || content("/proc/" + std::to_string(pid) + "/environ").find(mark) == std::string::npos)
        continue;
      kill(pid, SIGKILL);
      any = true;
    }
    quiet = any ? 0 : quiet + 1;
    usleep(10000);
  }
}

std::string own_group(const std::string& told) {
  for (const std::string& line : split(told, '\n'))
    if (line.starts_with("0::/") && line.find("/..") == std::string::npos)
      return "/sys/fs/cgroup" + (line == "0::/" ? std::string() : line.substr(3));
  return "";
}

ControlGroup::ControlGroup(const std::string& name, int64_t memory, int64_t processes) {
  // Version 1: a hierarchy for each kind; version 2: one for all, where its controllers are handed on.
  const std::string v1_memory = "/sys/fs/cgroup/memory/" + name, v1_pids = "/sys/fs/cgroup/pids/" + name;
  auto made = [&](const std::string& path) {
    if (mkdir(path.c_str(), 0755) != 0) return false;
    folders_.push_back(path);
    members_.push_back(path + "/cgroup.procs");
    return true;
  };
  if (fs::exists("/sys/fs/cgroup/memory/cgroup.procs")) {
    if (made(v1_memory)) {
      memory_ = v1_memory;
      put(v1_memory + "/memory.limit_in_bytes", std::to_string(memory));
      put(v1_memory + "/memory.memsw.limit_in_bytes", std::to_string(memory));
    }
    if (made(v1_pids)) put(v1_pids + "/pids.max", std::to_string(processes));
  } else if (fs::exists("/sys/fs/cgroup/cgroup.controllers")) {
    const std::string own = own_group(content("/proc/self/cgroup")), v2 = own + "/" + name;
    if (own.empty() || !made(v2)) return;
    // A group with processes in it may not always hand its controllers on: then limits of processes have to do.
    if (!fs::exists(v2 + "/memory.max")) put(own + "/cgroup.subtree_control", "+memory +pids");
    if (!fs::exists(v2 + "/memory.max")) {
      rmdir(v2.c_str());
      folders_.clear(), members_.clear();
      return;
    }
    memory_ = v2;
    put(v2 + "/memory.max", std::to_string(memory));
    put(v2 + "/memory.swap.max", "0");
    put(v2 + "/pids.max", std::to_string(processes));
  }
}

ControlGroup::~ControlGroup() {
  for (const std::string& folder : folders_)
    for (int attempt = 0; attempt < 50 && rmdir(folder.c_str()) != 0; ++attempt) usleep(5000);
}

void ControlGroup::enter() const {
  for (const std::string& file : members_) {
    const int out = open(file.c_str(), O_WRONLY | O_CLOEXEC);
    if (out < 0) continue;
    [[maybe_unused]] ssize_t wrote = write(out, "0", 1);
    close(out);
  }
}

bool ControlGroup::ran_out() const {
  if (memory_.empty()) return false;
  const std::string v2 = content(memory_ + "/memory.events");
  const size_t at = v2.find("oom_kill ");
  if (at != std::string::npos) return std::atoll(v2.c_str() + at + 9) > 0;
  const std::string v1 = content(memory_ + "/memory.oom_control");
  const size_t kills = v1.find("oom_kill ");
  return kills != std::string::npos && std::atoll(v1.c_str() + kills + 9) > 0;
}

int64_t ControlGroup::peak() const {
  if (memory_.empty()) return 0;
  const int64_t v1 = number_in(memory_ + "/memory.max_usage_in_bytes");
  return v1 > 0 ? v1 : number_in(memory_ + "/memory.peak");
}

}  // namespace netmend::sandbox
