// Work shared out over threads, in a way that cannot change a result: items are numbered, any thread may take any item,
// and what they produce is handed over in the order of the numbers.
#pragma once

#include <cstdint>
#include <functional>

namespace netmend {

/// Number of cores this process may use: by its affinity and by the limits of its container.
int cores();

/// Runs `work(item, worker)` for items 0 … count−1 on `workers` threads and `hand_over(item)` in the order of items,
/// one at a time, on whichever thread finished last. At most a bounded number of items wait to be handed over.
/// `enter(worker)` runs first on each thread. The first exception stops everything and is thrown here. With one worker
/// all happens on the calling thread.
void in_order(int64_t count, int workers, const std::function<void(int worker)>& enter,
              const std::function<void(int64_t item, int worker)>& work,
              const std::function<void(int64_t item)>& hand_over);

/// Set by Ctrl-C: long work stops at its next item. See stop_on_interrupt.
bool interrupted();
/// Thrown by `in_order` when interrupted: what was handed over stays.
struct Interrupted {};
void stop_if_interrupted();
/// Makes the first Ctrl-C (or SIGTERM, SIGHUP) set the flag and the second one end the process. Files that grow beyond
/// the limit of the system fail to be written from now on.
void stop_on_interrupt();
/// Takes the flag back, so that what was found so far can be judged; the next Ctrl-C counts as the first.
void forget_interrupt();
/// Whether there was a Ctrl-C at all, forgotten or not: what is written after it may be partial, and the exit status
/// tells of it.
bool was_interrupted();

}  // namespace netmend
