#include "base/json.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace netmend {
namespace {

using Json = nlohmann::json;

constexpr int64_t kContainer = 8;  ///< a list or an object takes the memory of so many values, a key half of them
constexpr size_t kShown = 60;      ///< characters of a value that a message shows

std::string shortened(std::string text) {
  return text.size() > kShown ? printable(text.substr(0, kShown)) + "…" : printable(text);
}

/// Builds the document while it is parsed, and stops where it goes beyond a limit.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return stack_.pop_back(), true; }
  bool end_array() override { return stack_.pop_back(), true; }
  bool key(string_t& name) override {
    auto [place, fresh] = stack_.back()->get_ref<Json::object_t&>().try_emplace(std::move(name));
    slot_ = &place->second;
    count_ += kContainer / 2;
    return fresh || stop(fmt::format("the key `{}` occurs twice in an object", shortened(place->first)));
  }
  bool parse_error(size_t at, const std::string&, const nlohmann::detail::exception& error) override {
    std::string reason = error.what();
    if (size_t words = reason.rfind(": syntax error"); words != std::string::npos) reason = reason.substr(words + 2);
    if (size_t words = reason.find("] "); words != std::string::npos) reason = reason.substr(words + 2);
    where_ = at;
    return stop(reason.size() > 200 ? reason.substr(0, 200) + "…" : reason);
  }

  Json take() { return std::move(root_); }
  const std::string& fault() const { return fault_; }
  size_t where() const { return where_; }  ///< bytes read when it failed; 0 when that is not known

 private:
  bool stop(std::string reason) {
    fault_ = std::move(reason);
    return false;
  }

  Json* put(Json value) {
    if (stack_.empty()) return root_ = std::move(value), &root_;
    if (stack_.back()->is_object()) return *slot_ = std::move(value), slot_;
    auto& list = stack_.back()->get_ref<Json::array_t&>();
    return list.push_back(std::move(value)), &list.back();
  }

  bool add(Json value) {
    if (++count_ > limits_.values)
      return stop(fmt::format("it holds more than {} values", with_commas(limits_.values)));
    put(std::move(value));
    return true;
  }

  bool open(Json container) {
    if (int(stack_.size()) >= limits_.depth) return stop(fmt::format("it is nested more than {} deep", limits_.depth));
    count_ += kContainer - 1;
    if (++count_ > limits_.values)
      return stop(fmt::format("it holds more than {} values", with_commas(limits_.values)));
    stack_.push_back(put(std::move(container)));
    return true;
  }

  JsonLimits limits_;
  Json root_;
  std::vector<Json*> stack_;
  Json* slot_ = nullptr;  ///< of the key that was read last
  int64_t count_ = 0;
  std::string fault_;
  size_t where_ = 0;
};

/// `line 3, column 7` of a byte.
std::string line_and_column(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, std::min(at, text.size()));
  const size_t start = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
  return fmt::format("line {}, column {}", std::count(before.begin(), before.end(), '\n') + 1,
                     before.size() - start + (at > text.size()));
}

Json parse(std::string_view text, const std::string& name, const JsonLimits& limits, const std::string& hint) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // some editors put it before everything
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  if (int64_t(text.size()) > limits.bytes)
    throw InputError(fmt::format("{} is too large: {}, at most {} are read", name, bytes_text(double(text.size())),
                                 bytes_text(double(limits.bytes))),
                     hint);
  Builder builder(limits);
  if (Json::sax_parse(text, &builder)) return builder.take();
  const std::string place = builder.where() > 0 ? ", " + line_and_column(text, builder.where()) : "";
  throw InputError(fmt::format("{}{}: {}{}", name, place, place.empty() ? "" : "this is not JSON: ", builder.fault()),
                   hint);
}

std::string kind_of(const Json& value) {
  if (value.is_number() || value.is_boolean()) return value.dump();
  if (value.is_string()) return "the string '" + shortened(value.get<std::string>()) + "'";
  return value.is_null() ? "null" : value.is_array() ? "a list" : "an object";
}

}  // namespace

void JsonView::refuse(const std::string& what) const {
  throw InputError(place_.empty() ? fmt::format("{}: {}", *name_, what)
                                  : fmt::format("{}: `{}` {}", *name_, printable(place_), what),
                   *hint_);
}

void JsonView::expected(const char* what) const {
  refuse(fmt::format("{}is {}, expected {}", place_.empty() ? "the document " : "", kind_of(*value_), what));
}

const JsonView& JsonView::object() const {
  if (!value_->is_object()) expected("an object");
  return *this;
}

JsonView JsonView::at(const std::string& key) const {
  object();
  auto hit = value_->find(key);
  const std::string place = place_.empty() ? key : place_ + "." + key;
  if (hit == value_->end()) throw InputError(fmt::format("{}: `{}` is missing", *name_, printable(place)), *hint_);
  return {*hit, *name_, *hint_, place};
}

std::vector<std::string> JsonView::keys() const {
  object();
  std::vector<std::string> out;
  for (const auto& [key, value] : value_->items()) out.push_back(key);
  return out;
}

const Json& JsonView::list() const {
  if (!value_->is_array()) expected("a list");
  return *value_;
}

size_t JsonView::size(int64_t least, int64_t most) const {
  const size_t count = list().size();
  if (int64_t(count) < least || int64_t(count) > most)
    refuse(most == INT64_MAX ? fmt::format("has {} entries, but at least {} are needed", count, least)
           : most == least   ? fmt::format("has {} entries, expected {}", count, least)
                             : fmt::format("has {} entries, expected {} to {}", count, least, with_commas(most)));
  return count;
}

JsonView JsonView::at(size_t index) const {
  check(index < list().size(), "entry {} of {}", index, list().size());
  return {(*value_)[index], *name_, *hint_, fmt::format("{}[{}]", place_, index)};
}

std::string JsonView::text() const {
  if (!value_->is_string()) expected("a string");
  return value_->get<std::string>();
}

bool JsonView::truth() const {
  if (!value_->is_boolean()) expected("true or false");
  return value_->get<bool>();
}

int64_t JsonView::whole(int64_t least, int64_t most) const {
  const bool fits =
      value_->is_number_integer() && !(value_->is_number_unsigned() && value_->get<uint64_t>() > uint64_t(INT64_MAX));
  if (!fits) expected("a whole number");
  const auto number = value_->get<int64_t>();
  if (number < least || number > most)
    refuse(fmt::format("is {}, expected {}", number,
                       most == INT64_MAX ? fmt::format("{} or more", least)
                       : most == least   ? fmt::format("{}", least)
                                         : fmt::format("{} to {}", least, most)));
  return number;
}

double JsonView::number() const {
  if (!value_->is_number()) expected("a number");
  return value_->get<double>();
}

std::string JsonView::choice(const std::vector<std::string>& words) const {
  const std::string word = text();
  if (std::find(words.begin(), words.end(), word) == words.end())
    refuse(
        fmt::format("is '{}', expected {}{}", shortened(word), words.size() == 1 ? "" : "one of ", join(words, ", ")));
  return word;
}

std::vector<std::string> JsonView::texts(int64_t most) const {
  std::vector<std::string> out;
  out.reserve(size(0, most));
  for (size_t i = 0; i < list().size(); ++i)
    out.push_back((*value_)[i].is_string() ? (*value_)[i].get<std::string>() : at(i).text());
  return out;
}

std::vector<double> JsonView::numbers() const {
  std::vector<double> out;
  out.reserve(list().size());
  for (size_t i = 0; i < list().size(); ++i)
    out.push_back((*value_)[i].is_number() ? (*value_)[i].get<double>() : at(i).number());
  return out;
}

std::vector<int64_t> JsonView::wholes(int64_t least, int64_t most) const {
  std::vector<int64_t> out;
  out.reserve(list().size());
  for (size_t i = 0; i < list().size(); ++i) out.push_back(at(i).whole(least, most));
  return out;
}

JsonDocument::JsonDocument(std::string_view text, std::string name, const JsonLimits& limits, std::string hint)
    : value_(parse(text, name, limits, hint)), name_(std::move(name)), hint_(std::move(hint)) {}

JsonDocument read_json(const std::string& path, const JsonLimits& limits, std::string hint) {
  return {read_file(path, limits.bytes), path, limits, std::move(hint)};
}

Json json_or_null(std::string_view text, const JsonLimits& limits) {
  try {
    return parse(text, "", limits, "");
  } catch (const InputError&) {
    return nullptr;
  }
}

std::string json_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string json_text(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace netmend
