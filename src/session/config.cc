#include "session/config.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "dataset/spec.h"
#include "session/toml.h"
#include "session/toml_edit.h"

namespace netmend::session {
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kTop = {"model", "classes", "input", "data", "goal", "gate", "accept", "checks"};
const std::vector<std::string> kChecks = {"only", "skip"};
const std::vector<std::string> kModel = {"file", "output", "kind", "output_kind", "gives", "reference"};
const std::vector<std::string> kData = {"train", "test", "id", "meta", "groups"};
const std::vector<std::string> kGoal = {"metric", "expect", "positive", "threshold", "tolerance"};
const std::vector<std::string> kInput = {"layout", "color", "scale",       "mean",     "std",
                                         "resize", "shape", "standardize", "per_image"};
const std::vector<std::string> kResize = {"short", "crop", "height", "width", "filter", "antialias"};
const std::vector<std::string> kAccept = {"reason", "until", "value", "level"};
const std::vector<std::string> kKinds = {"classes", "binary", "labels", "number", "none"};
const std::vector<std::string> kOutputKinds = {"logits", "probabilities", "log-probabilities"};

class Parser {
 public:
  explicit Parser(std::string path) : path_(std::move(path)), folder_(fs::path(path_).parent_path()) {}

  Config parse(const std::string& content) {
    Config config;
    config.path = config.decides = path_;
    const toml::table file = parse_toml(content, path_);
    known(file, kTop, "");
    if (const toml::node* model = file.get("model")) about_model(table(*model, "model"), config);
    if (const toml::node* data = file.get("data")) about_data(table(*data, "data"), config);
    if (const toml::node* goal = file.get("goal")) about_goal(table(*goal, "goal"), config);
    if (const toml::node* gate = file.get("gate")) about_gate(table(*gate, "gate"), config);
    if (const toml::node* accept = file.get("accept")) about_accept(table(*accept, "accept"), config);
    if (const toml::node* checks = file.get("checks")) about_checks(table(*checks, "checks"), config);
    if (const toml::node* classes = file.get("classes")) config.classes = class_list(*classes);
    if (const toml::node* input = file.get("input")) inputs(table(*input, "input"), config.input);
    return config;
  }

 private:
  void about_model(const toml::table& model, Config& config) const {
    known(model, kModel, "model.");
    config.model = place(text(model, "file", "model.file"));
    config.output = text(model, "output", "model.output");
    config.reference = place(text(model, "reference", "model.reference"));
    config.overrides.kind = one_of(model, "kind", "model.kind", kKinds);
    config.overrides.output_kind = one_of(model, "output_kind", "model.output_kind", kOutputKinds);
    if (config.overrides.output_kind.empty())  // its older name
      config.overrides.output_kind = one_of(model, "gives", "model.gives", kOutputKinds);
  }

  void about_data(const toml::table& data, Config& config) const {
    known(data, kData, "data.");
    config.train = spec(data, "train");
    config.test = spec(data, "test");
    config.id = text(data, "id", "data.id");
    config.meta = place(text(data, "meta", "data.meta"));
    if (const toml::node* groups = data.get("groups")) config.groups = list(*groups, "data.groups");
  }

  void about_goal(const toml::table& goal, Config& config) const {
    known(goal, kGoal, "goal.");
    config.overrides.metric = one_of(goal, "metric", "goal.metric", observers::metric_names());
    if (const toml::node* positive = goal.get("positive"))
      config.overrides.positive = number(*positive, "goal.positive");
    config.overrides.threshold = real(goal, "threshold", 0.5, 0, 1, "a probability from 0 to 1");
    config.overrides.tolerance = real(goal, "tolerance", -1, 0, INFINITY, "a number of 0 or more");
    const bool error = observers::is_error(config.overrides.metric);
    config.expect = real(goal, "expect", -1, 0, error ? INFINITY : 1,
                         error ? "a number of 0 or more" : "a fraction from 0 to 1 (0.913 for 91.3 %)");
  }

  void about_gate(const toml::table& gate, Config& config) const {
    for (const auto& [key, value] : gate) {
      if (!value.is_string()) wrong(value, fmt::format("gate.{}", key.str()), "a limit in quotes, such as \">= 0.90\"");
      const std::string& limit = value.as_string()->get();
      config.gate.emplace_back(key.str(), key == "must_pass" ? place(limit) : limit);
      config.gate_lines[std::string(key.str())] = int64_t(value.source().begin.line);
    }
    auto line = [&](const auto& limit) { return gate.get(limit.first)->source().begin; };
    std::sort(config.gate.begin(), config.gate.end(), [&](const auto& a, const auto& b) {
      return std::pair(line(a).line, line(a).column) < std::pair(line(b).line, line(b).column);
    });
  }

  /// accept."confused-classes:cat-dog" = { reason = "…", until = "2027-01-31", value = 0.019, level = 1.5 }
  void about_accept(const toml::table& accept, Config& config) const {
    for (const auto& [key, node] : accept) {
      const std::string id(key.str()), where = fmt::format("accept.{}", id);
      const toml::table& entry = table(node, where);
      known(entry, kAccept, where + ".");
      findings::Acceptance one;
      one.id = id;
      one.reason = text(entry, "reason", where + ".reason");
      if (one.reason.empty()) wrong(node, where, "a table with a reason, { reason = \"…\" }");
      one.until = text(entry, "until", where + ".until");
      if (!one.until.empty() && !findings::is_day(one.until))
        wrong(*entry.get("until"), where + ".until", "a date such as \"2027-01-31\"");
      auto size = [&](const char* name, double otherwise, double least) {
        const toml::node* number = entry.get(name);
        if (!number) return otherwise;
        auto value = number->value<double>();
        if (!number->is_number() || !value || !(*value >= least) || !std::isfinite(*value))
          wrong(*number, where + "." + name, least > 0 ? "a factor of 1 or more" : "a number of 0 or more");
        return *value;
      };
      one.value = size("value", INFINITY, 0);  // without one: however bad it gets
      one.factor = size("level", one.factor, 1);
      if (id.starts_with("inputs:"))
        config.accepted_inputs.push_back({place(id.substr(7)), one.reason, one.until});
      else
        config.accepted.push_back(std::move(one));
    }
  }

  void about_checks(const toml::table& checks, Config& config) const {
    if (const toml::node* programs = checks.get("programs"))
      throw InputError(
          fmt::format("{}, line {}: netmend.toml may not name programs to run (checks.programs)", path_,
                      programs->source().begin.line),
          "Give --program on the command line, or checks.programs in your own ~/.config/netmend/config.toml.");
    known(checks, kChecks, "checks.");
    if (const toml::node* only = checks.get("only")) config.checks_only = list(*only, "checks.only");
    if (const toml::node* skip = checks.get("skip")) config.checks_skip = list(*skip, "checks.skip");
  }

  std::vector<std::string> class_list(const toml::node& node) const {
    std::vector<std::string> names = list(node, "classes");
    std::set<std::string> seen;
    for (const std::string& name : names) {
      if (!seen.insert(name).second)
        fail("{}, line {}: classes lists `{}` twice", path_, node.source().begin.line, name);
      if (name.empty()) fail("{}, line {}: a class has an empty name", path_, node.source().begin.line);
    }
    return names;
  }

  /// Paths in the file are meant from where it lies.
  std::string place(const std::string& path) const {
    return path.empty() || fs::path(path).is_absolute() ? path : (folder_ / path).string();
  }

  std::string spec(const toml::table& data, const char* key) const {
    std::string written = text(data, key, fmt::format("data.{}", key));
    if (written.empty()) return "";
    try {
      dataset::Spec spec = dataset::parse_spec(written);
      if (!spec.is_name()) spec.rest = place(spec.rest);
      for (const char* file : {"labels", "train", "vocab", "meta"})
        if (auto given = spec.options.find(file); given != spec.options.end()) given->second = place(given->second);
      if (auto y = spec.options.find("y"); spec.head == "npy" && y != spec.options.end()) y->second = place(y->second);
      return dataset::spec_text(spec);
    } catch (const InputError& error) {
      throw InputError(
          fmt::format("{}, line {}: data.{}: {}", path_, data.get(key)->source().begin.line, key, error.what()),
          error.hint());
    }
  }

  double real(const toml::table& table, const char* key, double otherwise, double low, double high,
              const char* expected) const {
    const toml::node* node = table.get(key);
    if (!node) return otherwise;
    auto value = node->value<double>();
    if (!node->is_number() || !value || !std::isfinite(*value) || !(*value >= low && *value <= high))
      wrong(*node, fmt::format("goal.{}", key), expected);
    return *value;
  }

  std::string one_of(const toml::table& table, const char* key, const std::string& name,
                     const std::vector<std::string>& words) const {
    std::string word = text(table, key, name);
    if (!word.empty() && std::find(words.begin(), words.end(), word) == words.end())
      fail("{}, line {}: {} = \"{}\" is unknown{}: choose from {}", path_, table.get(key)->source().begin.line, name,
           word, did_you_mean(word, words), join(words, ", "));
    return word;
  }

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
    if (!node->is_string()) wrong(*node, name, "a string in quotes");
    return node->as_string()->get();
  }

  std::string number(const toml::node& node, const std::string& key) const {
    if (auto value = node.value<double>(); value && node.is_number())
      return fmt::format("{}", *value);                    // the shortest that reads back
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
        fail("{}, line {}: {} and another input are preprocessed differently, which is not supported", path_,
             node.source().begin.line, where);
      options = found;
    }
  }

  void resize(const toml::table& sizes, const std::string& where, std::map<std::string, std::string>& found) const {
    known(sizes, kResize, where + ".");
    auto get = [&](const char* key) {
      return sizes.get(key) ? number(*sizes.get(key), where + "." + key) : std::string();
    };
    if (get("height").empty() != get("width").empty())
      wrong(*sizes.get(get("height").empty() ? "width" : "height"), where, "a table with both height and width");
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
  fs::path folder_;
};

}  // namespace

/// Anybody may put a file into a folder such as /tmp, and it would set limits and accept findings further down.
static void require_own(const fs::path& found, const fs::path& folder) {
  struct stat file {
  }, here{};
  if (found == "netmend.toml" || stat((folder / "netmend.toml").c_str(), &file) != 0 || stat(".", &here) != 0) return;
  if (file.st_uid == geteuid() || file.st_uid == here.st_uid || file.st_uid == 0) return;
  throw InputError(fmt::format("{} belongs to another user than this folder", found.string()),
                   "To use it anyway, name it: --config " + found.string());
}

namespace {

/// In the working directory or above it.
bool is_upwards(const fs::path& file) {
  std::error_code error;
  const fs::path folder = fs::canonical(fs::absolute(file).parent_path(), error);
  if (error) return false;
  for (fs::path here = fs::current_path(error); !here.empty(); here = here.parent_path()) {
    if (here == folder) return true;
    if (here == here.parent_path()) break;
  }
  return false;
}

/// What decides comes from the user's own file, or from nowhere.
void take_decisions(Config& config, const Config& own) {
  std::vector<std::string> left;
  if (!config.gate.empty()) left.emplace_back("gate");
  if (!config.accepted.empty() || !config.accepted_inputs.empty()) left.emplace_back("accept");
  if (!config.checks_only.empty() || !config.checks_skip.empty()) left.emplace_back("checks");
  config.undecided = join(left, ", ");
  config.gate = own.gate, config.gate_lines = own.gate_lines;
  config.accepted = own.accepted, config.accepted_inputs = own.accepted_inputs;
  config.checks_only = own.checks_only, config.checks_skip = own.checks_skip;
  config.decides = own.path;
}

}  // namespace

std::string find_config(const std::string& model) {
  fs::path beside = fs::path(model).parent_path() / "netmend.toml";
  std::error_code error;
  if (!model.empty() && fs::exists(beside, error)) return beside.string();
  // Upwards as relative paths, because that is how people write and read them.
  fs::path here = fs::current_path(error), at = "netmend.toml";
  for (; !here.empty(); here = here.parent_path(), at = ".." / at) {
    if (fs::exists(here / "netmend.toml", error)) {
      require_own(at, here);
      return at.string();
    }
    if (here == here.parent_path()) break;
  }
  return "";
}

Config read_config(const std::string& named, const std::string& model) {
  std::string path = named.empty() ? find_config(model) : named;
  if (path.empty()) return {};
  Config config = Parser(path).parse(read_toml(path));
  if (named.empty() && !is_upwards(path)) take_decisions(config, read_config("", ""));
  return config;
}

Config parse_config(const std::string& text, const std::string& path) { return Parser(path).parse(text); }

}  // namespace netmend::session
