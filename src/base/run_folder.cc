#include "base/run_folder.h"

#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/version.h"

namespace netmend {
namespace fs = std::filesystem;

namespace {
std::string time_text(const char* format) {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[64];
  std::strftime(text, sizeof text, format, &parts);
  return text;
}

/// A folder while it is worked in.
struct Claimed {
  Claimed(const std::string& name, bool is_new)
      : folder(name), made(is_new), lock(std::make_unique<Lock>(name + "/.lock", name)) {}
  ~Claimed() {
    lock.reset();
    if (made) rmdir(folder.c_str());  // where nothing was written: what is there stays
  }
  std::string folder;
  bool made;
  std::unique_ptr<Lock> lock;
};

}  // namespace

std::shared_ptr<void> claim_folder(const std::string& folder) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<Claimed>> held;
  std::lock_guard guard(mutex);
  const bool made = make_folders(folder);  // first: only a folder that is there has one name
  std::error_code error;
  std::weak_ptr<Claimed>& place = held[fs::canonical(folder, error).string()];
  std::shared_ptr<Claimed> claimed = place.lock();
  if (!claimed) place = claimed = std::make_shared<Claimed>(folder, made);
  return claimed;
}

RunFolder::RunFolder(const std::string& out, const std::string& command, std::vector<std::string> arguments)
    : path_(out), command_(command), started_(time_text("%Y-%m-%dT%H:%M:%S%z")), arguments_(std::move(arguments)) {
  if (!path_.empty()) {
    claimed_ = claim_folder(path_);
    std::error_code error;
    used_ = fs::exists(path_ + "/run.json", error);
    return;
  }
  std::string name = time_text("%Y%m%d-%H%M%S-") + command;
  make_folders("netmend-runs");
  std::string unique = name;
  std::error_code error;
  for (int copy = 2; !fs::create_directory("netmend-runs/" + unique, error); ++copy) {
    if (error) fail("cannot make the folder netmend-runs/{}: {}", unique, error.message());
    unique = fmt::format("{}-{}", name, copy);
  }
  path_ = "netmend-runs/" + unique;
  // A link cannot be replaced in place: make one beside it and rename.
  if (fs::exists(fs::symlink_status("netmend-runs/latest", error)) && !fs::is_symlink("netmend-runs/latest", error))
    return;  // a file of the user's
  fs::path beside = fmt::format("netmend-runs/.latest{}", getpid());
  fs::create_directory_symlink(unique, beside, error);
  if (!error) fs::rename(beside, "netmend-runs/latest", error);
}

std::string RunFolder::path() const {
  if (!place_.empty()) return place_;
  return used_ && was_interrupted() ? path_ + "/partial" : path_;
}

std::string RunFolder::file(const std::string& name) const {
  place_ = path();
  const std::string path = place_ + "/" + name;
  make_folders(place_);
  refuse_input(path);
  return path;
}

void RunFolder::note_file(const std::string& file) {
  std::error_code error;
  if (fs::is_regular_file(file, error)) files_[file] = file_checksum(file);
}

void RunFolder::add(const std::string& key, nlohmann::ordered_json value) {
  if (!more_) more_ = std::make_shared<nlohmann::ordered_json>(nlohmann::ordered_json::object());
  (*more_)[key] = std::move(value);
}

void RunFolder::finish(uint64_t seed, double seconds, int exit_status) {
  nlohmann::ordered_json run = {{"command", command_},
                                {"arguments", arguments_},
                                {"version", kVersion},
                                {"started", started_},
                                {"seconds", seconds},
                                {"seed", seed},
                                {"exit", was_interrupted() ? 130 : exit_status},
                                {"inputs", files_},
                                {"facts", facts_}};
  if (more_) run.update(*more_);
  write_file(file("run.json"), json_text(run, 2) + "\n");
}

}  // namespace netmend
