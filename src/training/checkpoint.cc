#include "training/checkpoint.h"

#include <ATen/ATen.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace netmend::training {
namespace {

using Json = nlohmann::json;
const std::string kMagic = "netmend checkpoint 1\n";
constexpr size_t kLongestHeader = size_t(64) << 20;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
double number(const Json& json) { return json.is_null() ? kNone : json.get<double>(); }

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

Epoch epoch_of(const Json& json) {
  Epoch e;
  e.number = json.at("epoch").get<int64_t>();
  e.loss = number(json.at("loss")), e.accuracy = number(json.at("accuracy"));
  e.val_loss = number(json.at("val_loss")), e.val_accuracy = number(json.at("val_accuracy"));
  e.rate = json.at("rate").get<double>();
  e.seconds = json.at("seconds").get<double>(), e.val_seconds = json.at("val_seconds").get<double>();
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

/// The JSON line and where the numbers begin.
std::pair<Json, size_t> header_of(const std::string& path, const std::string& content) {
  size_t end = content.starts_with(kMagic) ? content.find('\n', kMagic.size()) : std::string::npos;
  if (end == std::string::npos || end > kLongestHeader) fail("{} is not a checkpoint that netmend wrote", path);
  Json json = Json::parse(content.begin() + int64_t(kMagic.size()), content.begin() + int64_t(end), nullptr, false);
  if (!json.is_object()) fail("{} is damaged: its second line is not that of a checkpoint", path);
  return {std::move(json), end + 1};
}

void read_header(const Json& json, Checkpoint& into, std::string& checksum) {
  into.task = json.at("task").get<std::string>();
  into.steps = json.at("steps").get<int64_t>();
  checksum = json.at("checksum").get<std::string>();
  into.history.clear();
  for (const Json& epoch : json.at("history")) into.history.push_back(epoch_of(epoch));
  for (size_t i = 0; i < into.history.size(); ++i)
    if (into.history[i].number != int64_t(i) + 1) throw std::invalid_argument("epochs are not in order");
  if (into.steps < 0) throw std::invalid_argument("negative steps");
}

}  // namespace

void write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  std::string bytes = bytes_of(checkpoint.state);
  Json history = Json::array();
  for (const Epoch& epoch : checkpoint.history) history.push_back(to_json(epoch));
  Json header = {
      {"task", checkpoint.task}, {"steps", checkpoint.steps}, {"checksum", checksum(bytes)}, {"history", history}};
  write_file(path, kMagic + header.dump() + "\n" + bytes);
}

void read_checkpoint(const std::string& path, Checkpoint& into) {
  size_t expected = 0;
  for (const at::Tensor& tensor : into.state) expected += tensor.nbytes();
  std::string content = read_file(path, int64_t(expected + kLongestHeader));
  auto [json, start] = header_of(path, content);
  std::string task = into.task, sum;
  try {
    read_header(json, into, sum);
  } catch (const std::exception&) {  // a field is missing or of another type
    fail("{} is damaged: its second line is not that of a checkpoint", path);
  }
  if (into.task != task)
    throw InputError(fmt::format("{} belongs to another training run (model, data or options differ)", path),
                     "Give the options it was made with, or another --checkpoint file.");
  if (content.size() - start != expected || checksum(std::string_view(content).substr(start)) != sum)
    fail("{} is damaged: its numbers are not those that were written", path);
  for (at::Tensor& tensor : into.state) {
    std::memcpy(tensor.data_ptr(), content.data() + start, tensor.nbytes());
    start += tensor.nbytes();
  }
}

}  // namespace netmend::training
