// A process that works on a store of trials: for the bench and the tests of stores. Its trials are short and their
// results follow from their keys, so that every result can be checked.
//   trials-worker STORE --trials N [--part N] [--threads N] [--seconds S] [--lease S] [--log FILE] [--settings TEXT]
//   trials-worker STORE --trials N --hold N     leases N trials, says so, and keeps them until it is ended
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>

#include "base/error.h"
#include "base/pool.h"
#include "trials/parts.h"

namespace {

using namespace netmend;

std::string answer_to(const std::string& key) {
  return fmt::format("{{\"trial\": \"{}\", \"twice\": \"{}{}\"}}", key, key, key);
}

/// One line at once, so that it is whole or not there.
void append(int log, const std::string& key) {
  const std::string line = fmt::format("{}\n", key);
  if (log >= 0 && write(log, line.data(), line.size()) != ssize_t(line.size())) std::abort();
}

int work(const std::string& place, std::map<std::string, std::string> words) {
  auto number = [&](const std::string& name, double usual) {
    return words.count(name) ? std::atof(words[name].c_str()) : usual;
  };
  const auto trials = int64_t(number("--trials", 1000)), parts = int64_t(number("--part", 1));
  trials::Store store(place, "bench, " + (words.count("--settings") ? words["--settings"] : "usual"), 1,
                      number("--lease", trials::Store::kLease));
  std::vector<trials::Part> all;
  const double pause = number("--seconds", 0);
  for (int64_t part = 0; part < parts; ++part) {
    trials::Part one{fmt::format("part {}", part), {}, [pause]() -> trials::RunTrial {
                       return [pause](const std::string& key) {
                         if (pause > 0) std::this_thread::sleep_for(std::chrono::duration<double>(pause));
                         return answer_to(key);
                       };
                     }};
    for (int64_t i = part; i < trials; i += parts) one.keys.push_back(fmt::format("trial {:08}", i));
    all.push_back(std::move(one));
  }
  if (words.count("--hold")) {
    store.plan(all[0].name, all[0].keys);
    const auto held = store.lease(all[0].name, int64_t(number("--hold", 1)));
    std::printf("holds %zu\n", held.size());
    std::fflush(stdout);
    while (!interrupted()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return 0;
  }
  const int log = words.count("--log") ? open(words["--log"].c_str(), O_WRONLY | O_APPEND | O_CREAT, 0644) : -1;
  int64_t done = 0;
  trials::PartsOptions options{int(number("--threads", 1)), {}, [&](const std::string& key, const std::string&) {
                                 append(log, key);
                                 ++done;
                               }};
  const auto start = std::chrono::steady_clock::now();
  trials::run_parts(store, all, options);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  int64_t wrong = 0;
  const auto found = store.all();
  for (const auto& [key, result] : found) wrong += result != answer_to(key);
  std::printf("{\"done\": %ld, \"seconds\": %.3f, \"results\": %zu, \"wrong\": %ld}\n", long(done), seconds,
              found.size(), long(wrong));
  return found.size() == size_t(trials) && wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::map<std::string, std::string> words;
  for (int i = 2; i + 1 < argc; i += 2) words[argv[i]] = argv[i + 1];
  stop_on_interrupt();
  try {
    return argc < 2 ? 2 : work(argv[1], words);
  } catch (const InputError& error) {
    std::fprintf(stderr, "error: %s\n%s\n", error.what(), error.hint().c_str());
    return 2;
  } catch (const Interrupted&) {
    return 130;
  }
}
