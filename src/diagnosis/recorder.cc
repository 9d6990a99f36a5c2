#include "diagnosis/recorder.h"

#include <unistd.h>

#include <cstdlib>

#include "base/python_package.h"
#include "base/text.h"

namespace netmend::diagnosis {

std::map<std::string, std::string> recorder_environment(const std::string& folder,
                                                        const std::vector<std::string>& stop_when, bool probe) {
  static const std::string before = [] {
    const char* path = std::getenv("PYTHONPATH");
    return std::string(path ? path : "");
  }();
  const std::string package = python_package_folder();
  std::string path = package + "/netmend/watch/site";
  if (!before.empty()) path += ":" + before;
  return {{"PYTHONPATH", path + ":" + package},
          {"NETMEND_WATCH", folder},
          {"NETMEND_WATCH_PARENT", std::to_string(getpid())},
          {"NETMEND_WATCH_PROBE", probe ? "1" : ""},
          {"NETMEND_STOP_WHEN", join(stop_when, ",")}};
}

}  // namespace netmend::diagnosis
