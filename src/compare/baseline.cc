#include "compare/baseline.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "dataset/table.h"

namespace netmend::compare {
namespace {

using observers::Before;
using observers::SampleRow;

constexpr int64_t kLargest = int64_t(1) << 30;

/// 0 wrong, 1 right, 2 not judged; four per character would be smaller, but this can be read.
std::string marks_text(const std::vector<Before>& predictions) {
  std::string text;
  for (const Before& one : predictions) text += char('0' + one.right);
  return text;
}

/// Runs of the same character are written as their length and the character: most predictions are right.
std::string pack(const std::string& text) {
  std::string packed;
  for (size_t i = 0; i < text.size();) {
    size_t run = 1;
    while (i + run < text.size() && text[i + run] == text[i]) ++run;
    packed += (run > 1 ? std::to_string(run) + "*" : "") + text[i];
    if (i + run < text.size()) packed += " ";
    i += run;
  }
  return packed;
}

std::string unpack_hashes(const std::string& packed, const std::string& path) {
  std::string text;
  for (const std::string& part : split(packed, ' ')) {
    size_t star = part.find('*');
    int64_t run = 1;
    bool right =
        star == std::string::npos ? part.size() == 1 : parse_int(part.substr(0, star), run) && part.size() == star + 2;
    if (!right || run < 1 || run > kLargest - int64_t(text.size()) || part.back() < '0' || part.back() > '2')
      fail("{}: `answers` is damaged at '{}'", path, printable(part.substr(0, 20)));
    text.append(size_t(run), part.back());
  }
  return text;
}

nlohmann::json read_json(const std::string& path) {
  auto json = nlohmann::json::parse(read_file(path, kLargest), nullptr, false);
  if (!json.is_object()) fail("{} is not a JSON file that netmend wrote", path);
  return json;
}

stats::Estimate read_estimate(const nlohmann::json& json) {
  auto number = [&](const char* key) {
    return json.contains(key) && json[key].is_number() ? json[key].get<double>() : NAN;
  };
  return {number("value"), number("low"), number("high")};
}

Baseline read_folder(const std::string& folder) {
  Baseline baseline;
  nlohmann::json run = read_json(folder + "/run.json"), eval = read_json(folder + "/eval.json");
  auto word = [&](const char* key) {
    if (!eval.contains(key) || eval[key].is_null()) return std::string();
    if (!eval[key].is_string()) fail("{}/eval.json: `{}` is damaged", folder, key);
    return eval[key].get<std::string>();
  };
  baseline.model = word("model");
  baseline.fingerprint = word("fingerprint");
  baseline.metric = word("metric");
  if (eval.contains("metrics") && eval["metrics"].contains(baseline.metric))
    baseline.value = read_estimate(eval["metrics"][baseline.metric]);
  dataset::Table table(dataset::open_bytes(folder + "/samples.csv"), dataset::TableFormat{});
  const auto id = size_t(table.position("id")), correct = size_t(table.position("correct")),
             loss = size_t(table.position("loss"));
  table.for_all([&](int64_t, const dataset::Row& row) {
    double squared = NAN;
    parse_double(row[loss], squared);
    const double error = std::sqrt(squared);  // a prediction that is no number is as far off as can be, as elsewhere
    baseline.predictions.push_back({row[correct] == "1"   ? SampleRow::kRight
                                    : row[correct] == "0" ? SampleRow::kWrong
                                                          : SampleRow::kNotJudged,
                                    std::isnan(error) ? INFINITY : error});
    baseline.ids.push_back(id_hash(row[id]));
  });
  return baseline;
}

Baseline read_baseline_file(const std::string& path) {
  nlohmann::json json = read_json(path);
  Baseline baseline;
  try {
    if (json.at("format") != "netmend-baseline" || json.at("version") != 1)
      fail("{} has the format {}, version {}, which this netmend cannot read", path, json.at("format").dump(),
           json.at("version").dump());
    baseline.model = json.at("model");
    baseline.fingerprint = json.at("fingerprint");
    baseline.metric = json.at("metric");
    baseline.value = read_estimate(json.at("value"));
    std::string hashes = unpack_hashes(json.at("answers").get<std::string>(), path);
    for (char hash : hashes) baseline.predictions.push_back({hash - '0', 0});
    if (json.contains("errors"))
      for (size_t i = 0; i < baseline.predictions.size(); ++i) {
        const nlohmann::json& error = json.at("errors").at(i);  // JSON has no word for infinity
        baseline.predictions[i].error = error.is_null() ? INFINITY : error.get<double>();
      }
    if (json.contains("ids")) baseline.ids = json.at("ids").get<std::vector<uint32_t>>();
    if (!baseline.ids.empty() && baseline.ids.size() != baseline.predictions.size())
      fail("{} names {} inputs and has predictions for {}", path, baseline.ids.size(), baseline.predictions.size());
  } catch (const nlohmann::json::exception&) {
    throw InputError(fmt::format("{} is not a baseline that netmend wrote", path),
                     "A baseline is written by: netmend compare OLD.onnx NEW.onnx -o baseline.json");
  }
  return baseline;
}

}  // namespace

uint32_t id_hash(const std::string& id) { return uint32_t(hash64(id)); }

Baseline read_baseline(const std::string& path) {
  std::error_code error;
  Baseline baseline;
  if (std::filesystem::is_directory(path, error)) {
    if (!std::filesystem::exists(path + "/eval.json", error))
      throw InputError(fmt::format("{} has no eval.json", path),
                       "A reference is a model, a run folder of netmend eval, or a baseline.json.");
    baseline = read_folder(path);
  } else {
    baseline = read_baseline_file(path);
  }
  baseline.source = path;
  if (baseline.predictions.empty()) fail("{} holds no predictions", path);
  return baseline;
}

void write_baseline(const std::string& path, const Baseline& baseline, const observers::PredictionSettings& settings) {
  nlohmann::ordered_json json = {
      {"format", "netmend-baseline"},
      {"version", 1},
      {"model", baseline.model},
      {"fingerprint", baseline.fingerprint},
      {"metric", baseline.metric},
      {"value", {{"value", baseline.value.value}, {"low", baseline.value.low}, {"high", baseline.value.high}}},
      {"inputs", baseline.predictions.size()},
      {"answers", pack(marks_text(baseline.predictions))}};
  if (!baseline.ids.empty()) json["ids"] = baseline.ids;
  if (settings.task == observers::Task::kNumber) {
    for (const Before& one : baseline.predictions) json["errors"].push_back(float(one.error));
  }
  write_file(path, json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

EarlierPredictions::EarlierPredictions(const Baseline& baseline, const dataset::Dataset& data, bool common)
    : baseline_(baseline), data_(data), common_(common) {
  if (!common) {
    if (int64_t(baseline.predictions.size()) == data.size()) return;
    throw InputError(fmt::format("{} has predictions for {} inputs, {} has {}", baseline.source,
                                 baseline.predictions.size(), data.info().spec, data.size()),
                     "Compare on the same data, or with --common on the inputs that both have.");
  }
  if (baseline.ids.empty())
    throw InputError(fmt::format("{} does not name its inputs", baseline.source),
                     "--common needs names: data with ids, such as images, or a column that data.id names.");
  for (size_t i = 0; i < baseline.ids.size(); ++i) by_id_.emplace(baseline.ids[i], i);
}

const Before* EarlierPredictions::find(int64_t sample) const {
  if (!common_) return &baseline_.predictions[size_t(sample)];
  auto hit = by_id_.find(id_hash(data_.id(sample)));
  return hit == by_id_.end() ? nullptr : &baseline_.predictions[hit->second];
}

}  // namespace netmend::compare
