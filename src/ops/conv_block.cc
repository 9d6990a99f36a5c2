#include "ops/conv_block.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <optional>

#include "ops/cuda_kernel.h"
#include "ops/window.h"

namespace netmend::ops {
namespace {

/// Every block takes image after image. The image, padded, and all weights lie in shared memory; a thread computes 2×2
/// neighbouring outputs of CPT filters, so that each of the values it reads is used up to KH·KW·CPT times, and pools
/// them in registers. On an H200 this takes a quarter of cuDNN's time for LeNet-5's first layers, whose one and six
/// channels leave its matrix products mostly empty.
constexpr const char* kSource = R"(
extern "C" __global__ void __launch_bounds__(THREADS) conv_block(const float* __restrict__ x,
    const float* __restrict__ w, const float* __restrict__ b, float* __restrict__ y, int images) {
  extern __shared__ float memory[];
  float* weights = memory;                     // CIN x KH x KW x FILTERS
  float* image = memory + CIN * KH * KW * FILTERS;  // CIN x TH x TW
  constexpr int PH = (OH + 1) / 2, PW = (OW + 1) / 2, GROUPS = FILTERS / CPT, WORK = PH * PW * GROUPS;
  for (int i = threadIdx.x; i < CIN * KH * KW * FILTERS; i += THREADS) {
    const int filter = i % FILTERS, rest = i / FILTERS;
    weights[i] = filter < COUT ? w[filter * CIN * KH * KW + rest] : 0.f;
  }
  for (int i = threadIdx.x; i < CIN * TH * TW; i += THREADS) image[i] = 0.f;
  for (int n = blockIdx.x; n < images; n += gridDim.x) {
    __syncthreads();
    for (int i = threadIdx.x; i < CIN * H * W; i += THREADS) {
      const int c = i / (H * W), r = i % (H * W);
      image[(c * TH + r / W + PADH) * TW + r % W + PADW] = x[(long long)n * CIN * H * W + i];
    }
    __syncthreads();
    for (int item = threadIdx.x; item < WORK; item += THREADS) {
      const int group = item / (PH * PW), at = item % (PH * PW), py = at / PW * 2, px = at % PW * 2;
      float sum[4][CPT];
#pragma unroll
      for (int f = 0; f < CPT; ++f) {
        const int filter = group * CPT + f;
        const float bias = HAS_BIAS && filter < COUT ? b[filter] : 0.f;
        sum[0][f] = sum[1][f] = sum[2][f] = sum[3][f] = bias;
      }
      for (int c = 0; c < CIN; ++c) {
        float patch[KH + 1][KW + 1];
#pragma unroll
        for (int dy = 0; dy <= KH; ++dy)
#pragma unroll
          for (int dx = 0; dx <= KW; ++dx) patch[dy][dx] = image[(c * TH + py + dy) * TW + px + dx];
#pragma unroll
        for (int ky = 0; ky < KH; ++ky)
#pragma unroll
          for (int kx = 0; kx < KW; ++kx) {
            const float* own = weights + ((c * KH + ky) * KW + kx) * FILTERS + group * CPT;
#pragma unroll
            for (int f = 0; f < CPT; ++f) {
              const float weight = own[f];
              sum[0][f] += weight * patch[ky][kx];
              sum[1][f] += weight * patch[ky][kx + 1];
              sum[2][f] += weight * patch[ky + 1][kx];
              sum[3][f] += weight * patch[ky + 1][kx + 1];
            }
          }
      }
#pragma unroll
      for (int f = 0; f < CPT; ++f) {
        const int filter = group * CPT + f;
        if (filter >= COUT) continue;
        if (POOL) {
          const float top = larger(sum[0][f], sum[1][f]), low = larger(sum[2][f], sum[3][f]);
          if (py + 1 < OH && px + 1 < OW)
            y[(((long long)n * COUT + filter) * (OH / 2) + py / 2) * (OW / 2) + px / 2] = ended(larger(top, low));
        } else {
          float* out = y + (((long long)n * COUT + filter) * OH + py) * OW + px;
          out[0] = ended(sum[0][f]);
          if (px + 1 < OW) out[1] = ended(sum[1][f]);
          if (py + 1 < OH) out[OW] = ended(sum[2][f]);
          if (py + 1 < OH && px + 1 < OW) out[OW + 1] = ended(sum[3][f]);
        }
      }
    }
  }
}
)";
// NaN stays NaN, as in LibTorch's pooling and relu.
constexpr const char* kFunctions = R"(
__device__ inline float larger(float a, float b) { return b > a || b != b ? b : a; }
__device__ inline float ended(float a) { return RELU && a < 0.f ? 0.f : a; }
)";

constexpr int64_t kMostShared = 48 << 10, kMostProducts = 160, kMostFilters = 64;

struct BlockForm {
  WindowAttributes window;
  int64_t groups;
  bool pool, relu;
};

/// nullopt where the shapes are none that the kernel is good at.
std::optional<at::Tensor> in_one(const Call& call, const BlockForm& form) {
  const at::Tensor &x = call.in(0), &w = call.in(1);
  const bool bias = call.has(2);
  if (!x.is_cuda() || at::GradMode::is_enabled() || form.groups != 1 || x.dim() != 4 || w.dim() != 4 ||
      x.scalar_type() != at::kFloat || w.scalar_type() != at::kFloat || x.size(0) == 0 || x.size(1) != w.size(1) ||
      (bias && (call.in(2).scalar_type() != at::kFloat || call.in(2).dim() != 1 || call.in(2).size(0) != w.size(0))))
    return std::nullopt;
  const int64_t cin = x.size(1), h = x.size(2), width = x.size(3), cout = w.size(0), kh = w.size(2), kw = w.size(3);
  if (cin * kh * kw > kMostProducts || cout > kMostFilters || kh > 7 || kw > 7 || h > 256 || width > 256)
    return std::nullopt;
  if (!form.window.kernel.empty() && form.window.kernel != std::vector<int64_t>{kh, kw}) return std::nullopt;
  const Window window = window_over(form.window, w.sizes().slice(2), x.sizes().slice(2));
  const std::vector<int64_t> one = {1, 1};
  if (window.stride != one || window.dilation != one || window.begin[0] < 0 || window.begin[1] < 0 ||
      window.end[0] < 0 || window.end[1] < 0)
    return std::nullopt;
  const int64_t oh = h + window.begin[0] + window.end[0] - kh + 1,
                ow = width + window.begin[1] + window.end[1] - kw + 1;
  if (oh < 2 || ow < 2) return std::nullopt;
  const int64_t places = ((oh + 1) / 2) * ((ow + 1) / 2);
  // Filters of a thread: many use what was read often, few leave enough threads.
  int64_t each = 8;
  while (each > 2 && (places * ((cout + each - 1) / each) < 128 || (cout + each - 1) / each * each - cout >= each / 2))
    each /= 2;
  if (cout < 8 && cout > 4 && places >= 128) each = cout;
  const int64_t filters = (cout + each - 1) / each * each;
  const int64_t threads = std::min<int64_t>(256, (places * (filters / each) + 31) / 32 * 32);
  // A row and a column more than the window needs: odd sizes compute one output that nobody takes.
  const int64_t th = (oh + 1) / 2 * 2 + kh - 1, tw = (ow + 1) / 2 * 2 + kw - 1;
  const int64_t shared = 4 * (cin * kh * kw * filters + cin * th * tw);
  if (shared > kMostShared) return std::nullopt;
  std::string source;
  auto define = [&](const char* name, int64_t value) { source += fmt::format("#define {} {}\n", name, value); };
  define("CIN", cin), define("COUT", cout), define("KH", kh), define("KW", kw), define("H", h), define("W", width);
  define("OH", oh), define("OW", ow), define("TH", th), define("TW", tw), define("PADH", window.begin[0]);
  define("PADW", window.begin[1]), define("CPT", each), define("FILTERS", filters), define("THREADS", threads);
  define("POOL", form.pool), define("RELU", form.relu), define("HAS_BIAS", bias);
  source += std::string(kFunctions) + kSource;
  const CudaKernel* kernel = CudaKernel::find(source, "conv_block");
  if (!kernel) return std::nullopt;
  const at::Tensor image = x.contiguous(), weight = w.contiguous();
  at::Tensor y = at::empty({x.size(0), cout, form.pool ? oh / 2 : oh, form.pool ? ow / 2 : ow}, x.options());
  const float *from = image.data_ptr<float>(), *by = weight.data_ptr<float>(),
              *plus = bias ? call.in(2).data_ptr<float>() : nullptr;
  float* to = y.data_ptr<float>();
  int images = int(x.size(0));
  const unsigned blocks = unsigned(std::min<int64_t>(x.size(0), 132 * 16));
  kernel->launch(x, {blocks, unsigned(threads), unsigned(shared)}, {&from, &by, &plus, &to, &images});
  return y;
}

/// y = relu(y + bias), in place: LibTorch goes over the result once for each.
constexpr const char* kBiasRelu = R"(
extern "C" __global__ void bias_relu(float4* __restrict__ y, const float* __restrict__ b, unsigned count, unsigned channels,
                                     unsigned inner) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    float4 v = y[i];
    const unsigned first = 4 * i;
    v.x += b[first / inner % channels], v.y += b[(first + 1) / inner % channels];
    v.z += b[(first + 2) / inner % channels], v.w += b[(first + 3) / inner % channels];
    v.x = v.x < 0.f ? 0.f : v.x, v.y = v.y < 0.f ? 0.f : v.y, v.z = v.z < 0.f ? 0.f : v.z, v.w = v.w < 0.f ? 0.f : v.w;
    y[i] = v;
  }
}
)";

/// nullopt where the operands are none that the kernel takes.
std::optional<at::Tensor> with_bias_and_relu(const Call& call, const Kernel& conv, const BlockForm& form) {
  if (!form.relu || form.pool || !call.has(2) || !call.in(0).is_cuda() || at::GradMode::is_enabled())
    return std::nullopt;
  const at::Tensor& bias = call.in(2);
  const CudaKernel* kernel = CudaKernel::find(kBiasRelu, "bias_relu");
  if (!kernel || bias.scalar_type() != at::kFloat || bias.dim() != 1) return std::nullopt;
  const at::Tensor operands[] = {call.in(0), call.in(1)};
  at::Tensor y;
  Call bare(operands, {&y, 1}, 0, call.training(), call.seed(), call.real());
  conv(bare);
  const bool last = y.dim() == 4 && !y.is_contiguous() && y.is_contiguous(at::MemoryFormat::ChannelsLast);
  if (y.scalar_type() != at::kFloat || y.numel() % 4 != 0 || y.numel() >= (int64_t(1) << 32) || y.dim() < 3 ||
      y.size(1) != bias.size(0) || !(last || y.is_contiguous())) {
    std::vector<int64_t> shape(size_t(y.dim()), 1);
    shape[1] = bias.numel();
    return y.add_(bias.reshape(shape)).relu_();
  }
  auto count = unsigned(y.numel() / 4), channels = unsigned(y.size(1)),
       inner = unsigned(last ? 1 : y.numel() / y.size(0) / y.size(1));
  float* to = y.data_ptr<float>();
  const float* plus = bias.data_ptr<float>();
  const unsigned blocks = std::min<unsigned>((count + 255) / 256, 132 * 16);
  if (count > 0) kernel->launch(y, {blocks, 256, 0}, {&to, &plus, &count, &channels, &inner});
  return y;
}

}  // namespace

bool halves(const NodeView& pool) {
  auto all = [&](const char* name, int64_t value, bool needed) {
    const std::vector<int64_t> list = pool.integers(name);
    if (list.empty()) return !needed;
    for (int64_t one : list)
      if (one != value) return false;
    return true;
  };
  return pool.node().op == "MaxPool" && pool.integers("kernel_shape").size() == 2 && all("kernel_shape", 2, true) &&
         all("strides", 2, true) && all("pads", 0, false) && all("dilations", 1, false) &&
         pool.integer("ceil_mode", 0) == 0 && pool.text("auto_pad", "NOTSET") == "NOTSET" && !pool.has_output(1);
}

Kernel prepare_conv_block(const model::Graph& graph, const model::Node& conv, const model::Node* pool,
                          const model::Node* relu) {
  std::vector<Kernel> one_by_one = {prepare(graph, conv)};
  for (const model::Node* node : {pool, relu})
    if (node) one_by_one.push_back(prepare(graph, *node));
  const NodeView view(graph, conv);
  const BlockForm form{WindowAttributes(view), view.integer("group", 1), pool != nullptr, relu != nullptr};
  return [one_by_one, form](Call& call) {
    if (auto y = in_one(call, form)) return call.set(0, std::move(*y));
    if (auto y = with_bias_and_relu(call, one_by_one[0], form)) return call.set(0, std::move(*y));
    one_by_one[0](call);
    for (size_t i = 1; i < one_by_one.size(); ++i) {
      const at::Tensor before = std::move(call.out(0));
      at::Tensor after;
      Call next({&before, 1}, {&after, 1}, 1, call.training(), call.seed(), call.real());
      one_by_one[i](next);
      call.set(0, std::move(after));
    }
  };
}

}  // namespace netmend::ops
