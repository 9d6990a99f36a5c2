// Rows of words in a text file: comma-, tab- or otherwise separated values, or one word per line. Only the place of
// every row is kept; rows are parsed when they are asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "dataset/bytes.h"

namespace netmend::dataset {

struct TableFormat {
  char separator = ',';     ///< a blank stands for any number of blanks; 0: the line is one value
  bool header = true;       ///< the first row names the columns; otherwise they are called 1, 2 …
  bool keep_blank = false;  ///< an empty line is a row
  char comment = 0;         ///< lines that begin with it are passed over
  bool quotes = true;       ///< "a, ""b""" is one value
};

/// From the options `sep` (comma, tab, semicolon, space, pipe, or the character) and `header` (yes, no); without `sep`
/// the file's name decides between tabs and commas.
TableFormat table_format(const std::string& path, const std::map<std::string, std::string>& options);

using Row = std::vector<std::string>;

class Table {
 public:
  /// Looks through the whole file once. Throws InputError with the line when a row has more or fewer values than the
  /// first.
  Table(BytesPtr bytes, TableFormat format);

  const std::string& name() const { return bytes_->name(); }
  const std::vector<std::string>& columns() const { return columns_; }
  int64_t rows() const { return int64_t(starts_.size()) - 1; }
  /// Position of a column; -1 when there is none of that name.
  int64_t find(std::string_view column) const;
  /// The same, but throws InputError that suggests the nearest.
  int64_t position(std::string_view column) const;
  /// Calls `take` with the rows asked for; those that lie side by side are read at once.
  void read(std::span<const int64_t> rows, const std::function<void(int64_t position, const Row& row)>& take) const;
  Row row(int64_t number) const;
  void for_all(const std::function<void(int64_t number, const Row& row)>& take) const;
  /// `adult.csv, line 7`: where a row stands, for messages; counts lines and so takes its time.
  std::string where(int64_t row) const;

 private:
  void scan();
  void add_row(int64_t start, const Row& row, int64_t line);
  void name_columns(const Row& first);

  BytesPtr bytes_;
  TableFormat format_;
  std::vector<std::string> columns_;
  std::unordered_map<std::string, int64_t> places_;  ///< of the columns
  std::vector<int64_t> starts_;                      ///< of every row, and the end
};

/// Takes one row from `text` at `at` and moves `at` behind it. Returns false, without moving, when the text ends inside
/// the row and `last` does not say that this is the end of everything.
bool parse_row(std::string_view text, size_t& at, const TableFormat& format, bool last, Row& row);

}  // namespace netmend::dataset
