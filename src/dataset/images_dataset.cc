// images:DIR, a folder per class. Files are decoded when they are asked for.
#include <ATen/ATen.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "dataset/image_file.h"
#include "dataset/labels.h"
#include "dataset/options.h"
#include "dataset/readers.h"
#include "dataset/transform.h"

namespace netmend::dataset {
namespace {

namespace fs = std::filesystem;

bool is_image_name(const std::string& name) {
  const std::string small = lower(name);
  return !small.starts_with(".") && (small.ends_with(".png") || small.ends_with(".jpg") || small.ends_with(".jpeg"));
}

/// Finds the images below folders. A folder is entered once, whatever links lead to it, and a place that holds next to
/// nothing but other files is given up.
class ImageSearch {
 public:
  explicit ImageSearch(fs::path root) : root_(std::move(root)) {}

  /// Paths below `folder`, relative to the root, in the order of their names.
  std::vector<std::string> below(const std::string& folder) {
    std::vector<std::string> files;
    std::set<std::pair<dev_t, ino_t>> entered;
    if (!folder.empty()) enter(root_, entered);  // a link upwards is no class within itself
    std::vector<fs::path> left{root_ / folder};
    while (!left.empty()) {
      const fs::path here = left.back();
      left.pop_back();
      if (!enter(here, entered)) continue;
      std::error_code error;
      fs::directory_iterator entry(here, error), end;
      for (; !error && entry != end; entry.increment(error)) {
        stop_if_interrupted();
        std::error_code ignored;
        if (entry->is_directory(ignored))
          left.push_back(entry->path());
        else if (is_image_name(entry->path().filename().string()))
          files.push_back(entry->path().lexically_relative(root_).string()), ++images_;
        if (++looked_at_ >= kPatience && images_ * 100 < looked_at_)
          throw InputError(fmt::format("{} holds {} images among the first {} files", root_.string(), images_,
                                       with_commas(looked_at_)),
                           "Name the folder that holds the images.");
      }
      if (error) fail("cannot read the folder {}: {}", here.string(), error.message());
    }
    std::sort(files.begin(), files.end());
    return files;
  }

 private:
  static constexpr int64_t kPatience = 100'000;

  static bool enter(const fs::path& folder, std::set<std::pair<dev_t, ino_t>>& entered) {
    struct stat about {};
    return ::stat(folder.c_str(), &about) == 0 && entered.emplace(about.st_dev, about.st_ino).second;
  }

  fs::path root_;
  int64_t looked_at_ = 0, images_ = 0;
};

class ImagesDataset : public Dataset {
 public:
  explicit ImagesDataset(const Spec& spec) : root_(spec.rest) {
    OptionMap options = spec.options;
    options.emplace("layout", "NCHW");
    find_files(options);
    info_.size = int64_t(files_.size());
    info_.files = {root_};
    info_.preprocess = parse_preprocess(options);
    choose_channels(options);
    ImageHead first = head(0);
    check_sizes(first);
    transform_ =
        Transform(info_.preprocess, Form::kRowsColumnsChannels, {first.height, first.width, channels_}, spec.text);
    height_ = first.height, width_ = first.width;
    info_.features = {transform_.feature("x")};
  }

  Batch read(std::span<const int64_t> samples) const override {
    Batch batch;
    std::vector<int64_t> shape = transform_.shape();
    shape.insert(shape.begin(), int64_t(samples.size()));
    at::Tensor x = at::empty(shape, at::kFloat);
    const int64_t step = samples.empty() ? 0 : x.numel() / int64_t(samples.size());
    for (size_t i = 0; i < samples.size(); ++i) {
      Image image = decode(samples[i]);
      transform_.apply_image(interleaved<uint8_t>(image.pixels.data(), image.height, image.width, channels_),
                             x.data_ptr<float>() + int64_t(i) * step);
    }
    batch.inputs = {x};
    batch.masks.resize(1);
    if (info_.labels == LabelKind::kClass) {
      batch.labels = at::empty({int64_t(samples.size())}, at::kLong);
      for (size_t i = 0; i < samples.size(); ++i) batch.labels.data_ptr<int64_t>()[i] = classes_[size_t(samples[i])];
    }
    batch.samples.assign(samples.begin(), samples.end());
    return batch;
  }

  std::string id(int64_t sample) const override { return files_.at(size_t(sample)); }

  Display display(int64_t sample) const override {
    Image image = decode(sample);
    return transform_.display_image(interleaved<uint8_t>(image.pixels.data(), image.height, image.width, channels_));
  }

 private:
  void find_files(const OptionMap& options) {
    std::vector<std::string> folders;
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(root_, error))
      if (entry.is_directory(error) && !entry.path().filename().string().starts_with("."))
        folders.push_back(entry.path().filename().string());
    if (error) fail("cannot read the folder {}: {}", root_, error.message());
    std::sort(folders.begin(), folders.end());
    ImageSearch search(root_);
    for (const std::string& folder : folders) {
      std::vector<std::string> found = search.below(folder);
      if (found.empty()) continue;
      info_.classes.push_back(folder);
      classes_.insert(classes_.end(), found.size(), int32_t(info_.classes.size() - 1));
      files_.insert(files_.end(), found.begin(), found.end());
    }
    if (!files_.empty()) {
      info_.labels = LabelKind::kClass;
      if (options.count("classes")) reorder(list_option(options, "classes"));
      return;
    }
    files_ = ImageSearch(root_).below("");
    if (options.count("classes")) info_.classes = list_option(options, "classes");
    if (files_.empty()) fail("{} holds no PNG or JPEG images", root_);
  }

  /// `classes=` gives the folders the numbers they had in training.
  void reorder(const std::vector<std::string>& order) {
    std::vector<int32_t> number;
    for (const std::string& folder : info_.classes) {
      auto place = std::find(order.begin(), order.end(), folder);
      if (place == order.end())
        fail("{} has a folder '{}' that classes={} does not name{}", root_, folder, join(order, ":"),
             did_you_mean(folder, order));
      number.push_back(int32_t(place - order.begin()));
    }
    for (int32_t& label : classes_) label = number[size_t(label)];
    info_.classes = order;
  }

  std::string path(int64_t sample) const { return (fs::path(root_) / files_.at(size_t(sample))).string(); }
  ImageHead head(int64_t sample) const {
    return read_image_head(read_file(path(sample), int64_t(256) << 20), path(sample));
  }

  void choose_channels(const OptionMap& options) {
    channels_ = int_option(options, "channels", 0, 1, 3);
    if (channels_ == 2) fail("channels=2 is not possible: 1 is grey, 3 is colour");
    for (int64_t i = 0; i < std::min<int64_t>(info_.size, 64) && channels_ != 3 && !options.count("channels"); ++i)
      channels_ = head(i).color ? 3 : 1;
  }

  [[noreturn]] void other_size(int64_t sample, int64_t height, int64_t width, int64_t first_height,
                               int64_t first_width) const {
    throw InputError(fmt::format("{} is {}×{}, {} is {}×{}: a batch needs images of one size", path(sample), height,
                                 width, path(0), first_height, first_width),
                     "Were they resized in training? Then add resize=256,crop=224 or resize=32x32.");
  }
  /// A look at some of the files, so that the usual mistake shows at once.
  void check_sizes(const ImageHead& first) const {
    if (info_.preprocess.resize) return;
    const int64_t step = std::max<int64_t>(1, info_.size / 16);
    for (int64_t i = 0; i < info_.size; i += step) {
      ImageHead other = head(i);
      if (other.height != first.height || other.width != first.width)
        other_size(i, other.height, other.width, first.height, first.width);
    }
  }

  Image decode(int64_t sample) const {
    Image image = read_image(path(sample), channels_);
    if (!info_.preprocess.resize && (image.height != height_ || image.width != width_))
      other_size(sample, image.height, image.width, height_, width_);
    return image;
  }

  std::string root_;
  std::vector<std::string> files_;
  std::vector<int32_t> classes_;
  int64_t channels_ = 0, height_ = 0, width_ = 0;
  Transform transform_;
};

}  // namespace

std::unique_ptr<Dataset> open_images(const Spec& spec) { return std::make_unique<ImagesDataset>(spec); }

}  // namespace netmend::dataset
