#include "dataset/array_dataset.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"

namespace netmend::dataset {
namespace {

/// Wide integers are ids (of tokens, of categories) unless the spec says otherwise or treats them as quantities.
bool are_ids(const Array& array, const Preprocess& preprocess, const std::map<std::string, std::string>& options) {
  auto type = options.find("type");
  if (type != options.end()) {
    if (type->second != "ids" && type->second != "float")
      fail("type={} is unknown: choose from float, ids", type->second);
    return type->second == "ids";
  }
  return (array.type == Element::kI32 || array.type == Element::kI64) && preprocess.empty();
}

}  // namespace

Form guess_form(const Array& array) {
  const std::vector<int64_t> shape = array.sample_shape();
  auto channels = [](int64_t size) { return size == 1 || size == 3 || size == 4; };
  if (shape.size() == 2 && array.type == Element::kU8) return Form::kRowsColumns;
  if (shape.size() != 3) return Form::kPlain;
  if (channels(shape[0])) return Form::kChannelsRowsColumns;
  return channels(shape[2]) ? Form::kRowsColumnsChannels : Form::kPlain;
}

ArrayDataset::ArrayDataset(std::vector<ArrayInput> inputs, std::optional<LabelArray> labels,
                           const std::map<std::string, std::string>& options, std::vector<std::string> files) {
  info_.files = std::move(files);
  info_.preprocess = parse_preprocess(options);
  info_.size = inputs.at(0).array.count();
  std::string first = inputs[0].array.bytes->name();
  for (ArrayInput& input : inputs) add_input(std::move(input), options);
  if (!labels) {
    if (options.count("classes")) info_.classes = class_names(options, 0);
    return;
  }
  const Array& numbers = labels->numbers;
  if (numbers.count() != info_.size)
    fail("{} has {} labels for {} samples in {}", numbers.bytes->name(), numbers.count(), info_.size, first);
  labels_.emplace(std::move(*labels), options);
  info_.labels = labels_->kind();
  info_.label_width = labels_->width();
  info_.classes = labels_->classes();
}

/// Rows become images of the shape that the spec names; a file that has axes of its own is read in that order too.
void ArrayDataset::give_shape(ArrayInput& input, const std::vector<int64_t>& shape) {
  const std::string what = input.array.bytes->name();
  int64_t values = 1;
  for (int64_t side : shape) values *= side;
  if (values != input.array.elements())
    fail("shape={} has {} values, but a sample of {} has {} ({})", fmt::join(shape, "x"), values, what,
         input.array.elements(), shape_text(input.array.sample_shape()));
  const int64_t count = input.array.count();
  input.array.shape = shape;
  input.array.shape.insert(input.array.shape.begin(), count);
  input.form = shape.size() == 2 ? Form::kRowsColumns : guess_form(input.array);
  if (input.form == Form::kPlain) fail("shape={}: 1, 3 or 4 channels must come first or last", fmt::join(shape, "x"));
}

void ArrayDataset::add_input(ArrayInput input, const std::map<std::string, std::string>& options) {
  const std::string what = input.array.bytes->name();
  if (input.array.count() != info_.size)
    fail("{} has {} samples, {} has {}", what, input.array.count(), inputs_[0].array.bytes->name(), info_.size);
  Feature feature;
  feature.name = input.name;
  Input made;
  made.ids = are_ids(input.array, info_.preprocess, options);
  if (made.ids) {
    if (!info_.preprocess.empty()) fail("{} holds ids, which cannot be scaled, shifted or resized", what);
    feature.type = at::kLong;
    feature.shape = input.array.sample_shape();
  } else {
    Preprocess preprocess = info_.preprocess;
    if (!preprocess.shape.empty()) give_shape(input, preprocess.shape);
    preprocess.shape.clear();
    made.transform = Transform(preprocess, input.form, input.array.sample_shape(), what);
    feature = made.transform.feature(input.name);
  }
  made.array = std::move(input.array);
  inputs_.push_back(std::move(made));
  info_.features.push_back(std::move(feature));
}

at::Tensor ArrayDataset::read_input(const Input& input, std::span<const int64_t> samples) const {
  const Array& array = input.array;
  std::vector<int64_t> shape = input.ids ? array.sample_shape() : input.transform.shape();
  shape.insert(shape.begin(), int64_t(samples.size()));
  at::Tensor out = at::empty(shape, input.ids ? at::kLong : at::kFloat);
  const int64_t step = samples.empty() ? 0 : out.numel() / int64_t(samples.size());
  for_runs(array, samples, [&](const uint8_t* raw, int64_t position, int64_t count) {
    if (input.ids)
      to_longs(raw, array.type, array.swapped, count * step, out.data_ptr<int64_t>() + position * step);
    else
      input.transform.apply(raw, array.type, array.swapped, count, array.stride,
                            out.data_ptr<float>() + position * step);
  });
  return out;
}

Batch ArrayDataset::read(std::span<const int64_t> samples) const {
  Batch batch;
  for (const Input& input : inputs_) batch.inputs.push_back(read_input(input, samples));
  batch.masks.resize(inputs_.size());
  if (labels_) batch.labels = labels_->read(samples);
  batch.samples.assign(samples.begin(), samples.end());
  return batch;
}

std::vector<std::pair<std::string, std::string>> row_values(const Feature& feature, const std::vector<double>& values) {
  std::vector<std::pair<std::string, std::string>> row;
  if (feature.type != at::kFloat || feature.shape != std::vector<int64_t>{int64_t(values.size())}) return row;
  for (size_t v = 0; v < values.size(); ++v)
    row.emplace_back(feature.columns.size() == values.size() ? feature.columns[v] : fmt::format("value {}", v),
                     fmt::format("{:.6g}", values[v]));
  return row;
}

Display ArrayDataset::display(int64_t sample) const {
  for (const Input& input : inputs_) {
    if (input.ids || !input.transform.image()) continue;
    Display display;
    for_runs(input.array, std::span(&sample, 1), [&](const uint8_t* raw, int64_t, int64_t) {
      display = input.transform.display(raw, input.array.type, input.array.swapped);
    });
    return display;
  }
  Display display{Display::kText, 0, 0, 0, {}, ""};
  const Array& array = inputs_[0].array;
  std::vector<double> values(size_t(std::min<int64_t>(array.elements(), 64)));
  for_runs(array, std::span(&sample, 1), [&](const uint8_t* raw, int64_t, int64_t) {
    to_doubles(raw, array.type, array.swapped, int64_t(values.size()), values.data());
  });
  for (double value : values) display.text += fmt::format("{}{:.6g}", display.text.empty() ? "" : " ", value);
  if (int64_t(values.size()) < array.elements()) display.text += " …";
  if (!inputs_[0].ids) display.values = row_values(info().features[0], values);
  return display;
}

}  // namespace netmend::dataset
