// netmend-engine: all commands, with LibTorch.
#include "base/text.h"
#include "executor/runtime.h"
#include "netmend/flags.h"

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

void prepare() {
  executor::start_runtime(common.memory.empty() ? 0 : parse_bytes(common.memory));
  common.device = executor::check_device(common.device);
  executor::use_device(common.device, common.precision);
}

}  // namespace
}  // namespace netmend::app

int main(int argc, char** argv) {
  return netmend::app::run_program(argc, argv, {netmend::app::add_all, netmend::app::prepare});
}
