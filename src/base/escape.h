// Names come from files that others wrote and may hold any bytes. One function for each place they go to; for a line on
// a terminal it is printable() of text.h, for TOML toml_string() of session, for JSON json_text().
#pragma once

#include <string>
#include <string_view>

namespace netmend {

/// A word as one argument of a shell: quoted unless it is made of plain characters alone. What a terminal would act on
/// is written as `$'\x1b'`, which bash, zsh and ksh read.
std::string shell_word(const std::string& word);

/// Whether a line is a command of netmend whose words are quoted as shell_word() does: pasting it starts nothing else.
bool is_own_command(std::string_view line);

/// A field of a CSV file, quoted where it must be. What a spreadsheet would take for a formula gets an apostrophe in
/// front, as OWASP advises; numbers stay numbers.
std::string csv_field(const std::string& text);
/// The text that csv_field() was given, from what a CSV reader makes of the field.
std::string from_csv_field(const std::string& text);

/// Text or a quoted attribute of XML and HTML: one line, well-formed whatever the bytes are.
std::string xml_text(std::string_view text);

/// A cell of a Markdown table, or a part of a paragraph.
std::string markdown_text(std::string_view text);

}  // namespace netmend
