// Matrix products, and which of their weights feed which unit.
#include "ops/arguments.h"
#include "ops/families.h"

namespace netmend::ops::families {
namespace {

struct GemmForm {
  double alpha, beta;
  bool transpose_a, transpose_b;
};

GemmForm gemm_form(const NodeView& node) {
  return {node.real("alpha", 1), node.real("beta", 1), node.integer("transA", 0) != 0, node.integer("transB", 0) != 0};
}

void require_matrix(const at::Tensor& x, const char* name) {
  if (x.dim() != 2) fail("{} has {} axes, expected a matrix", name, x.dim());
}

at::Tensor product(const at::Tensor& a, const at::Tensor& b, double alpha) {
  at::Tensor y = at::mm(a, b);
  if (alpha == 1) return y;
  return at::isIntegralType(y.scalar_type(), true) ? (y.to(at::kDouble) * alpha).to(y.scalar_type()) : y * alpha;
}

/// LibTorch's product takes fractions of integers for an error.
at::Tensor product_of_integers(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c, const GemmForm& form) {
  at::Tensor y = at::mm(a, b).to(at::kDouble) * form.alpha + c.to(at::kDouble) * form.beta;
  return y.to(a.scalar_type());
}

at::Tensor gemm_of(const Call& call, const GemmForm& form) {
  require_matrix(call.in(0), "A");
  require_matrix(call.in(1), "B");
  at::Tensor a = form.transpose_a ? call.in(0).t() : call.in(0), b = form.transpose_b ? call.in(1).t() : call.in(1);
  if (a.size(1) != b.size(0)) fail("{}x{} cannot be multiplied by {}x{}", a.size(0), a.size(1), b.size(0), b.size(1));
  if (!call.has(2) || form.beta == 0) return product(a, b, form.alpha);
  const at::Tensor& c = call.in(2);
  if (!a.is_floating_point()) return product_of_integers(a, b, c, form);
  return at::addmm(c.dim() > 2 ? c.reshape({c.size(-2), c.size(-1)}) : c, a, b, form.beta, form.alpha);
}

Units gemm_right(const NodeView& node, const at::Tensor& weight) {
  int axis = gemm_form(node).transpose_b ? 0 : 1;
  return {.count = weight.size(axis), .weight_slot = 1, .weight_axis = axis, .bias_slot = node.has_input(2) ? 2 : -1};
}

Units gemm_left(const NodeView& node, const at::Tensor& weight) {
  int axis = gemm_form(node).transpose_a ? 1 : 0;
  return {.count = weight.size(axis), .weight_slot = 0, .weight_axis = axis, .unit_axis = 0, .batch_axis = 1};
}

}  // namespace

Kernel gemm(const NodeView& node) {
  GemmForm form = gemm_form(node);
  return [=](Call& call) { call.set(0, gemm_of(call, form)); };
}

std::optional<Units> gemm_units(const NodeView& node) {
  if (at::Tensor b = node.constant(1); b.defined() && b.dim() == 2) return gemm_right(node, b);
  if (at::Tensor a = node.constant(0); a.defined() && a.dim() == 2) return gemm_left(node, a);
  return std::nullopt;
}

Kernel matmul(const NodeView&) {
  return [](Call& call) {
    if (call.in(0).dim() == 0 || call.in(1).dim() == 0) fail("an operand is a scalar");
    call.set(0, at::matmul(call.in(0), call.in(1)));
  };
}

std::optional<Units> matmul_units(const NodeView& node) {
  if (at::Tensor right = node.constant(1); right.defined() && right.dim() >= 2) {
    return Units{.count = right.size(-1), .weight_slot = 1, .weight_axis = int(right.dim()) - 1, .unit_axis = -1};
  }
  at::Tensor left = node.constant(0);
  if (!left.defined() || left.dim() < 2) return std::nullopt;
  bool matrix = node.declared_rank(1) == 2 && left.dim() == 2;  // units × inputs: nothing but the columns counts inputs
  return Units{.count = left.size(-2),
               .weight_slot = 0,
               .weight_axis = int(left.dim()) - 2,
               .unit_axis = -2,
               .batch_axis = matrix ? 1 : 0};
}

/// alpha · A·B with either side transposed first.
Kernel fused_matmul(const NodeView& node) {
  GemmForm form = gemm_form(node);
  node.require(!node.integer("transBatchA", 0) && !node.integer("transBatchB", 0),
               "transposed batches are not supported");
  return [=](Call& call) {
    const at::Tensor &a = call.in(0), &b = call.in(1);
    if (a.dim() < 2 || b.dim() < 2) fail("operands must have at least 2 axes");
    at::Tensor y = at::matmul(form.transpose_a ? a.transpose(-1, -2) : a, form.transpose_b ? b.transpose(-1, -2) : b);
    call.set(0, form.alpha == 1 ? y : y * form.alpha);
  };
}

Kernel einsum(const NodeView& node) {
  std::string equation = node.text("equation", "");
  node.require(!equation.empty(), "has no equation");
  node.require(equation.size() < 1000, "has an equation of {} letters", equation.size());
  node.require(node.inputs() > 0, "has no inputs");
  return [=](Call& call) {
    std::vector<at::Tensor> operands;
    for (size_t i = 0; i < call.inputs(); ++i) operands.push_back(call.in(i));
    call.set(0, at::einsum(equation, operands));
  };
}

Kernel det(const NodeView&) {
  return unary([](const at::Tensor& x) {
    if (x.dim() < 2 || x.size(-1) != x.size(-2)) fail("the input holds no square matrices");
    return at::det(x);
  });
}

// clang-format off
std::span<const Op> linear_rows() {
  static constexpr Op kRows[] = {
      {.name = "Det", .prepare = det},
      {.name = "Einsum", .prepare = einsum},
      {.name = "FusedMatMul", .prepare = fused_matmul, .domain = kMicrosoft},
      {.name = "Gemm", .prepare = gemm, .kind = Kind::kLinear, .units = gemm_units},
      {.name = "MatMul", .prepare = matmul, .kind = Kind::kLinear, .units = matmul_units},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families
