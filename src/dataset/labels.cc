#include "dataset/labels.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "dataset/npy.h"
#include "dataset/options.h"
#include "dataset/spec.h"

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

[[noreturn]] void bad_class(const Array& array, int64_t sample, double value, int64_t first) {
  throw InputError(fmt::format("{}: the label of sample {} is {}, which is not a class number ({}, {}, {} …)",
                               array.bytes->name(), sample, value, first, first + 1, first + 2),
                   "Labels that are quantities need kind=number.");
}

}  // namespace

std::vector<std::string> class_names(const std::map<std::string, std::string>& options, int64_t needed,
                                     std::vector<std::string> known) {
  auto given = options.find("classes");
  if (given != options.end()) known = split_list(given->second);
  if (known.empty())
    for (int64_t i = 0; i < needed; ++i) known.push_back(std::to_string(i));
  if (int64_t(known.size()) < needed)
    fail("{} class names are given ({}), but class numbers go up to {}", known.size(), join(known, ", "), needed - 1);
  return known;
}

std::vector<std::string> sorted_classes(const std::set<std::string>& names) {
  std::vector<std::string> classes(names.begin(), names.end());
  double value = 0;
  auto number = [&](const std::string& word) { return parse_double(word, value) ? value : NAN; };
  if (std::all_of(classes.begin(), classes.end(), [&](const std::string& word) { return std::isfinite(number(word)); }))
    std::stable_sort(classes.begin(), classes.end(),
                     [&](const std::string& a, const std::string& b) { return number(a) < number(b); });
  return classes;
}

namespace {

struct WordClasses {
  std::vector<std::string> names;
  std::map<std::string, int32_t> numbers;
};

WordClasses find_classes(const WordArray& words, const std::map<std::string, std::string>& options) {
  WordClasses classes;
  std::set<std::string> found;
  if (options.count("classes")) {
    classes.names = class_names(options, 0);
  } else {
    for (int64_t i = 0; i < words.count; ++i) {
      found.insert(words.word(i));
      if (int64_t(found.size()) > kMostClasses)
        fail("{} holds more than {} different labels", words.bytes->name(), kMostClasses);
    }
    classes.names = sorted_classes(found);
  }
  for (const std::string& name : classes.names) classes.numbers.emplace(name, int32_t(classes.numbers.size()));
  return classes;
}

}  // namespace

LabelArray read_label_array(const BytesPtr& npy, const std::map<std::string, std::string>& options) {
  std::optional<WordArray> words = read_npy_words(npy);
  if (!words) return read_npy(npy);
  WordClasses classes = find_classes(*words, options);
  Spool spool(npy->name());
  for (int64_t i = 0; i < words->count; ++i) {
    const std::string word = words->word(i);
    auto hit = classes.numbers.find(word);
    if (hit == classes.numbers.end())
      throw InputError(fmt::format("{}: the label of sample {} is '{}', which classes= does not name{}", npy->name(), i,
                                   word, did_you_mean(word, classes.names)),
                       "classes= must name every class, in the order of the model's outputs.");
    spool.write(reinterpret_cast<const uint8_t*>(&hit->second), sizeof hit->second);
  }
  return {make_array(spool.finish(), 0, Element::kI32, false, {words->count}), classes.names};
}

Labels::Labels(LabelArray labels, const std::map<std::string, std::string>& options)
    : array_(std::move(labels.numbers)) {
  columns_ = array_.elements();
  first_ = labels.names.empty() ? int_option(options, "first", 0, 0, kMostClasses) : 0;
  auto given = options.find("kind");
  std::string kind = given == options.end() ? "" : given->second;
  const std::vector<std::string> kinds = {"class", "number", "multi"};
  if (!kind.empty() && std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
    fail("kind={} is unknown{}: choose from {}", kind, did_you_mean(kind, kinds), join(kinds, ", "));
  scan(kind);
  check_first(options);
  if (kind_ == LabelKind::kClass) classes_ = class_names(options, highest_ + 1, labels.names);
  if (kind_ == LabelKind::kMulti) classes_ = class_names(options, width_);
  if (kind_ == LabelKind::kMulti && int64_t(classes_.size()) != width_)
    fail("{} class names are given for {} columns of labels", classes_.size(), width_);
}

/// A list of names that fits the labels but for one is the usual sign of counting from 1.
void Labels::check_first(const std::map<std::string, std::string>& options) const {
  if (kind_ != LabelKind::kClass || columns_ > 1 || !options.count("classes") || lowest_ != 1) return;
  const auto names = int64_t(class_names(options, 0).size());
  if (names == highest_)
    throw InputError(fmt::format("{}: the labels run from 1 to {}, and there are {} class names", array_.bytes->name(),
                                 highest_, names),
                     "If the labels start at 1, add first=1.");
}

void Labels::scan(const std::string& kind) {
  if (kind == "number") {
    kind_ = LabelKind::kNumber;
    width_ = columns_;
    return;
  }
  if (columns_ > kMostClasses)
    fail("{}: {} labels per sample are too many, at most {} are read", array_.bytes->name(), columns_, kMostClasses);
  bool one_each = true;
  for_rows(array_, columns_, [&](int64_t sample, const double* row) {
    int64_t ones = 0;
    for (int64_t c = 0; c < columns_; ++c) {
      const double low = columns_ == 1 ? double(first_) : 0;
      bool whole =
          row[c] >= low && row[c] < low + double(columns_ == 1 ? kMostClasses : 2) && row[c] == std::floor(row[c]);
      if (!whole && columns_ == 1) bad_class(array_, sample, row[c], first_);
      if (!whole)
        throw InputError(fmt::format("{}: label {} of sample {} is {}, where 0 or 1 was expected", array_.bytes->name(),
                                     c, sample, row[c]),
                         "Labels that are quantities need kind=number.");
      if (row[c] == 1) ++ones;
      if (columns_ > 1) continue;
      highest_ = std::max(highest_, int64_t(row[c]) - first_);
      lowest_ = std::min(lowest_, int64_t(row[c]) - first_);
    }
    if (ones != 1 && columns_ > 1 && kind == "class")
      fail("{}: the labels of sample {} name {} classes, where one was expected", array_.bytes->name(), sample, ones);
    one_each = one_each && ones == 1;
  });
  bool several = columns_ > 1 && (kind == "multi" || !one_each);
  if (kind == "multi" && columns_ == 1) fail("{}: kind=multi needs one column per class", array_.bytes->name());
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
            columns_ == 1 ? row[0] - first_ : std::max_element(row.begin(), row.end()) - row.begin();
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
