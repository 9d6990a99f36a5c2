// netmend lab run: a model on tensors from files.
#include <fmt/format.h>

#include "base/text.h"
#include "netmend/shared.h"
#include "netmend/terminal.h"
#include "studies/run_model.h"

namespace netmend::app {

int lab_run(const Common& common, const RunOptions& options) {
  Json list = Json::array();
  for (const studies::WrittenOutput& one :
       studies::run_model({options.model, options.folder, options.inputs, options.outputs, options.float64,
                           common.device, options.carry, options.sequences})) {
    list.push_back({{"name", one.name}, {"file", one.file}, {"shape", one.shape}});
    if (!common.json) print("  {}  {}  {}\n", printable(one.name), shape_text(one.shape), one.file);
  }
  if (common.json) print_json({{"outputs", list}});
  return 0;
}

}  // namespace netmend::app
