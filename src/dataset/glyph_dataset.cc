#include <ATen/ATen.h>

#include <atomic>
#include <cstring>

#include "base/error.h"
#include "base/random.h"
#include "dataset/glyphs.h"
#include "dataset/labels.h"
#include "dataset/options.h"
#include "dataset/readers.h"
#include "dataset/transform.h"

namespace netmend::dataset {
namespace {

constexpr int64_t kPixels = kGlyphSide * kGlyphSide;

/// Pictures are kept once they are drawn (under 1 kB each), since a pass costs less than the drawing.
class GlyphDataset : public Dataset {
 public:
  explicit GlyphDataset(const Spec& spec) {
    std::map<std::string, std::string> options = spec.options;
    options.emplace("scale", "1/255");
    seed_ = uint64_t(int_option(options, "seed", 42, 0, INT64_MAX));
    first_ = spec.rest == "train" || spec.rest == "all" ? 0 : kGlyphTrain;
    info_.size = (spec.rest == "train" ? kGlyphTrain : kGlyphTrain + kGlyphTest) - first_;
    info_.preprocess = parse_preprocess(options);
    transform_ = Transform(info_.preprocess, Form::kRowsColumns, {kGlyphSide, kGlyphSide}, "glyphs");
    info_.features = {transform_.feature("x")};
    info_.labels = LabelKind::kClass;
    info_.classes = class_names(options, 10);
    drawn_.reset(new uint8_t[size_t(info_.size * kPixels)]);
    states_ = std::vector<std::atomic<uint8_t>>(size_t(info_.size));
  }

  Batch read(std::span<const int64_t> samples) const override {
    Batch batch;
    std::vector<int64_t> shape = transform_.shape();
    shape.insert(shape.begin(), int64_t(samples.size()));
    at::Tensor x = at::empty(shape, at::kFloat), labels = at::empty({int64_t(samples.size())}, at::kLong);
    const int64_t step = samples.empty() ? 0 : x.numel() / int64_t(samples.size());
    uint8_t own[kPixels];
    for (size_t i = 0; i < samples.size(); ++i) {
      labels.data_ptr<int64_t>()[i] = digit(samples[i]);
      transform_.apply(pixels(samples[i], own), Element::kU8, false, 1, kPixels,
                       x.data_ptr<float>() + int64_t(i) * step);
    }
    batch.inputs = {x};
    batch.masks.resize(1);
    batch.labels = labels;
    batch.samples.assign(samples.begin(), samples.end());
    return batch;
  }

  Display display(int64_t sample) const override {
    uint8_t own[kPixels];
    return transform_.display(pixels(sample, own), Element::kU8, false);
  }

 private:
  enum State : uint8_t { kEmpty, kBeingDrawn, kDrawn };

  /// Each ten samples in a row hold every digit once, in an order of their own.
  int digit(int64_t sample) const {
    check(sample >= 0 && sample < info_.size, "glyph {} of {}", sample, info_.size);
    const uint64_t number = uint64_t(first_ + sample);
    std::vector<int> order = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    Random(seed_, (uint64_t(1) << 40) + number / 10).shuffle(order);
    return order[number % 10];
  }

  const uint8_t* pixels(int64_t sample, uint8_t* own) const {
    uint8_t* place = drawn_.get() + sample * kPixels;
    std::atomic<uint8_t>& state = states_[size_t(sample)];
    if (state.load(std::memory_order_acquire) == kDrawn) return place;
    draw_glyph(digit(sample), seed_, uint64_t(first_ + sample), own);
    uint8_t expected = kEmpty;
    if (state.compare_exchange_strong(expected, kBeingDrawn)) {
      std::memcpy(place, own, kPixels);
      state.store(kDrawn, std::memory_order_release);
    }
    return own;
  }

  uint64_t seed_ = 42;
  int64_t first_ = 0;
  Transform transform_;
  std::unique_ptr<uint8_t[]> drawn_;
  mutable std::vector<std::atomic<uint8_t>> states_;
};

}  // namespace

std::unique_ptr<Dataset> open_glyphs(const Spec& spec) { return std::make_unique<GlyphDataset>(spec); }

}  // namespace netmend::dataset
