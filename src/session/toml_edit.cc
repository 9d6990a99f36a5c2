#include "session/toml_edit.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "session/toml.h"

namespace netmend::session {
namespace {

std::string fact_line(const Fact& fact, const std::string& key, size_t width) {
  std::string line = fmt::format("{} = {}", key, fact.value);
  if (fact.source.empty()) return line;
  return fmt::format("{:<{}}  # {}", line, width, printable(fact.source));
}

/// `a."b.c".d` → a, b.c, d; escapes as toml_string() writes them.
std::vector<std::string> key_parts(const std::string& key) {
  std::vector<std::string> parts(1);
  bool quoted = false;
  for (size_t i = 0; i < key.size(); ++i) {
    if (quoted && key[i] == '\\' && i + 5 < key.size() && key[i + 1] == 'u')
      parts.back() += char(std::stoi(key.substr(i + 2, 4), nullptr, 16)), i += 5;
    else if (quoted && key[i] == '\\' && i + 1 < key.size())
      parts.back() += key[++i];
    else if (key[i] == '"')
      quoted = !quoted;
    else if (key[i] == '.' && !quoted)
      parts.emplace_back();
    else
      parts.back() += key[i];
  }
  return parts;
}

/// Byte position of a character position in a line.
size_t byte_of(const std::string& line, size_t column) {
  size_t at = 0;
  for (size_t seen = 1; seen < column && at < line.size(); ++seen) {
    ++at;
    while (at < line.size() && (uint8_t(line[at]) & 0xC0) == 0x80) ++at;
  }
  return at;
}

class Updater {
 public:
  Updater(const std::string& text, const std::string& path) : lines_(split(text, '\n')), path_(path) {
    if (!lines_.empty() && lines_.back().empty()) lines_.pop_back();
    parse(text);
  }

  void add(const Fact& fact) {
    std::vector<std::string> parts = key_parts(fact.key);
    // The innermost table on the way that has a place of its own: a header or braces.
    const toml::table *at = &file_, *inside = nullptr;
    size_t depth = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const toml::node* next = at->get(parts[i]);
      if (!next) break;
      if (!next->is_table()) return;  // written as something else: the reader will say so
      at = next->as_table();
      if (at->is_inline() || has_header(*at, {parts.begin(), parts.begin() + std::ptrdiff_t(i) + 1}))
        inside = at, depth = i + 1;
    }
    const toml::node* there = &file_;
    for (const std::string& part : parts) there = there && there->is_table() ? there->as_table()->get(part) : nullptr;
    if (there) return;
    std::vector<std::string> rest;
    for (size_t i = depth; i < parts.size(); ++i) rest.push_back(toml_key(parts[i]));
    if (inside && inside->is_inline())
      insert_inline(*inside, fact, join(rest, "."));
    else if (inside)
      insert_below(size_t(inside->source().begin.line), fact_line(fact, join(rest, "."), 0));
    else
      insert_top(fact_line(fact, join(rest, "."), 0));
    parse(text());
  }

  void remove(const std::string& key) {
    std::vector<std::string> parts = key_parts(key);
    const toml::node* node = &file_;
    const toml::table* inside = nullptr;
    for (const std::string& part : parts) {
      inside = node->as_table();
      node = inside ? inside->get(part) : nullptr;
      if (!node) return;
    }
    auto where = node->source();
    const bool headed = node->is_table() && !node->as_table()->is_inline();
    if (headed || inside->is_inline() || where.end.line < where.begin.line || where.begin.line < 1)
      throw InputError(fmt::format("{}, line {}: {} cannot be removed by itself, because it shares its table with "
                                   "other keys",
                                   path_, where.begin.line, key),
                       "Remove it by hand.");
    lines_.erase(lines_.begin() + std::ptrdiff_t(where.begin.line) - 1,
                 lines_.begin() + std::ptrdiff_t(where.end.line));
    parse(text());
  }

  std::string text() const { return join(lines_, "\n") + "\n"; }

 private:
  void parse(const std::string& text) { file_ = parse_toml(text, path_); }

  /// Written as [name].
  bool is_headed(const toml::table& table) const {
    size_t line = size_t(table.source().begin.line);
    return line >= 1 && line <= lines_.size() && trim(lines_[line - 1]).starts_with("[");
  }

  /// Written as [a.b] with all of its path: the tables on the way to it stand on the same line.
  bool has_header(const toml::table& table, const std::vector<std::string>& path) const {
    if (!is_headed(table)) return false;
    const toml::table header = parse_toml(trim(lines_[size_t(table.source().begin.line) - 1]), path_);
    const toml::table* at = &header;
    for (const std::string& part : path) {
      const toml::node* next = at->get(part);
      if (!next || !next->is_table()) return false;
      at = next->as_table();
    }
    return at->empty();
  }

  void insert_inline(const toml::table& table, const Fact& fact, const std::string& key) {
    // The comment would end the table's line early: it goes on a line of its own above.
    auto end = table.source().end;
    std::string& line = lines_.at(size_t(end.line) - 1);
    const size_t behind = byte_of(line, size_t(end.column));  // where a table around it may end at once
    size_t brace = line.rfind('}', behind > 0 ? behind - 1 : 0);
    check(brace != std::string::npos, "an inline table ends in a brace");
    size_t last = line.find_last_not_of(" \t", brace - 1);
    bool empty = last != std::string::npos && line[last] == '{';
    line.replace(last + 1, brace - last - 1, fmt::format("{}{} = {} ", empty ? " " : ", ", key, fact.value));
    if (!fact.source.empty())
      lines_.insert(lines_.begin() + std::ptrdiff_t(table.source().begin.line) - 1,
                    fmt::format("# {} = {}: {}", key, fact.value, printable(fact.source)));
  }

  /// Behind the last value of the table whose header stands on `line`.
  void insert_below(size_t line, const std::string& text) {
    size_t at = line, last = line;
    for (; at < lines_.size() && !opens_table(at); ++at)
      if (!trim(lines_[at]).empty() && !trim(lines_[at]).starts_with("#")) last = at + 1;
    lines_.insert(lines_.begin() + std::ptrdiff_t(last), text);
  }

  /// Behind the last value that belongs to no header.
  void insert_top(const std::string& text) {
    size_t first = 0;
    while (first < lines_.size() && !opens_table(first)) ++first;
    size_t at = first;
    while (at > 0 && first < lines_.size() && (trim(lines_[at - 1]).empty() || trim(lines_[at - 1]).starts_with("#")))
      --at;
    lines_.insert(lines_.begin() + std::ptrdiff_t(at), text);
  }

  /// A header, not a line of a list.
  bool opens_table(size_t line) const {
    for (const auto& [key, node] : file_)
      if (const toml::table* table = node.as_table();
          table && !table->is_inline() && size_t(table->source().begin.line) == line + 1 && is_headed(*table))
        return true;
    return trim(lines_[line]).starts_with("[") && headed_somewhere(file_, line + 1);
  }

  static bool headed_somewhere(const toml::table& table, size_t line) {
    for (const auto& [key, node] : table) {
      if (const toml::table* inner = node.as_table())
        if (size_t(inner->source().begin.line) == line || headed_somewhere(*inner, line)) return true;
      if (const toml::array* list = node.as_array(); list && list->is_array_of_tables())
        for (const toml::node& item : *list)
          if (size_t(item.source().begin.line) == line) return true;
    }
    return false;
  }

  std::vector<std::string> lines_;
  std::string path_;
  toml::table file_;
};

}  // namespace

std::string toml_string(const std::string& text) {
  std::string out = "\"";
  for (char c : utf8(text)) {
    if (c == '"' || c == '\\')
      out += std::string("\\") + c;
    else if (uint8_t(c) < 0x20 || c == 0x7f)
      out += fmt::format("\\u{:04x}", uint8_t(c));
    else
      out += c;
  }
  return out + "\"";
}

std::string toml_key(const std::string& word) {
  bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return plain ? word : toml_string(word);
}

std::string fresh_toml(const std::vector<Fact>& facts, const std::string& heading) {
  std::string text = heading;
  size_t width = 0;
  for (const Fact& fact : facts) {
    size_t length = fact.key.size() + 3 + fact.value.size();
    if (length <= 48) width = std::max(width, length);
  }
  std::string group;
  for (const Fact& fact : facts) {
    std::string first = key_parts(fact.key)[0];
    if (!group.empty() && first != group) text += "\n";
    group = first;
    text += fact_line(fact, fact.key, width) + "\n";
  }
  return text;
}

std::string updated_toml(const std::string& text, const std::vector<Fact>& facts, const std::string& path) {
  Updater updater(text, path);
  for (const Fact& fact : facts) updater.add(fact);
  return updater.text();
}

std::string trimmed_toml(const std::string& text, const std::vector<std::string>& keys, const std::string& path) {
  Updater updater(text, path);
  for (const std::string& key : keys) updater.remove(key);
  return updater.text();
}

}  // namespace netmend::session
