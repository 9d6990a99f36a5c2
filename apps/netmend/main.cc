// netmend-engine: all commands, with LibTorch.
#include <algorithm>
#include <cstdlib>

#include "base/text.h"
#include "executor/runtime.h"
#include "netmend/flags.h"
#include "netmend/shared.h"

namespace netmend::app {
namespace {

void add_all(CLI::App& app, Options& options, Action& action) {
  add_everyday(app, options, action);
  add_files(app, options, action);
  add_look(app, options, action);
  add_mend(app, options, action);
  add_train(app, options, action);
  add_lab(app, options, action);
}

constexpr const char* kBatch = "NETMEND_DEVICE_BATCH";  ///< of a command that began again

void prepare() {
  executor::start_runtime(common.memory.empty() ? 0 : parse_bytes(common.memory));
  common.device = settle_device(common);
  if (const char* limit = std::getenv(kBatch)) {
    int64_t inputs = 0;
    if (parse_int(limit, inputs) && inputs > 0) executor::set_device_batch_limit(inputs);
  }
  if (common.device != "auto") executor::use_device(common.device, common.precision);
}

void finish() {
  if (executor::smaller_batches() && !common.quiet)
    say(common, "the GPU's memory did not hold all inputs of a batch at once: they went through it in parts");
  if (const std::vector<std::string> ops = executor::told_on_cpu(); !ops.empty())
    say(common,
        printable(fmt::format("on the CPU, since LibTorch has no kernel for the GPU that takes their inputs: {}",
                              join(ops, ", "))));
}

bool begin_again(const std::exception& error) {
  constexpr int64_t kFirst = 1024, kLeast = 16;
  if (!executor::is_device_memory(error)) return false;
  const int64_t last = executor::device_batch_limit(), next = std::min(kFirst, last / 4);
  if (next < kLeast) return false;
  return setenv(kBatch, std::to_string(next).c_str(), 1) == 0;
}

}  // namespace
}  // namespace netmend::app

int main(int argc, char** argv) {
  return netmend::app::run_program(
      argc, argv, {netmend::app::add_all, netmend::app::prepare, netmend::app::finish, netmend::app::begin_again});
}
