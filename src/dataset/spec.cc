#include "dataset/spec.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "dataset/preprocess.h"

namespace netmend::dataset {
namespace {

struct Head {
  std::string name;
  bool builtin;
  std::vector<std::string> options;  ///< beside those that every head takes
};

const std::vector<Head>& heads() {
  static const std::vector<Head> all = {
      {"glyphs", true, {"seed"}},
      {"mnist", true, {}},
      {"fashion-mnist", true, {}},
      {"cifar10", true, {}},
      {"rt-polarity", true, {"length"}},
      {"adult", true, {"columns", "drop", "groups", "standardize"}},
      {"idx", false, {"labels", "kind", "type", "first"}},
      {"cifar", false, {"split"}},
      {"npz", false, {"x", "y", "kind", "type", "first"}},
      {"npy", false, {"y", "kind", "type", "first"}},
      {"csv",
       false,
       {"label", "kind", "header", "sep", "train", "columns", "drop", "groups", "categories", "missing", "standardize",
        "id"}},
      {"images", false, {"channels"}},
      {"saved", false, {"length", "type"}},
      {"text", false, {"label", "text", "vocab", "lower", "clean", "length", "header", "sep", "train", "id"}},
  };
  return all;
}

const std::vector<std::string>& splits() {
  static const std::vector<std::string> all = {"train", "test", "all"};
  return all;
}

std::vector<std::string> head_names(bool builtin) {
  std::vector<std::string> names;
  for (const Head& head : heads())
    if (head.builtin == builtin) names.push_back(head.name);
  return names;
}

const Head* find_head(std::string_view name) {
  for (const Head& head : heads())
    if (head.name == name) return &head;
  return nullptr;
}

[[noreturn]] void unknown_head(std::string_view text, std::string_view name) {
  std::vector<std::string> names = head_names(true), kinds = head_names(false), all = names;
  all.insert(all.end(), kinds.begin(), kinds.end());
  std::string what = name.empty() ? "the data spec is empty"
                                  : fmt::format("there is no data set or format '{}'{}", name, did_you_mean(name, all));
  throw InputError(what, fmt::format("Built in: {}; from files: {} (as in npz:test.npz,x=images,y=labels).",
                                     join(names, ", "), join(kinds, ":PATH, ") + ":PATH"));
}

/// Options whose values are lists: they keep the quotes of their items.
bool is_list(const std::string& key) {
  static const std::vector<std::string> lists = {"classes",    "groups",      "columns", "drop",
                                                 "categories", "meta_groups", "x",       "mean",
                                                 "std",        "standardize", "missing"};
  return std::find(lists.begin(), lists.end(), key) != lists.end();
}

/// Cuts at separators that stand outside of quotes; quotes stay.
std::vector<std::string> split_outside_quotes(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\' && i + 1 < text.size()) {
      parts.back() += text[i], parts.back() += text[++i];
      continue;
    }
    if (text[i] == '"') quoted = !quoted;
    if (text[i] == separator && !quoted)
      parts.emplace_back();
    else
      parts.back() += text[i];
  }
  if (quoted) fail("a quote in {} is not closed", printable(text));
  return parts;
}

std::string unquoted(std::string_view text) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return std::string(text);
  std::string plain;
  for (size_t i = 1; i + 1 < text.size(); ++i) {
    if (text[i] == '\\' && i + 2 < text.size()) ++i;
    plain += text[i];
  }
  return plain;
}

std::string quoted(const std::string& text, std::string_view special) {
  if (!text.empty() && text.find_first_of(special) == std::string::npos && text.find('"') == std::string::npos)
    return text;
  std::string out = "\"";
  for (char c : text) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out + "\"";
}

void check_split(const Spec& spec) {
  if (spec.rest.empty() || std::find(splits().begin(), splits().end(), spec.rest) != splits().end()) return;
  fail("{} has no split '{}'{}: choose from {}", spec.head, spec.rest, did_you_mean(spec.rest, splits()),
       join(splits(), ", "));
}

void add_option(Spec& spec, const Head& head, std::string_view part) {
  size_t equals = part.find('=');
  if (equals == part.npos || equals == 0) fail("'{}' in the data spec {} is not key=value", part, spec.text);
  std::string key(part.substr(0, equals)), value(part.substr(equals + 1));
  std::vector<std::string> known = head.options;
  for (const char* common : {"limit", "classes", "meta", "meta_id", "meta_groups"}) known.push_back(common);
  known.insert(known.end(), preprocess_keys().begin(), preprocess_keys().end());
  if (std::find(known.begin(), known.end(), key) == known.end())
    fail("{} has no option '{}'{}: choose from {}", spec.head, key, did_you_mean(key, known), join(known, ", "));
  if (value.empty()) fail("option {} in the data spec {} has no value", key, spec.text);
  if (!is_list(key)) value = unquoted(value);
  if (!spec.options.emplace(key, value).second) fail("option {} is given twice in the data spec {}", key, spec.text);
}

}  // namespace

bool Spec::is_name() const {
  const Head* known = find_head(head);
  return known && known->builtin;
}

Spec parse_spec(std::string_view text) {
  Spec spec;
  spec.text = std::string(trim(text));
  std::vector<std::string> parts = split_outside_quotes(spec.text, ',');
  size_t colon = parts[0].find(':');
  spec.head = parts[0].substr(0, colon);
  if (colon != std::string::npos) spec.rest = unquoted(parts[0].substr(colon + 1));
  const Head* head = find_head(spec.head);
  if (!head) unknown_head(spec.text, spec.head);
  if (head->builtin)
    check_split(spec);
  else if (spec.rest.empty())
    fail("the data spec '{}' names no file: write {}:PATH", spec.text, spec.head);
  for (size_t i = 1; i < parts.size(); ++i) add_option(spec, *head, parts[i]);
  return spec;
}

std::string spec_text(const Spec& spec) {
  std::string text = spec.head;
  if (!spec.rest.empty()) text += ":" + quoted(spec.rest, ",");
  for (const auto& [key, value] : spec.options) text += "," + key + "=" + (is_list(key) ? value : quoted(value, ","));
  return text;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items = split_outside_quotes(text, ':');
  for (std::string& item : items) item = unquoted(item);
  return items;
}

std::string join_list(const std::vector<std::string>& items) {
  std::vector<std::string> words;
  for (const std::string& item : items) words.push_back(quoted(item, ",:"));
  return join(words, ":");
}

Splits parse_splits(std::string_view data) {
  Spec spec = parse_spec(data);
  Splits splits;
  if (spec.is_name() && spec.rest.empty()) {
    splits.train = spec;
    splits.train->rest = "train";
    splits.train->text = spec_text(*splits.train);
    spec.rest = "test";
    spec.text = spec_text(spec);
  }
  splits.test = spec;
  return splits;
}

}  // namespace netmend::dataset
