// netmend weights: all parameters of a model as an NPZ file.
#include <fmt/format.h>

#include "base/text.h"
#include "edits/model_files.h"
#include "netmend/shared.h"
#include "netmend/terminal.h"

namespace netmend::app {

int weights(const Common& common, const WeightsOptions& options) {
  const edits::WrittenWeights done = edits::write_weights(options.model, options.product);
  if (common.json)
    print_json({{"file", options.product}, {"parameters", done.parameters}, {"values", done.values}});
  else
    print("  {}: {}, {}\n", printable(options.product), counted(done.parameters, "parameter"),
          counted(done.values, "value"));
  return 0;
}

}  // namespace netmend::app
