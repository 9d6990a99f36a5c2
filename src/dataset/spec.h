// The one grammar for data on the command line: NAME[:split][,key=value…] or KIND:PATH[,key=value…].
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace netmend::dataset {

struct Spec {
  std::string text;  ///< as typed
  std::string head;  ///< glyphs, mnist … or idx, npz …
  std::string rest;  ///< split of a name, path of a kind; may be empty
  std::map<std::string, std::string> options;

  bool is_name() const;  ///< head is one of the built-in names
};

/// Throws InputError: unknown heads and options suggest the nearest, an option given twice is refused.
Spec parse_spec(std::string_view text);
/// A spec as it can be typed again, options in alphabetical order.
std::string spec_text(const Spec& spec);
/// The specs that `--data TEXT` is short for: NAME:train and NAME:test, when TEXT is a built-in name without a split.
/// Otherwise only `test` is set.
struct Splits {
  std::optional<Spec> train, test;
};
Splits parse_splits(std::string_view data);

}  // namespace netmend::dataset
