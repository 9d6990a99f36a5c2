#include "training/lockstep_tensors.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <array>
#include <numeric>

#include "base/error.h"
#include "base/pool.h"
#include "executor/device_graph.h"
#include "executor/runtime.h"
#include "training/epoch.h"
#include "training/optimiser.h"
#include "training/parameters.h"

namespace netmend::training {
namespace {

constexpr int64_t kInputsAtOnce = 1000;  ///< that outputs are asked for
constexpr int64_t kStepsBetweenLooks = 64;
constexpr int64_t kWarmUp = 3;  ///< steps that wake libraries and compile kernels before one is recorded

/// Values travel as network × number × input, of images as (network, map) × input × row × column: then each layer is a
/// product of matrices, one wide one where all networks read the same inputs. A convolution is the product with its
/// windows, since networks have few maps, which leave cuDNN's grouped convolutions mostly empty.
class LockstepTensors : public Lockstep {
 public:
  LockstepTensors(const LockstepPlan& plan, const model::Graph& graph, model::ValueId wanted, at::Device device)
      : blocks_(plan.blocks), parameters_(graph, wanted), device_(device) {}

  void take(const std::vector<const model::Graph*>& networks) override {
    count_ = int64_t(networks.size());
    std::vector<at::Tensor> flat;
    for (const Slot& slot : parameters_.slots())
      for (const model::Graph* network : networks) flat.push_back(network->constant(slot.id).flatten());
    values_ = at::cat(flat).to(device_);
  }

  void write_to(int64_t network, model::Graph& graph) const override {
    if (!on_cpu_.defined()) on_cpu_ = values_.to(at::kCPU);
    for (const Slot& slot : parameters_.slots())
      graph.replace(
          slot.id, on_cpu_.narrow(0, slot.offset * count_ + network * slot.count, slot.count).view(slot.shape).clone());
  }

  std::vector<double> train_epoch(const Samples& data, const LossForm& loss, const Options& options) override {
    if (options.clip != 0 || options.l1 != 0) fail("networks in lockstep are trained without clipping and without L1");
    if (loss.kind != LossKind::kCrossEntropy) fail("networks in lockstep are trained on a GPU by cross-entropy alone");
    executor::enter_worker();
    const std::vector<int64_t> drawn = epoch_order(data.size(), options.seed, 1);
    const at::Tensor order = at::tensor(drawn, at::kLong).to(device_);
    const int64_t steps = (data.size() + options.batch - 1) / options.batch;
    at::Tensor first, second, sums = at::zeros({count_}, values_.options().dtype(at::kDouble));
    if (state_count(options.method) > 0) first = at::zeros_like(values_);
    if (state_count(options.method) > 1) second = at::zeros_like(values_);
    // A step reads what differs from the last one from memory, so that it can be recorded.
    at::Tensor which = at::empty({options.batch}, order.options()), numbers = at::empty({3}, values_.options());
    executor::DeviceGraph graph;
    bool recorded = false, may_record = data.kept() && executor::DeviceGraph::available() && values_.is_cuda();
    for (int64_t step = 0; step < steps; ++step) {
      if (step % kStepsBetweenLooks == 0) stop_if_interrupted();
      const int64_t from = step * options.batch, count = std::min(options.batch, data.size() - from);
      const double share = double(step) / double(steps * std::max<int64_t>(options.epochs, 1));
      const StepForm form{options.method, options.schedule.rate(options.rate, 0, share), options.momentum,
                          options.decay, step + 1};
      std::array<float, 3> now = step_numbers(form);
      which.narrow(0, 0, count).copy_(order.narrow(0, from, count));
      numbers.copy_(at::from_blob(now.data(), {3}, at::kFloat), true);
      auto work = [&] {
        const Rows rows = data.kept() ? data.rows(which.narrow(0, 0, count))
                                      : data.rows(std::span(drawn.data() + from, size_t(count)));
        const at::Tensor gradient = gradient_of(rows, sums);
        at::NoGradGuard no_grad;
        if (!update_by_kernel(form, values_, gradient, first, second, numbers))
          update(form, values_, gradient, first, second), may_record = false;
      };
      if (may_record && !recorded && step >= kWarmUp) recorded = may_record = graph.record(work);
      if (recorded && count == options.batch)
        graph.run();
      else
        work();
    }
    on_cpu_ = at::Tensor();
    const at::Tensor mean = (sums / double(data.size())).to(at::kCPU);
    return {mean.data_ptr<double>(), mean.data_ptr<double>() + count_};
  }

  at::Tensor outputs(const Samples& data, int64_t first, int64_t count) override {
    at::NoGradGuard no_grad;
    const std::vector<at::Tensor> leaves = leaves_of(false);
    std::vector<at::Tensor> all;
    for (int64_t from = 0; from < count; from += kInputsAtOnce) {
      std::vector<int64_t> some(size_t(std::min(kInputsAtOnce, count - from)));
      std::iota(some.begin(), some.end(), first + from);
      all.push_back(forward(leaves, data.rows(some).inputs.at(0)));
    }
    return at::cat(all, 1).to(at::kCPU);
  }

 private:
  std::vector<at::Tensor> leaves_of(bool trained) const {
    std::vector<at::Tensor> leaves;
    for (const Slot& slot : parameters_.slots()) {
      std::vector<int64_t> shape = slot.shape;
      shape.insert(shape.begin(), count_);
      leaves.push_back(values_.narrow(0, slot.offset * count_, slot.count * count_).view(shape).detach());
      leaves.back().requires_grad_(trained);
    }
    return leaves;
  }

  const at::Tensor& leaf(const std::vector<at::Tensor>& leaves, model::ValueId id) const {
    for (size_t i = 0; i < leaves.size(); ++i)
      if (parameters_.slots()[i].id == id) return leaves[i];
    throw std::logic_error("a block without its parameter");
  }

  at::Tensor gradient_of(const Rows& rows, at::Tensor& sums) const {
    at::AutoGradMode with_grad(true);
    const std::vector<at::Tensor> leaves = leaves_of(true);
    const at::Tensor answers = forward(leaves, rows.inputs.at(0));
    const int64_t inputs = answers.size(1);
    const at::Tensor labels = rows.labels.view({1, inputs, 1}).expand({count_, inputs, 1});
    const at::Tensor each = -at::log_softmax(answers, 2).gather(2, labels).sum(at::IntArrayRef{1, 2});
    std::vector<at::Tensor> gradients = torch::autograd::grad({each.sum() / double(inputs)}, leaves);
    sums.add_(each.detach());
    for (at::Tensor& gradient : gradients) gradient = gradient.reshape({-1});
    return at::cat(gradients);
  }

  /// Network × input × column.
  at::Tensor forward(const std::vector<at::Tensor>& leaves, const at::Tensor& input) const {
    const int64_t inputs = input.size(0);
    // Until the first layer there is one network's worth: all read the same.
    at::Tensor x = input.to(at::kFloat);
    bool shared = true;
    if (!blocks_[0].dense) x = x.transpose(0, 1);
    for (size_t i = 0; i < blocks_.size(); ++i, shared = false)
      x = blocks_[i].dense ? dense(i, leaves, x, shared, inputs) : conv(i, leaves, x, shared, inputs);
    return x.transpose(1, 2);
  }

  at::Tensor dense(size_t i, const std::vector<at::Tensor>& leaves, const at::Tensor& x, bool shared,
                   int64_t inputs) const {
    const LockstepBlock& b = blocks_[i];
    at::Tensor weight = leaf(leaves, b.weight), y;
    if (b.inputs_first) weight = weight.transpose(1, 2);
    if (shared)
      y = at::mm(weight.reshape({count_ * b.units, b.channels}), x.reshape({inputs, -1}).t())
              .view({count_, b.units, inputs});
    else
      y = at::bmm(weight, i > 0 && !blocks_[i - 1].dense ? as_rows(x, inputs) : x);
    if (b.bias != model::kAbsent) y = y + leaf(leaves, b.bias).unsqueeze(2);
    return b.relu ? y.relu() : y;
  }

  /// Images as rows of numbers.
  at::Tensor as_rows(const at::Tensor& x, int64_t inputs) const {
    const int64_t area = x.size(2) * x.size(3);
    return x.reshape({count_, -1, inputs, area}).transpose(2, 3).reshape({count_, -1, inputs});
  }

  at::Tensor conv(size_t i, const std::vector<at::Tensor>& leaves, const at::Tensor& from, bool shared,
                  int64_t inputs) const {
    const LockstepBlock& b = blocks_[i];
    at::Tensor x = from;
    if (b.padded().area() != b.size.area()) x = at::constant_pad_nd(x, {b.begin.x, b.end.x, b.begin.y, b.end.y}, 0);
    const int64_t networks = shared ? 1 : count_, places = b.made.area();
    // (im2col would start a kernel for each image on a GPU)
    x = x.reshape({networks, b.channels, inputs, b.padded().y, b.padded().x})
            .unfold(3, b.kernel.y, b.stride.y)
            .unfold(4, b.kernel.x, b.stride.x)
            .permute({0, 1, 5, 6, 2, 3, 4})
            .reshape({networks, b.products(), inputs * places});
    const at::Tensor& weight = leaf(leaves, b.weight);
    at::Tensor y = shared ? at::mm(weight.view({count_ * b.units, b.products()}), x[0])
                          : at::bmm(weight.view({count_, b.units, b.products()}), x);
    y = y.view({count_ * b.units, inputs, b.made.y, b.made.x});
    if (b.bias != model::kAbsent) y = y + leaf(leaves, b.bias).view({count_ * b.units, 1, 1, 1});
    if (b.pool.area() > 1) y = at::max_pool2d(y, {b.pool.y, b.pool.x}, {b.pool_stride.y, b.pool_stride.x});
    return b.relu ? y.relu() : y;
  }

  std::vector<LockstepBlock> blocks_;
  Parameters parameters_;  ///< where each parameter stands
  at::Device device_;
  int64_t count_ = 0;
  at::Tensor values_;  ///< slot after slot, in each network after network
  mutable at::Tensor on_cpu_;
};

}  // namespace

std::unique_ptr<Lockstep> make_lockstep_tensors(const LockstepPlan& plan, const model::Graph& graph,
                                                model::ValueId wanted, at::Device device) {
  return std::make_unique<LockstepTensors>(plan, graph, wanted, device);
}

}  // namespace netmend::training
