#include "netmend/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "base/json.h"
#include "base/text.h"

namespace netmend::app {

void print_text(std::FILE* out, std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of("\n\t", at), text.size());
    const std::string plain = printable(text.substr(at, end - at));
    std::fwrite(plain.data(), 1, plain.size(), out);
    if (end < text.size()) std::fputc(text[end], out);
    at = end + 1;
  }
}

void mark_partial(Json& json, int status) {
  if (status == 130) json["partial"] = true;
}

void print_json(const Json& json) {
  const std::string text = json_text(json, 2) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void say(const Common& common, const std::string& line) {
  if (!common.quiet) tell(line);
}

void tell(const std::string& line) {
  print_text(stderr, line + "\n");  // when nobody listens, nobody is to be told
}

std::string counted(int64_t count, const std::string& what) {
  return fmt::format("{} {}{}", with_commas(count), what, count == 1 ? "" : "s");
}

namespace {
bool whole_lines = false;
}
void never_wrap() { whole_lines = true; }

size_t terminal_width() {
  if (whole_lines) return std::numeric_limits<uint32_t>::max();
  if (const char* set = std::getenv("COLUMNS"))
    if (int64_t columns = 0; parse_int(set, columns) && columns >= 20 && columns <= 1000) return size_t(columns);
  winsize size{};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 100;
}

void print_weighted(const std::string& text, bool bold) {
  const bool plain = !isatty(STDOUT_FILENO) || std::getenv("NO_COLOR");
  if (!plain) std::fputs(bold ? "\033[1m" : "\033[2m", stdout);
  print_text(stdout, text);
  if (!plain) std::fputs("\033[0m", stdout);
}

size_t text_columns(const std::string& text) {
  size_t count = 0;
  for (char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

void print_wrapped(const std::string& text, size_t margin, size_t first, std::FILE* out) {
  const size_t width = std::max<size_t>(terminal_width(), margin + 20);
  const std::string indent(margin, ' ');
  std::string line = first > 0 ? "" : indent;
  size_t used = first > 0 ? first : margin;
  bool empty = true;
  for (const std::string& word : split(printable(text), ' ')) {
    const size_t own = text_columns(word);
    if (word.empty() && empty && line == indent && used == margin) continue;  // spaces at which the line was cut
    if (!empty && used + 1 + own > width) {
      print(out, "{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
      line = indent, used = margin, empty = true;
    }
    line += (empty ? "" : " ") + word;
    used += own + (empty ? 0 : 1);
    empty = false;
  }
  print(out, "{}\n", line);
}

void print_parts(const std::vector<std::string>& parts, size_t margin, size_t first) {
  std::string line;
  for (const std::string& part : parts) {
    if (!line.empty() && std::max(first, margin) + text_columns(line) + 3 + text_columns(part) > terminal_width()) {
      print_wrapped(line, margin, first);
      line.clear(), first = 0;
    }
    line += (line.empty() ? "" : "   ") + part;
  }
  if (!line.empty() || first > 0) print_wrapped(line, margin, first);
}

void print_labelled(const std::string& label, const std::string& text) {
  const size_t at = std::max<size_t>(12, label.size() + 3);
  print("  {:<{}}", label, at - 2);
  print_wrapped(text, at, at);
}

namespace {

using Row = std::vector<std::string>;

Row printable_row(const Row& row, size_t columns) {
  Row cells;
  for (const std::string& cell : row) cells.push_back(printable(cell));
  cells.resize(columns);
  return cells;
}

/// Columns from `first` to before `last`, each as wide as in the whole table.
std::string line_of(const Row& row, const Table& table, const std::vector<size_t>& widths, size_t first, size_t last) {
  std::string line;
  for (size_t c = first; c < last; ++c) {
    const std::string gap(std::max(widths[c], text_columns(row[c])) - text_columns(row[c]), ' ');
    line += (c == first ? "" : "  ") + (table.align.at(c) == 'r' ? gap + row[c] : row[c] + gap);
  }
  line.resize(line.find_last_not_of(' ') + 1);
  return line;
}

size_t width_of(const std::vector<size_t>& widths, size_t first) {
  size_t sum = 0;
  for (size_t c = first; c < widths.size(); ++c) sum += widths[c] + (c == first ? 0 : 2);
  return sum;
}

/// `heading value   heading value`
void print_values(const Row& head, const Row& row, size_t names, size_t margin) {
  std::vector<std::string> parts;
  for (size_t c = names; c < row.size(); ++c)
    if (!row[c].empty()) parts.push_back(head[c].empty() ? row[c] : head[c] + " " + row[c]);
  print_parts(parts, margin);
}

}  // namespace

void print_table(const Table& table) {
  const size_t columns = table.head.size(), inner = table.margin + 4;
  const std::string margin(table.margin, ' ');
  std::vector<Row> rows;
  for (const Row& row : table.rows) rows.push_back(printable_row(row, columns));
  const Row head = printable_row(table.head, columns);
  std::vector<size_t> widths(columns, 0);
  for (size_t c = 0; c < columns; ++c) {
    widths[c] = text_columns(head[c]);
    for (const Row& row : rows) widths[c] = std::max(widths[c], text_columns(row[c]));
  }
  if (table.margin + width_of(widths, 0) <= terminal_width()) {
    print("{}{}\n", margin, line_of(head, table, widths, 0, columns));
    for (const Row& row : rows) print("{}{}\n", margin, line_of(row, table, widths, 0, columns));
    return;
  }
  // A text at the end of lines is wrapped in its column where there is room for some words.
  const size_t last = columns - 1, before = table.margin + width_of({widths.begin(), widths.end() - 1}, 0) + 2;
  constexpr size_t kSomeWords = 24;
  if (last >= table.names && table.align.at(last) == 'l' && before + kSomeWords <= terminal_width()) {
    auto print_row = [&](const Row& row) {
      const std::string line = margin + line_of(row, table, widths, 0, last);
      if (row[last].empty()) return print("{}\n", line);
      print("{}{}", line, std::string(before - text_columns(line), ' '));
      print_wrapped(row[last], before, before);
    };
    print_row(head);
    for (const Row& row : rows) print_row(row);
    return;
  }
  const bool aligned = inner + width_of(widths, table.names) <= terminal_width();
  print("{}{}\n", margin, line_of(head, table, widths, 0, table.names));
  if (aligned) print("{}{}\n", std::string(inner, ' '), line_of(head, table, widths, table.names, columns));
  std::vector<size_t> own = widths;
  own[table.names - 1] = 0;
  for (const Row& row : rows) {
    print_wrapped(line_of(row, table, own, 0, table.names), table.margin);
    if (aligned)
      print("{}{}\n", std::string(inner, ' '), line_of(row, table, widths, table.names, columns));
    else
      print_values(head, row, table.names, inner);
  }
}

std::string flops_text(double flops) {
  if (flops < 1e6) return fmt::format("{:.1f} k", flops / 1e3);
  return flops >= 1e12  ? fmt::format("{:.1f} T", flops / 1e12)
         : flops >= 1e9 ? fmt::format("{:.1f} G", flops / 1e9)
                        : fmt::format("{:.2f} M", flops / 1e6);
}

}  // namespace netmend::app
