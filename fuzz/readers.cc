// One program for all fuzzers: NETMEND_READER names the reader. Given files instead of folders it reads each once,
// which is how finds of the past are tested.
#include "readers.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"

namespace netmend::fuzz {
namespace {

/// Removed at the end of the process.
struct Folder {
  std::string path;
  Folder() {
    char name[] = "/dev/shm/netmend-fuzz-XXXXXX";
    if (!mkdtemp(name)) std::perror(name), std::exit(2);
    path = name;
  }
  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path, error);
  }
};

const std::string& folder() {
  static const Folder made;
  return made.path;
}

}  // namespace

std::vector<Reader> readers() {
  std::vector<Reader> all;
  for (const auto list : {data_readers(), text_readers(), own_readers(), run_readers(), network_readers()})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

const Reader* find_reader(std::string_view name) {
  static const std::vector<Reader> all = readers();
  for (const Reader& reader : all)
    if (name == reader.name) return &reader;
  return nullptr;
}

void read_any(const Reader& reader, Input input) {
  try {
    reader.read(input);
  } catch (const InputError&) {
  }
}

std::string scratch(const std::string& name, Input content) {
  const std::string path = folder() + "/" + name;
  const int file = open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || write(file, content.data(), content.size()) != ssize_t(content.size()))
    std::perror(path.c_str()), std::exit(2);
  close(file);
  return path;
}

std::string seed_file(const std::string& name) {
  const char* seeds = std::getenv("NETMEND_SEEDS");
  return std::string(seeds ? seeds : "build/release/fuzzing/seeds") + "/" + name;
}

}  // namespace netmend::fuzz
