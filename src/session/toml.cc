#include "session/toml.h"

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "session/toml_edit.h"

namespace netmend::session {
namespace {

constexpr int64_t kLargest = 1 << 20;
constexpr int kDeepest = 32;  ///< parts of a dotted key: each is a table inside the one before
constexpr const char* kHint = "TOML is key = value, strings in quotes, lists in [ ], tables in { } on one line.";

/// toml++ bounds brackets but not `a.a.a.…`, and what nests without end overflows the stack when it is let go.
void require_shallow(std::string_view text, const std::string& path) {
  int dots = 0;
  int64_t line = 1;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++line, dots = 0, quote = 0;
    if (quote && c == '\\' && quote == '"') {
      ++i;
    } else if (c == '"' || c == '\'') {
      quote = quote == c ? 0 : quote ? quote : c;
    } else if (!quote) {
      if (c == '.' && ++dots > kDeepest) fail("{}, line {}: a key has more than {} parts", path, line, kDeepest);
      if (c == ',' || c == '=' || c == '[' || c == '{' || c == '#') dots = 0;
    }
  }
}

}  // namespace

toml::table parse_toml(std::string_view text, const std::string& path) {
  if (int64_t(text.size()) > kLargest)
    fail("{} is too large: it has {}, and at most {} are read", path, bytes_text(double(text.size())),
         bytes_text(double(kLargest)));
  require_shallow(text, path);
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    throw InputError(fmt::format("{}, line {}: {}", path, error.source().begin.line,
                                 printable(std::string(error.description()).substr(0, 200))),
                     kHint);
  }
}

std::string read_toml(const std::string& path) { return read_file(path, kLargest); }

}  // namespace netmend::session
