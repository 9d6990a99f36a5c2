#include "cluster/ranks.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <vector>

#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"

namespace netmend::cluster {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kAtOnce = int64_t(1) << 30;  ///< MPI counts in int
constexpr double kForTheOthers = 3;            ///< seconds that a rank in trouble waits for the others

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// What is used of OpenMPI, whose handles are pointers. Its binary interface is that of libmpi.so.40 (versions 2 to 5).
struct Mpi {
  using Handle = void*;
  int (*MPI_Init_thread)(int*, char***, int, int*);
  int (*MPI_Comm_rank)(Handle, int*);
  int (*MPI_Comm_size)(Handle, int*);
  int (*MPI_Comm_dup)(Handle, Handle*);
  int (*MPI_Ibcast)(void*, int, Handle, int, Handle, Handle*);
  int (*MPI_Ibarrier)(Handle, Handle*);
  int (*MPI_Test)(Handle*, int*, void*);
  int (*MPI_Abort)(Handle, int);
  int (*MPI_Finalize)();
  Handle world = nullptr, ending = nullptr, byte = nullptr;
  int rank = 0, size = 1;
  Traffic traffic;
};

std::optional<Mpi> job;

Mpi load() {
  // Its plugins look for its symbols among those of the program.
  void* library = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
  if (!library)
    throw InputError("started as one of several ranks, but OpenMPI (libmpi.so.40) cannot be loaded",
                     "Debian's package is libopenmpi3. Or start netmend once, without mpirun.");
  Mpi mpi{};
  auto find = [&]<typename F>(F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library, name));
    if (!function)
      throw InputError(fmt::format("libmpi.so.40 has no {}: it is not OpenMPI's", name),
                       "Debian's package is libopenmpi3.");
  };
  find(mpi.MPI_Init_thread, "MPI_Init_thread"), find(mpi.MPI_Comm_rank, "MPI_Comm_rank");
  find(mpi.MPI_Comm_size, "MPI_Comm_size"), find(mpi.MPI_Comm_dup, "MPI_Comm_dup");
  find(mpi.MPI_Ibcast, "MPI_Ibcast"), find(mpi.MPI_Ibarrier, "MPI_Ibarrier"), find(mpi.MPI_Test, "MPI_Test");
  find(mpi.MPI_Abort, "MPI_Abort"), find(mpi.MPI_Finalize, "MPI_Finalize");
  find(mpi.world, "ompi_mpi_comm_world"), find(mpi.byte, "ompi_mpi_byte");
  return mpi;
}

/// Waits without taking a core away from who still works. False when `patience` seconds were not enough.
bool done(Mpi::Handle request, double patience) {
  int yes = 0;
  std::optional<Clock::time_point> stopped;
  const auto start = Clock::now();
  for (int pause = 20;; pause = std::min(pause * 3 / 2, 1000)) {
    if (job->MPI_Test(&request, &yes, nullptr) != 0) throw InputError("MPI failed to hand bytes around");
    if (yes) return true;
    if (seconds_since(start) > patience) return false;
    // Ctrl-C, or mpirun because another rank died: a rank that was stopped too still comes here.
    if (interrupted()) {
      if (!stopped) stopped = Clock::now();
      if (seconds_since(*stopped) > kForTheOthers)
        throw InputError(fmt::format("rank {} of {} was stopped while it waited for the others", job->rank, job->size),
                         "If nobody pressed Ctrl-C, another rank died: see what mpirun says.");
    }
    usleep(useconds_t(pause));
  }
}

void broadcast(std::string& bytes, int from) {
  for (int64_t at = 0; at < int64_t(bytes.size()); at += kAtOnce) {
    Mpi::Handle request = nullptr;
    const int count = int(std::min(kAtOnce, int64_t(bytes.size()) - at));
    if (job->MPI_Ibcast(bytes.data() + at, count, job->byte, from, job->world, &request) != 0)
      throw InputError("MPI failed to hand bytes around");
    done(request, 1e18);
  }
}

}  // namespace

bool started_together() {
  if (const char* set = std::getenv("NETMEND_MPI"); set && std::string(set) == "no") return false;
  int64_t count = 0;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"})
    if (const char* text = std::getenv(name); text && parse_int(text, count)) return count > 1;
  const char* steps = std::getenv("SLURM_STEP_NUM_TASKS");  // srun --mpi=pmix
  return std::getenv("PMIX_RANK") && steps && parse_int(steps, count) && count > 1;
}

void join() {
  Mpi mpi = load();
  constexpr int kFunneled = 1;
  int given = 0;
  if (mpi.MPI_Init_thread(nullptr, nullptr, kFunneled, &given) != 0)
    throw InputError("OpenMPI does not start", "Start netmend once, without mpirun, or see what OpenMPI says above.");
  mpi.MPI_Comm_rank(mpi.world, &mpi.rank);
  mpi.MPI_Comm_size(mpi.world, &mpi.size);
  if (mpi.size == 1)
    throw InputError("started as one of several ranks, but OpenMPI knows of one: the launcher belongs to another MPI",
                     "Start it with OpenMPI's mpirun, or srun --mpi=pmix; NETMEND_MPI=no runs each process by itself.");
  mpi.MPI_Comm_dup(mpi.world, &mpi.ending);
  job = mpi;
}

int rank() { return job ? job->rank : 0; }
int size() { return job ? job->size : 1; }
Traffic traffic() { return job ? job->traffic : Traffic{}; }

void hand_around(const std::string& own, const std::function<void(int, std::string)>& take) {
  if (!job) return take(0, own);
  const auto start = Clock::now();
  for (int from = 0; from < job->size; ++from) {
    uint64_t length = own.size();
    std::string head(reinterpret_cast<const char*>(&length), sizeof length);
    broadcast(head, from);
    std::copy_n(head.data(), sizeof length, reinterpret_cast<char*>(&length));
    std::string bytes = from == job->rank ? own : std::string(size_t(length), '\0');
    broadcast(bytes, from);
    job->traffic.received += int64_t(bytes.size());
    take(from, std::move(bytes));
  }
  job->traffic.seconds += seconds_since(start);
}

void agree(const std::string& what, const std::string& own) {
  std::vector<std::string> all;
  hand_around(own, [&](int, std::string bytes) { all.push_back(std::move(bytes)); });
  for (size_t other = 1; other < all.size(); ++other)
    if (all[other] != all[0])
      throw InputError(fmt::format("ranks 0 and {} of {} differ: {}", other, all.size(), what),
                       "All ranks need the same command and the same files: copies on every machine, or a file system "
                       "that all of them see.");
}

void together(const std::function<std::string()>& part, const std::function<void(int, std::string)>& take) {
  enum : char { kDone = 'd', kWrong = 'w', kStopped = 's', kBroken = 'b' };
  std::string own(1, kDone);
  try {
    own += part();
  } catch (const InputError& error) {
    own = std::string(1, kWrong) + error.what() + '\0' + error.hint();
  } catch (const Interrupted&) {
    own = std::string(1, kStopped);
  } catch (const std::exception& error) {
    own = std::string(1, kBroken) + error.what();
  }
  std::string first;
  int whose = 0;
  std::exception_ptr taking;
  hand_around(own, [&](int from, std::string bytes) {
    if (bytes[0] != kDone && first.empty()) first = bytes, whose = from;
    if (!first.empty() || taking) return;
    try {
      take(from, bytes.substr(1));
    } catch (...) {  // the others still hand theirs around
      taking = std::current_exception();
    }
  });
  if (!first.empty()) {
    const std::string words = first.substr(1);
    const size_t end = words.find('\0');
    if (first[0] == kStopped) throw Interrupted{};
    if (first[0] == kBroken) throw std::runtime_error(words);
    throw InputError(fmt::format("rank {} of {}: {}", whose, size(), words.substr(0, end)),
                     end == std::string::npos ? "" : words.substr(end + 1));
  }
  if (taking) std::rethrow_exception(taking);
}

void leave(int status, const std::function<std::string()>& said) {
  if (!job) return;
  Mpi::Handle request = nullptr;
  const bool failed = status >= 2;
  bool all = false;
  try {
    all = job->MPI_Ibarrier(job->ending, &request) == 0 && done(request, failed ? kForTheOthers : 1e18);
  } catch (const InputError&) {
  }
  if (all) {  // rank 0 speaks for all who ended as it did
    char first = char(std::min(status, 127));
    if (job->MPI_Ibcast(&first, 1, job->byte, 0, job->ending, &request) == 0) done(request, 1e18);
    job->MPI_Finalize();
    if (job->rank == 0 || first == char(std::min(status, 127))) return;
  }
  const std::string words = job->rank == 0 ? "" : fmt::format("rank {} of {}: {}", job->rank, job->size, said());
  if (write(STDERR_FILENO, words.data(), words.size()) < 0) _exit(status);
  if (!all) job->MPI_Abort(job->world, status);
}

}  // namespace netmend::cluster
