#include "preflight/discover.h"

#include <ATen/core/Tensor.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "session/session.h"

namespace netmend::preflight {
namespace fs = std::filesystem;

namespace {

constexpr int64_t kLargestNote = 16 << 20;  ///< of a file beside the model

std::optional<std::string> beside(const std::string& model, const std::string& name) {
  fs::path path = fs::path(model).parent_path() / name;
  std::error_code error;
  if (!fs::is_regular_file(path, error) || int64_t(fs::file_size(path, error)) > kLargestNote) return std::nullopt;
  std::string text = read_file(path.string(), kLargestNote);
  if (text.starts_with("\xef\xbb\xbf")) text.erase(0, 3);  // the mark some programs put before UTF-8
  return text;
}

/// Words between quotes, and the numbers that stand before a colon. Python prints lists and dictionaries so.
class Literal {
 public:
  explicit Literal(const std::string& text) : text_(text) {}

  std::vector<std::string> words() {
    skip();
    bool dictionary = take('{');
    if (!dictionary && !take('[') && !take('(')) return {};
    std::map<int64_t, std::string> found;
    for (int64_t position = 0;; ++position) {
      skip();
      if (at_ >= text_.size()) return {};
      if (take(dictionary ? '}' : ']') || take(')')) break;
      int64_t key = position;
      if (dictionary && !number(key)) return {};
      std::optional<std::string> word = quoted();
      if (!word || !found.emplace(key, *word).second) return {};
      skip();
      take(',');
    }
    std::vector<std::string> list;
    for (const auto& [key, word] : found) {
      if (key != int64_t(list.size())) return {};  // numbers that are left out would shift all names behind them
      list.push_back(word);
    }
    return list;
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(uint8_t(text_[at_]))) ++at_;
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool number(int64_t& key) {
    std::optional<std::string> word;
    size_t begin = at_;
    if (text_[at_] == '"' || text_[at_] == '\'') {
      word = quoted();
    } else {
      while (at_ < text_.size() && std::isdigit(uint8_t(text_[at_]))) ++at_;
      word = text_.substr(begin, at_ - begin);
    }
    skip();
    bool colon = take(':');
    skip();
    return word && colon && parse_int(*word, key);
  }
  std::optional<std::string> quoted() {
    if (at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) return std::nullopt;
    const size_t begin = at_;
    char quote = text_[at_++];
    std::string word;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      word += text_[at_++];
    }
    if (!take(quote)) return std::nullopt;
    // What JSON can read it knows better: `\u00e9` and its kin.
    const nlohmann::json json = json_or_null(std::string_view(text_).substr(begin, at_ - begin));
    return json.is_string() ? json.get<std::string>() : word;
  }

  const std::string& text_;
  size_t at_ = 0;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n')) lines.emplace_back(trim(line));
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

std::vector<std::string> id2label(const std::string& text) {
  const nlohmann::json json = json_or_null(text);
  if (!json.is_object() || !json.contains("id2label") || !json["id2label"].is_object()) return {};
  return parse_words(json_text(json["id2label"]));
}

/// Names that can be used: none empty, none twice.
bool usable(const std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const std::string& name : names)
    if (name.empty() || !seen.insert(name).second) return false;
  return !names.empty();
}

std::string number_list(const std::vector<double>& numbers) {
  std::vector<std::string> words;
  for (double number : numbers) words.push_back(fmt::format("{:.6g}", number));
  return fmt::format("[{}]", join(words, ", "));
}

/// `0.5:0.25` of a model's metadata. Words that are no numbers are quoted: a file that came from elsewhere must not
/// write other lines, and the reader says what is wrong with them.
std::string metadata_list(const std::string& text) {
  std::vector<std::string> items;
  for (const std::string& word : split(text, ':')) {
    double number = 0;
    items.push_back(parse_double(word, number) ? fmt::format("{}", number) : session::toml_string(word));
  }
  return fmt::format("[{}]", join(items, ", "));
}

std::optional<std::vector<double>> numbers_of(const nlohmann::json& json) {
  if (!json.is_array() || json.empty() || json.size() > 16) return std::nullopt;
  std::vector<double> numbers;
  for (const auto& item : json) {
    if (!item.is_number()) return std::nullopt;
    numbers.push_back(item.get<double>());
  }
  return numbers;
}

/// What Hugging Face keeps beside a model of images.
void from_preprocessor(const std::string& text, const std::string& where, std::vector<session::Fact>& facts) {
  const nlohmann::json json = json_or_null(text);
  if (!json.is_object()) return;
  const std::string source = "preprocessor_config.json";
  auto says = [&](const char* key) { return !json.contains(key) || !json[key].is_boolean() || json[key].get<bool>(); };
  // A value of another type is none.
  const bool told = json.contains("rescale_factor");
  const double factor = !told                                ? 1.0 / 255
                        : json["rescale_factor"].is_number() ? json["rescale_factor"].get<double>()
                                                             : 0;
  if (says("do_rescale") && factor > 0) {
    facts.push_back(
        {where + "scale", std::abs(factor - 1.0 / 255) < 1e-6 ? "\"1/255\"" : fmt::format("{:.9g}", factor), source});
  }
  if (says("do_normalize"))
    for (const auto& [key, name] : {std::pair{"image_mean", "mean"}, {"image_std", "std"}})
      if (auto numbers = json.contains(key) ? numbers_of(json[key]) : std::nullopt)
        facts.push_back({where + name, number_list(*numbers), source});
  if (!says("do_resize") || !json.contains("size")) return;
  const auto& size = json["size"];
  auto get = [](const nlohmann::json& from, const char* key) {
    return from.is_object() && from.contains(key) && from[key].is_number_integer() ? from[key].get<int64_t>() : 0;
  };
  std::vector<std::string> parts;
  int64_t shorter = size.is_number_integer() ? size.get<int64_t>() : get(size, "shortest_edge");
  if (get(size, "height") > 0) {
    parts = {fmt::format("height = {}, width = {}", get(size, "height"), get(size, "width"))};
  } else if (shorter > 0) {
    parts = {fmt::format("short = {}", shorter)};
    if (json.contains("crop_size") && says("do_center_crop")) {
      int64_t crop =
          json["crop_size"].is_number_integer() ? json["crop_size"].get<int64_t>() : get(json["crop_size"], "height");
      if (crop > 0) parts.push_back(fmt::format("crop = {}", crop));
    }
  }
  if (parts.empty()) return;
  const char* filters[] = {"nearest", "lanczos", "bilinear", "bicubic"};
  const bool named = json.contains("resample") && json["resample"].is_number_integer();
  if (const int64_t filter = named ? json["resample"].get<int64_t>() : 2; filter >= 0 && filter < 4)
    parts.push_back(fmt::format("filter = \"{}\"", filters[filter]));
  facts.push_back({where + "resize", fmt::format("{{ {} }}", join(parts, ", ")), source});
}

}  // namespace

std::vector<std::string> parse_words(const std::string& text) { return Literal(text).words(); }

FoundClasses find_classes(const model::Graph& graph, const std::string& model) {
  for (const char* key : {"names", "class_names", "classes", "labels", "id2label"})
    if (auto hit = graph.metadata.find(key); hit != graph.metadata.end())
      if (auto names = parse_words(hit->second); usable(names))
        return {names, fmt::format("the model's metadata, `{}`", key)};
  for (const char* file : {"labels.txt", "classes.txt"})
    if (auto text = beside(model, file))
      if (auto names = lines_of(*text); usable(names)) return {names, file};
  if (auto text = beside(model, "classes.json"))
    if (auto names = parse_words(*text); usable(names)) return {names, "classes.json"};
  if (auto text = beside(model, "config.json"))
    if (auto names = id2label(*text); usable(names)) return {names, "config.json, `id2label`"};
  return {};
}

std::vector<session::Fact> find_preprocessing(const model::Graph& graph, const std::string& model) {
  std::vector<session::Fact> facts;
  for (model::ValueId id : graph.inputs) {
    const model::Value& input = graph.values[size_t(id)];
    const std::string layout = model::image_layout(input), where = "input." + session::toml_key(input.name) + ".";
    if (!at::isFloatingType(model::carrier(input.type))) continue;
    if (!layout.empty())
      facts.push_back({where + "layout", session::toml_string(layout), "the shape of the model's input"});
    if (auto text = beside(model, "preprocessor_config.json"); text && !layout.empty())
      from_preprocessor(*text, where, facts);
    auto has = [&](const std::string& key) {
      return std::any_of(facts.begin(), facts.end(),
                         [&](const session::Fact& fact) { return fact.key == where + key; });
    };
    for (const char* key : {"scale", "mean", "std", "color"}) {
      auto own = graph.metadata.find(std::string("netmend.input.") + key), other = graph.metadata.find(key);
      if (own != graph.metadata.end() && !has(key)) {
        bool list = std::string(key) == "mean" || std::string(key) == "std";
        facts.push_back({where + key, list ? metadata_list(own->second) : session::toml_string(own->second),
                         fmt::format("the model's metadata, `netmend.input.{}`", key)});
      } else if (other != graph.metadata.end() && !has(key)) {
        auto numbers = numbers_of(json_or_null(other->second));
        if (numbers)
          facts.push_back({where + key, number_list(*numbers), fmt::format("the model's metadata, `{}`", key)});
      }
    }
  }
  return facts;
}

dataset::Splits find_splits(const dataset::Spec& spec) {
  dataset::Splits splits;
  std::error_code error;
  if (spec.head != "images") return splits;
  auto part = [&](std::initializer_list<const char*> names) -> std::optional<dataset::Spec> {
    for (const char* name : names) {
      fs::path folder = fs::path(spec.rest) / name;
      if (!fs::is_directory(folder, error)) continue;
      dataset::Spec found = spec;
      found.rest = folder.string();
      found.text = dataset::spec_text(found);
      return found;
    }
    return std::nullopt;
  };
  splits.train = part({"train", "training"});
  splits.test = part({"test", "testing", "val", "valid", "validation"});
  if (!splits.test) splits.train.reset();  // one split alone is a folder like any other
  return splits;
}

}  // namespace netmend::preflight
