#include "stream/layer_pairs.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "executor/executor.h"
#include "executor/layers.h"

namespace netmend::stream {

using model::Graph;
using model::kAbsent;
using model::Layer;
using model::Node;
using model::ValueId;

void DifferenceSum::add(const at::Tensor& ours, const at::Tensor& theirs) {
  if (theirs.numel() == 0) return;
  at::Tensor a = ours.to(at::kDouble), b = theirs.to(at::kDouble);
  at::Tensor same = at::logical_or(a == b, at::logical_and(a.isnan(), b.isnan()));
  at::Tensor apart = at::where(same, at::zeros_like(a), (a - b).abs());
  apart = at::where(apart.isnan(), at::full_like(a, INFINITY), apart);
  at::Tensor finite = at::where(b.isfinite(), b.abs(), at::zeros_like(b));
  max_ = std::max(max_, apart.max().item<double>());
  total_ += apart.sum().item<double>();
  size_ = std::max(size_, finite.max().item<double>());
  count_ += a.numel();
}

Difference DifferenceSum::finish() const {
  Difference out;
  out.max = max_;
  out.mean = count_ ? total_ / double(count_) : 0;
  out.size = size_;
  out.relative = max_ == 0 ? 0 : max_ / std::max(size_, 1e-12);
  return out;
}

at::Tensor Alignment::apply(const at::Tensor& ours, at::IntArrayRef theirs) const {
  return (axes.empty() ? ours : ours.permute(axes)).reshape(theirs);
}

at::Tensor Alignment::undo(const at::Tensor& theirs, at::IntArrayRef ours) const {
  if (axes.empty()) return theirs.reshape(ours);
  std::vector<int64_t> back(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) back[size_t(axes[i])] = int64_t(i);
  return theirs.permute(back).contiguous();
}

std::vector<Alignment> alignments(at::IntArrayRef ours, at::IntArrayRef theirs) {
  static const std::vector<std::vector<int64_t>> orders = {{0, 2, 3, 1}, {0, 3, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                                           {1, 2, 0},    {2, 0, 1},    {2, 1, 0}};
  std::vector<Alignment> found;
  auto without_ones = [](at::IntArrayRef shape) {
    std::vector<int64_t> out;
    std::copy_if(shape.begin(), shape.end(), std::back_inserter(out), [](int64_t size) { return size != 1; });
    return out;
  };
  if (ours == theirs || without_ones(ours) == without_ones(theirs)) found.push_back({});
  for (const auto& order : orders) {
    if (order.size() != ours.size() || ours.size() != theirs.size()) continue;
    bool fits = true;
    for (size_t i = 0; i < order.size(); ++i) fits = fits && ours[size_t(order[i])] == theirs[i];
    if (fits) found.push_back({order});
  }
  return found;
}

std::string module_path(const Node& node) {
  std::vector<std::string> parts;
  std::string name = node.name;
  std::replace(name.begin(), name.end(), ':', '/');
  for (std::string& part : split(name, '/')) {
    if (part.empty()) continue;
    // PyTorch repeats the outer name inside the inner one: layer1/layer1.0
    if (!parts.empty() && part.starts_with(parts.back() + "."))
      parts.back() = part;
    else
      parts.push_back(part);
  }
  auto is_operator = [&](const std::string& part) {
    return part.substr(0, part.find('_')) == node.op || part == "Conv2D" || part == "BiasAdd";
  };
  while (!parts.empty() && is_operator(parts.back())) parts.pop_back();
  return join(parts, ".");
}

LayerPairs::LayerPairs(const Graph& graph, const Reference& reference, double tolerance)
    : graph_(graph), reference_(reference), tolerance_(tolerance) {
  add_candidates();
  for (const Candidate& candidate : candidates_) wanted_.push_back(candidate.value);
  for (const Recorded& recorded : reference.layers) pairs_.push_back({&recorded, {}, -1, false, {}, {}});
}

void LayerPairs::add_candidates() {
  struct Owner {
    std::string layer;
    bool weights;
    int linear;
  };
  std::map<ValueId, Owner> owners;
  for (const Layer& layer : executor::find_layers(graph_)) {
    owners.emplace(layer.post, Owner{layer.name, layer.post == layer.pre, layer.node});
    owners.insert_or_assign(layer.pre, Owner{layer.name, true, layer.node});
    owners.insert_or_assign(graph_.nodes[size_t(layer.node)].outputs[0], Owner{layer.name, true, layer.node});
  }
  std::vector<bool> needed = executor::needed_nodes(graph_, graph_.inputs, graph_.outputs);
  for (size_t n = 0; n < graph_.nodes.size(); ++n) {
    const Node& node = graph_.nodes[n];
    if (!needed[n] || node.outputs.empty() || node.outputs[0] == kAbsent) continue;
    Candidate candidate{node.outputs[0], int(n), int(n), module_path(node), "", false, {}};
    if (auto owner = owners.find(node.outputs[0]); owner != owners.end()) {
      candidate.layer = owner->second.layer, candidate.weights = owner->second.weights;
      if (node.op == "Add") candidate.linear = owner->second.linear;
    }
    candidates_.push_back(std::move(candidate));
  }
}

namespace {

/// Names as module_path makes them. The Python package calls the second use of a module `relu:2`, exporters call it
/// relu_1.
std::string plain_name(std::string name) {
  std::replace(name.begin(), name.end(), '/', '.');
  int64_t use = 0;
  const size_t colon = name.rfind(':');
  if (colon != std::string::npos && parse_int(name.substr(colon + 1), use) && use > 1)
    name = fmt::format("{}_{}", name.substr(0, colon), use - 1);
  return name;
}

}  // namespace

namespace {

/// Enough to tell values apart, and much cheaper than a DifferenceSum: every layer meets every value of its shape.
double quick_difference(const at::Tensor& ours, const at::Tensor& theirs) {
  if (theirs.numel() == 0) return 0;
  const double apart = (ours - theirs).abs_().max().item<double>(), size = theirs.abs().max().item<double>();
  return std::isfinite(apart) ? apart / std::max(size, 1e-12) : INFINITY;
}

}  // namespace

void LayerPairs::look(int64_t first, int64_t count, const std::vector<at::Tensor>& values) {
  for (size_t c = 0; c < candidates_.size(); ++c) candidates_[c].shape = values[c].sizes().vec();
  at::Tensor previous;
  for (Pair& pair : pairs_) {
    at::Tensor theirs = pair.recorded->rows(first, count).to(at::kFloat);
    if (previous.defined() && previous.sizes() == theirs.sizes() && theirs.dim() == 4) {
      Line line;
      line.add(previous, theirs);
      pair.follows = line.explains(tolerance_);
    }
    previous = theirs;
    for (bool named : {true, false}) {
      if (!pair.options.empty()) break;  // a layer whose name is known is not looked for elsewhere
      for (size_t c = 0; c < candidates_.size(); ++c) {
        if (!values[c].is_floating_point() || (named && rank(pair.recorded->name, c) < 0)) continue;
        for (const Alignment& alignment : alignments(values[c].sizes(), theirs.sizes()))
          pair.options.push_back({c, alignment, quick_difference(alignment.apply(values[c], theirs.sizes()), theirs)});
      }
    }
  }
}

/// How well a framework's name fits a candidate; 0 is best, -1 not at all.
int LayerPairs::rank(const std::string& given, size_t number) const {
  const Candidate& candidate = candidates_[number];
  const std::string name = plain_name(given);
  auto ends = [](const std::string& longer, const std::string& end) {
    return !end.empty() && longer.size() > end.size() && longer.ends_with("." + end);
  };
  if (!name.empty() && candidate.path == name) return 0;
  if (!name.empty() && candidate.layer == name) return 1;
  if (ends(candidate.path, name) || ends(name, candidate.path)) return 2;
  if (ends(candidate.layer, name) || ends(name, candidate.layer)) return 3;
  if (!candidate.path.starts_with(name + ".")) return -1;
  for (size_t later = number + 1; later < candidates_.size(); ++later)  // a block gives what its last node gives
    if (candidates_[later].path == name || candidates_[later].path.starts_with(name + ".")) return -1;
  return 4;
}

/// Among the values of that name one that agrees; else the last of those whose name fits best.
int LayerPairs::named_choice(const Pair& pair) const {
  int best = -1, best_rank = 0;
  for (int i = 0; i < int(pair.options.size()); ++i) {
    const Option& option = pair.options[size_t(i)];
    const int here = rank(pair.recorded->name, option.candidate);
    if (here < 0) continue;
    if (best < 0) {
      best = i, best_rank = here;
      continue;
    }
    const Option& held = pair.options[size_t(best)];
    const bool agrees = option.relative <= tolerance_, agreed = held.relative <= tolerance_;
    const bool better = agrees || agreed    ? option.relative < held.relative
                        : here != best_rank ? here < best_rank
                                            : held.candidate != option.candidate || option.relative < held.relative;
    if (better) best = i, best_rank = here;
  }
  return best;
}

/// The nearest in value among those that agree and do not lie before `from`.
int LayerPairs::agreeing_choice(const Pair& pair, size_t from) const {
  int best = -1;
  for (int i = 0; i < int(pair.options.size()); ++i) {
    const Option& option = pair.options[size_t(i)];
    if (option.candidate < from || !(option.relative <= tolerance_)) continue;
    if (best < 0 || option.relative < pair.options[size_t(best)].relative) best = i;
  }
  return best;
}

/// For a layer that agrees with nothing: the first operator with weights after `from` and up to `to`, else the nearest
/// in value.
int LayerPairs::likely_choice(const Pair& pair, size_t from, size_t to) const {
  int first = -1, nearest = -1;
  for (int i = 0; i < int(pair.options.size()); ++i) {
    const Option& option = pair.options[size_t(i)];
    if (option.candidate < from || option.candidate > to) continue;
    if (first < 0 && option.candidate > from && candidates_[option.candidate].weights) first = i;
    if (nearest < 0 || option.relative < pair.options[size_t(nearest)].relative) nearest = i;
  }
  return first >= 0 ? first : nearest;
}

/// The value that another layer was paired with.
int LayerPairs::same_choice(const Pair& pair, const Pair& other) const {
  if (other.chosen < 0) return -1;
  for (int i = 0; i < int(pair.options.size()); ++i)
    if (candidates_[pair.options[size_t(i)].candidate].value == candidate(other).value) return i;
  return -1;
}

const LayerPairs::Candidate& LayerPairs::candidate(const Pair& pair) const {
  return candidates_[pair.options[size_t(pair.chosen)].candidate];
}

void LayerPairs::choose() {
  auto place = [](const Pair& pair) { return pair.options[size_t(pair.chosen)].candidate; };
  size_t from = 0;
  for (Pair& pair : pairs_) {
    pair.chosen = named_choice(pair);
    if (pair.chosen < 0) pair.chosen = agreeing_choice(pair, from);
    if (pair.chosen >= 0) from = std::max(from, place(pair));
  }
  from = 0;
  for (size_t p = 0; p < pairs_.size(); ++p) {
    Pair& pair = pairs_[p];
    if (pair.chosen < 0) {  // those that neither name nor value tells lie between their neighbours
      size_t to = candidates_.size();
      for (size_t next = p + 1; next < pairs_.size() && to == candidates_.size(); ++next)
        if (pairs_[next].chosen >= 0) to = place(pairs_[next]);
      pair.chosen = pair.follows && p > 0 ? same_choice(pair, pairs_[p - 1]) : -1;
      if (pair.chosen < 0) pair.chosen = likely_choice(pair, from, to);
    }
    if (pair.chosen >= 0) from = std::max(from, place(pair));
  }
  std::set<ValueId> values;
  for (const Pair& pair : pairs_)
    if (pair.chosen >= 0) values.insert(candidate(pair).value);
  wanted_.assign(values.begin(), values.end());
}

void LayerPairs::Line::add(const at::Tensor& ours, const at::Tensor& theirs) {
  at::Tensor a = ours.to(at::kDouble).transpose(0, 1).flatten(1), b = theirs.to(at::kDouble).transpose(0, 1).flatten(1);
  const at::Tensor sums[] = {a.sum(1), b.sum(1), (a * a).sum(1), (a * b).sum(1), (b * b).sum(1)};
  at::Tensor* const into[] = {&x, &y, &xx, &xy, &yy};
  for (size_t i = 0; i < 5; ++i) *into[i] = into[i]->defined() ? *into[i] + sums[i] : sums[i];
  count += double(a.size(1));
}

/// True when most units are moved, and for every unit a line is all that differs.
bool LayerPairs::Line::explains(double tolerance) const {
  if (!x.defined() || count < 64) return false;
  at::Tensor vx = xx - x * x / count, vy = yy - y * y / count, cov = xy - x * y / count;
  at::Tensor slope = cov / vx.clamp_min(1e-300), rest = vy - slope * cov, offset = (y - slope * x) / count;
  at::Tensor moved = at::logical_or((slope - 1).abs() > tolerance, offset.abs() > tolerance * (vy / count).sqrt());
  const bool straight = (rest <= vy * 1e-6 + 1e-12).all().item<bool>();
  return straight && moved.to(at::kDouble).mean().item<double>() > 0.5;
}

void LayerPairs::measure(int64_t first, int64_t count, const std::vector<at::Tensor>& values) {
  for (Pair& pair : pairs_) {
    if (pair.chosen < 0) continue;
    const Option& option = pair.options[size_t(pair.chosen)];
    const auto place = std::lower_bound(wanted_.begin(), wanted_.end(), candidate(pair).value) - wanted_.begin();
    const at::Tensor& ours = values[size_t(place)];
    at::Tensor theirs = pair.recorded->rows(first, count);
    pair.sum.add(option.alignment.apply(ours, theirs.sizes()), theirs);
    if (graph_.nodes[size_t(candidate(pair).node)].op == "Conv")
      pair.line.add(ours, option.alignment.undo(theirs, ours.sizes()));
  }
}

/// Exporters fold batch norm into the convolution before it; what the convolution alone gave is then nowhere. That this
/// is so shows when a later layer agrees with the same value, or when a line per unit is all that differs. Where
/// neither of two layers agrees and both are lines, the norm between them used other statistics than the file has.
void LayerPairs::judge_folded(std::vector<LayerMatch>& layers) const {
  for (size_t p = 0; p < layers.size(); ++p) {
    if (pairs_[p].chosen < 0 || !layers[p].departs || layers[p].op != "Conv") continue;
    const bool line = pairs_[p].line.explains(tolerance_);
    bool later_agrees = false, earlier_folded = false;
    for (size_t other = 0; other < layers.size(); ++other) {
      if (pairs_[other].chosen < 0 || candidate(pairs_[other]).value != candidate(pairs_[p]).value) continue;
      later_agrees = later_agrees || (other > p && !layers[other].departs);
      earlier_folded = earlier_folded || (other < p && layers[other].folded);
    }
    layers[p].restated = line && earlier_folded && !later_agrees;
    layers[p].folded = later_agrees || (line && !earlier_folded);
  }
  for (LayerMatch& layer : layers) layer.departs = layer.departs && !layer.folded;
}

std::vector<LayerMatch> LayerPairs::finish() const {
  std::vector<LayerMatch> layers;
  for (const Pair& pair : pairs_) {
    LayerMatch match;
    match.name = pair.recorded->name;
    match.shape = pair.recorded->array.shape;
    if (pair.chosen >= 0) {
      const Node& node = graph_.nodes[size_t(candidate(pair).linear)];
      match.op = node.op;
      match.node = node.name;
      match.weights = candidate(pair).weights;
      match.layer = candidate(pair).layer.empty() ? node.name : candidate(pair).layer;
      match.difference = pair.sum.finish();
      match.departs = !(match.difference.relative <= tolerance_);
    }
    layers.push_back(std::move(match));
  }
  judge_folded(layers);
  return layers;
}

/// The recorded layers that a value is next computed from.
std::vector<const LayerPairs::Pair*> LayerPairs::before(size_t number, const std::vector<LayerMatch>& layers) const {
  std::map<ValueId, const Pair*> known;
  for (size_t p = 0; p < number; ++p)
    if (pairs_[p].chosen >= 0 && !layers[p].folded) known.emplace(candidate(pairs_[p]).value, &pairs_[p]);
  const std::vector<int> made_by = model::producers(graph_);
  std::vector<const Pair*> found;
  std::vector<int> open = {candidate(pairs_[number]).node};
  std::set<int> seen = {open[0]};
  while (!open.empty()) {
    const Node& node = graph_.nodes[size_t(open.back())];
    open.pop_back();
    for (ValueId id : node.inputs) {
      if (id == kAbsent) continue;
      auto hit = known.find(id);
      if (hit != known.end() && hit->second) found.push_back(std::exchange(hit->second, nullptr));
      const int maker = made_by[size_t(id)];
      if (hit == known.end() && maker >= 0 && seen.insert(maker).second) open.push_back(maker);
    }
  }
  return found;
}

double LayerPairs::alone(size_t number, const std::vector<at::Tensor>& inputs, int64_t count,
                         const std::vector<LayerMatch>& layers) const {
  const Pair& pair = pairs_[number];
  executor::Request request;
  request.given = graph_.inputs;
  request.wanted = {candidate(pair).value};
  request.mode = executor::Mode::kPlain;
  std::vector<at::Tensor> given = inputs;
  std::set<ValueId> taken = {candidate(pair).value};
  for (size_t before = 0; before < number; ++before) {
    const Pair& other = pairs_[before];
    if (other.chosen < 0 || layers[before].folded || candidate(other).node > candidate(pair).node) continue;
    if (!taken.insert(candidate(other).value).second) continue;
    request.given.push_back(candidate(other).value);
    given.push_back(
        other.options[size_t(other.chosen)].alignment.undo(other.recorded->rows(0, count), candidate(other).shape));
  }
  at::NoGradGuard no_grad;
  at::Tensor value = executor::Executor(graph_, request).run(given)[0];
  at::Tensor theirs = pair.recorded->rows(0, count);
  DifferenceSum sum;
  sum.add(pair.options[size_t(pair.chosen)].alignment.apply(value, theirs.sizes()), theirs);
  return sum.finish().relative;
}

void LayerPairs::isolate(const std::vector<at::Tensor>& inputs, int64_t count, std::vector<LayerMatch>& layers) const {
  for (size_t p = 0; p < pairs_.size(); ++p) {
    if (pairs_[p].chosen < 0 || layers[p].folded) continue;
    try {
      layers[p].alone = alone(p, inputs, count, layers);
    } catch (const InputError&) {
      layers[p].alone = -1;  // a part that does not run by itself tells nothing
    }
  }
}

}  // namespace netmend::stream
