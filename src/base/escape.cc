#include "base/escape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/text.h"

namespace netmend {
namespace {

bool plain_in_shell(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-./:=,+@%").find(c) != std::string_view::npos;
}

/// Every byte beyond ASCII by its number: whoever pastes it gives the same bytes, be they UTF-8 or not.
std::string by_numbers(const std::string& word) {
  std::string quoted = "$'";
  for (char c : word) {
    if (c == '\'' || c == '\\')
      quoted += std::string("\\") + c;
    else if (uint8_t(c) >= 0x20 && uint8_t(c) < 0x7f)
      quoted += c;
    else
      quoted += fmt::format("\\{:03o}", uint8_t(c));  // unlike \x, it ends after three digits
  }
  return quoted + "'";
}

/// What Excel and its kin begin a formula with.
bool looks_like_formula(const std::string& text) {
  double number = 0;
  return !text.empty() && std::string_view("=+-@\t\r").find(text[0]) != std::string_view::npos &&
         !parse_double(text, number);
}

}  // namespace

std::string shell_word(const std::string& word) {
  if (!word.empty() && word[0] != '=' && std::all_of(word.begin(), word.end(), plain_in_shell)) return word;
  if (printable(word) != word) return by_numbers(word);
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::optional<Shell> ShellPlace::read(std::string_view line, OwnWords program) {
  if (line.empty() || !line.starts_with(program.text) || printable(line) != line) return {};
  for (size_t at = program.text.size(); at < line.size();) {
    const bool numbers = line[at] == '$' && line.substr(at).starts_with("$'");
    if (numbers) ++at;
    if (line[at] == '\'') {
      for (++at; at < line.size() && line[at] != '\''; ++at)
        if (numbers && line[at] == '\\') ++at;
      if (at >= line.size()) return {};
    } else if (line[at] == '\\' && line.substr(at).starts_with("\\'")) {
      ++at;
    } else if (line[at] != ' ' && !plain_in_shell(line[at])) {
      return {};
    }
    ++at;
  }
  Shell command;
  command.text_ = line;
  return command;
}

CsvWriter::CsvWriter(std::ostream& out, OwnWords head, std::span<const std::string> more) : out_(out) {
  plain(head.text);
  for (const std::string& name : more) *this << name;
  end();
}

CsvWriter& CsvWriter::plain(std::string_view text) {
  if (!first_) out_ << ',';
  first_ = false;
  out_ << text;
  return *this;
}

CsvWriter& CsvWriter::operator<<(std::string_view text) {
  const std::string field = (looks_like_formula(std::string(text)) ? "'" : "") + std::string(text);
  if (field.find_first_of(",\"\n\r") == std::string::npos) return plain(field);
  std::string quoted = "\"";
  for (char c : field) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return plain(quoted + "\"");
}

CsvWriter& CsvWriter::operator<<(Digits number) {
  const bool shown = std::isfinite(number.value) || !number.where_finite;
  return plain(shown ? fmt::format("{:.{}g}", number.value, number.count) : std::string());
}

void CsvWriter::end() {
  out_ << '\n';
  first_ = true;
}

void write_csv(const std::string& path, OwnWords head, const std::function<void(CsvWriter&)>& produce,
               std::span<const std::string> more) {
  write_file(path, [&](std::ostream& out) {
    CsvWriter writer(out, head, more);
    produce(writer);
  });
}

std::string from_csv_field(const std::string& text) {
  return text.starts_with('\'') && looks_like_formula(text.substr(1)) ? text.substr(1) : text;
}

std::string XmlPlace::escape(std::string_view text) {
  std::string out;
  for (char c : printable(text)) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  // The two characters of UTF-8 that no XML document may hold.
  for (const char* never : {"\xef\xbf\xbe", "\xef\xbf\xbf"})
    for (size_t at = out.find(never); at != std::string::npos; at = out.find(never, at)) out.replace(at, 3, "?");
  return out;
}

std::string MarkdownPlace::escape(std::string_view text) {
  std::string out;
  for (char c : printable(text)) {
    if (std::string_view("|\\`*_<>[]&").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

Markdown MarkdownPlace::block(OwnWords language, std::string_view lines) {
  std::string fence = "```";
  const std::string body = utf8(lines);
  while (body.find(fence) != std::string::npos) fence += '`';
  Markdown made;
  made.text_ = fmt::format("{}{}\n{}{}{}\n", fence, language.text, body, body.ends_with('\n') ? "" : "\n", fence);
  return made;
}

}  // namespace netmend
