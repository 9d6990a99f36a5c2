// What a data set holds, for people: counts, ranges, classes, examples, a contact sheet. No tensors: commands and other
// people's programs call it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace netmend::census {

/// Of finite values; the others are counted.
struct ValueRange {
  double low = 0, high = 0, mean = 0, deviation = 0;
  int64_t nan = 0, infinite = 0;
};

struct FeatureOverview {
  std::string name, type;
  std::vector<int64_t> shape;  ///< -1 where it differs from input to input
  bool image = false;
  ValueRange raw, values;            ///< as read; after preprocessing, as the model gets them
  std::vector<ValueRange> channels;  ///< of images, after preprocessing
  int64_t unknown_ids = 0;           ///< words that the vocabulary does not hold
  double mean_length = 0;            ///< tokens per input, without padding; 0 where nothing is padded
};

struct ClassCount {
  std::string name;
  int64_t samples = 0;
};

struct DataOverview {
  std::string spec;
  int64_t samples = 0;
  std::vector<FeatureOverview> features;
  std::string labels;  ///< none, classes, number or labels
  std::vector<ClassCount> classes;
  ValueRange label_values;  ///< of labels that are numbers
  std::map<std::string, std::string> preprocessing;
  std::vector<std::pair<std::string, std::string>> examples;  ///< id and text of some inputs that are texts or rows
  bool pictures = false;                                      ///< a contact sheet can be drawn
  std::vector<std::string> notes;                             ///< what the reader of the files says of them
};

struct OverviewRequest {
  std::string spec;
  int64_t limit = 0;                                       ///< only the first inputs; 0 for all
  std::function<void(int64_t done, int64_t of)> progress;  ///< may be empty; may throw
};
/// Reads all of it once. Throws InputError.
DataOverview describe_data(const OverviewRequest& request);

/// About `count` inputs, the same number of each class, as a PNG file. Throws InputError when there are no pictures.
void write_sheet(const OverviewRequest& request, int64_t count, const std::string& path);

}  // namespace netmend::census
