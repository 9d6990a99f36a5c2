#include "preflight/setups.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "dataset/spec.h"

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
  const char* data = "";  ///< the data set that the constants are of; "" for those that are used with any
  bool blue_first = false;
  bool unusual = false;
};

const std::vector<Normalising>& normalisings() {
  using N = Normalising;
  static const std::vector<double> imagenet = {0.485, 0.456, 0.406}, cifar = {0.4914, 0.4822, 0.4465};
  static const std::vector<Normalising> all = {
      {"scaled to 0…1", 1, {}, {}, N::kAny},
      {"not scaled, 0…255", 255, {}, {}, N::kAny},
      {"scaled to −½…½", 1, {0.5}, {}, N::kAny},
      {"scaled to −1…1", 1, {0.5}, {0.5}, N::kAny},
      {"scaled to 0…1, ImageNet mean and std", 1, imagenet, {0.229, 0.224, 0.225}, N::kThree},
      {"scaled to 0…1, ImageNet mean, std 0.225", 1, imagenet, {0.225}, N::kThree},
      {"scaled to 0…1, CIFAR-10 mean and std", 1, cifar, {0.247, 0.2435, 0.2616}, N::kThree, "cifar10"},
      {"scaled to 0…1, CIFAR-10 mean and the std of one image",
       1,
       cifar,
       {0.2023, 0.1994, 0.201},
       N::kThree,
       "cifar10"},
      {"scaled to 0…1, CIFAR-10 mean, std 0.225", 1, cifar, {0.225}, N::kThree, "cifar10"},
      {"scaled to 0…1, CIFAR-100 mean and std",
       1,
       {0.5071, 0.4865, 0.4409},
       {0.2673, 0.2564, 0.2762},
       N::kThree,
       "cifar100"},
      {"0…255, ImageNet mean subtracted", 255, {123.68, 116.779, 103.939}, {}, N::kThree},
      {"0…255, BGR, ImageNet mean subtracted", 255, {103.939, 116.779, 123.68}, {}, N::kThree, "", true},
      {"scaled to 0…1, MNIST mean and std", 1, {0.1307}, {0.3081}, N::kOne, "mnist"},
      {"scaled to 0…1, Fashion-MNIST mean and std", 1, {0.286}, {0.353}, N::kOne, "fashion-mnist"},
      {"scaled to 0…1, ImageNet mean and std of the red channel", 1, {0.485}, {0.229}, N::kOne, "", false, true},
      {"scaled to 0…1, ImageNet mean and std of all channels", 1, {0.449}, {0.226}, N::kOne, "", false, true},
      {"bright and dark inverted", -1, {-1}, {}, N::kAny, "", false, true},
  };
  return all;
}

/// The data set that its name or the names of its classes tell; "" when nothing does.
std::string known_data(const Info& data) {
  static const std::vector<std::pair<const char*, std::vector<std::string>>> classes = {
      {"cifar10", {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}},
      {"fashion-mnist",
       {"Ankle boot", "Bag", "Coat", "Dress", "Pullover", "Sandal", "Shirt", "Sneaker", "T-shirt/top", "Trouser"}}};
  const std::string head = data.spec.substr(0, data.spec.find_first_of(":,"));
  for (const Normalising& way : normalisings())
    if (head == way.data && !head.empty()) return head;
  std::vector<std::string> names = data.classes;
  std::sort(names.begin(), names.end());
  for (const auto& [name, all] : classes)
    if (names == all) return name;
  return "";
}

/// Constants that are seldom copied to other data: CIFAR-100's are not those of ten classes, Fashion-MNIST's not those
/// of pictures that are darker or brighter.
bool is_of_other_data(const Normalising& way, const Info& data, double brightness) {
  const std::string_view of = way.data;
  return (of == "cifar100" && data.classes.size() == 10) ||
         (of == "fashion-mnist" && std::abs(brightness - 0.286) > 0.08);
}

bool suits(const Normalising& way, const Feature& feature, const std::string& known) {
  const std::string data = way.data;
  if (!data.empty() && !known.empty() && data != known) return false;
  return way.channels == Normalising::kAny || (way.channels == Normalising::kThree) == has_colors(feature);
}

/// The most likely first: the constants of the data set, where it is known, before those that are used with any.
std::vector<Normalising> by_likelihood(const std::string& known) {
  std::vector<Normalising> all = normalisings();
  std::stable_partition(all.begin(), all.end(), [&](const Normalising& way) {
    return way.mean.empty() ? way.factor > 0 : !known.empty() && way.data == known;
  });
  return all;
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
  const double most = values.max().item<double>();  // some small pictures have 16 shades
  source.brightness = most > 16.5 ? 1.0 / 255 : most > 1.5 ? 1.0 / 16 : 1;
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
  // Several constants may be near enough: the ones that give the whole range, then those that give whole bytes.
  const Feature& about = data.features[size_t(feature)];
  std::optional<Source> best;
  double least = INFINITY;
  for (const Normalising& way : normalisings()) {
    if (way.mean.empty() || way.factor < 0 || way.blue_first || !suits(way, about, "")) continue;
    at::Tensor std = way.std.empty() ? at::ones({1}) : along_channels(way.std, about);
    at::Tensor bright = (values * std + along_channels(way.mean, about)) / way.factor;
    const double low = bright.min().item<double>(), high = bright.max().item<double>();
    if (!within(bright, 1) || high <= 0.9 || low >= 0.1) continue;
    const at::Tensor bytes = bright * 255;
    const double off = (bytes - bytes.round()).abs().mean().item<double>();  // a quarter for any other constants
    const double distance = std::abs(low) + std::abs(1 - high) + off;
    if (distance >= least) continue;
    least = distance;
    best = source;
    best->offset = source.offset - along_channels(way.mean, about) / std * source.factor;
    best->factor = source.factor * way.factor / std;
    best->brightness = 1;
  }
  return best;
}

std::string list_text(const std::vector<double>& numbers) {
  std::vector<std::string> words;
  for (double number : numbers) words.push_back(fmt::format("{:.6g}", number));
  return join(words, ":");
}

/// The four options that say how values are scaled: those that are not given go.
Options scaling(const std::string& scale, const std::string& mean = "", const std::string& std = "",
                const std::string& per_image = "") {
  return {{"scale", scale}, {"mean", mean}, {"std", std}, {"per_image", per_image}};
}

std::string scale_text(double scale) {
  for (int whole : {255, 16})
    if (scale == 1.0 / whole) return fmt::format("1/{}", whole);
  return fmt::format("{:.6g}", scale);
}

Setup normalised(const Info& data, const Source& source, const Normalising& way) {
  const Feature& feature = data.features[size_t(source.feature)];
  Setup setup;
  setup.about = "scale";
  setup.words = way.words;
  setup.unusual = way.unusual;
  const bool plain = way.factor == 255 && way.mean.empty();  // as the file has it, whatever its range
  const double scale = plain && source.brightness < 1 ? 1 : source.brightness * way.factor;
  setup.changes = scaling(scale_text(scale), list_text(way.mean), list_text(way.std));
  if (way.blue_first) (*setup.changes)["color"] = "BGR";
  const bool flip = way.blue_first && data.preprocess.color != "BGR";
  at::Tensor mean = way.mean.empty() ? at::zeros({1}) : along_channels(way.mean, feature);
  at::Tensor std = way.std.empty() ? at::ones({1}) : along_channels(way.std, feature);
  setup.apply = [=, axis = channel_axis(feature)](Batch& batch) {
    at::Tensor& values = batch.inputs[size_t(source.feature)];
    at::Tensor raw = (values - source.offset) / source.factor;
    if (flip) raw = raw.flip({axis});
    values = (raw * scale - mean) / std;
  };
  return setup;
}

std::vector<double> numbers_of(const at::Tensor& tensor) {
  at::Tensor flat = tensor.flatten().to(at::kDouble).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

constexpr int64_t kMostNumbers = 64;   ///< of a mean that is written down
constexpr int64_t kFewestPixels = 64;  ///< of a row that may be an image

enum class Fit { kMean, kOneMean, kRange };

/// Each channel or column (kOneMean: all channels together) by its own mean and deviation in the data, or by its least
/// and largest value. What the values are scaled by now stays: mean and std are in units after it.
Setup fitted(const Info& data, const Batch& sample, const Source& source, Fit fit) {
  const Feature& feature = data.features[size_t(source.feature)];
  const bool by_range = fit == Fit::kRange, table = feature.shape.size() == 1 && !feature.image;
  const bool colors = has_colors(feature) && fit != Fit::kOneMean;
  const double scale = data.preprocess.scale.value_or(1);
  at::Tensor raw = (sample.inputs[size_t(source.feature)] - source.offset) / source.factor * scale;
  std::vector<int64_t> axes = {0};
  for (int64_t axis = 1; axis < raw.dim() && !table; ++axis)
    if (!colors || axis != channel_axis(feature)) axes.push_back(axis);
  at::Tensor mean = by_range ? raw.amin(axes, true) : raw.mean(axes, true);
  at::Tensor std = (by_range ? raw.amax(axes, true) - mean : raw.std(axes, false, true)).clamp_min(1e-8);
  if (table) {  // columns that say yes or no are left as they are
    at::Tensor flag = ((raw == 0) | (raw == 1)).all(0, true);
    mean = at::where(flag, at::zeros_like(mean), mean), std = at::where(flag, at::ones_like(std), std);
  }
  Setup setup;
  setup.about = "scale";
  setup.words = by_range                                      ? "each column by its own minimum and maximum"
                : table                                       ? "each column by its own mean and standard deviation"
                : fit == Fit::kOneMean && has_colors(feature) ? "by one mean and std of all channels of the data"
                                                              : "by the data's own mean and std";
  if (mean.numel() <= kMostNumbers)
    setup.changes = scaling(data.preprocess.scale ? scale_text(scale) : "1", list_text(numbers_of(mean)),
                            list_text(numbers_of(std)));
  setup.apply = [=](Batch& batch) {
    at::Tensor& values = batch.inputs[size_t(source.feature)];
    values = ((values - source.offset) / source.factor * scale - mean) / std;
  };
  return setup;
}

Setup each_image_standardised(const Info& data, const Source& source) {
  Setup setup;
  setup.about = "scale";
  setup.words = "each image standardised by its own mean and standard deviation";
  setup.changes = scaling(scale_text(source.brightness), "", "", "yes");
  setup.apply = [=](Batch& batch) {
    at::Tensor& values = batch.inputs[size_t(source.feature)];
    at::Tensor flat = ((values - source.offset) / source.factor * source.brightness).flatten(1);
    const double least = 1 / std::sqrt(double(flat.size(1)));
    values = ((flat - flat.mean(1, true)) / flat.std(1, false, true).clamp_min(least)).view_as(values);
  };
  setup.unusual = true;
  return setup;
}

/// What no option can say: the mean over the data of each pixel is taken off.
Setup mean_image_taken_off(const Info& data, const Batch& sample, const Source& source) {
  const double scale = data.preprocess.scale.value_or(source.brightness);
  const bool feature_is_picture = sample.inputs[size_t(source.feature)][0].numel() >= kFewestPixels;
  auto raw = [=](const Batch& batch) {
    return (batch.inputs[size_t(source.feature)] - source.offset) / source.factor * scale;
  };
  const at::Tensor mean = raw(sample).mean(0, true);
  return {"scale", feature_is_picture ? "the mean image subtracted" : "the mean of each value subtracted", std::nullopt,
          [=](Batch& batch) { batch.inputs[size_t(source.feature)] = raw(batch) - mean; }, true};
}

Setup arranged(const char* about, const char* words, std::optional<Options> changes, int feature,
               std::function<at::Tensor(const at::Tensor&)> change) {
  return {about, words, std::move(changes), [=](Batch& batch) {
            at::Tensor& values = batch.inputs[size_t(feature)];
            values = change(values).contiguous();
          }};
}

/// An image that is read as rows: `shape` of the file's rows, and in which order the network takes it.
Options as_rows(const std::vector<int64_t>& shape, const char* layout) {
  return {{"shape", fmt::format("{}", fmt::join(shape, "x"))}, {"layout", layout}};
}

void add_image_arrangements(const Info& data, const Batch& sample, int f, bool flat, std::vector<Setup>& all) {
  const Feature& feature = data.features[size_t(f)];
  const bool last = feature.channels_last;
  const int64_t channel = channel_axis(feature);
  const std::vector<int64_t>& shape = feature.shape;
  // What belongs to a channel, its mean and std, stays where it is when values move: they are moved as the source has
  // them.
  const Source source = read_brightness(data, sample, f).value_or(read_source(data, sample, f));
  auto as_in_source = [source](std::function<at::Tensor(const at::Tensor&)> change) {
    return [=](const at::Tensor& x) {
      return change((x - source.offset) / source.factor) * source.factor + source.offset;
    };
  };
  const int64_t c = last ? shape.back() : shape[0], rows = shape[last ? 0 : 1], columns = shape[last ? 1 : 2];
  const bool moved = !data.preprocess.shape.empty() || data.preprocess.resize;  // its memory is no longer the file's
  if (has_colors(feature)) {
    all.push_back(arranged("color", "red and blue swapped",
                           Options{{"color", data.preprocess.color == "BGR" ? "RGB" : "BGR"}}, f,
                           as_in_source([=](const at::Tensor& x) { return x.flip({channel}); })));
    auto other = [=](const at::Tensor& x) {  // values lie in memory as if the other axis came first
      int64_t n = x.size(0);
      return last ? x.reshape({n, c, rows, columns}).permute({0, 2, 3, 1})
                  : x.reshape({n, rows, columns, c}).permute({0, 3, 1, 2});
    };
    std::optional<Options> written = last ? as_rows({c, rows, columns}, "NHWC") : as_rows({rows, columns, c}, "NCHW");
    all.push_back(arranged("layout", last ? "values read as channels first" : "values read as channels last",
                           moved ? std::nullopt : written, f, as_in_source(other)));
    auto mixed = [=](const at::Tensor& x) {  // the same turned around: right axes, filled in the other order
      at::Tensor turned_axes = last ? x.permute({0, 3, 1, 2}) : x.permute({0, 2, 3, 1});
      return turned_axes.contiguous().view(x.sizes());
    };
    // A network that takes rows is given them in the order of the axes.
    std::optional<Options> order = flat ? std::optional(Options{{"layout", last ? "NCHW" : "NHWC"}}) : std::nullopt;
    all.push_back(arranged("layout", last ? "values laid out as channels first" : "values laid out as channels last",
                           order, f, as_in_source(mixed)));
  }
  const bool sideways = data.preprocess.layout == "NWHC" || data.preprocess.layout == "NCWH";
  if (rows == columns)
    all.push_back(arranged("orientation", "rows and columns swapped",
                           Options{{"layout", last ? (sideways ? "NHWC" : "NWHC") : (sideways ? "NCHW" : "NCWH")}}, f,
                           [=](const at::Tensor& x) { return x.transpose(last ? 1 : 2, last ? 2 : 3); }));
}

/// The side of the square images of so many channels that rows of numbers may be; 0 when they are none.
int64_t side_of_rows(const Feature& feature, int64_t channels) {
  if (feature.shape.size() != 1 || !feature.columns.empty()) return 0;
  const int64_t side = int64_t(std::lround(std::sqrt(double(feature.shape[0]) / double(channels))));
  return side >= 8 && side * side * channels == feature.shape[0] ? side : 0;
}

/// What can be done with the colours of images that come, and are taken, as plain rows of numbers: the rows are looked
/// at as images, channels first or last.
void add_colors_of_rows(const Info& data, const Batch& sample, int f, const std::string& known,
                        std::vector<Setup>& all) {
  const int64_t side = side_of_rows(data.features[size_t(f)], 3);
  if (!side) return;
  for (bool last : {false, true}) {
    const std::vector<int64_t> shape = last ? std::vector<int64_t>{side, side, 3} : std::vector<int64_t>{3, side, side};
    std::vector<int64_t> whole = shape;
    whole.insert(whole.begin(), -1);
    Info images = data;
    Feature& feature = images.features[size_t(f)];
    feature.shape = shape, feature.image = true, feature.channels_last = last;
    Batch seen = sample;
    seen.inputs[size_t(f)] = seen.inputs[size_t(f)].view(whole);
    const std::optional<Source> source = read_brightness(images, seen, f);
    if (!source) continue;
    auto add = [&](Setup setup) {
      setup.words += fmt::format(", rows as {}", fmt::join(shape, "×"));
      (*setup.changes)["shape"] = fmt::format("{}", fmt::join(shape, "x"));
      setup.apply = [=, of_images = setup.apply](Batch& batch) {
        at::Tensor& values = batch.inputs[size_t(f)];
        values = values.view(whole);
        of_images(batch);
        values = values.flatten(1);
      };
      all.push_back(std::move(setup));
    };
    for (const Normalising& way : by_likelihood(known))
      if (way.channels == Normalising::kThree && suits(way, feature, known) && !is_of_other_data(way, images, 0))
        add(normalised(images, *source, way));
    add(fitted(images, seen, *source, Fit::kMean));
  }
}

/// Square images that come as plain rows of numbers.
void add_flat_arrangements(const Feature& feature, int f, std::vector<Setup>& all) {
  for (int64_t channels : {1, 3}) {
    const int64_t side = side_of_rows(feature, channels), count = side * side * channels;
    if (!side) continue;
    auto add = [&](const char* about, const char* words, const Options& options, std::vector<int64_t> seen,
                   std::vector<int64_t> axes) {
      all.push_back(arranged(about, words, options, f, [=](const at::Tensor& x) {
        std::vector<int64_t> shape = seen;
        shape.insert(shape.begin(), x.size(0));
        return x.view(shape).permute(axes).reshape({x.size(0), count});
      }));
    };
    if (channels == 1) {
      add("orientation", "rows and columns swapped", as_rows({side, side}, "NCWH"), {side, side}, {0, 2, 1});
    } else {
      add("layout", "channels last in the file, first for the network", as_rows({side, side, 3}, "NCHW"),
          {side, side, 3}, {0, 3, 1, 2});
      add("layout", "channels first in the file, last for the network", as_rows({3, side, side}, "NHWC"),
          {3, side, side}, {0, 2, 3, 1});
      add("orientation", "rows and columns swapped", as_rows({3, side, side}, "NCWH"), {3, side, side}, {0, 1, 3, 2});
    }
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
          all.push_back({"mask", "token id 0 masked", std::nullopt,
                         [=](Batch& batch) { batch.inputs[f] = (batch.inputs[ids] != 0).to(at::kLong); }});
    if (lower(feature.name).find("mask") != std::string::npos) {
      all.push_back(arranged("mask", "mask inverted", std::nullopt, int(f), [](const at::Tensor& x) { return 1 - x; }));
      all.push_back(arranged("mask", "nothing masked", std::nullopt, int(f),
                             [](const at::Tensor& x) { return at::ones_like(x); }));
      continue;
    }
    for (int64_t by : {-3, -2, -1, 1, 2, 3})
      all.push_back(arranged("ids", by < 0 ? "token ids lower by a few" : "token ids higher by a few", std::nullopt,
                             int(f), [=](const at::Tensor& x) { return at::where(x > 0, (x + by).clamp_min(0), x); }));
    all.push_back(arranged("ids", "tokens in reverse order", std::nullopt, int(f),
                           [](const at::Tensor& x) { return x.flip({1}); }));
  }
}

}  // namespace

namespace {

/// Pixels of a picture a row: so many columns of bytes that they make a square.
bool holds_pictures(const Feature& feature, const at::Tensor& raw) {
  const int64_t count = feature.shape.at(0);
  const auto side = int64_t(std::lround(std::sqrt(double(count))));
  return side >= 8 && side * side == count && raw.min().item<double>() >= 0 && raw.max().item<double>() <= 255 &&
         raw.max().item<double>() > 16.5;
}

/// A table is encoded by its training rows, so what else it could be fed as is read again.
std::vector<Setup> table_scalings(const Info& data, const Batch& sample, int f) {
  std::vector<Setup> all;
  const dataset::Spec spec = dataset::parse_spec(data.spec);
  auto again = [&](const std::string& way) -> std::shared_ptr<const dataset::Dataset> {
    dataset::Spec other = spec;
    for (const char* key : {"scale", "mean", "std"}) other.options.erase(key);
    other.options["standardize"] = way;
    other.text = dataset::spec_text(other);
    return dataset::open(other);
  };
  auto add = [&](const std::string& words, const std::shared_ptr<const dataset::Dataset>& table, Options changes,
                 double scale, double mean, double std) {
    all.push_back({"scale", words, std::move(changes), [=](Batch& batch) {
                     batch.inputs[size_t(f)] = (table->read(batch.samples).inputs[size_t(f)] * scale - mean) / std;
                   }});
  };
  const auto raw = again("no");
  if (holds_pictures(data.features[size_t(f)], raw->read(sample.samples).inputs[size_t(f)]))
    for (const Normalising& way : normalisings()) {
      if (way.channels == Normalising::kThree) continue;
      const double scale = way.factor / 255, mean = way.mean.empty() ? 0 : way.mean[0],
                   std = way.std.empty() ? 1 : way.std[0];
      Options changes = scaling(scale_text(scale), list_text(way.mean), list_text(way.std));
      changes["standardize"] = "";
      add(way.words, raw, std::move(changes), scale, mean, std);
    }
  for (const auto& [way, words] : {std::pair{"yes", "each column by its own mean and standard deviation"},
                                   {"minmax", "each column by its own minimum and maximum"},
                                   {"no", "columns as they are in the file"}}) {
    Options changes = scaling("");
    changes["standardize"] = way;
    add(words, std::string(way) == "no" ? raw : again(way), std::move(changes), 1, 0, 1);
  }
  return all;
}

bool is_table_file(const Info& data, int f) {
  return !data.features[size_t(f)].columns.empty() && (data.spec.starts_with("csv:") || data.spec.starts_with("adult"));
}

}  // namespace

std::vector<Setup> scalings(const Info& data, const Batch& sample) {
  std::vector<Setup> all;
  int f = quantities(data);
  if (f < 0 || data.preprocess.per_image) return all;  // what each image was divided by is not kept
  const Feature& feature = data.features[size_t(f)];
  if (is_table_file(data, f)) return table_scalings(data, sample, f);
  if (std::optional<Source> source = feature.columns.empty() ? read_brightness(data, sample, f) : std::nullopt) {
    const std::string known = known_data(data);
    const at::Tensor values = (sample.inputs[size_t(f)] - source->offset) / source->factor;
    const double brightness = values.mean().item<double>() * source->brightness;
    for (const Normalising& way : by_likelihood(known))
      if (suits(way, feature, known) && !is_of_other_data(way, data, brightness)) {
        all.push_back(normalised(data, *source, way));
        all.back().of_this_data = !known.empty() && way.data == known;
      }
    all.push_back(fitted(data, sample, *source, Fit::kMean));
    if (has_colors(feature)) all.push_back(fitted(data, sample, *source, Fit::kOneMean));
    add_colors_of_rows(data, sample, f, known, all);
    // Rows of brightness are images that lie flat.
    if (feature.image || (feature.shape.size() == 1 && feature.shape[0] >= kFewestPixels)) {
      all.push_back(each_image_standardised(data, *source));
      all.push_back(mean_image_taken_off(data, sample, *source));
    }
  } else if (feature.shape.size() == 1) {
    for (Fit fit : {Fit::kMean, Fit::kRange}) all.push_back(fitted(data, sample, read_source(data, sample, f), fit));
  }
  return all;
}

std::vector<Setup> arrangements(const Info& data, const Batch& sample, bool flat) {
  std::vector<Setup> all;
  int f = quantities(data);
  if (f >= 0 && data.features[size_t(f)].image && data.features[size_t(f)].shape.size() == 3)
    add_image_arrangements(data, sample, f, flat, all);
  if (f >= 0) add_flat_arrangements(data.features[size_t(f)], f, all);
  add_id_arrangements(data, all);
  return all;
}

bool fit_together(const Setup& axes, const Setup& scale) {
  if (!axes.changes || !scale.changes || !axes.changes->count("shape") || !scale.changes->count("shape")) return true;
  const auto layout = axes.changes->find("layout");
  const bool last = layout != axes.changes->end() && layout->second.ends_with("C");
  return last == scale.changes->at("shape").ends_with("x3");
}

std::vector<Setup> stretches(const Info& data, const Batch& sample) {
  std::vector<Setup> all;
  const int f = quantities(data);
  if (f < 0) return all;
  const double deviation = sample.inputs[size_t(f)].std().item<double>();
  for (double factor : {0.5, 0.7, 1.0, 1.4, 2.0})
    for (double shift : {-1.0, -0.5, 0.0, 0.5, 1.0})
      if (factor != 1 || shift != 0)
        all.push_back({"scale", fmt::format("values times {:g}, plus {:g}", factor, shift * deviation), std::nullopt,
                       [=](Batch& batch) {
                         at::Tensor& values = batch.inputs[size_t(f)];
                         values = values * factor + shift * deviation;
                       }});
  return all;
}

std::optional<Options> merged(const Info& data, const std::vector<Setup>& setups) {
  Options options = dataset::options_of(data.preprocess);
  for (const char* size : {"resize", "crop", "filter", "antialias"}) options.erase(size);
  for (const Setup& setup : setups) {
    if (!setup.changes) return std::nullopt;
    for (const auto& [key, value] : *setup.changes) options[key] = value;
  }
  std::erase_if(options, [](const auto& option) { return option.second.empty(); });
  return options;
}

}  // namespace netmend::preflight
