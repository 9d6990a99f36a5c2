#include <algorithm>

#include "base/error.h"
#include "dataset/dataset.h"
#include "dataset/meta_dataset.h"
#include "dataset/options.h"
#include "dataset/readers.h"

namespace netmend::dataset {
namespace {

using Opener = std::unique_ptr<Dataset> (*)(const Spec&);

const std::map<std::string, Opener>& openers() {
  static const std::map<std::string, Opener> all = {
      {"glyphs", open_glyphs},
      {"mnist", open_mnist},
      {"fashion-mnist", open_mnist},
      {"cifar10", open_cifar10},
      {"rt-polarity", open_rt_polarity},
      {"adult", open_adult},
      {"idx", open_idx},
      {"cifar", open_cifar},
      {"npz", open_npz},
      {"npy", open_npy},
      {"csv", open_csv},
      {"images", open_images},
      {"saved", open_saved},
      {"text", open_text},
  };
  return all;
}

/// Gives a data set the spec it can be opened by again, and cuts it to `limit=`.
class Opened : public Dataset {
 public:
  Opened(std::unique_ptr<Dataset> data, const Spec& spec) : data_(std::move(data)) {
    info_ = data_->info();
    Spec full = spec;
    if (spec.is_name() && spec.rest.empty()) full.rest = "test";
    info_.spec = spec_text(full);
    info_.size = std::min(info_.size, int_option(spec.options, "limit", info_.size, 1, INT64_MAX));
  }
  Batch read(std::span<const int64_t> samples) const override {
    for (int64_t sample : samples) check_sample(sample);
    return data_->read(samples);
  }
  std::string id(int64_t sample) const override { return data_->id(check_sample(sample)); }
  std::vector<std::string> groups(int64_t sample) const override { return data_->groups(check_sample(sample)); }
  Display display(int64_t sample) const override { return data_->display(check_sample(sample)); }

 private:
  int64_t check_sample(int64_t sample) const {
    check(sample >= 0 && sample < size(), "sample {} of {} in {}", sample, size(), info_.spec);
    return sample;
  }
  std::unique_ptr<Dataset> data_;
};

}  // namespace

std::unique_ptr<Dataset> open(const Spec& spec) {
  auto opener = openers().find(spec.head);
  check(opener != openers().end(), "no reader for {}", spec.head);
  std::unique_ptr<Dataset> data = opener->second(spec);
  const std::string meta = text_option(spec.options, "meta");
  for (const char* key : {"meta_id", "meta_groups"})
    if (meta.empty() && spec.options.count(key)) fail("{}= needs meta=FILE.csv", key);
  if (!meta.empty())
    data = with_meta(std::move(data),
                     {meta, text_option(spec.options, "meta_id"), list_option(spec.options, "meta_groups")});
  return std::make_unique<Opened>(std::move(data), spec);
}

}  // namespace netmend::dataset
