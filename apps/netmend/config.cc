#include "netmend/config.h"

#include <toml++/toml.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace netmend::app {
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kTop = {"model", "classes", "input", "data", "goal", "gate", "accept"};
const std::vector<std::string> kInput = {"layout", "color", "scale", "mean", "std", "resize"};
const std::vector<std::string> kResize = {"short", "crop", "height", "width", "filter", "antialias"};

std::string find_file(const std::string& model) {
  fs::path beside = fs::path(model).parent_path() / "netmend.toml";
  std::error_code error;
  if (!model.empty() && fs::exists(beside, error)) return beside.string();
  for (fs::path at = fs::current_path(error); !at.empty(); at = at.parent_path()) {
    if (fs::exists(at / "netmend.toml", error)) return (at / "netmend.toml").string();
    if (at == at.parent_path()) break;
  }
  return "";
}

class Parser {
 public:
  explicit Parser(std::string path) : path_(std::move(path)) {}

  Config parse() {
    Config config;
    config.path = path_;
    toml::table file;
    try {
      file = toml::parse(read_file(path_, 1 << 20), path_);
    } catch (const toml::parse_error& error) {
      fail("{}, line {}: {}", path_, error.source().begin.line, error.description());
    }
    known(file, kTop, "");
    if (const toml::node* model = file.get("model"))
      config.output = text(table(*model, "model"), "output", "model.output");
    if (const toml::node* data = file.get("data")) {
      config.train = text(table(*data, "data"), "train", "data.train");
      config.test = text(table(*data, "data"), "test", "data.test");
    }
    if (const toml::node* classes = file.get("classes")) config.classes = list(*classes, "classes");
    if (const toml::node* input = file.get("input")) inputs(table(*input, "input"), config.input);
    return config;
  }

 private:
  [[noreturn]] void wrong(const toml::node& node, const std::string& key, const char* expected) const {
    fail("{}, line {}: {} should be {}", path_, node.source().begin.line, key, expected);
  }

  void known(const toml::table& table, const std::vector<std::string>& keys, const std::string& where) const {
    for (const auto& [key, value] : table)
      if (std::find(keys.begin(), keys.end(), key.str()) == keys.end())
        fail("{}, line {}: unknown key {}{}{}", path_, value.source().begin.line, where, key.str(),
             did_you_mean(key.str(), keys));
  }

  const toml::table& table(const toml::node& node, const std::string& key) const {
    if (!node.is_table()) wrong(node, key, "a table, { … }");
    return *node.as_table();
  }

  std::string text(const toml::table& table, const char* key, const std::string& name) const {
    const toml::node* node = table.get(key);
    if (!node) return "";
    if (!node->is_string()) wrong(*node, name, "a text in quotes");
    return node->as_string()->get();
  }

  std::string number(const toml::node& node, const std::string& key) const {
    if (auto value = node.value<double>(); value && node.is_number()) return fmt::format("{:.17g}", *value);
    if (node.is_string()) return node.as_string()->get();  // "1/255"
    wrong(node, key, "a number");
  }

  std::vector<std::string> list(const toml::node& node, const std::string& key) const {
    if (!node.is_array()) wrong(node, key, "a list, [ … ]");
    std::vector<std::string> items;
    for (const toml::node& item : *node.as_array()) items.push_back(number(item, key));
    return items;
  }

  /// A data set has one preprocessing, so the inputs must agree on it.
  void inputs(const toml::table& all, std::map<std::string, std::string>& options) const {
    for (const auto& [name, node] : all) {
      std::string where = fmt::format("input.{}", name.str());
      std::map<std::string, std::string> found;
      const toml::table& input = table(node, where);
      known(input, kInput, where + ".");
      for (const auto& [key, value] : input) {
        std::string full = fmt::format("{}.{}", where, key.str());
        if (key == "mean" || key == "std")
          found[std::string(key.str())] = value.is_array() ? join(list(value, full), ":") : number(value, full);
        else if (key == "resize")
          resize(table(value, full), full, found);
        else
          found[std::string(key.str())] =
              key == "scale" ? number(value, full) : text(input, std::string(key.str()).c_str(), full);
      }
      if (!options.empty() && options != found)
        fail("{}, line {}: {} and another input are prepared differently, which is not supported", path_,
             node.source().begin.line, where);
      options = found;
    }
  }

  void resize(const toml::table& sizes, const std::string& where, std::map<std::string, std::string>& found) const {
    known(sizes, kResize, where + ".");
    auto get = [&](const char* key) {
      return sizes.get(key) ? number(*sizes.get(key), where + "." + key) : std::string();
    };
    if (!get("short").empty()) found["resize"] = get("short");
    if (!get("height").empty() && !get("width").empty()) found["resize"] = get("height") + "x" + get("width");
    if (!get("crop").empty()) found["crop"] = get("crop");
    if (sizes.get("filter")) found["filter"] = text(sizes, "filter", where + ".filter");
    if (const toml::node* antialias = sizes.get("antialias")) {
      if (!antialias->is_boolean()) wrong(*antialias, where + ".antialias", "true or false");
      found["antialias"] = antialias->as_boolean()->get() ? "yes" : "no";
    }
  }

  std::string path_;
};

}  // namespace

Config read_config(const std::string& named, const std::string& model) {
  std::string path = named.empty() ? find_file(model) : named;
  return path.empty() ? Config{} : Parser(path).parse();
}

}  // namespace netmend::app
