#include "netmend/installed_torch.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace netmend::app {
namespace {

constexpr size_t kMost = 1 << 16;  // version.py of PyTorch has some 300 bytes

std::string content_of(const std::string& path) {
  std::string content(kMost, '\0');
  std::FILE* file = std::fopen(path.c_str(), "re");
  content.resize(file ? std::fread(content.data(), 1, kMost, file) : 0);
  if (file) std::fclose(file);
  return content;
}

/// Digits and dots at the start: 2.11.0 of 2.11.0+cu130.
std::string number(const std::string& text) { return text.substr(0, text.find_first_not_of("0123456789.")); }

/// 2.11 of 2.11.0: what programs were built with fits any repair of the same version.
std::string series(const std::string& version) {
  const size_t dot = version.find('.');
  return dot == std::string::npos ? version : version.substr(0, version.find('.', dot + 1));
}

/// The version that the package in `torch` gives itself; empty when there is none.
std::string version_of(const std::string& torch) {
  const std::string text = content_of(torch + "/version.py"), key = "__version__ = '";
  const size_t at = text.find(key);
  return at == std::string::npos ? "" : number(text.substr(at + key.size(), 64));
}

/// For a terminal: names of folders may hold anything.
std::string printable(std::string text) {
  for (char& c : text)
    if ((unsigned char)c < 32 || c == 127) c = '?';
  return text;
}

bool refused(const std::string& wanted, const std::string& what) {
  std::fprintf(stderr,
               "error: This netmend needs an installed PyTorch %s, %s\n"
               "  pip install 'torch==%s.*', or install the netmend that was built for yours (./dev wheel --torch "
               "VERSION) or that "
               "brings its own LibTorch (./dev wheel).\n",
               wanted.c_str(), printable(what).c_str(), wanted.c_str());
  return false;
}

}  // namespace

bool use_installed_torch(const std::string& folder) {
  const std::string wanted = series(number(content_of(folder + "torch-version")));
  if (wanted.empty()) return true;
  const char* named = std::getenv("NETMEND_TORCH");
  if (named && !*named) return refused(wanted, "and the Python that started it has none");
  const std::string torch = named ? named : folder + "../../torch", found = version_of(torch);
  if (found.empty()) return refused(wanted, "and there is none in " + torch);
  if (series(found) != wanted) return refused(wanted, "but " + torch + " is " + found);
  const std::string libraries = torch + "/lib";
  if (access((libraries + "/libtorch_cpu.so").c_str(), R_OK) != 0)
    return refused(wanted, "but that in " + torch + " has no lib/libtorch_cpu.so");
  if (libraries.find_first_of(":;") != std::string::npos)
    return refused(wanted,
                   "and libraries cannot be loaded from a folder with a colon or a semicolon in its name: " + torch);
  const char* before = std::getenv("LD_LIBRARY_PATH");
  setenv("LD_LIBRARY_PATH", (libraries + (before && *before ? ":" + std::string(before) : "")).c_str(), 1);
  return true;
}

}  // namespace netmend::app
