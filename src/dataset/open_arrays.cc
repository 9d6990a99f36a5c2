// Specs whose data lies in IDX and CIFAR files, and the built-in sets that come in them.
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "dataset/array_dataset.h"
#include "dataset/cifar.h"
#include "dataset/idx.h"
#include "dataset/locate.h"
#include "dataset/readers.h"

namespace netmend::dataset {
namespace {

using Options = std::map<std::string, std::string>;

/// The spec's options over the defaults of a built-in set.
Options with_defaults(const Spec& spec, Options defaults) {
  Options options = spec.options;
  options.merge(defaults);
  return options;
}

struct IdxPair {
  std::string images, labels;
};

IdxPair find_mnist(const std::string& name, const std::string& part) {
  auto names = [&](const char* what, int axes) {
    return std::vector<std::string>{fmt::format("{}-{}-idx{}-ubyte", part, what, axes),
                                    fmt::format("{}-{}.idx{}-ubyte", part, what, axes)};
  };
  for (const std::string& folder : data_folders(name)) {
    IdxPair pair{file_in(folder, names("images", 3)), file_in(folder, names("labels", 1))};
    if (!pair.images.empty() && !pair.labels.empty()) return pair;
  }
  data_missing(name, fmt::format("{0}-images-idx3-ubyte[.gz] and {0}-labels-idx1-ubyte[.gz]", part));
}

/// Two arrays of the same kind as one.
Array append(const Array& a, const Array& b) {
  if (a.sample_shape() != b.sample_shape() || a.type != b.type)
    fail("{} and {} hold samples of different shape or type", a.bytes->name(), b.bytes->name());
  std::vector<int64_t> shape = a.shape;
  shape[0] += b.shape[0];
  return make_array(
      joined({part_of(a.bytes, a.offset, a.count() * a.stride), part_of(b.bytes, b.offset, b.count() * b.stride)}), 0,
      a.type, a.swapped, shape);
}

const char* const kGarments = "T-shirt/top:Trouser:Pullover:Dress:Coat:Sandal:Shirt:Sneaker:Bag:Ankle boot";
const char* const kCifarClasses = "airplane:automobile:bird:cat:deer:dog:frog:horse:ship:truck";

}  // namespace

std::unique_ptr<Dataset> open_mnist(const Spec& spec) {
  std::vector<std::string> parts, files;
  if (spec.rest != "test" && !spec.rest.empty()) parts.push_back("train");
  if (spec.rest != "train") parts.push_back("t10k");
  std::optional<Array> images, labels;
  for (const std::string& part : parts) {
    IdxPair pair = find_mnist(spec.head, part);
    Array more_images = read_idx(open_bytes(pair.images)), more_labels = read_idx(open_bytes(pair.labels));
    images = images ? append(*images, more_images) : more_images;
    labels = labels ? append(*labels, more_labels) : more_labels;
    files.insert(files.end(), {pair.images, pair.labels});
  }
  if (images->shape.size() != 3) fail("{} does not hold images: {}", files[0], shape_text(images->shape));
  Options options =
      with_defaults(spec, {{"scale", "1/255"}, {"classes", spec.head == "mnist" ? "0:1:2:3:4:5:6:7:8:9" : kGarments}});
  return std::make_unique<ArrayDataset>(std::vector<ArrayInput>{{"x", *images, Form::kRowsColumns}}, labels, options,
                                        files);
}

std::unique_ptr<Dataset> open_idx(const Spec& spec) {
  std::vector<std::string> files = {spec.rest};
  Array images = read_idx(open_bytes(spec.rest));
  std::optional<Array> labels;
  if (auto given = spec.options.find("labels"); given != spec.options.end()) {
    labels = read_idx(open_bytes(given->second));
    files.push_back(given->second);
  }
  Form form = images.shape.size() == 3   ? Form::kRowsColumns
              : images.shape.size() == 4 ? Form::kRowsColumnsChannels
                                         : Form::kPlain;
  return std::make_unique<ArrayDataset>(std::vector<ArrayInput>{{"x", images, form}}, labels, spec.options, files);
}

namespace {

std::unique_ptr<Dataset> open_cifar_files(const std::vector<std::string>& files, const Options& options) {
  std::vector<BytesPtr> bytes;
  for (const std::string& file : files) bytes.push_back(open_bytes(file));
  CifarArrays arrays = read_cifar(bytes);
  return std::make_unique<ArrayDataset>(std::vector<ArrayInput>{{"x", arrays.images, Form::kChannelsRowsColumns}},
                                        arrays.labels, options, files);
}

}  // namespace

std::unique_ptr<Dataset> open_cifar10(const Spec& spec) {
  std::string split = spec.rest.empty() ? "test" : spec.rest;
  for (const std::string& folder : data_folders("cifar10"))
    for (const char* inside : {"", "/cifar-10-batches-bin"})
      if (std::vector<std::string> files = cifar_files(folder + inside, split); !files.empty())
        return open_cifar_files(files, with_defaults(spec, {{"scale", "1/255"}, {"classes", kCifarClasses}}));
  data_missing("cifar10", split == "test" ? "test_batch.bin[.gz] or cifar10_test_*.bin.gz"
                                          : "data_batch_1.bin[.gz] … or cifar10_train_*.bin.gz");
}

std::unique_ptr<Dataset> open_cifar(const Spec& spec) {
  std::vector<std::string> files = {spec.rest};
  auto given = spec.options.find("split");
  const std::vector<std::string> splits = {"train", "test", "all"};
  if (given != spec.options.end() && std::find(splits.begin(), splits.end(), given->second) == splits.end())
    fail("split={} is unknown{}: choose from {}", given->second, did_you_mean(given->second, splits),
         join(splits, ", "));
  std::error_code ignored;
  if (std::filesystem::is_directory(spec.rest, ignored)) {
    files = cifar_files(spec.rest, given != spec.options.end() ? given->second : "test");
    if (files.empty() && given == spec.options.end()) files = cifar_files(spec.rest, "all");
    if (files.empty()) fail("{} holds no CIFAR-10 binary files (data_batch_1.bin, test_batch.bin …)", spec.rest);
  }
  return open_cifar_files(files, with_defaults(spec, {{"classes", kCifarClasses}}));
}

}  // namespace netmend::dataset
