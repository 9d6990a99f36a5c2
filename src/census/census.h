// The census: what the data itself shows, input by input and column by column, in the same pass as everything else.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "census/picture.h"
#include "census/raw.h"
#include "census/sequences.h"
#include "dataset/dataset.h"
#include "stats/moments.h"
#include "stream/observer.h"

namespace netmend::census {

/// Of finite values; the others are counted. In raw units.
struct ColumnMoments : stats::Moments {
  int64_t not_finite = 0;
  void add(double value) { std::isfinite(value) ? Moments::add(value) : void(++not_finite); }
  void merge(const ColumnMoments& later) { not_finite += later.not_finite, Moments::merge(later); }
};

enum class Content { kPictures, kTable, kSeries, kIds };

/// What is kept of a data set, decided before anything is taken.
struct Form {
  Content content = Content::kSeries;
  size_t feature = 0;                   ///< the one that properties, descriptors and columns are of
  std::vector<std::string> properties;  ///< names, one number per input each
  std::vector<std::string> columns;     ///< of the sums: channels, columns, or one for all values
  std::vector<SourceColumn> source;     ///< of a table
  std::vector<Line> undo;
  double low = 0, high = 1;                                 ///< of pictures: the valid range of raw values
  int64_t channels = 1, height = 0, width = 0, values = 0;  ///< values: kept of each input, of a table
  bool descriptors = false;
  bool sequences = false;  ///< of ids, also where a file stores them as numbers: sketches are kept
  int64_t keep_each = 1;   ///< values and descriptors are kept of every n-th input: more would not fit the budget
  int64_t bytes = 0;       ///< that the census of the whole takes
};

struct CensusState;

class Census : public stream::Observer {
 public:
  using State = CensusState;
  /// Looks at a few inputs to see what they are. `budget` in bytes. The data must outlive it.
  explicit Census(const dataset::Dataset& data, int64_t budget = int64_t(512) << 20);
  std::string name() const override { return "census"; }
  std::vector<stream::Tap> taps() const override { return {}; }
  bool reads_inputs() const override { return true; }
  std::unique_ptr<stream::State> fresh() const override;
  const Form& form() const { return form_; }
  const dataset::Info& info() const { return info_; }

 private:
  dataset::Info info_;
  Form form_;
};

struct CensusState : stream::State {
  explicit CensusState(const Census& observer);
  void observe(const stream::View& view) override;
  void merge(const stream::State& later) override;
  void save(std::ostream& out) const override;
  void load(std::istream& in) override;

  int64_t inputs() const { return int64_t(hashes.size()); }
  /// A property of all inputs, in order.
  std::vector<float> property(size_t which) const;

  std::vector<uint64_t> hashes;      ///< of the exact content, one per input
  std::vector<uint64_t> loose;       ///< of tables: values to five digits; else empty
  std::vector<float> labels;         ///< class, or number; NaN without; of several labels: none
  std::vector<float> properties;     ///< inputs × properties
  std::vector<int32_t> not_finite;   ///< values of each input that are NaN or Inf
  std::vector<uint8_t> full_length;  ///< of padded texts: 1 where nothing is padded
  std::vector<int64_t> kept;         ///< inputs whose values and descriptors are here
  std::vector<float> values;         ///< kept × values, as fed; of tables
  std::vector<int8_t> descriptors;   ///< kept × kDescriptor
  std::vector<uint32_t> sketches;    ///< kept × kSketch, of sequences
  std::vector<ColumnMoments> moments;
  const Form& form() const { return form_; }

 private:
  void keep_sketch(const std::vector<int64_t>& tokens);
  void observe_pictures(const at::Tensor& fed);
  void observe_rows(const at::Tensor& fed, const dataset::Batch& batch);
  void observe_ids(const at::Tensor& ids, const at::Tensor& mask);
  const dataset::Info& info_;
  const Form& form_;
};

/// The ids of one input without its padding: `mask`, or the feature's own id for it, or zeros at the end.
std::vector<int64_t> tokens_of(const dataset::Feature& feature, const at::Tensor& row, const at::Tensor& mask);

/// The census of a data set without a network: reads it on `jobs` threads (0 for all cores). The result does not depend
/// on their number.
std::unique_ptr<CensusState> take(const dataset::Dataset& data, const Census& observer, int jobs = 0);

}  // namespace netmend::census
