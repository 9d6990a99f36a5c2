#include "dataset/labels.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace netmend::dataset {
namespace {

constexpr int64_t kMostClasses = 100000;  ///< more are surely numbers of another kind

void for_rows(const Array& array, int64_t columns, const std::function<void(int64_t sample, const double* row)>& take) {
  const int64_t step = std::max<int64_t>(1, (1 << 16) / columns);
  std::vector<int64_t> samples;
  std::vector<double> values;
  for (int64_t begin = 0; begin < array.count(); begin += step) {
    samples.clear();
    for (int64_t i = begin; i < std::min(begin + step, array.count()); ++i) samples.push_back(i);
    for_runs(array, samples, [&](const uint8_t* raw, int64_t position, int64_t count) {
      values.resize(size_t(columns));
      for (int64_t i = 0; i < count; ++i) {
        to_doubles(raw + i * array.stride, array.type, array.swapped, columns, values.data());
        take(begin + position + i, values.data());
      }
    });
  }
}

[[noreturn]] void bad_class(const Array& array, int64_t sample, double value) {
  throw InputError(fmt::format("{}: the label of sample {} is {}, which is no class number (0, 1, 2 …)",
                               array.bytes->name(), sample, value),
                   "labels that are quantities need kind=number");
}

}  // namespace

std::vector<std::string> class_names(const std::map<std::string, std::string>& options, int64_t needed,
                                     std::vector<std::string> known) {
  auto given = options.find("classes");
  if (given != options.end()) known = split(given->second, ':');
  if (known.empty())
    for (int64_t i = 0; i < needed; ++i) known.push_back(std::to_string(i));
  if (int64_t(known.size()) < needed)
    fail("there are {} class names ({}), but labels up to {}", known.size(), join(known, ", "), needed - 1);
  return known;
}

Labels::Labels(Array array, const std::map<std::string, std::string>& options) : array_(std::move(array)) {
  columns_ = array_.elements();
  auto given = options.find("kind");
  std::string kind = given == options.end() ? "" : given->second;
  const std::vector<std::string> kinds = {"class", "number", "multi"};
  if (!kind.empty() && std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
    fail("kind={} is unknown{}: there are {}", kind, did_you_mean(kind, kinds), join(kinds, ", "));
  scan(kind);
  if (kind_ == LabelKind::kClass) classes_ = class_names(options, highest_ + 1);
  if (kind_ == LabelKind::kMulti) classes_ = class_names(options, width_);
  if (kind_ == LabelKind::kMulti && int64_t(classes_.size()) != width_)
    fail("there are {} class names for {} columns of labels", classes_.size(), width_);
}

void Labels::scan(const std::string& kind) {
  if (kind == "number") {
    kind_ = LabelKind::kNumber;
    width_ = columns_;
    return;
  }
  if (columns_ > kMostClasses) fail("{}: {} labels a sample are too many", array_.bytes->name(), columns_);
  bool one_each = true;
  for_rows(array_, columns_, [&](int64_t sample, const double* row) {
    int64_t ones = 0;
    for (int64_t c = 0; c < columns_; ++c) {
      bool whole = row[c] >= 0 && row[c] < (columns_ == 1 ? kMostClasses : 2) && row[c] == std::floor(row[c]);
      if (!whole && columns_ == 1) bad_class(array_, sample, row[c]);
      if (!whole)
        throw InputError(fmt::format("{}: label {} of sample {} is {}, where 0 or 1 was expected", array_.bytes->name(),
                                     c, sample, row[c]),
                         "labels that are quantities need kind=number");
      if (row[c] == 1) ++ones, highest_ = std::max(highest_, columns_ == 1 ? 1 : c);
      if (columns_ == 1) highest_ = std::max(highest_, int64_t(row[c]));
    }
    if (ones != 1 && columns_ > 1 && kind == "class")
      fail("{}: the labels of sample {} name {} classes, where one was expected", array_.bytes->name(), sample, ones);
    one_each = one_each && ones == 1;
  });
  bool several = columns_ > 1 && (kind == "multi" || !one_each);
  if (kind == "multi" && columns_ == 1) fail("{}: kind=multi needs a column a class", array_.bytes->name());
  kind_ = several ? LabelKind::kMulti : LabelKind::kClass;
  if (columns_ > 1) highest_ = columns_ - 1;
  width_ = several ? columns_ : 1;
}

at::Tensor Labels::read(std::span<const int64_t> samples) const {
  const int64_t count = int64_t(samples.size());
  if (kind_ == LabelKind::kClass) {
    at::Tensor out = at::empty({count}, at::kLong);
    std::vector<int64_t> row(static_cast<size_t>(columns_));
    for_runs(array_, samples, [&](const uint8_t* raw, int64_t position, int64_t run) {
      for (int64_t i = 0; i < run; ++i) {
        to_longs(raw + i * array_.stride, array_.type, array_.swapped, columns_, row.data());
        out.data_ptr<int64_t>()[position + i] =
            columns_ == 1 ? row[0] : std::max_element(row.begin(), row.end()) - row.begin();
      }
    });
    return out;
  }
  at::Tensor out = width_ == 1 ? at::empty({count}, at::kFloat) : at::empty({count, width_}, at::kFloat);
  for_runs(array_, samples, [&](const uint8_t* raw, int64_t position, int64_t run) {
    for (int64_t i = 0; i < run; ++i)
      to_floats(raw + i * array_.stride, array_.type, array_.swapped, columns_,
                out.data_ptr<float>() + (position + i) * width_);
  });
  return out;
}

}  // namespace netmend::dataset
