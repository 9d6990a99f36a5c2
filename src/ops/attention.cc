// Attention and what stands around it in transformers: rotary positions, caches of keys and values, linear attention
// and the short causal convolution before it.
#include <cmath>
#include <limits>

#include "ops/arguments.h"
#include "ops/families.h"

namespace netmend::ops::families {
namespace {

using model::Element;

constexpr double kMasked = -std::numeric_limits<double>::infinity();

/// Heads on an axis of their own: N × heads × positions × size, from that or from N × positions × (heads · size).
at::Tensor with_heads(const at::Tensor& x, int64_t heads, const char* what) {
  if (x.dim() == 4) return x;
  if (x.dim() != 3) fail("{} has {} axes, expected 3 or 4", what, x.dim());
  if (heads < 1 || x.size(2) % heads != 0) fail("{} values of {} cannot be cut into {} heads", x.size(2), what, heads);
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

at::Tensor without_heads(const at::Tensor& x) {
  return x.transpose(1, 2).reshape({x.size(0), x.size(2), times(x.size(1), x.size(3))});
}

/// A head of keys or values serves a group of query heads that stand side by side.
at::Tensor for_queries(const at::Tensor& x, int64_t heads) {
  if (x.size(1) == heads) return x;
  if (x.size(1) < 1 || heads % x.size(1) != 0) fail("{} query heads cannot share {} heads", heads, x.size(1));
  return x.repeat_interleave(heads / x.size(1), 1);
}

at::Tensor joined(const Call& call, size_t past, const at::Tensor& now) {
  return call.has(past) ? at::cat({call.in(past), now}, 2) : now;
}

/// Softmax over the last axis in the precision that the file asks for, and back; in half precision each step rounds.
at::Tensor softmax_in(const Call& call, const at::Tensor& scores, Element precision) {
  at::Tensor x = precision == Element::kUndefined ? scores : cast_to(call, scores, precision);
  if ((precision != Element::kFloat16 && precision != Element::kBFloat16) || x.size(-1) == 0)
    return at::softmax(x, -1).to(scores.scalar_type());
  at::Tensor powers = rounded_as(at::exp(rounded_as(x - at::amax(x, -1, true), precision)), precision);
  return rounded_as(powers / rounded_as(powers.sum(-1, true), precision), precision).to(scores.scalar_type());
}

Element softmax_type(const NodeView& node) {
  Element type = Element(node.integer("softmax_precision", 0));
  bool known = type == Element::kUndefined || type == Element::kFloat || type == Element::kFloat16 ||
               type == Element::kBFloat16 || type == Element::kDouble;
  node.require(known, "softmax_precision is {}, expected a floating-point type", model::element_name(type));
  return type;
}

struct AttentionForm {
  int64_t q_heads, kv_heads, mode, left, right;
  bool causal;
  double scale, softcap;
  Element softmax, type;  ///< type: of the queries, as declared

  explicit AttentionForm(const NodeView& node)
      : q_heads(node.integer("q_num_heads", 0)),
        kv_heads(node.integer("kv_num_heads", 0)),
        mode(node.integer("qk_matmul_output_mode", 0)),
        left(node.integer("left_window_size", -1)),
        right(node.integer("right_window_size", -1)),
        causal(node.integer("is_causal", 0) != 0),
        scale(node.real("scale", 0)),
        softcap(node.real("softcap", 0)),
        softmax(softmax_type(node)),
        type(node.declared_type(0)) {
    node.require(left >= -1 && right >= -1, "a window reaches {} to the left and {} to the right", left, right);
    node.require(mode >= 0 && mode <= 3, "qk_matmul_output_mode is {}, expected 0 to 3", mode);
    node.require(scale >= 0, "scale is {}", scale);
    node.require(node.has_input(4) == node.has_input(5), "has one of past_key and past_value without the other");
    node.require(!(node.has_input(4) && node.has_input(6)), "has both a past and nonpad_kv_seqlen");
  }
};

/// Which keys a query may look at by position, or undefined for all of them.
at::Tensor visible(const Call& call, const AttentionForm& form, const at::Tensor& q, const at::Tensor& k) {
  at::TensorOptions whole = q.options().dtype(at::kLong);
  at::Tensor key = at::arange(k.size(2), whole), query = at::arange(q.size(2), whole).unsqueeze(1), allowed, lengths;
  auto restrict_to = [&](const at::Tensor& more) { allowed = allowed.defined() ? allowed.logical_and(more) : more; };
  if (call.has(6)) {
    if (call.in(6).numel() != q.size(0)) fail("nonpad_kv_seqlen has {} numbers", call.in(6).numel());
    lengths = call.in(6).to(at::kLong).reshape({-1, 1, 1, 1});
    restrict_to(key < lengths);
  }
  at::Tensor position = query + (call.has(4) ? call.in(4).size(2) : 0);
  if (lengths.defined()) position = query + (lengths - q.size(2));
  if (form.causal) restrict_to(key <= position);
  if (form.left >= 0) restrict_to(key >= position - std::min(form.left, k.size(2) + q.size(2)));
  if (form.right >= 0) restrict_to(key <= position + std::min(form.right, k.size(2) + q.size(2)));
  return allowed;
}

at::Tensor as_bias(const at::Tensor& allowed, const at::Tensor& like) {
  return at::zeros(allowed.sizes(), like.options()).masked_fill(allowed.logical_not(), kMasked);
}

/// What is added to the scores: the mask of the file, shorter ones filled up, and what positions forbid.
at::Tensor bias_of(const Call& call, const AttentionForm& form, const at::Tensor& q, const at::Tensor& k) {
  at::Tensor bias, allowed = visible(call, form, q, k);
  if (call.has(3)) {
    at::Tensor mask = call.in(3);
    if (mask.dim() < 1) fail("attn_mask is a scalar");
    if (mask.scalar_type() == at::kBool) mask = as_bias(mask, q);
    int64_t missing = k.size(2) - mask.size(-1);
    if (missing > 0 && mask.size(-1) != 1) mask = at::constant_pad_nd(mask, {0, missing}, kMasked);
    bias = mask;
  }
  if (!allowed.defined()) return bias;
  return bias.defined() ? bias + as_bias(allowed, q) : as_bias(allowed, q);
}

void attend(Call& call, const AttentionForm& form) {
  auto as_type = [&](const at::Tensor& x) { return rounded_as(x, form.type); };
  at::Tensor q = with_heads(call.in(0), form.q_heads, "Q");
  at::Tensor keys = joined(call, 4, with_heads(call.in(1), form.kv_heads, "K"));
  at::Tensor values = joined(call, 5, with_heads(call.in(2), form.kv_heads, "V"));
  if (q.size(3) == 0 || keys.size(3) != q.size(3)) fail("heads of Q have {} values, of K {}", q.size(3), keys.size(3));
  at::Tensor k = for_queries(keys, q.size(1)), v = for_queries(values, q.size(1));

  double scale = form.scale > 0 ? form.scale : 1 / std::sqrt(double(q.size(3)));
  at::Tensor root = as_type(at::scalar_tensor(std::sqrt(scale), q.options()));
  at::Tensor raw = as_type(at::matmul(as_type(q * root), as_type(k * root).transpose(2, 3))), scores = raw;
  if (form.softcap > 0) scores = as_type(form.softcap * at::tanh(as_type(raw / form.softcap)));
  at::Tensor capped = scores, bias = bias_of(call, form, q, k), blind;
  if (bias.defined() && bias.numel() > 0) {
    // A query that may look at nothing gets nothing; its bias is taken away first, so that no NaN has a gradient.
    blind = at::amax(bias, -1, true) == kMasked;
    scores = as_type(capped + bias.masked_fill(blind, 0));
  }
  at::Tensor weights =
      as_type(softmax_in(call, scores, form.softmax == Element::kUndefined ? form.type : form.softmax));
  if (blind.defined()) weights = weights.masked_fill(blind, 0);
  at::Tensor y = as_type(at::matmul(weights, v));
  call.set(0, call.in(0).dim() == 3 ? without_heads(y) : y);
  call.set(1, at::alias(keys));
  call.set(2, at::alias(values));
  if (call.outputs() < 4) return;
  at::Tensor biased = bias.defined() ? capped + bias : capped;
  call.set(3, form.mode == 0 ? raw : form.mode == 1 ? capped : form.mode == 2 ? biased : weights);
}

/// Pairs of values turned by an angle: the halves of a head, or neighbours when interleaved.
at::Tensor rotated(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine, bool interleaved) {
  int64_t half = x.size(3) / 2;
  at::Tensor a = interleaved ? x.slice(3, 0, x.size(3), 2) : x.narrow(3, 0, half);
  at::Tensor b = interleaved ? x.slice(3, 1, x.size(3), 2) : x.narrow(3, half, half);
  at::Tensor real = cosine * a - sine * b, imaginary = sine * a + cosine * b;
  return interleaved ? at::stack({real, imaginary}, -1).reshape(x.sizes()) : at::cat({real, imaginary}, 3);
}

/// The angles' cosines or sines for each position: N × 1 × positions × half.
at::Tensor at_positions(const Call& call, size_t slot, int64_t half) {
  at::Tensor table = call.in(slot);
  if (table.dim() < 2 || table.size(-1) != half) fail("a cache of {} values for {} pairs", table.size(-1), half);
  if (!call.has(3)) return table.dim() == 3 ? table.unsqueeze(1) : table;
  if (table.dim() != 2) fail("a cache with {} axes, expected 2 beside position_ids", table.dim());
  at::Tensor ids = call.in(3).to(at::kLong);
  if (ids.dim() != 2) fail("position_ids has {} axes, expected 2", ids.dim());
  if (ids.numel() && (ids.min().item<int64_t>() < 0 || ids.max().item<int64_t>() >= table.size(0)))
    fail("position_ids reach beyond the cache of {} positions", table.size(0));
  return table.index_select(0, ids.reshape({-1})).reshape({ids.size(0), 1, ids.size(1), half});
}

/// Values along time for each head of keys: N × heads × T × (1 or size).
at::Tensor per_head(const at::Tensor& x, int64_t heads, const char* what) {
  if (x.dim() != 3) fail("{} has {} axes, expected 3", what, x.dim());
  return with_heads(x, x.size(2) == 1 ? 1 : heads, what);
}

struct LinearAttentionForm {
  int64_t q_heads, kv_heads;
  double scale;
  bool gated, corrected;

  explicit LinearAttentionForm(const NodeView& node)
      : q_heads(node.integer("q_num_heads", 0)),
        kv_heads(node.integer("kv_num_heads", 0)),
        scale(node.real("scale", 0)) {
    std::string rule = node.text("update_rule", "gated_delta");
    gated = rule == "gated" || rule == "gated_delta", corrected = rule == "delta" || rule == "gated_delta";
    node.require(gated || corrected || rule == "linear", "update_rule is {}", rule);
    node.require(q_heads > 0 && kv_heads > 0 && q_heads % kv_heads == 0, "{} query heads for {} heads", q_heads,
                 kv_heads);
    node.require(gated == node.has_input(4), "the rule {} {} decay", rule, gated ? "needs" : "takes no");
    node.require(corrected == node.has_input(5), "the rule {} {} beta", rule, corrected ? "needs" : "takes no");
  }
};

/// A state of keys × values per head that each position decays, corrects, adds to and reads from.
void attend_linearly(Call& call, const LinearAttentionForm& form) {
  at::Tensor q = per_head(call.in(0), form.q_heads, "query"), k = per_head(call.in(1), form.kv_heads, "key");
  at::Tensor v = per_head(call.in(2), form.kv_heads, "value"), decay, beta, state;
  if (q.size(1) != form.q_heads || k.size(1) != form.kv_heads || v.size(1) != form.kv_heads) fail("heads do not fit");
  if (k.size(2) != q.size(2) || v.size(2) != q.size(2)) fail("query, key and value differ in length");
  if (q.size(3) != k.size(3) || q.size(3) == 0) fail("heads of query have {} values, of key {}", q.size(3), k.size(3));
  if (form.gated) decay = at::exp(per_head(call.in(4), form.kv_heads, "decay"));
  if (form.corrected) beta = per_head(call.in(5), form.kv_heads, "beta");
  std::vector<int64_t> shape = {q.size(0), form.kv_heads, k.size(3), v.size(3)};
  if (call.has(3) && call.in(3).sizes() != at::IntArrayRef(shape)) fail("past_state has another shape than the heads");
  state = call.has(3) ? call.in(3).to(q.scalar_type()) : at::zeros(shape, q.options());
  double scale = form.scale != 0 ? form.scale : 1 / std::sqrt(double(k.size(3)));
  std::vector<at::Tensor> outputs;
  for (int64_t t = 0; t < q.size(2); ++t) {
    at::Tensor key = k.select(2, t).unsqueeze(3), value = v.select(2, t).unsqueeze(2);
    if (form.gated) state = state * decay.select(2, t).unsqueeze(3);
    if (form.corrected) value = beta.select(2, t).unsqueeze(3) * (value - (state * key).sum(2, true));
    state = state + key * value;
    outputs.push_back(scale * at::matmul(q.select(2, t).unsqueeze(2), for_queries(state, form.q_heads)));
  }
  at::Tensor y =
      outputs.empty() ? at::zeros({q.size(0), form.q_heads, 0, v.size(3)}, q.options()) : at::cat(outputs, 2);
  call.set(0, without_heads(y));
  call.set(1, at::alias(state));
}

}  // namespace

Kernel attention(const NodeView& node) {
  AttentionForm form(node);
  return [=](Call& call) { attend(call, form); };
}

Kernel linear_attention(const NodeView& node) {
  LinearAttentionForm form(node);
  return [=](Call& call) { attend_linearly(call, form); };
}

Kernel rotary_embedding(const NodeView& node) {
  int64_t heads = node.integer("num_heads", 0), part = node.integer("rotary_embedding_dim", 0);
  bool interleaved = node.integer("interleaved", 0) != 0;
  node.require(part >= 0 && part % 2 == 0, "rotary_embedding_dim is {}, expected an even number", part);
  return [=](Call& call) {
    at::Tensor x = with_heads(call.in(0), heads, "X");
    int64_t turned = part > 0 ? part : x.size(3);
    if (turned > x.size(3) || turned % 2 != 0) fail("{} of {} values of a head cannot be rotated", turned, x.size(3));
    at::Tensor cosine = at_positions(call, 1, turned / 2), sine = at_positions(call, 2, turned / 2);
    at::Tensor y = rotated(x.narrow(3, 0, turned), cosine, sine, interleaved);
    if (turned < x.size(3)) y = at::cat({y, x.narrow(3, turned, x.size(3) - turned)}, 3);
    if (y.sizes() != x.sizes()) fail("the caches do not fit the positions");
    call.set(0, call.in(0).dim() == 3 ? without_heads(y) : y);
  };
}

/// Writes an update into a cache at each sample's own position.
Kernel tensor_scatter(const NodeView& node) {
  int64_t axis = node.integer("axis", -2);
  std::string mode = node.text("mode", "linear");
  node.require(mode == "linear" || mode == "circular", "mode is {}, expected linear or circular", mode);
  return [=](Call& call) {
    const at::Tensor &cache = call.in(0), &update = call.in(1);
    int64_t along = axis_in(axis, cache.dim()), length = cache.size(along);
    if (along == 0) fail("axis is 0, which counts samples");
    if (update.dim() != cache.dim() || update.size(along) > length) fail("the update is larger than the cache");
    for (int64_t i = 0; i < cache.dim(); ++i)
      if (i != along && update.size(i) != cache.size(i)) fail("cache and update differ along axis {}", i);
    at::Tensor start = at::zeros({cache.size(0)}, cache.options().dtype(at::kLong));
    if (call.has(2)) start = call.in(2).to(at::kLong);
    if (start.dim() != 1 || start.numel() != cache.size(0)) fail("write_indices has {} numbers", start.numel());
    at::Tensor index = start.unsqueeze(1) + at::arange(update.size(along), start.options());
    if (mode == "circular" && length > 0) index = at::remainder(index, length);
    if (index.numel() && (index.min().item<int64_t>() < 0 || index.max().item<int64_t>() >= length))
      fail("an update would be written outside the {} positions of the cache", length);
    std::vector<int64_t> shape(cache.dim(), 1);
    shape[0] = index.size(0), shape[along] = index.size(1);
    call.set(0, at::scatter(cache, along, index.reshape(shape).expand(update.sizes()), update));
  };
}

/// One filter per channel over the present and the past; the last positions are the state of the next call.
Kernel causal_conv_with_state(const NodeView& node) {
  std::string activation = node.text("activation", "none");
  bool silu = activation == "silu" || activation == "swish";
  node.require(silu || activation == "none", "activation is {}, expected none, silu or swish", activation);
  return [=](Call& call) {
    const at::Tensor &x = call.in(0), &w = call.in(1);
    if (x.dim() != 3 || w.dim() != 3 || w.size(0) != x.size(1) || w.size(1) != 1 || w.size(2) < 1)
      fail("the weight does not hold one filter per channel");
    int64_t kept = w.size(2) - 1;
    at::Tensor past = call.has(3) ? call.in(3) : at::zeros({x.size(0), x.size(1), kept}, x.options());
    if (past.dim() != 3 || past.size(2) != kept) fail("past_state holds another number than {} positions", kept);
    at::Tensor all = at::cat({past, x}, 2), bias = call.has(2) ? call.in(2) : at::Tensor();
    at::Tensor y = at::convolution(all, w, bias, {1}, {0}, {1}, false, {0}, x.size(1));
    call.set(0, silu ? y * at::sigmoid(y) : y);
    call.set(1, at::alias(all.narrow(2, all.size(2) - kept, kept)));
  };
}

std::optional<Units> causal_conv_units(const NodeView& node) {
  at::Tensor weight = node.constant(1);
  if (!weight.defined() || weight.dim() != 3) return std::nullopt;
  return Units{.count = weight.size(0), .bias_slot = node.has_input(2) ? 2 : -1};
}

// clang-format off
std::span<const Op> attention_rows() {
  static constexpr Op kRows[] = {
      {.name = "Attention", .prepare = attention},
      {.name = "CausalConvWithState", .prepare = causal_conv_with_state, .kind = Kind::kLinear, .units = causal_conv_units},
      {.name = "LinearAttention", .prepare = linear_attention},
      {.name = "RotaryEmbedding", .prepare = rotary_embedding},
      {.name = "TensorScatter", .prepare = tensor_scatter},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families
