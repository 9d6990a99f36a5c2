#include "dataset/locate.h"

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"

namespace netmend::dataset {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string cache_folder() {
  std::string cache = variable("XDG_CACHE_HOME");
  if (cache.empty() && !variable("HOME").empty()) cache = variable("HOME") + "/.cache";
  return cache.empty() ? "" : cache + "/netmend/data";
}

}  // namespace

std::vector<std::string> data_folders(const std::string& name) {
  std::vector<std::string> folders;
  if (!variable("NETMEND_DATA").empty()) folders.push_back(variable("NETMEND_DATA") + "/" + name);
  if (!cache_folder().empty()) folders.push_back(cache_folder() + "/" + name);
  folders.push_back("/usr/share/datasets/" + name);  // where dataset-fashion-mnist installs
  return folders;
}

std::string file_in(const std::string& folder, const std::vector<std::string>& names) {
  std::error_code ignored;
  for (const std::string& name : names)
    for (const char* packed : {"", ".gz"})
      if (std::string path = folder + "/" + name + packed; std::filesystem::is_regular_file(path, ignored)) return path;
  return "";
}

void data_missing(const std::string& name, const std::string& wanted) {
  std::string hint = fmt::format("Put the files into {}/{}, or set NETMEND_DATA to a folder that holds {}/.",
                                 cache_folder().empty() ? "~/.cache/netmend/data" : cache_folder(), name, name);
  if (name == "fashion-mnist") hint += " Debian has them: apt install dataset-fashion-mnist.";
  throw InputError(
      fmt::format("{} is not on this machine: looked for {} in {}", name, wanted, join(data_folders(name), ", ")),
      hint);
}

}  // namespace netmend::dataset
