// netmend weights: all parameters of a model as an NPZ file.
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/text.h"
#include "netmend/shared.h"
#include "onnx/reader.h"

namespace netmend::app {
namespace {

using model::Element;

/// NumPy's name of the type; "" where it has none.
std::string numpy_type(Element type) {
  switch (type) {
    case Element::kFloat:
      return "<f4";
    case Element::kDouble:
      return "<f8";
    case Element::kFloat16:
      return "<f2";
    case Element::kUint8:
      return "|u1";
    case Element::kInt8:
      return "|i1";
    case Element::kUint16:
      return "<u2";
    case Element::kInt16:
      return "<i2";
    case Element::kInt32:
      return "<i4";
    case Element::kUint32:
      return "<u4";
    case Element::kInt64:
      return "<i8";
    case Element::kUint64:
      return "<u8";
    case Element::kBool:
      return "|b1";
    default:
      return "";
  }
}

/// By name: everything stored as a parameter, and constants among the nodes that are used as one.
std::map<std::string, model::ValueId> chosen(const model::Graph& graph) {
  std::map<std::string, model::ValueId> names;
  for (const auto& [id, constant] : graph.constants)
    if (constant.origin.kind == model::Origin::kInitializer) names[graph.values[size_t(id)].name] = id;
  for (model::ValueId id : executor::find_parameters(graph)) names[graph.values[size_t(id)].name] = id;
  return names;
}

std::string member(const model::Constant& constant) {
  // bfloat16 is the one type NumPy lacks; every value of it is a float32.
  Element type = numpy_type(constant.stored).empty() ? Element::kFloat : constant.stored;
  return npy_header(numpy_type(type), constant.value.sizes()) + model::encode(type, constant.value);
}

}  // namespace

int weights(const Common& common, const WeightsOptions& options) {
  model::Graph graph = onnx::read_model(options.model);
  std::map<std::string, model::ValueId> names = chosen(graph);
  int64_t values = 0;
  write_file(options.product, [&](std::ostream& out) {
    ZipWriter zip(out);
    for (const auto& [name, id] : names) {
      const model::Constant& constant = graph.constants.at(id);
      zip.add(name + ".npy", member(constant));
      values += constant.value.numel();
    }
    zip.finish();
  });
  if (common.json)
    print_json({{"file", options.product}, {"parameters", names.size()}, {"values", values}});
  else
    fmt::print("  {}: {} parameters, {} values\n", printable(options.product), names.size(), with_commas(values));
  return 0;
}

}  // namespace netmend::app
