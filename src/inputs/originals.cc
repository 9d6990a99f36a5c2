#include "inputs/originals.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"

namespace netmend::inputs {

std::string kind_words(Kind kind) {
  switch (kind) {
    case Kind::kImage:
      return "images";
    case Kind::kNumbers:
      return "rows of numbers";
    case Kind::kTable:
      return "rows of a table";
    case Kind::kTokens:
      return "token ids";
  }
  return "";
}

Subject find_subject(const dataset::Info& info) {
  auto is_mask = [](const std::string& name) {
    return lower(name).find("mask") != std::string::npos || lower(name).find("type") != std::string::npos;
  };
  const size_t none = info.features.size();
  size_t image = none, reals = none, ids = none;
  for (size_t f = none; f-- > 0;) {
    const dataset::Feature& feature = info.features[f];
    if (feature.image) image = f;
    if (feature.type == at::kFloat && !is_mask(feature.name)) reals = f;
    if (feature.type == at::kLong && !is_mask(feature.name)) ids = f;
  }
  size_t chosen = image != none ? image : reals != none ? reals : ids;
  if (chosen == none) fail("{} has no inputs that could be changed", info.spec);
  const dataset::Feature& about = info.features[chosen];
  Kind kind = about.image               ? Kind::kImage
              : about.type == at::kLong ? Kind::kTokens
              : !about.columns.empty()  ? Kind::kTable
                                        : Kind::kNumbers;
  Subject subject{chosen, kind, about, {}};
  for (size_t f = 0; f < none; ++f)
    if (f != chosen && lower(info.features[f].name).find("mask") != std::string::npos) subject.masks.push_back(f);
  return subject;
}

Originals Originals::rows(const at::Tensor& index) const {
  auto pick = [&](const at::Tensor& tensor) {
    return tensor.defined() ? tensor.index_select(0, index.to(tensor.device())) : tensor;
  };
  const at::Tensor places = index.to(at::kCPU);
  Originals part;
  for (const at::Tensor& input : batch.inputs) part.batch.inputs.push_back(pick(input));
  for (const at::Tensor& mask : batch.masks) part.batch.masks.push_back(pick(mask));
  part.batch.labels = pick(batch.labels);
  for (int64_t i = 0; i < index.numel(); ++i)
    part.batch.samples.push_back(batch.samples[size_t(places.data_ptr<int64_t>()[i])]);
  part.units = pick(units);
  part.predictions = pick(predictions);
  return part;
}

namespace {

/// An input beside the ids that is their mask; the ids themselves when there is none.
size_t mask_feature(const dataset::Batch& batch, const Subject& changed) {
  for (size_t f : changed.masks)
    if (f < batch.inputs.size() && batch.inputs[f].sizes() == batch.inputs[changed.feature].sizes()) return f;
  return changed.feature;
}

}  // namespace

at::Tensor mask_of(const dataset::Batch& batch, const Subject& changed) {
  const size_t f = changed.feature, own = mask_feature(batch, changed);
  if (own != f) return batch.inputs[own] != 0;
  if (f < batch.masks.size() && batch.masks[f].defined()) return batch.masks[f];
  return changed.about.pad >= 0 ? batch.inputs[f] != changed.about.pad : at::ones_like(batch.inputs[f], at::kBool);
}

void set_mask(dataset::Batch& batch, const Subject& changed, const at::Tensor& mask) {
  const size_t f = changed.feature, own = mask_feature(batch, changed);
  if (own != f) batch.inputs[own] = mask.to(batch.inputs[own].scalar_type());
  if (f < batch.masks.size() && batch.masks[f].defined()) batch.masks[f] = mask;
}

Random random_for(uint64_t seed, std::string_view method, int64_t sample, int64_t attempt) {
  return Random(seed ^ hash64(method), uint64_t(sample) * 0x10001u + uint64_t(attempt));
}

}  // namespace netmend::inputs
