#include "inputs/product.h"

#include <ATen/ATen.h>

#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/npy.h"
#include "base/text.h"
#include "dataset/preprocess.h"
#include "dataset/spec.h"

namespace netmend::inputs {
namespace {

using dataset::Info;

std::string npy_of(const at::Tensor& tensor) {
  at::Tensor plain = tensor.contiguous();
  const char* type = plain.scalar_type() == at::kFloat  ? "<f4"
                     : plain.scalar_type() == at::kByte ? "|u1"
                     : plain.scalar_type() == at::kBool ? "|b1"
                                                        : "<i8";
  std::string bytes = npy_header(type, std::vector<int64_t>(plain.sizes().begin(), plain.sizes().end()));
  const size_t head = bytes.size();
  bytes.resize(head + size_t(plain.nbytes()));
  std::memcpy(bytes.data() + head, plain.data_ptr(), size_t(plain.nbytes()));
  return bytes;
}

std::string npy_of(const std::vector<int64_t>& numbers) { return npy_of(at::tensor(numbers, at::kLong)); }

/// Undoes what the spec's layout= and color= will do again: axes and colours as the source has them.
at::Tensor as_in_source(at::Tensor raw, const dataset::Feature& about, const dataset::Preprocess& preprocess) {
  if (!about.image) return raw;
  const int64_t rows = about.channels_last ? 1 : 2;
  if (preprocess.layout == "NCWH" || preprocess.layout == "NWHC") raw = raw.transpose(rows, rows + 1);
  if (preprocess.color == "BGR") raw = raw.flip({about.channels_last ? 3 : 1});
  return raw;
}

/// Rows of a feature that no method touches, in raw units.
at::Tensor untouched(const dataset::Dataset& data, size_t feature, const std::vector<int64_t>& samples) {
  std::vector<at::Tensor> parts;
  for (size_t first = 0; first < samples.size(); first += 1024) {
    std::span<const int64_t> some(samples.data() + first, std::min<size_t>(1024, samples.size() - first));
    parts.push_back(data.read(some).inputs[feature]);
  }
  at::Tensor fed = at::cat(parts, 0);
  if (fed.scalar_type() != at::kFloat) return fed;
  stream::RawRange range(data, feature, "0:1");
  return as_in_source(range.raw(range.units(fed)), data.info().features[feature], data.info().preprocess);
}

at::Tensor kept_rows(const at::Tensor& tensor, const CampaignResult& result) {
  std::vector<int64_t> rows;
  for (size_t i = 0; i < result.attempts.size(); ++i)
    if (result.attempts[i].made) rows.push_back(int64_t(i));
  return rows.size() == result.attempts.size() ? tensor : tensor.index_select(0, at::tensor(rows, at::kLong));
}

/// Preprocessing as the file needs it: sizes are already right, everything else is done again.
std::string options_text(const Info& info, const dataset::Feature& about) {
  std::map<std::string, std::string> options = dataset::options_of(info.preprocess);
  if (!about.columns.empty())  // a table is stored as it was encoded
    for (auto& [key, value] : options) value = std::string(1, key == "mean" ? '0' : '1');
  options.erase("shape");         // what is written has its axes
  if (info.preprocess.per_image)  // and values as they were fed
    for (const char* key : {"per_image", "scale"}) options.erase(key);
  if (options.count("resize") && about.image) {
    const int64_t height = about.shape[about.channels_last ? 0 : 1], width = about.shape[about.channels_last ? 1 : 2];
    const bool square = options.count("crop") > 0;
    options["resize"] = square ? std::to_string(height) : fmt::format("{}x{}", height, width);
    if (square) options["crop"] = std::to_string(height);
  }
  std::string text;
  for (const auto& [key, value] : options) text += fmt::format(",{}={}", key, value);
  return text;
}

std::string classes_text(const Info& info) {
  if (info.labels == dataset::LabelKind::kNumber) return ",kind=number";
  std::string text;
  for (const std::string& name : info.classes) {
    if (name.find_first_of(",:=") != std::string::npos) return "";
    text += (text.empty() ? ",classes=" : ":") + name;
  }
  return text;
}

}  // namespace

int64_t product_bytes(const dataset::Dataset& data, const Network& network, int64_t inputs, bool whole) {
  int64_t row = 64;
  for (size_t f = 0; f < data.info().features.size(); ++f) {
    int64_t count = 1;
    for (int64_t size : data.info().features[f].shape) count *= std::max<int64_t>(size, 1);
    const bool ids = data.info().features[f].type == at::kLong;
    row += count * (ids ? 8 : whole && f == network.changed().feature ? 1 : 4);
  }
  return inputs * row;
}

std::string write_product(const std::string& path, const dataset::Dataset& data, const model::Graph& graph,
                          const Network& network, const std::vector<MadeBy>& made, bool whole) {
  const Info& info = data.info();
  const Subject& changed = network.changed();
  std::vector<int64_t> samples, labels, before, method;
  std::vector<at::Tensor> raw, masks;
  std::string names;
  std::vector<int64_t> name_ends;
  for (size_t m = 0; m < made.size(); ++m) {
    const CampaignResult& result = *made[m].result;
    names += made[m].method;
    name_ends.push_back(int64_t(names.size()));
    for (const Attempt& attempt : result.attempts) {
      if (!attempt.made) continue;
      samples.push_back(attempt.sample), labels.push_back(attempt.label), before.push_back(attempt.before);
      method.push_back(int64_t(m));
    }
    if (result.raw.defined()) raw.push_back(kept_rows(result.raw, result));
    if (result.mask.defined()) masks.push_back(kept_rows(result.mask, result));
  }
  check(!samples.empty(), "nothing was made");
  const bool one = info.features.size() == 1;
  // A mask that the data keeps beside its ids becomes an input of its own.
  const bool masked = changed.kind == Kind::kTokens && !masks.empty() && changed.masks.empty() &&
                      graph.inputs.size() > info.features.size();
  std::vector<std::string> fed;
  write_file(path, [&](std::ostream& out) {
    ZipWriter zip(out);
    for (size_t f = 0; f < info.features.size(); ++f) {
      fed.push_back(one && !masked ? "x" : info.features[f].name);
      at::Tensor values;
      if (f == changed.feature) {
        values = as_in_source(at::cat(raw, 0), changed.about, info.preprocess);
        if (whole) values = values.to(at::kByte);
      } else if (!masks.empty() && std::find(changed.masks.begin(), changed.masks.end(), f) != changed.masks.end()) {
        values = at::cat(masks, 0).to(at::kLong);
      } else {
        values = untouched(data, f, samples);
      }
      zip.add(fed.back() + ".npy", npy_of(values));
    }
    if (masked) fed.push_back("mask"), zip.add("mask.npy", npy_of(at::cat(masks, 0).to(at::kLong)));
    if (info.labels == dataset::LabelKind::kNumber) {
      at::Tensor numbers = at::empty({int64_t(samples.size())}, at::kFloat);
      for (size_t i = 0; i < samples.size(); ++i)
        numbers[int64_t(i)].copy_(data.read(std::span(&samples[i], 1)).labels.reshape(-1)[0]);
      zip.add("label.npy", npy_of(numbers));
    } else if (info.labels != dataset::LabelKind::kNone) {
      zip.add("label.npy", npy_of(labels));
    }
    zip.add("sample.npy", npy_of(samples));
    zip.add("before.npy", npy_of(before));
    zip.add("method.npy", npy_of(method));
    at::Tensor letters = at::empty({int64_t(names.size())}, at::kByte);
    std::memcpy(letters.data_ptr(), names.data(), names.size());
    zip.add("methods.bytes.npy", npy_of(letters));
    zip.add("methods.ends.npy", npy_of(name_ends));
    zip.finish();
  });
  dataset::Spec file;
  file.head = "npz", file.rest = path;  // a name that holds a comma is quoted
  std::string spec = fmt::format("{},x={}", dataset::spec_text(file), join(fed, ":"));
  if (info.labels != dataset::LabelKind::kNone) spec += ",y=label";
  return spec + options_text(info, changed.about) + classes_text(info);
}

}  // namespace netmend::inputs
