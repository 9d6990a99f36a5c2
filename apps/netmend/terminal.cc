#include "netmend/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"

namespace netmend::app {

void print_json(const Json& json) {
  const std::string text = json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void say(const Common& common, const std::string& line) {
  if (!common.quiet) fmt::print(stderr, "{}\n", line);
}

std::string counted(int64_t count, const std::string& what) {
  return fmt::format("{} {}{}", with_commas(count), what, count == 1 ? "" : "s");
}

size_t terminal_width() {
  if (const char* set = std::getenv("COLUMNS"))
    if (int64_t columns = 0; parse_int(set, columns) && columns >= 20 && columns <= 1000) return size_t(columns);
  winsize size{};
  if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) return size.ws_col;
  return 100;
}

bool use_colours() { return isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR"); }

size_t text_columns(const std::string& text) {
  size_t count = 0;
  for (char c : text) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

void print_wrapped(const std::string& text, size_t margin, size_t first) {
  const size_t width = std::max<size_t>(terminal_width(), margin + 20);
  const std::string indent(margin, ' ');
  std::string line = first > 0 ? "" : indent;
  size_t used = first > 0 ? first : margin;
  bool empty = true;
  for (const std::string& word : split(printable(text), ' ')) {
    const size_t own = text_columns(word);
    if (!empty && used + 1 + own > width) {
      fmt::print("{}\n", line);
      line = indent, used = margin, empty = true;
    }
    line += (empty ? "" : " ") + word;
    used += own + (empty ? 0 : 1);
    empty = false;
  }
  fmt::print("{}\n", line);
}

}  // namespace netmend::app
