#include "training/lane_network.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "executor/executor.h"
#include "ops/arguments.h"
#include "ops/op.h"
#include "ops/window.h"
#include "training/lane_ops.h"

namespace netmend::training {
namespace {

using model::Node;
using model::ValueId;

constexpr int64_t kMostWindow = 127;        ///< places within a pooling window are told in a byte
constexpr int64_t kManyWeights = 1 << 20;   ///< of dense layers: more are read once for all inputs of a part
constexpr int64_t kMostWeights = 16 << 20;  ///< of dense layers: more are a BLAS's affair alone
constexpr int64_t kMostBytes = 1 << 30;     ///< of sixteen inputs: all values and gradients are in memory together
constexpr int64_t kMostBytesWithNorms = 1
                                        << 28;  ///< where all inputs of a batch are: statistics are of the whole batch

struct Refused {
  std::string reason;
};

class Builder {
 public:
  Builder(const model::Graph& graph, ValueId wanted, const Parameters& parameters, at::IntArrayRef shape)
      : graph_(graph), wanted_(wanted), parameters_(parameters) {
    if (graph.inputs.size() != 1) throw Refused{"it has several inputs"};
    needed_ = executor::needed_nodes(graph, graph.inputs, std::span(&wanted, 1));
    for (size_t n = 0; n < graph.nodes.size(); ++n)
      if (needed_[n])
        for (ValueId id : graph.nodes[n].inputs) ++uses_[id];
    claimed_.resize(parameters.slots().size());
    LaneValue first;
    first.differentiable = false;
    if (shape.size() == 3) {
      first.image = true;
      first.plane.channels = shape[0], first.plane.height = shape[1], first.plane.width = shape[2];
    } else if (shape.size() == 1) {
      first.width = shape[0];
    } else {
      throw Refused{"its input is neither a row of numbers nor an image"};
    }
    known_[graph.inputs[0]] = add_value(first);
  }

  void run() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n)
      if (needed_[n]) ++step_, take(n);
    if (!known_.count(wanted_) || values[size_t(known_[wanted_])].image || means_.count(known_[wanted_]))
      throw Refused{"its output is no row of numbers"};
    output = known_[wanted_];
    for (char claimed : claimed_)
      if (!claimed) throw Refused{"a parameter is no weight of a layer that lanes know"};
    place_gradients();
    int64_t floats = 0;
    for (const LaneValue& value : values) floats += value.image ? value.plane.all() : 0;
    for (const Plane& plane : planes) floats += plane.all();
    if (floats * int64_t(sizeof(float)) > (norms ? kMostBytesWithNorms : kMostBytes))
      throw Refused{"its images are large"};
    for (auto& op : ops) op->prepare(values, planes);
  }

  std::vector<LaneValue> values;
  std::vector<Plane> planes;  ///< of gradients
  std::vector<std::unique_ptr<LaneOp>> ops;
  int output = -1;
  bool norms = false;
  int64_t dense_weights = 0;

 private:
  [[noreturn]] static void refuse(const Node& node, const char* reason) {
    throw Refused{fmt::format("{} {}: {}", node.op, node.name, reason)};
  }

  int add_value(const LaneValue& value) {
    values.push_back(value);
    makers_.push_back(-1), readers_.emplace_back();
    return int(values.size()) - 1;
  }

  int value_of(const Node& node, size_t input) const {
    const ValueId id = node.inputs.size() > input ? node.inputs[input] : model::kAbsent;
    auto found = known_.find(id);
    if (found == known_.end()) refuse(node, "an operand is not made by operators that lanes know");
    return found->second;
  }
  int image_of(const Node& node, size_t input) const {
    const int value = value_of(node, input);
    if (!values[size_t(value)].image) refuse(node, "only images");
    return value;
  }
  int64_t uses(ValueId id) const {
    auto found = uses_.find(id);
    return found == uses_.end() ? 0 : found->second;
  }

  /// Where a parameter stands; each may be used once.
  int64_t parameter(const Node& node, size_t input, std::vector<int64_t> shape) {
    const ValueId id = node.inputs.size() > input ? node.inputs[input] : model::kAbsent;
    for (size_t s = 0; s < parameters_.slots().size(); ++s) {
      const Slot& slot = parameters_.slots()[s];
      if (slot.id != id) continue;
      if (slot.shape != shape) refuse(node, "a weight has another shape than its place asks for");
      if (claimed_[s]) refuse(node, "its weights are shared");
      claimed_[s] = true;
      return slot.offset;
    }
    refuse(node, "its weights are no parameters");
  }
  const std::vector<int64_t>& shape_of(const Node& node, size_t input) const {
    for (const Slot& slot : parameters_.slots())
      if (node.inputs.size() > input && slot.id == node.inputs[input]) return slot.shape;
    refuse(node, "its weights are no parameters");
  }
  static bool has(const Node& node, size_t input) {
    return node.inputs.size() > input && node.inputs[input] != model::kAbsent;
  }

  void add(const Node& node, std::unique_ptr<LaneOp> op, int in, LaneValue made, int other = -1) {
    for (size_t i = 1; i < node.outputs.size(); ++i)
      if (node.outputs[i] != model::kAbsent && uses(node.outputs[i]) > 0) refuse(node, "a further output is used");
    op->in = in, op->other = other, op->number = ops.size();
    op->out = add_value(made);
    const int number = int(ops.size());
    readers_[size_t(in)].push_back(number);
    if (other >= 0) readers_[size_t(other)].push_back(number);
    makers_[size_t(op->out)] = number;
    known_[node.outputs.at(0)] = op->out;
    ops.push_back(std::move(op));
  }

  void take(size_t n) {
    const Node& node = graph_.nodes[n];
    if (n == biased_) return;
    if (!node.domain.empty() || node.outputs.empty()) refuse(node, "not among the operators that lanes know");
    if (node.op == "Conv")
      conv(node);
    else if (node.op == "MaxPool")
      pool(node);
    else if (node.op == "BatchNormalization")
      norm(node);
    else if (node.op == "Relu")
      relu(node);
    else if (node.op == "Add")
      sum(node);
    else if (node.op == "GlobalAveragePool")
      mean(node);
    else if (node.op == "Flatten" || node.op == "Reshape")
      flatten(node);
    else if (node.op == "Gemm" || node.op == "MatMul")
      dense(node);
    else if (node.op == "Dropout")
      dropout(node);
    else if (node.op == "Identity")
      known_[node.outputs[0]] = value_of(node, 0), uses_[node.outputs[0]] += uses(node.inputs[0]) - 1;
    else
      refuse(node, "not among the operators that lanes know");
  }

  static LaneValue image(int64_t channels, const ops::Window& window) {
    LaneValue made;
    made.image = true;
    made.plane.channels = channels, made.plane.height = window.output[0], made.plane.width = window.output[1];
    return made;
  }
  ops::Window window_of(const Node& node, const Plane& in, at::IntArrayRef kernel) const {
    const ops::Window window =
        ops::window_over(ops::WindowAttributes(ops::NodeView(graph_, node)), kernel, {in.height, in.width});
    for (size_t axis = 0; axis < 2; ++axis)
      if (window.dilation[axis] != 1 || window.begin[axis] < 0 || window.end[axis] < 0)
        refuse(node, "dilated or cropped windows");
    return window;
  }

  void conv(const Node& node) {
    const int in = image_of(node, 0);
    const Plane& x = values[size_t(in)].plane;
    const std::vector<int64_t> shape = shape_of(node, 1);
    if (shape.size() != 4 || ops::NodeView(graph_, node).integer("group", 1) != 1 || shape[1] != x.channels)
      refuse(node, "only plain convolutions of images");
    const ops::Window window = window_of(node, x, {shape[2], shape[3]});
    if (window.stride[1] > 2) refuse(node, "windows further than two apart");
    LaneConv form;
    form.weight = parameter(node, 1, shape);
    if (has(node, 2)) form.bias = parameter(node, 2, {shape[0]});
    form.channels = shape[1], form.units = shape[0], form.height = shape[2], form.width = shape[3];
    form.stride_y = window.stride[0], form.stride_x = window.stride[1];
    form.top = window.begin[0], form.left = window.begin[1];
    const LaneValue made = image(form.units, window);
    widen(values[size_t(in)].plane, conv_margin(form, values[size_t(in)].plane, made.plane));
    const bool back = values[size_t(in)].differentiable;
    add(node, lane_conv(form), in, made);
    if (back) gradient_margins_[ops.back()->out] = conv_gradient_margin(form, values[size_t(in)].plane, made.plane);
  }

  void pool(const Node& node) {
    const int in = image_of(node, 0);
    const Plane& x = values[size_t(in)].plane;
    const std::vector<int64_t> kernel = ops::NodeView(graph_, node).integers("kernel_shape");
    if (kernel.size() != 2 || kernel[0] * kernel[1] > kMostWindow) refuse(node, "only small windows over images");
    const ops::Window window = window_of(node, x, kernel);
    LanePool form{kernel[0], kernel[1], window.stride[0], window.stride[1], window.begin[0], window.begin[1]};
    add(node, lane_pool(form), in, image(x.channels, window));
  }

  void norm(const Node& node) {
    const int in = image_of(node, 0);
    const ops::NodeView view(graph_, node);
    if (view.integer("spatial", 1) != 1 || node.inputs.size() != 5) refuse(node, "only statistics of channels");
    const LaneValue made = bare(in);
    LaneNorm form;
    form.scale = parameter(node, 1, {made.plane.channels}), form.bias = parameter(node, 2, {made.plane.channels});
    form.mean = statistic(node, 3, made.plane.channels), form.variance = statistic(node, 4, made.plane.channels);
    form.epsilon = view.real("epsilon", 1e-5), form.momentum = view.real("momentum", 0.9);
    norms = true;
    add(node, lane_norm(form), in, made);
  }
  size_t statistic(const Node& node, size_t input, int64_t channels) {
    const std::vector<ValueId>& ids = parameters_.statistics_ids();
    auto found = std::find(ids.begin(), ids.end(), node.inputs[input]);
    const auto at = size_t(found - ids.begin());
    if (found == ids.end() || parameters_.statistics()[at].numel() != channels)
      refuse(node, "its statistics are no constants of the file");
    if (!statistics_.insert(at).second) refuse(node, "its statistics are shared");
    return at;
  }

  /// The same sizes without a margin.
  LaneValue bare(int value) const {
    LaneValue made = values[size_t(value)];
    made.plane.top = made.plane.left = made.plane.bottom = made.plane.right = 0;
    made.differentiable = true;
    return made;
  }

  void relu(const Node& node) {
    const int in = value_of(node, 0);
    const int maker = makers_[size_t(in)];
    if (maker < 0 || ops[size_t(maker)]->relu || uses(node.inputs[0]) != 1 || node.inputs[0] == wanted_ ||
        !ops[size_t(maker)]->takes_relu())
      refuse(node, "only behind a layer that nobody else reads");
    ops[size_t(maker)]->relu = true;
    known_[node.outputs[0]] = in;
  }

  void sum(const Node& node) {
    const int one = image_of(node, 0), two = image_of(node, 1);
    const Plane &a = values[size_t(one)].plane, &b = values[size_t(two)].plane;
    if (a.channels != b.channels || a.height != b.height || a.width != b.width) refuse(node, "its operands differ");
    add(node, lane_add(), one, bare(one), two);
  }

  void mean(const Node& node) {
    const int in = image_of(node, 0);
    LaneValue made;
    made.width = values[size_t(in)].plane.channels;
    add(node, lane_mean(), in, made);
    means_[ops.back()->out] = true;
  }

  /// Everything behind the axis of inputs becomes one row.
  void flatten(const Node& node) {
    const ops::NodeView view(graph_, node);
    const int in = value_of(node, 0);
    LaneValue& value = values[size_t(in)];
    const int64_t width = value.image ? value.plane.channels * value.plane.height * value.plane.width : value.width;
    if (node.op == "Flatten" && view.integer("axis", 1) != 1) refuse(node, "keeps axes");
    if (node.op == "Reshape") {
      const at::Tensor shape = node.inputs.size() > 1 ? graph_.constant(node.inputs[1]) : at::Tensor();
      if (!shape.defined() || shape.numel() != 2 || shape.scalar_type() != at::kLong ||
          (shape[1].item<int64_t>() != -1 && shape[1].item<int64_t>() != width) || shape[0].item<int64_t>() > 0 ||
          view.integer("allowzero", 0) != 0)
        refuse(node, "not to one row for each input");
    }
    if (uses(node.inputs[0]) != 1) refuse(node, "what it flattens is read elsewhere");
    LaneValue made;
    made.width = width;
    if (!value.image || makers_[size_t(in)] < 0) {  // the input is read as rows at once
      value.image = false, value.width = width;
      means_.erase(in);
      known_[node.outputs[0]] = in;
      return;
    }
    add(node, lane_flatten(), in, made);
  }

  void dense(const Node& node) {
    const int in = value_of(node, 0);
    const LaneValue& x = values[size_t(in)];
    if (x.image || means_.count(in) || uses(node.inputs[0]) != 1) refuse(node, "only rows that nobody else reads");
    const ops::NodeView view(graph_, node);
    const bool gemm = node.op == "Gemm";
    if (gemm && (view.integer("transA", 0) != 0 || view.real("alpha", 1) != 1 || view.real("beta", 1) != 1))
      refuse(node, "transposed or scaled operands");
    LaneDense form;
    form.inputs_first = !gemm || view.integer("transB", 0) == 0;
    const std::vector<int64_t> shape = shape_of(node, 1);
    if (shape.size() != 2 || shape[form.inputs_first ? 0 : 1] != x.width) refuse(node, "only matrices");
    form.inputs = x.width, form.units = shape[form.inputs_first ? 1 : 0];
    form.weight = parameter(node, 1, shape);
    if (gemm && has(node, 2)) form.bias = parameter(node, 2, {form.units});
    const Node* bias = gemm ? nullptr : added_to(node);
    if (bias) form.bias = parameter(*bias, bias->inputs[0] == node.outputs[0] ? 1 : 0, {form.units});
    dense_weights += form.inputs * form.units;
    LaneValue made;
    made.width = form.units;
    add(node, lane_dense(form), in, made);
    if (bias) known_[bias->outputs.at(0)] = ops.back()->out;
  }

  /// The node that adds a bias to a product that nobody else reads.
  const Node* added_to(const Node& product) {
    if (uses(product.outputs[0]) != 1 || product.outputs[0] == wanted_) return nullptr;
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (!needed_[n] || node.op != "Add" || node.inputs.size() != 2 ||
          (node.inputs[0] != product.outputs[0] && node.inputs[1] != product.outputs[0]))
        continue;
      biased_ = n;
      return &node;
    }
    return nullptr;
  }

  void dropout(const Node& node) {
    const int in = value_of(node, 0);
    if (means_.count(in) || (!values[size_t(in)].image && uses(node.inputs[0]) != 1))
      refuse(node, "only rows that nobody else reads");
    const ops::NodeView view(graph_, node);
    LaneDropout form{view.real("ratio", 0.5), step_};
    if (has(node, 1)) {
      const at::Tensor ratio = graph_.constant(node.inputs[1]);
      if (!ratio.defined()) refuse(node, "its ratio is no constant");
      form.ratio = ops::real_of(ratio, "ratio");
    }
    if (!(form.ratio > 0 && form.ratio < 1)) refuse(node, "drops nothing or everything");
    add(node, lane_dropout(form), in, bare(in));
  }

  static void widen(Plane& plane, const Plane& margin) {
    plane.top = std::max(plane.top, margin.top), plane.left = std::max(plane.left, margin.left);
    plane.bottom = std::max(plane.bottom, margin.bottom), plane.right = std::max(plane.right, margin.right);
  }

  /// The operand of a sum may use the place of the sum's gradient, which is its own too. One that nobody else reads or
  /// changes always; another one when all that write there come, on the way back, behind those that read.
  void share_place(const LaneOp& op) {
    auto quiet = [&](int value) {
      const int maker = makers_[size_t(value)];
      return maker >= 0 && readers_[size_t(value)].size() == 1 && !ops[size_t(maker)]->relu;
    };
    auto share = [&](int value) { values[size_t(value)].gradient = values[size_t(op.out)].gradient; };
    if (op.in == op.other) return;
    for (int value : {op.in, op.other})
      if (quiet(value)) share(value);
    auto sharers = [&](int place) {
      return std::count_if(values.begin(), values.end(),
                           [&](const LaneValue& one) { return one.differentiable && one.gradient == place; });
    };
    for (auto [value, rival] : {std::pair{op.in, op.other}, std::pair{op.other, op.in}}) {
      if (quiet(value) || !quiet(rival) || makers_[size_t(value)] < 0) continue;
      // Sums of sums: further values read the place, and would after the writers.
      if (ops[size_t(makers_[size_t(rival)])]->other >= 0 || sharers(values[size_t(op.out)].gradient) != 2) continue;
      int last = makers_[size_t(value)];
      for (int reader : readers_[size_t(value)])
        if (reader != int(op.number)) last = std::max(last, reader);
      if (last < makers_[size_t(rival)]) share(value);
    }
  }

  void place_gradients() {
    int places = 0;
    for (size_t v = values.size(); v-- > 0;) {  // those of sums before those of their operands
      LaneValue& value = values[v];
      if (!value.differentiable) continue;
      if (value.gradient < 0) value.gradient = places++;
      const int maker = makers_[v];
      if (maker >= 0 && ops[size_t(maker)]->other >= 0) share_place(*ops[size_t(maker)]);
    }
    planes.resize(size_t(places));
    for (const LaneValue& value : values) {
      if (!value.image || !value.differentiable) continue;
      Plane& plane = planes[size_t(value.gradient)];
      plane.channels = value.plane.channels, plane.height = value.plane.height, plane.width = value.plane.width;
    }
    for (const auto& [value, margin] : gradient_margins_) widen(planes[size_t(values[size_t(value)].gradient)], margin);
  }

  const model::Graph& graph_;
  ValueId wanted_;
  const Parameters& parameters_;
  std::vector<bool> needed_;
  std::map<ValueId, int64_t> uses_;
  std::map<ValueId, int> known_;
  std::vector<char> claimed_;
  std::set<size_t> statistics_;            ///< that a node keeps up to date
  std::vector<int> makers_;                ///< operator that makes a value, or −1
  std::vector<std::vector<int>> readers_;  ///< operators that read it
  std::map<int, Plane> gradient_margins_;  ///< of values
  std::map<int, bool> means_;              ///< rows that are still images of one pixel in the file
  uint64_t step_ = 0;
  size_t biased_ = SIZE_MAX;  ///< the node whose work the dense layer before it does
};

}  // namespace

struct LaneNetwork::Impl {
  std::vector<LaneValue> values;
  std::vector<Plane> planes;
  std::vector<std::unique_ptr<LaneOp>> ops;
  int output = -1;
  bool norms = false, images = false;
  int64_t dense_weights = 0;
  Vectors vectors = Vectors::kNone;
  std::mutex mutex;
  std::vector<std::unique_ptr<LaneRoom>> rooms;

  /// Images that stay in the cache from layer to layer, where nothing asks for more at once.
  int64_t at_once(int64_t inputs) const {
    return norms || !images || dense_weights > kManyWeights ? inputs : std::min(inputs, kInputs);
  }

  std::unique_ptr<LaneRoom> take_room(int64_t groups) {
    {
      std::lock_guard lock(mutex);
      for (auto& room : rooms)
        if (room->groups >= groups) {
          std::unique_ptr<LaneRoom> found = std::move(room);
          room = std::move(rooms.back());
          rooms.pop_back();
          return found;
        }
      if (!rooms.empty()) rooms.pop_back();  // too small for what comes now
    }
    auto room = std::make_unique<LaneRoom>();
    room->groups = groups;
    for (const LaneValue& value : values)
      room->values.push_back(value.image ? at::zeros({groups * value.plane.all()}, at::kFloat) : at::Tensor());
    for (const Plane& plane : planes)
      room->gradients.push_back(plane.channels > 0 ? at::zeros({groups * plane.all()}, at::kFloat) : at::Tensor());
    room->own.resize(ops.size());
    return room;
  }

  LossSum run(LanePass& pass, const at::Tensor& x, const at::Tensor& labels, const LossForm& loss, int64_t total) {
    const LaneValue& first = values[0];
    if (first.image) {
      const int64_t width = x[0].numel();
      for (int64_t group = 0; group < pass.groups; ++group)
        ops::rows_to_lanes(x.data_ptr<float>() + group * kInputs * width, width, pass.inputs_in(group),
                           pass.image(0, group), first.plane);
    } else {
      pass.row(0) = x.reshape({pass.inputs, -1});
    }
    for (const auto& op : ops) op->forward(pass);
    const at::Tensor answers = pass.row(output);
    LossSum sum = loss_of(loss, answers, labels, total);
    pass.gradient_row(output) = sum.gradient.view(answers.sizes());
    for (size_t i = ops.size(); i-- > 0;) ops[i]->backward(pass);
    return sum;
  }
};

LaneNetwork::LaneNetwork(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LaneNetwork::~LaneNetwork() = default;

std::unique_ptr<LaneNetwork> LaneNetwork::make(const model::Graph& graph, ValueId wanted, const Parameters& parameters,
                                               at::IntArrayRef shape, std::string& refusal, Vectors vectors) {
  try {
    if (vectors == Vectors::kNone) throw Refused{"the core has no vectors of 256 bits"};
    Builder builder(graph, wanted, parameters, shape);
    builder.run();
    if (builder.dense_weights > kMostWeights) throw Refused{"its dense layers are large"};
    auto impl = std::make_unique<Impl>();
    impl->values = std::move(builder.values), impl->planes = std::move(builder.planes);
    impl->ops = std::move(builder.ops);
    impl->output = builder.output, impl->norms = builder.norms, impl->dense_weights = builder.dense_weights;
    for (const LaneValue& value : impl->values) impl->images |= value.image;
    impl->vectors = vectors;
    return std::unique_ptr<LaneNetwork>(new LaneNetwork(std::move(impl)));
  } catch (const Refused& refused) {
    refusal = refused.reason;
  } catch (const InputError& error) {
    refusal = error.what();
  }
  return nullptr;
}

LossSum LaneNetwork::gradients(const Rows& rows, const LossForm& loss, int64_t total, uint64_t seed,
                               Parameters& parameters, at::Tensor& gradient) {
  at::NoGradGuard no_grad;
  at::Tensor x = rows.inputs.at(0);
  if (x.scalar_type() != at::kFloat) x = x.to(at::kFloat);
  x = x.contiguous();
  const int64_t inputs = x.size(0), at_once = impl_->at_once(inputs);
  std::unique_ptr<LaneRoom> room = impl_->take_room((at_once + kInputs - 1) / kInputs);
  LossSum all;
  for (int64_t from = 0; from < inputs; from += at_once) {
    const int64_t count = std::min(at_once, inputs - from);
    LanePass pass{*room, impl_->values, impl_->planes, parameters, gradient};
    pass.vectors = impl_->vectors, pass.inputs = count, pass.groups = (count + kInputs - 1) / kInputs;
    pass.seed = from == 0 ? seed : Random::hash(seed ^ Random::hash(uint64_t(from)));
    pass.add = from > 0;
    pass.written.assign(impl_->planes.size(), false);
    const LossSum sum = impl_->run(pass, x.narrow(0, from, count), rows.labels.narrow(0, from, count), loss, total);
    all.loss += sum.loss, all.right += sum.right;
  }
  std::lock_guard lock(impl_->mutex);
  impl_->rooms.push_back(std::move(room));
  return all;
}

}  // namespace netmend::training
