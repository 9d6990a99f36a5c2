// Networks: any bytes as an ONNX file; and bytes as decisions, from which a valid network is made that must give the
// same values however it is run.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <stdexcept>

#include "base/error.h"
#include "executor/executor.h"
#include "executor/layers.h"
#include "executor/runtime.h"
#include "onnx/reader.h"
#include "readers.h"

namespace netmend::fuzz {
namespace {

using executor::Mode;
using model::Attribute;
using model::Graph;
using model::ValueId;
using Ints = std::vector<int64_t>;
using Attributes = std::map<std::string, Attribute, std::less<>>;

std::vector<at::Tensor> some_inputs(const Graph& graph) {
  std::vector<at::Tensor> inputs;
  for (ValueId id : graph.inputs) {
    const model::Value& value = graph.values[size_t(id)];
    Ints shape;
    for (size_t axis = 0; value.shape && axis < value.shape->size(); ++axis)
      shape.push_back(std::clamp<int64_t>((*value.shape)[axis].size, 1, 8));
    inputs.push_back(at::ones(shape, at::TensorOptions().dtype(model::carrier(value.type))));
  }
  return inputs;
}

/// Read, planned and, where it is small, run.
void read_onnx_file(Input input) {
  const at::NoGradGuard no_grad;
  Graph graph = onnx::read_model(scratch("m.onnx", input));
  executor::find_layers(graph);
  executor::find_parameters(graph);
  if (graph.nodes.size() < 200) executor::Executor(graph).run(some_inputs(graph));
}

/// A model and the file beside it that holds its weights.
void read_external_data(Input input) {
  const auto [model, weights] = two_files(input);
  scratch("weights.bin", weights);
  read_onnx_file(model);
}

/// Decisions, one byte each; when they are used up all that is left to decide is 0.
class Decisions {
 public:
  explicit Decisions(Input bytes) : left_(bytes) {}
  bool more() const { return !left_.empty(); }
  int64_t below(int64_t count) { return from(0, count - 1); }
  int64_t from(int64_t least, int64_t most) {
    if (left_.empty()) return least;
    const auto byte = int64_t(uint8_t(left_[0]));
    left_.remove_prefix(1);
    return least + byte % (most - least + 1);
  }
  bool yes() { return below(2) == 1; }
  template <typename T, size_t N>
  const T& one_of(const T (&list)[N]) {
    return list[size_t(below(N))];
  }

 private:
  Input left_;
};

/// Makes a network by adding operators to what is there. Shapes are kept, so that what is added fits.
class NetworkMaker {
 public:
  explicit NetworkMaker(Input bytes) : choose_(bytes) {
    graph_.opsets[""] = 17;
    const Ints shapes[] = {{2, 6}, {3, 2, 5, 4}, {2, 3, 6, 6}, {2, 4, 5}, {1, 1, 7, 7}};
    const ValueId x = value(choose_.one_of(shapes));
    graph_.values[size_t(x)].name = "x";
    graph_.values[size_t(x)].type = model::Element::kFloat;
    graph_.inputs = {x};
    made_ = {x};
  }

  Graph make() {
    for (int node = 0; node < 24 && choose_.more(); ++node) add_one();
    graph_.outputs = {made_.back()};
    if (choose_.yes()) graph_.outputs.push_back(made_[size_t(choose_.below(int64_t(made_.size())))]);
    return std::move(graph_);
  }
  const Ints& input_shape() const { return shapes_[0]; }

 private:
  ValueId value(Ints shape) {
    const ValueId id = graph_.add_value("v" + std::to_string(graph_.values.size()));
    shapes_.resize(graph_.values.size());
    shapes_[size_t(id)] = std::move(shape);
    return id;
  }
  Ints shape(ValueId id) const { return shapes_[size_t(id)]; }

  /// Numbers that depend on their number alone, between −1 and 1.
  ValueId constant(const Ints& wanted, bool positive = false) {
    const ValueId id = value(wanted);
    at::Tensor numbers =
        at::sin(at::arange(c10::multiply_integers(wanted), at::kFloat) * 1.7 + double(id)).reshape(wanted);
    if (positive) numbers = numbers.abs() + 0.5;
    graph_.constants[id] = {.value = numbers};
    return id;
  }
  ValueId whole(const Ints& numbers) {
    const ValueId id = value({int64_t(numbers.size())});
    graph_.constants[id] = {.value = at::tensor(numbers, at::kLong), .stored = model::Element::kInt64};
    return id;
  }
  void node(const std::string& op, std::vector<ValueId> inputs, const Ints& result, Attributes attributes = {}) {
    const ValueId out = value(result);
    graph_.nodes.push_back({.name = "n" + std::to_string(graph_.nodes.size()),
                            .op = op,
                            .opset = 17,
                            .inputs = std::move(inputs),
                            .outputs = {out},
                            .attributes = std::move(attributes)});
    made_.push_back(out);
  }

  void add_one() {
    // Mostly what was made last: deep networks; sometimes what was made earlier: branches.
    const bool last = choose_.below(4) != 0;
    x_ = last ? made_.back() : made_[size_t(choose_.below(int64_t(made_.size())))];
    using Add = void (NetworkMaker::*)();
    constexpr Add kAll[] = {
        &NetworkMaker::unary,     &NetworkMaker::binary, &NetworkMaker::matmul,  &NetworkMaker::gemm,
        &NetworkMaker::conv,      &NetworkMaker::norm,   &NetworkMaker::pool,    &NetworkMaker::reshape,
        &NetworkMaker::transpose, &NetworkMaker::reduce, &NetworkMaker::softmax, &NetworkMaker::concat,
        &NetworkMaker::slice,     &NetworkMaker::pad,    &NetworkMaker::gather,  &NetworkMaker::layer_norm};
    (this->*choose_.one_of(kAll))();
  }

  void unary() {
    const char* ops[] = {"Relu",     "Sigmoid",     "Tanh",     "Neg",  "Abs",      "LeakyRelu",
                         "Elu",      "HardSigmoid", "Softplus", "Erf",  "Identity", "HardSwish",
                         "Softsign", "Selu",        "Dropout",  "Clip", "Ceil",     "Sqrt"};
    const std::string op = choose_.one_of(ops);
    if (op == "Clip") {
      const ValueId low = constant({}), high = constant({}, true);
      return node(op, {x_, choose_.yes() ? low : model::kAbsent, high}, shape(x_));
    }
    Attributes attributes;
    if ((op == "LeakyRelu" || op == "Elu" || op == "HardSigmoid") && choose_.yes()) attributes["alpha"] = 0.3f;
    node(op, {x_}, shape(x_), std::move(attributes));
  }

  void binary() {
    const char* ops[] = {"Add", "Mul", "Sub", "Div", "Max", "Min"};
    const std::string op = choose_.one_of(ops);
    const int64_t which = choose_.below(5);
    ValueId other = x_;
    if (which == 0)
      for (ValueId id : made_)
        if (shape(id) == shape(x_) && id != x_) other = id;
    if (which == 1) other = constant({}, op == "Div");
    if (which == 2 && !shape(x_).empty()) other = constant({shape(x_).back()}, op == "Div");
    if (which == 3) other = constant(shape(x_), op == "Div");
    if (which == 4 && shape(x_).size() == 4) other = constant({shape(x_)[1], 1, 1}, op == "Div");
    if (op == "Div" && !graph_.is_constant(other)) return;  // by next to nothing, and rounding is all there is
    const bool turned = op != "Div" && choose_.yes();
    node(op, turned ? std::vector{other, x_} : std::vector{x_, other}, shape(x_));
  }

  void matmul() {
    Ints result = shape(x_);
    if (result.size() < 2) return;
    const int64_t width = choose_.from(1, 5);
    const ValueId weight = constant({result.back(), width});
    result.back() = width;
    node("MatMul", {x_, weight}, result);
    if (choose_.yes()) x_ = made_.back(), node("Add", {x_, constant({width})}, result);
  }

  void gemm() {
    Ints from = shape(x_);
    if (from.size() != 2) return;
    const int64_t width = choose_.from(1, 5);
    const bool turned = choose_.yes();
    const ValueId weight = constant(turned ? Ints{width, from[1]} : Ints{from[1], width});
    std::vector<ValueId> inputs{x_, weight};
    if (choose_.yes()) inputs.push_back(constant({width}));
    Attributes attributes{{"transB", int64_t(turned)}};
    if (choose_.yes()) attributes["alpha"] = 0.5f;
    if (choose_.yes()) attributes["beta"] = 2.0f;
    node("Gemm", std::move(inputs), {from[0], width}, std::move(attributes));
  }

  static int64_t windows(int64_t size, int64_t kernel, int64_t stride, int64_t before, int64_t after,
                         int64_t dilation) {
    const int64_t room = size + before + after - dilation * (kernel - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
  }

  void conv() {
    const Ints from = shape(x_);
    if (from.size() != 4) return;
    const int64_t group = from[1] % 2 == 0 && choose_.yes() ? 2 : choose_.yes() ? 1 : from[1];
    const int64_t units = group * choose_.from(1, 3), kernel = choose_.from(1, 3);
    const int64_t stride = choose_.from(1, 2), dilation = choose_.from(1, 2), before = choose_.below(2),
                  after = choose_.below(2);
    Ints result{from[0], units};
    for (const size_t axis : {2u, 3u}) result.push_back(windows(from[axis], kernel, stride, before, after, dilation));
    if (result[2] < 1 || result[3] < 1) return;
    std::vector<ValueId> inputs{x_, constant({units, from[1] / group, kernel, kernel})};
    if (choose_.yes()) inputs.push_back(constant({units}));
    node("Conv", std::move(inputs), result,
         {{"group", group},
          {"strides", Ints{stride, stride}},
          {"dilations", Ints{dilation, dilation}},
          {"pads", Ints{before, before, after, after}}});
  }

  void norm() {
    const Ints from = shape(x_);
    if (from.size() < 2) return;
    const ValueId scale = constant({from[1]}), bias = constant({from[1]}), mean = constant({from[1]}),
                  variance = constant({from[1]}, true);
    node("BatchNormalization", {x_, scale, bias, mean, variance}, from);
  }

  void pool() {
    const Ints from = shape(x_);
    if (from.size() != 4) return;
    const char* ops[] = {"MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"};
    const std::string op = choose_.one_of(ops);
    if (op[0] == 'G') return node(op, {x_}, {from[0], from[1], 1, 1});
    const int64_t kernel = choose_.from(1, 3), stride = choose_.from(1, 2), padding = kernel > 1 ? choose_.below(2) : 0;
    Ints result{from[0], from[1]};
    for (const size_t axis : {2u, 3u}) result.push_back(windows(from[axis], kernel, stride, padding, padding, 1));
    if (result[2] < 1 || result[3] < 1) return;
    Attributes attributes{{"kernel_shape", Ints{kernel, kernel}},
                          {"strides", Ints{stride, stride}},
                          {"pads", Ints{padding, padding, padding, padding}}};
    if (op == "AveragePool") attributes["count_include_pad"] = choose_.below(2);
    node(op, {x_}, result, std::move(attributes));
  }

  void reshape() {
    const Ints from = shape(x_);
    const int64_t count = c10::multiply_integers(from);
    const int64_t which = choose_.below(4);
    if (which == 0 && !from.empty()) return node("Flatten", {x_}, {from[0], count / from[0]});
    if (which == 1) return node("Reshape", {x_, whole({-1})}, {count});
    if (which == 2 && from.size() < 4) {
      Ints result = from;
      const int64_t at = choose_.below(int64_t(from.size()) + 1);
      result.insert(result.begin() + at, 1);
      return node("Unsqueeze", {x_, whole({at})}, result);
    }
    for (size_t axis = 0; axis < from.size(); ++axis)
      if (from[axis] == 1) {
        Ints result = from;
        result.erase(result.begin() + int64_t(axis));
        return node("Squeeze", {x_, whole({int64_t(axis)})}, result);
      }
  }

  void transpose() {
    const Ints from = shape(x_);
    Ints order(from.size()), result;
    for (size_t i = 0; i < order.size(); ++i) order[i] = int64_t(i);
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[size_t(choose_.below(int64_t(i)))]);
    for (const int64_t axis : order) result.push_back(from[size_t(axis)]);
    node("Transpose", {x_}, result, {{"perm", order}});
  }

  void reduce() {
    Ints from = shape(x_);
    if (from.empty()) return;
    const char* ops[] = {"ReduceMean", "ReduceMax", "ReduceL2"};
    const std::string op = choose_.one_of(ops);
    const int64_t axis = choose_.below(int64_t(from.size()));
    const bool keep = choose_.yes();
    Ints result = from;
    result[size_t(axis)] = 1;
    if (!keep) result.erase(result.begin() + axis);
    node(op, {x_}, result, {{"axes", Ints{axis}}, {"keepdims", int64_t(keep)}});
  }

  void softmax() {
    if (shape(x_).empty()) return;
    const char* ops[] = {"Softmax", "LogSoftmax"};
    const std::string op = choose_.one_of(ops);
    node(op, {x_}, shape(x_), {{"axis", choose_.below(int64_t(shape(x_).size()))}});
  }

  void concat() {
    Ints result = shape(x_);
    if (result.empty()) return;
    ValueId other = constant(result);
    if (choose_.yes())
      for (ValueId id : made_)
        if (shape(id) == result) other = id;
    const int64_t axis = choose_.below(int64_t(result.size()));
    result[size_t(axis)] *= 2;
    if (c10::multiply_integers(result) > 4096) return;
    node("Concat", {x_, other}, result, {{"axis", axis}});
  }

  void slice() {
    Ints result = shape(x_);
    if (result.empty()) return;
    const int64_t axis = choose_.below(int64_t(result.size())), size = result[size_t(axis)];
    const int64_t begin = choose_.below(size), step = choose_.from(1, 2);
    result[size_t(axis)] = (size - begin + step - 1) / step;
    node("Slice", {x_, whole({begin}), whole({size}), whole({axis}), whole({step})}, result);
  }

  void pad() {
    Ints result = shape(x_);
    if (result.empty() || c10::multiply_integers(result) > 1024) return;
    Ints pads(2 * result.size());
    const size_t axis = size_t(choose_.below(int64_t(result.size())));
    pads[axis] = choose_.below(3), pads[result.size() + axis] = choose_.below(3);
    result[axis] += pads[axis] + pads[result.size() + axis];
    node("Pad", {x_, whole(pads)}, result);
  }

  void gather() {
    Ints result = shape(x_);
    if (result.empty()) return;
    const int64_t axis = choose_.below(int64_t(result.size())), size = result[size_t(axis)];
    const Ints places{choose_.below(size), choose_.below(size)};
    result[size_t(axis)] = 2;
    node("Gather", {x_, whole(places)}, result, {{"axis", axis}});
  }

  void layer_norm() {
    const Ints from = shape(x_);
    if (from.empty()) return;
    node("LayerNormalization", {x_, constant({from.back()}), constant({from.back()})}, from, {{"axis", int64_t(-1)}});
  }

  Decisions choose_;
  Graph graph_;
  std::vector<Ints> shapes_;   ///< of all values
  std::vector<ValueId> made_;  ///< the input and what nodes made
  ValueId x_ = 0;              ///< what the next node takes
};

struct Ran {
  std::vector<at::Tensor> values;  ///< none where it was refused
  std::string refusal;
};

Ran run(const Graph& graph, const at::Tensor& x, executor::Request request) {
  try {
    return {executor::Executor(graph, std::move(request)).run({&x, 1}), ""};
  } catch (const InputError& error) {
    return {{}, error.what()};
  }
}

/// Equal up to rounding of the largest value there is; what is no number is none in both.
bool alike(const at::Tensor& a, const at::Tensor& b, double rounding) {
  if (a.sizes() != b.sizes()) return false;
  const at::Tensor x = a.to(at::kDouble), y = b.to(at::kDouble);
  const at::Tensor finite = x.isfinite().logical_and(y.isfinite());
  if (!finite.logical_or(x.isnan().logical_and(y.isnan())).logical_or(x == y).all().item<bool>()) return false;
  if (!finite.any().item<bool>()) return true;
  const at::Tensor own = x.masked_select(finite), other = y.masked_select(finite);
  const double largest = std::max(1.0, own.abs().max().item<double>());
  return (own - other).abs().max().item<double>() <= rounding * largest;
}

std::string words_of(const Graph& graph) {
  std::string words;
  for (const model::Node& node : graph.nodes) words += (words.empty() ? "" : " ") + node.op;
  return words;
}

/// Operators whose value jumps: rounding before them is no rounding behind them.
bool jumps(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const model::Node& node) { return node.op == "Ceil"; });
}

/// A find: fast and plain disagree, or a valid network is refused.
[[noreturn]] void disagree(const std::string& what, const Graph& graph) {
  throw std::logic_error(what + ": " + words_of(graph));
}

/// Fast and plain give the same values, and fast the same bits twice.
void run_in_two_ways(Input input) {
  const at::NoGradGuard no_grad;
  NetworkMaker maker(input);
  const Ints shape = maker.input_shape();
  const Graph graph = maker.make();
  const at::Tensor x = at::cos(at::arange(c10::multiply_integers(shape), at::kFloat) * 0.9).reshape(shape);
  const at::Tensor before = x.clone();
  const Ran plain = run(graph, x, {.mode = Mode::kPlain}), fast = run(graph, x, {}), again = run(graph, x, {});
  for (const Ran* one : {&plain, &fast, &again})
    if (!one->refusal.empty()) disagree("a valid network is refused: " + one->refusal, graph);
  if (!x.equal(before)) disagree("the input was written to", graph);
  for (size_t i = 0; i < plain.values.size(); ++i) {
    if (!alike(fast.values[i], again.values[i], 0)) disagree("the same run gives other values", graph);
    if (!jumps(graph) && !alike(plain.values[i], fast.values[i], 1e-3)) disagree("fast and plain differ", graph);
  }
}

constexpr Reader kReaders[] = {{"onnx", read_onnx_file}, {"external", read_external_data}, {"graphs", run_in_two_ways}};

}  // namespace

std::span<const Reader> network_readers() { return kReaders; }

}  // namespace netmend::fuzz
