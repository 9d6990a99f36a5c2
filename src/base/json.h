// The one way to read JSON that may have been written by others, and the one way to write it. What is read is bounded
// in bytes, depth and values before memory is taken for it; what is asked of it names the file and the place when it
// is not there or of another type.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace netmend {

/// What a document may be at most. A value takes some 16 bytes of memory, a list or an object as much as eight values.
struct JsonLimits {
  int64_t bytes = int64_t(256) << 20;
  int64_t values = 20'000'000;
  int depth = 64;
};

/// A value of a document and the words for its place: `baseline.json: `errors[3]` is the string 'x', expected a
/// number`. Lives as long as the document.
class JsonView {
 public:
  using Json = nlohmann::json;

  JsonView(const Json& value, const std::string& name, const std::string& hint, std::string place = "")
      : value_(&value), name_(&name), hint_(&hint), place_(std::move(place)) {}

  /// Throws InputError: the file, the place, and what is wrong there.
  [[noreturn]] void refuse(const std::string& what) const;

  bool is_null() const { return value_->is_null(); }
  bool is_object() const { return value_->is_object(); }
  bool is_list() const { return value_->is_array(); }
  bool is_text() const { return value_->is_string(); }
  bool is_number() const { return value_->is_number(); }
  bool is_whole() const { return value_->is_number_integer(); }
  bool is_truth() const { return value_->is_boolean(); }

  /// Of an object. object() refuses anything else, for which has() is false; at() refuses what is missing.
  const JsonView& object() const;
  bool has(const std::string& key) const { return value_->is_object() && value_->contains(key); }
  JsonView at(const std::string& key) const;
  std::vector<std::string> keys() const;

  /// Of a list with `least` to `most` entries.
  size_t size(int64_t least = 0, int64_t most = INT64_MAX) const;
  JsonView at(size_t index) const;

  std::string text() const;
  bool truth() const;
  int64_t whole(int64_t least = INT64_MIN, int64_t most = INT64_MAX) const;
  double number() const;  ///< finite: JSON has no word for anything else
  std::string choice(const std::vector<std::string>& words) const;
  std::vector<std::string> texts(int64_t most = INT64_MAX) const;
  std::vector<double> numbers() const;
  std::vector<int64_t> wholes(int64_t least = INT64_MIN, int64_t most = INT64_MAX) const;

  const Json& json() const { return *value_; }

 private:
  [[noreturn]] void expected(const char* what) const;
  const Json& list() const;

  const Json* value_;
  const std::string *name_, *hint_;
  std::string place_;
};

/// A document that was read. Keys that stand twice, invalid UTF-8 and what goes beyond the limits are refused.
class JsonDocument {
 public:
  /// `name` is the file, for messages; `hint` says how to get a better one.
  JsonDocument(std::string_view text, std::string name, const JsonLimits& limits = {}, std::string hint = "");
  JsonView top() const { return {value_, name_, hint_}; }
  const nlohmann::json& json() const { return value_; }

 private:
  nlohmann::json value_;
  std::string name_, hint_;
};

JsonDocument read_json(const std::string& path, const JsonLimits& limits = {}, std::string hint = "");

/// Text of others that may or may not be JSON, such as a model's metadata: null when it is none.
nlohmann::json json_or_null(std::string_view text, const JsonLimits& limits = {.bytes = 16 << 20, .values = 2'000'000});

/// A document as text. Names may hold any bytes: what is no UTF-8 is replaced.
std::string json_text(const nlohmann::json& json, int indent = -1);
std::string json_text(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace netmend
