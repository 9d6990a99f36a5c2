#include "edits/edit_file.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace netmend::edits {

using Json = nlohmann::json;

namespace {

constexpr int64_t kMostNumbers = 40'000'000;  ///< such a file can still be read
constexpr JsonLimits kLimits{.bytes = int64_t(1) << 30, .values = kMostNumbers + 15'000'000, .depth = 16};
constexpr const char* kRepeat = "Write the file again with netmend; it may have been cut off or changed by hand.";

// ---- writing ----

std::string quoted(const std::string& text) { return json_text(Json(text)); }

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

/// Numbers; where they were measured also the words for those that JSON does not have.
std::vector<double> values_of(const JsonView& list, bool words) {
  std::vector<double> out;
  out.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& item = list.json()[i];
    const std::string word = words && item.is_string() ? item.get<std::string>() : "";
    if (item.is_number())
      out.push_back(item.get<double>());
    else if (word == "nan")
      out.push_back(std::numeric_limits<double>::quiet_NaN());
    else if (word == "inf" || word == "-inf")
      out.push_back(word == "inf" ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity());
    else
      list.at(i).number();  // refuses
  }
  return out;
}

void read_about(const JsonView& top, EditFile& file) {
  if (!top.has("parameters")) return;
  const JsonView parameters = top.at("parameters");
  for (const std::string& name : parameters.keys()) {
    const JsonView at = parameters.at(name);
    About& about = file.parameters[name];
    about.shape = at.at("shape").wholes();
    if (at.has("before")) about.before = values_of(at.at("before"), true);
    int64_t count = model::checked_count(about.shape);
    if (count < 0 || (at.has("before") && count != int64_t(about.before.size())))
      at.refuse(
          fmt::format("has {} values, which do not fit the shape {}", about.before.size(), shape_text(about.shape)));
  }
}

Edit read_edit(const JsonView& at) {
  Edit edit;
  edit.parameter = at.at("parameter").text();
  if (at.has("unit")) edit.unit = at.at("unit").text();
  edit.axis = at.at("axis").whole(0), edit.index = at.at("index").whole(0);
  edit.before = values_of(at.at("before"), true), edit.after = values_of(at.at("after"), false);
  if (edit.before.size() != edit.after.size())
    at.refuse(fmt::format("has {} values before and {} after", edit.before.size(), edit.after.size()));
  return edit;
}

void read_head(const JsonView& top, EditFile& file, const std::string& where) {
  if (top.has("format") && top.at("format").text() != "netmend-edits")
    throw InputError(fmt::format("{}: a file of {}, not of edits", where, top.at("format").text()),
                     "Give the edits.json that netmend wrote.");
  if (top.has("version") && top.at("version").whole() != 1)
    throw InputError(
        fmt::format("{}: edits of version {}, but this netmend reads version 1", where, top.at("version").whole()),
        "Use a newer netmend.");
  if (!top.has("model")) return;
  const JsonView model = top.at("model").object();
  if (model.has("file")) file.model = model.at("file").text();
  if (model.has("checksum")) file.checksum = model.at("checksum").text();
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
  const JsonDocument document(text, where, kLimits, kRepeat);
  const JsonView top = document.top().object();
  EditFile file;
  read_head(top, file, where);
  const JsonView edits = top.at("edits");
  read_about(top, file);
  for (size_t i = 0; i < edits.size(); ++i) file.edits.push_back(read_edit(edits.at(i)));
  return file;
}

EditFile read_edits(const std::string& path) { return parse_edits(read_file(path, kLimits.bytes), path); }

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
