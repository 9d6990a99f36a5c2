#include "training/lane_ops.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "ops/dropout.h"
#include "ops/split_batch.h"

namespace netmend::training {
namespace {

using Table = std::vector<int64_t>;

int64_t floor_of(int64_t a, int64_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

/// The positions of an axis of inputs that a convolution's stride treats alike, and which steps of the window meet
/// them: gradient of position p = sum over steps k of window gradient at (p + begin − k) / stride.
struct Phase {
  int64_t first = 0, count = 0;  ///< positions first, first + stride, …
  int64_t from = 0;              ///< the output that step `rest` of the window meets at the first
  int64_t rest = 0;              ///< steps rest, rest + stride, …: one output further back each
};

std::vector<Phase> phases(int64_t size, int64_t begin, int64_t stride) {
  std::vector<Phase> all;
  for (int64_t first = 0; first < std::min(stride, size); ++first)
    all.push_back({first, (size - first + stride - 1) / stride, (first + begin) / stride, (first + begin) % stride});
  return all;
}

class Conv : public LaneOp {
 public:
  explicit Conv(const LaneConv& form) : f_(form) {}

  void prepare(const std::vector<LaneValue>& values, const std::vector<Plane>& planes) override {
    const LaneValue &x = values[size_t(in)], &y = values[size_t(out)];
    for (int64_t c = 0; c < f_.channels; ++c)
      for (int64_t i = 0; i < f_.height; ++i)
        for (int64_t j = 0; j < f_.width; ++j) {
          own_.push_back(int64_t(own_.size()));
          taps_.push_back(c * x.plane.channel() + i * x.plane.line() + j * kInputs);
        }
    if (!x.differentiable) return;
    const Plane& g = planes[size_t(y.gradient)];
    rows_ = phases(x.plane.height, f_.top, f_.stride_y), columns_ = phases(x.plane.width, f_.left, f_.stride_x);
    for (const Phase& row : rows_)
      for (const Phase& column : columns_) {
        back_weights_.emplace_back(), back_taps_.emplace_back();
        for (int64_t u = 0; u < f_.units; ++u)
          for (int64_t i = row.rest; i < f_.height; i += f_.stride_y)
            for (int64_t j = column.rest; j < f_.width; j += f_.stride_x) {
              back_weights_.back().push_back(u * f_.products() + i * f_.width + j);
              back_taps_.back().push_back(u * g.channel() - (i - row.rest) / f_.stride_y * g.line() -
                                          (j - column.rest) / f_.stride_x * kInputs);
            }
      }
  }

  void forward(LanePass& pass) const override {
    const Plane &x = pass.plane(in), &y = pass.plane(out);
    ops::WindowSums s;
    s.a = pass.weight(f_.weight), s.a_row = f_.products(), s.a_at = own_.data();
    s.b_at = taps_.data(), s.b_step = f_.stride_x * kInputs, s.terms = f_.products();
    s.c_row = y.channel(), s.rows = f_.units, s.columns = y.width;
    s.bias = pass.weight(f_.bias), s.relu = relu;
    for (int64_t group = 0; group < pass.groups; ++group)
      for (int64_t line = 0; line < y.height; ++line) {
        s.b = pass.image(in, group) + x.at(line * f_.stride_y - f_.top, -f_.left);
        s.c = pass.image(out, group) + y.at(line, 0);
        ops::window_sums(pass.vectors, s);
      }
  }

  void backward(LanePass& pass) const override {
    const Plane &x = pass.plane(in), &y = pass.plane(out), &g = pass.gradient_plane(out);
    float* bias = f_.bias < 0 ? nullptr : pass.parameter_gradient(f_.bias);
    if (bias && !pass.add) std::fill_n(bias, f_.units, 0.0f);
    ops::WindowDots d;
    d.g_unit = g.channel(), d.g_line = g.line();
    d.x_at = taps_.data(), d.x_line = f_.stride_y * x.line(), d.x_step = f_.stride_x * kInputs;
    d.units = f_.units, d.terms = f_.products(), d.lines = y.height, d.columns = y.width;
    d.to = pass.parameter_gradient(f_.weight);
    const bool joins = pass.values[size_t(in)].differentiable && pass.joins(in);
    for (int64_t group = 0; group < pass.groups; ++group) {
      float* gradients = pass.gradient_image(out, group);
      if (relu || bias) ops::mask_and_sum(gradients, g, pass.image(out, group), y, relu, bias);
      d.g = gradients + g.first(), d.x = pass.image(in, group) + x.at(-f_.top, -f_.left);
      d.add = pass.add || group > 0;
      ops::window_dots(pass.vectors, d);
      if (pass.values[size_t(in)].differentiable) to_inputs(pass, group, joins);
    }
  }

 private:
  void to_inputs(LanePass& pass, int64_t group, bool joins) const {
    const Plane &gx = pass.gradient_plane(in), &g = pass.gradient_plane(out);
    ops::WindowSums s;
    s.a = pass.weight(f_.weight), s.a_row = f_.height * f_.width;
    s.c_row = gx.channel(), s.c_step = f_.stride_x * kInputs, s.rows = f_.channels;
    for (size_t r = 0; r < rows_.size(); ++r)
      for (size_t c = 0; c < columns_.size(); ++c) {
        const Phase &row = rows_[r], &column = columns_[c];
        const size_t which = r * columns_.size() + c;
        s.a_at = back_weights_[which].data(), s.b_at = back_taps_[which].data();
        s.terms = int64_t(back_taps_[which].size()), s.columns = column.count;
        for (int64_t i = 0; i < row.count; ++i) {
          s.b = pass.gradient_image(out, group) + g.at(row.from + i, column.from);
          s.c = pass.gradient_image(in, group) + gx.at(row.first + i * f_.stride_y, column.first);
          s.from = joins ? s.c : nullptr;
          ops::window_sums(pass.vectors, s);
        }
      }
  }

  LaneConv f_;
  Table own_, taps_;
  std::vector<Phase> rows_, columns_;
  std::vector<Table> back_weights_, back_taps_;  ///< by phase of rows and columns
};

class Pool : public LaneOp {
 public:
  explicit Pool(const LanePool& form) : f_(form) {}

  void forward(LanePass& pass) const override {
    const Plane &x = pass.plane(in), &y = pass.plane(out);
    at::Tensor& which = pass.room.own[number];
    if (!which.defined()) which = at::empty({pass.room.groups, y.channels * y.height * y.width * kInputs}, at::kChar);
    for (int64_t group = 0; group < pass.groups; ++group)
      ops::pool_lanes(pass.image(in, group), x, f_, relu, pass.image(out, group), y,
                      which.data_ptr<int8_t>() + group * which.size(1));
  }

  void backward(LanePass& pass) const override {
    if (!pass.values[size_t(in)].differentiable) return;
    const at::Tensor& which = pass.room.own[number];
    const bool joins = pass.joins(in);
    for (int64_t group = 0; group < pass.groups; ++group) {
      // What lies outside all windows gets nothing.
      if (!joins && !covers(pass.plane(in), pass.plane(out)))
        std::fill_n(pass.gradient_image(in, group), pass.gradient_plane(in).all(), 0.0f);
      ops::unpool_lanes(pass.gradient_image(out, group), pass.gradient_plane(out), pass.image(out, group),
                        pass.plane(out), which.data_ptr<int8_t>() + group * which.size(1), f_, relu,
                        pass.gradient_image(in, group), pass.gradient_plane(in), joins || !f_.apart());
    }
  }

 private:
  bool covers(const Plane& in, const Plane& out) const {
    return f_.apart() && f_.stride_y == f_.height && f_.stride_x == f_.width && out.height * f_.height == in.height &&
           out.width * f_.width == in.width;
  }
  LanePool f_;
};

/// Batch norm by the statistics of the whole split batch, which is what `ops::seat()` says.
class Norm : public LaneOp {
 public:
  explicit Norm(const LaneNorm& form) : f_(form) {}

  void forward(LanePass& pass) const override {
    const Plane& x = pass.plane(in);
    const auto channels = size_t(x.channels);
    const at::Tensor &mean = pass.parameters.statistics()[f_.mean],
                     &variance = pass.parameters.statistics()[f_.variance];
    const std::vector<float> around(mean.data_ptr<float>(), mean.data_ptr<float>() + channels);
    std::vector<double> sums(2 * channels + 1);
    for (int64_t group = 0; group < pass.groups; ++group)
      ops::lane_moments(pass.image(in, group), x, around.data(), pass.inputs_in(group), sums.data(),
                        sums.data() + channels);
    sums.back() = double(pass.inputs * x.height * x.width);
    all_reduce(sums);
    const double count = sums.back();
    if (count < 2) fail("batch statistics need more than one value for each channel");
    at::Tensor& kept = pass.room.own[number];  // mean and 1 / σ
    if (!kept.defined()) kept = at::empty({2, x.channels}, at::kDouble);
    double *means = kept.data_ptr<double>(), *inverse = means + channels;
    std::vector<float> factor(channels), offset(channels);
    for (size_t c = 0; c < channels; ++c) {
      const double off = sums[c] / count, spread = std::max(0.0, sums[channels + c] / count - off * off);
      means[c] = double(around[c]) + off;
      inverse[c] = 1 / std::sqrt(spread + f_.epsilon);
      const double scale = pass.weight(f_.scale)[c] * inverse[c];
      factor[c] = float(scale);
      offset[c] = float(pass.weight(f_.bias)[c] - means[c] * scale);
      if (ops::seat().part == 0) {
        float &m = mean.data_ptr<float>()[c], &v = variance.data_ptr<float>()[c];
        m = float(f_.momentum * m + (1 - f_.momentum) * means[c]);
        v = float(f_.momentum * v + (1 - f_.momentum) * spread * count / (count - 1));
      }
    }
    for (int64_t group = 0; group < pass.groups; ++group)
      ops::lane_scale(pass.image(in, group), x, factor.data(), offset.data(), relu, pass.image(out, group),
                      pass.plane(out));
  }

  /// gx = w/σ · (g − mean of g − x̂ · mean of g·x̂), means over the whole batch.
  void backward(LanePass& pass) const override {
    const Plane &x = pass.plane(in), &g = pass.gradient_plane(out);
    const auto channels = size_t(x.channels);
    const double *means = pass.room.own[number].data_ptr<double>(), *inverse = means + channels;
    const std::vector<float> around(means, means + channels);
    std::vector<double> sums(2 * channels + 1);
    for (int64_t group = 0; group < pass.groups; ++group)
      ops::lane_products(pass.gradient_image(out, group), g, pass.image(out, group), pass.plane(out), relu,
                         pass.image(in, group), x, around.data(), pass.inputs_in(group), sums.data(),
                         sums.data() + channels);
    float *scale = pass.parameter_gradient(f_.scale), *bias = pass.parameter_gradient(f_.bias);
    for (size_t c = 0; c < channels; ++c) {  // from x − rounded mean to x̂
      sums[channels + c] = (sums[channels + c] - sums[c] * (means[c] - double(around[c]))) * inverse[c];
      bias[c] = float(sums[c]), scale[c] = float(sums[channels + c]);
    }
    sums.back() = double(pass.inputs * x.height * x.width);
    all_reduce(sums);
    if (!pass.values[size_t(in)].differentiable) return;
    std::vector<float> a(channels), b(channels), k(channels);
    for (size_t c = 0; c < channels; ++c) {
      const double factor = pass.weight(f_.scale)[c] * inverse[c],
                   product = sums[channels + c] / sums.back() * inverse[c];
      a[c] = float(factor);
      b[c] = float(-factor * product);
      k[c] = float(factor * (product * means[c] - sums[c] / sums.back()));
    }
    const bool joins = pass.joins(in);
    for (int64_t group = 0; group < pass.groups; ++group)
      ops::lane_combine(pass.gradient_image(out, group), g, pass.image(in, group), x, a.data(), b.data(), k.data(),
                        pass.inputs_in(group), pass.gradient_image(in, group), pass.gradient_plane(in), joins);
  }

 private:
  static void all_reduce(std::vector<double>& sums) {
    if (ops::seat().batch) ops::seat().batch->sum(ops::seat().part, sums);
  }
  LaneNorm f_;
};

class Add : public LaneOp {
 public:
  void forward(LanePass& pass) const override {
    for (int64_t group = 0; group < pass.groups; ++group)
      ops::add_lanes(pass.image(in, group), pass.plane(in), pass.image(other, group), pass.plane(other), relu,
                     pass.image(out, group), pass.plane(out));
  }

  void backward(LanePass& pass) const override {
    const Plane& g = pass.gradient_plane(out);
    const bool joins[2] = {joins_at(pass, in), joins_at(pass, other)};
    for (int64_t group = 0; group < pass.groups; ++group) {
      if (relu)
        ops::mask_and_sum(pass.gradient_image(out, group), g, pass.image(out, group), pass.plane(out), true, nullptr);
      for (int i = 0; i < 2; ++i) {
        const int to = i == 0 ? in : other;
        if (apart(pass, to))
          ops::pass_lanes(pass.gradient_image(out, group), g, pass.gradient_image(to, group), pass.gradient_plane(to),
                          joins[i]);
      }
    }
  }

 private:
  /// Most operands share the place of the sum's gradient, which is theirs too.
  bool apart(const LanePass& pass, int to) const {
    const LaneValue& value = pass.values[size_t(to)];
    return value.differentiable && value.gradient != pass.values[size_t(out)].gradient;
  }
  bool joins_at(LanePass& pass, int to) const { return apart(pass, to) && pass.joins(to); }
};

/// Each channel's mean.
class Mean : public LaneOp {
 public:
  bool takes_relu() const override { return false; }
  void forward(LanePass& pass) const override {
    const Plane& x = pass.plane(in);
    pass.row(out) = at::empty({pass.inputs, x.channels}, at::kFloat);
    for (int64_t group = 0; group < pass.groups; ++group)
      ops::mean_to_rows(pass.image(in, group), x, pass.inputs_in(group),
                        pass.row(out).data_ptr<float>() + group * kInputs * x.channels, x.channels);
  }
  void backward(LanePass& pass) const override {
    if (!pass.values[size_t(in)].differentiable) return;
    const at::Tensor g = pass.gradient_row(out).contiguous();
    const bool joins = pass.joins(in);
    for (int64_t group = 0; group < pass.groups; ++group)
      ops::mean_from_rows(g.data_ptr<float>() + group * kInputs * g.size(1), g.size(1), pass.inputs_in(group),
                          pass.gradient_image(in, group), pass.gradient_plane(in), joins);
  }
};

class Flatten : public LaneOp {
 public:
  bool takes_relu() const override { return false; }
  void forward(LanePass& pass) const override {
    const Plane& x = pass.plane(in);
    const int64_t width = x.channels * x.height * x.width;
    pass.row(out) = at::empty({pass.inputs, width}, at::kFloat);
    for (int64_t group = 0; group < pass.groups; ++group)
      ops::lanes_to_rows(pass.image(in, group), x, pass.inputs_in(group),
                         pass.row(out).data_ptr<float>() + group * kInputs * width, width);
  }
  void backward(LanePass& pass) const override {
    if (!pass.values[size_t(in)].differentiable) return;
    const at::Tensor g = pass.gradient_row(out).contiguous();
    pass.joins(in);
    for (int64_t group = 0; group < pass.groups; ++group)
      ops::rows_to_lanes(g.data_ptr<float>() + group * kInputs * g.size(1), g.size(1), pass.inputs_in(group),
                         pass.gradient_image(in, group), pass.gradient_plane(in));
  }
};

class Dense : public LaneOp {
 public:
  explicit Dense(const LaneDense& form) : f_(form) {}

  void forward(LanePass& pass) const override {
    const at::Tensor w = matrix(pass.parameters.values());
    pass.row(out) = f_.bias < 0 ? at::mm(pass.row(in), w)
                                : at::addmm(pass.parameters.values().narrow(0, f_.bias, f_.units), pass.row(in), w);
    if (relu) at::relu_(pass.row(out));
  }

  void backward(LanePass& pass) const override {
    at::Tensor& g = pass.gradient_row(out);
    if (relu) g = at::threshold_backward(g, pass.row(out), 0);
    if (f_.bias >= 0) {
      at::Tensor bias = pass.gradient.narrow(0, f_.bias, f_.units);
      pass.add ? bias.add_(g.sum(0)) : at::sum_out(bias, g, at::IntArrayRef{0});
    }
    at::Tensor w = pass.gradient.narrow(0, f_.weight, f_.inputs * f_.units);
    w = f_.inputs_first ? w.view({f_.inputs, f_.units}) : w.view({f_.units, f_.inputs});
    const at::Tensor &x = pass.row(in), left = f_.inputs_first ? x.t() : g.t(), &right = f_.inputs_first ? g : x;
    pass.add ? w.addmm_(left, right) : at::mm_out(w, left, right);
    if (pass.values[size_t(in)].differentiable) pass.gradient_row(in) = at::mm(g, matrix(pass.parameters.values()).t());
  }

 private:
  /// Inputs × units.
  at::Tensor matrix(const at::Tensor& flat) const {
    const at::Tensor w = flat.narrow(0, f_.weight, f_.inputs * f_.units);
    return f_.inputs_first ? w.view({f_.inputs, f_.units}) : w.view({f_.units, f_.inputs}).t();
  }
  LaneDense f_;
};

class Dropout : public LaneOp {
 public:
  explicit Dropout(const LaneDropout& form) : f_(form) {}
  bool takes_relu() const override { return false; }

  void forward(LanePass& pass) const override {
    const LaneValue& value = pass.values[size_t(in)];
    const int64_t width = value.image ? value.plane.channels * value.plane.height * value.plane.width : value.width;
    const at::Tensor rows = at::empty({pass.inputs, width}, at::kFloat);
    ops::fill_dropout_mask(rows.data_ptr<float>(), rows.numel(), pass.seed + f_.step * 0x9e3779b97f4a7c15u, f_.ratio);
    at::Tensor& mask = pass.room.own[number];
    if (!value.image) {
      mask = rows;
      pass.row(out) = at::mul(pass.row(in), mask);
      return;
    }
    Plane bare = value.plane;
    bare.top = bare.left = bare.bottom = bare.right = 0;
    if (!mask.defined()) mask = at::empty({pass.room.groups, bare.all()}, at::kFloat);
    for (int64_t group = 0; group < pass.groups; ++group) {
      float* own = mask.data_ptr<float>() + group * bare.all();
      ops::rows_to_lanes(rows.data_ptr<float>() + group * kInputs * width, width, pass.inputs_in(group), own, bare);
      ops::multiply_lanes(pass.image(in, group), value.plane, own, pass.image(out, group), pass.plane(out), false);
    }
  }

  void backward(LanePass& pass) const override {
    if (!pass.values[size_t(in)].differentiable) return;
    const at::Tensor& mask = pass.room.own[number];
    if (!pass.values[size_t(in)].image) {
      pass.gradient_row(in) = at::mul(pass.gradient_row(out), mask);
      return;
    }
    const bool joins = pass.joins(in);
    for (int64_t group = 0; group < pass.groups; ++group)
      ops::multiply_lanes(pass.gradient_image(out, group), pass.gradient_plane(out),
                          mask.data_ptr<float>() + group * mask.size(1), pass.gradient_image(in, group),
                          pass.gradient_plane(in), joins);
  }

 private:
  LaneDropout f_;
};

int64_t beyond(int64_t last, int64_t size) { return std::max<int64_t>(0, last - (size - 1)); }

}  // namespace

Plane conv_margin(const LaneConv& f, const Plane& in, const Plane& out) {
  Plane margin;
  margin.top = f.top, margin.left = f.left;
  margin.bottom = beyond((out.height - 1) * f.stride_y - f.top + f.height - 1, in.height);
  margin.right = beyond((out.width - 1) * f.stride_x - f.left + f.width - 1, in.width);
  return margin;
}

Plane conv_gradient_margin(const LaneConv& f, const Plane& in, const Plane& out) {
  Plane margin;
  margin.top = std::max<int64_t>(0, -floor_of(f.top - (f.height - 1), f.stride_y));
  margin.left = std::max<int64_t>(0, -floor_of(f.left - (f.width - 1), f.stride_x));
  margin.bottom = beyond((in.height - 1 + f.top) / f.stride_y, out.height);
  margin.right = beyond((in.width - 1 + f.left) / f.stride_x, out.width);
  return margin;
}

std::unique_ptr<LaneOp> lane_conv(const LaneConv& form) { return std::make_unique<Conv>(form); }
std::unique_ptr<LaneOp> lane_pool(const LanePool& form) { return std::make_unique<Pool>(form); }
std::unique_ptr<LaneOp> lane_norm(const LaneNorm& form) { return std::make_unique<Norm>(form); }
std::unique_ptr<LaneOp> lane_add() { return std::make_unique<Add>(); }
std::unique_ptr<LaneOp> lane_mean() { return std::make_unique<Mean>(); }
std::unique_ptr<LaneOp> lane_flatten() { return std::make_unique<Flatten>(); }
std::unique_ptr<LaneOp> lane_dense(const LaneDense& form) { return std::make_unique<Dense>(form); }
std::unique_ptr<LaneOp> lane_dropout(const LaneDropout& form) { return std::make_unique<Dropout>(form); }

}  // namespace netmend::training
