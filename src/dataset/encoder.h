// How the columns of a table become numbers: standardised numbers and one column per category, fitted on training rows.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dataset/table.h"

namespace netmend::dataset {

struct EncoderOptions {
  std::vector<std::string> columns;     ///< in the order they are fed
  std::vector<std::string> categories;  ///< of these, the ones that are words even if they look like numbers
  std::vector<std::string> missing = {"", "?"};
  enum Scaling { kStandardised, kMinMax, kGiven } scaling = kStandardised;
  double scale = 1;               ///< of kGiven: (x · scale − mean) / std
  std::vector<double> mean, std;  ///< one, or one a numeric column
};

class Encoder {
 public:
  /// Looks through all rows of the training table. Missing numbers become the mean; missing words are a category of
  /// their own.
  Encoder(const Table& train, EncoderOptions options);

  int64_t width() const { return width_; }
  /// What the user should know: columns of numbers that a few values turn into categories.
  const std::vector<std::string>& notes() const { return notes_; }
  /// What each value is: `age`, `sex=Male`.
  std::vector<std::string> names() const;
  /// Where the columns stand in a table, which may have another order than the training table.
  std::vector<int64_t> positions(const Table& table) const;
  /// Throws InputError when a number is none. A category that training rows do not have leaves its columns at 0.
  void encode(const Row& row, const std::vector<int64_t>& positions, float* out) const;

 private:
  struct Column {
    std::string name;
    bool number = true;
    double mean = 0, deviation = 1, instead = 0;  ///< `instead` of what is missing
    std::map<std::string, int64_t> categories;
    int64_t begin = 0;
  };
  struct Fit;
  void finish(Column& column, const Fit& fit, int64_t& numbers);
  void refuse_wordy(const Table& train, const std::vector<Fit>& fits) const;
  bool is_missing(const std::string& word) const;

  EncoderOptions options_;
  std::vector<Column> columns_;
  std::vector<std::string> notes_;
  int64_t width_ = 0;
};

}  // namespace netmend::dataset
