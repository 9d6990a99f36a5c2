// Names come from files that others wrote and may hold any bytes. One way to each place they go to, and types that
// leave no other: CsvWriter, Xml, Markdown, Shell. Lines on a terminal go through print() of the program, which makes
// them printable(); TOML is written by toml_string() of session, JSON by json_text().
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <functional>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace netmend {

/// A word as one argument of a shell: quoted unless it is made of plain characters alone. What a terminal would act on
/// is written as `$'\x1b'`, which bash, zsh and ksh read.
std::string shell_word(const std::string& word);

/// The text that a field of a CSV file stands for, from what a CSV reader makes of it: CsvWriter puts an apostrophe
/// before what a spreadsheet would take for a formula.
std::string from_csv_field(const std::string& text);

/// Words of our own: a literal.
struct OwnWords {
  consteval OwnWords(const char* words) : text(words) {}  // NOLINT(google-explicit-constructor)
  std::string_view text;
};

/// A number with so many digits that count.
struct Digits {
  double value;
  int count = 6;
  bool where_finite = false;  ///< an empty field for NaN and Inf
};

/// Rows of a CSV file, field by field. A text is quoted where it must be, and what a spreadsheet would take for a
/// formula gets an apostrophe in front, as OWASP advises; numbers stay numbers. There is no way to write anything else.
class CsvWriter {
 public:
  /// `head`: names of columns, with commas between them; `more`: columns behind them whose names come from data.
  CsvWriter(std::ostream& out, OwnWords head, std::span<const std::string> more = {});
  CsvWriter& operator<<(std::string_view text);
  CsvWriter& operator<<(const char* text) { return *this << std::string_view(text); }
  CsvWriter& operator<<(const std::string& text) { return *this << std::string_view(text); }
  CsvWriter& operator<<(Digits number);
  template <std::integral Whole>
  CsvWriter& operator<<(Whole number) {
    return plain(std::to_string(+number));
  }
  CsvWriter& operator<<(double) = delete;  ///< Digits says how many of them
  template <typename... Values>
  void row(const Values&... values) {
    ((*this << values), ...);
    end();
  }
  void end();

 private:
  CsvWriter& plain(std::string_view text);
  std::ostream& out_;
  bool first_ = true;
};
/// A CSV file, whole or not at all.
void write_csv(const std::string& path, OwnWords head, const std::function<void(CsvWriter&)>& produce,
               std::span<const std::string> more = {});

/// Text that is ready for one kind of document. It is made of words of our own, a format that is a literal, and of
/// values: every text among them is escaped for that place. There is no other way to make one, so that a name from a
/// file cannot be forgotten, and what is ready for another place does not compile.
template <typename Place>
class Ready {
 public:
  template <typename Value>
  static constexpr bool takes = std::is_same_v<Value, Ready> || std::is_arithmetic_v<Value> ||
                                std::is_convertible_v<const Value&, std::string_view>;
  template <typename Value>
  using Shown = std::conditional_t<std::is_arithmetic_v<Value>, Value, std::string>;

  Ready() = default;
  template <typename... Values>
  requires(takes<std::decay_t<Values>>&&...) static Ready
      of(fmt::format_string<Shown<std::decay_t<Values>>...> words, const Values&... values) {
    Ready made;
    made.text_ = fmt::format(words, shown(values)...);
    return made;
  }
  Ready& operator+=(const Ready& more) {
    text_ += more.text_;
    return *this;
  }
  friend Ready operator+(Ready before, const Ready& more) { return before += more; }
  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  friend bool operator==(const Ready& one, std::string_view text) { return one.text_ == text; }
  friend bool operator==(const Ready&, const Ready&) = default;
  template <typename Json>
  friend void to_json(Json& json, const Ready& ready) {
    json = ready.text_;
  }

 private:
  friend Place;
  template <typename Value>
  static Shown<std::decay_t<Value>> shown(const Value& value) {
    if constexpr (std::is_same_v<Value, Ready>)
      return value.text_;
    else if constexpr (std::is_arithmetic_v<Value>)
      return value;
    else
      return Place::escape(value);
  }
  std::string text_;
};

/// XML, SVG and HTML: text and quoted attributes, one line each, well-formed whatever the bytes are.
struct XmlPlace {
  static std::string escape(std::string_view text);
};
using Xml = Ready<XmlPlace>;

/// Paragraphs and cells of tables.
struct MarkdownPlace {
  static std::string escape(std::string_view text);
  /// Lines that stay as they are, between fences that are longer than any within.
  static Ready<MarkdownPlace> block(OwnWords language, std::string_view lines);
};
using Markdown = Ready<MarkdownPlace>;

/// A command, which can be pasted.
struct ShellPlace {
  static std::string escape(std::string_view word) { return shell_word(std::string(word)); }
  /// A line that begins with `program` and whose words are quoted as shell_word() does, so that pasting it starts that
  /// program and nothing else; none where it is anything else.
  static std::optional<Ready<ShellPlace>> read(std::string_view line, OwnWords program = "netmend ");
};
using Shell = Ready<ShellPlace>;

}  // namespace netmend
