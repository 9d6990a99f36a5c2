#include "ops/op.h"

namespace netmend::ops {
namespace {

const char* type_name(const model::Attribute& attribute) {
  constexpr const char* names[] = {"an integer", "a float", "a string", "a tensor",
                                   "integers",   "floats",  "strings",  "a graph"};
  return names[attribute.index()];
}

}  // namespace

at::Tensor NodeView::constant(size_t i) const { return has_input(i) ? graph_.constant(node_.inputs[i]) : at::Tensor(); }

model::Element NodeView::declared_type(size_t i) const {
  if (!has_input(i)) return model::Element::kUndefined;
  auto constant = graph_.constants.find(node_.inputs[i]);
  if (constant != graph_.constants.end()) return constant->second.stored;
  return graph_.values[node_.inputs[i]].type;
}

std::optional<size_t> NodeView::declared_rank(size_t i) const {
  if (!has_input(i)) return std::nullopt;
  if (at::Tensor value = constant(i); value.defined()) return size_t(value.dim());
  const auto& shape = graph_.values[node_.inputs[i]].shape;
  return shape ? std::optional<size_t>(shape->size()) : std::nullopt;
}

const model::Attribute* NodeView::find(std::string_view attribute) const {
  auto found = node_.attributes.find(attribute);
  return found == node_.attributes.end() ? nullptr : &found->second;
}

void NodeView::refuse_text(const std::string& reason) const {
  throw InputError(fmt::format("{} {}: {}", node_.op, node_.name, reason));
}

namespace {

/// The attribute as a T; the view says how to complain.
template <typename T>
const T* typed(const NodeView& view, const model::Attribute* attribute, std::string_view name, const char* expected) {
  if (!attribute) return nullptr;
  const T* value = std::get_if<T>(attribute);
  view.require(value, "attribute {} is {}, expected {}", name, type_name(*attribute), expected);
  return value;
}

}  // namespace

int64_t NodeView::integer(std::string_view attribute, int64_t otherwise) const {
  const auto* value = typed<int64_t>(*this, find(attribute), attribute, "an integer");
  return value ? *value : otherwise;
}

double NodeView::real(std::string_view attribute, double otherwise) const {
  const auto* value = typed<float>(*this, find(attribute), attribute, "a float");
  return value ? *value : otherwise;
}

std::string NodeView::text(std::string_view attribute, std::string_view otherwise) const {
  const auto* value = typed<std::string>(*this, find(attribute), attribute, "a string");
  return value ? *value : std::string(otherwise);
}

std::vector<int64_t> NodeView::integers(std::string_view attribute, std::vector<int64_t> otherwise) const {
  const auto* value = typed<std::vector<int64_t>>(*this, find(attribute), attribute, "integers");
  return value ? *value : otherwise;
}

std::vector<double> NodeView::reals(std::string_view attribute, std::vector<double> otherwise) const {
  const auto* value = typed<std::vector<float>>(*this, find(attribute), attribute, "floats");
  return value ? std::vector<double>(value->begin(), value->end()) : otherwise;
}

std::vector<std::string> NodeView::texts(std::string_view attribute, std::vector<std::string> otherwise) const {
  const auto* value = typed<std::vector<std::string>>(*this, find(attribute), attribute, "strings");
  return value ? *value : otherwise;
}

at::Tensor NodeView::tensor(std::string_view attribute) const {
  const auto* value = typed<at::Tensor>(*this, find(attribute), attribute, "a tensor");
  return value ? *value : at::Tensor();
}

const model::Subgraph* NodeView::body(std::string_view attribute) const {
  const auto* value = typed<model::Subgraph>(*this, find(attribute), attribute, "a graph");
  require(!value || value->graph, "attribute {} holds several graphs", attribute);
  return value;
}

const at::Tensor& Call::in(size_t i) const {
  if (!has(i)) fail("input {} is missing", i);
  return inputs_[i];
}

}  // namespace netmend::ops
