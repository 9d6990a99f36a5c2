#include "edits/edit_file.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace netmend::edits {

using Json = nlohmann::json;

namespace {

constexpr int64_t kLargestFile = int64_t(1) << 30;
constexpr int64_t kMostNumbers = 40'000'000;  ///< such a file can still be read
constexpr const char* kRepeat = "Write the file again with netmend; it may have been cut off or changed by hand.";

// ---- writing ----

std::string quoted(const std::string& text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Nine digits tell a float32 apart from its neighbours, seventeen a float64. A zero keeps its sign: `-0` would be read
/// as an integer.
std::string number_text(double value) {
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  if (value == 0) return std::signbit(value) ? "-0.0" : "0";
  if (value == std::floor(value) && std::abs(value) < 1e15) return fmt::format("{:.0f}", value);
  return double(float(value)) == value ? fmt::format("{:.9g}", value) : fmt::format("{:.17g}", value);
}

template <typename T, typename Text>
std::string list_text(const std::vector<T>& items, const Text& text) {
  std::string out = "[";
  for (const T& item : items) out += (out.size() > 1 ? ", " : "") + text(item);
  return out + "]";
}

std::string about_text(const About& about) {
  std::string out = "{\"shape\": " + list_text(about.shape, [](int64_t size) { return std::to_string(size); });
  if (!about.before.empty()) out += ", \"before\": " + list_text(about.before, number_text);
  return out + "}";
}

std::string edit_text(const Edit& edit) {
  for (double value : edit.after)
    if (!std::isfinite(value))
      throw InputError(
          fmt::format("{}, slice {} of axis {}: the edit would write {}, but weights must be finite", edit.parameter,
                      edit.index, edit.axis, value),
          "Give the two models in the other order, so that the edits lead to the model with finite weights.");
  return fmt::format(
      "{{\"parameter\": {}, \"unit\": {}, \"axis\": {}, \"index\": {},\n     \"before\": {},\n     "
      "\"after\": {}}}",
      quoted(edit.parameter), quoted(edit.unit), edit.axis, edit.index, list_text(edit.before, number_text),
      list_text(edit.after, number_text));
}

void require_moderate(const EditFile& file) {
  int64_t count = 0;
  for (const Edit& edit : file.edits) count += int64_t(edit.before.size() + edit.after.size());
  if (count > kMostNumbers)
    throw InputError(fmt::format("the edits hold {} numbers, more than an edits.json may hold", with_commas(count)),
                     "Keep the changed model itself instead of its edits.");
}

// ---- reading ----

/// A value of the document and the words for its place.
class Cursor {
 public:
  Cursor(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw InputError(fmt::format("{}: {}", where_, fmt::format(format, std::forward<Args>(args)...)), kRepeat);
  }

  bool has(const char* key) const { return json_.contains(key); }
  Cursor at(const char* key) const {
    if (!has(key)) refuse("{} is missing", key);
    return {json_[key], fmt::format("{}, {}", where_, key)};
  }

  const Cursor& object() const {
    if (!json_.is_object()) refuse("expected an object, found {}", kind());
    return *this;
  }
  std::string text() const {
    if (!json_.is_string()) refuse("expected a string, found {}", kind());
    return json_.get<std::string>();
  }
  int64_t integer() const {
    bool fits = json_.is_number_integer() &&
                !(json_.is_number_unsigned() && json_.get<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max()));
    if (!fits) refuse("expected a whole number, found {}", kind());
    return json_.get<int64_t>();
  }
  std::vector<int64_t> integers() const {
    std::vector<int64_t> out;
    for (const Json& item : list()) out.push_back(Cursor(item, where_).integer());
    return out;
  }
  std::vector<double> numbers(bool words) const {
    std::vector<double> out;
    out.reserve(list().size());
    for (const Json& item : list()) out.push_back(Cursor(item, where_).number(words));
    return out;
  }
  const Json& list() const {
    if (!json_.is_array()) refuse("expected a list, found {}", kind());
    return json_;
  }
  const Json& json() const { return json_; }
  const std::string& where() const { return where_; }

 private:
  std::string kind() const { return json_.is_number() ? json_.dump() : json_.type_name(); }

  double number(bool words) const {
    if (json_.is_number()) return json_.get<double>();
    std::string word = words && json_.is_string() ? json_.get<std::string>() : "";
    if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (word == "inf") return std::numeric_limits<double>::infinity();
    if (word == "-inf") return -std::numeric_limits<double>::infinity();
    refuse("expected numbers, found {}", kind());
  }

  const Json& json_;
  std::string where_;
};

void read_about(const Cursor& top, EditFile& file) {
  if (!top.has("parameters")) return;
  Cursor parameters = top.at("parameters");
  for (const auto& [name, json] : parameters.object().json().items()) {
    Cursor at(json, fmt::format("{}, {}", parameters.where(), name));
    About& about = file.parameters[name];
    about.shape = at.object().at("shape").integers();
    if (at.has("before")) about.before = at.at("before").numbers(true);
    int64_t count = model::checked_count(about.shape);
    if (count < 0 || (at.has("before") && count != int64_t(about.before.size())))
      at.refuse("{} values do not fit the shape {}", about.before.size(), shape_text(about.shape));
  }
}

Edit read_edit(const Cursor& at) {
  Edit edit;
  edit.parameter = at.object().at("parameter").text();
  if (at.has("unit")) edit.unit = at.at("unit").text();
  edit.axis = at.at("axis").integer(), edit.index = at.at("index").integer();
  if (edit.axis < 0 || edit.index < 0) at.refuse("slice {} of axis {} does not exist", edit.index, edit.axis);
  edit.before = at.at("before").numbers(true), edit.after = at.at("after").numbers(false);
  if (edit.before.size() != edit.after.size())
    at.refuse("{} values before and {} after", edit.before.size(), edit.after.size());
  return edit;
}

void read_head(const Cursor& top, EditFile& file) {
  if (top.has("format") && top.at("format").text() != "netmend-edits")
    throw InputError(fmt::format("{}: a file of {}, not of edits", top.where(), top.at("format").text()),
                     "Give the edits.json that netmend wrote.");
  if (top.has("version") && top.at("version").integer() != 1)
    throw InputError(fmt::format("{}: edits of version {}, but this netmend reads version 1", top.where(),
                                 top.at("version").integer()),
                     "Use a newer netmend.");
  if (!top.has("model")) return;
  Cursor model = top.at("model");
  if (model.object().has("file")) file.model = model.at("file").text();
  if (model.has("checksum")) file.checksum = model.at("checksum").text();
}

Json parsed(std::string_view text, const std::string& where) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    std::string reason = error.what();
    size_t end = reason.find("] ");
    throw InputError(
        fmt::format("{}: this is not JSON: {}", where, end == std::string::npos ? reason : reason.substr(end + 2)),
        kRepeat);
  }
}

}  // namespace

EditFile describe(const model::Graph& graph, std::vector<Edit> edits, const std::string& model,
                  const std::string& checksum) {
  EditFile file{model, checksum, {}, std::move(edits)};
  for (const Edit& edit : file.edits) {
    auto [about, fresh] = file.parameters.try_emplace(edit.parameter);
    if (!fresh) continue;
    at::Tensor value = graph.constant(find_parameter(graph, edit.parameter));
    about->second.shape = value.sizes().vec();
    if (value.dim() == 1) about->second.before = numbers(value);
  }
  return file;
}

std::string to_text(const EditFile& file) {
  require_moderate(file);
  std::string out = fmt::format(
      "{{\n  \"format\": \"netmend-edits\", \"version\": 1,\n  \"model\": {{\"file\": {}, \"checksum\": {}}},\n  "
      "\"parameters\": {{",
      quoted(file.model), quoted(file.checksum));
  const char* between = "";
  for (const auto& [name, about] : file.parameters) {
    out += fmt::format("{}\n    {}: {}", between, quoted(name), about_text(about));
    between = ",";
  }
  out += "},\n  \"edits\": [";
  between = "";
  for (const Edit& edit : file.edits) {
    out += fmt::format("{}\n    {}", between, edit_text(edit));
    between = ",";
  }
  return out + "]\n}\n";
}

void write_edits(const EditFile& file, const std::string& path) { write_file(path, to_text(file)); }

EditFile parse_edits(std::string_view text, const std::string& where) {
  Json json = parsed(text, where);
  Cursor top(json, where);
  EditFile file;
  read_head(top.object(), file);
  read_about(top, file);
  Cursor edits = top.at("edits");
  for (size_t i = 0; i < edits.list().size(); ++i)
    file.edits.push_back(read_edit(Cursor(edits.json()[i], fmt::format("{}, edit {}", where, i))));
  return file;
}

EditFile read_edits(const std::string& path) { return parse_edits(read_file(path, kLargestFile), path); }

void require_fit(const model::Graph& graph, const EditFile& file) {
  for (const auto& [name, about] : file.parameters) {
    at::Tensor value = graph.constant(find_parameter(graph, name));
    if (value.sizes() != at::IntArrayRef(about.shape))
      throw InputError(fmt::format("parameter {} is {} in this model and {} in the edits", name,
                                   shape_text(value.sizes()), shape_text(about.shape)),
                       "Edits can only be applied to the model they were made for.");
  }
}

}  // namespace netmend::edits
