#include "preflight/setups.h"

#include <ATen/ATen.h>

#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace netmend::preflight {
namespace {

using dataset::Batch;
using dataset::Feature;
using dataset::Info;

/// The first input that holds quantities; -1 when all hold ids.
int quantities(const Info& data) {
  for (size_t f = 0; f < data.features.size(); ++f)
    if (data.features[f].type == at::kFloat) return int(f);
  return -1;
}

bool has_colors(const Feature& feature) {
  return feature.image && feature.shape.size() == 3 && feature.shape[feature.channels_last ? 2 : 0] == 3;
}

int64_t channel_axis(const Feature& feature) { return feature.channels_last ? 3 : 1; }

/// Numbers, one for all or one per channel, in a shape that meets the feature's batches.
at::Tensor along_channels(const std::vector<double>& numbers, const Feature& feature) {
  at::Tensor row = at::tensor(numbers, at::kFloat);
  if (numbers.size() == 1) return row;
  std::vector<int64_t> shape(feature.shape.size() + 1, 1);
  shape[size_t(channel_axis(feature))] = int64_t(numbers.size());
  return row.view(shape);
}

/// A way to write down a brightness of 0 … 1: (value · factor − mean) / std.
struct Normalising {
  const char* words;
  double factor;
  std::vector<double> mean, std;
  enum Channels { kAny, kThree, kOne } channels;
};

const std::vector<Normalising>& normalisings() {
  static const std::vector<Normalising> all = {
      {"scaled to 0…1", 1, {}, {}, Normalising::kAny},
      {"not scaled, 0…255", 255, {}, {}, Normalising::kAny},
      {"scaled to −1…1", 1, {0.5}, {0.5}, Normalising::kAny},
      {"scaled to 0…1, ImageNet mean and std", 1, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}, Normalising::kThree},
      {"scaled to 0…1, CIFAR-10 mean and std",
       1,
       {0.4914, 0.4822, 0.4465},
       {0.247, 0.2435, 0.2616},
       Normalising::kThree},
      {"0…255, ImageNet mean taken off", 255, {123.68, 116.779, 103.939}, {}, Normalising::kThree},
      {"scaled to 0…1, MNIST mean and std", 1, {0.1307}, {0.3081}, Normalising::kOne},
      {"scaled to 0…1, Fashion-MNIST mean and std", 1, {0.286}, {0.353}, Normalising::kOne},
      {"bright and dark exchanged", -1, {-1}, {}, Normalising::kAny},
  };
  return all;
}

bool suits(const Normalising& way, const Feature& feature) {
  return way.channels == Normalising::kAny || (way.channels == Normalising::kThree) == has_colors(feature);
}

/// How the values as the source has them (before the preprocessing that is set now) relate to brightness.
struct Source {
  int feature = 0;
  at::Tensor factor, offset;  ///< what the data set does now: value = source · factor + offset
  double brightness = 1;      ///< source · brightness is 0 … 1
};

Source read_source(const Info& data, const Batch& sample, int feature) {
  const dataset::Preprocess& done = data.preprocess;
  const Feature& about = data.features[size_t(feature)];
  auto spread = [&](const std::vector<double>& numbers, double otherwise) {
    return numbers.empty() ? at::full({1}, otherwise) : along_channels(numbers, about);
  };
  Source source;
  source.feature = feature;
  at::Tensor std = spread(done.std, 1);
  source.factor = done.scale.value_or(1.0) / std;
  source.offset = -spread(done.mean, 0) / std;
  at::Tensor values = (sample.inputs[size_t(feature)] - source.offset) / source.factor;
  source.brightness = values.max().item<double>() > 1.5 ? 1.0 / 255 : 1;
  return source;
}

/// Values that are brightnesses, or were shifted and scaled by one of the usual constants.
std::optional<Source> read_brightness(const Info& data, const Batch& sample, int feature) {
  Source source = read_source(data, sample, feature);
  at::Tensor values = (sample.inputs[size_t(feature)] - source.offset) / source.factor;
  auto within = [](const at::Tensor& v, double high) {
    return v.min().item<double>() >= -0.02 && v.max().item<double>() <= 1.02 * high;
  };
  if (within(values, 1 / source.brightness)) return source;
  const Feature& about = data.features[size_t(feature)];
  for (const Normalising& way : normalisings()) {
    if (way.mean.empty() || way.factor < 0 || !suits(way, about)) continue;
    at::Tensor std = way.std.empty() ? at::ones({1}) : along_channels(way.std, about);
    at::Tensor bright = (values * std + along_channels(way.mean, about)) / way.factor;
    bool touches = bright.max().item<double>() > 0.9 && bright.min().item<double>() < 0.1;
    if (!within(bright, 1) || !touches) continue;
    source.offset = source.offset - along_channels(way.mean, about) / std * source.factor;
    source.factor = source.factor * way.factor / std;
    source.brightness = 1;
    return source;
  }
  return std::nullopt;
}

std::string list_text(const std::vector<double>& numbers) {
  std::vector<std::string> words;
  for (double number : numbers) words.push_back(fmt::format("{:.6g}", number));
  return join(words, ":");
}

/// Keys of the preprocessing that a scaling does not decide.
std::map<std::string, std::string> other_options(const Info& data) {
  auto options = dataset::options_of(data.preprocess);
  for (const char* key : {"scale", "mean", "std"}) options.erase(key);
  return options;
}

Setup normalised(const Info& data, const Source& source, const Normalising& way) {
  const Feature& feature = data.features[size_t(source.feature)];
  Setup setup;
  setup.about = "scale";
  setup.words = way.words;
  setup.options = other_options(data);
  double scale = source.brightness * way.factor;
  setup.options["scale"] = scale == 1.0 / 255 ? "1/255" : fmt::format("{:.6g}", scale);
  if (!way.mean.empty()) setup.options["mean"] = list_text(way.mean);
  if (!way.std.empty()) setup.options["std"] = list_text(way.std);
  at::Tensor mean = way.mean.empty() ? at::zeros({1}) : along_channels(way.mean, feature);
  at::Tensor std = way.std.empty() ? at::ones({1}) : along_channels(way.std, feature);
  setup.apply = [=](Batch& batch) {
    at::Tensor& values = batch.inputs[size_t(source.feature)];
    values = ((values - source.offset) / source.factor * scale - mean) / std;
  };
  return setup;
}

/// Each channel or column by its own mean and deviation in the data.
Setup standardised(const Info& data, const Batch& sample, const Source& source) {
  const Feature& feature = data.features[size_t(source.feature)];
  at::Tensor raw = (sample.inputs[size_t(source.feature)] - source.offset) / source.factor;
  const bool table = feature.shape.size() == 1, colors = has_colors(feature);
  std::vector<int64_t> axes = {0};
  for (int64_t axis = 1; axis < raw.dim() && !table; ++axis)
    if (!colors || axis != channel_axis(feature)) axes.push_back(axis);
  at::Tensor mean = raw.mean(axes, true), std = raw.std(axes, false, true).clamp_min(1e-8);
  if (table) {  // columns that say yes or no are left as they are
    at::Tensor flag = ((raw == 0) | (raw == 1)).all(0, true);
    mean = at::where(flag, at::zeros_like(mean), mean), std = at::where(flag, at::ones_like(std), std);
  }
  Setup setup;
  setup.about = "scale";
  setup.words = table ? "each column by its own mean and deviation" : "by the data's own mean and std";
  if (!table) {
    auto numbers = [](const at::Tensor& t) {
      at::Tensor flat = t.flatten().to(at::kDouble).contiguous();
      return std::vector<double>(flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel());
    };
    setup.options = other_options(data);
    setup.options["mean"] = list_text(numbers(mean));
    setup.options["std"] = list_text(numbers(std));
  }
  setup.apply = [=](Batch& batch) {
    at::Tensor& values = batch.inputs[size_t(source.feature)];
    values = ((values - source.offset) / source.factor - mean) / std;
  };
  return setup;
}

Setup each_image_standardised(const Info& data, int feature) {
  Setup setup;
  setup.about = "scale";
  setup.words = "each image by its own mean and deviation";
  setup.apply = [feature](Batch& batch) {
    at::Tensor& values = batch.inputs[size_t(feature)];
    at::Tensor flat = values.flatten(1);
    values = ((flat - flat.mean(1, true)) / flat.std(1, false, true).clamp_min(1e-6)).view_as(values);
  };
  return setup;
}

Setup arranged(const char* about, const char* words, std::map<std::string, std::string> options, int feature,
               std::function<at::Tensor(const at::Tensor&)> change) {
  return {about, words, std::move(options), [=](Batch& batch) {
            at::Tensor& values = batch.inputs[size_t(feature)];
            values = change(values).contiguous();
          }};
}

void add_image_arrangements(const Info& data, const Batch& sample, int f, std::vector<Setup>& all) {
  const Feature& feature = data.features[size_t(f)];
  const int64_t channel = channel_axis(feature);
  const std::vector<int64_t>& shape = feature.shape;
  auto options = dataset::options_of(data.preprocess);
  // What belongs to a channel, its mean and std, stays where it is when values move: they are moved as the source has
  // them.
  const Source source = read_brightness(data, sample, f).value_or(read_source(data, sample, f));
  auto as_in_source = [source](std::function<at::Tensor(const at::Tensor&)> change) {
    return [=](const at::Tensor& x) {
      return change((x - source.offset) / source.factor) * source.factor + source.offset;
    };
  };
  if (has_colors(feature)) {
    auto turned = options;
    turned["color"] = data.preprocess.color == "BGR" ? "RGB" : "BGR";
    all.push_back(arranged("color", "red and blue exchanged", turned, f,
                           as_in_source([=](const at::Tensor& x) { return x.flip({channel}); })));
    auto other = [=](const at::Tensor& x) {  // values lie in memory as if the other axis came first
      int64_t n = x.size(0), c = feature.channels_last ? shape[2] : shape[0],
              rows = feature.channels_last ? shape[0] : shape[1], columns = feature.channels_last ? shape[1] : shape[2];
      return feature.channels_last ? x.reshape({n, c, rows, columns}).permute({0, 2, 3, 1})
                                   : x.reshape({n, rows, columns, c}).permute({0, 3, 1, 2});
    };
    all.push_back(arranged("layout", "channels taken from the other end of the array", {}, f, as_in_source(other)));
    auto mixed = [=](const at::Tensor& x) {  // the same turned around: right axes, filled in the other order
      at::Tensor turned_axes = feature.channels_last ? x.permute({0, 3, 1, 2}) : x.permute({0, 2, 3, 1});
      return turned_axes.contiguous().view(x.sizes());
    };
    all.push_back(arranged("layout", "channels laid out at the other end of the array", {}, f, as_in_source(mixed)));
  }
  int64_t rows = feature.channels_last ? 1 : shape.size() == 3 ? 2 : 1;
  auto sideways = options;
  sideways["layout"] = feature.channels_last ? "NWHC" : "NCWH";
  if (data.preprocess.layout == "NWHC" || data.preprocess.layout == "NCWH")
    sideways["layout"] = feature.channels_last ? "NHWC" : "NCHW";
  if (shape.size() >= 2 && shape[size_t(rows - 1)] == shape[size_t(rows)])
    all.push_back(arranged("orientation", "rows and columns exchanged", sideways, f,
                           [=](const at::Tensor& x) { return x.transpose(rows, rows + 1); }));
}

/// Square images that come as plain rows of numbers.
void add_flat_arrangements(const Feature& feature, int f, std::vector<Setup>& all) {
  if (feature.shape.size() != 1 || !feature.columns.empty()) return;
  const int64_t count = feature.shape[0];
  for (int64_t channels : {1, 3}) {
    int64_t side = int64_t(std::lround(std::sqrt(double(count) / double(channels))));
    if (side < 8 || side * side * channels != count) continue;
    if (channels == 1)
      all.push_back(arranged("orientation", "rows and columns exchanged", {}, f, [=](const at::Tensor& x) {
        return x.view({-1, side, side}).transpose(1, 2).reshape({-1, count});
      }));
    else
      all.push_back(
          arranged("layout", "channels taken from the other end of the array", {}, f, [=](const at::Tensor& x) {
            return x.view({-1, side, side, 3}).permute({0, 3, 1, 2}).reshape({-1, count});
          }));
  }
}

void add_id_arrangements(const Info& data, std::vector<Setup>& all) {
  for (size_t f = 0; f < data.features.size(); ++f) {
    const Feature& feature = data.features[f];
    if (feature.type != at::kLong) continue;
    if (lower(feature.name).find("mask") != std::string::npos)
      for (size_t ids = 0; ids < data.features.size(); ++ids)
        if (ids != f && data.features[ids].type == at::kLong && data.features[ids].shape == feature.shape &&
            lower(data.features[ids].name).find("id") != std::string::npos)
          all.push_back({"mask", "token number 0 masked", {}, [=](Batch& batch) {
                           batch.inputs[f] = (batch.inputs[ids] != 0).to(at::kLong);
                         }});
    if (lower(feature.name).find("mask") != std::string::npos) {
      all.push_back(arranged("mask", "mask turned around", {}, int(f), [](const at::Tensor& x) { return 1 - x; }));
      all.push_back(
          arranged("mask", "nothing masked", {}, int(f), [](const at::Tensor& x) { return at::ones_like(x); }));
      continue;
    }
    for (int64_t by : {-3, -2, -1, 1, 2, 3})
      all.push_back(arranged("ids", by < 0 ? "token numbers smaller by a few" : "token numbers larger by a few", {},
                             int(f), [=](const at::Tensor& x) { return at::where(x > 0, (x + by).clamp_min(0), x); }));
    all.push_back(
        arranged("ids", "tokens in the other order", {}, int(f), [](const at::Tensor& x) { return x.flip({1}); }));
  }
}

}  // namespace

std::vector<Setup> scalings(const Info& data, const Batch& sample) {
  std::vector<Setup> all;
  int f = quantities(data);
  if (f < 0) return all;
  const Feature& feature = data.features[size_t(f)];
  if (std::optional<Source> source = feature.columns.empty() ? read_brightness(data, sample, f) : std::nullopt) {
    for (const Normalising& way : normalisings())
      if (suits(way, feature)) all.push_back(normalised(data, *source, way));
    all.push_back(standardised(data, sample, *source));
    if (feature.shape.size() > 1) all.push_back(each_image_standardised(data, f));
  } else if (feature.shape.size() == 1) {
    all.push_back(standardised(data, sample, read_source(data, sample, f)));
  }
  return all;
}

std::vector<Setup> arrangements(const Info& data, const Batch& sample) {
  std::vector<Setup> all;
  int f = quantities(data);
  if (f >= 0 && data.features[size_t(f)].image) add_image_arrangements(data, sample, f, all);
  if (f >= 0) add_flat_arrangements(data.features[size_t(f)], f, all);
  add_id_arrangements(data, all);
  return all;
}

}  // namespace netmend::preflight
