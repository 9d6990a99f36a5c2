#include "dataset/saved_index.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace netmend::dataset {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLargestIndex = int64_t(256) << 20;
constexpr int64_t kMostInPart = 1024;
constexpr int64_t kMostValues = int64_t(1) << 31;  ///< of one sample
constexpr int64_t kMostNames = 1 << 20;
constexpr const char* kRewrite = "Save the data again with save_data of netmend's Python package.";

/// The document with the place that every complaint names.
class Reader {
 public:
  explicit Reader(std::string folder) : folder_(std::move(folder)), file_(folder_ + "/data.json") {}

  SavedIndex read() {
    std::error_code error;
    if (!std::filesystem::exists(file_, error))
      throw InputError(fmt::format("{} is not a saved data set: it has no {}", folder_, file_),
                       "saved:DIR names the folder that save_data wrote.");
    Json json = Json::parse(read_file(file_, kLargestIndex), nullptr, false);
    if (!json.is_object()) bad("it is not a JSON object");
    check_kind(json);
    SavedIndex index;
    index.file = file_;
    index.samples = number(json, "samples", 1, int64_t(1) << 40);
    read_inputs(list(json, "inputs", 1, 256), index);
    read_labels(json, index);
    index.groups = names(list(json, "groups", 0, 1024), "groups");
    if (std::set<std::string>(index.groups.begin(), index.groups.end()).size() != index.groups.size())
      bad("a name occurs twice in `groups`");
    index.display = Display::Kind(choice(json, "display", {"none", "image", "text"}));
    read_parts(list(json, "parts", 1, int64_t(1) << 24), index);
    return index;
  }

 private:
  [[noreturn]] void bad(const std::string& what) const {
    throw InputError(fmt::format("{} does not hold what it should: {}", file_, what), kRewrite);
  }

  const Json& at(const Json& object, const char* key) const {
    if (!object.is_object()) bad("an entry of a list is not an object");
    auto hit = object.find(key);
    if (hit == object.end()) bad(fmt::format("`{}` is missing", key));
    return *hit;
  }
  std::string text(const Json& object, const char* key) const {
    const Json& value = at(object, key);
    if (!value.is_string()) bad(fmt::format("`{}` is not a string", key));
    return value.get<std::string>();
  }
  int64_t whole(const Json& value, const char* key, int64_t least, int64_t most) const {
    bool fits = value.is_number_integer() && !(value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(most));
    if (!fits || value.get<int64_t>() < least || value.get<int64_t>() > most)
      bad(fmt::format("`{}` is {}, not a whole number from {} to {}", key,
                      value.dump(-1, ' ', true, Json::error_handler_t::replace).substr(0, 40), least, most));
    return value.get<int64_t>();
  }
  int64_t number(const Json& object, const char* key, int64_t least, int64_t most) const {
    return whole(at(object, key), key, least, most);
  }
  const Json& list(const Json& object, const char* key, int64_t least, int64_t most) const {
    const Json& value = at(object, key);
    if (!value.is_array()) bad(fmt::format("`{}` is not a list", key));
    if (int64_t(value.size()) < least || int64_t(value.size()) > most)
      bad(fmt::format("`{}` has {} entries, where {} to {} are possible", key, value.size(), least, most));
    return value;
  }
  std::vector<std::string> names(const Json& values, const char* key) const {
    std::vector<std::string> out;
    for (const Json& value : values) {
      if (!value.is_string()) bad(fmt::format("`{}` holds something that is not a string", key));
      out.push_back(value.get<std::string>());
    }
    return out;
  }
  size_t choice(const Json& object, const char* key, const std::vector<std::string>& words) const {
    const std::string word = text(object, key);
    auto hit = std::find(words.begin(), words.end(), word);
    if (hit == words.end()) bad(fmt::format("`{}` is '{}', expected one of {}", key, word, join(words, ", ")));
    return size_t(hit - words.begin());
  }

  void check_kind(const Json& json) const {
    if (text(json, "format") != "netmend-saved") bad(fmt::format("`format` is '{}'", text(json, "format")));
    if (const Json& version = at(json, "version"); version != 1)
      throw InputError(fmt::format("{} is of version {}, this netmend reads 1", file_, version.dump().substr(0, 20)),
                       "Use a newer netmend, or save the data with the Python package that belongs to this one.");
    const Json& complete = at(json, "complete");
    if (!complete.is_boolean()) bad("`complete` is neither true nor false");
    if (!complete.get<bool>())
      throw InputError(
          fmt::format("{} is not finished: the program that wrote it stopped or is still writing", folder_),
          "Run save_data again; it continues after the last complete part.");
  }

  void read_inputs(const Json& inputs, SavedIndex& index) const {
    static const std::map<std::string, Element> types = {
        {"bool", Element::kBool},   {"uint8", Element::kU8},    {"int8", Element::kI8},    {"uint16", Element::kU16},
        {"int16", Element::kI16},   {"uint32", Element::kU32},  {"int32", Element::kI32},  {"int64", Element::kI64},
        {"float16", Element::kF16}, {"float32", Element::kF32}, {"float64", Element::kF64}};
    std::set<std::string> seen;
    for (const Json& json : inputs) {
      SavedInput input;
      input.name = text(json, "name");
      if (input.name.empty() || !seen.insert(input.name).second)
        bad(fmt::format("the input name '{}' is empty or occurs twice", input.name));
      auto type = types.find(text(json, "type"));
      if (type == types.end())
        bad(fmt::format("input {} has the type '{}', which netmend does not read", input.name, text(json, "type")));
      input.type = type->second;
      int64_t values = 1;
      for (const Json& size : list(json, "shape", 0, 16)) {
        input.shape.push_back(whole(size, "shape", -1, kMostValues));
        const bool free = input.shape.back() == -1 && input.shape.size() == 1;
        if (input.shape.back() < 1 && !free)
          bad(fmt::format("input {} has the shape {}: only the first size may be left open (-1)", input.name,
                          size_list(input.shape)));
        input.ragged = input.ragged || free;
        if (!free && (__builtin_mul_overflow(values, input.shape.back(), &values) || values > kMostValues))
          bad(fmt::format("input {} has an impossible shape", input.name));
      }
      if (json.contains("columns")) input.columns = names(list(json, "columns", 0, kMostNames), "columns");
      if (!input.columns.empty() && (input.shape.size() != 1 || int64_t(input.columns.size()) != input.shape[0]))
        bad(fmt::format("input {} has the shape {} and {} names of columns", input.name, size_list(input.shape),
                        input.columns.size()));
      index.inputs.push_back(std::move(input));
    }
  }

  static std::string size_list(const std::vector<int64_t>& shape) {
    return fmt::format("[{}]", fmt::join(shape, ", "));
  }

  void read_labels(const Json& json, SavedIndex& index) const {
    const Json& labels = at(json, "labels");
    index.labels = LabelKind(choice(labels, "kind", {"none", "class", "number", "multi"}));
    index.label_width = number(labels, "width", 1, 100000);
    if (index.labels == LabelKind::kClass && index.label_width != 1)
      bad(fmt::format("labels of kind class have the width {}, not 1", index.label_width));
    index.classes = names(list(json, "classes", 0, kMostNames), "classes");
    if (index.labels == LabelKind::kMulti && !index.classes.empty() &&
        int64_t(index.classes.size()) != index.label_width)
      bad(fmt::format("there are {} classes for labels of the width {}", index.classes.size(), index.label_width));
  }

  /// A part is a plain file of the folder; anything else could name any file of the machine.
  std::string part_path(const std::string& name, std::set<std::string>& seen) const {
    const bool plain = !name.empty() && name[0] != '.' && name.find_first_of("/\\") == std::string::npos &&
                       name.find('\0') == std::string::npos;
    if (!plain) bad(fmt::format("the part '{}' is not a plain file name", printable(name)));
    if (!seen.insert(name).second) bad(fmt::format("the part {} is listed twice", name));
    return folder_ + "/" + name;
  }

  void check_file(const SavedPart& part) const {
    std::error_code error;
    const auto size = std::filesystem::file_size(part.path, error);
    if (error)
      throw InputError(fmt::format("{} is missing or cannot be read: {}", part.path, error.message()),
                       "Copy the whole folder, or save the data again.");
    if (int64_t(size) != part.bytes)
      throw InputError(fmt::format("{} has {} bytes, where data.json says {}: {}", part.path, size, part.bytes,
                                   int64_t(size) < part.bytes ? "it is cut short" : "it was changed"),
                       "Copy the folder again, or save the data again.");
  }

  void read_parts(const Json& parts, SavedIndex& index) const {
    std::set<std::string> seen;
    int64_t first = 0;
    for (const Json& json : parts) {
      SavedPart part;
      part.path = part_path(text(json, "file"), seen);
      part.first = first;
      part.samples = number(json, "samples", 1, kMostInPart);
      part.bytes = number(json, "bytes", 1, int64_t(1) << 50);
      part.checksum = checksum(text(json, "crc32"), part.path);
      first += part.samples;
      check_file(part);
      index.parts.push_back(std::move(part));
    }
    if (first != index.samples)
      bad(fmt::format("the parts hold {} samples together, `samples` says {}", first, index.samples));
  }

  uint32_t checksum(const std::string& digits, const std::string& path) const {
    bool hex = digits.size() == 8 && digits.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
    if (!hex) bad(fmt::format("the crc32 of {} is '{}', not eight hex digits", path, digits.substr(0, 40)));
    return uint32_t(std::stoul(digits, nullptr, 16));
  }

  std::string folder_, file_;
};

}  // namespace

size_t SavedIndex::part_of(int64_t sample) const {
  check(sample >= 0 && sample < samples, "sample {} of {}", sample, samples);
  auto after = std::upper_bound(parts.begin(), parts.end(), sample,
                                [](int64_t at, const SavedPart& part) { return at < part.first; });
  return size_t(after - parts.begin()) - 1;
}

SavedIndex read_saved_index(const std::string& folder) { return Reader(folder).read(); }

}  // namespace netmend::dataset
