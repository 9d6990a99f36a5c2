// netmend apply: edits into a model's weights, or back out of them.
#include <fmt/format.h>

#include "base/text.h"
#include "edits/model_files.h"
#include "netmend/shared.h"
#include "netmend/terminal.h"

namespace netmend::app {

int apply(const Common& common, const ApplyOptions& options) {
  const edits::AppliedEdits done = edits::apply_file(options.model, options.edits, options.product, options.revert);
  if (common.json)
    return print_json({{"model", options.product},
                       {"edits", done.edits},
                       {"reverted", options.revert},
                       {"units", done.units},
                       {"parameters", done.parameters}}),
           0;
  print("  {}: {} {}, {}, {}\n", printable(options.product), counted(done.edits, "edit"),
        options.revert ? "reverted" : "applied", counted(int64_t(done.parameters.size()), "parameter"),
        counted(int64_t(done.units.size()), "unit"));
  return 0;
}

}  // namespace netmend::app
