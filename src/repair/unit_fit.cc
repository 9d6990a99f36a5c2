#include "repair/unit_fit.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/pool.h"
#include "base/random.h"
#include "edits/places.h"
#include "executor/cost.h"
#include "executor/layers.h"
#include "executor/runtime.h"
#include "localise/gradient.h"
#include "training/thread_pool.h"
#include "whatif/judge.h"
#include "whatif/tail.h"

namespace netmend::repair {

using model::ValueId;
using Tensors = std::vector<at::Tensor>;

namespace {

constexpr int64_t kRowsAPart = 32;   ///< of a batch, on one worker; a GPU takes the whole batch
constexpr double kTargetWeight = 4;  ///< how much more a failure counts that the user is after

/// Numbers of one constant that may move.
struct Piece {
  ValueId constant;
  at::Tensor whole;                        ///< the constant as it is, on the device
  at::Tensor positions;                    ///< int64
  at::Tensor start, value, first, second;  ///< float: where they were, are, and the moments of Adam
  at::Tensor scale;                        ///< float: the usual size of such numbers in their layer
  std::vector<std::pair<std::string, std::vector<int64_t>>> by_unit;  ///< for the edits
  bool bias = false;
};

}  // namespace

struct UnitFit::Impl {
  const Problem& problem;
  const model::Graph& graph;
  at::Device device;
  training::ThreadPool pool;  ///< steps are too short to start threads for each
  std::vector<Piece> pieces;
  std::vector<ValueId> beside;  ///< kept values, or the network's inputs
  bool kept = false;
  Tensors cache;  ///< of the search part, as `beside`
  at::Tensor labels, weights;
  std::optional<executor::Executor> run;
  double last_loss = 0, epoch_work = 0;

  Impl(const Problem& p, const std::vector<localise::UnitPlace>& units)
      : problem(p), graph(p.subject.batching.graph), device(p.subject.device), pool(threads(p)) {
    if (const std::string why = why_unfittable(problem); !why.empty()) throw Unsupported(why);
    gather(units);
    std::vector<ValueId> constants;
    for (const Piece& piece : pieces) constants.push_back(piece.constant);
    beside = whatif::Tail(graph, constants, whatif::answers_of(problem.settings)).beside();
    keep();
    executor::Request request;
    request.mode = executor::Mode::kPlain;
    request.given = beside;
    request.given.insert(request.given.end(), constants.begin(), constants.end());
    request.wanted = {whatif::answers_of(problem.settings)};
    request.device = device;
    run.emplace(graph, request);
    // Forward and twice as much backward, through what depends on the units.
    begin(false);
    Tensors one = rows({0});
    for (const at::Tensor& constant : this->constants()) one.push_back(constant);
    for (at::Tensor& value : one) value = value.to(at::kCPU);
    epoch_work =
        3 * double(problem.parts.search.size()) * executor::multiply_adds(graph, one, request.wanted, request.given);
  }

  static int threads(const Problem& p) {
    const int64_t parts = (FitOptions{}.batch + kRowsAPart - 1) / kRowsAPart;
    return p.subject.device.is_cpu() ? int(std::min<int64_t>(p.jobs > 0 ? p.jobs : cores(), parts)) : 1;
  }

  void gather(const std::vector<localise::UnitPlace>& units) {
    std::vector<ValueId> learned = executor::find_parameters(problem.subject.graph);
    const std::set<ValueId> known(learned.begin(), learned.end());
    std::map<ValueId, Piece> by_constant;
    std::map<ValueId, std::vector<double>> sizes;
    for (const localise::UnitPlace& place : units) {
      const model::Layer& layer = problem.layers[place.layer];
      for (const edits::Part& part : edits::find_parts(problem.subject.graph, layer).list) {
        at::Tensor value = problem.subject.graph.constant(part.parameter);
        if (!part.refusal.empty() || !known.count(part.parameter) || value.scalar_type() != at::kFloat) continue;
        std::vector<int64_t> positions = part.positions(problem.subject.graph, place.unit);
        Piece& piece = by_constant[part.parameter];
        piece.constant = part.parameter, piece.bias = part.role != edits::Role::kWeight;
        // Biases often are 0: they move as the weights of their layer do.
        at::Tensor like = problem.subject.graph.constant(layer.weight);
        const double usual = like.defined() && like.is_floating_point()
                                 ? like.to(at::kDouble).square().mean().sqrt().item<double>()
                                 : 0.1;
        sizes[part.parameter].insert(sizes[part.parameter].end(), positions.size(), std::max(usual, 1e-4));
        piece.by_unit.emplace_back(model::unit_name(layer, place.unit), std::move(positions));
      }
    }
    for (auto& [constant, piece] : by_constant) {
      std::vector<int64_t> all;
      for (const auto& [unit, positions] : piece.by_unit) all.insert(all.end(), positions.begin(), positions.end());
      piece.positions = at::tensor(all, at::kLong);
      piece.start = problem.subject.graph.constant(constant)
                        .contiguous()
                        .view(-1)
                        .index_select(0, piece.positions)
                        .nan_to_num(0, 0, 0);
      piece.start = piece.start.to(device), piece.positions = piece.positions.to(device);
      piece.scale = at::tensor(sizes[constant], at::kDouble).to(at::kFloat).to(device);
      piece.whole = graph.constant(constant).contiguous().to(device);
      pieces.push_back(std::move(piece));
    }
    if (pieces.empty()) throw InputError("the units have no weights that can be changed");
  }

  /// Whether the values beside can be kept input by input: those of recurrent layers have time or directions first.
  bool one_row_per_input() const {
    at::NoGradGuard no_grad;
    const executor::Executor probe(graph, {graph.inputs, beside, executor::Mode::kPlain});
    for (size_t count : {2, 3}) {
      const auto& all = problem.parts.search;
      const std::vector<int64_t> some(all.begin(), all.begin() + int64_t(std::min(all.size(), count)));
      for (const at::Tensor& value : probe.run(problem.subject.feed.inputs(problem.subject.data->read(some))))
        if (value.dim() == 0 || value.size(0) != int64_t(some.size())) return false;
    }
    return true;
  }

  /// Values that do not change, of all search inputs, when they fit a quarter of the memory (the GPU's, where one is
  /// used); else the inputs are read again each time.
  void keep() {
    std::vector<at::Tensor> parts, truth;
    const auto& samples = problem.parts.search;
    std::vector<Tensors> columns(beside.size());
    int64_t bytes = 0;
    kept = one_row_per_input();
    constexpr size_t kAtOnce = 1024;
    const int64_t most =
        std::min(executor::memory_budget(), device.is_cpu() ? executor::memory_budget() : executor::device_memory()) /
        4;
    for (size_t first = 0; first < samples.size(); first += kAtOnce) {
      std::vector<int64_t> some(samples.begin() + int64_t(first),
                                samples.begin() + int64_t(std::min(samples.size(), first + kAtOnce)));
      dataset::Batch batch = problem.subject.data->read(some);
      truth.push_back(batch.labels);
      if (!kept) continue;
      Tensors found = stream::run_few(problem.subject, beside, batch, problem.jobs);
      for (size_t i = 0; i < found.size(); ++i) bytes += int64_t(found[i].nbytes()), columns[i].push_back(found[i]);
      if (bytes > most) kept = false, columns.assign(beside.size(), {});
    }
    labels = at::cat(truth, 0).to(device);
    if (kept)
      for (Tensors& column : columns) cache.push_back(at::cat(column, 0).to(device));
    else
      beside = graph.inputs;
    std::vector<double> each;
    for (int64_t sample : samples)
      each.push_back(problem.targeted && problem.target.side(problem.rows[size_t(sample)]) == observers::Side::kFailing
                         ? kTargetWeight
                         : 1.0);
    weights = at::tensor(each, at::kDouble).to(at::kFloat).to(device);
  }

  Tensors rows(const std::vector<int64_t>& which) const {
    Tensors given;
    if (kept) {
      const at::Tensor index = at::tensor(which, at::kLong).to(device);
      for (const at::Tensor& value : cache) given.push_back(value.index_select(0, index));
      return given;
    }
    std::vector<int64_t> samples;
    for (int64_t i : which) samples.push_back(problem.parts.search[size_t(i)]);
    return problem.subject.feed.inputs(problem.subject.data->read(samples));
  }

  Tensors constants() const {
    Tensors now;
    for (const Piece& piece : pieces) {
      at::Tensor whole = piece.whole.clone();
      whole.view(-1).index_copy_(0, piece.positions, piece.value);
      now.push_back(whole);
    }
    return now;
  }

  struct Gradients {
    Tensors by_piece;
    double loss = 0, weight = 0;
  };

  /// Gradients of a batch, its parts on all workers, added in order.
  Gradients gradients(const std::vector<int64_t>& batch) {
    const Tensors now = constants();
    const int64_t rows_a_part = device.is_cpu() ? kRowsAPart : std::max<int64_t>(1, int64_t(batch.size()));
    const int64_t parts = (int64_t(batch.size()) + rows_a_part - 1) / rows_a_part;
    std::vector<Gradients> found(static_cast<size_t>(parts));
    auto work = [&](int part) {
      const int64_t first = part * rows_a_part, count = std::min(rows_a_part, int64_t(batch.size()) - first);
      const std::vector<int64_t> numbers(batch.begin() + first, batch.begin() + first + count);
      const at::Tensor which = at::tensor(numbers, at::kLong).to(device);
      at::AutoGradMode grad(true);
      Tensors given = rows(numbers), leaves;
      for (const at::Tensor& constant : now)
        leaves.push_back(constant.detach().requires_grad_()), given.push_back(leaves.back());
      at::Tensor loss =
          localise::losses(problem.settings, observers::as_columns(run->run(given)[0]), labels.index_select(0, which));
      at::Tensor each = weights.index_select(0, which);
      loss = (at::where(at::isfinite(loss), loss, at::full_like(loss, 100)) * each).sum();
      Gradients& own = found[size_t(part)];
      Tensors gradients = torch::autograd::grad({loss}, leaves, {}, false, false, true);
      at::NoGradGuard no_grad;
      for (size_t i = 0; i < gradients.size(); ++i)
        own.by_piece.push_back(
            gradients[i].defined()
                ? gradients[i].contiguous().view(-1).index_select(0, pieces[i].positions).nan_to_num(0, 0, 0)
                : at::zeros_like(pieces[i].value));
      own.loss = loss.item<double>(), own.weight = each.sum().item<double>();
    };
    if (parts == 1)  // on a GPU always: no other thread with a stream of its own
      work(0);
    else
      pool.run(int(parts), work);
    Gradients sum;
    for (Gradients& own : found) {
      sum.loss += own.loss, sum.weight += own.weight;
      if (sum.by_piece.empty())
        sum.by_piece = std::move(own.by_piece);
      else
        for (size_t i = 0; i < sum.by_piece.size(); ++i) sum.by_piece[i].add_(own.by_piece[i]);
    }
    return sum;
  }

  /// Adam, in units of the layer's usual weights.
  void step(const Gradients& found, int64_t number, double rate, double price) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      Piece& piece = pieces[i];
      at::Tensor gradient =
          found.by_piece[i] / found.weight * piece.scale + 2 * price * (piece.value - piece.start) / piece.scale;
      piece.first.mul_(0.9).add_(0.1 * gradient);
      piece.second.mul_(0.999).add_(0.001 * gradient * gradient);
      at::Tensor move =
          (piece.first / (1 - std::pow(0.9, number))) / ((piece.second / (1 - std::pow(0.999, number))).sqrt() + 1e-12);
      piece.value = piece.value - rate * move * piece.scale;
    }
  }

  void begin(bool anew) {
    for (Piece& piece : pieces) {
      piece.value = piece.start.clone();
      if (anew) piece.value = piece.bias ? piece.scale * 0.1 : at::zeros_like(piece.start);
      piece.first = at::zeros_like(piece.start), piece.second = at::zeros_like(piece.start);
    }
  }

  std::vector<edits::Edit> fit(const FitOptions& options) {
    at::NoGradGuard no_grad;
    begin(options.anew);
    const auto count = int64_t(problem.parts.search.size());
    const int64_t batches = (count + options.batch - 1) / options.batch;
    int64_t steps = 0;
    const int epochs = options.budget
                           ? int(std::max<int64_t>(1, options.budget->times(epoch_work, options.most_epochs)))
                           : options.most_epochs;
    for (int epoch = 0; epoch < epochs; ++epoch) {
      std::vector<int64_t> order(static_cast<size_t>(count));
      std::iota(order.begin(), order.end(), 0);
      Random(problem.seed, 100 + uint64_t(epoch)).shuffle(order);
      double loss = 0, weight = 0;
      for (int64_t b = 0; b < batches; ++b) {
        std::vector<int64_t> batch(order.begin() + b * options.batch,
                                   order.begin() + std::min(count, (b + 1) * options.batch));
        Gradients found = gradients(batch);
        loss += found.loss, weight += found.weight;
        const double done = double(steps) / double(batches * epochs);
        step(found, ++steps, 0.03 * (1 - 0.95 * done), options.price);
      }
      last_loss = weight > 0 ? loss / weight : 0;
      if (options.budget) options.budget->spend(epoch_work);
    }
    std::vector<edits::Edit> all;
    for (const Piece& piece : pieces) {
      std::vector<double> values = edits::numbers(piece.value.to(at::kCPU));
      size_t next = 0;
      for (const auto& [unit, positions] : piece.by_unit) {
        // Positions of a cut ascend; a unit's own do already.
        std::vector<double> own(values.begin() + int64_t(next), values.begin() + int64_t(next + positions.size()));
        next += positions.size();
        for (edits::Edit& edit : edits::cut(problem.subject.graph, piece.constant, positions, own, unit))
          all.push_back(std::move(edit));
      }
    }
    return all;
  }
};

std::string why_unfittable(const Problem& problem) {
  if (problem.subject.batching.kind == executor::Batching::kAny) return "";
  return "the network does not take arbitrary batch sizes, so its units cannot be fitted";
}

UnitFit::UnitFit(const Problem& problem, const std::vector<localise::UnitPlace>& units)
    : impl_(std::make_unique<Impl>(problem, units)) {}
UnitFit::~UnitFit() = default;
std::vector<edits::Edit> UnitFit::run(const FitOptions& options) { return impl_->fit(options); }
double UnitFit::loss() const { return impl_->last_loss; }
double UnitFit::epoch_work() const { return impl_->epoch_work; }
int64_t UnitFit::weights() const {
  int64_t count = 0;
  for (const Piece& piece : impl_->pieces) count += piece.positions.numel();
  return count;
}

}  // namespace netmend::repair
