// The processes of an MPI job as the rest of netmend sees them: a number each, and a way to hand bytes around. All run
// the same command; passes over the data are shared out, everything else each does for itself, so that all know the
// same. The library (OpenMPI) is loaded when mpirun or srun started us, and by nobody else.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace netmend::cluster {

/// Whether a launcher of MPI started this process as one of several. NETMEND_MPI=no says that it is none of our
/// business: a program that is such a process itself calls us.
bool started_together();

/// Joins the others. Throws InputError when the library cannot be loaded or does not start. Once, on the main thread,
/// which makes all later calls.
void join();
int rank();  ///< from 0; 0 when alone
int size();  ///< 1 when alone

/// Everybody's bytes, in the order of ranks, handed over one at a time on every rank. All ranks call it together.
void hand_around(const std::string& own, const std::function<void(int rank, std::string bytes)>& take);
/// Throws InputError on all ranks, with which ranks and `what`, when texts differ. All ranks call it together.
void agree(const std::string& what, const std::string& own);
/// Work of which each rank does a part: with the first error of any rank all fail, with the same words, instead of
/// waiting for a rank that will not come. `done` is called with everybody's bytes, in order.
void together(const std::function<std::string()>& part, const std::function<void(int rank, std::string bytes)>& done);

/// What handing bytes around took on this rank so far.
struct Traffic {
  int64_t received = 0;  ///< bytes, its own among them
  double seconds = 0;    ///< with waiting for the slowest rank
};
Traffic traffic();

/// The end of a process that joined: all ranks leave together. One that failed alone says so and ends the job.
/// `said`: what it wrote for people, which nobody has seen.
void leave(int status, const std::function<std::string()>& said);

}  // namespace netmend::cluster
