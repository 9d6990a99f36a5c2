// netmend lab plant: a known fault in a sound model, and the truth about it beside.
#include <fmt/format.h>

#include "base/text.h"
#include "faults/kinds.h"
#include "netmend/shared.h"
#include "netmend/terminal.h"
#include "studies/plant_run.h"

namespace netmend::app {

int lab_plant(const Common& common, const PlantOptions& options) {
  faults::find_kind(options.kind);  // a slip of the finger shows before the work
  session::Session session(request_of(common, options));
  studies::PlantRequest request;
  request.kind = options.kind, request.layer = options.layer, request.product = options.product;
  request.truth = options.truth, request.count = options.count, request.strength = options.strength;
  request.at_least = options.at_least;
  const studies::PlantedFault fault = studies::plant(session, request);
  if (common.json) {
    Json json = studies::to_json(session.model_name(), request, fault);
    json["faulty"] = options.product;
    json["edits"] = fault.edits;
    return print_json(json), 0;
  }
  const std::string where = !fault.units.empty()   ? join(fault.units, ", ")
                            : !fault.layer.empty() ? fault.layer
                                                   : "all layers";
  print("  {}: {} planted in {}{}\n", printable(options.product), fault.kind, printable(where),
        fault.judged ? fmt::format(", accuracy {:.2f} → {:.2f} %", 100 * fault.before, 100 * fault.after) : "");
  return 0;
}

}  // namespace netmend::app
