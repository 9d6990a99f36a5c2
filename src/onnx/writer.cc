#include "onnx/writer.h"

#include <ATen/ATen.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "onnx/document.h"

namespace netmend::onnx {
namespace {

using model::Graph;
using model::Origin;

void set_tensor(onnx_file::Tensor& message, const model::Constant& constant) {
  message.clear_float_data();
  message.clear_int32_data();
  message.clear_int64_data();
  message.clear_double_data();
  message.clear_uint64_data();
  message.clear_external_data();
  message.clear_data_location();
  message.set_raw_data(model::encode(constant.stored, constant.value));
}

onnx_file::Tensor* place_of(onnx_file::Model& message, const Origin& origin) {
  if (origin.kind == Origin::kInitializer) return message.mutable_graph()->mutable_initializer(origin.index);
  if (origin.kind == Origin::kConstantNode)
    for (auto& attribute : *message.mutable_graph()->mutable_node(origin.index)->mutable_attribute())
      if (attribute.name() == "value") return attribute.mutable_t();
  return nullptr;
}

std::map<std::string, std::string> metadata_of(const onnx_file::Model& message) {
  std::map<std::string, std::string> out;
  for (const auto& entry : message.metadata_props()) out[entry.key()] = entry.value();
  return out;
}

void set_metadata(onnx_file::Model& message, std::map<std::string, std::string> wanted) {
  auto* entries = message.mutable_metadata_props();
  for (int i = entries->size() - 1; i >= 0; --i) {
    auto hit = wanted.find(entries->Get(i).key());
    if (hit == wanted.end()) {
      entries->DeleteSubrange(i, 1);
    } else {
      entries->Mutable(i)->set_value(hit->second);
      wanted.erase(hit);
    }
  }
  for (const auto& [key, value] : wanted) {
    auto* entry = message.add_metadata_props();
    entry->set_key(key);
    entry->set_value(value);
  }
}

bool has_external_data(const onnx_file::Model& message) {
  for (const auto& tensor : message.graph().initializer())
    if (tensor.data_location() == 1) return true;
  for (const auto& node : message.graph().node())
    for (const auto& attribute : node.attribute())
      if (attribute.t().data_location() == 1) return true;
  return false;
}

/// External data of graphs inside nodes would stay behind: nothing reads it into the message.
void require_inline_bodies(const onnx_file::Graph& graph, bool inside) {
  for (const auto& tensor : graph.initializer())
    if (inside && tensor.data_location() == 1)
      fail("{} cannot be written: it is external data inside a graph of a node", tensor.name());
  for (const auto& node : graph.node())
    for (const auto& attribute : node.attribute())
      if (attribute.has_g()) require_inline_bodies(attribute.g(), true);
}

void save(const onnx_file::Model& message, const std::string& path) {
  if (message.ByteSizeLong() > size_t(INT32_MAX)) fail("cannot write {}: the model is larger than 2 GB", path);
  std::string bytes;
  check(message.SerializeToString(&bytes), "a message that was read can be written");
  write_file(path, bytes);
}

void write_changed(const Graph& graph, const std::string& path) {
  onnx_file::Model message = graph.document->message;
  require_inline_bodies(message.graph(), false);
  bool inline_all = has_external_data(message);  // the new file may lie elsewhere, away from its data
  for (const auto& [id, constant] : graph.constants) {
    onnx_file::Tensor* place = place_of(message, constant.origin);
    bool external = place && inline_all && place->data_location() == 1;
    if (!constant.changed && !external) continue;
    if (!place)
      fail("{} cannot be changed: it is inside a function or a branch of the file", graph.values[size_t(id)].name);
    set_tensor(*place, constant);
  }
  set_metadata(message, graph.metadata);
  save(message, path);
}

// ---- graphs that netmend made itself ----

void fill(onnx_file::Attribute& out, const std::string& name, const model::Attribute& value) {
  out.set_name(name);
  struct Visitor {
    onnx_file::Attribute& out;
    void operator()(int64_t v) const { out.set_type(2), out.set_i(v); }
    void operator()(float v) const { out.set_type(1), out.set_f(v); }
    void operator()(const std::string& v) const { out.set_type(3), out.set_s(v); }
    void operator()(const at::Tensor& v) const {
      out.set_type(4);
      out.mutable_t()->set_data_type(int(model::element_of(v.scalar_type())));
      for (int64_t size : v.sizes()) out.mutable_t()->add_dims(size);
      out.mutable_t()->set_raw_data(model::encode(model::element_of(v.scalar_type()), v));
    }
    void operator()(const std::vector<int64_t>& v) const {
      out.set_type(7);
      for (int64_t item : v) out.add_ints(item);
    }
    void operator()(const std::vector<float>& v) const {
      out.set_type(6);
      for (float item : v) out.add_floats(item);
    }
    void operator()(const std::vector<std::string>& v) const {
      out.set_type(8);
      for (const auto& item : v) out.add_strings(item);
    }
    void operator()(const model::Subgraph&) const { throw std::logic_error("graphs of ours hold no subgraphs"); }
  };
  std::visit(Visitor{out}, value);
}

void fill(onnx_file::ValueInfo& out, const model::Value& value) {
  out.set_name(value.name);
  auto* type = out.mutable_type()->mutable_tensor_type();
  type->set_elem_type(int(value.type));
  if (!value.shape) return;
  for (const model::Dim& dim : *value.shape) {
    auto* to = type->mutable_shape()->add_dim();
    if (dim.size >= 0)
      to->set_dim_value(dim.size);
    else if (!dim.symbol.empty())
      to->set_dim_param(dim.symbol);
  }
}

void write_new(const Graph& graph, const std::string& path) {
  onnx_file::Model message;
  message.set_ir_version(8);
  message.set_producer_name("netmend");
  auto* out = message.mutable_graph();
  out->set_name(graph.name);
  auto name_of = [&](model::ValueId id) {
    return id == model::kAbsent ? std::string() : graph.values[size_t(id)].name;
  };
  for (const auto& [domain, version] : graph.opsets) {
    auto* import = message.add_opset_import();
    import->set_domain(domain);
    import->set_version(version);
  }
  for (const model::Node& node : graph.nodes) {
    auto* to = out->add_node();
    to->set_name(node.name);
    to->set_op_type(node.op);
    if (!node.domain.empty()) to->set_domain(node.domain);
    for (model::ValueId id : node.inputs) to->add_input(name_of(id));
    for (model::ValueId id : node.outputs) to->add_output(name_of(id));
    for (const auto& [name, value] : node.attributes) fill(*to->add_attribute(), name, value);
  }
  std::map<model::ValueId, const model::Constant*> ordered;  // the same bytes every time
  for (const auto& [id, constant] : graph.constants) ordered[id] = &constant;
  for (const auto& [id, constant] : ordered) {
    auto* tensor = out->add_initializer();
    tensor->set_name(name_of(id));
    tensor->set_data_type(int(constant->stored));
    for (int64_t size : constant->value.sizes()) tensor->add_dims(size);
    set_tensor(*tensor, *constant);
  }
  for (model::ValueId id : graph.inputs) fill(*out->add_input(), graph.values[size_t(id)]);
  for (model::ValueId id : graph.outputs) fill(*out->add_output(), graph.values[size_t(id)]);
  set_metadata(message, graph.metadata);
  save(message, path);
}

bool same_folder(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code error;
  return fs::weakly_canonical(fs::absolute(a).parent_path(), error) ==
             fs::weakly_canonical(fs::absolute(b).parent_path(), error) &&
         !error;
}

bool can_copy(const Graph& graph, const std::string& path) {
  for (const auto& [id, constant] : graph.constants)
    if (constant.changed) return false;
  const model::Document& document = *graph.document;
  return graph.metadata == metadata_of(document.message) &&
         (!has_external_data(document.message) || same_folder(document.path, path));
}

}  // namespace

void write_model(const Graph& graph, const std::string& path) {
  if (!graph.document) return write_new(graph, path);
  if (can_copy(graph, path)) {
    std::string bytes = read_file(graph.document->path);
    if (checksum(bytes) == graph.document->checksum) return write_file(path, bytes);
  }
  write_changed(graph, path);
}

}  // namespace netmend::onnx
