#include "dataset/table.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>
#include <span>

#include "base/error.h"
#include "base/pool.h"
#include "base/text.h"
#include "dataset/options.h"

namespace netmend::dataset {
namespace {

constexpr int64_t kWindow = 1 << 20, kLongestRow = 16 << 20;
constexpr size_t kMostColumns = 100000;

bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// Moves behind the closing quote; false when there is none.
bool parse_quoted(std::string_view text, size_t& at, std::string& value) {
  for (size_t i = at + 1;; ++i) {
    size_t quote = text.find('"', i);
    if (quote == text.npos) return false;
    value.append(text.substr(i, quote - i));
    i = quote + 1;
    if (i < text.size() && text[i] == '"') {
      value += '"';
      continue;
    }
    at = i;
    return true;
  }
}

}  // namespace

TableFormat table_format(const std::string& path, const std::map<std::string, std::string>& options) {
  TableFormat format;
  if (path.ends_with(".tsv") || path.ends_with(".tsv.gz")) format.separator = '\t';
  if (auto given = options.find("sep"); given != options.end()) {
    static const std::map<std::string, char> names = {
        {"comma", ','}, {"tab", '\t'}, {"semicolon", ';'}, {"space", ' '}, {"pipe", '|'}};
    auto name = names.find(given->second);
    if (name == names.end() && given->second.size() != 1)
      fail("sep={} is not a separator: choose from comma, tab, semicolon, space, pipe, or a single character",
           given->second);
    format.separator = name != names.end() ? name->second : given->second[0];
    if (format.separator == '"' || format.separator == '\n') fail("sep={} cannot separate values", given->second);
  }
  format.header = yes_option(options, "header", true);
  return format;
}

bool parse_row(std::string_view text, size_t& at, const TableFormat& format, bool last, Row& row) {
  size_t here = at, count = 0;
  auto next = [&]() -> std::string& {
    if (row.size() == count) row.emplace_back();
    row[count].clear();
    return row[count++];
  };
  for (;;) {
    const bool blanks = format.separator == ' ';
    size_t begin = here;
    while (begin < text.size() && blank(text[begin]) && text[begin] != format.separator) ++begin;
    if (blanks)
      while (begin < text.size() && blank(text[begin])) ++begin;
    std::string& value = next();
    size_t end = begin;
    if (format.quotes && begin < text.size() && text[begin] == '"') {
      if (!parse_quoted(text, end, value)) {
        if (!last) return false;
        value.append(text.substr(begin + 1));  // a quote that never closes: the caller sees a row that is too short
        end = text.size();
      }
      begin = end;
    }
    while (end < text.size() && text[end] != '\n' && (text[end] != format.separator || !format.separator)) ++end;
    if (end == text.size() && !last) return false;
    value.append(format.separator ? trim(text.substr(begin, end - begin)) : text.substr(begin, end - begin));
    here = std::min(end + 1, text.size());
    if (end < text.size() && text[end] == '\n') break;
    if (end == text.size()) break;
    if (!blanks) continue;
    while (here < text.size() && blank(text[here])) ++here;  // blanks at the end of a line begin no value
    if (here == text.size() && !last) return false;
    if (here == text.size()) break;
    if (text[here] == '\n') {
      ++here;
      break;
    }
  }
  if (!format.separator)
    while (!row[0].empty() && row[0].back() == '\r') row[0].pop_back();
  row.resize(count);
  at = here;
  return true;
}

Table::Table(BytesPtr bytes, TableFormat format) : bytes_(std::move(bytes)), format_(format) {
  scan();
  if (rows() == 0) fail("{} holds no rows", name());
}

void Table::scan() {
  std::vector<char> window;
  int64_t at = 0, line = 1;
  uint8_t mark[3] = {};
  if (bytes_->size() >= 3) bytes_->read(0, 3, mark);
  if (mark[0] == 0xef && mark[1] == 0xbb && mark[2] == 0xbf) at = 3;  // the mark some programs put before UTF-8
  Row row;
  for (int64_t want = kWindow; at < bytes_->size();) {
    stop_if_interrupted();
    const int64_t size = std::min(want, bytes_->size() - at);
    window.resize(size_t(size));
    bytes_->read(at, size, reinterpret_cast<uint8_t*>(window.data()));
    std::string_view text(window.data(), window.size());
    size_t begin = 0;
    for (size_t end = 0; end < text.size() && parse_row(text, end, format_, at + size == bytes_->size(), row);
         begin = end) {
      add_row(at + int64_t(begin), row, line);
      line += std::count(text.begin() + int64_t(begin), text.begin() + int64_t(end), '\n');
    }
    want = begin == 0 ? want * 4 : kWindow;
    if (want > kLongestRow * 4)
      fail("{}, line {} is longer than {}: is a quote not closed?", name(), line, bytes_text(double(kLongestRow)));
    at += int64_t(begin);
  }
  starts_.push_back(bytes_->size());
}

void Table::add_row(int64_t start, const Row& row, int64_t line) {
  bool empty = row.size() == 1 && row[0].empty();
  if ((empty && !format_.keep_blank) || (format_.comment && !row[0].empty() && row[0][0] == format_.comment)) return;
  if (columns_.empty()) {
    if (row.size() > kMostColumns) fail("{}, line {} has {} values: too many columns", name(), line, row.size());
    name_columns(row);
    if (format_.header) return;
  }
  if (row.size() != columns_.size())
    throw InputError(fmt::format("{}, line {} has {} value{}, the first line has {}", name(), line, row.size(),
                                 row.size() == 1 ? "" : "s", columns_.size()),
                     "Is the separator right (sep=), and are quotes closed?");
  starts_.push_back(start);
}

void Table::name_columns(const Row& first) {
  UniqueNames taken;
  for (size_t i = 0; i < first.size(); ++i) {
    columns_.push_back(taken.add(format_.header ? first[i] : std::to_string(i + 1), ".", 1));
    places_[columns_.back()] = int64_t(i);
  }
}

int64_t Table::find(std::string_view column) const {
  auto hit = places_.find(std::string(column));
  return hit == places_.end() ? -1 : hit->second;
}

int64_t Table::position(std::string_view column) const {
  int64_t hit = find(column);
  if (hit >= 0) return hit;
  std::vector<std::string> some(columns_.begin(), columns_.begin() + int64_t(std::min<size_t>(columns_.size(), 40)));
  fail("{} has no column '{}'{}: its columns are {}{}", name(), column, did_you_mean(column, columns_),
       join(some, ", "), some.size() < columns_.size() ? " …" : "");
}

void Table::read(std::span<const int64_t> rows, const std::function<void(int64_t, const Row&)>& take) const {
  std::vector<uint8_t> scratch;
  Row row;
  for (size_t at = 0; at < rows.size();) {
    const int64_t first = rows[at];
    check(first >= 0 && first < this->rows(), "{}: row {} of {}", name(), first, this->rows());
    int64_t run = 1;
    while (at + size_t(run) < rows.size() && rows[at + size_t(run)] == first + run && first + run < this->rows() &&
           starts_[size_t(first + run + 1)] - starts_[size_t(first)] <= kWindow)
      ++run;
    const int64_t begin = starts_[size_t(first)], size = starts_[size_t(first + run)] - begin;
    std::string_view text(reinterpret_cast<const char*>(bytes_->view(begin, size, scratch)), size_t(size));
    for (int64_t i = 0; i < run; ++i) {
      // Empty lines and comments between rows are passed over by starting where the row is known to start.
      size_t place = size_t(starts_[size_t(first + i)] - begin);
      parse_row(text, place, format_, true, row);
      take(int64_t(at) + i, row);
    }
    at += size_t(run);
  }
}

Row Table::row(int64_t number) const {
  Row out;
  read(std::span(&number, 1), [&](int64_t, const Row& row) { out = row; });
  return out;
}

void Table::for_all(const std::function<void(int64_t, const Row&)>& take) const {
  std::vector<int64_t> numbers;
  for (int64_t begin = 0; begin < rows(); begin += 4096) {
    stop_if_interrupted();
    numbers.resize(size_t(std::min<int64_t>(4096, rows() - begin)));
    std::iota(numbers.begin(), numbers.end(), begin);
    read(numbers, [&](int64_t position, const Row& row) { take(begin + position, row); });
  }
}

std::string Table::where(int64_t row) const {
  int64_t line = 1, end = starts_.at(size_t(row));
  std::vector<uint8_t> scratch;
  for (int64_t at = 0; at < end; at += kWindow) {
    stop_if_interrupted();
    const int64_t piece = std::min(kWindow, end - at);
    const uint8_t* text = bytes_->view(at, piece, scratch);
    line += std::count(text, text + piece, uint8_t('\n'));
  }
  return fmt::format("{}, line {}", name(), line);
}

}  // namespace netmend::dataset
