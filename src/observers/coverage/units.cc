#include "observers/coverage/units.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "model/positions.h"
#include "observers/coverage/map_loops.h"

namespace netmend::observers {

using model::Layer;

UnitSpace::UnitSpace(std::vector<Layer> layers, UnitChoice choice, std::vector<int64_t> positions,
                     std::optional<Connections> connections)
    : layers_(std::move(layers)), choice_(choice), positions_(std::move(positions)) {
  if (!choice_.elements) positions_.assign(layers_.size(), 1);
  check(positions_.size() == layers_.size(), "every layer needs its number of positions");
  for (size_t l = 0; l < layers_.size(); ++l) first_.push_back(first_.back() + layers_[l].units * positions_[l]);
  if (connections) connections_ = std::move(*connections);
  for (size_t l = 1; l < layers_.size() && !connections; ++l) connections_.emplace_back(l - 1, l);
}

size_t UnitSpace::layer_of(int64_t unit) const {
  return size_t(std::upper_bound(first_.begin(), first_.end(), unit) - first_.begin()) - 1;
}

std::string UnitSpace::name(int64_t unit) const {
  size_t layer = layer_of(unit);
  return model::unit_name(layers_[layer], (unit - first_[layer]) / positions_[layer]);
}

int64_t UnitSpace::position(int64_t unit) const {
  size_t layer = layer_of(unit);
  return choice_.elements ? (unit - first_[layer]) % positions_[layer] : -1;
}

size_t UnitSpace::find(const std::string& layer) const {
  std::vector<std::string> names;
  for (size_t l = 0; l < layers_.size(); ++l) {
    if (layers_[l].name == layer) return l;
    names.push_back(layers_[l].name);
  }
  throw InputError(fmt::format("there is no layer `{}`{}", printable(layer), did_you_mean(layer, names)),
                   names.size() <= 12 ? "Its layers are " + join(names, ", ") + "." : "netmend info lists them.");
}

namespace {

model::ValueId value_of(const Layer& layer, const UnitChoice& choice) {
  return choice.before_activation ? layer.pre : layer.post;
}

/// Learns how many positions the maps of each layer have.
class PositionCount : public stream::Observer {
 public:
  PositionCount(const std::vector<Layer>& layers, const UnitChoice& choice) : layers_(layers), choice_(choice) {}
  std::string name() const override { return "positions"; }
  std::vector<stream::Tap> taps() const override {
    std::vector<stream::Tap> taps;
    for (const Layer& layer : layers_) taps.push_back({value_of(layer, choice_), layer.batch_axis, layer.merged});
    return taps;
  }
  std::unique_ptr<stream::State> fresh() const override { return std::make_unique<Count>(*this); }

  struct Count : stream::State {
    explicit Count(const PositionCount& observer) : observer_(observer) {}
    void observe(const stream::View& view) override {
      for (const Layer& layer : observer_.layers_)
        positions.push_back(model::unit_maps(layer, view.value(value_of(layer, observer_.choice_))).size(2));
    }
    void merge(const State&) override {}
    void save(std::ostream&) const override {}
    void load(std::istream&) override {}
    std::vector<int64_t> positions;

   private:
    const PositionCount& observer_;
  };

 private:
  const std::vector<Layer>& layers_;
  const UnitChoice& choice_;
};

}  // namespace

UnitSpace::Connections find_connections(const model::Graph& graph, const std::vector<Layer>& layers) {
  const auto readers = model::consumers(graph);
  // Whatever has weights ends the way, whether it is one of these layers or not.
  auto weighs = [&](const model::Node& node) {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](model::ValueId id) {
      return id != model::kAbsent && graph.is_constant(id) && graph.constant(id).dim() > 1;
    });
  };
  UnitSpace::Connections found;
  for (size_t l = 0; l < layers.size(); ++l) {
    std::vector<model::ValueId> open{layers[l].post};
    std::vector<bool> seen(graph.values.size());
    while (!open.empty()) {
      const model::ValueId id = open.back();
      open.pop_back();
      if (seen[size_t(id)]) continue;
      seen[size_t(id)] = true;
      for (int reader : readers[size_t(id)]) {
        const auto upper = std::find_if(layers.begin(), layers.end(), [&](const Layer& o) { return o.node == reader; });
        const model::Node& node = graph.nodes[size_t(reader)];
        if (upper != layers.end())
          found.emplace_back(l, size_t(upper - layers.begin()));
        else if (!weighs(node))
          for (model::ValueId out : node.outputs)
            if (out != model::kAbsent) open.push_back(out);
      }
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

SpacePtr make_unit_space(const stream::Subject& subject, std::vector<Layer> layers, UnitChoice choice) {
  UnitSpace::Connections connections = find_connections(subject.graph, layers);
  if (!choice.elements)
    return std::make_shared<UnitSpace>(std::move(layers), choice, std::vector<int64_t>(), connections);
  for (const dataset::Feature& feature : subject.data->info().features)
    if (std::find(feature.shape.begin(), feature.shape.end(), -1) != feature.shape.end())
      throw InputError(fmt::format("{} has inputs of differing length: a position of one is not that of another",
                                   subject.data->info().spec),
                       "Leave out --unit element.");
  stream::Subject one = subject;
  one.data = dataset::subset(subject.data, {0});
  PositionCount observer(layers, choice);
  stream::PassOptions options;
  options.jobs = 1;
  options.quiet = true;
  stream::PassResult done = stream::run_pass(one, {&observer}, options);
  auto positions = dynamic_cast<PositionCount::Count&>(*done.collected[0].pieces[0].state).positions;
  return std::make_shared<UnitSpace>(std::move(layers), choice, std::move(positions), std::move(connections));
}

bool UnitReader::rectifies(const Layer& layer) const {
  return !space_.choice().before_activation && layer.op == "Conv" && layer.activation == "Relu" &&
         layer.batch_axis == 0 && layer.unit_axis == 1 && layer.merged == model::Merged::kNo;
}

model::ValueId UnitReader::tapped(const Layer& layer) const {
  return rectifies(layer) ? layer.pre : value_of(layer, space_.choice());
}

std::vector<stream::Tap> UnitReader::taps() const {
  std::vector<stream::Tap> taps;
  for (const Layer& layer : space_.layers()) taps.push_back({tapped(layer), layer.batch_axis, layer.merged});
  return taps;
}

void UnitReader::read(const stream::View& view, UnitBatch& batch) const {
  batch.units = space_.units();
  batch.layers = int64_t(space_.layers().size());
  const size_t count = view.batch.samples.size();
  batch.values.resize(count * size_t(batch.units));
  batch.low.resize(count * size_t(batch.layers));
  batch.high.resize(count * size_t(batch.layers));
  for (size_t l = 0; l < space_.layers().size(); ++l) {
    const at::Tensor& value = view.value(tapped(space_.layers()[l]));
    if (view.mask.defined() || !read_plain(l, value, batch)) read_any(l, value, view.mask, batch);
  }
}

/// What networks mostly give: floats, inputs first, units second, whatever positions after them or before the units.
bool UnitReader::read_plain(size_t l, const at::Tensor& value, UnitBatch& batch) const {
  const Layer& layer = space_.layers()[l];
  const int64_t rank = value.dim();
  if (rank < 2 || layer.batch_axis != 0 || layer.merged != model::Merged::kNo || !value.is_cpu() ||
      value.scalar_type() != at::kFloat || at::maybe_wrap_dim(layer.unit_axis, rank) != 1 ||
      value.size(1) != layer.units || value.numel() == 0)
    return false;
  const bool plain = value.is_contiguous(), rectify = rectifies(layer);
  if (!plain && (rank != 4 || !value.is_contiguous(at::MemoryFormat::ChannelsLast) || space_.choice().elements))
    return false;
  const int64_t inputs = value.size(0), positions = value.numel() / inputs / layer.units;
  const float* from = value.data_ptr<float>();
  for (int64_t row = 0; row < inputs; ++row, from += layer.units * positions) {
    float* to = batch.input(row) + space_.first(l);
    MapSummary all;
    if (positions == 1 || space_.choice().elements) {
      all = summarise_map(from, layer.units * positions, rectify, to);
    } else if (!plain) {
      all = summarise_channels(from, positions, layer.units, rectify, to);
      for (int64_t u = 0; u < layer.units; ++u) to[u] /= float(positions);
    } else {
      all = {0, INFINITY, -INFINITY};
      for (int64_t u = 0; u < layer.units; ++u) {
        MapSummary map = summarise_map(from + u * positions, positions, rectify, nullptr);
        to[u] = map.sum / float(positions);
        all = {0, std::min(all.low, map.low), std::max(all.high, map.high)};
      }
    }
    const size_t place = size_t(row * batch.layers) + l;
    batch.low[place] = all.low, batch.high[place] = all.high;
  }
  return true;
}

void UnitReader::read_any(size_t l, const at::Tensor& tapped_value, const at::Tensor& mask, UnitBatch& batch) const {
  const Layer& layer = space_.layers()[l];
  at::Tensor value = tapped_value.to(at::kFloat);
  if (rectifies(layer)) value = value.relu();
  at::Tensor counted = mask.defined() ? model::spread_mask(layer, value, mask.to(value.device())) : at::Tensor();
  at::Tensor known = counted.defined() ? at::where(counted, value, at::full({}, NAN, value.options())) : value;
  at::Tensor maps = model::unit_maps(layer, known);
  at::Tensor units = space_.choice().elements ? maps.flatten(1) : model::unit_values(layer, value, mask);
  if (units.size(1) != space_.units(l))
    throw InputError(fmt::format("layer {} has {} elements for one input and {} for another", layer.name,
                                 space_.units(l), units.size(1)),
                     "Leave out --unit element.");
  // What lies on a GPU is averaged there: maps are hundreds of times larger than what is read from them.
  const bool there = !value.is_cpu();
  at::Tensor low, high;
  maps = maps.flatten(1).contiguous();
  if (there) {
    low = at::where(maps.isnan(), at::full({}, INFINITY, maps.options()), maps).amin(1).to(at::kCPU);
    high = at::where(maps.isnan(), at::full({}, -INFINITY, maps.options()), maps).amax(1).to(at::kCPU);
  }
  units = units.to(at::kCPU).contiguous();
  for (int64_t row = 0; row < units.size(0); ++row) {
    std::copy_n(units.data_ptr<float>() + row * units.size(1), units.size(1), batch.input(row) + space_.first(l));
    const MapSummary all =
        there ? MapSummary{0, low.data_ptr<float>()[row], high.data_ptr<float>()[row]}
              : summarise_map(maps.data_ptr<float>() + row * maps.size(1), maps.size(1), false, nullptr);
    const size_t place = size_t(row * batch.layers) + l;
    batch.low[place] = all.low, batch.high[place] = all.high;
  }
}

}  // namespace netmend::observers
