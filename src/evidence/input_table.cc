#include "evidence/input_table.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/memory_error.h"
#include "dataset/image_file.h"
#include "evidence/table_columns.h"
#include "observers/input_relevance.h"

namespace netmend::evidence {
namespace {

using Json = nlohmann::ordered_json;
using observers::SampleRow;

constexpr int64_t kLargest = 96;        ///< side of a thumbnail
constexpr size_t kLongest = 4000;       ///< bytes of a text: sentences are whole, books are not
constexpr int64_t kNeighboursOf = 300;  ///< failures whose nearest inputs are looked up
constexpr int64_t kNearest = 3;
constexpr int64_t kExplained = 48;     ///< failures with a map of relevance
constexpr int64_t kSimilarTo = 600;    ///< inputs whose similar ones are listed
constexpr double kForFailures = 0.75;  ///< of the room for what is shown; the rest is for their neighbours

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
/// Enough digits for a page, few enough for its size.
double rounded(double value) { return std::round(value * 1e4) / 1e4; }

std::string base64(const std::string& bytes) {
  static constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t j = 0; j < 3; ++j) word = word << 8 | (i + j < bytes.size() ? uint8_t(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j) out += i + j <= bytes.size() ? kLetters[word >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

/// Shrunk to a thumbnail by means over blocks; a side that is shorter than a block stays one pixel.
std::string thumbnail(const dataset::Display& display) {
  const int64_t block = (std::max(display.height, display.width) + kLargest - 1) / kLargest;
  if (block <= 1) return dataset::encode_png(display.height, display.width, display.channels, display.pixels);
  const int64_t rows = std::min(block, display.height), columns = std::min(block, display.width);
  const int64_t height = display.height / rows, width = display.width / columns;
  std::vector<uint8_t> small(size_t(height * width * display.channels));
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < display.channels; ++c) {
        int64_t sum = 0;
        for (int64_t dy = 0; dy < rows; ++dy)
          for (int64_t dx = 0; dx < columns; ++dx)
            sum += display.pixels[size_t(((y * rows + dy) * display.width + x * columns + dx) * display.channels + c)];
        small[size_t((y * width + x) * display.channels + c)] = uint8_t(sum / (rows * columns));
      }
  return dataset::encode_png(height, width, display.channels, small);
}

/// Cut at a whole character.
std::string shortened(std::string text) {
  if (text.size() <= kLongest) return text;
  size_t end = kLongest;
  while (end > 0 && (uint8_t(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + " …";
}

}  // namespace

InputTable::InputTable(const checks::Checkup& checkup, const EvidenceOptions& options)
    : checkup_(checkup), options_(options), room_(options.most_rows) {
  const dataset::Dataset& data = *part(0).data;
  if (data.size() > 0 && data.display(0).kind == dataset::Display::kImage) room_ = options.most_pictures;
}

int64_t InputTable::find(const std::string& split, int64_t sample) const {
  auto hit = rows_.find({split == "train", sample});
  return hit == rows_.end() ? -1 : hit->second;
}

int64_t InputTable::row(const std::string& split, int64_t sample) {
  const int side = split == "train";
  if (side == 1 && !checkup_.seen->train) return -1;
  if (sample < 0 || sample >= part(side).data->size()) return -1;
  auto [hit, fresh] = rows_.try_emplace({side, sample}, int64_t(entries_.size()));
  if (fresh) entries_.push_back({side, sample});
  return hit->second;
}

void InputTable::show(int64_t row) {
  if (row < 0 || int64_t(order_.size()) >= room_ || !wanted_.try_emplace(row, true).second) return;
  order_.push_back(row);
}

/// Rows of failing tests, highest loss first.
std::vector<int64_t> InputTable::failures() const {
  std::vector<std::pair<double, int64_t>> failing;
  const auto& tests = checkup_.seen->test->rows;
  for (size_t row = 0; row < entries_.size(); ++row)
    if (entries_[row].split == 0 && tests[size_t(entries_[row].sample)].right == SampleRow::kWrong)
      failing.emplace_back(tests[size_t(entries_[row].sample)].loss, int64_t(row));
  std::stable_sort(failing.begin(), failing.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<int64_t> rows;
  for (const auto& [loss, row] : failing) rows.push_back(row);
  return rows;
}

void InputTable::show_failures() {
  for (int64_t row : failures())
    if (double(order_.size()) < kForFailures * double(room_)) show(row);
}

void InputTable::add_slice(size_t slice, const std::vector<size_t>& tests) {
  slices_.resize(checkup_.seen->test->rows.size());
  for (size_t test : tests) slices_[test].push_back(slice);
}

void InputTable::add_tests() {
  const auto& rows = checkup_.seen->test->rows;
  std::vector<const SampleRow*> failing;
  for (const SampleRow& one : rows)
    if (one.right == SampleRow::kWrong) failing.push_back(&one);
  std::stable_sort(failing.begin(), failing.end(), [](const auto* a, const auto* b) { return a->loss > b->loss; });
  for (const SampleRow* one : failing)
    if (int64_t(entries_.size()) < options_.most_inputs) row("test", one->sample);
  const int64_t room = options_.most_inputs - int64_t(entries_.size());
  if (room > 0)
    for (int64_t i : stream::spread(int64_t(rows.size()), room)) row("test", rows[size_t(i)].sample);
}

nlohmann::ordered_json InputTable::to_json() const {
  Json json;
  const checks::Observed& seen = *checkup_.seen;
  int64_t tests = 0;
  for (const Entry& entry : entries_) tests += entry.split == 0;
  json["left_out"] = std::max<int64_t>(0, seen.test->data->size() - tests);
  add_columns(json);
  add_groups(json);
  add_neighbours(json);
  add_answers(json);
  add_before(json);
  json["pictures"] = Json::object();
  json["texts"] = Json::object();
  if (!options_.pictures) return json;
  const std::vector<int64_t> shown = with_neighbours(json);
  add_displays(json, shown);
  add_table(json, part(0).data->info(), shown);
  add_heat(json);
  return json;
}

void InputTable::add_columns(Json& json) const {
  const bool classes = checkup_.seen->settings.by_class();
  const bool judged = checkup_.seen->settings.task != observers::Task::kNone;
  for (const char* name : {"split", "sample", "id", "label", "predicted", "confidence", "loss", "right"})
    json[name] = Json::array();
  if (classes) json["second"] = Json::array();
  if (!slices_.empty()) json["slices"] = Json::array();
  if (!checkup_.results.clusters.empty()) json["cluster"] = Json::array();
  for (const Entry& entry : entries_) {
    const checks::ObservedSplit& from = part(entry.split);
    json["split"].push_back(entry.split);
    json["sample"].push_back(entry.sample);
    json["id"].push_back(from.data->id(entry.sample));
    const bool known = entry.sample < int64_t(from.rows.size());
    const SampleRow row = known ? from.rows[size_t(entry.sample)] : SampleRow{};
    auto value = [&](double x, bool there) {
      return known && there ? number(classes ? x : rounded(x)) : Json(nullptr);
    };
    json["label"].push_back(value(row.label, judged && (!classes || row.label >= 0)));
    json["predicted"].push_back(value(row.predicted, !classes || row.predicted >= 0));
    json["confidence"].push_back(known ? number(rounded(row.confidence)) : Json(nullptr));
    json["loss"].push_back(known && judged ? number(rounded(row.loss)) : Json(nullptr));
    json["right"].push_back(known && row.right != SampleRow::kNotJudged ? Json(row.right) : Json(nullptr));
    if (classes) {
      const bool has = entry.sample < int64_t(from.top.size()) && from.top[size_t(entry.sample)].classes[1] >= 0;
      json["second"].push_back(has ? Json(from.top[size_t(entry.sample)].classes[1]) : Json(nullptr));
    }
    if (!slices_.empty())
      json["slices"].push_back(entry.split == 0 && entry.sample < int64_t(slices_.size())
                                   ? Json(slices_[size_t(entry.sample)])
                                   : Json::array());
    if (!checkup_.results.clusters.empty()) {
      const int64_t cluster = entry.split == 0 && entry.sample < int64_t(checkup_.results.clusters.size())
                                  ? checkup_.results.clusters[size_t(entry.sample)]
                                  : -1;
      json["cluster"].push_back(cluster >= 0 ? Json(cluster) : Json(nullptr));
    }
  }
}

void InputTable::add_groups(Json& json) const {
  json["groups"] = Json::object();
  const auto& names = checkup_.seen->test->data->info().groups;
  for (size_t g = 0; g < names.size(); ++g) {
    std::map<std::string, int64_t> numbers;
    Json values = Json::array(), of = Json::array();
    for (const Entry& entry : entries_) {
      const auto own = part(entry.split).data->groups(entry.sample);
      auto [hit, fresh] = numbers.try_emplace(g < own.size() ? own[g] : "", int64_t(numbers.size()));
      if (fresh) values.push_back(hit->first);
      of.push_back(hit->second);
    }
    json["groups"][names[g]] = {{"values", values}, {"of", of}};
  }
}

/// What wants to be seen, and after it the nearest inputs of the failures as far as there is room.
std::vector<int64_t> InputTable::with_neighbours(const Json& json) const {
  std::vector<int64_t> shown = order_;
  if (!json.contains("near")) return shown;
  std::map<int64_t, bool> wanted = wanted_;
  for (int64_t nth = 0; nth < kNearest; ++nth)  // the nearest of all first
    for (const Json& near : json["near"])
      for (const char* side : {"right", "wrong"})
        if (nth < int64_t(near[side].size()) && int64_t(shown.size()) < room_)
          if (const auto row = near[side][size_t(nth)].get<int64_t>(); wanted.try_emplace(row, true).second)
            shown.push_back(row);
  return shown;
}

void InputTable::add_displays(Json& json, const std::vector<int64_t>& shown) const {
  int64_t bytes = 0;
  for (int64_t row : shown) {
    const Entry& entry = entries_[size_t(row)];
    const dataset::Display display = part(entry.split).data->display(entry.sample);
    if (display.kind == dataset::Display::kNone || !display.values.empty()) continue;
    const bool text = display.kind == dataset::Display::kText;
    std::string content = text ? shortened(display.text) : "data:image/png;base64," + base64(thumbnail(display));
    bytes += int64_t(content.size());
    if (bytes > options_.most_bytes) break;
    json[text ? "texts" : "pictures"][std::to_string(row)] = std::move(content);
  }
}

/// Rows of a table with their columns; what is usual is told by the training data, or by the tests where there is none.
void InputTable::add_table(Json& json, const dataset::Info& info, const std::vector<int64_t>& shown) const {
  const checks::ObservedSplit& usual = part(checkup_.seen->train ? 1 : 0);
  const std::vector<TableColumn> columns = table_columns(*usual.data);
  if (columns.empty()) return;
  Json table = {{"split", usual.name}, {"columns", Json::array()}, {"values", Json::object()}};
  for (const TableColumn& column : columns) table["columns"].push_back(column_json(column, is_fed(info, column.name)));
  int64_t bytes = 0;
  for (int64_t row : shown) {
    const Entry& entry = entries_[size_t(row)];
    Json values = Json::array();
    for (const auto& [name, value] : part(entry.split).data->display(entry.sample).values) {
      values.push_back(shortened(value));
      bytes += int64_t(value.size()) + 3;
    }
    if (values.size() != columns.size()) continue;  // a file with other columns
    if (bytes > options_.most_bytes) break;
    table["values"][std::to_string(row)] = std::move(values);
  }
  json["table"] = std::move(table);
}

/// Whether the reference's predictions were correct, where there is a reference.
void InputTable::add_before(Json& json) const {
  const auto& comparison = checkup_.seen->comparison;
  if (!comparison) return;
  std::map<int64_t, bool> before;
  for (const compare::Flip& flip : comparison->list) before[flip.sample] = flip.change != observers::Change::kFixed;
  json["before"] = Json::array();
  for (const Entry& entry : entries_) {
    const auto& rows = part(entry.split).rows;
    const auto hit = before.find(entry.sample);
    Json was = nullptr;
    if (entry.split == 0 && hit != before.end())
      was = int(hit->second);
    else if (entry.split == 0 && comparison->missing == 0 && entry.sample < int64_t(rows.size()) &&
             rows[size_t(entry.sample)].right != SampleRow::kNotJudged)
      was = rows[size_t(entry.sample)].right;  // what did not flip is as it was
    json["before"].push_back(std::move(was));
  }
}

/// The top predictions for what is shown.
void InputTable::add_answers(Json& json) const {
  for (int64_t row : order_) {
    const Entry& entry = entries_[size_t(row)];
    const auto& likely = part(entry.split).top;
    if (entry.sample >= int64_t(likely.size())) continue;
    Json list = Json::array();
    for (int64_t k = 0; k < observers::TopRow::kKept; ++k)
      if (likely[size_t(entry.sample)].classes[size_t(k)] >= 0)
        list.push_back({likely[size_t(entry.sample)].classes[size_t(k)],
                        rounded(likely[size_t(entry.sample)].probabilities[size_t(k)])});
    json["top"][std::to_string(row)] = std::move(list);
  }
}

/// Relevance of pixels for the wrong prediction, of the worst failures: red for it, blue against it.
void InputTable::add_heat(Json& json) const {
  const checks::Observed& seen = *checkup_.seen;
  const dataset::Info& info = seen.test->data->info();
  if (info.features.empty() || !info.features[0].image || !seen.settings.by_class()) return;
  std::vector<int64_t> rows, samples;
  for (int64_t row : failures())
    if (wanted_.count(row) && int64_t(rows.size()) < kExplained)
      rows.push_back(row), samples.push_back(entries_[size_t(row)].sample);
  if (rows.empty()) return;
  try {
    observers::InputExplainer explainer(seen.subject(), seen.settings);
    const at::Tensor relevance = explainer.run(seen.test->data->read(samples)).features[0];
    if (!relevance.defined()) return;
    const at::Tensor planes = relevance.sum(info.features[0].channels_last ? 3 : 1);  // inputs × rows × columns
    for (size_t i = 0; i < rows.size(); ++i) {
      at::Tensor plane = planes[int64_t(i)];
      plane = (plane / plane.abs().max().clamp_min(1e-12)).to(at::kDouble).contiguous();
      const int64_t height = plane.size(0), width = plane.size(1);
      if (height > 4 * kLargest || width > 4 * kLargest) return;
      std::vector<uint8_t> pixels;
      for (int64_t p = 0; p < plane.numel(); ++p) {
        const double value = plane.data_ptr<double>()[p], pale = 255 * (1 - std::abs(value));
        const auto strong = uint8_t(255 - 55 * std::abs(value)), weak = uint8_t(pale);
        pixels.insert(pixels.end(), {value >= 0 ? strong : weak, weak, value < 0 ? strong : weak});
      }
      json["heat"][std::to_string(rows[i])] =
          "data:image/png;base64," + base64(dataset::encode_png(height, width, 3, pixels));
    }
  } catch (const MemoryError&) {
    throw;
  } catch (const InputError&) {  // some operators have no rule for relevance: the page then shows none
  }
}

void InputTable::add_neighbours(Json& json) const {
  const checks::Observed& seen = *checkup_.seen;
  if (!seen.test->units || seen.test->units->facts.stride > 1) return;
  const observers::UnitBatch& traces = seen.test->units->traces();
  if (traces.count() < 8 || traces.count() > 40000) return;
  std::vector<int64_t> queries;  // rows
  for (int64_t row : failures())
    if (wanted_.count(row) && entries_[size_t(row)].sample < traces.count() && int64_t(queries.size()) < kNeighboursOf)
      queries.push_back(row);
  if (queries.empty()) return;
  at::Tensor all =
      at::from_blob(const_cast<float*>(traces.values.data()), {traces.count(), traces.units}).nan_to_num(0, 0, 0);
  all = (all - all.mean(0)) / all.std(0).clamp_min(1e-6);
  std::vector<int64_t> samples;
  for (int64_t row : queries) samples.push_back(entries_[size_t(row)].sample);
  at::Tensor distance =
      all.square().sum(1).unsqueeze(0) - 2 * all.index_select(0, at::tensor(samples, at::kLong)).matmul(all.t());
  at::Tensor order = std::get<1>(distance.topk(std::min<int64_t>(64, traces.count()), 1, false, true)).contiguous();
  for (size_t q = 0; q < queries.size(); ++q) {
    Json right = Json::array(), wrong = Json::array();
    for (int64_t n = 0; n < order.size(1); ++n) {
      const int64_t sample = order.data_ptr<int64_t>()[int64_t(q) * order.size(1) + n], row = find("test", sample);
      if (sample == samples[q] || row < 0) continue;
      Json& side = seen.test->rows[size_t(sample)].right == SampleRow::kRight ? right : wrong;
      if (int64_t(side.size()) < kNearest) side.push_back(row);
    }
    json["near"][std::to_string(queries[q])] = {{"right", right}, {"wrong", wrong}};
  }
}

void InputTable::add_map(Json& json) const {
  const checks::Observed& seen = *checkup_.seen;
  if (!seen.test->units) return;
  const observers::UnitBatch& traces = seen.test->units->traces();
  if (traces.count() < 8 || traces.units < 2 || traces.units > 4096) return;
  // Rows of the table that were traced, in the order of the table.
  std::map<int64_t, int64_t> traced;
  for (int64_t i = 0; i < traces.count(); ++i) traced[traces.rows[size_t(i)].sample] = i;
  std::vector<int64_t> rows, places;
  for (size_t row = 0; row < entries_.size(); ++row)
    if (auto hit = traced.find(entries_[row].sample); entries_[row].split == 0 && hit != traced.end())
      rows.push_back(int64_t(row)), places.push_back(hit->second);
  if (rows.size() < 8) return;
  at::Tensor all = at::from_blob(const_cast<float*>(traces.values.data()), {traces.count(), traces.units})
                       .nan_to_num(0, 0, 0)
                       .index_select(0, at::tensor(places, at::kLong))
                       .to(at::kDouble);
  all = all - all.mean(0);
  at::Tensor covariance = all.t().matmul(all) / double(all.size(0));
  auto [values, vectors] = at::linalg_eigh(covariance);  // ascending
  at::Tensor axes = vectors.narrow(1, traces.units - 2, 2).flip({1});
  // The sign of an axis is arbitrary: the largest component is positive.
  at::Tensor largest = axes.gather(0, axes.abs().argmax(0, true));
  axes = axes * at::where(largest < 0, -at::ones_like(largest), at::ones_like(largest));
  at::Tensor points = all.matmul(axes).contiguous();
  const double total = std::max(values.clamp_min(0).sum().item<double>(), 1e-300);
  auto explained = [&](int64_t back) { return rounded(values[traces.units - back].item<double>() / total); };
  Json& map = json["map"];
  map = {{"layer", seen.space->layers().back().name},
         {"method", "PCA"},
         {"explained", {explained(1), explained(2)}},
         {"rows", rows},
         {"x", Json::array()},
         {"y", Json::array()}};
  for (int64_t i = 0; i < points.size(0); ++i)
    map["x"].push_back(rounded(points[i][0].item<double>())), map["y"].push_back(rounded(points[i][1].item<double>()));
  add_similar(json, rows, all);
}

/// The nearest rows in feature space, each unit by its own standard deviation, of the rows that are shown.
void InputTable::add_similar(Json& json, const std::vector<int64_t>& rows, const at::Tensor& centred) const {
  constexpr int64_t kNearestRows = 8;
  std::map<int64_t, int64_t> place;
  for (size_t i = 0; i < rows.size(); ++i) place[rows[i]] = int64_t(i);
  std::vector<int64_t> asked, at_rows;
  for (int64_t row : order_)
    if (auto hit = place.find(row); hit != place.end() && int64_t(asked.size()) < kSimilarTo)
      asked.push_back(row), at_rows.push_back(hit->second);
  if (asked.empty()) return;
  const at::Tensor all = (centred / centred.std(0).clamp_min(1e-6)).to(at::kFloat);
  const at::Tensor queries = all.index_select(0, at::tensor(at_rows, at::kLong));
  const at::Tensor distance = all.square().sum(1).unsqueeze(0) - 2 * queries.matmul(all.t());
  const int64_t kept = std::min<int64_t>(kNearestRows + 1, all.size(0));
  const at::Tensor order = std::get<1>(distance.topk(kept, 1, false, true)).contiguous();
  Json& similar = json["similar"];
  similar = {{"rows", asked}, {"nearest", Json::array()}};
  for (size_t q = 0; q < asked.size(); ++q) {
    Json nearest = Json::array();
    for (int64_t n = 0; n < kept && nearest.size() < size_t(kNearestRows); ++n) {
      const int64_t at = order.data_ptr<int64_t>()[int64_t(q) * kept + n];
      if (at != at_rows[q]) nearest.push_back(rows[size_t(at)]);
    }
    similar["nearest"].push_back(std::move(nearest));
  }
}

}  // namespace netmend::evidence
