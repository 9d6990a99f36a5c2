// Values added to a TOML file without touching what is there: comments, order and spelling stay.
#pragma once

#include <string>
#include <vector>

namespace netmend::session {

/// One value of netmend.toml and how it is known.
struct Fact {
  std::string key;     ///< `model.kind`; parts that are no plain words are quoted
  std::string value;   ///< as TOML
  std::string source;  ///< for the comment
};

/// "text" with what needs it escaped; what is no UTF-8 is replaced.
std::string toml_string(const std::string& text);
/// A part of a key, quoted where it must be.
std::string toml_key(const std::string& word);

/// The text of a TOML file, bounded in size.
std::string read_toml(const std::string& path);

/// A new file: one line per value, with its source as a comment.
std::string fresh_toml(const std::vector<Fact>& facts, const std::string& heading);
/// `text` with those facts added whose keys it does not have; inside the tables that are there, whichever way they are
/// written. Throws InputError when `text` is not TOML. `path` is for messages.
std::string updated_toml(const std::string& text, const std::vector<Fact>& facts, const std::string& path);

/// `text` without the values of these keys, each of which must stand on lines of its own; keys that are not there are
/// passed over. Throws InputError for one that shares its line with others, which a person has to take out.
std::string trimmed_toml(const std::string& text, const std::vector<std::string>& keys, const std::string& path);

}  // namespace netmend::session
