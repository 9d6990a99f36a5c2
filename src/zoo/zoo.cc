#include "zoo/zoo.h"

#include <ATen/ATen.h>

#include <functional>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "zoo/builder.h"

namespace netmend::zoo {
namespace {

using model::Graph;
using model::ValueId;

constexpr int64_t kReviewWords = 17869;  ///< ids of the built-in movie reviews lie below this
constexpr int64_t kClasses = 10;
constexpr Builder::Window kFiveSame{.kernel = 5, .padding = 2};
constexpr Builder::Window kThreeSame{.kernel = 3, .padding = 1};
constexpr Builder::Window kThreeValid{.kernel = 3};

/// Dense layers with relu between them: fc1, fc2 … The last one gives the logits.
Graph dense_layers(Builder& b, ValueId x, const std::vector<int64_t>& sizes) {
  for (size_t i = 1; i < sizes.size(); ++i) {
    x = b.dense(fmt::format("fc{}", i), x, sizes[i - 1], sizes[i]);
    if (i + 1 < sizes.size()) x = b.relu(x);
  }
  return b.finish(x, "logits", sizes.back());
}

/// LeCun et al. 1998 as DeepXplore and its followers build them: same padding, max pooling, relu.
Graph lenet(Builder& b, int64_t first, int64_t second, const std::vector<int64_t>& hidden) {
  ValueId x = b.input("image", {1, 28, 28});
  x = b.max_pool(b.relu(b.conv("conv1", x, 1, first, kFiveSame)));
  x = b.max_pool(b.relu(b.conv("conv2", x, first, second, kFiveSame)));
  std::vector<int64_t> sizes{7 * 7 * second};
  sizes.insert(sizes.end(), hidden.begin(), hidden.end());
  sizes.push_back(kClasses);
  return dense_layers(b, b.flatten(x), sizes);
}

Graph multi_layer(Builder& b, const std::vector<int64_t>& sizes) {
  return dense_layers(b, b.input("input", {sizes.at(0)}), sizes);
}

/// <CL, 4> and <CL, CL, 4>: 3×3 convolutions of 8 maps, each with a pool, then four dense units.
Graph small_cnn(Builder& b, int convolutions) {
  ValueId x = b.input("image", {1, 28, 28});
  int64_t channels = 1, side = 28;
  for (int i = 1; i <= convolutions; ++i) {
    x = b.max_pool(b.relu(b.conv(fmt::format("conv{}", i), x, channels, 8, kThreeValid)));
    channels = 8, side = (side - 2) / 2;
  }
  return dense_layers(b, b.flatten(x), {channels * side * side, 4, kClasses});
}

Graph cifar_convnet(Builder& b) {
  ValueId x = b.input("image", {3, 32, 32});
  int64_t channels = 3;
  int number = 0;
  for (int64_t units : {32, 64, 128}) {
    for (int64_t from : {channels, units})
      x = b.relu(b.conv(fmt::format("conv{}", ++number), x, from, units, kThreeSame));
    x = b.dropout(b.max_pool(x), 0.25);
    channels = units;
  }
  x = b.dropout(b.relu(b.dense("fc1", b.flatten(x), channels * 4 * 4, 320)), 0.5);
  return b.finish(b.dense("fc2", x, 320, kClasses), "logits", kClasses);
}

/// DeepImportance's network for CIFAR-10: Keras's example for these images (convolutions without padding, as the
/// program's stored relevances have them) with a dense layer of 128 units before the output. That makes the published
/// 952,234 parameters, and 20 layers where activations and dropout count; docs/studies.md has the sum.
Graph cifar_deepimportance(Builder& b) {
  ValueId x = b.input("image", {3, 32, 32});
  int64_t channels = 3;
  int number = 0;
  for (int64_t units : {32, 64}) {
    for (int64_t from : {channels, units})
      x = b.relu(b.conv(fmt::format("conv{}", ++number), x, from, units, kThreeValid));
    x = b.dropout(b.max_pool(x), 0.25);
    channels = units;
  }
  x = b.dropout(b.relu(b.dense("fc1", b.flatten(x), channels * 5 * 5, 512)), 0.5);
  x = b.relu(b.dense("fc2", x, 512, 128));
  return b.finish(b.dense("fc3", x, 128, kClasses), "logits", kClasses);
}

ValueId normed_conv(Builder& b, const std::string& path, const std::string& number, ValueId x, int64_t channels,
                    int64_t units, Builder::Window window) {
  window.bias = false;
  return b.batch_norm(path + "bn" + number, b.conv(path + "conv" + number, x, channels, units, window), units);
}

/// Two convolutions and a way around them, which a 1×1 convolution carries where sizes change.
ValueId residual_block(Builder& b, const std::string& path, ValueId x, int64_t channels, int64_t units,
                       int64_t stride) {
  ValueId y = b.relu(normed_conv(b, path, "1", x, channels, units, {.kernel = 3, .stride = stride, .padding = 1}));
  y = normed_conv(b, path, "2", y, units, units, kThreeSame);
  if (stride > 1 || channels != units) {
    ValueId narrow = b.conv(path + "downsample.0", x, channels, units, {.kernel = 1, .stride = stride, .bias = false});
    x = b.batch_norm(path + "downsample.1", narrow, units);
  }
  return b.relu(b.add(path + "add", y, x));
}

/// He et al. 2016 for CIFAR-10, three blocks a stage.
Graph resnet20(Builder& b) {
  ValueId x = b.relu(normed_conv(b, "", "1", b.input("image", {3, 32, 32}), 3, 16, kThreeSame));
  int64_t channels = 16;
  for (int64_t stage = 1; stage <= 3; ++stage) {
    int64_t units = 8 << stage;
    for (int block = 0; block < 3; ++block) {
      int64_t stride = block == 0 && stage > 1 ? 2 : 1;
      x = residual_block(b, fmt::format("layer{}.{}.", stage, block), x, channels, units, stride);
      channels = units;
    }
  }
  x = b.flatten(b.plain("GlobalAveragePool", {x}));
  return b.finish(b.dense("fc", x, channels, kClasses), "logits", kClasses);
}

/// 1×1, 3×3 and 1×1 again, with four times as many units at the end.
ValueId bottleneck(Builder& b, const std::string& path, ValueId x, int64_t channels, int64_t units, int64_t stride) {
  ValueId y = b.relu(normed_conv(b, path, "1", x, channels, units, {.kernel = 1}));
  y = b.relu(normed_conv(b, path, "2", y, units, units, {.kernel = 3, .stride = stride, .padding = 1}));
  y = normed_conv(b, path, "3", y, units, 4 * units, {.kernel = 1});
  if (stride > 1 || channels != 4 * units) {
    ValueId wide =
        b.conv(path + "downsample.0", x, channels, 4 * units, {.kernel = 1, .stride = stride, .bias = false});
    x = b.batch_norm(path + "downsample.1", wide, 4 * units);
  }
  return b.relu(b.add(path + "add", y, x));
}

/// He et al. 2016 for ImageNet, as torchvision builds it: the stride is that of the 3×3 convolution.
Graph resnet50(Builder& b) {
  constexpr int64_t classes = 1000;
  ValueId x =
      b.relu(normed_conv(b, "", "1", b.input("image", {3, 224, 224}), 3, 64, {.kernel = 7, .stride = 2, .padding = 3}));
  x = b.plain("MaxPool", {x},
              {{"kernel_shape", std::vector<int64_t>{3, 3}},
               {"strides", std::vector<int64_t>{2, 2}},
               {"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  int64_t channels = 64, stage = 0;
  for (int blocks : {3, 4, 6, 3}) {
    const int64_t units = int64_t(64) << stage++;
    for (int block = 0; block < blocks; ++block) {
      x = bottleneck(b, fmt::format("layer{}.{}.", stage, block), x, channels, units, block == 0 && stage > 1 ? 2 : 1);
      channels = 4 * units;
    }
  }
  x = b.flatten(b.plain("GlobalAveragePool", {x}));
  return b.finish(b.dense("fc", x, channels, classes), "logits", classes);
}

/// Bojarski et al. 2016 on 100×100 frames; the output is the steering angle.
Graph dave2(Builder& b) {
  ValueId x = b.input("image", {3, 100, 100});
  struct Stage {
    int64_t units, kernel, stride;
  };
  int64_t channels = 3;
  int number = 0;
  for (Stage s : {Stage{24, 5, 2}, Stage{36, 5, 2}, Stage{48, 5, 2}, Stage{64, 3, 1}, Stage{64, 3, 1}}) {
    std::string name = fmt::format("conv{}", ++number);
    x = b.relu(b.conv(name, x, channels, s.units, {.kernel = s.kernel, .stride = s.stride}));
    channels = s.units;
  }
  x = b.flatten(x);
  const std::vector<int64_t> sizes{64 * 5 * 5, 1164, 100, 50, 10};
  for (size_t i = 1; i < sizes.size(); ++i) x = b.relu(b.dense(fmt::format("fc{}", i), x, sizes[i - 1], sizes[i]));
  return b.finish(b.dense("fc5", x, sizes.back(), 1), "steering", 1);
}

/// Kim 2014: windows of 3, 4 and 5 words over word vectors, the largest activation of each filter over the sentence.
Graph textcnn(Builder& b, int64_t vocabulary) {
  constexpr int64_t length = 56, width = 300, maps = 100;
  ValueId words = b.embedding("embedding", b.input("ids", {length}, model::Element::kInt64), vocabulary, width);
  ValueId x = b.plain("Transpose", {words}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  std::vector<ValueId> pooled;
  for (int64_t window : {3, 4, 5}) {
    ValueId maps_of = b.relu(b.conv1d(fmt::format("conv{}", window), x, width, maps, window));
    pooled.push_back(b.flatten(b.plain("GlobalMaxPool", {maps_of})));
  }
  x = b.dropout(b.plain("Concat", pooled, {{"axis", int64_t(1)}}), 0.5);
  return b.finish(b.dense("fc", x, 3 * maps, 2), "logits", 2);
}

using Maker = std::function<Graph(Builder&, const InitOptions&)>;

const std::vector<std::pair<std::string, Maker>>& makers() {
  static const std::vector<std::pair<std::string, Maker>> all = {
      {"lenet1", [](Builder& b, const auto&) { return lenet(b, 4, 12, {}); }},
      {"lenet4", [](Builder& b, const auto&) { return lenet(b, 6, 16, {84}); }},
      {"lenet5",
       [](Builder& b, const auto&) {
         return lenet(b, 6, 16, {120, 84});
       }},
      {"dnn1",
       [](Builder& b, const auto&) {
         return multi_layer(b, {784, 16, kClasses});
       }},
      {"dnn2",
       [](Builder& b, const auto&) {
         return multi_layer(b, {784, 16, 16, 16, 16, kClasses});
       }},
      {"cnn1", [](Builder& b, const auto&) { return small_cnn(b, 1); }},
      {"cnn2", [](Builder& b, const auto&) { return small_cnn(b, 2); }},
      {"cifar-convnet", [](Builder& b, const auto&) { return cifar_convnet(b); }},
      {"cifar-deepimportance", [](Builder& b, const auto&) { return cifar_deepimportance(b); }},
      {"resnet20", [](Builder& b, const auto&) { return resnet20(b); }},
      {"resnet50", [](Builder& b, const auto&) { return resnet50(b); }},
      {"dave2", [](Builder& b, const auto&) { return dave2(b); }},
      {"textcnn",
       [](Builder& b, const InitOptions& o) { return textcnn(b, o.vocabulary ? o.vocabulary : kReviewWords); }},
  };
  return all;
}

/// `mlp:784-64-10`. What a user types must not ask for more memory than a model file may hold.
std::vector<int64_t> parse_sizes(const std::string& name) {
  constexpr int64_t most_units = 1 << 20, most_parameters = int64_t(1) << 28;
  constexpr size_t most_layers = 256;
  std::vector<int64_t> sizes;
  std::vector<std::string> parts = split(std::string_view(name).substr(4), '-');
  if (parts.size() < 2 || parts.size() > most_layers)
    throw InputError(fmt::format("`{}` has {} sizes, expected 2 to {}", name.substr(0, 60), parts.size(), most_layers),
                     "Inputs, hidden units, outputs: mlp:784-64-10");
  int64_t parameters = 0;
  for (const std::string& part : parts) {
    int64_t size = 0;
    if (!parse_int(part, size) || size < 1 || size > most_units)
      fail("`{}`: `{}` is not a number of units (1 to {})", name.substr(0, 60), part.substr(0, 30),
           with_commas(most_units));
    if (!sizes.empty()) parameters += (sizes.back() + 1) * size;
    sizes.push_back(size);
    if (parameters > most_parameters)
      fail("`{}` has more than {} parameters", name.substr(0, 60), with_commas(most_parameters));
  }
  return sizes;
}

}  // namespace

const std::vector<std::string>& names() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> list;
    for (const auto& [name, maker] : makers()) list.push_back(name);
    list.push_back("mlp:784-64-10");
    return list;
  }();
  return all;
}

Graph make(const std::string& name, const InitOptions& options) {
  if (options.vocabulary < 0 || options.vocabulary > 10'000'000)
    fail("a vocabulary of {} words is out of bounds", options.vocabulary);
  Builder builder(name, parse_scheme(options.scheme), options.seed);
  if (name.starts_with("mlp:")) return multi_layer(builder, parse_sizes(name));
  for (const auto& [known, maker] : makers())
    if (known == name) return maker(builder, options);
  throw InputError(fmt::format("there is no architecture `{}`{}", name.substr(0, 60), did_you_mean(name, names())),
                   "Choose from " + join(names(), ", ") + " (any sizes).");
}

int64_t parameter_count(const Graph& graph) {
  int64_t count = 0;
  for (const auto& [id, constant] : graph.constants) {
    const std::string& name = graph.values[size_t(id)].name;
    if (name.ends_with(".weight") || name.ends_with(".bias")) count += constant.value.numel();
  }
  return count;
}

}  // namespace netmend::zoo
