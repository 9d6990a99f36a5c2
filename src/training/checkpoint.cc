#include "training/checkpoint.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"

namespace netmend::training {
namespace {

using Json = nlohmann::json;
const std::string kName = "netmend checkpoint ", kMagic = kName + "2\n";
constexpr size_t kSum = 17;  ///< the checksum of all that follows it, on a line of its own
constexpr JsonLimits kHeader{.bytes = 64 << 20, .depth = 8};
constexpr const char* kAnew = "Remove it to start over, or name another --checkpoint file.";

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
double number(const JsonView& json) { return json.is_null() ? kNone : json.number(); }

Json to_json(const Epoch& e) {
  return {{"epoch", e.number},
          {"loss", number(e.loss)},
          {"accuracy", number(e.accuracy)},
          {"val_loss", number(e.val_loss)},
          {"val_accuracy", number(e.val_accuracy)},
          {"rate", e.rate},
          {"seconds", e.seconds},
          {"val_seconds", e.val_seconds}};
}

Epoch epoch_of(const JsonView& json, int64_t position) {
  Epoch e;
  e.number = json.at("epoch").whole(position, position);
  e.loss = number(json.at("loss")), e.accuracy = number(json.at("accuracy"));
  e.val_loss = number(json.at("val_loss")), e.val_accuracy = number(json.at("val_accuracy"));
  e.rate = json.at("rate").number();
  e.seconds = json.at("seconds").number(), e.val_seconds = json.at("val_seconds").number();
  return e;
}

std::string bytes_of(const std::vector<at::Tensor>& state) {
  std::string bytes;
  for (const at::Tensor& tensor : state) {
    at::Tensor flat = tensor.contiguous();
    bytes.append(static_cast<const char*>(flat.data_ptr()), flat.nbytes());
  }
  return bytes;
}

/// Where the JSON line begins; what stands from there on is what was written.
size_t require_whole(const std::string& path, const std::string& content) {
  if (!content.starts_with(kName))
    throw InputError(fmt::format("{} is not a checkpoint that netmend wrote", path), kAnew);
  if (!content.starts_with(kMagic)) {
    const std::string version = content.substr(kName.size(), std::min<size_t>(8, content.find('\n') - kName.size()));
    throw InputError(fmt::format("{} is a checkpoint of version {}, but this netmend reads version 2", path,
                                 printable(trim(version))),
                     "Finish the training with the netmend that began it, or start over with another file.");
  }
  const size_t begin = kMagic.size() + kSum;
  if (content.size() < begin || content[begin - 1] != '\n' ||
      content.substr(kMagic.size(), kSum - 1) != checksum(std::string_view(content).substr(begin)))
    throw InputError(fmt::format("{} is damaged: its content does not match its checksum", path), kAnew);
  return begin;
}

void read_header(const JsonView& header, Checkpoint& into) {
  into.task = header.at("task").text();
  into.steps = header.at("steps").whole(0);
  into.history.clear();
  const JsonView history = header.at("history");
  for (size_t i = 0; i < history.size(); ++i) into.history.push_back(epoch_of(history.at(i), int64_t(i) + 1));
  // Every epoch takes a step at least.
  if (into.steps < int64_t(into.history.size())) header.refuse("it has fewer steps than epochs");
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  Json history = Json::array();
  for (const Epoch& epoch : checkpoint.history) history.push_back(to_json(epoch));
  const Json header = {{"task", checkpoint.task}, {"steps", checkpoint.steps}, {"history", history}};
  const std::string content = json_text(header) + "\n" + bytes_of(checkpoint.state);
  write_file(path, kMagic + checksum(content) + "\n" + content);
}

void read_checkpoint(const std::string& path, Checkpoint& into) {
  size_t expected = 0;
  for (const at::Tensor& tensor : into.state) expected += tensor.nbytes();
  const std::string content = read_file(path, int64_t(expected) + kHeader.bytes, FileRole::kOwn);
  const size_t begin = require_whole(path, content), line = content.find('\n', begin);
  if (line == std::string::npos) throw InputError(fmt::format("{} is damaged: it has no header", path), kAnew);
  const std::string task = into.task;
  read_header(JsonDocument(std::string_view(content).substr(begin, line - begin), path, kHeader, kAnew).top(), into);
  if (into.task != task)
    throw InputError(fmt::format("{} belongs to another training run (model, data or options differ)", path),
                     "Give the options it was made with, or another --checkpoint file.");
  size_t start = line + 1;
  if (content.size() - start != expected)
    throw InputError(fmt::format("{} is damaged: it holds {} bytes of weights, {} are needed", path,
                                 content.size() - start, expected),
                     kAnew);
  for (at::Tensor& tensor : into.state) {
    std::memcpy(tensor.data_ptr(), content.data() + start, tensor.nbytes());
    start += tensor.nbytes();
  }
}

}  // namespace netmend::training
