// netmend lab new: a named architecture as an ONNX file with fresh weights.
#include "base/text.h"
#include "netmend/shared.h"
#include "onnx/writer.h"
#include "zoo/zoo.h"

namespace netmend::app {

int lab_new(const Common& common, const NewOptions& options) {
  model::Graph graph = zoo::make(options.name, {.scheme = options.init, .seed = common.seed});
  int64_t parameters = zoo::parameter_count(graph);
  onnx::write_model(graph, options.product);
  if (common.json)
    print_json({{"model", options.product}, {"name", options.name}, {"parameters", parameters}});
  else
    fmt::print("  {}: {} with {} parameters, {} weights from seed {}\n", options.product, options.name,
               with_commas(parameters), options.init, common.seed);
  return 0;
}

}  // namespace netmend::app
