#include "dataset/options.h"

#include "base/error.h"
#include "base/text.h"
#include "dataset/spec.h"

namespace netmend::dataset {

std::string text_option(const OptionMap& options, const std::string& key, const std::string& otherwise) {
  auto given = options.find(key);
  return given == options.end() ? otherwise : given->second;
}

std::vector<std::string> list_option(const OptionMap& options, const std::string& key) {
  auto given = options.find(key);
  return given == options.end() ? std::vector<std::string>() : split_list(given->second);
}

bool yes_option(const OptionMap& options, const std::string& key, bool otherwise) {
  auto given = options.find(key);
  if (given == options.end()) return otherwise;
  const std::string word = lower(given->second);
  if (word == "yes" || word == "true" || word == "1") return true;
  if (word == "no" || word == "false" || word == "0") return false;
  fail("{}={} is neither yes nor no", key, given->second);
}

int64_t int_option(const OptionMap& options, const std::string& key, int64_t otherwise, int64_t least, int64_t most) {
  auto given = options.find(key);
  if (given == options.end()) return otherwise;
  int64_t value = 0;
  if (!parse_int(given->second, value) || value < least || value > most)
    fail("{}={} is not a whole number from {} to {}", key, given->second, with_commas(least), with_commas(most));
  return value;
}

}  // namespace netmend::dataset
