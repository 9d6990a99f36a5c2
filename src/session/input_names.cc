#include "session/input_names.h"

#include <algorithm>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/text.h"
#include "dataset/bytes.h"
#include "dataset/table.h"
#include "findings/accepted.h"

namespace netmend::session {

std::unordered_set<std::string> read_names(const std::string& path) {
  dataset::TableFormat format = dataset::table_format(path, {});
  std::string text = read_file(path, int64_t(1) << 30);
  dataset::Row row;
  std::unordered_set<std::string> names;
  size_t at = text.starts_with("\xef\xbb\xbf") ? 3 : 0, column = 0;  // a byte-order mark is no part of a name
  for (bool first = true; at < text.size() && dataset::parse_row(text, at, format, true, row); first = false) {
    if (row.empty()) continue;
    if (first) {
      auto head = std::find(row.begin(), row.end(), "id");
      if (head == row.end()) head = std::find(row.begin(), row.end(), "sample");
      if (head != row.end()) {
        column = size_t(head - row.begin());
        continue;
      }
    }
    if (column < row.size() && !trim(row[column]).empty()) names.insert(from_csv_field(std::string(trim(row[column]))));
  }
  if (names.empty())
    throw InputError(path + " names no inputs",
                     "Give a file with one name per line, or a CSV table with a column `id`.");
  return names;
}

std::unordered_set<std::string> accepted_inputs(const Config& config) {
  std::unordered_set<std::string> names;
  for (const AcceptedInputs& one : config.accepted_inputs)
    if (one.until.empty() || one.until >= findings::today()) names.merge(read_names(one.file));
  return names;
}

}  // namespace netmend::session
