// netmend lab commands: all commands and their flags as one document, read off the flags themselves. Python's
// functions, the manual page and the shells' completions are made of it.
#include <algorithm>
#include <initializer_list>
#include <string>

#include "base/version.h"
#include "netmend/flags.h"
#include "netmend/terminal.h"

namespace netmend::app {
namespace {

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* one) { return name == one; });
}

/// What a value stands for, where it is more than a word or a number: whoever calls may have it in another form.
std::string role_of(const CLI::App& app, const CLI::Option& option, const std::string& name) {
  if (is_product(option)) return "product";
  if (is_one_of(name, {"data", "test", "train", "pool", "spec"})) return "data";
  if (name == "against" && app.get_name() == "data") return "data";
  if (is_one_of(name, {"model", "before", "after"})) return "model";
  if (is_one_of(name, {"reference", "against"})) return app.get_name() == "match" ? "file" : "model";
  if (is_one_of(name, {"out", "folder", "run"})) return "folder";
  if (is_one_of(name, {"config", "edits", "file", "states", "profile"})) return "file";
  return "";
}

/// `TEXT:{pre,post}`: a type, and behind it what is allowed.
std::string type_of(const CLI::Option& option) {
  if (option.get_expected_min() == 0) return "flag";
  const std::string name = option.get_type_name();
  if (name.rfind("UINT", 0) == 0 || name.rfind("INT", 0) == 0) return "int";
  return name.rfind("FLOAT", 0) == 0 ? "float" : "text";
}

Json choices_of(const CLI::Option& option) {
  Json choices = Json::array();
  const std::string name = option.get_type_name();
  size_t at = name.find(":{");
  const size_t end = name.find('}', at == std::string::npos ? 0 : at);
  if (at == std::string::npos || end == std::string::npos) return choices;
  for (at += 2; at < end;) {
    const size_t comma = std::min(name.find(',', at), end);
    choices.push_back(name.substr(at, comma - at));
    at = comma + 1;
  }
  return choices;
}

Json describe(const CLI::App& app, const CLI::Option& option) {
  Json flags = Json::array();
  for (const std::string& name : option.get_lnames()) flags.push_back("--" + name);
  for (const std::string& name : option.get_snames()) flags.push_back("-" + name);
  const std::string name = option.get_positional() ? option.get_name(true) : option.get_single_name();
  Json json = {{"name", name},
               {"flags", flags},
               {"about", option.get_description()},
               {"type", type_of(option)},
               {"required", option.get_required()}};
  if (option.get_items_expected_max() > 1) json["list"] = true;
  if (option.get_delimiter() != '\0') json["delimiter"] = std::string(1, option.get_delimiter());
  if (!option.get_default_str().empty()) json["default"] = option.get_default_str();
  if (const Json choices = choices_of(option); !choices.empty()) json["choices"] = choices;
  if (const std::string role = role_of(app, option, name); !role.empty()) json["role"] = role;
  if (option.get_group() != "Options") json["group"] = option.get_group();
  return json;
}

/// Commands that only hold others are not commands themselves.
void describe(const CLI::App& app, const std::string& prefix, Json& commands) {
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    const std::string name = prefix + sub->get_name();
    if (!sub->get_subcommands([](const CLI::App*) { return true; }).empty()) {
      describe(*sub, name + " ", commands);
      continue;
    }
    Json options = Json::array();
    for (const CLI::Option* option : sub->get_options())
      if (option != sub->get_help_ptr()) options.push_back(describe(*sub, *option));
    commands.push_back(
        {{"name", name}, {"about", sub->get_description()}, {"examples", sub->get_footer()}, {"options", options}});
  }
}

}  // namespace

void add_describe(CLI::App& lab, Action& action) {
  CLI::App* commands =
      command(lab, "commands", "All commands and their flags as one JSON document", "  netmend lab commands --json");
  commands->group("");  // not for people
  const CLI::App* all = lab.get_parent();
  commands->callback([&action, all] {
    action = [all] {
      Json list = Json::array();
      describe(*all, "", list);
      return print_json({{"format", "netmend-commands"}, {"version", 1}, {"program", kVersion}, {"commands", list}}), 0;
    };
  });
}

}  // namespace netmend::app
