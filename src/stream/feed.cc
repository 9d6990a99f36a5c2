#include "stream/feed.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace netmend::stream {
namespace {

using model::Value;

/// Declared sizes after the batch axis; -1 where the model takes any size.
std::vector<int64_t> wanted_shape(const Value& input) {
  std::vector<int64_t> shape;
  for (size_t axis = 1; input.shape && axis < input.shape->size(); ++axis) shape.push_back((*input.shape)[axis].size);
  return shape;
}

std::string declared_text(const Value& input) {
  if (!input.shape) return "any shape";
  std::string text;
  for (size_t axis = 0; axis < input.shape->size(); ++axis) {
    const model::Dim& dim = (*input.shape)[axis];
    std::string size = dim.size >= 0 ? std::to_string(dim.size) : dim.symbol.empty() ? "?" : dim.symbol;
    text += (axis ? "×" : "") + (axis == 0 && (dim.size < 0 || dim.size == 1) ? "N" : size);
  }
  return text;
}

bool fits(const std::vector<int64_t>& wanted, const std::vector<int64_t>& have) {
  if (wanted.size() != have.size()) return false;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] >= 0 && have[i] >= 0 && wanted[i] != have[i]) return false;
  return true;
}

std::vector<int64_t> without_ones(const std::vector<int64_t>& shape) {
  std::vector<int64_t> out;
  for (int64_t size : shape)
    if (size != 1) out.push_back(size);
  return out;
}

/// Sizes to reshape to when that keeps the order of elements meaningful; empty when it does not.
std::vector<int64_t> safe_reshape(const std::vector<int64_t>& wanted, const std::vector<int64_t>& have) {
  int64_t have_count = model::checked_count(have), known = 1;
  int free = -1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] < 0 && free >= 0) return {};
    if (wanted[i] < 0)
      free = int(i);
    else
      known *= wanted[i];
  }
  if (have_count <= 0 || known <= 0 || (free < 0 ? known != have_count : have_count % known != 0)) return {};
  std::vector<int64_t> target = wanted;
  if (free >= 0) target[size_t(free)] = have_count / known;
  bool flat = without_ones(target).size() <= 1 || without_ones(have).size() <= 1;
  return flat || without_ones(target) == without_ones(have) ? target : std::vector<int64_t>{};
}

/// `age, workclass (9), education (16)`: what the columns of a table became.
std::string columns_text(const std::vector<std::string>& columns) {
  std::vector<std::pair<std::string, int>> sources;
  for (const std::string& column : columns) {
    std::string source = column.substr(0, column.find('='));
    if (sources.empty() || sources.back().first != source) sources.emplace_back(source, 0);
    ++sources.back().second;
  }
  std::vector<std::string> words;
  for (const auto& [source, count] : sources)
    words.push_back(count == 1 ? source : fmt::format("{} ({} values)", source, count));
  if (words.size() > 40) words.resize(40), words.push_back("…");
  return fmt::format(
      "The columns are {}. columns=a:b chooses them, drop=a:b leaves some out, train=FILE takes the values "
      "of the training file.",
      join(words, ", "));
}

/// Readers of sequences that know length=N.
constexpr std::string_view kTextReaders[] = {"text:", "saved:", "rt-polarity"};

[[noreturn]] void refuse(const Value& input, const std::string& model_name, const dataset::Info& data, size_t feature) {
  const dataset::Feature& have = data.features[feature];
  std::string hint;
  if (have.image && input.shape && input.shape->size() == 4) {
    auto wanted = wanted_shape(input);
    bool last = wanted[2] == 1 || wanted[2] == 3;
    hint = fmt::format("Was it resized in training? Add to the data: resize={}x{}", last ? wanted[0] : wanted[1],
                       last ? wanted[1] : wanted[2]);
  }
  if (!have.columns.empty()) hint = columns_text(have.columns);
  const bool cut_to_length = std::any_of(std::begin(kTextReaders), std::end(kTextReaders),
                                         [&](auto head) { return data.spec.starts_with(head); });
  if (cut_to_length && have.type == at::kLong && have.shape.size() == 1 && input.shape && input.shape->size() == 2 &&
      (*input.shape)[1].size > 0)
    hint = fmt::format("Try length={}.", (*input.shape)[1].size);
  throw InputError(fmt::format("{} expects input `{}` as {}, but {} has {}", model_name, input.name,
                               declared_text(input), data.spec, shape_text(have.shape)),
                   hint);
}

}  // namespace

Feed::Link Feed::connect(const Value& input, const std::string& model_name, const dataset::Info& data, size_t feature) {
  const dataset::Feature& have = data.features[feature];
  Link link;
  link.feature = feature;
  link.type = model::carrier(input.type);
  bool wants_integers = !at::isFloatingType(link.type) && link.type != at::kBool;
  if (wants_integers && have.type == at::kFloat)
    fail("{} expects input `{}` as {}, but {} has real numbers", model_name, input.name,
         model::element_name(input.type), data.spec);
  if (!input.shape) return link;
  std::vector<int64_t> wanted = wanted_shape(input);
  for (size_t axis = 0; axis < std::min(wanted.size(), have.shape.size()); ++axis)
    if (wanted.size() == have.shape.size() && wanted[axis] >= 0 && have.shape[axis] < 0)
      throw InputError(fmt::format("{} expects input `{}` as {}, but the lengths of {} differ from input to input",
                                   model_name, input.name, declared_text(input), data.spec),
                       fmt::format("Add length={} to the data spec: longer inputs are truncated, shorter ones padded.",
                                   wanted[axis]));
  if (fits(wanted, have.shape)) return link;
  if (have.image && have.shape.size() == 3 && wanted.size() == 3) {
    std::vector<int64_t> last{have.shape[1], have.shape[2], have.shape[0]},
        first{have.shape[2], have.shape[0], have.shape[1]};
    bool channels_first = have.shape[0] <= 4;
    if (channels_first && have.shape[0] > 1 && fits(wanted, last)) link.permute = {0, 2, 3, 1};
    if (!channels_first && have.shape[2] > 1 && fits(wanted, first)) link.permute = {0, 3, 1, 2};
    if (!link.permute.empty()) {
      notes_.push_back(fmt::format("{} is fed as {}, channels {}", shape_text(have.shape), declared_text(input),
                                   channels_first ? "last" : "first"));
      return link;
    }
  }
  link.reshape = safe_reshape(wanted, have.shape);
  if (link.reshape.empty() && !(wanted.empty() && model::checked_count(have.shape) == 1))
    refuse(input, model_name, data, feature);
  notes_.push_back(fmt::format("{} is fed as {}", shape_text(have.shape), shape_text(link.reshape)));
  return link;
}

Feed::Feed(const model::Graph& graph, const std::string& model_name, const dataset::Info& data) {
  size_t position = 0;
  for (model::ValueId id : graph.inputs) {
    const Value& input = graph.values[size_t(id)];
    size_t feature = data.features.size();
    for (size_t f = 0; f < data.features.size(); ++f)
      if (data.features[f].name == input.name) feature = f;
    bool looks_like_mask = lower(input.name).find("mask") != std::string::npos;
    if (feature == data.features.size() && looks_like_mask && data.features.size() < graph.inputs.size()) {
      Link link;
      link.mask = true;
      link.type = model::carrier(input.type);
      links_.push_back(link);
      notes_.push_back(fmt::format("`{}` is fed with the mask of `{}`", input.name, data.features[0].name));
      continue;
    }
    if (feature == data.features.size()) feature = position;
    if (feature >= data.features.size())
      fail("{} has {} inputs, but {} has {}: nothing for `{}`", model_name, graph.inputs.size(), data.spec,
           data.features.size(), input.name);
    links_.push_back(connect(input, model_name, data, feature));
    const dataset::Feature& have = data.features[feature];
    if (looks_like_mask && have.shape.size() == 1 && links_.back().type != at::kFloat) mask_feature_ = int(feature);
    ++position;
  }
}

std::vector<at::Tensor> Feed::inputs(const dataset::Batch& batch) const {
  std::vector<at::Tensor> out;
  for (const Link& link : links_) {
    at::Tensor tensor = link.mask && link.feature < batch.masks.size() ? batch.masks[link.feature] : at::Tensor();
    if (link.mask && !tensor.defined()) tensor = at::ones(batch.inputs[link.feature].sizes().slice(0, 2), at::kBool);
    if (!link.mask) tensor = batch.inputs[link.feature];
    if (!link.permute.empty()) tensor = tensor.permute(link.permute).contiguous();
    if (!link.reshape.empty()) {
      std::vector<int64_t> shape{tensor.size(0)};
      shape.insert(shape.end(), link.reshape.begin(), link.reshape.end());
      tensor = tensor.reshape(shape);
    }
    out.push_back(tensor.scalar_type() == link.type ? tensor : tensor.to(link.type));
  }
  return out;
}

at::Tensor Feed::mask(const dataset::Batch& batch) const {
  if (mask_feature_ >= 0) return batch.inputs[size_t(mask_feature_)] != 0;
  for (const at::Tensor& mask : batch.masks)
    if (mask.defined() && mask.dim() == 2) return mask;
  return {};
}

}  // namespace netmend::stream
