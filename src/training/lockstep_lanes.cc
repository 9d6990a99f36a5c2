#include "training/lockstep_lanes.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "base/pool.h"
#include "training/epoch.h"
#include "training/lanes.h"
#include "training/optimiser.h"
#include "training/parameters.h"

namespace netmend::training {
namespace {

using Table = std::vector<int64_t>;

constexpr int64_t kCache = 512 << 10;  ///< bytes of activations that stay near the core

at::Tensor room(int64_t groups) { return at::zeros({std::max<int64_t>(groups, 1) * kLanes}, at::kFloat); }

Table counted(int64_t count, int64_t step = 1) {
  Table table(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) table[size_t(i)] = i * step;
  return table;
}

/// Where the numbers of a block stand, counted in groups of lanes.
struct Layout {
  int64_t weight = 0, bias = -1;  ///< in the flat buffer
  int64_t in = 0, out = 0;        ///< groups for one input; `out` is `in` of the next block
  int64_t out_unit = 0, out_row = 0, out_first = 0;
  int64_t windows = 0;  ///< results of all units for one input
  // Tables of the products, for the block's sums, the gradient of its weights and that of its inputs.
  Table rows, steps, places, taps, row_out, column_out;
  Table back_rows, back_columns, back_steps;
  Table in_rows, in_columns, in_steps, in_places;
};

class LockstepLanes : public Lockstep {
 public:
  LockstepLanes(const LockstepPlan& plan, const model::Graph& graph, model::ValueId wanted)
      : blocks_(plan.blocks), parameters_(graph, wanted) {
    int64_t bytes = 1;
    for (size_t i = 0; i < blocks_.size(); ++i) bytes += lay_out(i);
    chunk_ = std::clamp<int64_t>(kCache / bytes, 4, 64);
    for (size_t i = 0; i < blocks_.size(); ++i) fill_tables(i);
    values_ = room(parameters_.count());
    for (size_t i = 0; i < blocks_.size(); ++i) {
      in_.push_back(room(i > 0 ? chunk_ * layouts_[i].in : 0));
      which_.push_back(at::zeros({blocks_[i].dense ? 0 : chunk_ * layouts_[i].windows * kLanes}, at::kChar));
    }
    in_.push_back(room(chunk_ * layouts_.back().out));
    for (const at::Tensor& tensor : in_) gradients_.push_back(at::zeros_like(tensor));
    int64_t row = 1, grid = 1;
    for (const LockstepBlock& b : blocks_) {
      row = std::max(row, b.units * b.out.x * b.pool.area());
      grid = std::max(grid, b.units * grid_of(b).area());
    }
    row_ = room(row), grid_ = room(grid), spare_ = room(1);
  }

  void take(const std::vector<const model::Graph*>& networks) override {
    check(int64_t(networks.size()) <= kLanes, "{} networks in {} lanes", networks.size(), kLanes);
    count_ = int64_t(networks.size());
    values_.zero_();
    at::Tensor lanes = values_.view({parameters_.count(), kLanes});
    for (int64_t lane = 0; lane < count_; ++lane)
      for (const Slot& slot : parameters_.slots())
        lanes.narrow(0, slot.offset, slot.count)
            .select(1, lane)
            .copy_(networks[size_t(lane)]->constant(slot.id).flatten());
  }

  void write_to(int64_t network, model::Graph& graph) const override {
    const at::Tensor own = values_.view({parameters_.count(), kLanes}).select(1, network).contiguous();
    for (const Slot& slot : parameters_.slots())
      graph.replace(slot.id, own.narrow(0, slot.offset, slot.count).view(slot.shape).clone());
  }

  std::vector<double> train_epoch(const Samples& data, const LossForm& loss, const Options& options) override {
    if (options.clip != 0 || options.l1 != 0) fail("networks in lockstep are trained without clipping and without L1");
    const std::vector<int64_t> order = epoch_order(data.size(), options.seed, 1);
    const int64_t steps = (data.size() + options.batch - 1) / options.batch;
    gradient_ = at::zeros_like(values_);
    if (state_count(options.method) > 0) first_ = at::zeros_like(values_);
    if (state_count(options.method) > 1) second_ = at::zeros_like(values_);
    std::vector<double> sums(size_t(count_), 0.0);
    for (int64_t step = 0; step < steps; ++step) {
      if (interrupted()) throw Interrupted{};
      const int64_t from = step * options.batch, to = std::min(from + options.batch, data.size());
      const Rows rows = data.rows(std::span(order).subspan(size_t(from), size_t(to - from)));
      gradients_of(rows, loss, sums);
      const double share = double(step) / double(steps * std::max<int64_t>(options.epochs, 1));
      const StepForm form{options.method, options.schedule.rate(options.rate, 0, share), options.momentum,
                          options.decay, step + 1};
      auto memory = [](const at::Tensor& t) { return t.defined() ? t.data_ptr<float>() : nullptr; };
      update(form, memory(values_), memory(gradient_), memory(first_), memory(second_), values_.numel());
    }
    for (double& sum : sums) sum /= double(data.size());
    return sums;
  }

  at::Tensor outputs(const Samples& data, int64_t first, int64_t count) override {
    const int64_t width = blocks_.back().units;
    at::Tensor all = at::empty({count_, count, width}, at::kFloat);
    for (int64_t from = 0; from < count; from += chunk_) {
      std::vector<int64_t> some(size_t(std::min(chunk_, count - from)));
      std::iota(some.begin(), some.end(), first + from);
      const Rows rows = data.rows(some);
      const auto inputs = int64_t(some.size());
      forward(input_of(rows, 0, inputs), inputs);
      all.narrow(1, from, inputs).copy_(by_network(in_.back(), inputs));
    }
    return all;
  }

 private:
  /// Bytes that one input takes.
  int64_t lay_out(size_t i) {
    const LockstepBlock& b = blocks_[i];
    Layout own;
    for (const Slot& slot : parameters_.slots()) {
      if (slot.id == b.weight) own.weight = slot.offset;
      if (slot.id == b.bias) own.bias = slot.offset;
    }
    own.in = b.channels * b.padded().area();
    own.windows = b.units * b.out.area();
    own.out_unit = b.out.area(), own.out_row = b.out.x, own.out = own.windows;
    if (i + 1 < blocks_.size() && !blocks_[i + 1].dense) {
      const LockstepBlock& next = blocks_[i + 1];
      own.out_unit = next.padded().area(), own.out_row = next.padded().x;
      own.out_first = next.begin.y * own.out_row + next.begin.x;
      own.out = next.channels * own.out_unit;
    }
    layouts_.push_back(own);
    return own.out * kLanes * 8 + own.windows * kLanes;
  }

  static Sides grid_of(const LockstepBlock& b) {
    return {b.padded().y + b.kernel.y - 1, b.padded().x + b.kernel.x - 1};
  }

  void fill_tables(size_t i) { blocks_[i].dense ? dense_tables(i) : conv_tables(i); }

  void dense_tables(size_t i) {
    const LockstepBlock& b = blocks_[i];
    Layout& own = layouts_[i];
    const int64_t unit = b.inputs_first ? 1 : b.channels, input = b.inputs_first ? b.units : 1;
    own.rows = counted(b.units, unit), own.steps = counted(b.channels, input);
    own.taps = counted(b.channels), own.places = counted(chunk_, own.in);
    own.row_out = counted(b.units), own.column_out = counted(chunk_, b.units);
  }

  void conv_tables(size_t i) {
    const LockstepBlock& b = blocks_[i];
    Layout& own = layouts_[i];
    const Sides padded = b.padded(), grid = grid_of(b);
    const int64_t columns = b.out.x * b.pool.area();
    own.rows = counted(b.units, b.products()), own.steps = counted(b.products());
    for (int64_t c = 0; c < b.channels; ++c)
      for (int64_t y = 0; y < b.kernel.y; ++y)
        for (int64_t x = 0; x < b.kernel.x; ++x) own.taps.push_back(c * padded.area() + y * padded.x + x);
    for (int64_t w = 0; w < b.out.x; ++w)
      for (int64_t y = 0; y < b.pool.y; ++y)
        for (int64_t x = 0; x < b.pool.x; ++x) {
          own.places.push_back(y * b.stride.y * padded.x + (w * b.pool_stride.x + x) * b.stride.x);
          own.in_places.push_back((y * b.stride.y + b.kernel.y - 1) * grid.x + (w * b.pool_stride.x + x) * b.stride.x +
                                  b.kernel.x - 1);
        }
    own.row_out = counted(b.units, columns), own.column_out = counted(columns);
    own.in_rows = counted(b.channels, b.kernel.area());
    for (int64_t u = 0; u < b.units; ++u)
      for (int64_t y = 0; y < b.kernel.y; ++y)
        for (int64_t x = 0; x < b.kernel.x; ++x) {
          own.back_steps.push_back(u * b.products() + y * b.kernel.x + x);
          own.in_steps.push_back(u * grid.area() + (b.kernel.y - 1 - y) * grid.x + b.kernel.x - 1 - x);
        }
    for (int64_t y = b.begin.y; y < b.begin.y + b.size.y; ++y)
      for (int64_t x = b.begin.x; x < b.begin.x + b.size.x; ++x) {
        own.in_columns.push_back(y * grid.x + x);
        own.back_columns.push_back(y * padded.x + x);
      }
    own.back_rows = counted(b.channels, padded.area());
  }

  /// The inputs of a few samples as the first block reads them.
  const float* input_of(const Rows& rows, int64_t from, int64_t count) {
    const LockstepBlock& b = blocks_.front();
    at::Tensor x = rows.inputs.at(0).narrow(0, from, count);
    if (x.scalar_type() != at::kFloat) x = x.to(at::kFloat);
    if (b.padded().area() == b.size.area())
      input_ = x.contiguous();
    else
      input_ = at::constant_pad_nd(x, {b.begin.x, b.end.x, b.begin.y, b.end.y}, 0).contiguous();
    return input_.data_ptr<float>();
  }

  float* parameter(at::Tensor& flat, int64_t place) { return flat.data_ptr<float>() + place * kLanes; }

  void forward(const float* input, int64_t count) {
    for (size_t i = 0; i < blocks_.size(); ++i)
      blocks_[i].dense ? dense_forward(i, input, count) : conv_forward(i, input, count);
  }

  /// What a block's products read: numbers shared by all networks in the first block.
  void read(size_t i, const float* input, int64_t offset, LaneProduct& product) {
    product.shared = i == 0;
    product.b = i == 0 ? input + offset : parameter(in_[i], offset);
  }

  void dense_forward(size_t i, const float* input, int64_t count) {
    const LockstepBlock& b = blocks_[i];
    const Layout& own = layouts_[i];
    LaneProduct p;
    p.a = parameter(values_, own.weight), p.a_row = own.rows.data(), p.a_step = own.steps.data();
    read(i, input, 0, p);
    p.b_column = own.places.data(), p.b_step = own.taps.data();
    p.c = in_[i + 1].data_ptr<float>(), p.c_row = own.row_out.data(), p.c_column = own.column_out.data();
    p.rows = b.units, p.columns = count, p.steps = b.channels;
    p.bias = own.bias >= 0 ? parameter(values_, own.bias) : nullptr;
    lane_product(p);
    if (b.relu) lane_relu(in_[i + 1].data_ptr<float>(), count * b.units);
  }

  void conv_forward(size_t i, const float* input, int64_t count) {
    const LockstepBlock& b = blocks_[i];
    const Layout& own = layouts_[i];
    const int64_t columns = b.out.x * b.pool.area();
    LaneProduct p;
    p.a = parameter(values_, own.weight), p.a_row = own.rows.data(), p.a_step = own.steps.data();
    p.b_column = own.places.data(), p.b_step = own.taps.data();
    p.c = row_.data_ptr<float>(), p.c_row = own.row_out.data(), p.c_column = own.column_out.data();
    p.rows = b.units, p.columns = columns, p.steps = b.products();
    p.bias = own.bias >= 0 ? parameter(values_, own.bias) : nullptr;
    for (int64_t n = 0; n < count; ++n)
      for (int64_t y = 0; y < b.out.y; ++y) {
        read(i, input, n * own.in + y * b.pool_stride.y * b.stride.y * b.padded().x, p);
        lane_product(p);
        for (int64_t u = 0; u < b.units; ++u)
          lane_pool(parameter(row_, u * columns), b.out.x, b.pool.area(), b.relu,
                    parameter(in_[i + 1], out_place(i, n, u, y)), which_place(i, n, u, y));
      }
  }

  int64_t out_place(size_t i, int64_t n, int64_t u, int64_t y) const {
    const Layout& own = layouts_[i];
    return n * own.out + own.out_first + u * own.out_unit + y * own.out_row;
  }
  int8_t* which_place(size_t i, int64_t n, int64_t u, int64_t y) {
    const LockstepBlock& b = blocks_[i];
    return which_[i].data_ptr<int8_t>() + (n * layouts_[i].windows + (u * b.out.y + y) * b.out.x) * kLanes;
  }

  /// Network × input × column, of the last block's results.
  at::Tensor by_network(const at::Tensor& lanes, int64_t count) const {
    const int64_t width = blocks_.back().units;
    return lanes.narrow(0, 0, count * width * kLanes)
        .view({count, width, kLanes})
        .permute({2, 0, 1})
        .narrow(0, 0, count_);
  }

  /// For each network the same labels.
  at::Tensor repeated(const at::Tensor& labels) const {
    std::vector<int64_t> times(size_t(labels.dim()), 1);
    times[0] = count_;
    return labels.repeat(times);
  }

  /// Fills gradient_ with those of a batch's mean loss, and adds each network's losses up.
  void gradients_of(const Rows& rows, const LossForm& loss, std::vector<double>& sums) {
    gradient_.zero_();
    const int64_t all = rows.labels.size(0);
    for (int64_t from = 0; from < all; from += chunk_) {
      const int64_t count = std::min(chunk_, all - from);
      const float* input = input_of(rows, from, count);
      forward(input, count);
      const at::Tensor answers = by_network(in_.back(), count).flatten(0, 1);
      std::vector<double> each(size_t(count_ * count));
      const at::Tensor gradients =
          loss_of(loss, answers, repeated(rows.labels.narrow(0, from, count)), all, each.data()).gradient;
      for (size_t row = 0; row < each.size(); ++row) sums[row / size_t(count)] += each[row];
      by_network(gradients_.back(), count).copy_(gradients.view({count_, count, -1}));
      for (size_t i = blocks_.size(); i-- > 0;)
        blocks_[i].dense ? dense_backward(i, input, count) : conv_backward(i, input, count);
    }
  }

  void dense_backward(size_t i, const float* input, int64_t count) {
    const LockstepBlock& b = blocks_[i];
    const Layout& own = layouts_[i];
    float* gradients = gradients_[i + 1].data_ptr<float>();
    if (b.relu) lane_relu_back(gradients, in_[i + 1].data_ptr<float>(), count * b.units);
    for (int64_t u = 0; own.bias >= 0 && u < b.units; ++u)
      lane_sum(gradients + u * kLanes, count, b.units, parameter(gradient_, own.bias + u));
    LaneProduct p;
    p.a = gradients, p.a_row = own.row_out.data(), p.a_step = own.column_out.data();
    read(i, input, 0, p);
    p.b_column = own.taps.data(), p.b_step = own.places.data();
    p.c = parameter(gradient_, own.weight), p.c_row = own.rows.data(), p.c_column = own.steps.data();
    p.rows = b.units, p.columns = b.channels, p.steps = count, p.add = true;
    lane_product(p);
    if (i == 0) return;
    LaneProduct back;
    back.a = parameter(values_, own.weight), back.a_row = own.steps.data(), back.a_step = own.rows.data();
    back.b = gradients, back.b_column = own.column_out.data(), back.b_step = own.row_out.data();
    back.c = gradients_[i].data_ptr<float>(), back.c_row = own.taps.data(), back.c_column = own.places.data();
    back.rows = b.channels, back.columns = count, back.steps = b.units;
    lane_product(back);
  }

  void conv_backward(size_t i, const float* input, int64_t count) {
    const LockstepBlock& b = blocks_[i];
    const Layout& own = layouts_[i];
    const int64_t columns = b.out.x * b.pool.area();
    LaneProduct p;
    p.a = row_.data_ptr<float>(), p.a_row = own.row_out.data(), p.a_step = own.column_out.data();
    p.b_column = own.taps.data(), p.b_step = own.places.data();
    p.c = parameter(gradient_, own.weight), p.c_row = own.rows.data(), p.c_column = own.steps.data();
    p.rows = b.units, p.columns = b.products(), p.steps = columns, p.add = true;
    for (int64_t n = 0; n < count; ++n) {
      if (i > 0) std::memset(grid_.data_ptr<float>(), 0, size_t(b.units * grid_of(b).area() * kLanes) * sizeof(float));
      for (int64_t y = 0; y < b.out.y; ++y) {
        for (int64_t u = 0; u < b.units; ++u)
          lane_unpool(parameter(gradients_[i + 1], out_place(i, n, u, y)), parameter(in_[i + 1], out_place(i, n, u, y)),
                      which_place(i, n, u, y), b.out.x, b.pool.area(), b.relu, parameter(row_, u * columns),
                      own.bias >= 0 ? parameter(gradient_, own.bias + u) : spare_.data_ptr<float>());
        read(i, input, n * own.in + y * b.pool_stride.y * b.stride.y * b.padded().x, p);
        lane_product(p);
        if (i > 0) spread_row(i, y);
      }
      if (i > 0) conv_inputs_back(i, n);
    }
  }

  /// A row of gradients onto the grid, whose margins and gaps are 0: there a convolution's way back is one itself.
  void spread_row(size_t i, int64_t y) {
    const LockstepBlock& b = blocks_[i];
    const Sides grid = grid_of(b);
    const Table& places = layouts_[i].in_places;
    const int64_t first = y * b.pool_stride.y * b.stride.y * grid.x;
    for (int64_t u = 0; u < b.units; ++u)
      for (size_t k = 0; k < places.size(); ++k)
        std::memcpy(parameter(grid_, u * grid.area() + first + places[k]),
                    parameter(row_, u * int64_t(places.size()) + int64_t(k)), kLanes * sizeof(float));
  }

  void conv_inputs_back(size_t i, int64_t n) {
    const LockstepBlock& b = blocks_[i];
    const Layout& own = layouts_[i];
    LaneProduct p;
    p.a = parameter(values_, own.weight), p.a_row = own.in_rows.data(), p.a_step = own.back_steps.data();
    p.b = grid_.data_ptr<float>(), p.b_column = own.in_columns.data(), p.b_step = own.in_steps.data();
    p.c = parameter(gradients_[i], n * own.in), p.c_row = own.back_rows.data(), p.c_column = own.back_columns.data();
    p.rows = b.channels, p.columns = int64_t(own.in_columns.size()), p.steps = int64_t(own.in_steps.size());
    lane_product(p);
  }

  std::vector<LockstepBlock> blocks_;
  Parameters parameters_;  ///< where each parameter stands; of its values only the sizes are used
  std::vector<Layout> layouts_;
  int64_t chunk_ = 1;  ///< inputs at a time; follows from the network alone
  int64_t count_ = 0;
  at::Tensor values_, gradient_, first_, second_;
  std::vector<at::Tensor> in_, gradients_;  ///< what goes into each block, last what comes out; gradients of it
  std::vector<at::Tensor> which_;
  at::Tensor input_, row_, grid_, spare_;
};

}  // namespace

std::unique_ptr<Lockstep> make_lockstep_lanes(const LockstepPlan& plan, const model::Graph& graph,
                                              model::ValueId wanted) {
  return std::make_unique<LockstepLanes>(plan, graph, wanted);
}

}  // namespace netmend::training
