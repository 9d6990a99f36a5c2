// How fast a network is here, and where the time goes: what people ask before they look for a faster machine.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "session/session.h"

namespace netmend::session {

/// One operator of the network as it runs; figures are per input.
struct OperatorCost {
  std::string name, op;
  double seconds = 0;  ///< by itself, one batch at a time on one thread; on a GPU with a wait after each
  double flops = 0;    ///< two per multiply-add
  double bytes = 0;    ///< of its operands and results: what must move at least
};

struct Rate {
  int64_t batch = 0;
  double inputs_per_second = 0;  ///< forward passes alone, inputs in memory (on the device), all workers
};

struct Benchmark {
  std::string device;
  int workers = 0;
  int64_t parameters = 0, batch = 0;   ///< `batch` of the table of operators
  double weight_bytes = 0, flops = 0;  ///< of the whole network
  double peak_flops = 0;               ///< of the machine: FMA loop × workers, or the largest product of a GPU
  double peak_memory = 0;              ///< bytes: the most in tensors so far, or what of the GPU is taken, by whomever
  std::vector<OperatorCost> operators;
  std::vector<Rate> rates;                ///< by batch
  double latency_ms = 0;                  ///< of one input
  double from_file = 0, from_memory = 0;  ///< inputs per second of a whole pass that judges predictions
  int64_t inputs = 0;                     ///< of those passes

  const Rate& best() const;
};

/// `seconds` for each figure. Throws InputError.
Benchmark measure_speed(Session& session, double seconds);
nlohmann::ordered_json to_json(const Benchmark& benchmark);

}  // namespace netmend::session
