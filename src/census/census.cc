#include "census/census.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/pool.h"
#include "base/random.h"
#include "executor/runtime.h"
#include "stream/pass.h"
#include "stream/raw_range.h"

namespace netmend::census {
namespace {

constexpr int64_t kLooked = 512;        ///< inputs that show the range of raw values
constexpr size_t kFewestIds = 300;      ///< different whole numbers: more than levels of grey
constexpr int64_t kMostColumns = 2048;  ///< of a table whose values are kept
constexpr int64_t kMostUnnamed = 64;    ///< values of an array that are columns of a table without names

Content content_of(const dataset::Feature& feature) {
  if (feature.type == at::kLong) return Content::kIds;
  if (feature.image) return Content::kPictures;
  return feature.columns.empty() ? Content::kSeries : Content::kTable;
}

/// Whole numbers from 0 on, of which most occur rarely: ids of words that a file stores as numbers. Their distances
/// mean nothing.
bool are_ids(const dataset::Dataset& data, size_t feature) {
  if (data.size() == 0) return false;
  at::Tensor some = data.read(stream::spread(data.size(), kLooked)).inputs[feature].to(at::kFloat).contiguous();
  const float* values = some.data_ptr<float>();
  std::set<float> different;
  for (int64_t i = 0; i < some.numel(); ++i) {
    if (!(values[i] >= 0) || values[i] != std::floor(values[i]) || values[i] > 1e7f) return false;
    different.insert(values[i]);
  }
  return different.size() > kFewestIds;
}

/// A row of so few numbers is one of a table, whose columns the file does not name.
bool is_unnamed_row(const dataset::Dataset& data, size_t feature) {
  const dataset::Feature& about = data.info().features[feature];
  return about.type == at::kFloat && about.columns.empty() && about.shape.size() == 1 && about.shape[0] > 0 &&
         about.shape[0] <= kMostUnnamed && data.size() > 0 && !are_ids(data, feature);
}

/// What noise, another sensor or a forgotten step change in a series: its mean, its standard deviation, and how much
/// neighbours differ.
void describe_series(const float* row, int64_t width, const std::function<bool(int64_t)>& used, const Line& line,
                     std::vector<float>& out) {
  stats::Moments values;
  double steps = 0, before = NAN;
  int64_t pairs = 0;
  for (int64_t v = 0; v < width; ++v) {
    if (!used(v) || !std::isfinite(row[v])) continue;
    const double now = line.raw(row[v]);
    values.add(now);
    if (std::isfinite(before)) steps += std::abs(now - before), ++pairs;
    before = now;
  }
  out.push_back(float(values.count() ? values.mean() : 0)), out.push_back(float(values.deviation()));
  out.push_back(float(pairs ? steps / double(pairs) : 0));
}

/// Pictures before tables before series before ids: the feature that says most about an input.
size_t choose_feature(const std::vector<dataset::Feature>& features) {
  // A series as long as the ids beside it is their mask.
  auto masks = [&](const dataset::Feature& one) {
    return content_of(one) == Content::kSeries &&
           std::any_of(features.begin(), features.end(), [&](const dataset::Feature& other) {
             return content_of(other) == Content::kIds && other.shape == one.shape;
           });
  };
  size_t best = 0;
  for (size_t i = 1; i < features.size(); ++i)
    if (masks(features[best]) || (!masks(features[i]) && content_of(features[i]) < content_of(features[best])))
      best = i;
  return best;
}

/// The content hash of each row; padding does not count, since its length depends on the batch.
void mark_rows(const at::Tensor& values, const at::Tensor& mask, std::vector<uint64_t>& hashes) {
  at::Tensor rows = values.to(at::kCPU).contiguous();
  const int64_t count = rows.size(0);
  const auto bytes = size_t(count ? rows.numel() / count * int64_t(rows.element_size()) : 0);
  at::Tensor used = mask.defined() ? mask.to(at::kCPU).contiguous() : at::Tensor();
  for (int64_t i = 0; i < count; ++i) {
    const char* row = static_cast<const char*>(rows.data_ptr()) + size_t(i) * bytes;
    uint64_t& hash = hashes[size_t(i)];
    if (!used.defined()) {
      hash = hash64(row, bytes, hash);
      continue;
    }
    const int64_t length = used.size(1);
    const size_t step = length ? bytes / size_t(length) : 0;
    for (int64_t t = 0; t < length; ++t)
      if (used.data_ptr<bool>()[i * length + t]) hash = hash64(row + size_t(t) * step, step, hash);
  }
}

void label_rows(const dataset::Batch& batch, dataset::LabelKind kind, std::vector<float>& out) {
  const bool one = batch.labels.defined() && (kind == dataset::LabelKind::kClass || batch.labels.dim() == 1);
  at::Tensor labels = one ? batch.labels.to(at::kFloat).contiguous() : at::Tensor();
  for (int64_t i = 0; i < batch.count(); ++i) out.push_back(one ? labels.data_ptr<float>()[i] : NAN);
}

template <typename T>
void put_all(std::ostream& out, const std::vector<T>& values) {
  stream::put(out, std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
}
template <typename T>
void get_all(std::istream& in, std::vector<T>& values) {
  const std::string bytes = stream::get_text(in);
  if (bytes.size() % sizeof(T)) fail("a census ends in the middle of a number");
  values.resize(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
}
template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

Census::Census(const dataset::Dataset& data, int64_t budget) : info_(data.info()) {
  check(!info_.features.empty(), "a data set without features");
  form_.feature = choose_feature(info_.features);
  const dataset::Feature& feature = info_.features[form_.feature];
  form_.content = content_of(feature);
  if (form_.content == Content::kSeries && is_unnamed_row(data, form_.feature)) form_.content = Content::kTable;
  form_.undo = undo_preprocessing(info_, feature);
  const bool fixed = std::all_of(feature.shape.begin(), feature.shape.end(), [](int64_t size) { return size > 0; });
  switch (form_.content) {
    case Content::kPictures:
      if (!fixed || feature.shape.size() != 3) fail("{}: pictures without a size", info_.spec);
      form_.channels = feature.shape[feature.channels_last ? 2 : 0];
      form_.height = feature.shape[feature.channels_last ? 0 : 1];
      form_.width = feature.shape[feature.channels_last ? 1 : 2];
      form_.properties = picture_properties(form_.channels);
      if (data.size() > 0) {
        const stream::RawRange range(data, form_.feature, "", kLooked);
        form_.low = range.low(), form_.high = std::max(range.high(), range.low() + 1e-6);
      }
      form_.descriptors = true;
      for (int64_t c = 0; c < form_.channels; ++c) form_.columns.push_back(fmt::format("channel {}", c));
      break;
    case Content::kTable:
      if (int64_t(feature.columns.size()) <= kMostColumns && data.size() > 0) {
        form_.values = feature.columns.empty() ? feature.shape[0] : int64_t(feature.columns.size());
        form_.source = source_columns(data, form_.feature);
        for (const SourceColumn& column : form_.source) form_.columns.push_back(column.name);
      }
      break;
    case Content::kSeries:
      form_.sequences = fixed && feature.shape.size() == 1 && are_ids(data, form_.feature);
      form_.descriptors = fixed && !form_.sequences;
      if (!form_.sequences) form_.properties = {"mean", "deviation", "roughness"};
      break;
    case Content::kIds:
      form_.sequences = true;
      form_.properties = {"length"};
      if (feature.unknown >= 0) form_.properties.push_back("unknown");
      break;
  }
  if (form_.columns.empty()) form_.columns = {"all values"};
  const int64_t always = 8 + 8 + 4 + 4 + 1 + 4 * int64_t(form_.properties.size());
  const int64_t kept =
                    8 + 4 * form_.values + (form_.descriptors ? kDescriptor : 0) + (form_.sequences ? 4 * kSketch : 0),
                size = std::max<int64_t>(1, data.size());
  const int64_t left = std::max<int64_t>(budget - always * size, kept);
  form_.keep_each = std::max<int64_t>(1, (kept * size + left - 1) / left);
  form_.bytes = always * size + kept * (size / form_.keep_each + 1);
}

std::unique_ptr<stream::State> Census::fresh() const { return std::make_unique<CensusState>(*this); }

CensusState::CensusState(const Census& observer)
    : moments(observer.form().columns.size()), info_(observer.info()), form_(observer.form()) {}

std::vector<float> CensusState::property(size_t which) const {
  std::vector<float> out(hashes.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = properties[i * form_.properties.size() + which];
  return out;
}

void CensusState::observe(const stream::View& view) {
  const dataset::Batch& batch = view.batch;
  const int64_t count = batch.count(), before = inputs();
  std::vector<uint64_t> here(size_t(count), 0x6e65746d656e64u);
  std::vector<int32_t> odd(size_t(count), 0);
  for (size_t f = 0; f < batch.inputs.size(); ++f) {
    at::Tensor mask = f < batch.masks.size() ? batch.masks[f] : at::Tensor();
    at::Tensor values = batch.inputs[f].slice(0, 0, count);
    mark_rows(values, mask.defined() ? mask.slice(0, 0, count) : mask, here);
    if (!values.is_floating_point()) continue;
    at::Tensor bad = at::isfinite(values).logical_not().reshape({count, -1}).sum(1).to(at::kInt);
    for (int64_t i = 0; i < count; ++i) odd[size_t(i)] += bad.data_ptr<int32_t>()[i];
  }
  append(hashes, here);
  append(not_finite, odd);
  label_rows(batch, info_.labels, labels);
  for (int64_t i = 0; i < count; ++i)
    if (batch.samples[size_t(i)] % form_.keep_each == 0) kept.push_back(before + i);
  at::Tensor fed = batch.inputs[form_.feature].slice(0, 0, count).to(at::kCPU).contiguous();
  at::Tensor mask = form_.feature < batch.masks.size() ? batch.masks[form_.feature] : at::Tensor();
  if (form_.content == Content::kPictures)
    observe_pictures(fed);
  else if (form_.content == Content::kIds)
    observe_ids(fed, mask.defined() ? mask.slice(0, 0, count).to(at::kCPU).contiguous() : mask);
  else
    observe_rows(fed.to(at::kFloat), batch);
}

void CensusState::observe_pictures(const at::Tensor& fed) {
  const dataset::Feature& feature = info_.features[form_.feature];
  at::Tensor planes = (feature.channels_last ? fed.permute({0, 3, 1, 2}) : fed).to(at::kFloat).contiguous();
  const int64_t count = planes.size(0), pixels = form_.height * form_.width, each = pixels * form_.channels;
  Picture picture{form_.height, form_.width, form_.channels, std::vector<float>(size_t(each))};
  const auto width = form_.properties.size();
  for (int64_t i = 0; i < count; ++i) {
    const float* row = planes.data_ptr<float>() + i * each;
    for (int64_t c = 0; c < form_.channels; ++c) {
      const Line& line = form_.undo[std::min(size_t(c), form_.undo.size() - 1)];
      // Around the picture's own first value, then merged: one division a picture.
      int64_t finite = 0;
      double sum = 0, squares = 0, low = INFINITY, high = -INFINITY, origin = row[c * pixels];
      if (!std::isfinite(origin)) origin = 0;
      for (int64_t p = 0; p < pixels; ++p) {
        const double value = row[c * pixels + p];
        picture.values[size_t(c * pixels + p)] = float((line.raw(value) - form_.low) / (form_.high - form_.low));
        if (!std::isfinite(value)) {
          ++moments[size_t(c)].not_finite, picture.values[size_t(c * pixels + p)] = 0;
          continue;
        }
        low = std::min(low, value), high = std::max(high, value);
        ++finite, sum += value - origin, squares += (value - origin) * (value - origin);
      }
      const auto part = stats::Moments::of_sums(finite, origin, sum, squares, low, high);
      moments[size_t(c)].Moments::merge(part.on_line(line.factor, line.offset));
    }
    properties.resize(properties.size() + width);
    describe_picture(picture, properties.data() + properties.size() - width);
    if (!kept.empty() && std::binary_search(kept.begin(), kept.end(), inputs() - count + i)) {
      descriptors.resize(descriptors.size() + size_t(kDescriptor));
      descriptor(picture, descriptors.data() + descriptors.size() - kDescriptor);
    }
  }
}

void CensusState::observe_rows(const at::Tensor& fed, const dataset::Batch& batch) {
  const int64_t count = fed.size(0), width = count ? fed.numel() / count : 0;
  at::Tensor mask = form_.feature < batch.masks.size() ? batch.masks[form_.feature] : at::Tensor();
  const int64_t length = mask.defined() ? mask.size(1) : 0, step = length ? width / length : 0;
  at::Tensor used = mask.defined() ? mask.to(at::kCPU).contiguous() : mask;
  for (int64_t i = 0; i < count; ++i) {
    const float* row = fed.data_ptr<float>() + i * width;
    const bool keep = !kept.empty() && std::binary_search(kept.begin(), kept.end(), inputs() - count + i);
    if (form_.values > 0) {
      std::vector<int64_t> rounded;
      for (size_t c = 0; c < form_.source.size(); ++c) {
        const SourceColumn& column = form_.source[c];
        if (!column.is_category()) {
          moments[c].add(column.line.raw(row[column.places[0]]));
          continue;
        }
        int64_t which = -1;
        for (size_t w = 0; w < column.places.size(); ++w)
          if (row[column.places[w]] > 0.5f) which = int64_t(w);
        moments[c].add(double(which));
      }
      for (int64_t v = 0; v < width; ++v)
        rounded.push_back(std::isfinite(row[v]) ? std::llround(std::clamp(double(row[v]), -1e12, 1e12) * 1e5)
                                                : INT64_MIN);
      loose.push_back(hash64(rounded.data(), rounded.size() * 8, 0));
      if (keep) values.insert(values.end(), row, row + width);
      continue;
    }
    auto counts = [&](int64_t v) {
      return !used.defined() || used.data_ptr<bool>()[i * length + v / std::max<int64_t>(step, 1)];
    };
    for (int64_t v = 0; v < width; ++v)
      if (counts(v)) moments[0].add(form_.undo[0].raw(row[v]));
    if (!form_.properties.empty()) describe_series(row, width, counts, form_.undo[0], properties);
    if (keep && form_.sequences) keep_sketch(tokens_of(info_.features[form_.feature], fed[i], {}));
    if (keep && form_.descriptors) {
      descriptors.resize(descriptors.size() + size_t(kDescriptor));
      descriptor_of_row({row, size_t(width)}, descriptors.data() + descriptors.size() - kDescriptor);
    }
  }
}

void CensusState::observe_ids(const at::Tensor& ids, const at::Tensor& mask) {
  const dataset::Feature& feature = info_.features[form_.feature];
  const int64_t count = ids.size(0), length = count ? ids.numel() / count : 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t* row = ids.data_ptr<int64_t>() + i * length;
    int64_t used = 0, unknown = 0;
    for (int64_t t = 0; t < length; ++t) {
      if (mask.defined() ? !mask.data_ptr<bool>()[i * length + t] : feature.pad >= 0 && row[t] == feature.pad) continue;
      ++used, unknown += row[t] == feature.unknown && feature.unknown >= 0;
      moments[0].add(double(row[t]));
    }
    if (!kept.empty() && std::binary_search(kept.begin(), kept.end(), inputs() - count + i))
      keep_sketch(tokens_of(feature, ids[i], mask.defined() ? mask[i] : at::Tensor()));
    properties.push_back(float(used));
    if (form_.properties.size() > 1) properties.push_back(used ? float(unknown) / float(used) : 0.f);
    const bool free = !feature.shape.empty() && feature.shape[0] < 0;
    full_length.push_back(uint8_t(!free && length > 0 && used == length));
  }
}

void CensusState::keep_sketch(const std::vector<int64_t>& tokens) {
  const auto sketch = sketch_of(tokens);
  sketches.insert(sketches.end(), sketch.begin(), sketch.end());
}

std::vector<int64_t> tokens_of(const dataset::Feature& feature, const at::Tensor& row, const at::Tensor& mask) {
  at::Tensor ids = row.to(at::kLong).contiguous(), used = mask.defined() ? mask.contiguous() : mask;
  std::vector<int64_t> tokens;
  for (int64_t t = 0; t < ids.numel(); ++t) {
    const int64_t id = ids.data_ptr<int64_t>()[t];
    if (used.defined() ? used.data_ptr<bool>()[t] : feature.pad < 0 || id != feature.pad) tokens.push_back(id);
  }
  // What nobody names as padding is 0 at the end.
  while (!used.defined() && !tokens.empty() && tokens.back() == 0) tokens.pop_back();
  return tokens;
}

void CensusState::merge(const stream::State& later) {
  const auto& other = dynamic_cast<const CensusState&>(later);
  const int64_t before = inputs();
  append(hashes, other.hashes);
  append(loose, other.loose);
  append(labels, other.labels);
  append(properties, other.properties);
  append(not_finite, other.not_finite);
  append(full_length, other.full_length);
  for (int64_t sample : other.kept) kept.push_back(before + sample);
  append(values, other.values);
  append(descriptors, other.descriptors);
  append(sketches, other.sketches);
  for (size_t c = 0; c < moments.size(); ++c) moments[c].merge(other.moments[c]);
}

void CensusState::save(std::ostream& out) const {
  put_all(out, hashes), put_all(out, loose), put_all(out, labels), put_all(out, properties), put_all(out, not_finite);
  put_all(out, full_length), put_all(out, kept), put_all(out, values), put_all(out, descriptors), put_all(out, moments);
  put_all(out, sketches);
}

void CensusState::load(std::istream& in) {
  get_all(in, hashes), get_all(in, loose), get_all(in, labels), get_all(in, properties), get_all(in, not_finite);
  get_all(in, full_length), get_all(in, kept), get_all(in, values), get_all(in, descriptors), get_all(in, moments);
  get_all(in, sketches);
  const size_t count = hashes.size();
  const bool fits = labels.size() == count && not_finite.size() == count && moments.size() == form_.columns.size() &&
                    properties.size() == count * form_.properties.size() && (loose.empty() || loose.size() == count) &&
                    (full_length.empty() || full_length.size() == count) &&
                    values.size() == kept.size() * size_t(form_.values) &&
                    descriptors.size() == (form_.descriptors ? kept.size() * size_t(kDescriptor) : 0) &&
                    sketches.size() == (form_.sequences ? kept.size() * size_t(kSketch) : 0) &&
                    std::all_of(kept.begin(), kept.end(), [&](int64_t k) { return k >= 0 && k < int64_t(count); });
  if (!fits) fail("a saved census was made from other data than {}", info_.spec);
}

std::unique_ptr<CensusState> take(const dataset::Dataset& data, const Census& observer, int jobs) {
  const int64_t batches = (data.size() + stream::kBatch - 1) / stream::kBatch;
  const int64_t chunk = stream::kBatch * stream::batches_per_chunk(batches), chunks = (data.size() + chunk - 1) / chunk;
  const int workers = int(std::min<int64_t>(jobs > 0 ? jobs : cores(), std::max<int64_t>(chunks, 1)));
  std::vector<std::unique_ptr<CensusState>> states(static_cast<size_t>(chunks));
  auto whole = std::make_unique<CensusState>(observer);
  in_order(
      chunks, workers, [](int) { executor::enter_worker(); },
      [&](int64_t item, int) {
        auto& state = states[size_t(item)] = std::make_unique<CensusState>(observer);
        for (int64_t begin = item * chunk; begin < std::min(data.size(), (item + 1) * chunk); begin += stream::kBatch) {
          std::vector<int64_t> samples;
          for (int64_t s = begin; s < std::min(data.size(), begin + stream::kBatch); ++s) samples.push_back(s);
          dataset::Batch batch = data.read(samples);
          state->observe({batch, {}, {}});
        }
      },
      [&](int64_t item) {
        whole->merge(*states[size_t(item)]);
        states[size_t(item)].reset();
      });
  return whole;
}

}  // namespace netmend::census
