#include "base/python_package.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/error.h"

namespace netmend {

std::string python_package_folder() {
  namespace fs = std::filesystem;
  std::error_code error;
  std::vector<fs::path> places;
  if (const char* named = std::getenv("NETMEND_PYTHON")) places.emplace_back(named);
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  if (!error) places.push_back(self.parent_path().parent_path() / "share" / "netmend" / "python");
  places.push_back(fs::path(__FILE__).parent_path().parent_path().parent_path() / "python");
  for (const fs::path& place : places)
    if (fs::is_regular_file(place / "netmend" / "__init__.py", error)) return fs::absolute(place, error).string();
  throw InputError("the Python package of netmend was not found",
                   "NETMEND_PYTHON names the folder that holds `netmend/`.");
}

}  // namespace netmend
