#include "session/repair_record.h"

#include <ATen/ATen.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "dataset/dataset.h"
#include "model/graph.h"
#include "stream/pass.h"

namespace netmend::session {
namespace {

constexpr const char* kSaw = "the search for this model's repair saw ";
constexpr int64_t kMostMarks = 2000;  ///< in a model's metadata: 16 kB
constexpr int64_t kLookedAt = 512;    ///< inputs of other data that are compared with them

}  // namespace

uint32_t content_hash(const dataset::Dataset& data, int64_t sample) {
  dataset::Display shown = data.display(sample);
  std::string bytes = shown.text;
  bytes.append(reinterpret_cast<const char*>(shown.pixels.data()), shown.pixels.size());
  if (bytes.empty())
    for (const at::Tensor& input : data.read({&sample, 1}).inputs) {
      at::Tensor plain = input.contiguous();
      bytes.append(static_cast<const char*>(plain.data_ptr()), plain.nbytes());
    }
  return uint32_t(hash64(bytes));
}

void RepairRecord::write_to(model::Graph& graph) const {
  nlohmann::ordered_json json = {{"parent", parent}, {"method", method}, {"data", data},           {"units", units},
                                 {"edits", edits},   {"seed", seed},     {"inputs", inputs.size()}};
  std::string hashes;
  for (int64_t i : stream::spread(int64_t(inputs.size()), kMostMarks))
    hashes += fmt::format("{:08x}", inputs[size_t(i)]);
  json["hashes"] = hashes;
  graph.metadata["netmend.repair"] = json_text(json);
}

std::string seen_in_search(const model::Graph& graph, const dataset::Dataset& data) {
  auto hit = graph.metadata.find("netmend.repair");
  if (hit == graph.metadata.end()) return "";
  const nlohmann::json json = json_or_null(hit->second);
  if (!json.is_object() || !json.contains("hashes") || !json["hashes"].is_string() || !json.contains("inputs") ||
      !json["inputs"].is_number_unsigned())
    return "the model's netmend.repair metadata cannot be read, so it is not known whether the repair saw this data";
  const std::string text = json["hashes"];
  std::set<uint32_t> hashes;
  for (size_t i = 0; i + 8 <= text.size(); i += 8)
    hashes.insert(uint32_t(std::strtoul(text.substr(i, 8).c_str(), nullptr, 16)));
  const std::vector<int64_t> some = stream::spread(data.size(), kLookedAt);
  int64_t seen = 0;
  for (int64_t sample : some) seen += hashes.count(content_hash(data, sample)) > 0;
  if (seen == 0 || hashes.empty() || some.empty()) return "";
  // Inputs that look alike share a hash: what counts is how many were written down.
  const double kept = double(text.size() / 8) / std::max(1.0, json["inputs"].get<double>());
  const double recorded = json["inputs"].get<double>(),
               estimate =
                   std::min(double(data.size()), double(seen) / double(some.size()) / kept * double(data.size()));
  // Where the estimate leaves it open whether all of them are here, they are: one number in all messages.
  const double about =
      std::abs(estimate - recorded) < 0.2 * recorded && recorded <= double(data.size()) ? recorded : estimate;
  return fmt::format("{}about {} of these {} inputs, so results here are too optimistic", kSaw,
                     with_commas(int64_t(about)), with_commas(data.size()));
}

bool tells_of_search(const std::string& note) { return note.find(kSaw) != note.npos; }

}  // namespace netmend::session
