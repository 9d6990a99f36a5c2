#include "observers/coverage/traces.h"

#include <algorithm>

#include "base/error.h"

namespace netmend::observers {

Traces::Traces(SpacePtr space, size_t first, size_t end, int64_t expected, int64_t stride)
    : space_(std::move(space)), first_(first), end_(end), expected_(expected), stride_(stride) {}

std::unique_ptr<Tally> Traces::fresh() const { return std::make_unique<TraceTally>(*this); }

double Traces::bytes(int64_t inputs) const {
  const double each = 4 * double(units()) + 8 * double(end_ - first_) + sizeof(SampleRow);
  return each * double((inputs + stride_ - 1) / stride_);
}

TraceTally::TraceTally(const Traces& description) : description_(description) {
  kept.units = description.units();
  kept.layers = int64_t(description.end_layer() - description.first_layer());
}

void TraceTally::add(const UnitBatch& batch) {
  const int64_t skip = description_.space().first(description_.first_layer());
  for (int64_t row = 0; row < batch.count(); ++row) {
    if (batch.rows[size_t(row)].sample % description_.stride() != 0) continue;
    kept.rows.push_back(batch.rows[size_t(row)]);
    const float* values = batch.input(row) + skip;
    kept.values.insert(kept.values.end(), values, values + kept.units);
    const int64_t at = row * batch.layers + int64_t(description_.first_layer());
    kept.low.insert(kept.low.end(), batch.low.begin() + at, batch.low.begin() + at + kept.layers);
    kept.high.insert(kept.high.end(), batch.high.begin() + at, batch.high.begin() + at + kept.layers);
  }
}

void TraceTally::merge(const Tally& later) {
  const UnitBatch& other = dynamic_cast<const TraceTally&>(later).kept;
  if (const size_t room = size_t(description_.expected() / description_.stride() + 1); kept.rows.capacity() < room) {
    kept.rows.reserve(room);
    kept.values.reserve(room * size_t(kept.units));
    for (std::vector<float>* part : {&kept.low, &kept.high}) part->reserve(room * size_t(kept.layers));
  }
  kept.rows.insert(kept.rows.end(), other.rows.begin(), other.rows.end());
  kept.values.insert(kept.values.end(), other.values.begin(), other.values.end());
  kept.low.insert(kept.low.end(), other.low.begin(), other.low.end());
  kept.high.insert(kept.high.end(), other.high.begin(), other.high.end());
}

namespace {

template <typename T>
void put_all(std::ostream& out, const std::vector<T>& items) {
  stream::put(out, int64_t(items.size() * sizeof(T)));
  out.write(reinterpret_cast<const char*>(items.data()), std::streamsize(items.size() * sizeof(T)));
}

template <typename T>
void get_all(std::istream& in, std::vector<T>& items, int64_t each) {
  const std::string bytes = stream::get_text(in);
  if (bytes.size() % sizeof(T) != 0 || (each > 0 && bytes.size() / sizeof(T) % size_t(each) != 0))
    fail("the state file is damaged");
  items.resize(bytes.size() / sizeof(T));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(items.data()));
}

}  // namespace

void TraceTally::save(std::ostream& out) const {
  put_all(out, kept.rows);
  put_all(out, kept.values);
  put_all(out, kept.low);
  put_all(out, kept.high);
}

void TraceTally::load(std::istream& in) {
  get_all(in, kept.rows, 1);
  get_all(in, kept.values, kept.units);
  get_all(in, kept.low, kept.layers);
  get_all(in, kept.high, kept.layers);
  const size_t inputs = kept.rows.size();
  if (kept.values.size() != inputs * size_t(kept.units) || kept.low.size() != inputs * size_t(kept.layers) ||
      kept.high.size() != inputs * size_t(kept.layers))
    fail("the state file is damaged");
}

}  // namespace netmend::observers
