#include "trials/parts.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

#include "base/pool.h"

namespace netmend::trials {
namespace {

constexpr double kBetweenLeases = 0.2;  ///< seconds of work that a thread takes at once
constexpr double kBetweenSyncs = 0.05;  ///< seconds until what was run is written
constexpr int64_t kMostAtOnce = 64;

void run_alone(Store& store, const Part& part, const PartsOptions& options) {
  std::vector<std::string> missing;
  for (const std::string& key : part.keys)
    if (!store.find(key)) missing.push_back(key);
  if (missing.empty()) return;
  const RunTrial run = part.prepare();
  std::vector<std::string> found(missing.size());
  auto keep = [&](int64_t item) {
    store.put(missing[size_t(item)], found[size_t(item)]);
    if (options.told) options.told(missing[size_t(item)], found[size_t(item)]);
    found[size_t(item)] = {};
  };
  in_order(
      int64_t(missing.size()), options.threads, options.enter ? options.enter : [](int) {},
      [&](int64_t item, int) { found[size_t(item)] = run(missing[size_t(item)]); }, keep);
}

/// A part that is shared out: each thread leases some trials, as many as take it a moment, and runs them.
class SharedPart {
 public:
  SharedPart(Store& store, const Part& part, const PartsOptions& options)
      : store_(store), part_(part), options_(options) {}

  /// Until nothing is free. How many were run here.
  int64_t run() {
    std::vector<std::string> first = store_.lease(part_.name, options_.threads);
    if (first.empty()) return 0;
    run_ = part_.prepare();
    // The first lease waits for the preparation, whoever else could have begun: it is the same for all.
    std::vector<std::vector<std::string>> own(static_cast<size_t>(options_.threads));
    for (size_t i = 0; i < first.size(); ++i) own[i % own.size()].push_back(first[i]);
    in_order(
        options_.threads, options_.threads, options_.enter ? options_.enter : [](int) {},
        [&](int64_t item, int) { work(std::move(own[size_t(item)])); }, [](int64_t) {});
    return done_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Done = std::vector<std::pair<std::string, std::string>>;

  void work(std::vector<std::string> keys) {
    Done own;
    int64_t some = 1;
    while (true) {
      if (keys.empty()) keys = store_.lease(part_.name, some);
      if (keys.empty() || failed_) return;
      const auto start = Clock::now();
      auto written = start;
      for (const std::string& key : keys) {
        run_one(key, own);
        if (seconds(written) < kBetweenSyncs && &key != &keys.back()) continue;
        finish(own);
        written = Clock::now();
      }
      const double each = seconds(start) / double(keys.size());
      some = std::clamp(int64_t(kBetweenLeases / std::max(each, 1e-6)), int64_t(1), kMostAtOnce);
      keys.clear();
    }
  }

  static double seconds(Clock::time_point since) { return std::chrono::duration<double>(Clock::now() - since).count(); }

  template <typename F>
  void or_all_stop(const F& step) {
    try {
      step();
    } catch (...) {
      failed_ = true;
      throw;
    }
  }

  void run_one(const std::string& key, Done& own) {
    or_all_stop([&] {
      stop_if_interrupted();
      own.emplace_back(key, run_(key));
    });
  }

  void finish(Done& own) {
    or_all_stop([&] {
      const std::vector<bool> taken = store_.finish(own);
      std::lock_guard lock(mutex_);
      for (size_t i = 0; i < own.size(); ++i) {
        if (!taken[i]) continue;
        ++done_;
        if (options_.told) options_.told(own[i].first, own[i].second);
      }
      own.clear();
    });
  }

  Store& store_;
  const Part& part_;
  const PartsOptions& options_;
  RunTrial run_;
  std::mutex mutex_;
  std::atomic<int64_t> done_{0};
  std::atomic<bool> failed_{false};
};

void run_shared(Store& store, const std::vector<Part>& parts, const PartsOptions& options) {
  for (const Part& part : parts) store.plan(part.name, part.keys);
  std::vector<const Part*> left;
  for (size_t i = 0; i < parts.size(); ++i) left.push_back(&parts[(i + size_t(store.before())) % parts.size()]);
  for (double pause = 0.05; !left.empty();) {
    int64_t done = 0;
    for (const Part* part : left) done += SharedPart(store, *part, options).run();
    std::erase_if(left, [&](const Part* part) { return store.open(part->name) == 0; });
    if (left.empty()) return;
    pause = done ? 0.05 : std::min(1.5 * pause, 1.0);
    stop_if_interrupted();
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
  }
}

}  // namespace

void run_parts(Store& store, const std::vector<Part>& parts, const PartsOptions& options) {
  if (!store.shared()) {
    for (const Part& part : parts) run_alone(store, part, options);
    return;
  }
  try {
    run_shared(store, parts, options);
  } catch (...) {
    try {
      store.give_back();
    } catch (...) {  // the end of the lease does it
    }
    throw;
  }
}

namespace {

/// Parts on threads of their own; the first exception stops those that have not begun and is thrown in the end.
class JoinedParts {
 public:
  JoinedParts(Store& store, const std::vector<JoinedPart>& parts, const PartsOptions& options)
      : store_(store), parts_(parts), options_(options) {}

  /// Until nothing is free. Whether anything was run here.
  bool run() {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < parts_.size(); ++i) threads.emplace_back([this, i] { enter(i); });
    for (std::thread& thread : threads) thread.join();
    if (error_) std::rethrow_exception(error_);
    return any_;
  }

 private:
  void enter(size_t number) {
    try {
      if (options_.enter) options_.enter(int(number));
      const JoinedPart& part = parts_[number];
      const std::vector<std::string> missing = take(part);
      if (missing.empty()) return;
      part.run(missing, [this](const std::string& key, std::string result) { keep(key, std::move(result)); });
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  std::vector<std::string> take(const JoinedPart& part) {
    std::lock_guard lock(mutex_);
    if (error_ || interrupted()) return {};
    if (store_.shared()) return store_.lease(part.name, int64_t(part.keys.size()));
    std::vector<std::string> missing;
    for (const std::string& key : part.keys)
      if (!store_.find(key)) missing.push_back(key);
    return missing;
  }

  void keep(const std::string& key, std::string result) {
    std::lock_guard lock(mutex_);
    if (store_.shared() ? !store_.finish({{key, result}})[0] : (store_.put(key, result), false)) return;
    any_ = true;
    if (options_.told) options_.told(key, result);
  }

  Store& store_;
  const std::vector<JoinedPart>& parts_;
  const PartsOptions& options_;
  std::mutex mutex_;
  std::exception_ptr error_;
  bool any_ = false;
};

void run_joined_shared(Store& store, const std::vector<JoinedPart>& parts, const PartsOptions& options) {
  for (const JoinedPart& part : parts) store.plan(part.name, part.keys);
  for (double pause = 0.05;;) {
    const bool any = JoinedParts(store, parts, options).run();
    if (std::all_of(parts.begin(), parts.end(), [&](const auto& part) { return store.open(part.name) == 0; })) return;
    pause = any ? 0.05 : std::min(1.5 * pause, 1.0);
    stop_if_interrupted();
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
  }
}

}  // namespace

void run_joined(Store& store, const std::vector<JoinedPart>& parts, const PartsOptions& options) {
  if (!store.shared()) {
    JoinedParts(store, parts, options).run();
    stop_if_interrupted();
    return;
  }
  try {
    run_joined_shared(store, parts, options);
  } catch (...) {
    try {
      store.give_back();
    } catch (...) {  // the end of the lease does it
    }
    throw;
  }
}

}  // namespace netmend::trials
