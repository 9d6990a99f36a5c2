// What weights alone show: NaN or Inf, duplicates, units without weights, outliers, layers that never changed.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "checks/observed.h"
#include "checks/results.h"
#include "checks/rows.h"
#include "executor/layers.h"
#include "findings/phrases.h"

namespace netmend::checks {
namespace {

using findings::Certainty;

constexpr double kOutlier = 20;          ///< times the 99.9 % of the layer
constexpr double kLoudUnit = 4;          ///< times the median of the units' root mean squares
constexpr double kFarUnit = 6;           ///< deviations of their logarithms, by the median
constexpr int64_t kFewWeights = 8;       ///< of a unit, for its root mean square to mean anything
constexpr double kAlike = 0.999;         ///< cosine of duplicates
constexpr int64_t kFewest = 256;         ///< weights of a layer, for its quantiles to mean anything
constexpr int64_t kMostCompared = 4096;  ///< units of a layer, for all pairs

/// Units × everything else, in double; undefined for weights that are no such thing (quantised, recurrent).
at::Tensor unit_rows(const model::Graph& graph, const model::Layer& layer) {
  at::Tensor weight = graph.constant(layer.weight);
  if (!weight.defined() || !weight.is_floating_point() || layer.units <= 0) return {};
  if (layer.op == "LSTM" || layer.op == "GRU" || layer.op == "RNN") return {};
  // `weight_axis` counts on what the operator reads; a transposed constant has its units on another axis.
  for (int64_t axis = 0; axis < weight.dim(); ++axis) {
    const bool same = layer.weight == layer.weight_input ? axis == (layer.weight_axis + weight.dim()) % weight.dim()
                                                         : weight.size(axis) == layer.units;
    if (same && weight.size(axis) == layer.units) return weight.transpose(0, axis).flatten(1).to(at::kDouble);
  }
  return {};
}

class WeightChecks {
 public:
  WeightChecks(const Observed& seen, Results& found)
      : graph_(seen.session.graph()), words_(seen.words()), found_(found), layers_(executor::find_layers(graph_)) {
    const executor::Head& head = seen.settings.head;
    for (const model::Layer& layer : layers_)
      last_ = layer.post == head.logits || layer.pre == head.logits ? &layer : last_;
  }

  void finite() {
    if (layers_.empty()) return found_.skip("weights", "a layer with weights");
    bool all = true;
    for (const model::Layer& layer : layers_) {
      int64_t broken = 0, count = 0;
      for (model::ValueId id : {layer.weight, layer.bias}) {
        at::Tensor value = graph_.constant(id);
        if (!value.defined() || !value.is_floating_point()) continue;
        broken += value.numel() - at::isfinite(value).count_nonzero().item<int64_t>();
        count += value.numel();
      }
      if (broken == 0) continue;
      all = false;
      found_.add(findings::make("non-finite-weights", layer.name, with({{"layer", layer.name}}), {0.1, 0},
                                Certainty::kConfirmed,
                                fmt::format("{} of {} weights", with_commas(broken), with_commas(count)),
                                fmt::format("{} of the {} weights of {} {} NaN or Inf.", with_commas(broken),
                                            with_commas(count), layer.name, broken == 1 ? "is" : "are")));
    }
    if (all) found_.pass("weights are finite", "no NaN or Inf");
  }

  void copies() {
    std::map<std::pair<int64_t, double>, const model::Layer*> seen;
    for (const model::Layer& layer : layers_) {
      at::Tensor weight = graph_.constant(layer.weight);
      if (!weight.defined() || !weight.is_floating_point() || weight.numel() < 64) continue;
      auto [hit, fresh] = seen.try_emplace({weight.numel(), weight.to(at::kDouble).sum().item<double>()}, &layer);
      if (fresh || hit->second->weight == layer.weight) continue;
      at::Tensor other = graph_.constant(hit->second->weight);
      if (other.sizes() != weight.sizes() || !at::equal(other, weight)) continue;
      found_.add(findings::make("duplicate-weights", hit->second->name + "-" + layer.name,
                                with({{"a", hit->second->name}, {"b", layer.name}}), {}, Certainty::kConfirmed,
                                fmt::format("{} equal weights", with_commas(weight.numel())),
                                fmt::format("All {} weights of {} equal those of {}, and the file stores them twice.",
                                            with_commas(weight.numel()), layer.name, hit->second->name)));
    }
  }

  /// Against the layer itself, by medians: a layer with long tails is no fault, what stands apart from them is.
  void outliers() {
    int64_t told = 0;
    for (const model::Layer& layer : layers_) {
      at::Tensor rows = unit_rows(graph_, layer);
      if (!rows.defined()) continue;
      if (loud_unit(layer, rows) || loud_weight(layer, rows)) ++told;
    }
    if (told == 0) found_.pass("weights without outliers", findings::counted(int64_t(layers_.size()), "layer"));
  }

  /// A unit all of whose weights are many times those of the others.
  bool loud_unit(const model::Layer& layer, const at::Tensor& rows) {
    const int64_t units = rows.size(0);
    if (units < 4 || rows.size(1) < kFewWeights || &layer == last_) return false;
    const at::Tensor root = rows.square().mean(1).sqrt();
    std::vector<double> size(root.data_ptr<double>(), root.data_ptr<double>() + units), order = size;
    std::sort(order.begin(), order.end());
    const double middle = order[size_t(units / 2)];
    if (!(middle > 0)) return false;
    // Scales differ by factors: the spread is one of logarithms.
    std::vector<double> apart;
    for (double one : order)
      if (one > 0) apart.push_back(std::abs(std::log(one / middle)));
    std::sort(apart.begin(), apart.end());
    const double spread = 1.4826 * apart[apart.size() / 2];
    const double bar = middle * std::max(kLoudUnit, std::exp(kFarUnit * spread));
    const auto far = int64_t(order.end() - std::upper_bound(order.begin(), order.end(), bar));
    if (far == 0 || (far > 1 && far * 20 > units) || order[size_t(units - far)] < 2 * order[size_t(units - far - 1)])
      return false;
    const auto unit = int64_t(std::max_element(size.begin(), size.end()) - size.begin());
    const std::string name = model::unit_name(layer, unit);
    found_.add(findings::make(
        "extreme-weights", layer.name, with({{"layer", layer.name}}), {}, Certainty::kConfirmed,
        fmt::format("{}: {} times as large as the median of its layer", name,
                    findings::times(size[size_t(unit)] / middle)),
        fmt::format("The root mean square of the weights of {} is {:.3g}, {} times the median over the {} units of "
                    "{}. {} apart like this; the largest of the others is {:.3g}.",
                    name, size[size_t(unit)], findings::times(size[size_t(unit)] / middle), with_commas(units),
                    layer.name, far == 1 ? "No other unit stands" : fmt::format("{} units stand", far),
                    order[size_t(units - far - 1)])));
    return true;
  }

  /// Single weights far beyond the tail of their layer.
  bool loud_weight(const model::Layer& layer, const at::Tensor& rows) {
    if (rows.numel() < kFewest) return false;
    const at::Tensor sizes = std::get<0>(rows.abs().flatten().sort());
    const int64_t n = sizes.numel();
    const double usual = sizes[int64_t(0.999 * double(n - 1))].item<double>(), most = sizes[n - 1].item<double>(),
                 middle = sizes[n / 2].item<double>();
    const double bar = std::max(kOutlier * usual, 1e-6);
    if (most <= bar) return false;
    const int64_t far = (sizes > bar).count_nonzero().item<int64_t>();
    if (far > std::max<int64_t>(1, n / 1000) || most < 5 * sizes[n - far - 1].item<double>()) return false;
    const int64_t unit = rows.abs().argmax().item<int64_t>() / rows.size(1);
    found_.add(findings::make(
        "extreme-weights", layer.name, with({{"layer", layer.name}}), {}, Certainty::kConfirmed,
        fmt::format("magnitude up to {:.3g}, 99.9 % are below {:.3g}", most, usual),
        fmt::format(
            "The magnitude of {} of {} is above {:.3g}; the largest is {:.3g}, in {}, and the median is {:.3g}.",
            findings::counted(far, "weight"), layer.name, bar, most, model::unit_name(layer, unit), middle)));
    return true;
  }

  void zero_units() {
    int64_t told = 0;
    for (const model::Layer& layer : layers_) {
      at::Tensor rows = unit_rows(graph_, layer);
      if (!rows.defined()) continue;
      at::Tensor empty = rows.norm(2, 1) == 0;
      const int64_t count = empty.count_nonzero().item<int64_t>();
      if (count == 0) continue;
      ++told;
      found_.add(findings::make(
          "zero-units", layer.name, with({{"layer", layer.name}, {"n", findings::counted(count, "unit")}}), {},
          Certainty::kConfirmed, fmt::format("{} of {} units", with_commas(count), with_commas(layer.units)),
          fmt::format(
              "All weights of {} of the {} units of {} are 0{}.", with_commas(count), with_commas(layer.units),
              layer.name,
              count == 1 ? fmt::format(" ({})", model::unit_name(layer, empty.nonzero()[0][0].item<int64_t>())) : "")));
    }
    if (told == 0) found_.pass("units whose weights are all 0", "none");
  }

  void duplicate_units() {
    int64_t told = 0;
    for (const model::Layer& layer : layers_) {
      at::Tensor rows = unit_rows(graph_, layer);
      // In few dimensions many units point the same way by chance, and two classes are each other's opposite.
      if (!rows.defined() || rows.size(0) < 4 || rows.size(0) > kMostCompared || rows.size(1) < 8 || &layer == last_)
        continue;
      at::Tensor norms = rows.norm(2, 1), unit = rows / norms.clamp_min(1e-12).unsqueeze(1);
      at::Tensor alike = at::triu(unit.matmul(unit.t()), 1).gt(kAlike).any(0);
      const int64_t count = (alike & (norms > 0)).count_nonzero().item<int64_t>();
      if (count * 10 < layer.units || count < 2) continue;  // a pair or two in a wide layer is nothing
      ++told;
      auto finding = findings::make(
          "duplicate-units", layer.name, with({{"layer", layer.name}, {"n", with_commas(count + 1)}}), {},
          Certainty::kConfirmed,
          fmt::format("{} of {} units duplicate another", with_commas(count), with_commas(layer.units)),
          fmt::format("The weights of {} of the {} units of {} point in the same direction as those of an earlier "
                      "unit (cosine above {}).",
                      with_commas(count), with_commas(layer.units), layer.name, kAlike));
      const at::Tensor repeated = (alike & (norms > 0)).nonzero().flatten();
      for (int64_t i = 0; i < repeated.numel(); ++i)
        finding.numbers["units"].push_back(model::unit_name(layer, repeated[i].item<int64_t>()));
      finding.value = double(count) / double(layer.units);
      found_.add(std::move(finding));
    }
    if (told == 0) found_.pass("duplicate units", "none");
  }

  /// Biases of trained layers scatter; a layer whose biases are one number while those of others are not never changed.
  void untrained() {
    std::vector<const model::Layer*> still;
    int64_t moved = 0;
    for (const model::Layer& layer : layers_) {
      at::Tensor bias = graph_.constant(layer.bias);
      if (!bias.defined() || !bias.is_floating_point() || bias.numel() < 4) continue;
      if (bias.max().item<double>() == bias.min().item<double>())
        still.push_back(&layer);
      else
        ++moved;
    }
    if (still.empty() || moved == 0) return;
    for (const model::Layer* layer : still) {
      at::Tensor rows = unit_rows(graph_, *layer);
      if (!rows.defined() || rows.numel() < kFewest) continue;
      const double spread = rows.std().item<double>(), fan_in = double(rows.size(1)), fan_out = double(rows.size(0));
      const double he = std::sqrt(2 / fan_in), glorot = std::sqrt(2 / (fan_in + fan_out)),
                   plain = std::sqrt(1 / (3 * fan_in));
      auto near = [&](double law) { return spread > 0.93 * law && spread < 1.07 * law; };
      if (!near(he) && !near(glorot) && !near(plain)) continue;
      found_.add(findings::make(
          "untrained-layer", layer->name, with({{"layer", layer->name}}), {}, Certainty::kLikely,
          fmt::format("{} equal biases, weights with standard deviation {:.3g}", graph_.constant(layer->bias).numel(),
                      spread),
          fmt::format("All biases of {} are {:.3g}, and its weights have the standard deviation of a fresh "
                      "initialisation ({:.3g}), while the biases of {} differ from each other.",
                      layer->name, graph_.constant(layer->bias).flatten()[0].item<double>(), spread,
                      moved == 1 ? "one other layer" : fmt::format("{} other layers", with_commas(moved)))));
    }
  }

 private:
  findings::Words with(findings::Words more) const {
    for (const auto& [key, value] : words_) more.try_emplace(key, value);
    return more;
  }

  const model::Graph& graph_;
  const findings::Words words_;
  Results& found_;
  std::vector<model::Layer> layers_;
  const model::Layer* last_ = nullptr;
};

}  // namespace

void check_finite_weights(Observed& seen, Results& out) { WeightChecks(seen, out).finite(); }
void check_duplicate_weights(Observed& seen, Results& out) { WeightChecks(seen, out).copies(); }
void check_weight_outliers(Observed& seen, Results& out) { WeightChecks(seen, out).outliers(); }
void check_zero_units(Observed& seen, Results& out) { WeightChecks(seen, out).zero_units(); }
void check_duplicate_units(Observed& seen, Results& out) { WeightChecks(seen, out).duplicate_units(); }
void check_untrained_layers(Observed& seen, Results& out) { WeightChecks(seen, out).untrained(); }

}  // namespace netmend::checks
