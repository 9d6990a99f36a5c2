// netmend lab new: a named architecture as an ONNX file with fresh weights.
#include <fmt/format.h>

#include "base/text.h"
#include "netmend/shared.h"
#include "netmend/terminal.h"
#include "training/train_run.h"

namespace netmend::app {

int lab_new(const Common& common, const NewOptions& options) {
  const int64_t parameters = training::write_new_model(options.name, options.init, common.seed, options.product);
  if (common.json)
    print_json({{"model", options.product}, {"name", options.name}, {"parameters", parameters}});
  else
    print("  {}: {} with {}, {} initialisation, random seed {}\n", printable(options.product), options.name,
          counted(parameters, "parameter"), options.init, common.seed);
  return 0;
}

}  // namespace netmend::app
