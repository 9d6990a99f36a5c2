#include "dataset/saved_index.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace netmend::dataset {
namespace {

constexpr JsonLimits kLimits{.bytes = int64_t(256) << 20, .depth = 16};
constexpr int64_t kMostInPart = 1024;
constexpr int64_t kMostValues = int64_t(1) << 31;  ///< of one sample
constexpr int64_t kMostNames = 1 << 20;
constexpr const char* kRewrite = "Save the data again with save_data of netmend's Python package.";

/// The document, checked while it is read.
class Reader {
 public:
  explicit Reader(std::string folder) : folder_(std::move(folder)), file_(folder_ + "/data.json") {}

  SavedIndex read() {
    std::error_code error;
    if (!std::filesystem::exists(file_, error))
      throw InputError(fmt::format("{} is not a saved data set: it has no {}", folder_, file_),
                       "saved:DIR names the folder that save_data wrote.");
    const JsonDocument document = read_json(file_, kLimits, kRewrite);
    const JsonView top = document.top();
    check_kind(top);
    SavedIndex index;
    index.file = file_;
    index.samples = top.at("samples").whole(1, int64_t(1) << 40);
    read_inputs(top.at("inputs"), index);
    read_labels(top, index);
    index.groups = top.at("groups").texts(1024);
    if (std::set<std::string>(index.groups.begin(), index.groups.end()).size() != index.groups.size())
      top.at("groups").refuse("holds the same name twice");
    index.display = Display::Kind(choice(top.at("display"), {"none", "image", "text"}));
    read_parts(top.at("parts"), index);
    return index;
  }

 private:
  static size_t choice(const JsonView& value, const std::vector<std::string>& words) {
    return size_t(std::find(words.begin(), words.end(), value.choice(words)) - words.begin());
  }

  void check_kind(const JsonView& top) const {
    top.at("format").choice({"netmend-saved"});
    if (const int64_t version = top.at("version").whole(); version != 1)
      throw InputError(fmt::format("{} is of version {}, but this netmend reads version 1", file_, version),
                       "Use a newer netmend, or save the data with the Python package that belongs to this one.");
    if (!top.at("complete").truth())
      throw InputError(
          fmt::format("{} is not finished: the program that wrote it stopped or is still writing", folder_),
          "Run save_data again; it continues after the last complete part.");
  }

  void read_inputs(const JsonView& inputs, SavedIndex& index) const {
    static const std::map<std::string, Element> types = {
        {"bool", Element::kBool},   {"uint8", Element::kU8},    {"int8", Element::kI8},    {"uint16", Element::kU16},
        {"int16", Element::kI16},   {"uint32", Element::kU32},  {"int32", Element::kI32},  {"int64", Element::kI64},
        {"float16", Element::kF16}, {"float32", Element::kF32}, {"float64", Element::kF64}};
    std::set<std::string> seen;
    for (size_t i = 0; i < inputs.size(1, 256); ++i) {
      const JsonView at = inputs.at(i);
      SavedInput input;
      input.name = at.at("name").text();
      if (input.name.empty() || !seen.insert(input.name).second)
        at.refuse(fmt::format("has the name '{}', which is empty or occurs twice", printable(input.name)));
      auto type = types.find(at.at("type").text());
      if (type == types.end())
        at.refuse(fmt::format("has the type '{}', which netmend does not read", printable(at.at("type").text())));
      input.type = type->second;
      int64_t values = 1;
      at.at("shape").size(0, 16);
      for (int64_t size : at.at("shape").wholes(-1, kMostValues)) {
        input.shape.push_back(size);
        const bool free = size == -1 && input.shape.size() == 1;
        if (size < 1 && !free)
          at.refuse(fmt::format("has the shape {}: only the first size may be left open (-1)", size_list(input.shape)));
        input.ragged = input.ragged || free;
        if (!free && (__builtin_mul_overflow(values, size, &values) || values > kMostValues))
          at.refuse("has an impossible shape");
      }
      if (at.has("columns")) input.columns = at.at("columns").texts(kMostNames);
      if (!input.columns.empty() && (input.shape.size() != 1 || int64_t(input.columns.size()) != input.shape[0]))
        at.refuse(
            fmt::format("has the shape {} and {} names of columns", size_list(input.shape), input.columns.size()));
      index.inputs.push_back(std::move(input));
    }
  }

  static std::string size_list(const std::vector<int64_t>& shape) {
    return fmt::format("[{}]", fmt::join(shape, ", "));
  }

  void read_labels(const JsonView& top, SavedIndex& index) const {
    const JsonView labels = top.at("labels");
    index.labels = LabelKind(choice(labels.at("kind"), {"none", "class", "number", "multi"}));
    index.label_width = labels.at("width").whole(1, 100000);
    if (index.labels == LabelKind::kClass && index.label_width != 1)
      labels.refuse(fmt::format("are of kind class with the width {}, not 1", index.label_width));
    index.classes = top.at("classes").texts(kMostNames);
    if (std::set<std::string>(index.classes.begin(), index.classes.end()).size() != index.classes.size())
      top.at("classes").refuse("name a class twice");
    if (index.labels == LabelKind::kMulti && !index.classes.empty() &&
        int64_t(index.classes.size()) != index.label_width)
      labels.refuse(fmt::format("have the width {} for {} classes", index.label_width, index.classes.size()));
  }

  /// A part is a plain file of the folder; anything else could name any file of the machine.
  std::string part_path(const JsonView& file, std::set<std::string>& seen) const {
    const std::string name = file.text();
    const bool plain = !name.empty() && name[0] != '.' && name.find_first_of("/\\") == std::string::npos &&
                       name.find('\0') == std::string::npos;
    if (!plain) file.refuse(fmt::format("is '{}', which is not a plain file name", printable(name)));
    if (!seen.insert(name).second) file.refuse(fmt::format("is {}, which is listed twice", printable(name)));
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

  void read_parts(const JsonView& parts, SavedIndex& index) const {
    std::set<std::string> seen;
    int64_t first = 0;
    for (size_t i = 0; i < parts.size(1, int64_t(1) << 24); ++i) {
      const JsonView at = parts.at(i);
      SavedPart part;
      part.path = part_path(at.at("file"), seen);
      part.first = first;
      part.samples = at.at("samples").whole(1, kMostInPart);
      part.bytes = at.at("bytes").whole(1, int64_t(1) << 50);
      part.checksum = checksum(at.at("crc32"));
      first += part.samples;
      check_file(part);
      index.parts.push_back(std::move(part));
    }
    if (first != index.samples)
      parts.refuse(fmt::format("hold {} samples together, but `samples` says {}", first, index.samples));
  }

  static uint32_t checksum(const JsonView& value) {
    const std::string digits = value.text();
    bool hex = digits.size() == 8 && digits.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
    if (!hex) value.refuse(fmt::format("is '{}', not eight hex digits", printable(digits.substr(0, 40))));
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
