// The file is a sequence of: length (8 bytes), checksum of it (4), the event as protobuf, checksum (4). Field numbers
// are those of TensorFlow's event.proto, summary.proto and tensor.proto. Checksums are not verified: a damaged event is
// left out by its fields.
#include "records/tensorboard.h"

#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace netmend::records {
namespace {

constexpr uint64_t kMostEvent = uint64_t(64) << 20;
constexpr size_t kMostTags = 1000;

/// A protobuf message, field by field. Ends at the first byte that makes no sense.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}
  struct Field {
    uint64_t number = 0, value = 0;  ///< value of a varint
    std::string_view bytes;          ///< of everything else
    int kind = 0;
  };
  std::optional<Field> next() {
    Field field;
    uint64_t tag = 0;
    if (rest_.empty() || !varint(tag)) return std::nullopt;
    field.number = tag >> 3, field.kind = int(tag & 7);
    if (field.kind == 0) return varint(field.value) ? std::optional(field) : std::nullopt;
    uint64_t size = field.kind == 1 ? 8 : field.kind == 5 ? 4 : 0;
    if (field.kind == 2 && !varint(size)) return std::nullopt;
    if (field.kind != 1 && field.kind != 2 && field.kind != 5) return std::nullopt;
    if (size > rest_.size()) return std::nullopt;
    field.bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return field;
  }

 private:
  bool varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= uint64_t(byte & 127) << shift;
      if (!(byte & 128)) return true;
    }
    return false;
  }
  std::string_view rest_;
};

double number_of(std::string_view bytes) {
  if (bytes.size() == 8) {
    double value;
    std::memcpy(&value, bytes.data(), 8);
    return value;
  }
  float value = NAN;
  if (bytes.size() == 4) std::memcpy(&value, bytes.data(), 4);
  return value;
}

/// TensorFlow 2 writes scalars as tensors of one element: float_val (5), or tensor_content (4), of 4 or 8 bytes by its
/// type.
double tensor_scalar(std::string_view bytes) {
  double value = NAN;
  for (Fields fields(bytes); auto field = fields.next();)
    if ((field->number == 5 && field->kind != 0) || (field->number == 4 && field->kind == 2))
      value = number_of(field->bytes);
  return value;
}

struct Point {
  int64_t step;
  double value;
};
using Scalars = std::map<std::string, std::vector<Point>>;

void read_value(std::string_view bytes, int64_t step, Scalars& scalars) {
  std::string tag;
  double value = NAN;
  bool any = false;
  for (Fields fields(bytes); auto field = fields.next();) {
    if (field->number == 1 && field->kind == 2) tag = utf8(field->bytes.substr(0, 200));
    if (field->number == 2 && field->kind == 5) value = number_of(field->bytes), any = true;
    if (field->number == 8 && field->kind == 2) value = tensor_scalar(field->bytes), any = !std::isnan(value);
  }
  if (any && !tag.empty() && (scalars.count(tag) || scalars.size() < kMostTags)) scalars[tag].push_back({step, value});
}

void read_event(std::string_view bytes, Scalars& scalars) {
  int64_t step = 0;
  std::vector<std::string_view> summaries;
  for (Fields fields(bytes); auto field = fields.next();) {
    if (field->number == 2 && field->kind == 0) step = int64_t(field->value);
    if (field->number == 5 && field->kind == 2) summaries.push_back(field->bytes);
  }
  for (std::string_view summary : summaries)
    for (Fields fields(summary); auto field = fields.next();)
      if (field->number == 1 && field->kind == 2) read_value(field->bytes, step, scalars);
}

}  // namespace

std::string scalar_name(std::string tag, bool validation) {
  tag = lower(tag);
  const bool held = validation || tag.find("val") != std::string::npos || tag.find("test") != std::string::npos;
  const char* name = tag.find("loss") != std::string::npos  ? "loss"
                     : tag.find("acc") != std::string::npos ? "accuracy"
                                                            : nullptr;
  return name ? (held ? "val_" : "") + std::string(name) : "";
}

Record read_tensorboard(const std::string& path) {
  Record record;
  record.path = path;
  const std::string text = read_file(path, int64_t(1) << 30);
  Scalars scalars;
  size_t at = 0;
  while (text.size() - at >= 16) {
    uint64_t length = 0;
    std::memcpy(&length, text.data() + at, 8);
    if (length > kMostEvent || length > text.size() - at - 16) {
      record.cut = true;
      break;
    }
    read_event(std::string_view(text).substr(at + 12, length), scalars);
    at += 16 + length;
  }
  std::map<std::string, std::vector<Point>> named;
  for (const auto& [tag, points] : scalars)
    if (const std::string name = scalar_name(tag, path.find("validation") != std::string::npos);
        !name.empty() && !named.count(name))
      named[name] = points;
  if (!named.count("loss") && !named.count("val_loss"))
    throw InputError(fmt::format("{} holds no scalar whose name contains loss", path),
                     scalars.empty() ? "Is it an event file of TensorBoard?"
                                     : fmt::format("It holds {} other scalars.", scalars.size()));
  std::map<int64_t, Epoch> by_step;
  for (const auto& [name, points] : named)
    for (const Point& point : points) by_step[point.step].metrics[name] = point.value;
  for (auto& [step, epoch] : by_step) {
    epoch.epoch = int64_t(record.epochs.size()) + 1, epoch.step = step;
    record.epochs.push_back(std::move(epoch));
  }
  record.troubles.emplace_back(
      "an event file has no gradients, weights or data: only rules about losses and metrics apply");
  return record;
}

}  // namespace netmend::records
