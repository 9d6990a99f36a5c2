// The one grammar for data on the command line: NAME[:split][,key=value…] or KIND:PATH[,key=value…]. What holds a
// comma, a colon of a list or a quote stands in double quotes, as in csv:"a,b.csv",label=y and classes="a:b":c; inside
// them a backslash takes the next character as it is.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace netmend::dataset {

struct Spec {
  std::string text;                            ///< as typed
  std::string head;                            ///< glyphs, mnist … or idx, npz …
  std::string rest;                            ///< split of a name, path of a kind; may be empty
  std::map<std::string, std::string> options;  ///< values without quotes; lists as split_list takes them

  bool is_name() const;  ///< head is one of the built-in names
};

/// Throws InputError: unknown heads and options suggest the nearest, an option given twice is refused.
Spec parse_spec(std::string_view text);
/// A spec as it can be typed again, options in alphabetical order.
std::string spec_text(const Spec& spec);
/// The items of a list such as the value of `classes`: colons separate, quotes are taken off. Throws InputError for a
/// quote that does not end.
std::vector<std::string> split_list(std::string_view text);
/// The other way round.
std::string join_list(const std::vector<std::string>& items);
/// The specs that `--data TEXT` is short for: NAME:train and NAME:test, when TEXT is a built-in name without a split.
/// Otherwise only `test` is set.
struct Splits {
  std::optional<Spec> train, test;
};
Splits parse_splits(std::string_view data);

}  // namespace netmend::dataset
