#include "zoo/builder.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/text.h"

namespace netmend::zoo {

using model::Attribute;
using model::ValueId;
using Attributes = std::map<std::string, Attribute, std::less<>>;
using Numbers = std::vector<int64_t>;

namespace {

constexpr int kOpset = 17;

}  // namespace

Builder::Builder(std::string name, Scheme scheme, uint64_t seed) : scheme_(scheme), seed_(seed) {
  graph_.name = std::move(name);
  graph_.producer = "netmend";
  graph_.opsets[""] = kOpset;
}

ValueId Builder::input(const std::string& name, std::vector<int64_t> shape, model::Element type) {
  ValueId id = graph_.add_value(name, type);
  std::vector<model::Dim> dims{{-1, "N"}};
  for (int64_t size : shape) dims.push_back({size, ""});
  graph_.values[size_t(id)].shape = std::move(dims);
  graph_.inputs.push_back(id);
  return id;
}

ValueId Builder::constant(const std::string& name, at::Tensor value) {
  model::Element stored = model::element_of(value.scalar_type());
  ValueId id = graph_.add_value(name, stored);
  graph_.constants[id] = {std::move(value), stored, {}, false};
  return id;
}

ValueId Builder::weight(const std::string& name, at::IntArrayRef shape, Fan fan) {
  return constant(name, fresh_weight(shape, fan, scheme_, seed_, streams_++));
}

ValueId Builder::node(const std::string& name, const std::string& op, std::vector<ValueId> inputs,
                      Attributes attributes) {
  ValueId output = graph_.add_value(name);
  graph_.nodes.push_back({name, op, "", kOpset, std::move(inputs), {output}, std::move(attributes)});
  return output;
}

ValueId Builder::plain(const std::string& op, std::vector<ValueId> inputs, Attributes attributes) {
  std::string name = graph_.values[size_t(inputs.at(0))].name + "." + lower(op);
  return node(name, op, std::move(inputs), std::move(attributes));
}

ValueId Builder::conv(const std::string& name, ValueId x, int64_t channels, int64_t units, Window window) {
  Numbers shape{units, channels, window.kernel, window.kernel};
  std::vector<ValueId> inputs{x, weight(name + ".weight", shape, conv_fan(shape))};
  if (window.bias) inputs.push_back(constant(name + ".bias", at::zeros({units})));
  return node(name, "Conv", inputs,
              {{"kernel_shape", Numbers(2, window.kernel)},
               {"strides", Numbers(2, window.stride)},
               {"pads", Numbers(4, window.padding)}});
}

ValueId Builder::conv1d(const std::string& name, ValueId x, int64_t channels, int64_t units, int64_t width) {
  Numbers shape{units, channels, width};
  ValueId filters = weight(name + ".weight", shape, conv_fan(shape));
  ValueId bias = constant(name + ".bias", at::zeros({units}));
  return node(name, "Conv", {x, filters, bias}, {{"kernel_shape", Numbers{width}}});
}

ValueId Builder::dense(const std::string& name, ValueId x, int64_t inputs, int64_t units) {
  ValueId matrix = weight(name + ".weight", Numbers{units, inputs}, {inputs, units});
  ValueId bias = constant(name + ".bias", at::zeros({units}));
  return node(name, "Gemm", {x, matrix, bias}, {{"transB", int64_t(1)}});
}

ValueId Builder::batch_norm(const std::string& name, ValueId x, int64_t channels) {
  ValueId scale = constant(name + ".weight", at::ones({channels}));
  ValueId offset = constant(name + ".bias", at::zeros({channels}));
  ValueId mean = constant(name + ".running_mean", at::zeros({channels}));
  ValueId variance = constant(name + ".running_var", at::ones({channels}));
  return node(name, "BatchNormalization", {x, scale, offset, mean, variance}, {{"epsilon", 1e-5f}, {"momentum", 0.9f}});
}

ValueId Builder::embedding(const std::string& name, ValueId ids, int64_t vocabulary, int64_t width) {
  ValueId table = constant(name + ".weight", fresh_embedding({vocabulary, width}, seed_, streams_++));
  return node(name, "Gather", {table, ids});
}

ValueId Builder::relu(ValueId x) { return plain("Relu", {x}); }

ValueId Builder::max_pool(ValueId x) {
  return plain("MaxPool", {x}, {{"kernel_shape", Numbers{2, 2}}, {"strides", Numbers{2, 2}}});
}

ValueId Builder::dropout(ValueId x, float ratio) {
  std::string name = graph_.values[size_t(x)].name + ".dropout";
  return node(name, "Dropout", {x, constant(name + ".ratio", at::full({}, ratio))});
}

ValueId Builder::flatten(ValueId x) { return plain("Flatten", {x}); }

ValueId Builder::add(const std::string& name, ValueId a, ValueId b) { return node(name, "Add", {a, b}); }

model::Graph Builder::finish(ValueId result, const std::string& name, int64_t units) {
  model::Value& value = graph_.values[size_t(result)];
  value.name = name;
  value.type = model::Element::kFloat;
  value.shape = {{-1, "N"}, {units, ""}};
  graph_.outputs = {result};
  return std::move(graph_);
}

}  // namespace netmend::zoo
