// A folder of its own that a test works in; it is the working directory while it lives.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace netmend::session {

struct FolderForTest {
  std::filesystem::path before = std::filesystem::current_path(), path;
  FolderForTest() {
    std::string name = (std::filesystem::temp_directory_path() / "netmend-test-XXXXXX").string();
    path = mkdtemp(name.data());
    std::filesystem::current_path(path);
  }
  ~FolderForTest() {
    std::filesystem::current_path(before);
    std::filesystem::remove_all(path);
  }
  void write(const std::string& file, const std::string& text) const { std::ofstream(path / file) << text; }
};

}  // namespace netmend::session
