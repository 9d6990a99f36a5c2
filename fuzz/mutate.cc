// usage: netmend-mutate READER COUNT SEED FILE…: reads every file as it is and COUNT files that are made of them by
// changes at random, the same for the same seed. Needs no fuzzer, no sanitizer and no clang: a test like any other.
// Whatever it reads last lies in LAST (an environment variable names the file) when the program ends by a signal or an
// exception.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "base/random.h"
#include "base/text.h"
#include "executor/runtime.h"
#include "readers.h"

namespace netmend::fuzz {
namespace {

constexpr size_t kLargest = 1 << 16;

/// Words that stand in quotes, a line each, as libFuzzer wants them; `\\x` and two digits is a byte.
std::vector<std::string> dictionary(const std::string& reader) {
  std::vector<std::string> words;
  for (const std::string& line : split(read_file(seed_file("dictionaries/" + reader)), '\n')) {
    std::string word;
    for (size_t i = 1; i + 1 < line.size(); ++i)
      if (line.compare(i, 2, "\\x") == 0)
        word += char(std::stoi(line.substr(i + 2, 2), nullptr, 16)), i += 3;
      else
        word += line[i];
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

class Mutator {
 public:
  Mutator(std::vector<std::string> files, std::vector<std::string> words, uint64_t seed)
      : files_(std::move(files)), words_(std::move(words)), random_(seed) {}

  std::string next() {
    std::string file = pick(files_);
    for (uint64_t left = 1 + random_.below(random_.below(4) ? 3 : 12); left > 0; --left) change(file);
    if (file.size() > kLargest) file.resize(kLargest);
    return file;
  }

 private:
  const std::string& pick(const std::vector<std::string>& list) { return list[random_.below(list.size())]; }
  size_t place(const std::string& file) { return size_t(random_.below(file.size() + 1)); }

  void change(std::string& file) {
    const size_t at = place(file), left = file.size() - at,
                 some = size_t(random_.below(1 + std::min<size_t>(left, 64)));
    switch (random_.below(10)) {
      case 0:
      case 1:  // a bit
        if (left) file[at] = char(file[at] ^ 1 << random_.below(8));
        break;
      case 2:  // a byte that means something
        if (left) file[at] = "\x00\xff\x7f\x80 09\"[{}]\n"[random_.below(14)];
        break;
      case 3: {  // a number that claims much
        const int64_t numbers[] = {-1, INT64_MAX, INT64_MIN, 1 << 16, int64_t(1) << 40, 0, UINT32_MAX, INT32_MAX};
        const size_t bytes = size_t(1) << random_.below(4);
        if (left >= bytes) std::memcpy(file.data() + at, &numbers[random_.below(8)], bytes);
        break;
      }
      case 4:
        file.erase(at, some);
        break;
      case 5:
        file.insert(at, file.substr(place(file), some));
        break;
      case 6:  // a word of the format
        if (!words_.empty()) file.insert(at, pick(words_));
        break;
      case 7:
        if (!words_.empty()) {
          const std::string& word = pick(words_);
          file.replace(at, std::min(left, word.size()), word);
        }
        break;
      case 8:  // the rest of another file
        if (random_.below(4) == 0) file = file.substr(0, at) + pick(files_).substr(0, place(pick(files_)));
        break;
      default:  // the same many times: depth, length
        if (left && random_.below(8) == 0) file.insert(at, std::string(1 + random_.below(5000), file[at]));
    }
  }

  std::vector<std::string> files_, words_;
  Random random_;
};

/// Kept before it is read: nothing can be kept after a crash.
class Last {
 public:
  explicit Last(const char* path) : file_(path ? open(path, O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0644) : -1) {}
  void keep(const std::string& content) const {
    if (file_ >= 0 && (ftruncate(file_, 0) != 0 || pwrite(file_, content.data(), content.size(), 0) < 0)) std::abort();
  }

 private:
  int file_;
};

int run(const Reader& reader, int64_t count, uint64_t seed, std::vector<std::string> files) {
  using Clock = std::chrono::steady_clock;
  const Last last(std::getenv("LAST"));
  double slowest = 0;
  auto read = [&](const std::string& file) {
    last.keep(file);
    alarm(60);  // ends it by a signal
    const auto begin = Clock::now();
    read_any(reader, file);
    slowest = std::max(slowest, std::chrono::duration<double>(Clock::now() - begin).count());
  };
  const auto begin = Clock::now();
  for (const std::string& file : files) read(file);
  Mutator mutator(files, dictionary(reader.name), seed);
  for (int64_t i = 0; i < count; ++i) read(mutator.next());
  std::printf("%s,%zu,%lld,%.1f,%.3f\n", reader.name, files.size(), static_cast<long long>(count),
              std::chrono::duration<double>(Clock::now() - begin).count(), slowest);
  return 0;
}

}  // namespace
}  // namespace netmend::fuzz

int main(int argc, char** argv) {
  using namespace netmend::fuzz;
  const Reader* reader = argc > 4 ? find_reader(argv[1]) : nullptr;
  if (!reader) {
    std::fprintf(stderr, "usage: netmend-mutate READER COUNT SEED FILE…; readers:");
    for (const Reader& one : readers()) std::fprintf(stderr, " %s", one.name);
    std::fprintf(stderr, "\n");
    return 2;
  }
  netmend::executor::start_runtime(int64_t(256) << 20);
  std::vector<std::string> files;
  for (int i = 4; i < argc; ++i) files.push_back(netmend::read_file(argv[i]));
  return run(*reader, std::atoll(argv[2]), std::strtoull(argv[3], nullptr, 10), std::move(files));
}
