#include "records/record.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "records/csv_epochs.h"
#include "records/tensorboard.h"
#include "records/trackio.h"

namespace netmend::records {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kMostBytes = int64_t(256) << 20;
constexpr int kVersion = 1;
constexpr size_t kMostLines = 4'000'000, kMostLayers = 20'000, kMostSteps = 200'000, kMostEpochs = 1'000'000;
constexpr size_t kMostOfAKind = 100'000;

/// NaN and Inf are words in the record.
double number_of(const Json& value, double otherwise) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (!value.is_string()) return otherwise;
  const std::string& word = value.get_ref<const std::string&>();
  if (word == "NaN") return NAN;
  if (word == "Inf") return INFINITY;
  if (word == "-Inf") return -INFINITY;
  return otherwise;
}

LayerStep layer_of(const Line& line) {
  LayerStep layer;
  layer.gradient = line.number("g"), layer.gradient_zero = line.number("gz");
  layer.weight = line.number("w"), layer.update = line.number("u");
  layer.activation = line.number("a"), layer.largest = line.number("m"), layer.deviation = line.number("s");
  layer.zero = line.number("z"), layer.dead = line.number("d"), layer.saturated = line.number("sat");
  layer.frozen = line.flag("frozen"), layer.unchanged = line.flag("same"), layer.no_gradient = line.flag("none");
  layer.same_rows = line.flag("same_rows");
  layer.size = line.number("n", 0);
  layer.function = line.text("act");
  return layer;
}

void add_step(Record& record, const Line& line) {
  if (record.steps.size() >= kMostSteps) return;
  Step step;
  step.optimizer = line.whole("optimizer"), step.step = line.whole("step"), step.epoch = line.whole("epoch", -1);
  step.loss = line.number("loss"), step.rate = line.number("lr"), step.probe = line.flag("probe");
  const Line layers = line.part("layers");
  if (layers.json().is_object())
    for (const auto& [name, row] : layers.json().items())
      if (row.is_object() && step.layers.size() < kMostLayers) step.layers.emplace_back(name, layer_of(Line(row)));
  Json rest = line.json();
  rest.erase("layers");
  step.facts = Line(std::move(rest));
  record.steps.push_back(std::move(step));
}

void add_epoch(Record& record, const Line& line) {
  if (record.epochs.size() >= kMostEpochs) return;
  Epoch epoch;
  epoch.epoch = line.whole("epoch", int64_t(record.epochs.size()) + 1);
  epoch.fit = line.whole("fit"), epoch.step = line.whole("step");
  epoch.seconds = line.number("seconds"), epoch.rate = line.number("lr");
  epoch.metrics = line.numbers("metrics");
  record.epochs.push_back(std::move(epoch));
}

void add_series(Record& record, const Line& line) {
  LossSeries& series = record.series[line.whole("optimizer")];
  const int64_t every = std::clamp<int64_t>(line.whole("every", 1), 1, int64_t(1) << 40);
  int64_t at = std::clamp<int64_t>(line.whole("from", 1), 1, int64_t(1) << 40);
  const auto& values = line.json().contains("loss") ? line.json()["loss"] : Json();
  if (!values.is_array()) return;
  for (const Json& value : values) {
    if (series.losses.size() >= kMostLines) return;
    at += every;
    series.steps.push_back(at - 1);
    series.losses.push_back(number_of(value, NAN));
  }
  for (const char* key : {"loss", "largest"})
    if (line.json().contains(key) && line.json()[key].is_array())
      for (const Json& value : line.json()[key])
        if (const double loss = number_of(value, NAN); !(loss <= series.largest) && !std::isnan(loss))
          series.largest = loss;
}

void add_line(Record& record, Line line) {
  const std::string type = line.text("e");
  if (type == "step") return add_step(record, line);
  if (type == "epoch") return add_epoch(record, line);
  if (type == "series") return add_series(record, line);
  if (type == "trouble" && record.troubles.size() < 50) record.troubles.push_back(line.text("what"));
  if (type == "full") record.troubles.emplace_back("the record reached its largest size: what came later is missing");
  std::vector<Line>& all = record.lines[type];
  if (all.size() < kMostOfAKind) all.push_back(std::move(line));
}

void check_header(const Record& record) {
  if (record.header.text("netmend") != "training-record")
    throw InputError(fmt::format("{} is not the record of a training run", record.path),
                     "netmend watch -- python train.py writes one.");
  const int64_t version = record.header.whole("version", 0);
  if (version != kVersion)
    throw InputError(
        fmt::format("{} has version {} of the format, this netmend reads version {}", record.path, version, kVersion),
        "Record the run again with this netmend, or read it with the one that wrote it.");
}

Record read_lines(const std::string& path) {
  Record record;
  record.path = path;
  const std::string text = read_file(path, kMostBytes);
  size_t at = 0, lines = 0, damaged = 0;
  while (at < text.size()) {
    const size_t end = text.find('\n', at);
    const bool whole = end != std::string::npos;
    const std::string_view line = std::string_view(text).substr(at, (whole ? end : text.size()) - at);
    at = whole ? end + 1 : text.size();
    if (line.empty()) continue;
    if (++lines > kMostLines) fail("{} has more than {} lines", path, kMostLines);
    Json json = json_or_null(line, {.bytes = 16 << 20, .values = 2'000'000, .depth = 12});
    if (lines == 1) {
      record.header = Line(json.is_object() ? std::move(json) : Json());
      check_header(record);
      continue;
    }
    if (json.is_object())
      add_line(record, Line(std::move(json)));
    else if (whole)
      ++damaged;
    else
      record.cut = true;
  }
  if (lines == 0) throw InputError(fmt::format("{} is empty", path), "The program ended before anything was recorded.");
  if (damaged) record.troubles.push_back(fmt::format("{} of {} lines are damaged and were left out", damaged, lines));
  if (record.lines.find("end") == record.lines.end()) record.cut = true;
  return record;
}

std::vector<std::string> other_records(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end && found.size() < 1000;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with("record-") && name.ends_with(".jsonl")) found.push_back(name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// What a process did, as far as its record tells: without reading all of it into memory as values.
struct Share {
  std::string name;
  int64_t steps = -1;  ///< −1: it trained nothing
  int64_t rank = 0;
  bool readable = false;
};

Share share_of(const fs::path& folder, const std::string& name) {
  Share share{.name = name};
  std::string text;
  try {
    text = read_file((folder / name).string(), kMostBytes);
  } catch (const InputError&) {
    return share;
  }
  for (size_t at = 0, line = 0; at < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view row = std::string_view(text).substr(at, end - at);
    at = end + 1;
    const bool training = row.starts_with("{\"e\":\"optimizer\"") || row.starts_with("{\"e\":\"fit\"");
    const bool counts = row.starts_with("{\"e\":\"series\"") || row.starts_with("{\"e\":\"summary\"") ||
                        row.starts_with("{\"e\":\"epoch\"");
    if (training) share.steps = std::max<int64_t>(share.steps, 0);
    if (line != 0 && !counts) continue;
    const Line json(json_or_null(row, {.bytes = 16 << 20, .values = 2'000'000, .depth = 12}));
    if (line == 0) {
      share.readable = json.text("netmend") == "training-record";
      const std::string rank = json.text("rank");
      if (!rank.empty() && rank.size() < 7 && rank.find_first_not_of("0123456789") == std::string::npos)
        share.rank = std::stoll(rank);
      continue;
    }
    const auto losses = int64_t(
        json.json().is_object() && json.has("loss") && json.json()["loss"].is_array() ? json.json()["loss"].size() : 0);
    constexpr int64_t kMost = int64_t(1) << 40;
    const int64_t every = std::clamp<int64_t>(json.whole("every", 1), 1, kMost);
    const int64_t last = losses > 0 ? std::clamp<int64_t>(json.whole("from", 1), 1, kMost) + losses * every - 1 : 0;
    const int64_t told = std::max({share.steps, last, json.whole("steps"), json.whole("step")});
    share.steps = std::min(told, kMost);
  }
  if (!share.readable) share.steps = -1;
  return share;
}

/// A launcher, a script before the training, helpers: of all records of a run the one that trained longest; of those
/// that trained as long, within a tenth, the smallest rank; without any training the first.
std::vector<Share> shares_of(const fs::path& folder) {
  constexpr size_t kMostRead = 64;
  std::vector<std::string> names = other_records(folder);
  std::error_code error;
  if (fs::exists(folder / "record.jsonl", error)) names.insert(names.begin(), "record.jsonl");
  std::vector<Share> shares;
  for (size_t i = 0; i < names.size(); ++i)
    shares.push_back(names.size() > 1 && i < kMostRead ? share_of(folder, names[i]) : Share{.name = names[i]});
  int64_t most = -1;
  for (const Share& one : shares) most = std::max(most, one.steps);
  std::stable_sort(shares.begin(), shares.end(), [&](const Share& a, const Share& b) {
    auto order = [&](const Share& one) {
      return std::make_pair(one.steps < 0 ? 2 : (one.steps * 10 >= most * 9 ? 0 : 1), one.rank);
    };
    return order(a) < order(b);
  });
  return shares;
}

void say_others(Record& record, const std::vector<Share>& shares) {
  std::vector<std::string> trained;
  for (size_t i = 1; i < shares.size(); ++i) {
    record.others.push_back(shares[i].name);
    if (shares[i].steps >= 0 && trained.size() < 8)
      trained.push_back(fmt::format("{} ({} steps)", shares[i].name, shares[i].steps));
  }
  if (trained.empty())
    record.troubles.push_back(
        fmt::format("{} trained; {} wrote a record and trained nothing", shares[0].name,
                    shares.size() == 2 ? "another process" : fmt::format("{} other processes", shares.size() - 1)));
  else
    record.troubles.push_back(
        fmt::format("this is {}; other processes trained too: {}", shares[0].name, join(trained, ", ")));
}

}  // namespace

double Line::number(const char* key, double otherwise) const {
  return has(key) ? number_of(json_[key], otherwise) : otherwise;
}

int64_t Line::whole(const char* key, int64_t otherwise) const {
  const double value = number(key, double(otherwise));
  return std::isfinite(value) && std::abs(value) < 9e15 ? int64_t(value) : otherwise;
}

bool Line::flag(const char* key, bool otherwise) const {
  return has(key) && json_[key].is_boolean() ? json_[key].get<bool>() : otherwise;
}

std::string Line::text(const char* key) const {
  if (!has(key) || !json_[key].is_string()) return "";
  const std::string& value = json_[key].get_ref<const std::string&>();
  return utf8(value.size() > 2000 ? value.substr(0, 2000) : value);
}

std::vector<std::string> Line::texts(const char* key) const {
  std::vector<std::string> all;
  if (has(key) && json_[key].is_array())
    for (const Json& one : json_[key])
      if (one.is_string() && all.size() < 1000) all.push_back(utf8(one.get_ref<const std::string&>()));
  return all;
}

Line Line::part(const char* key) const { return has(key) && json_[key].is_object() ? Line(json_[key]) : Line(); }

std::vector<Line> Line::list(const char* key) const {
  std::vector<Line> all;
  if (has(key) && json_[key].is_array())
    for (const Json& one : json_[key])
      if (one.is_object() && all.size() < kMostLayers) all.emplace_back(one);
  return all;
}

std::map<std::string, double> Line::numbers(const char* key) const {
  std::map<std::string, double> all;
  if (has(key) && json_[key].is_object())
    for (const auto& [name, value] : json_[key].items())
      if ((value.is_number() || value.is_string()) && all.size() < 2000) all[utf8(name)] = number_of(value, NAN);
  return all;
}

std::vector<int64_t> Line::wholes(const char* key) const {
  std::vector<int64_t> all;
  if (has(key) && json_[key].is_array())
    for (const Json& one : json_[key])
      if (one.is_number() && std::abs(one.get<double>()) < 9e15 && all.size() < 64)
        all.push_back(int64_t(one.get<double>()));
  return all;
}

const std::vector<Line>& Record::of(const std::string& type) const {
  static const std::vector<Line> none;
  const auto found = lines.find(type);
  return found == lines.end() ? none : found->second;
}

Line Record::first(const std::string& type) const { return of(type).empty() ? Line() : of(type).front(); }
Line Record::last(const std::string& type) const { return of(type).empty() ? Line() : of(type).back(); }

Record read_record(const std::string& path) {
  std::error_code error;
  if (path.ends_with(".csv")) return read_csv_epochs(path);
  if (fs::path(path).filename().string().find("tfevents") != std::string::npos) return read_tensorboard(path);
  if (is_sqlite(path)) return read_trackio(path);
  if (!fs::is_directory(path, error)) return read_lines(path);
  const std::vector<Share> shares = shares_of(path);
  if (shares.empty())
    throw InputError(fmt::format("{} holds no record of a training run", path),
                     "netmend watch --out DIR -- python train.py writes one into DIR.");
  Record record = read_lines((fs::path(path) / shares[0].name).string());
  if (shares.size() > 1) say_others(record, shares);
  return record;
}

}  // namespace netmend::records
