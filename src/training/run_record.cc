#include "training/run_record.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_set>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "base/version.h"
#include "executor/executor.h"
#include "executor/layers.h"
#include "stream/pass.h"

namespace netmend::training {
namespace {

using Json = nlohmann::ordered_json;
using records::number_word;

constexpr int64_t kProbeInputs = 64, kDataInputs = 4096, kHashedInputs = 100'000;

double scalar(const at::Tensor& value) { return value.item().toDouble(); }
/// Of float values; NaN of fewer than two.
double deviation(const at::Tensor& x) { return x.numel() > 1 ? scalar(x.to(at::kFloat).std()) : 0.0; }

const char* optimiser_words(Method method) {
  switch (method) {
    case Method::kSgd:
    case Method::kMomentum:
      return "SGD";
    case Method::kAdam:
      return "Adam";
    case Method::kRmsprop:
      return "RMSprop";
    case Method::kAdagrad:
      return "Adagrad";
    case Method::kAdamax:
      return "Adamax";
    case Method::kNadam:
      return "NAdam";
  }
  return "";
}

const char* loss_words(LossKind kind) {
  switch (kind) {
    case LossKind::kCrossEntropy:
      return "cross_entropy";
    case LossKind::kMse:
      return "mse_loss";
    case LossKind::kBce:
      return "binary_cross_entropy_with_logits";
  }
  return "";
}

/// The words of the recorder for other frameworks.
std::string role_of(const std::string& op) {
  if (op.find("Conv") != std::string::npos) return "conv";
  if (op == "LSTM" || op == "GRU" || op == "RNN") return "recurrent";
  return op == "Gather" ? "embedding" : "linear";
}

std::string function_of(const std::string& op) {
  static const std::map<std::string, std::string> words = {
      {"Gemm", "linear"}, {"LeakyRelu", "leaky_relu"}, {"HardSigmoid", "hard_sigmoid"}, {"LogSoftmax", "log_softmax"}};
  const auto found = words.find(op);
  return found == words.end() ? lower(op) : found->second;
}

/// Whether the operator only moves, scales or averages what a layer before it gave.
bool passes_through(const model::Graph& graph, const model::Node& node) {
  static const std::vector<std::string> linear = {
      "Flatten",     "Reshape",           "Squeeze", "Unsqueeze",  "Transpose", "Identity", "Dropout",
      "AveragePool", "GlobalAveragePool", "Slice",   "ReduceMean", "Pad",       "Cast",     "BatchNormalization"};
  if (std::find(linear.begin(), linear.end(), node.op) != linear.end()) return true;
  return (node.op == "Add" || node.op == "Sub") && node.inputs.size() == 2 &&
         graph.is_constant(node.inputs[0]) != graph.is_constant(node.inputs[1]);
}

model::ValueId data_input(const model::Graph& graph, const model::Node& node) {
  for (model::ValueId id : node.inputs)
    if (id != model::kAbsent && !graph.is_constant(id)) return id;
  return model::kAbsent;
}

/// The node that made what reaches a value, beyond those that only pass it on; -1 for an input.
int origin(const model::Graph& graph, const std::vector<int>& made_by, model::ValueId id) {
  while (id != model::kAbsent && made_by[size_t(id)] >= 0) {
    const model::Node& node = graph.nodes[size_t(made_by[size_t(id)])];
    if (!passes_through(graph, node)) return made_by[size_t(id)];
    id = data_input(graph, node);
  }
  return -1;
}

/// A number for each row, of all its bytes.
std::vector<std::string> row_keys(const at::Tensor& rows) {
  const at::Tensor whole = rows.to(at::kCPU).contiguous();
  std::vector<std::string> keys;
  if (whole.numel() == 0) return keys;
  const int64_t bytes = int64_t(whole.nbytes()) / whole.size(0);
  for (int64_t i = 0; i < whole.size(0); ++i)
    keys.push_back(checksum(std::string_view(static_cast<const char*>(whole.data_ptr()) + i * bytes, size_t(bytes))));
  return keys;
}

Json input_facts(const at::Tensor& x) {
  Json facts = {{"shape", x.sizes().vec()}};
  if (!x.is_floating_point()) {
    facts["integer"] = true;
    if (x.scalar_type() != at::kBool && x.numel() > 0) facts["min"] = scalar(x.min()), facts["max"] = scalar(x.max());
    return facts;
  }
  if (x.numel() == 0) return facts;
  facts["min"] = number_word(scalar(x.min())), facts["max"] = number_word(scalar(x.max()));
  facts["mean"] = number_word(scalar(x.mean())), facts["std"] = number_word(deviation(x));
  if (x.dim() == 2 && x.size(0) > 1) {
    const at::Tensor by_column = x.std(0), positive = by_column.masked_select(by_column > 0);
    if (positive.numel() > 0)
      facts["std_ratio"] = number_word(scalar(positive.max() / positive.min())),
      facts["std_max"] = number_word(scalar(positive.max()));
  }
  if (!at::isfinite(x).all().item<bool>()) facts["nan"] = true;
  if (scalar(x.max()) > 2) facts["whole"] = (x == x.round()).all().item<bool>();
  return facts;
}

/// Labels of those inputs as the loss sees them.
Json label_facts(const LossForm& form, const at::Tensor& given) {
  Json facts = Json::object();
  if (!given.defined() || given.numel() == 0) return facts;
  const at::Tensor labels = given.to(at::kCPU, at::kDouble);
  facts["target_shape"] = labels.sizes().vec();
  facts["min_target"] = number_word(scalar(labels.min())), facts["max_target"] = number_word(scalar(labels.max()));
  facts["all_targets_whole"] = (labels == labels.round()).all().item<bool>();
  if (labels.numel() > 1)
    facts["target_mean"] = number_word(scalar(labels.mean())), facts["target_std"] = number_word(deviation(labels));
  if (form.labels == dataset::LabelKind::kNumber) return facts;
  std::map<int64_t, int64_t> counts;
  const at::Tensor flat = labels.reshape({-1});
  const auto values = flat.accessor<double, 1>();
  for (int64_t i = 0; i < flat.numel(); ++i) ++counts[std::llround(values[i])];
  Json all = Json::object();
  if (counts.size() <= 1000)
    for (const auto& [label, count] : counts) all[std::to_string(label)] = count;
  facts["counts"] = all;
  facts["classes"] = form.width;
  return facts;
}

}  // namespace

struct RunRecord::Impl {
  Impl(const std::string& path, const std::vector<std::string>& program, RecordSubject given, int64_t steps_before)
      : subject(given), layers(executor::find_layers(given.graph)), writer(path, program) {
    writer.begin_after(steps_before);
    writer.say("framework", {{"name", "netmend"}, {"version", kVersion}, {"seed", subject.options.seed}});
    describe_network();
    describe_settings();
    describe_data();
    prepare_probe();
  }

  void describe_network() {
    Json rows = Json::array();
    for (const model::Layer& layer : layers) {
      Json row = {{"name", layer.name}, {"type", layer.op}, {"role", role_of(layer.op)}, {"units", layer.units}};
      if (!layer.activation.empty()) row["activation"] = function_of(layer.activation);
      row["parameters"] = layer.parameters, row["trainable"] = true;
      const at::Tensor weight = subject.graph.constant(layer.weight);
      if (weight.defined() && weight.dim() >= 2 && weight.is_floating_point() && layer.units > 0) {
        row["fan_in"] = weight.numel() / layer.units;
        row["weight_std"] = number_word(deviation(weight)), row["weight_mean"] = number_word(scalar(weight.mean()));
        const at::Tensor given = subject.graph.constant(layer.weight_input);
        if (given.defined() && given.size(layer.weight_axis) > 1 && role_of(layer.op) != "recurrent")
          row["same_units"] = (given == given.narrow(layer.weight_axis, 0, 1)).all().item<bool>();
      }
      if (const at::Tensor bias = subject.graph.constant(layer.bias); bias.defined() && bias.numel() > 0)
        row["bias_mean"] = number_word(scalar(bias.to(at::kFloat).mean()));
      rows.push_back(row);
    }
    writer.say("model", {{"model", 0},
                         {"name", subject.graph.name},
                         {"parameters", subject.parameters.count()},
                         {"trainable", subject.parameters.count()},
                         {"layers", rows}});
    describe_graph();
  }

  void describe_graph() {
    const std::vector<int> made_by = model::producers(subject.graph);
    Json ops = Json::array(), pairs = Json::array();
    for (const model::Node& node : subject.graph.nodes)
      if (ops.size() < 400) ops.push_back(function_of(node.op));
    std::map<int, const model::Layer*> by_node;
    for (const model::Layer& layer : layers) by_node[layer.node] = &layer;
    int64_t count = 0;
    for (const model::Layer& layer : layers) {
      const int before =
          origin(subject.graph, made_by, data_input(subject.graph, subject.graph.nodes[size_t(layer.node)]));
      const auto found = by_node.find(before);
      if (found == by_node.end() || role_of(found->second->op) == "recurrent" || role_of(layer.op) == "embedding" ||
          role_of(found->second->op) == "embedding")
        continue;
      const model::Layer& other = *found->second;
      const at::Tensor weight = subject.graph.constant(other.weight);
      const bool narrow = weight.defined() && other.units > 0 && other.units < weight.numel() / other.units &&
                          other.units < layer.units;  // low rank, on purpose
      if (narrow) continue;
      ++count;
      if (pairs.size() < 8) pairs.push_back({other.name, layer.name});
    }
    const int last = origin(subject.graph, made_by, subject.wanted);
    Json graph = {{"model", 0}, {"ops", ops}, {"weighted", layers.size()}, {"pairs", pairs}, {"pair_count", count}};
    if (last >= 0) {
      const model::Node& node = subject.graph.nodes[size_t(last)];
      graph["last"] = function_of(node.op);
      if (const int before = origin(subject.graph, made_by, data_input(subject.graph, node)); before >= 0)
        graph["before_last"] = function_of(subject.graph.nodes[size_t(before)].op);
    }
    writer.say("graph", graph);
  }

  void describe_settings() {
    const Options& o = subject.options;
    Json settings = {
        {"weight_decay", o.decay}, {"schedule", schedule_text(o.schedule)}, {"method", method_name(o.method)}};
    if (o.method == Method::kMomentum) settings["momentum"] = o.momentum;
    writer.say("optimizer", {{"optimizer", 0},
                             {"type", optimiser_words(o.method)},
                             {"lr", number_word(o.rate)},
                             {"settings", settings},
                             {"parameters", subject.parameters.count()}});
    writer.say("loader", {{"loader", 0},
                          {"sampler", "RandomSampler"},
                          {"batch", o.batch},
                          {"rows", subject.train.size()},
                          {"shuffled", true},
                          {"epochs", o.epochs}});
  }

  void describe_data() {
    const Rows some =
        subject.train.rows(stream::spread(subject.train.size(), std::min(kDataInputs, subject.train.size())));
    if (!some.inputs.empty()) writer.say("data", {{"split", "train"}, {"inputs", input_facts(some.inputs[0])}});
    Json loss = {{"type", loss_words(subject.loss.kind)},
                 {"shape", {std::min(subject.options.batch, subject.train.size()), subject.loss.width}},
                 {"ordered", false}};
    loss.update(label_facts(subject.loss, some.labels));
    writer.say("loss", loss);
    if (!subject.validation || !subject.train.kept() || subject.train.size() > kHashedInputs) return;
    const Rows train = subject.train.rows(stream::spread(subject.train.size(), subject.train.size())),
               other = subject.validation->rows(
                   stream::spread(subject.validation->size(), std::min(kDataInputs, subject.validation->size())));
    if (train.inputs.size() != 1 || other.inputs.size() != 1) return;
    std::unordered_set<std::string> known;
    int64_t common = 0, repeated = 0;
    for (std::string& key : row_keys(train.inputs[0])) repeated += !known.insert(std::move(key)).second;
    const std::vector<std::string> keys = row_keys(other.inputs[0]);
    for (const std::string& key : keys) common += int64_t(known.count(key));
    // As many as training inputs have among themselves are the data's nature, not a leak.
    const double usual = double(repeated) / double(std::max<int64_t>(1, subject.train.size()));
    if (double(common) < 2 * usual * double(keys.size())) common = 0;
    writer.say("overlap", {{"rows", keys.size()},
                           {"train_rows", subject.train.size()},
                           {"overlapping", common},
                           {"arrays", true},
                           {"all_in_train", common == int64_t(keys.size())}});
  }

  /// A pass without gradients whose values of all layers are looked at.
  void prepare_probe() {
    executor::Request request;
    request.given = subject.graph.inputs;
    for (const Slot& slot : subject.parameters.slots()) request.given.push_back(slot.id);
    for (model::ValueId id : subject.parameters.statistics_ids()) request.given.push_back(id);
    for (const model::Layer& layer : layers)
      if (layer.post != model::kAbsent) request.wanted.push_back(layer.post), probed.push_back(&layer);
    request.mode = executor::Mode::kPlain;
    request.device = subject.parameters.values().device();
    if (request.wanted.empty()) return;
    try {
      probe = std::make_unique<executor::Executor>(subject.graph, request);
    } catch (const InputError& error) {
      writer.say("trouble", {{"what", fmt::format("activations are not recorded: {}", error.what())}});
    }
  }

  /// Rules tell biases by their name.
  std::string name_of(const Slot& slot) const {
    const std::string& name = subject.graph.values[size_t(slot.id)].name;
    const bool bias = std::any_of(layers.begin(), layers.end(), [&](const auto& one) { return one.bias == slot.id; });
    return bias && lower(name).find("bias") == std::string::npos ? name + " (bias)" : name;
  }

  std::vector<at::Tensor> given(std::span<const int64_t> batch) const {
    Rows rows = subject.train.rows(batch.first(std::min(batch.size(), size_t(kProbeInputs))));
    std::vector<at::Tensor> all = std::move(rows.inputs);
    for (size_t slot = 0; slot < subject.parameters.slots().size(); ++slot)
      all.push_back(subject.parameters.leaf(slot).detach());
    all.insert(all.end(), subject.parameters.statistics().begin(), subject.parameters.statistics().end());
    return all;
  }

  static Json activation(const model::Layer& layer, const at::Tensor& value, bool last) {
    const at::Tensor x = value.to(at::kFloat), size = x.abs();
    Json row = {{"a", number_word(scalar(size.mean()))},
                {"m", number_word(scalar(size.max()))},
                {"s", number_word(deviation(x))}};
    if (layer.activation.empty() || last) return row;
    const std::string function = function_of(layer.activation);
    row["act"] = function;
    if (function == "relu") {
      const int axis = int(layer.unit_axis < 0 ? x.dim() + layer.unit_axis : layer.unit_axis);
      const at::Tensor zero = x == 0;
      row["z"] = number_word(scalar(zero.to(at::kFloat).mean()));
      if (axis < x.dim())
        row["d"] = number_word(scalar(zero.movedim(axis, 0).reshape({x.size(axis), -1}).all(1).to(at::kFloat).mean()));
    } else if (function == "tanh") {
      row["sat"] = number_word(scalar((size > 0.995).to(at::kFloat).mean()));
    } else if (function == "sigmoid") {
      row["sat"] = number_word(scalar(at::logical_or(x<0.0025, x> 0.9975).to(at::kFloat).mean()));
    }
    return row;
  }

  void look(double loss, double rate, const at::Tensor& gradient, std::span<const int64_t> batch) {
    at::NoGradGuard no_grad;
    Json rows = Json::object();
    ++looks;
    for (const Slot& slot : subject.parameters.slots()) {
      auto part = [&](const at::Tensor& all) { return all.narrow(0, slot.offset, slot.count); };
      const at::Tensor g = part(gradient), now = part(subject.parameters.values()), old = part(before);
      const double norm = scalar(g.norm());
      const bool same = at::equal(now, old);
      const std::string name = name_of(slot);
      rows[name] = {{"n", slot.count},
                    {"g", number_word(norm)},
                    {"gz", number_word(scalar((g == 0).to(at::kFloat).mean()))},
                    {"w", number_word(scalar(now.norm()))},
                    {"u", number_word(scalar((now - old).norm()))}};
      if (same && norm > 0 && rate > 0) ++lost[name], rows[name]["same"] = true;
    }
    if (probe) {
      const std::vector<at::Tensor> values = probe->run(given(batch));
      for (size_t i = 0; i < values.size(); ++i)
        if (values[i].numel() > 0 && values[i].is_floating_point())
          rows[probed[i]->name].update(activation(*probed[i], values[i], probed[i] == &layers.back()));
    }
    writer.say("step", {{"optimizer", 0},
                        {"step", writer.steps()},
                        {"loss", number_word(loss)},
                        {"lr", number_word(rate)},
                        {"layers", rows}});
  }

  /// The first operator that makes NaN or Inf of finite values.
  Json source_of(std::span<const int64_t> batch) const {
    at::NoGradGuard no_grad;
    auto finite = [](const at::Tensor& t) {
      return !t.defined() || !t.is_floating_point() || at::isfinite(t).all().item<bool>();
    };
    for (const Slot& slot : subject.parameters.slots())
      if (!finite(subject.parameters.values().narrow(0, slot.offset, slot.count)))
        return {{"what", "weights"},
                {"layer", subject.graph.values[size_t(slot.id)].name},
                {"operation", "the step before"}};
    const Rows rows = subject.train.rows(batch);
    for (const at::Tensor& input : rows.inputs)
      if (!finite(input)) return {{"what", "input"}, {"operation", "the data"}};
    if (rows.labels.defined() && !finite(rows.labels)) return {{"what", "input"}, {"operation", "the labels"}};
    Json found;
    if (probe) {
      executor::RunOptions options;
      options.trace = [&](int node, std::span<const at::Tensor> inputs, std::span<const at::Tensor> outputs) {
        if (!found.is_null() || !std::all_of(inputs.begin(), inputs.end(), finite) ||
            std::all_of(outputs.begin(), outputs.end(), finite))
          return;
        const model::Node& made = subject.graph.nodes[size_t(node)];
        found = {{"what", "operation"}, {"operation", lower(made.op)}, {"layer", made.name}};
      };
      probe->run(given(batch), options);
    }
    return found.is_null() ? Json{{"what", "loss"}, {"operation", "loss"}} : found;
  }

  RecordSubject subject;
  std::vector<model::Layer> layers;
  records::RecordWriter writer;
  records::LookBudget budget;
  std::unique_ptr<executor::Executor> probe;
  std::vector<const model::Layer*> probed;
  at::Tensor before;  ///< the parameters, where the step is looked at
  double looked = 0;  ///< seconds of the copy
  int64_t looks = 0;
  std::map<std::string, int64_t> lost;
};

RunRecord::RunRecord(const std::string& path, const std::vector<std::string>& program, RecordSubject subject,
                     int64_t steps_before)
    : impl_(std::make_unique<Impl>(path, program, subject, steps_before)) {}
RunRecord::~RunRecord() = default;

bool RunRecord::due(size_t untold) const {
  return impl_->budget.due(impl_->writer.steps() + int64_t(untold) + 1, impl_->writer.seconds());
}

void RunRecord::before_step() {
  const double now = impl_->writer.seconds();
  impl_->before = impl_->subject.parameters.values().clone();
  impl_->looked = impl_->writer.seconds() - now;
}

void RunRecord::after_step(double loss, double rate, const at::Tensor& gradient, std::span<const int64_t> batch) {
  impl_->writer.add_loss(loss, rate);
  if (!impl_->before.defined()) return;
  const double start = impl_->writer.seconds();
  impl_->look(loss, rate, gradient, batch);
  impl_->before = at::Tensor();
  const double now = impl_->writer.seconds();
  impl_->budget.spent(impl_->looked + now - start, now);
}

void RunRecord::epoch(const Epoch& epoch) {
  Json metrics = {{"loss", number_word(epoch.loss)}};
  auto add = [&](const char* name, double value) {
    if (!std::isnan(value)) metrics[name] = number_word(value);
  };
  add("accuracy", epoch.accuracy), add("val_loss", epoch.val_loss), add("val_accuracy", epoch.val_accuracy);
  impl_->writer.say("epoch", {{"epoch", epoch.number},
                              {"step", impl_->writer.steps()},
                              {"lr", number_word(epoch.rate)},
                              {"seconds", number_word(epoch.seconds)},
                              {"metrics", metrics}});
}

void RunRecord::not_finite(double loss, double rate, std::span<const int64_t> batch) {
  impl_->writer.add_loss(loss, rate);
  impl_->writer.say_ring();
  Json found = impl_->source_of(batch);
  found["step"] = impl_->writer.steps();
  impl_->writer.say("nonfinite", found);
}

void RunRecord::end(const std::string& failure) {
  Json lost = Json::object();
  for (const auto& [name, count] : impl_->lost) lost[name] = count;
  impl_->writer.say_ring();
  impl_->writer.say("summary",
                    {{"optimizer", 0}, {"steps", impl_->writer.steps()}, {"looks", impl_->looks}, {"lost", lost}});
  if (!failure.empty()) impl_->writer.say("failed", {{"error", failure}});
  impl_->writer.say("end", {{"steps", impl_->writer.steps()}});
}

}  // namespace netmend::training
