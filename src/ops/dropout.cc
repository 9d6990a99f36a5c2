// Dropout: nothing outside training; in training a mask that depends on the call's seed and the element's number alone.
#include "ops/dropout.h"

#include <cmath>

#include "base/random.h"
#include "ops/arguments.h"
#include "ops/families.h"
#include "ops/vector_clones.h"

namespace netmend::ops::families {
namespace {

/// A 32-bit mix that vectorises (64-bit products do not): two rounds of multiply and shift, keyed twice.
NETMEND_INLINE uint32_t mixed(uint32_t x, uint32_t first, uint32_t second) {
  x = (x ^ first) * 0x7feb352du;
  x = (x ^ (x >> 15) ^ second) * 0x846ca68bu;
  x ^= x >> 16;
  x *= 0x9e3779b1u;
  return x ^ (x >> 15);
}

struct MaskForm {
  uint64_t seed;
  double ratio;
  /// An element is dropped when its number is below this.
  uint32_t threshold() const { return uint32_t(std::min(std::ldexp(ratio, 32), 4294967295.0)); }
};

template <typename T>
NETMEND_INLINE void fill(T* mask, uint32_t count, uint64_t key, uint32_t threshold, T kept) {
  uint32_t first = uint32_t(key), second = uint32_t(key >> 32);
  for (uint32_t i = 0; i < count; ++i) mask[i] = mixed(i, first, second) < threshold ? T(0) : kept;
}

NETMEND_VECTOR_CLONES void fill_float(float* mask, uint32_t count, uint64_t key, uint32_t threshold, float kept) {
  fill(mask, count, key, threshold, kept);
}
NETMEND_VECTOR_CLONES void fill_double(double* mask, uint32_t count, uint64_t key, uint32_t threshold, double kept) {
  fill(mask, count, key, threshold, kept);
}

/// 0 for a dropped element, 1/(1−ratio) for a kept one; blocks have keys of their own, so that counters stay short.
template <typename T, typename Fill>
void fill_all(T* mask, int64_t count, const MaskForm& form, Fill fill_block) {
  constexpr int64_t block = int64_t(1) << 24;
  T kept = T(1 / (1 - form.ratio));
  for (int64_t at = 0; at < count; at += block) {
    uint64_t key = Random::hash(form.seed ^ Random::hash(uint64_t(at / block)));
    fill_block(mask + at, uint32_t(std::min(block, count - at)), key, form.threshold(), kept);
  }
}

at::Tensor mask_like(const at::Tensor& x, const MaskForm& form) {
  bool wide = x.scalar_type() == at::kDouble;
  at::Tensor mask = at::empty(x.sizes(), wide ? at::kDouble : at::kFloat);
  if (wide) fill_all(mask.data_ptr<double>(), mask.numel(), form, fill_double);
  if (!wide) fill_all(mask.data_ptr<float>(), mask.numel(), form, fill_float);
  mask = mask.to(x.options());
  return x.dim() == 4 ? mask.contiguous(x.suggest_memory_format())
                      : mask;  // the product goes through both side by side
}

struct DropoutForm {
  double ratio;     // when it is not an input
  bool typed_mask;  // before opset 10 the mask has the data's type

  double ratio_of(const Call& call) const {
    double value = call.has(1) ? real_of(call.in(1), "ratio") : ratio;
    if (!(value >= 0 && value < 1)) fail("ratio is {}, expected 0 up to 1", value);
    return value;
  }
};

void keep_all(Call& call, const DropoutForm& form) {
  const at::Tensor& x = call.in(0);
  call.set(0, at::alias(x));
  if (call.outputs() > 1)
    call.set(1, at::ones(x.sizes(), x.options().dtype(form.typed_mask ? x.scalar_type() : at::kBool)));
}

void drop(Call& call, const DropoutForm& form, double ratio) {
  const at::Tensor& x = call.in(0);
  at::Tensor mask = mask_like(x, {call.seed(), ratio});
  call.set(0, at::mul(x, mask));
  if (call.outputs() > 1) call.set(1, mask.ne(0).to(form.typed_mask ? x.scalar_type() : at::kBool));
}

}  // namespace

void fill_mask(float* mask, int64_t count, uint64_t seed, double ratio) {
  fill_all(mask, count, {seed, ratio}, fill_float);
}

Kernel dropout(const NodeView& node) {
  DropoutForm form{node.real("ratio", 0.5), node.opset() < 10};
  return [=](Call& call) {
    if (call.training()) {
      double ratio = form.ratio_of(call);
      return ratio == 0 ? keep_all(call, form) : drop(call, form, ratio);
    }
    bool asks = call.has(2) && integer_of(call.in(2), "training_mode") != 0;
    if (asks && form.ratio_of(call) > 0) {
      fail(
          "the file asks for random dropout outside training (training_mode is true), so no two runs would give the "
          "same outputs");
    }
    keep_all(call, form);
  };
}

// clang-format off
std::span<const Op> dropout_rows() {
  static constexpr Op kRows[] = {
      {.name = "Dropout", .prepare = dropout},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families

namespace netmend::ops {

void fill_dropout_mask(float* mask, int64_t count, uint64_t seed, double ratio) {
  families::fill_mask(mask, count, seed, ratio);
}

}  // namespace netmend::ops
