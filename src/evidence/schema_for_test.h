// Holds a document against a JSON Schema: the keywords that report/evidence.schema.json uses, and a failure for any
// other.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace netmend::evidence {

class Schema {
 public:
  using Json = nlohmann::json;
  explicit Schema(Json schema) : root_(std::move(schema)) {}

  /// What does not fit, a line each with its place; at most twenty.
  std::vector<std::string> faults(const Json& document) const {
    std::vector<std::string> found;
    look(root_, document, "$", found);
    return found;
  }

 private:
  const Json& resolve(const Json& schema) const {
    if (!schema.is_object() || !schema.contains("$ref")) return schema;
    return resolve(root_.at(Json::json_pointer(schema["$ref"].get<std::string>().substr(1))));
  }

  static bool is_type(const Json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "null") return value.is_null();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    throw std::runtime_error("the schema has a type " + type);
  }

  void look(const Json& given, const Json& value, const std::string& at, std::vector<std::string>& found) const {
    const Json& schema = resolve(given);
    if (found.size() >= 20 || schema.is_boolean()) {
      if (schema.is_boolean() && !schema.get<bool>()) found.push_back(at + " may not be there");
      return;
    }
    static const std::set<std::string> known = {"$schema",     "$id",         "$defs",
                                                "title",       "description", "type",
                                                "required",    "properties",  "additionalProperties",
                                                "items",       "enum",        "const",
                                                "oneOf",       "anyOf",       "minimum",
                                                "maximum",     "minItems",    "maxItems",
                                                "prefixItems", "default",     "examples",
                                                "$comment",    "pattern",     "minLength",
                                                "positional",  "index"};
    for (const auto& [key, unused] : schema.items())
      if (!known.count(key)) throw std::runtime_error("the schema uses " + key + ", which this test does not know");
    if (schema.contains("type")) {
      const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
      bool fits = false;
      for (const Json& type : types) fits = fits || is_type(value, type);
      if (!fits) return found.push_back(fmt::format("{} is {} instead of {}", at, value.type_name(), types.dump()));
    }
    if (schema.contains("const") && value != schema["const"]) found.push_back(at + " is not " + schema["const"].dump());
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
      found.push_back(at + " = " + value.dump() + " is none of " + schema["enum"].dump());
    if (value.is_number() && schema.contains("minimum") && value < schema["minimum"])
      found.push_back(at + " is too small");
    if (value.is_number() && schema.contains("maximum") && value > schema["maximum"])
      found.push_back(at + " is too large");
    for (const char* key : {"oneOf", "anyOf"}) {
      if (!schema.contains(key)) continue;
      size_t fits = 0;
      for (const Json& option : schema[key]) {
        std::vector<std::string> own;
        look(option, value, at, own);
        fits += own.empty();
      }
      if (fits == 0 || (std::string(key) == "oneOf" && fits > 1))
        found.push_back(fmt::format("{} fits {} of the schema's {}", at, fits, key));
    }
    if (value.is_object()) look_object(schema, value, at, found);
    if (value.is_array()) look_array(schema, value, at, found);
  }

  void look_object(const Json& schema, const Json& value, const std::string& at,
                   std::vector<std::string>& found) const {
    const Json none = Json::object();
    const Json& properties = schema.contains("properties") ? schema["properties"] : none;
    if (schema.contains("required"))
      for (const Json& key : schema["required"])
        if (!value.contains(key.get<std::string>())) found.push_back(at + " lacks " + key.get<std::string>());
    for (const auto& [key, own] : value.items()) {
      if (properties.contains(key))
        look(properties[key], own, at + "." + key, found);
      else if (schema.contains("additionalProperties"))
        look(schema["additionalProperties"], own, at + "." + key, found);
    }
  }

  void look_array(const Json& schema, const Json& value, const std::string& at, std::vector<std::string>& found) const {
    if (schema.contains("minItems") && value.size() < schema["minItems"]) found.push_back(at + " has too few items");
    if (schema.contains("maxItems") && value.size() > schema["maxItems"]) found.push_back(at + " has too many items");
    const size_t first = schema.contains("prefixItems") ? schema["prefixItems"].size() : 0;
    for (size_t i = 0; i < value.size(); ++i) {
      if (i < first)
        look(schema["prefixItems"][i], value[i], fmt::format("{}[{}]", at, i), found);
      else if (schema.contains("items"))
        look(schema["items"], value[i], fmt::format("{}[{}]", at, i), found);
    }
  }

  Json root_;
};

}  // namespace netmend::evidence
