// Spectra of signals: discrete Fourier transforms, windows, the mel scale.
#include <cmath>

#include "ops/arguments.h"
#include "ops/families.h"

namespace netmend::ops::families {
namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr int64_t kLongestSignal = int64_t(1) << 40;  // longer ones are a file's mistake

/// The last axis holds the real and, when it has two elements, the imaginary part.
at::Tensor as_complex(const at::Tensor& x) {
  if (x.dim() < 2 || (x.size(-1) != 1 && x.size(-1) != 2)) fail("the last axis must hold 1 or 2 parts of a number");
  at::Tensor real = x.select(-1, 0);
  return at::complex(real, x.size(-1) == 2 ? x.select(-1, 1) : at::zeros_like(real));
}

struct Transform {
  int64_t length;
  bool inverse, onesided;
};

at::Tensor transformed(const at::Tensor& x, int64_t axis, const Transform& t) {
  if (t.length < 1 || t.length > kLongestSignal) fail("a transform of length {}", t.length);
  at::Tensor signal = as_complex(x);
  if (signal.size(axis) == 0) fail("axis {} is empty", axis);
  if (t.inverse && t.onesided) return at::fft_irfft(signal, t.length, axis).unsqueeze(-1);
  at::Tensor y = t.inverse ? at::fft_ifft(signal, t.length, axis) : at::fft_fft(signal, t.length, axis);
  if (t.onesided) y = y.narrow(axis, 0, t.length / 2 + 1);
  return at::view_as_real(y);
}

using Shape = at::Tensor (*)(const at::Tensor& turn);  ///< of the angle, 0 … 2π over the window

Kernel window(const NodeView& node, Shape shape) {
  bool periodic = node.integer("periodic", 1) != 0;
  auto type = model::Element(node.integer("output_datatype", 1));
  node.require(model::supported(type), "output_datatype is {}", model::element_name(type));
  return [=](Call& call) {
    int64_t size = integer_of(call.in(0), "size"), steps = periodic ? size : size - 1;
    if (size < 0 || size > kLongestSignal) fail("a window of size {}", size);
    at::Tensor turn =
        at::arange(size, call.in(0).options().dtype(at::kDouble)) * (2 * kPi / double(std::max<int64_t>(steps, 1)));
    call.set(0, cast_to(call, steps == 0 ? at::ones_like(turn) : shape(turn), type));
  };
}

at::Tensor hann(const at::Tensor& turn) { return 0.5 - 0.5 * at::cos(turn); }
at::Tensor hamming(const at::Tensor& turn) { return 25.0 / 46 - 21.0 / 46 * at::cos(turn); }
at::Tensor blackman(const at::Tensor& turn) { return 0.42 - 0.5 * at::cos(turn) + 0.08 * at::cos(2 * turn); }

double mel_of(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double hertz_of(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

struct MelScale {
  int64_t bands, length, rate;
  double low, high;  ///< hertz
};

/// The bins of the spectrum where bands begin, peak and end: a band begins where the one before it peaks.
std::vector<int64_t> mel_bins(const MelScale& m) {
  std::vector<int64_t> bins;
  double step = (mel_of(m.high) - mel_of(m.low)) / double(m.bands + 2);
  for (int64_t i = 0; i < m.bands + 2; ++i) {
    double hertz = hertz_of(mel_of(m.low) + double(i) * step);
    bins.push_back(int64_t(std::floor(double(m.length + 1) * hertz / double(m.rate))));
    if (bins.back() < 0 || bins.back() > m.length / 2) fail("{} Hz lies outside the spectrum", hertz);
  }
  return bins;
}

/// One triangle per band, with its peak at 1.
at::Tensor mel_matrix(const MelScale& m) {
  if (m.bands < 1 || m.bands > (1 << 20) || m.length < 1 || m.length > kLongestSignal || m.rate < 1)
    fail("{} bands of a spectrum of {} at a rate of {}", m.bands, m.length, m.rate);
  if (!(m.low >= 0 && m.high > m.low && std::isfinite(m.high))) fail("bands from {} to {} Hz", m.low, m.high);
  std::vector<int64_t> bins = mel_bins(m);
  at::Tensor matrix = at::zeros({m.length / 2 + 1, m.bands}, at::kDouble);
  auto weight = matrix.accessor<double, 2>();
  for (int64_t i = 0; i < m.bands; ++i) {
    const int64_t from = bins[size_t(i)], peak = bins[size_t(i + 1)], to = bins[size_t(i + 2)];
    for (int64_t j = from; j < peak; ++j) weight[j][i] = double(j - from) / double(peak - from);
    weight[peak][i] = 1;
    for (int64_t j = peak; j < to; ++j) weight[j][i] = double(to - j) / double(to - peak);
  }
  return matrix;
}

}  // namespace

/// Opset 17 gives the axis as an attribute, 20 as an input.
Kernel dft(const NodeView& node) {
  int64_t attribute = node.integer("axis", node.opset() < 20 ? 1 : -2);
  bool inverse = node.integer("inverse", 0) != 0, onesided = node.integer("onesided", 0) != 0;
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    int64_t axis = axis_in(call.has(2) ? integer_of(call.in(2), "axis") : attribute, x.dim());
    if (axis == x.dim() - 1) fail("axis {} holds the parts of numbers, not the signal", axis);
    int64_t length = inverse && onesided ? 2 * (x.size(axis) - 1) : x.size(axis);
    if (call.has(1)) length = integer_of(call.in(1), "dft_length");
    call.set(0, transformed(x, axis, {length, inverse, onesided}));
  };
}

Kernel stft(const NodeView& node) {
  bool onesided = node.integer("onesided", 1) != 0;
  return [=](Call& call) {
    const at::Tensor& x = call.in(0);
    if (x.dim() != 3) fail("the signal has {} axes, expected 3", x.dim());
    int64_t step = integer_of(call.in(1), "frame_step"), length = x.size(1);
    if (call.has(2)) length = call.in(2).numel();
    if (call.has(3)) length = integer_of(call.in(3), "frame_length");
    if (step < 1 || length < 1 || length > x.size(1)) fail("frames of {} every {} of {}", length, step, x.size(1));
    at::Tensor frames = x.unfold(1, length, step).transpose(2, 3);
    if (call.has(2)) {
      if (call.in(2).dim() != 1 || call.in(2).numel() != length) fail("the window does not fit frames of {}", length);
      frames = frames * call.in(2).unsqueeze(1);
    }
    if (onesided && x.size(2) == 2) fail("a complex signal has no one-sided spectrum");
    call.set(0, transformed(frames, 2, {length, false, onesided}));
  };
}

Kernel hann_window(const NodeView& node) { return window(node, hann); }
Kernel hamming_window(const NodeView& node) { return window(node, hamming); }
Kernel blackman_window(const NodeView& node) { return window(node, blackman); }

Kernel mel_weight_matrix(const NodeView& node) {
  auto type = model::Element(node.integer("output_datatype", 1));
  node.require(model::supported(type), "output_datatype is {}", model::element_name(type));
  return [=](Call& call) {
    MelScale scale{integer_of(call.in(0), "num_mel_bins"), integer_of(call.in(1), "dft_length"),
                   integer_of(call.in(2), "sample_rate"), real_of(call.in(3), "lower_edge_hertz"),
                   real_of(call.in(4), "upper_edge_hertz")};
    call.set(0, cast_to(call, mel_matrix(scale), type).to(call.in(0).device()));
  };
}

// clang-format off
std::span<const Op> signal_rows() {
  static constexpr Op kRows[] = {
      {.name = "BlackmanWindow", .prepare = blackman_window, .differentiable = false},
      {.name = "DFT", .prepare = dft},
      {.name = "HammingWindow", .prepare = hamming_window, .differentiable = false},
      {.name = "HannWindow", .prepare = hann_window, .differentiable = false},
      {.name = "MelWeightMatrix", .prepare = mel_weight_matrix, .differentiable = false},
      {.name = "STFT", .prepare = stft},
  };
  return kRows;
}
// clang-format on

}  // namespace netmend::ops::families
