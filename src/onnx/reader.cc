#include "onnx/reader.h"

#include <ATen/ATen.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "model/guard.h"
#include "onnx/document.h"

namespace netmend::onnx {
namespace {

using model::Attribute;
using model::Constant;
using model::Element;
using model::Graph;
using model::kAbsent;
using model::Node;
using model::ValueId;

constexpr size_t kMostNodes = 500'000;  // functions that call each other could unfold to any size
constexpr int kDeepestCall = 64;
constexpr size_t kLongestName = 4096;           // a name stands in every unit's
constexpr size_t kMostNamed = size_t(1) << 29;  // characters: names in functions carry those of the calls around them

/// The constant of a raw float tensor shares the document's bytes instead of copying them.
at::Tensor share_or_decode(const onnx_file::Tensor& tensor, const std::string& folder,
                           const std::shared_ptr<const model::Document>& document) {
  auto type = Element(tensor.data_type());
  bool plain =
      type == Element::kFloat || type == Element::kDouble || type == Element::kInt64 || type == Element::kInt32;
  const std::string& raw = tensor.raw_data();
  if (!plain || !tensor.has_raw_data() || tensor.data_location() == 1 || raw.size() < 4096 ||
      reinterpret_cast<uintptr_t>(raw.data()) % 16 != 0)
    return decode_tensor(tensor, folder);
  std::vector<int64_t> sizes = sizes_of(tensor);
  if (model::stored_bytes(type, model::checked_count(sizes)) != int64_t(raw.size()))
    return decode_tensor(tensor, folder);  // says what is wrong
  return at::from_blob(
      const_cast<char*>(raw.data()), sizes, [document](void*) {}, model::carrier(type));
}

at::Tensor decode_sparse(const onnx_file::SparseTensor& sparse, const std::string& folder) {
  onnx_file::Tensor shape_only;
  *shape_only.mutable_dims() = sparse.dims();
  std::vector<int64_t> sizes = sizes_of(shape_only);
  at::Tensor values = decode_tensor(sparse.values(), folder), indices = decode_tensor(sparse.indices(), folder);
  if (values.dim() != 1 || indices.scalar_type() != at::kLong || indices.dim() < 1 || indices.dim() > 2)
    fail("a sparse tensor needs a list of values and int64 indices");
  if (indices.dim() == 2) {
    if (indices.size(1) != int64_t(sizes.size())) fail("a sparse tensor's indices do not fit its sizes");
    at::Tensor flat = at::zeros({indices.size(0)}, at::kLong);
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      at::Tensor along = indices.select(1, int64_t(axis));
      if (along.numel() && (along.min().item<int64_t>() < 0 || along.max().item<int64_t>() >= sizes[axis]))
        fail("a sparse tensor's index lies outside it");
      flat = flat * sizes[axis] + along;
    }
    indices = flat;
  }
  int64_t count = model::checked_count(sizes);
  if (indices.numel() != values.numel())
    fail("a sparse tensor has {} values and {} indices", values.numel(), indices.numel());
  if (indices.numel() && (indices.min().item<int64_t>() < 0 || indices.max().item<int64_t>() >= count))
    fail("a sparse tensor's index lies outside it");
  at::Tensor dense = at::zeros({count}, values.options());
  dense.index_copy_(0, indices, values);
  return dense.view(sizes);
}

/// What the format says an attribute holds; old files leave the type out, then what is there decides.
int attribute_type(const onnx_file::Attribute& a) {
  if (a.type() != 0) return a.type();
  if (a.has_f()) return 1;
  if (a.has_i()) return 2;
  if (a.has_s()) return 3;
  if (a.has_t()) return 4;
  if (a.has_g() || a.graphs_size()) return 5;
  if (a.floats_size()) return 6;
  if (a.ints_size()) return 7;
  if (a.strings_size()) return 8;
  return 0;
}

Attribute decode_attribute(const onnx_file::Attribute& a, const std::string& folder) {
  switch (attribute_type(a)) {
    case 1:
      return a.f();
    case 2:
      return int64_t(a.i());
    case 3:
      return a.s();
    case 4:
      return decode_tensor(a.t(), folder);
    case 6:
      return std::vector<float>(a.floats().begin(), a.floats().end());
    case 7:
      return std::vector<int64_t>(a.ints().begin(), a.ints().end());
    case 8:
      return std::vector<std::string>(a.strings().begin(), a.strings().end());
    case 11:
      return decode_sparse(a.sparse_tensor(), folder);
    default:
      return model::Subgraph{};  // several graphs, or a type: no operator of ours takes one
  }
}

/// Names that a graph uses and does not make itself: they belong to the graphs around it. In the order of their use.
std::vector<std::string> free_names(const onnx_file::Graph& graph, int depth) {
  if (depth > kDeepestCall) fail("graphs are nested too deeply");
  std::set<std::string> known = {""};
  std::vector<std::string> found;
  for (const auto& info : graph.input()) known.insert(info.name());
  for (const auto& tensor : graph.initializer()) known.insert(tensor.name());
  for (const auto& tensor : graph.sparse_initializer()) known.insert(tensor.values().name());
  for (const auto& node : graph.node()) known.insert(node.output().begin(), node.output().end());
  auto use = [&](const std::string& name) {
    if (known.insert(name).second) found.push_back(name);
  };
  for (const auto& node : graph.node()) {
    for (const auto& name : node.input()) use(name);
    for (const auto& attribute : node.attribute())
      if (attribute.has_g())
        for (const auto& name : free_names(attribute.g(), depth + 1)) use(name);
  }
  for (const auto& info : graph.output()) use(info.name());
  return found;
}

std::vector<model::Dim> decode_shape(const onnx_file::Shape& shape) {
  std::vector<model::Dim> dims;
  for (const auto& dim : shape.dim()) {
    if (dim.has_dim_value() && dim.dim_value() < -1) fail("a declared size of {}", dim.dim_value());
    dims.push_back({dim.has_dim_value() ? dim.dim_value() : -1, printable(dim.dim_param())});
  }
  return dims;
}

std::string kind_of(const onnx_file::Type& type) {
  if (type.has_sequence_type()) return "a sequence";
  if (type.has_optional_type()) return "an optional";
  if (type.has_map_type()) return "a map";
  return type.has_sparse_tensor_type() ? "a sparse tensor" : "undefined";
}

std::string standard_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

using FunctionKey = std::tuple<std::string, std::string, std::string>;
using Functions = std::map<FunctionKey, const onnx_file::Function*>;

class Builder {
 public:
  explicit Builder(std::shared_ptr<const model::Document> document)
      : document_(std::move(document)), folder_(std::filesystem::path(document_->path).parent_path().string()) {}

  Graph build() {
    const onnx_file::Model& message = document_->message;
    if (!message.has_graph()) fail("the file contains no graph");
    graph_.document = document_;
    graph_.name = printable(message.graph().name());
    graph_.producer = printable(trim(message.producer_name() + " " + message.producer_version()));
    for (const auto& entry : message.metadata_props()) graph_.metadata[entry.key()] = entry.value();
    for (const auto& import : message.opset_import()) {
      const auto [known, fresh] = graph_.opsets.emplace(standard_domain(import.domain()), opset_number(import));
      if (!fresh && known->second != opset_number(import))
        fail("the file asks for two versions of the operators of '{}', {} and {}", printable(import.domain()),
             known->second, opset_number(import));
    }
    Functions functions;
    for (const auto& function : message.functions())
      if (!functions
               .emplace(FunctionKey{standard_domain(function.domain()), function.name(), function.overload()},
                        &function)
               .second)
        fail("the file defines the function {} twice", printable(function.name()));
    functions_ = &functions;
    add_constants(message.graph(), {});
    add_inputs(message.graph());
    Scope scope;
    scope.opsets = &graph_.opsets;
    int index = 0;
    for (const auto& node : message.graph().node()) add_node(node, scope, index++);
    add_outputs(message.graph());
    name_nodes();
    model::sort_nodes(graph_);
    return std::move(graph_);
  }

 private:
  /// Names inside a function's body belong to one call of it.
  struct Scope {
    std::string prefix;                    ///< of values made inside, "" at the top
    std::map<std::string, ValueId> names;  ///< inputs and outputs of the call
    const std::map<std::string, int>* opsets = nullptr;
    std::map<std::string, const onnx_file::Attribute*> attributes;  ///< arguments of the call
    int depth = 0;
  };

  static int opset_number(const onnx_file::OperatorSet& import) {
    return int(std::clamp<int64_t>(import.version(), 0, INT32_MAX));
  }

  ValueId value(const std::string& name) {
    auto [at, is_new] = ids_.try_emplace(name, ValueId(graph_.values.size()));
    if (is_new) graph_.add_value(printable(of_a_length(name)));
    return at->second;
  }

  ValueId scoped_value(const std::string& name, const Scope& scope) {
    if (name.empty()) return kAbsent;
    auto hit = scope.names.find(name);
    return hit != scope.names.end() ? hit->second : value(inside(scope, name));
  }

  /// A name as it is called outside a function or branch.
  std::string inside(const Scope& scope, const std::string& name) {
    if (!scope.prefix.empty()) named_ += scope.prefix.size() + name.size();
    if (named_ > kMostNamed) fail("the names of its functions' calls unfold to more than {} characters", kMostNamed);
    return of_a_length(scope.prefix + name);
  }

  std::string of_a_length(std::string name) const {
    if (name.size() > kLongestName)
      fail("{}… is a name of {} characters; those of up to {} are read", printable(name.substr(0, 40)), name.size(),
           kLongestName);
    return name;
  }

  void define(ValueId id) {
    if (!defined_.insert(id).second) fail("the value {} is defined twice", graph_.values[size_t(id)].name);
  }

  /// Constants of a body become those of the outermost graph, which alone are moved to a device, edited and trained.
  void add_constant(ValueId id, Constant constant) {
    define(id);
    graph_.values[size_t(id)].type = constant.stored;
    if (!is_body_) {
      graph_.constants[id] = std::move(constant);
      return;
    }
    graph_.inputs.push_back(id);
    constant.origin = {};
    lifted_.emplace_back(graph_.values[size_t(id)].name, std::move(constant));
  }

  /// Those of a branch, in a scope of its own, are kept elsewhere by the document.
  void add_constants(const onnx_file::Graph& graph, const Scope& scope) {
    for (int i = 0; i < graph.initializer_size(); ++i) {
      const auto& tensor = graph.initializer(i);
      model::guarded([&] { return "initializer " + tensor.name(); },
                     [&] {
                       add_constant(
                           value(inside(scope, tensor.name())),
                           {share_or_decode(tensor, folder_, document_), Element(tensor.data_type()),
                            scope.prefix.empty() ? model::Origin{model::Origin::kInitializer, i} : model::Origin{}});
                     });
    }
    for (const auto& sparse : graph.sparse_initializer()) {
      const std::string& name = sparse.values().name();
      model::guarded([&] { return "sparse initializer " + name; },
                     [&] {
                       add_constant(value(inside(scope, name)),
                                    {decode_sparse(sparse, folder_), Element(sparse.values().data_type()), {}});
                     });
    }
  }

  void declare(ValueId id, const onnx_file::ValueInfo& info) {
    const auto& type = info.type().tensor_type();
    model::Value& about = graph_.values[size_t(id)];
    if (type.elem_type() != 0) about.type = Element(type.elem_type());
    if (type.has_shape())
      about.shape = model::guarded([&] { return "value " + info.name(); }, [&] { return decode_shape(type.shape()); });
  }

  void add_inputs(const onnx_file::Graph& graph) {
    std::set<std::string> initialised;  // old files list their initializers as inputs too
    for (const auto& tensor : graph.initializer()) initialised.insert(tensor.name());
    for (const auto& info : graph.input()) {
      ValueId id = value(info.name());
      declare(id, info);
      if (initialised.count(info.name()) || graph_.is_constant(id)) continue;
      if (!info.type().has_tensor_type() && kind_of(info.type()) != "undefined")
        throw Unsupported(
            fmt::format("input {} is {}, but netmend supports only tensors", info.name(), kind_of(info.type())));
      if (!is_body_ && !model::supported(graph_.values[size_t(id)].type))
        throw Unsupported(fmt::format("input {} is a tensor of a type that netmend does not support ({})", info.name(),
                                      model::element_name(graph_.values[size_t(id)].type)));
      define(id);
      graph_.inputs.push_back(id);
    }
    for (const auto& info : graph.value_info()) declare(value(info.name()), info);
  }

  void add_outputs(const onnx_file::Graph& graph) {
    for (const auto& info : graph.output()) {
      auto hit = ids_.find(info.name());
      if (hit == ids_.end() || !defined_.count(hit->second)) fail("nothing produces the output {}", info.name());
      declare(hit->second, info);
      graph_.outputs.push_back(hit->second);
    }
    if (graph_.outputs.empty() && !is_body_) fail("the graph has no outputs");
  }

  void add_node(const onnx_file::Node& node, const Scope& scope, int index) {
    std::string domain = standard_domain(node.domain());
    auto function = functions_->find({domain, node.op_type(), node.overload()});
    if (function != functions_->end()) return unfold(*function->second, node, scope);
    if (domain.empty() && node.op_type() == "Constant") return add_constant_node(node, scope, index);
    if (const onnx_file::Graph* branch = decided_branch(node, domain, scope))
      return unfold_branch(*branch, node, scope);
    if (graph_.nodes.size() >= kMostNodes) fail("the graph expands to more than {} nodes", kMostNodes);
    Node out;
    out.name = printable(inside(scope, node.name()));
    out.op = node.op_type();
    out.domain = domain;
    auto opset = scope.opsets->find(domain);
    out.opset = opset == scope.opsets->end() ? 0 : opset->second;
    for (const auto& name : node.input()) out.inputs.push_back(scoped_value(name, scope));
    for (const auto& name : node.output()) {
      out.outputs.push_back(scoped_value(name, scope));
      if (out.outputs.back() != kAbsent) define(out.outputs.back());
    }
    auto where = [&] { return fmt::format("node {} ({})", node.name(), node.op_type()); };
    model::guarded(where, [&] {
      for (const auto& attribute : node.attribute())
        if (const auto* actual = resolve(attribute, scope))
          out.attributes[attribute.name()] =
              actual->has_g() ? read_body(out, *actual, scope) : decode_attribute(*actual, folder_);
    });
    graph_.nodes.push_back(std::move(out));
  }

  /// The branch that an If always takes, when its condition is a constant and its outputs are made by its own nodes.
  const onnx_file::Graph* decided_branch(const onnx_file::Node& node, const std::string& domain, const Scope& scope) {
    if (!domain.empty() || node.op_type() != "If" || node.input_size() != 1) return nullptr;
    at::Tensor condition = graph_.constant(scoped_value(node.input(0), scope));
    if (!condition.defined() || condition.numel() != 1) return nullptr;
    const char* wanted = condition.to(at::kBool).item<bool>() ? "then_branch" : "else_branch";
    for (const auto& attribute : node.attribute()) {
      const auto* actual = resolve(attribute, scope);
      if (!actual || attribute.name() != wanted || !actual->has_g()) continue;
      std::set<std::string> made;
      for (const auto& inner : actual->g().node()) made.insert(inner.output().begin(), inner.output().end());
      bool own = actual->g().output_size() >= node.output_size();
      for (const auto& info : actual->g().output()) own = own && made.erase(info.name()) > 0;
      return own ? &actual->g() : nullptr;
    }
    return nullptr;
  }

  /// Its nodes stand where the If stood, so that its layers are layers like any other.
  void unfold_branch(const onnx_file::Graph& branch, const onnx_file::Node& node, const Scope& outer) {
    if (outer.depth >= kDeepestCall) fail("graphs are nested too deeply");
    Scope scope;
    scope.opsets = outer.opsets;
    scope.attributes = outer.attributes;
    scope.depth = outer.depth + 1;
    std::string name = node.name().empty() ? fmt::format("If_{}", calls_++) : node.name();
    scope.prefix = prefixes_.add(inside(outer, name) + "/", "_", 2, "/");
    for (const std::string& read : free_names(branch, outer.depth)) scope.names[read] = scoped_value(read, outer);
    for (int i = 0; i < node.output_size(); ++i)
      if (!node.output(i).empty()) scope.names[branch.output(i).name()] = scoped_value(node.output(i), outer);
    add_constants(branch, scope);
    for (const auto& inner : branch.node()) {
      if (++unfolded_ > kMostNodes) fail("the graph expands to more than {} nodes", kMostNodes);
      add_node(inner, scope, -1);
    }
  }

  /// A graph inside a node. What it reads from outside, and its constants, become inputs of the node.
  model::Subgraph read_body(Node& node, const onnx_file::Attribute& attribute, const Scope& scope) {
    if (scope.depth >= kDeepestCall) fail("graphs are nested too deeply");
    Builder inner(document_);
    inner.is_body_ = true;
    inner.functions_ = functions_;
    inner.unfolded_ = unfolded_ + graph_.nodes.size(), inner.named_ = named_;
    model::Subgraph body;
    std::vector<ValueId> read;
    for (const std::string& name : free_names(attribute.g(), scope.depth)) {
      read.push_back(scoped_value(name, scope));
      inner.read_outside(name, graph_.values[size_t(read.back())]);
    }
    std::vector<ValueId> captured = std::exchange(inner.graph_.inputs, {});
    body.graph = std::make_shared<Graph>(inner.build_body(attribute.g(), scope, captured));
    unfolded_ = inner.unfolded_, named_ = inner.named_;
    std::string prefix = prefixes_.add(fmt::format("{}{}/{}/", scope.prefix, node.name, attribute.name()), "_", 2, "/");
    for (auto& [name, constant] : inner.lifted_) {
      read.push_back(value(prefix + name));
      add_constant(read.back(), std::move(constant));
    }
    for (ValueId id : read) {
      body.reads.push_back(node.inputs.size());
      node.inputs.push_back(id);
      ++node.captured;
    }
    return body;
  }

  void read_outside(const std::string& name, const model::Value& about) {
    ValueId id = value(name);
    define(id);
    graph_.values[size_t(id)].type = about.type, graph_.values[size_t(id)].shape = about.shape;
    graph_.inputs.push_back(id);
  }

  /// Inputs of the operator first, then `captured`, then constants.
  Graph build_body(const onnx_file::Graph& message, const Scope& outer, const std::vector<ValueId>& captured) {
    graph_.name = printable(message.name());
    add_inputs(message);
    graph_.inputs.insert(graph_.inputs.end(), captured.begin(), captured.end());
    add_constants(message, {});
    Scope scope;
    scope.opsets = outer.opsets;
    scope.attributes = outer.attributes;
    scope.depth = outer.depth + 1;
    for (const auto& node : message.node()) {
      if (++unfolded_ > kMostNodes) fail("the graph expands to more than {} nodes", kMostNodes);
      add_node(node, scope, -1);
    }
    add_outputs(message);
    name_nodes();
    model::sort_nodes(graph_);
    return std::move(graph_);
  }

  /// An attribute of a function's body may stand for one of the call; nullptr when the call leaves it out.
  static const onnx_file::Attribute* resolve(const onnx_file::Attribute& attribute, const Scope& scope) {
    if (attribute.ref_attr_name().empty()) return &attribute;
    auto hit = scope.attributes.find(attribute.ref_attr_name());
    return hit == scope.attributes.end() ? nullptr : hit->second;
  }

  void add_constant_node(const onnx_file::Node& node, const Scope& scope, int index) {
    auto where = [&] { return fmt::format("node {} (Constant)", node.name()); };
    model::guarded(where, [&] {
      if (node.output_size() != 1) fail("it has {} outputs", node.output_size());
      for (const auto& attribute : node.attribute()) {
        const auto* actual = resolve(attribute, scope);
        if (!actual || attribute.name() == "netmend") continue;
        Element stored = Element::kUndefined;
        at::Tensor tensor = constant_value(attribute.name(), *actual, stored);
        bool patchable = scope.depth == 0 && attribute.name() == "value";
        model::Origin origin = patchable ? model::Origin{model::Origin::kConstantNode, index} : model::Origin{};
        add_constant(scoped_value(node.output(0), scope), {std::move(tensor), stored, origin});
        return;
      }
      fail("it has no value");
    });
  }

  at::Tensor constant_value(const std::string& name, const onnx_file::Attribute& a, Element& stored) const {
    auto is = [&](const char* wanted) { return name == wanted; };
    if (is("value")) return stored = Element(a.t().data_type()), share_or_decode(a.t(), folder_, document_);
    if (is("sparse_value"))
      return stored = Element(a.sparse_tensor().values().data_type()), decode_sparse(a.sparse_tensor(), folder_);
    if (is("value_float")) return stored = Element::kFloat, at::scalar_tensor(a.f(), at::kFloat);
    if (is("value_int")) return stored = Element::kInt64, at::scalar_tensor(int64_t(a.i()), at::kLong);
    if (is("value_floats"))
      return stored = Element::kFloat, at::tensor(std::vector<float>(a.floats().begin(), a.floats().end()));
    if (is("value_ints"))
      return stored = Element::kInt64, at::tensor(std::vector<int64_t>(a.ints().begin(), a.ints().end()));
    fail("its attribute {} is not supported", name);
  }

  void unfold(const onnx_file::Function& function, const onnx_file::Node& call, const Scope& outer) {
    if (outer.depth >= kDeepestCall) fail("function {} calls itself or is nested too deeply", function.name());
    std::map<std::string, int> opsets;
    for (const auto& import : function.opset_import()) opsets[standard_domain(import.domain())] = opset_number(import);
    Scope scope;
    scope.opsets = &opsets;
    scope.depth = outer.depth + 1;
    const std::string name = call.name().empty() ? fmt::format("{}_{}", function.name(), calls_++) : call.name();
    scope.prefix = prefixes_.add(inside(outer, name) + "/", "_", 2, "/");
    for (int i = 0; i < function.input_size(); ++i)
      scope.names[function.input(i)] = i < call.input_size() ? scoped_value(call.input(i), outer) : kAbsent;
    for (int i = 0; i < function.output_size(); ++i)
      if (i < call.output_size() && !call.output(i).empty())
        scope.names[function.output(i)] = scoped_value(call.output(i), outer);
    for (const auto& attribute : function.attribute_proto()) scope.attributes[attribute.name()] = &attribute;
    for (const auto& attribute : call.attribute())
      if (const auto* actual = resolve(attribute, outer)) scope.attributes[attribute.name()] = actual;
    for (const auto& node : function.node()) {
      if (++unfolded_ > kMostNodes) fail("the graph expands to more than {} nodes", kMostNodes);
      add_node(node, scope, -1);
    }
  }

  void name_nodes() {
    UniqueNames taken;
    for (Node& node : graph_.nodes) {
      std::string first;
      for (ValueId output : node.outputs)
        if (first.empty() && output != kAbsent) first = graph_.values[size_t(output)].name;
      std::string name = node.name.empty() || node.name.back() == '/' ? node.name + first : node.name;
      node.name = taken.add(name);
    }
  }

  std::shared_ptr<const model::Document> document_;
  std::string folder_;
  Graph graph_;
  std::unordered_map<std::string, ValueId> ids_;
  std::set<ValueId> defined_;
  const Functions* functions_ = nullptr;
  bool is_body_ = false;
  std::vector<std::pair<std::string, Constant>> lifted_;  ///< constants of a body, for the graph around it
  UniqueNames prefixes_;
  int calls_ = 0;
  size_t unfolded_ = 0, named_ = 0;
};

std::shared_ptr<const model::Document> parse(const std::string& path) {
  auto document = std::make_shared<model::Document>();
  document->path = path;
  if (InputFile(path).size() > INT32_MAX)
    throw InputError(fmt::format("{} is larger than the 2 GB that a protobuf file can have", path),
                     "Export it with its weights as external data.");
  const std::string bytes = read_file(path);
  if (bytes.empty()) fail("{} is empty, not an ONNX file", path);
  if (bytes.starts_with("version https://git-lfs"))
    throw InputError(fmt::format("{} is a pointer of Git LFS, not the file itself", path), "git lfs pull fetches it.");
  document->checksum = checksum(bytes);
  google::protobuf::io::ArrayInputStream stream(bytes.data(), int(bytes.size()));
  if (!document->message.ParseFromZeroCopyStream(&stream)) {
    throw InputError(
        fmt::format("{} is not an ONNX file, or it is damaged ({} bytes that do not parse)", path, bytes.size()),
        "Was the download or the export cut off?");
  }
  return document;
}

}  // namespace

Graph read_model(const std::string& path) {
  auto document = parse(path);
  return model::guarded([&] { return path; }, [&] { return Builder(document).build(); });
}

}  // namespace netmend::onnx
