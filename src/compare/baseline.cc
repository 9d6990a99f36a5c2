#include "compare/baseline.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "dataset/table.h"
#include "observers/task.h"

namespace netmend::compare {
namespace {

using observers::Before;
using observers::SampleRow;

constexpr JsonLimits kLimits{.bytes = int64_t(1) << 30, .values = 25'000'000};
constexpr int64_t kMostInputs = 10'000'000;  ///< 160 MB of them
constexpr const char* kBaseline = "A baseline is written by: netmend compare OLD.onnx NEW.onnx -o baseline.json";
constexpr const char* kReference = "A reference is a model, a run folder of netmend eval, or a baseline.json.";

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

/// The text that pack() was given. `most` holds it against the file: a few bytes must not claim a billion inputs.
std::string unpack(const JsonView& packed, int64_t most) {
  std::string text;
  const std::string all = packed.text();
  for (size_t begin = 0, end = 0; end < all.size(); begin = end + 1) {  // one part at a time: there may be many
    end = std::min(all.find(' ', begin), all.size());
    const std::string_view part = std::string_view(all).substr(begin, end - begin);
    const size_t star = part.find('*');
    int64_t run = 1;
    bool right = star == std::string_view::npos ? part.size() == 1
                                                : parse_int(part.substr(0, star), run) && part.size() == star + 2;
    if (!right || run < 1 || part.back() < '0' || part.back() > '2')
      packed.refuse(fmt::format("is damaged at '{}'", printable(part.substr(0, 20))));
    if (run > most - int64_t(text.size()))
      packed.refuse(fmt::format("holds more than the {} that `inputs` says", with_commas(most)));
    text.append(size_t(run), part.back());
  }
  return text;
}

stats::Estimate read_estimate(const JsonView& value) {
  value.object();
  auto number = [&](const char* key) {
    return value.has(key) && !value.at(key).is_null() ? value.at(key).number() : NAN;  // JSON has no word for NaN
  };
  return {number("value"), number("low"), number("high")};
}

Baseline read_folder(const std::string& folder) {
  Baseline baseline;
  read_json(folder + "/run.json", kLimits, kReference);
  const JsonDocument document = read_json(folder + "/eval.json", kLimits, kReference);
  const JsonView eval = document.top();
  auto word = [&](const char* key) {
    return eval.has(key) && !eval.at(key).is_null() ? eval.at(key).text() : std::string();
  };
  if (!eval.is_object()) eval.refuse("this is not an evaluation");
  if (!eval.has("metric") && !eval.has("metrics") && !eval.has("samples")) eval.refuse("this is not an evaluation");
  if (eval.has("partial") && eval.at("partial").truth())
    throw InputError(fmt::format("{} is an evaluation that was stopped before its end", folder),
                     "Run netmend eval again to its end.");
  baseline.model = word("model");
  baseline.fingerprint = word("fingerprint");
  baseline.metric = word("metric");
  if (eval.has("metrics") && eval.at("metrics").has(baseline.metric))
    baseline.value = read_estimate(eval.at("metrics").at(baseline.metric));
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
    baseline.ids.push_back(id_hash(from_csv_field(row[id])));
  });
  return baseline;
}

Baseline read_baseline_file(const std::string& path) {
  const JsonDocument document = read_json(path, kLimits, kBaseline);
  const JsonView top = document.top();
  if (!top.is_object() || !top.has("format") || !top.at("format").is_text() ||
      top.at("format").text() != "netmend-baseline")
    throw InputError(fmt::format("{} is not a baseline that netmend wrote", path), kBaseline);
  if (const int64_t version = top.at("version").whole(); version != 1)
    throw InputError(fmt::format("{} is a baseline of version {}, but this netmend reads version 1", path, version),
                     version > 1 ? "Use a newer netmend." : kBaseline);
  Baseline baseline;
  baseline.model = top.at("model").text();
  baseline.fingerprint = top.at("fingerprint").text();
  baseline.metric = top.at("metric").text();
  const auto& metrics = observers::metric_names();
  if (!baseline.metric.empty() && std::find(metrics.begin(), metrics.end(), baseline.metric) == metrics.end())
    top.at("metric").refuse("is not a metric");
  baseline.value = read_estimate(top.at("value"));
  const int64_t inputs = top.at("inputs").whole(1, kMostInputs);
  const std::string marks = unpack(top.at("answers"), inputs);
  if (int64_t(marks.size()) != inputs)
    top.at("answers").refuse(
        fmt::format("holds {}, but `inputs` says {}", with_commas(int64_t(marks.size())), with_commas(inputs)));
  if (!top.has("errors") && marks.find('2') != std::string::npos)
    top.at("answers").refuse("holds predictions that were neither right nor wrong, and there are no `errors`");
  const auto right = double(std::count(marks.begin(), marks.end(), '1'));
  if (baseline.metric == "accuracy" && !(std::abs(baseline.value.value - right / double(inputs)) <= 1e-4))
    top.at("value").refuse(fmt::format("does not match `answers`, which give {:.4g}", right / double(inputs)));
  baseline.predictions.reserve(marks.size());
  for (char mark : marks) baseline.predictions.push_back({mark - '0', 0});
  if (top.has("errors")) {
    const JsonView errors = top.at("errors");
    errors.size(inputs, inputs);
    for (size_t i = 0; i < marks.size(); ++i)  // JSON has no word for infinity
      baseline.predictions[i].error = errors.json()[i].is_null() ? INFINITY : errors.at(i).number();
  }
  if (top.has("ids")) {
    top.at("ids").size(inputs, inputs);
    for (int64_t id : top.at("ids").wholes(0, UINT32_MAX)) baseline.ids.push_back(uint32_t(id));
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
      throw InputError(fmt::format("{} has no eval.json", path), kReference);
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
  write_file(path, json_text(json) + "\n");
}

EarlierPredictions::EarlierPredictions(const Baseline& baseline, const dataset::Dataset& data, bool common)
    : baseline_(baseline), data_(data), common_(common) {
  if (!common) {
    if (int64_t(baseline.predictions.size()) == data.size()) return;
    throw InputError(fmt::format("{} has predictions for {} inputs, but {} has {} inputs", baseline.source,
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
