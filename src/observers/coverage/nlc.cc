#include "observers/coverage/nlc.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>

#include "base/error.h"
#include "observers/coverage/materials.h"

namespace netmend::observers {

std::unique_ptr<Tally> Nlc::fresh() const { return std::make_unique<NlcTally>(space_); }

double Nlc::bytes(int64_t) const {
  double bytes = 0;
  for (const NlcGroup& group : nlc_groups(*space_)) bytes += 8 * double(group.units) * double(group.units + 1);
  return bytes;
}

Figure Nlc::figure(const Tally& tally) const {
  Figure figure{name(), {}};
  const auto& spread = dynamic_cast<const NlcTally&>(tally);
  const std::vector<NlcGroup> groups = nlc_groups(*space_);
  for (size_t l = 0; l < spread.layers.size(); ++l) {
    const NlcTally::Moments& moments = spread.layers[l];
    double value = moments.count > 0 ? moments.products.abs().mean().item<double>() / moments.count : 0;
    figure.layers.push_back({groups[l].name, value, -1});
    figure.value += value;
  }
  figure.covered = figure.value;
  return figure;
}

bool is_recurrent(const model::Layer& layer) { return layer.op == "LSTM" || layer.op == "GRU" || layer.op == "RNN"; }

std::vector<NlcGroup> nlc_groups(const UnitSpace& space) {
  std::vector<NlcGroup> groups;
  for (size_t l = 0; l < space.layers().size(); ++l) {
    const model::Layer& layer = space.layers()[l];
    const int64_t units = space.units(l);
    if (!space.choice().elements || !is_recurrent(layer) || units == layer.units) {
      groups.push_back({layer.name, space.first(l), 1, units});
      continue;
    }
    const int64_t steps = units / layer.units;  // elements count steps fastest
    for (int64_t step = 0; step < steps; ++step)
      groups.push_back({fmt::format("{} step {}", layer.name, step), space.first(l) + step, steps, layer.units});
  }
  return groups;
}

NlcTally::NlcTally(SpacePtr space) : groups_(nlc_groups(*space)) {
  for (const NlcGroup& group : groups_)
    layers.push_back({0, at::zeros({group.units}, at::kDouble), at::zeros({group.units, group.units}, at::kDouble)});
}

void NlcTally::Moments::merge(const Moments& later) {
  if (later.count == 0) return;
  const double both = count + later.count;
  at::Tensor apart = later.mean - mean;
  products.add_(later.products).addr_(apart, apart, 1, count * later.count / both);
  mean.add_(apart, later.count / both);
  count = both;
}

void NlcTally::add(const UnitBatch& batch) {
  at::NoGradGuard no_grad;
  at::Tensor all = at::from_blob(const_cast<float*>(batch.values.data()), {batch.count(), batch.units}, at::kFloat);
  for (size_t l = 0; l < layers.size(); ++l) {
    const NlcGroup& group = groups_[l];
    const int64_t end = group.first + group.stride * (group.units - 1) + 1;
    at::Tensor values = all.slice(1, group.first, end, group.stride).to(at::kDouble, false, true);
    if (!std::isfinite(values.sum().item<double>())) {
      at::Tensor whole = values.isfinite().all(1).nonzero().squeeze(1);
      values = values.index_select(0, whole);
      if (values.size(0) == 0) continue;
    }
    at::Tensor mean = values.mean(0);
    values.sub_(mean);
    layers[l].merge({double(values.size(0)), mean, at::mm(values.t(), values)});
  }
}

void NlcTally::merge(const Tally& later) {
  const auto& other = dynamic_cast<const NlcTally&>(later);
  for (size_t l = 0; l < layers.size(); ++l) layers[l].merge(other.layers[l]);
}

void NlcTally::save(std::ostream& out) const {
  for (const Moments& layer : layers) {
    stream::put(out, layer.count);
    stream::put(out, layer.mean);
    stream::put(out, layer.products);
  }
}

void NlcTally::load(std::istream& in) {
  for (Moments& layer : layers) {
    layer.count = stream::get_double(in);
    for (at::Tensor* tensor : {&layer.mean, &layer.products}) {
      at::Tensor read = stream::get_tensor(in);
      if (read.sizes() != tensor->sizes() || read.scalar_type() != at::kDouble || !read.isfinite().all().item<bool>())
        fail("the state file is damaged");
      *tensor = read.clone();
    }
    if (!(layer.count >= 0) || std::isinf(layer.count)) fail("the state file is damaged");
  }
}

CriterionRow nlc_row() {
  return {.name = "NLC",
          .full_name = "NeuraL Coverage",
          .asks = "how widely the units of a layer spread together",
          .reference = "Yuan et al.: Revisiting Neuron Coverage for DNN Testing, ICSE 2023",
          .counts = false,
          .make = [](const CriterionMaterials& m) { return make_criterion<Nlc>(m.space); }};
}

}  // namespace netmend::observers
